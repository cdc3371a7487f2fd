"""The experiments' night as one Slack message: the verdict first, then failures, then each experiment's summary."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import message

from tvmdash.common.files import trees
from tvmdash.common.files.trees import TreeEntry
from tvmdash.config_util import JobConfig
from tvmdash.dashboard_info import OK, Home, Night
from tvmdash.notify.channel import (
    Attachment,
    SlackConfig,
    attach_to_section,
    find_slack_faults,
    open_slack,
    tell_section,
)
from tvmdash.notify.night import find_page, website_url
from tvmdash.notify.payloads import Payload, build, link
from tvmdash.subsys_templates import Report, Subsystem
from tvmdash.text import elide
from tvmdash.verdict.account import read_account


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
        text = tell_section(slack, home, output, tonight, message.of_night(home, tonight))
        if slack is not None and config.graphs:
            attached = of_night(home, tonight, config.graphs)
            text = f"{text} {attach_to_section(slack, home, tonight.stamp, attached.files, attached.note)}".rstrip()
        logging.getLogger("exp_reports").info("%s", text)
        return Report("Experiments in Slack", f"{read_account(home, tonight.stamp, tonight).jobs}. {text}")


MAX_BYTES = 8 << 20
_NAME = 120


@dataclass(frozen=True)
class Graphs:
    """Files for the thread, and a message there about those that are not among them."""

    files: tuple[Attachment, ...]
    note: Payload | None


def of_night(home: Home, night: Night, count: int) -> Graphs:
    """Pick at most `count` graphs of tonight, one of each experiment in turn.

    Slack shows PNG and only offers SVG for download. So PNGs go into the thread; SVGs go there only where there is no
    website that shows them, and where there is one, the thread links to it.
    """
    website = website_url(home)
    of_jobs = [_graphs(home, job.name, night.stamp) for job in night.experiments if job.state == OK]
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
