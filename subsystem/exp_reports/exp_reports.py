"""The experiments' night as one Slack message: the verdict first, then failures, then each experiment's summary."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tvmdash.common.files import trees
from tvmdash.common.files.trees import TreeEntry
from tvmdash.config_util import JobConfig
from tvmdash.dashboard_info import BLOCKED, FAILED, OK, Home, JobResult, Night
from tvmdash.dashboard_info.pages import read_telemetry
from tvmdash.notify.channel import (
    Attachment,
    ChannelSection,
    SlackConfig,
    attach_to_section,
    find_slack_faults,
    open_slack,
    tell_section,
)
from tvmdash.notify.night import (
    Notify,
    find_page,
    make_blocked_parts,
    make_failed_part,
    note_parts,
    read_notify,
    website_url,
)
from tvmdash.notify.payloads import (
    GOOD,
    NOTE,
    UNFINISHED,
    Part,
    Payload,
    build,
    escape,
    format_bold,
    format_pings,
    link,
)
from tvmdash.subsys_templates import Report, Subsystem
from tvmdash.text import elide
from tvmdash.verdict.account import is_good, is_partly_good, is_unfinished, read_account, sort_experiments, title_of


@dataclass(frozen=True, kw_only=True)
class ExpReportsConfig(SlackConfig, JobConfig):
    """Made from fields.json by tests/make_config_classes.py."""

    graphs: int


class ExpReports(Subsystem[ExpReportsConfig]):
    """Tells Slack, or where there is none its output folder, how the experiments went."""

    def faults(self, config: ExpReportsConfig, shown: str, home: Home) -> Sequence[str]:
        return find_slack_faults(config, home, shown)

    def work(self, config: ExpReportsConfig, output: Path, home: Home, tonight: Night) -> Report:
        slack = open_slack(config, home, "config/subsystem/exp_reports/config.json")
        text = tell_section(slack, home, output, tonight, make_section(home, tonight))
        if slack is not None and config.graphs:
            attached = pick_graphs(home, tonight, config.graphs)
            text = f"{text} {attach_to_section(slack, home, tonight.stamp, attached.files, attached.note)}".rstrip()
        logging.getLogger("exp_reports").info("%s", text)
        return Report("Experiments in Slack", f"{read_account(home, tonight.stamp, tonight).jobs}. {text}")


_SUMMARY = 400
_DISTURBED = "Possibly disturbed during the measurement:"


def make_section(home: Home, night: Night) -> ChannelSection:
    """Write the section on the experiments, below the account of the night."""
    jobs = [(job, read_notify(home, job.kind, job.name)) for job in sort_experiments(night)]
    parts = [make_failed_part(job, notify) for job, notify in jobs if job.state == FAILED]
    parts += make_blocked_parts([item for item in jobs if item[0].state == BLOCKED])
    parts += [_unfinished_part(job, notify) for job, notify in jobs if is_unfinished(job)]
    parts += note_parts(night, [fault for _, notify in jobs for fault in notify.faults])
    measured = [job for job, _ in jobs if is_good(job) or is_partly_good(job)]
    telemetry = read_telemetry(home, night.stamp)
    troubled = telemetry.find_abnormal() if telemetry else {}
    parts += [_good_part(home, job, night.stamp, troubled.get(job.name, "")) for job in sorted(measured, key=is_good)]
    return ChannelSection(night.stamp, "Experiments", tuple(parts))


def _unfinished_part(job: JobResult, notify: Notify) -> Part:
    done = [step.stage for step in job.steps]
    sentence = f"Last completed stage: {escape(done[-1], 60)}." if done else "It was not started."
    lines = (f"{UNFINISHED} {format_bold(title_of(job))} did not finish. {sentence}", format_pings(notify.pings))
    return Part("\n".join(filter(None, lines)), notify.pings)


def _good_part(home: Home, job: JobResult, stamp: str, trouble: str) -> Part:
    """Write one experiment that was measured, with its summary of tonight (its failed points first), cut short.

    `trouble`: what may have disturbed its run.
    """
    summary = home.read_summary(job.name) if home.stamp_of(home.summary(job.name)) == stamp else None
    text = "\n".join(_short(summary[1])) if summary else "It wrote no summary tonight."
    icon = NOTE if job.failed_points or trouble else GOOD
    doubt = escape(f"{_DISTURBED} {elide(trouble, _SUMMARY)}", 2 * _SUMMARY) if trouble else ""
    lines = (f"{icon} {format_bold(title_of(job))}", doubt, escape(text, 2 * _SUMMARY))
    return Part("\n".join(filter(None, lines)).rstrip(), group=GOOD)


def _short(text: str) -> Iterator[str]:
    """Yield the first lines of a summary, whole, up to some size; where there are more, that there are more."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    size = 0
    for index, line in enumerate(lines):
        size += len(line)
        if size > _SUMMARY and index:
            yield f"… and {len(lines) - index} more line{'' if len(lines) - index == 1 else 's'}"
            return
        yield elide(line, _SUMMARY)


