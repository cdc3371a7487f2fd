"""Homes with many nights of data files whose truth is known, and stat_alerts run on them as a night runs it."""

from __future__ import annotations

import contextlib
import datetime
import functools
import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.subsystem import scripts
from tvmdash import common
from tvmdash.dashboard_info import Home, JobResult, Night
from tvmdash.incidents import annotations, command
from tvmdash.series import store
from tvmdash.verdict import NightVerdict, read_verdict

REPO = Path(__file__).resolve().parents[3]
SUBSYSTEM = REPO / "subsystem" / "stat_alerts"
FIRST = datetime.datetime(2026, 5, 1, 3, 15, tzinfo=datetime.UTC)
WORKLOADS = ("mlp", "dqn", "bert", "gru")
EXPERIMENT = "relax_opt"
COMMANDS = {"incidents": command.main, "annotate": annotations.main}
MLP = "relax_opt mlp run time (opt_level 3)"
BASE = {"run": 0.25, "compile": 330.0, "size": 35_794, "memory": 2_168}


def stamp_of(night: int) -> str:
    return common.stamp_of(FIRST + datetime.timedelta(days=night))


@dataclass
class Truth:
    """What happens in a home. Factors are by (workload, opt level, kind) and night; kinds as in BASE."""

    nights: int = 70
    sigma: float = 0.006
    seed: int = 1
    workloads: tuple[str, ...] = WORKLOADS
    factors: dict[tuple[str, int, str], np.ndarray[Any, Any]] = field(default_factory=dict)
    code_of: dict[tuple[str, int], np.ndarray[Any, Any]] = field(default_factory=dict)
    versions: list[str] = field(default_factory=list)
    machine: np.ndarray[Any, Any] = field(default_factory=lambda: np.ones(0))
    canaries: int = 0
    canary: str = "canary"
    artifacts: list[str] = field(default_factory=list)
    absent: set[tuple[str, int]] = field(default_factory=set)
    off: set[int] = field(default_factory=set)
    canaries_off: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.machine = np.ones(self.nights)
        self.versions = self.versions or [f"{0x1A2B3C00 + night:08x}d" for night in range(self.nights)]

    def step(self, workload: str, level: int, kind: str, night: int, factor: float, until: int | None = None) -> Truth:
        row = self.factors.setdefault((workload, level, kind), np.ones(self.nights))
        row[night:until] *= factor
        return self

    def record(self, workload: str, level: int, night: int, noise: np.ndarray[Any, Any]) -> dict[str, Any]:
        kinds = ("run", "compile", "size", "memory")
        factor = {kind: self.factors.get((workload, level, kind), np.ones(self.nights))[night] for kind in kinds}
        scale = 1 + WORKLOADS.index(workload) if workload in WORKLOADS else 1.5
        run = BASE["run"] * scale * factor["run"] * noise[0] * self.machine[night]
        codes = self.code_of.get((workload, level))
        code = f"{workload}{level}" + (self.versions[night] if codes is None else str(codes[night]))
        return {
            "timestamp": "2026-11-21T10:19:13+00:00",
            "schema_version": 1,
            "additional_info": {
                "docker_tag": None,
                "docker_hash": None,
                "execution_elapsed_ms_median": run,
                "execution_elapsed_ms_low": run * 0.999,
                "execution_elapsed_ms_high": run * 1.001,
                "samples": 10,
                "compile_time": BASE["compile"] * scale * factor["compile"] * noise[1] * self.machine[night],
                "code_size": round(BASE["size"] * scale * factor["size"]),
                "device_memory_usage": round(BASE["memory"] * scale * factor["memory"]),
                "module_hash": code,
            },
            "workload": f"network.{workload}",
            "workload_args": {"batch": 1},
            "engine": "tvm",
            "engine_version": "0.27.0",
            "engine_config": {},
            "target": '{"kind": "llvm"}',
            "build_config": {"opt_level": level},
            "env_name": "sample",
            "hw_model": "AMD EPYC x 2",
            "runtime_config": {"threads": 1},
            "execution_config": {"number": 89, "repeat": 10},
            "execution_elapsed_ms_mean": run,
            "execution_elapsed_ms_std": run * 0.002,
        }


@dataclass(frozen=True)
class Said:
    """What a command said."""

    returncode: int
    stdout: str
    stderr: str


@functools.cache
def _stat_alerts() -> ModuleType:
    return scripts.load("stat_alerts")


