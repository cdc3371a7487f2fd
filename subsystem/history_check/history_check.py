"""One old receipt of the home, drawn by lot, measured again tonight: whether history still holds."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import check_history as history
from check_history import Check

from tvmdash import common
from tvmdash.config_util import JobConfig
from tvmdash.dashboard_info import Home, Night
from tvmdash.measure import within_night
from tvmdash.stats.comparison import CANNOT_TELL
from tvmdash.subsys_templates import Report, Subsystem

_PATIENCE_S = 90.0
"""Beyond the budget, for a setup of old code, for the analysis of the last run and for tidying up."""

_ENDED = 130


@dataclass(frozen=True, kw_only=True)
class HistoryCheckConfig(JobConfig):
    """As fields.json describes it."""

    seconds: int
    rounds: int
    points: int
    matters_percent: float


class HistoryCheck(Subsystem[HistoryCheckConfig]):
    """Has `dashboard reproduce` repeat an old receipt; keeps what came of it; tells it each night."""

    def work(self, config: HistoryCheckConfig, output: Path, home: Home, tonight: Night) -> Report:
        check = repeated(config, home, tonight)
        checks, damage = history.add(output, check)
        text = history.describe(checks, check)
        return Report(history.title(check), f"{text}\n{damage}".rstrip())


def repeated(config: HistoryCheckConfig, home: Home, tonight: Night) -> Check:
    """Tonight's check; what keeps it from being made is told in it."""
    seconds, why = within_night.allowed_s(config.seconds, config, home, tonight)
    if why:
        return Check(tonight.stamp, CANNOT_TELL, f"Nothing was measured: {why}.")
    with tempfile.TemporaryDirectory() as scratch:
        result = Path(scratch) / "result.json"
        options = {
            "budget": f"{seconds:.0f}s",
            "rounds": config.rounds,
            "matters": config.matters_percent,
            "seed": tonight.seed or 0,
            "result": result,
            **({"sample": config.points} if config.points else {}),
        }
        arguments = ["--no-rebuild-tvm", *(f"--{name}={value}" for name, value in options.items())]
        code = within_night.call("reproduce", str(home.root), "random", *arguments, timeout_s=seconds + _PATIENCE_S)
        if not result.is_file():
            why = "timed out and was stopped" if code == _ENDED else f"exited with status {code}"
            return Check(tonight.stamp, CANNOT_TELL, f"dashboard reproduce {why}; see the log of this stage.")
        return history.parse(common.read_json(result), tonight.stamp)


if __name__ == "__main__":
    sys.exit(HistoryCheck().main())
