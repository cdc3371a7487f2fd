"""The experiments' night as one Slack message: the verdict first, then failures, then each experiment's summary."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import graphs
import message

from tvmdash.config_util import JobConfig
from tvmdash.dashboard_info import Home, Night
from tvmdash.slack_util.delivery import SlackConfig, attach, find_slack_faults, open_slack, tell
from tvmdash.subsys_templates import Report, Subsystem


@dataclass(frozen=True, kw_only=True)
class ExpReportsConfig(SlackConfig, JobConfig):
    """As fields.json describes it."""

    graphs: int


class ExpReports(Subsystem[ExpReportsConfig]):
    """Tells Slack, or where there is none its output folder, how the experiments went."""

    def faults(self, config: ExpReportsConfig, shown: str, home: Home) -> Sequence[str]:
        return find_slack_faults(config, home, shown)

    def work(self, config: ExpReportsConfig, output: Path, home: Home, tonight: Night) -> Report:
        night_message = message.of_night(home, tonight, str(output / "message.txt"))
        slack = open_slack(config, home, "config/subsystem/exp_reports/config.json")
        text = tell(slack, output, tonight.stamp, night_message)
        if slack is not None and config.graphs:
            attached = graphs.of_night(home, tonight, config.graphs)
            text = f"{text} {attach(slack, output, tonight.stamp, attached.files, attached.note)}".rstrip()
        logging.getLogger("exp_reports").info("%s", text)
        return Report("Experiments in Slack", f"{message.verdict(tonight)}. {text}")


if __name__ == "__main__":
    sys.exit(ExpReports().main())