@dataclass(frozen=True)
class AlertHome:
    """A home below `root`. taken: by night, the artifacts that its record says it took."""

    root: Path
    taken: dict[int, tuple[Mapping[str, Any], ...]] = field(default_factory=dict)

    @property
    def home(self) -> Home:
        return Home(self.root / "home")

    @property
    def output(self) -> Path:
        return self.home.output("stat_alerts")

    def fill(self, truth: Truth, *, first: int = 0, stop: int | None = None) -> AlertHome:
        """Write the data files of the nights first..stop-1 and take them into the store."""
        rng = np.random.default_rng(truth.seed)
        pairs = [(workload, level) for workload in truth.workloads for level in (0, 3)]
        noise = np.exp(truth.sigma * rng.standard_normal((truth.nights, len(pairs) + truth.canaries, 2)))
        for night in range(first, truth.nights if stop is None else stop):
            if night in truth.off:
                continue
            here = [pair for pair in enumerate(pairs) if (pair[1][0], night) not in truth.absent]
            records = [truth.record(name, level, night, noise[night, at]) for at, (name, level) in here]
            self._data(EXPERIMENT, night, truth, records)
            if truth.canaries and night not in truth.canaries_off:
                names = [f"canary{at}" for at in range(truth.canaries)]
                rows = [truth.record(name, 0, night, noise[night, len(pairs) + at]) for at, name in enumerate(names)]
                for row in rows:
                    row["additional_info"].update(module_hash="fixed", compile_time=None)
                self._data(truth.canary, night, truth, rows)
        self.ingest()
        return self

    def _data(self, experiment: str, night: int, truth: Truth, records: list[dict[str, Any]]) -> None:
        version = truth.versions[night]
        value = {"schema_version": 1, "timestamp": stamp_of(night), "tvm_hash": version, "records": records}
        if truth.artifacts:
            value["night"] = {"artifact": {"key": truth.artifacts[night]}, "fingerprint": "f"}
        self.write_data(experiment, night, value)

    def write_data(self, experiment: str, night: int, value: Mapping[str, Any]) -> None:
        path = self.home.data_file(experiment, stamp_of(night))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value), encoding="utf-8")

    def ingest(self) -> None:
        self.home.store_file.parent.mkdir(parents=True, exist_ok=True)
        with store.open_for_writing(self.home.store_file) as opened:
            for folder in sorted(self.home.data("x").parent.iterdir()):
                opened.ingest(folder, folder.name)

    def verdict(self, night: int) -> NightVerdict:
        """What the last run said of that night."""
        found = read_verdict(self.home, stamp_of(night))
        assert found is not None
        return found

    def run(self, night: int, *, jobs: tuple[JobResult, ...] = (), **config: Any) -> dict[str, str]:
        """Run the subsystem in this process for a night, of which `jobs` are known; its report."""
        folder = self._begin(night, jobs, config)
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(SUBSYSTEM)
            patch.setenv("HOME", str(self.root))
            patch.setenv("TVMDASH_NIGHT", stamp_of(night))
            code = _stat_alerts().StatAlerts().main([str(folder), str(self.output), str(self.home.root)])
        return self._report(code)

    def run_script(self, night: int, *, jobs: tuple[JobResult, ...] = (), **config: Any) -> dict[str, str]:
        """Run the subsystem's own run.sh as the engine does; its report."""
        folder = self._begin(night, jobs, config)
        done = subprocess.run(
            [str(SUBSYSTEM / "run.sh"), str(folder), str(self.output), str(self.home.root)],
            cwd=SUBSYSTEM,
            env={**environment(self.root), "TVMDASH_NIGHT": stamp_of(night)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return self._report(done.returncode, done.stdout + done.stderr)

    def _begin(self, night: int, jobs: tuple[JobResult, ...], config: Mapping[str, Any]) -> Path:
        """Leave the record of a night that has come to its subsystems; the folder of the subsystem's config."""
        stamp = stamp_of(night)
        self.home.nights.mkdir(parents=True, exist_ok=True)
        common.write_json(
            self.home.night_file(stamp),
            Night(stamp, "running", jobs=jobs, artifacts=self.taken.get(night, ())).to_json(),
        )
        folder = self.home.config("subsystem", "stat_alerts")
        folder.mkdir(parents=True, exist_ok=True)
        common.write_json(folder / "config.json", {"active": True, **config})
        self.output.mkdir(parents=True, exist_ok=True)
        return folder

    def _report(self, code: int, output: str = "") -> dict[str, str]:
        status = json.loads((self.output / "status.json").read_text())
        assert code == 0, f"{status}\n{output}"
        report: dict[str, str] = json.loads((self.output / "report.json").read_text())
        return report

    def command(self, verb: str, *arguments: str) -> Said:
        """What a verb of the dashboard does with this home, in this process."""
        output, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            code = COMMANDS[verb]([str(self.home.root), *arguments])
        return Said(code, output.getvalue(), errors.getvalue())

    def page(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads((self.output / "page.json").read_text())
        return value

    def incidents(self) -> list[dict[str, Any]]:
        value: list[dict[str, Any]] = json.loads((self.output / "incidents.json").read_text())["incidents"]
        return value


def environment(root: Path) -> dict[str, str]:
    return {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(root),
        "PYTHONPATH": str(REPO / "shared" / "python"),
        "LANG": "C.UTF-8",
    }


__all__ = ["AlertHome", "Truth", "stamp_of"]
