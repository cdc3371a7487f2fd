"""Tells incidents and the night on the routes that the home's config names."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tvmdash.config_util import ConfigError, JobConfig
from tvmdash.dashboard_info import Home, Night
from tvmdash.notify.command import summarize
from tvmdash.notify.config import read_routing
from tvmdash.notify.service import tell_routes
from tvmdash.subsys_templates import Report, Subsystem


class Routes(Subsystem[JobConfig]):
    """A route that does not work is told, and fails nothing."""

    def work(self, config: JobConfig, output: Path, home: Home, tonight: Night) -> Report | None:
        told = tell_routes(home, tonight.stamp)
        failed = [each.state.name for each in told if each.state.fault]
        title = f"{len(failed)} of {len(told)} routes failed" if failed else "Every route works"
        return Report(title, "\n".join(summarize(told))) if told else None

    def faults(self, config: JobConfig, shown: str, home: Home) -> Sequence[str]:
        try:
            read_routing(home)
        except ConfigError as error:
            return error.faults
        return ()


if __name__ == "__main__":
    sys.exit(Routes().main())
