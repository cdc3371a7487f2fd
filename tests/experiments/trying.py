"""An experiment's stages tried as a night does, in a copy of its folder; its modules imported as its script does.

Importing TVM takes longer than measuring a small network: processes that measure it have imported it already.
Engines are installed once into the test cache, for all experiments: what one of their setups names stays in the store.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests import artifact_for_tests
from tests.thorough import THOROUGH
from tests.warm import WarmPrograms
from tvmdash import config_util, records
from tvmdash.exp_templates import Experiment
from tvmdash.experiment import processes
from tvmdash.experiment.measure import TASK_FILE
from tvmdash.experiment.paired import partners

REPO = Path(__file__).resolve().parents[2]
EXPERIMENTS = REPO / "experiments"
STAMP = "20261121T000000Z"
FOLDERS = ("config", "raw", "analysis", "data", "graph", "summary")
KEPT = Path(__file__).with_name("kept")
UPDATE = "TVMDASH_KEEP_RAW"
"""Set to 1, it has tests measure all nights of experiments and keep what their run stages leave."""


@functools.cache
def _warm_tvm() -> WarmPrograms:
    artifact = artifact_for_tests.find()
    own = artifact.pythonpath if artifact else ()
    modules = ["tvm", "tvmdash.relax_templates", "tvmdash.relax_util", "jsonschema_rs"]
    return WarmPrograms(2, modules, [*own, REPO / "shared" / "python"])


def _programs_for(argv: Sequence[str]) -> Any:
    """What starts a measuring process: one that measures TVM has imported it already."""
    return _warm_tvm() if json.loads(Path(argv[-1], TASK_FILE).read_text())["engine"] == "tvm" else subprocess


_SUBPROCESS = SimpleNamespace(
    run=lambda argv, **options: _programs_for(argv).run(argv, **options),
    Popen=lambda argv, **options: _programs_for(argv).Popen(argv, **options),
    TimeoutExpired=subprocess.TimeoutExpired,
)


def modules(experiment: str, folder: Path | None = None, *, with_tvm: bool = False) -> SimpleNamespace:
    """The experiment's modules by their names, seen by nobody else; by default those in the repository.

    Those that import TVM at once are among them only where they are asked for: it takes a second.
    """
    folder = folder or EXPERIMENTS / experiment
    paths = [path for path in folder.glob("*.py") if with_tvm or "\nfrom tvm import" not in path.read_text()]
    names = sorted(path.stem for path in paths)
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


def _code_in(text: str) -> str:
    """Drop from a module strings that stand alone, whole-line comments and blank lines: no measurement sees them."""
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            for number in range(node.lineno, (node.end_lineno or 0) + 1):
                lines[number - 1] = ""
    return "\n".join(line for line in lines if line.strip() and not line.lstrip().startswith("#"))


def code_state(experiment: str) -> str:
    """What stands for all code of the experiment: it is another after whatever a measurement may see."""
    state = hashlib.sha256()
    for path in sorted((EXPERIMENTS / experiment).rglob("*")):
        if path.suffix in {".py", ".json", ".c", ".S"} and "setup" not in path.parts:
            text = path.read_text(encoding="utf-8")
            state.update(f"{path.name}\0{_code_in(text) if path.suffix == '.py' else text}".encode())
    return state.hexdigest()[:16]


def state_of(kept: Path) -> str:
    """The state that kept raw data are of: that of the code, a hyphen, and that of config and TVM."""
    with tarfile.open(kept) as archive:
        return archive.getnames()[0]


class Kept:
    """The raw data that an experiment's run stage left once, of one state of its folder, its config and TVM.

    With another config or TVM it is measured; --slow measures them all. Data of other code are a red test:
    measuring all of them on every run cost 50 CPU seconds, and nobody was told.
    """

    def __init__(self, tried: Tried) -> None:
        artifact = artifact_for_tests.find()
        rest = f"{artifact.version if artifact else ''}{json.dumps(tried.config, sort_keys=True)}".encode()
        self._raw, self._file = tried.root / "raw", KEPT / f"{tried.name}.tar.xz"
        self._state = f"{code_state(tried.name)}-{hashlib.sha256(rest).hexdigest()[:16]}"

    def is_current(self) -> bool:
        if THOROUGH or os.environ.get(UPDATE) or not self._file.exists():
            return False
        return state_of(self._file) == self._state

    def take(self) -> None:
        with tarfile.open(self._file) as archive:
            archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Debian's 3.11 has none
            archive.extractall(self._raw.parent)
        self._raw.rmdir()
        (self._raw.parent / self._state).rename(self._raw)

    def keep(self) -> None:
        if os.environ.get(UPDATE):
            KEPT.mkdir(exist_ok=True)
            with tarfile.open(self._file, "w:xz") as archive:
                archive.add(self._raw, self._state)


class Tried:
    """One experiment's folder, config and results below `root`."""

    def __init__(self, root: Path, experiment: str, config: Mapping[str, Any]) -> None:
        self.root, self.code, self.name, self.config = root, root / experiment, experiment, config
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
        assert re.match(r"(\d+) of \1 engines installed", status["message"]), status["message"]

    def stage(self, name: str, *folders: str, **variables: str) -> dict[str, Any]:
        """The status that a stage's script leaves in the last of `folders`."""
        return self._stage(name, *(self.root / folder for folder in folders), **variables)

    def stage_here(self, name: str, *folders: str) -> dict[str, Any]:
        """The status of a stage, done in this process, which is faster."""
        own = modules(self.name, self.code)
        paths = [self.root / folder for folder in ("config", *folders)]
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.code)
            for module, value in vars(own).items():
                patch.setitem(sys.modules, module, value)
            _experiment_in(getattr(own, self.name)).main([name, *map(str, paths)])
        status: dict[str, Any] = json.loads((paths[-1] / "status.json").read_text())
        return status

    def _stage(self, name: str, *paths: Path, **variables: str) -> dict[str, Any]:
        environment = {**os.environ, **self._environment(variables)}
        argv = [self.code / f"{name}.sh", self.root / "config", *paths]
        subprocess.run(argv, cwd=self.code, env=environment, check=False, capture_output=True)
        status: dict[str, Any] = json.loads((paths[-1] / "status.json").read_text())
        return status

    def run_here(self, **variables: str) -> dict[str, Any]:
        """The status of the run stage, done in this process."""
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self._environment(variables).items():
                patch.setenv(name, value)
            for module in (processes, partners):
                patch.setattr(module, "subprocess", _SUBPROCESS)
            return self.stage_here("run", "raw")

    def night(self, *, set_up: bool = False, by_script: bool = False, **variables: str) -> records.NightData:
        """What a night's stages leave: analysed from kept raw data where they are of this code and this config.

        by_script: its run stage has to be a process of its own.
        """
        kept = Kept(self)
        if not kept.is_current():
            if set_up:
                self.set_up()
            run = self.stage("run", "raw", **variables) if by_script else self.run_here(**variables)
            data = self.analyzed(run)
            kept.keep()
            return data
        kept.take()
        return self.analyzed({"success": True})

    def measured(self, **variables: str) -> records.NightData:
        """What the run and analyze stages leave."""
        return self.analyzed(self.run_here(**variables))

    def analyzed(self, run: Mapping[str, Any]) -> records.NightData:
        """What the analyze stage leaves of a run with this status, read as the dashboard reads it."""
        assert run["success"], run["message"]
        status = self.stage_here("analyze", "raw", "analysis")
        assert status["success"], status["message"]
        path = self.root / "data" / f"data_{STAMP}.json"
        path.write_bytes((self.root / "analysis" / "data.json").read_bytes())
        return records.read_data(path, self.name)

    def _environment(self, own: Mapping[str, str]) -> dict[str, str]:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        return {"PATH": path, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **own}

    def told(self) -> str:
        """The summary's text; the graphs are drawn as well."""
        assert self.stage_here("visualize", "data", "graph")["success"]
        assert self.stage_here("summarize", "data", "summary")["success"]
        text: str = json.loads((self.root / "summary" / "summary.json").read_text())["value"]
        return text
