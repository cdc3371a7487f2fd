"""`run`, `publish`: run a night, or make the website again without one."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from dashboard.cli.arguments import (
    OK_CODE,
    SOME_FAILED,
    KeptBugError,
    Verbs,
    add_home_verb,
    choose_exit_code,
    describe_disk_error,
    find_code,
    find_home,
    interrupt,
    keep_bug,
)
from dashboard.cli.status import add_fail_on, judge_exit_code, summarize_night
from dashboard.night.lock import HeldError
from dashboard.plan.plan import make_plan
from dashboard.report import prometheus
from dashboard.schedule import refusal
from dashboard.schedule.refusal import Ending
from tvmdash.dashboard_info import Home, Night, last_config
from tvmdash.errors import DashboardError
from tvmdash.verdict import read_verdict

if TYPE_CHECKING:
    from dashboard.night.heartbeat import Heartbeat


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    run = add_home_verb(verbs, "run", _run, "run a night")
    run.add_argument(
        "--no-rebuild-tvm",
        action="store_true",
        help="use only TVM artifacts already on this machine; no network access",
    )
    run.add_argument(
        "--quick", action="store_true", help="first create HOME as a small home; its night takes a minute or two"
    )
    add_fail_on(run)
    add_home_verb(verbs, "publish", _publish, "make the home's website again, e.g. after a restore; measures nothing")


def _run(arguments: argparse.Namespace) -> int:
    from dashboard.night import heartbeat  # the night's machinery; the other verbs start without it

    home = Home(arguments.home)
    if arguments.quick:
        from dashboard.authoring import quick_home

        quick_home.make_quick_home(home.root)
    signal.signal(signal.SIGTERM, interrupt)
    beat = heartbeat.open_heartbeat(home)

    def begin(stamp: str) -> None:
        refusal.clear(home)
        _keep_config(home)
        beat.start(stamp)

    def fail(why: str) -> None:
        if beat.run_id:
            refusal.keep(home, why, Ending.FAILED)
        elif not sys.stderr.isatty():  # who starts a night by hand reads why it cannot begin
            refusal.keep(home, why)
        beat.fail(why)

    def crash(error: Exception) -> NoReturn:
        log = keep_bug(error)
        refusal.keep(home, f"{type(error).__name__}: {error} Log: {log}", Ending.CRASHED)
        beat.fail(f"Internal error: this is a bug in the dashboard. Log: {log}\n{traceback.format_exc()}")
        raise KeptBugError(log) from error

    try:
        return _run_night(home, arguments, beat, begin)
    except (HeldError, BrokenPipeError):  # it waits for another, so it is no start; the reader has seen enough
        raise
    except Exception as error:
        text = str(error) if isinstance(error, DashboardError) else describe_disk_error(error)
        if not text:
            crash(error)
        fail(text)
        raise


def _run_night(home: Home, arguments: argparse.Namespace, beat: Heartbeat, begin: Callable[[str], None]) -> int:
    from dashboard.night import heartbeat, night

    plan = make_plan(home, find_code(arguments), seed=arguments.seed)
    if (home.root / "results" / "inbox").is_dir():
        from dashboard.cli import serve

        with contextlib.suppress(HeldError):  # the night says so itself, or waits
            for line in serve.take_inbox(home):
                print(line)
    done = night.run_night(plan, rebuild=not arguments.no_rebuild_tvm, on_begin=begin)
    summary = summarize_night(home, done)
    print(summary)
    if arguments.quick:
        from dashboard.authoring import quick_home

        print(quick_home.format_next_steps(home.root))
    code = choose_exit_code(done)
    if code == OK_CODE:
        beat.succeed()
    else:
        beat.fail(heartbeat.format_failure(summary, done))
    if plan.config.prometheus_file is not None:
        _leave_metrics(plan.config.prometheus_file, home, done)
    return judge_exit_code(home, done, code, arguments.fail_on)


def _keep_config(home: Home) -> None:
    try:
        last_config.keep(home)
    except OSError as error:
        print(f"{error.filename}: the config could not be copied: {error.strerror}.")


def _leave_metrics(path: Path, home: Home, done: Night) -> None:
    """Write the metrics; a file that cannot be written is reported and costs the night nothing."""
    try:
        prometheus.write_metrics(path, home.root, done, read_verdict(home, done.stamp))
    except (DashboardError, OSError) as error:
        print(f"prometheus_file: could not write {path}: {error}")


def _publish(arguments: argparse.Namespace) -> int:
    from dashboard.night import night

    signal.signal(signal.SIGTERM, interrupt)
    home = find_home(arguments)
    done = night.make_website(make_plan(home, find_code(arguments), seed=arguments.seed))
    print(done.message)
    if not done.success:
        print(done.log_tail)
        return SOME_FAILED
    page = home.page()
    if page is not None:
        print(f"Page: {page.as_uri()}")
    return OK_CODE
