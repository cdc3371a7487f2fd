"""`status`: print the outcome of the last night, or the progress of the current one; `--fail-on` judges it."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Mapping
from typing import Any

from dashboard.cli.arguments import CANNOT_TELL, OK_CODE, SOME_FAILED, TVM_WORSE, Verbs, add_home_verb, find_home
from dashboard.night import lock, progress
from dashboard.schedule import refusal
from dashboard.upkeep import strays
from tvmdash import common, records
from tvmdash.common.files import lock as locks
from tvmdash.dashboard_info import COMPLETE, INTERRUPTED, RUNNING, Home, HostNight, HostState, JobResult, Night
from tvmdash.errors import DashboardError
from tvmdash.notify.state import format_fault, read_states
from tvmdash.text import align, describe_missing_backups, format_duration, format_list
from tvmdash.verdict import Level, read_verdict
from tvmdash.verdict.account import STATE_WORDS, list_failures, read_account

_LEVELS = (Level.REGRESSION, Level.SUSPECT, Level.CHANGED, Level.INCOMPLETE, Level.BLIND)
"""The gravest first."""


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    add_fail_on(add_home_verb(verbs, "status", _status, "print the outcome of the last night", code=False))


def _status(arguments: argparse.Namespace) -> int:
    home = find_home(arguments)
    stamps = home.night_stamps()
    refused = refusal.read(home)
    if refused is not None:
        print(refused)
    if not stamps:
        begins = lock.is_held(home) or locks.is_held(home.waiting_file)
        run = f"Run one with ./run_dashboard.sh {home.root}"
        print(f"{home.root}: no night has run yet. {'One is about to begin.' if begins else run}")
        return OK_CODE if refused is None else SOME_FAILED
    ahead = frozenset(strays.list_ahead(home, common.utc_now()))
    # A night dated in the future would hide every one until the clock has passed it.
    night = home.read_night(([stamp for stamp in stamps if stamp not in ahead] or stamps)[-1])
    # A killed night could not close its record.
    if night.state == RUNNING and not lock.is_held(home):
        night = dataclasses.replace(night, state=INTERRUPTED)
    print("\n".join(filter(None, (summarize_status(home, night), _describe_backfill(home)))))
    if ahead:
        print(f"{len(ahead)} nights are dated in the future. Check with python3 -m dashboard doctor {home.root}")
    is_well = refused is None and night.state in {COMPLETE, RUNNING} and night.well
    code = OK_CODE if is_well else SOME_FAILED
    return judge_exit_code(home, night, code, arguments.fail_on)


def _describe_backfill(home: Home) -> str:
    """Count the backfilled nights of each experiment; empty where there are none."""
    parent = home.backfill("x").parent
    folders = sorted(path for path in parent.glob("*") if path.is_dir()) if parent.is_dir() else []
    counts = {folder.name: records.data_stamps(folder) for folder in folders}
    texts = [f"{len(stamps)} of {name}" for name, stamps in counts.items() if stamps]
    if not texts:
        return ""
    newest = max(stamps[-1] for stamps in counts.values() if stamps)
    return f"Backfill: {format_list(texts, 6)}, the last one measured {common.format_moment(newest)}."


def summarize_night(home: Home, night: Night) -> str:
    """Summarize a night: what happened, what failed and why, which TVM was measured, where the page is."""
    took = f" It took {format_duration(night.elapsed_s)}." if night.elapsed_s else ""
    lines = [f"{_format_headline(home, night)}{took}"]
    if night.state == RUNNING:
        lines = [_format_headline(home, night), *_summarize_running(home, night)]
    lines += [f"  {line}" for line in list_failures(night)]
    lines += [f"  Note: {note}" for note in night.untold_notes]
    if night.artifacts:
        lines.append(f"Measured TVM: {format_list([_format_artifact(item, night) for item in night.artifacts], 5)}.")
    if night.pairs:
        lines.append(f"Measured in turn: {night.pairs} pairs of processes, {night.speed_of_pairs}.")
    if night.hosts:
        lines.append(f"Hosts: {', '.join(_format_host_night(host, night) for host in night.hosts)}.")
    if night.state == COMPLETE and (longest := [job for job in _sort_by_time(night)[:3] if job.elapsed_s]):
        lines.append(f"Longest: {format_list(list(map(_format_longest, longest)), 3)}.")
    lines += filter(None, map(format_fault, read_states(home)))
    page = home.page()
    if page:
        lines.append(f"{'Page' if night.state == COMPLETE else 'Last page written'}: {page.as_uri()}")
    elif night.state == COMPLETE:
        lines.append(f"No page was written; the results are in {home.root / 'results'}.")
    return "\n".join(lines)


def _summarize_running(home: Home, night: Night) -> list[str]:
    """Describe a running night: its current step, since when, and its progress."""
    now = progress.read_now(home, night.stamp)
    if now is None:
        return []
    doing = [
        f"  Now: {what}{_format_points(now.points.get(what))}, since {common.format_moment(since)}."
        f"{_format_usual(now.usual_s.get(what))}"
        for what, since in now.running
        if common.is_stamp(since)
    ]
    return [*(doing or ["  Now: between steps."]), f"  {now.done} of {now.total} steps done."]


def _format_points(points: tuple[int, int] | None) -> str:
    return f", {points[0]} of {points[1]} points measured" if points else ""


def _format_usual(usual_s: float | None) -> str:
    return f" Usual duration: {format_duration(usual_s)}." if usual_s is not None else ""


def _format_headline(home: Home, night: Night) -> str:
    if night.state in {INTERRUPTED, RUNNING}:
        state = (
            "was interrupted; the next night saves its measurements"
            if night.state == INTERRUPTED
            else "is still running"
        )
        return f"Night {night.stamp} {state}."
    if not night.jobs:
        backup = describe_missing_backups([backup.moment for backup in night.missing_backups])
        also = f" {backup[0].upper()}{backup[1:]}." if backup else ""
        return f"Night {night.stamp}: nothing to do; no experiment and no subsystem is active.{also}"
    account = read_account(home, night.stamp, night)
    return f"Night {night.stamp}: {'. '.join((account.headline, *account.clauses))}."


def _format_artifact(artifact: Mapping[str, Any], night: Night) -> str:
    commit = f" ({artifact['commit']})" if artifact.get("commit") else ""
    return " ".join(filter(None, (f"{artifact.get('version', '?')}{commit}", night.describe_references(artifact))))


def _format_host_night(host: HostNight, night: Night) -> str:
    if host.state is not HostState.MEASURED:
        return f"{host.name} did not ({host.state})"
    what = "measured" if night.has_run_on(host.name) else "measured nothing"
    return f"{host.name} {what} in {format_duration(host.elapsed_s)}"


def _sort_by_time(night: Night) -> list[JobResult]:
    return sorted(night.jobs, key=lambda job: -job.elapsed_s)


def _format_longest(job: JobResult) -> str:
    return f"{job.name} {format_duration(job.elapsed_s)}"


def summarize_status(home: Home, night: Night) -> str:
    """Summarize the night, with a table: a row for each job, a column for each stage."""
    stages = list(dict.fromkeys(step.stage for job in night.jobs for step in job.steps))
    rows = [["", *stages, "time"]]
    for job in night.jobs:
        states = {step.stage: STATE_WORDS.get(step.state, step.state) for step in job.steps}
        rows.append(
            [f"{job.kind} {job.name}", *(states.get(stage, "-") for stage in stages), format_duration(job.elapsed_s)]
        )
    return "\n".join([summarize_night(home, night), "", *align(rows)])


def add_fail_on(parser: argparse.ArgumentParser) -> None:
    """Let a verb that shows a night end with a code for its verdict."""
    help_text = (
        f"exit with {TVM_WORSE} if the night's verdict is this level or worse, or with {CANNOT_TELL} if there is no "
        "verdict"
    )
    parser.add_argument("--fail-on", choices=[str(level) for level in _LEVELS], metavar="LEVEL", help=help_text)


def judge_exit_code(home: Home, night: Night, code: int, fail_on: str | None) -> int:
    """Return `code`, or that of the verdict where the night itself went well and `fail_on` is given."""
    if code != OK_CODE or fail_on is None:
        return code
    try:
        verdict = read_verdict(home, night.stamp)
    except DashboardError:  # the night's words say what is wrong with it
        verdict = None
    if verdict is None or verdict.level == Level.NO_DATA:
        return CANNOT_TELL
    failing = _LEVELS[: _LEVELS.index(Level(fail_on)) + 1]
    return TVM_WORSE if verdict.level in failing else OK_CODE
