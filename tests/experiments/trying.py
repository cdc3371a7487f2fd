"""An experiment's stages tried as a night does, in a copy of its folder; its modules imported as its script does.

Engines are installed once into the test cache, for all experiments: what one of their setups names stays in the store.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests import artifact_for_tests
from tvmdash import config_util, records
from tvmdash.exp_templates import Experiment

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"
STAMP = "20261121T000000Z"
FOLDERS = ("config", "raw", "analysis", "data", "graph", "summary")


def modules(experiment: str) -> SimpleNamespace:
    """The experiment's modules by their names, seen by nobody else."""
    folder = EXPERIMENTS / experiment
    names = sorted(path.stem for path in folder.glob("*.py"))
    hidden = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    sys.path.insert(0, str(folder))
    try:
        return SimpleNamespace(**{name: importlib.import_module(name) for name in names})
    finally:
        sys.path.remove(str(folder))
        for name in names:
            sys.modules.pop(name, None)
        sys.modules.update(hidden)


def config_of(kind: type[Experiment[Any]], experiment: str, **given: Any) -> Any:
    """The checked config of an experiment as its class wants it."""
    file = EXPERIMENTS / experiment / config_util.FIELDS_FILE
    fields = {**config_util.EXPERIMENT_FIELDS, **config_util.read_fields(file)}
    values = config_util.check({"active": True, **given}, fields, experiment)
    return config_util.structure(kind, values, fields, file)


def _experiment_in(module: ModuleType) -> Experiment:
    defined = [value for value in vars(module).values() if isinstance(value, type)]
    (kind,) = [value for value in defined if issubclass(value, Experiment) and value.__module__ == module.__name__]
    return kind()


class Tried:
    """One experiment's folder, config and results below `root`."""

    def __init__(self, root: Path, experiment: str, config: Mapping[str, Any]) -> None:
        self.root, self.code, self.name = root, root / experiment, experiment
        shutil.copytree(EXPERIMENTS / experiment, self.code, ignore=shutil.ignore_patterns("__pycache__", "setup"))
        for folder in FOLDERS:
            (root / folder).mkdir()
        (root / "config" / "config.json").write_text(json.dumps({"active": True, "size": "smoke", **config}))

    def set_up(self) -> None:
        """Do the setup stage, on the test cache's store. Each engine has to be there after it."""
        cache = artifact_for_tests.shelf_folder().parent / "engines"
        setup = cache / "setups" / self.name
        setup.mkdir(parents=True, exist_ok=True)
        (self.code / "setup").symlink_to(setup)
        status = self._stage("setup", setup, TVMDASH_ENGINES=str(cache / "store"))
        assert re.match(r"(\d+) of \1 engines are there", status["message"]), status["message"]

    def stage(self, name: str, *folders: str, **variables: str) -> dict[str, Any]:
        """The status that a stage's script leaves in the last of `folders`."""
        return self._stage(name, *(self.root / folder for folder in folders), **variables)

    def stage_here(self, name: str, *folders: str) -> dict[str, Any]:
        """The status of a stage that measures nothing, done in this process, which is faster."""
        own = modules(self.name)
        paths = [self.root / folder for folder in ("config", *folders)]
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.code)
            for module, value in vars(own).items():
                patch.setitem(sys.modules, module, value)
            _experiment_in(getattr(own, self.name)).main([name, *map(str, paths)])
        status: dict[str, Any] = json.loads((paths[-1] / "status.json").read_text())
        return status

    def _stage(self, name: str, *paths: Path, **variables: str) -> dict[str, Any]:
        environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            **variables,
        }
        argv = [self.code / f"{name}.sh", self.root / "config", *paths]
        subprocess.run(argv, cwd=self.code, env=environment, check=False, capture_output=True)
        status: dict[str, Any] = json.loads((paths[-1] / "status.json").read_text())
        return status

    def measured(self, **variables: str) -> records.NightData:
        """What the run and analyze stages leave, read as the dashboard reads it."""
        for status in (self.stage("run", "raw", **variables), self.stage_here("analyze", "raw", "analysis")):
            assert status["success"], status["message"]
        path = self.root / "data" / f"data_{STAMP}.json"
        path.write_bytes((self.root / "analysis" / "data.json").read_bytes())
        return records.read_data(path, self.name)

    def told(self) -> str:
        """The summary's text; the graphs are drawn as well."""
        assert self.stage_here("visualize", "data", "graph")["success"]
        assert self.stage_here("summarize", "data", "summary")["success"]
        text: str = json.loads((self.root / "summary" / "summary.json").read_text())["value"]
        return text
