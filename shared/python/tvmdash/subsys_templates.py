"""The interface for authors of subsystems: the home's nights as values, an output folder, a report for people.

A subsystem's config is a mapping, or the frozen dataclass that it names: `class Score(Subsystem[ScoreConfig])`.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic

from tvmdash import common, config_util
from tvmdash.check_prerequisites import Need, unmet
from tvmdash.config_util import Config
from tvmdash.dashboard_info import Home, Night
from tvmdash.dashboard_info.stages import Blocked, run_stage
from tvmdash.errors import DashboardError

_REPORT_FILE = "report.json"
_CHECK = "check"


@dataclass(frozen=True)
class Report:
    """A subsystem's words for people, plain text."""

    title: str
    value: str


class Subsystem(Generic[Config]):
    """A subsystem whose `work` reads the home and writes into `output`."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        config_util.resolve_annotations(cls)

    def needs(self, config: Config) -> Sequence[Need]:
        """Return the prerequisites of `work`; where one is missing, the subsystem is blocked with the reason."""
        return ()

    def faults(self, config: Config, shown: str, home: Home) -> Sequence[str]:
        """Return the faults of the config that its fields cannot express, for `check`; `shown` is the config's file."""
        return ()

    def work(self, config: Config, output: Path, home: Home, tonight: Night) -> Report | None:
        """Do the night's work; a returned Report becomes report.json, None means that there is nothing to report.

        Where only the home tells what must be there, it may raise Blocked as well.
        """
        raise NotImplementedError

    def main(self, arguments: Sequence[str] | None = None) -> int:
        """Run the stage with the arguments `CONFIG OUTPUT HOME` and return its exit status.

        With `check CONFIG HOME` (what a check.sh calls), print a line for each fault of the config instead.
        """
        given = sys.argv[1:] if arguments is None else list(arguments)
        if len(given) == 3 and given[0] == _CHECK:
            return self._check(*map(Path, given[1:]))
        paths = [Path(argument) for argument in given]
        if len(paths) != 3:
            sys.stderr.write("usage: run.sh CONFIG OUTPUT HOME\n")
            return 2
        return run_stage(lambda: self._run(*paths), paths[1])

    def _check(self, config_dir: Path, root: Path) -> int:
        shown = str(config_dir / config_util.CONFIG_FILE)
        sys.stdout.writelines(f"{fault}\n" for fault in self.faults(self.load_config(config_dir), shown, Home(root)))
        return 0

    def _run(self, config_dir: Path, output: Path, root: Path) -> str:
        config = self.load_config(config_dir)
        home = Home(root)
        tonight = _tonight(home)
        missing = unmet(self.needs(config), home, tonight)
        if missing:
            (output / _REPORT_FILE).unlink(missing_ok=True)
            raise Blocked(" ".join(missing))
        try:
            report = self.work(config, output, home, tonight)
        except Blocked:
            (output / _REPORT_FILE).unlink(missing_ok=True)
            raise
        if report is None:
            (output / _REPORT_FILE).unlink(missing_ok=True)  # an earlier night's words are not tonight's
            return "done, nothing to report"
        common.write_json(output / _REPORT_FILE, {"title": report.title, "value": report.value})
        return report.title

    def load_config(self, folder: Path) -> Config:
        """Return the checked config with defaults, as the dataclass that the class names, else as a mapping."""
        file = Path(inspect.getfile(type(self))).parent / config_util.FIELDS_FILE
        fields = {**config_util.SUBSYSTEM_FIELDS, **config_util.read_fields(file)}
        values = config_util.read_config(folder / config_util.CONFIG_FILE, fields)
        typed: Config = config_util.structure(type(self), values, fields, file)
        return typed


def _tonight(home: Home) -> Night:
    stamp = os.environ.get("TVMDASH_NIGHT") or next(iter(home.night_stamps()[::-1]), None)
    if stamp is None:
        raise DashboardError(f"{home.nights}: no night has run yet. Run a night on this home first.")
    return home.read_night(stamp)