MAX_BYTES = 8 << 20
_NAME = 120


@dataclass(frozen=True)
class Graphs:
    """Files for the thread, and a message there about those that are not among them."""

    files: tuple[Attachment, ...]
    note: Payload | None


def pick_graphs(home: Home, night: Night, count: int) -> Graphs:
    """Pick at most `count` graphs of tonight, one of each experiment in turn."""
    website = website_url(home)
    of_jobs = [_graphs(home, job.name, night.stamp) for job in night.experiments if job.state == OK]
    # Slack shows PNG, and only offers SVG for download: where a website shows SVGs, the thread links to it
    wanted = [[item for item in items if not website or item.path.suffix == ".png"] for items in of_jobs]
    chosen = tuple(_in_turn(wanted))[:count]
    total = sum(map(len, of_jobs))
    return Graphs(chosen, _note(night, website, total) if website and total > len(chosen) else None)


def _note(night: Night, website: str, total: int) -> Payload:
    text = f"All {total} graphs" if total > 1 else "The graph"
    page = link(f"{website.rstrip('/')}/index.html#experiments", "on the website, until the next night")
    return build(
        "Graphs", f"{text}: {page}; what was measured stays on {link(find_page(night, website), 'its page')}.", []
    )


def _graphs(home: Home, experiment: str, stamp: str) -> list[Attachment]:
    """List the graphs that an experiment left tonight; a PNG in place of an SVG of its name."""
    folder = home.graph(experiment)
    if home.stamp_of(folder) != stamp:
        return []
    paths = sorted(folder / entry.path for entry in trees.walk(folder).files if _is_graph(entry))
    pngs = {path.with_suffix("") for path in paths if path.suffix == ".png"}
    paths = [path for path in paths if path.suffix == ".png" or path.with_suffix("") not in pngs]
    return [_attachment(experiment, path, folder) for path in sorted(paths, key=lambda path: path.stem != "tonight")]


def _is_graph(entry: TreeEntry) -> bool:
    return entry.path.endswith((".png", ".svg")) and 0 < entry.status.st_size <= MAX_BYTES


def _attachment(experiment: str, path: Path, folder: Path) -> Attachment:
    name = elide(str(path.relative_to(folder).with_suffix("")).replace("/", " "), _NAME)
    safe = "".join(
        character if character.isalnum() or character in "-_" else "-" for character in f"{experiment}-{name}"
    )
    return Attachment(f"{safe[:_NAME]}{path.suffix}", f"{elide(experiment, 60)}: {name.replace('_', ' ')}", path)


def _in_turn(groups: list[list[Attachment]]) -> Iterator[Attachment]:
    """Yield the first of each group, then the second of each, and so on."""
    for index in range(max(map(len, groups), default=0)):
        yield from (group[index] for group in groups if index < len(group))


if __name__ == "__main__":
    sys.exit(ExpReports().main())
