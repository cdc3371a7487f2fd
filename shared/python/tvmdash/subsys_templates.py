"""What a subsystem's author writes against: the home's nights as values, an output folder, words for people."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvmdash import common, config_util
from tvmdash.dashboard_info import Home, Night
from tvmdash.errors import DashboardError
from tvmdash.stages import run_stage


@dataclass(frozen=True)
class Report:
    """A subsystem's words for people, plain text."""

    title: str
    value: str


class Subsystem:
    """A subsystem whose `work` reads the home and writes into `output`."""

    def work(self, config: Mapping[str, Any], output: Path, home: Home, tonight: Night) -> Report | None:
        """Do the night's work; what is returned is left as report.json."""
        raise NotImplementedError

    def main(self, arguments: Sequence[str] | None = None) -> int:
        """Do the run stage with the arguments `CONFIG OUTPUT HOME`; the exit status for it."""
        paths = [Path(argument) for argument in (sys.argv[1:] if arguments is None else arguments)]
        if len(paths) != 3:
            print("usage: run.sh CONFIG OUTPUT HOME", file=sys.stderr)
            return 2
        return run_stage(lambda: self._run(*paths), paths[1])

    def _run(self, config_dir: Path, output: Path, root: Path) -> str:
        fields_file = Path(inspect.getfile(type(self))).parent / config_util.FIELDS_FILE
        fields = {**config_util.SUBSYSTEM_FIELDS, **config_util.read_fields(fields_file)}
        config = config_util.read_config(config_dir / config_util.CONFIG_FILE, fields)
        home = Home(root)
        report = self.work(config, output, home, _tonight(home))
        if report is not None:
            common.write_json(output / "report.json", {"title": report.title, "value": report.value})
        return report.title if report is not None else "done"


def _tonight(home: Home) -> Night:
    stamp = os.environ.get("TVMDASH_NIGHT") or next(iter(home.night_stamps()[::-1]), None)
    if stamp is None:
        raise DashboardError(f"{home.nights}: there is no night yet. Run the dashboard on this home first.")
    return home.read_night(stamp)
