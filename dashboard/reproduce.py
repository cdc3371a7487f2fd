"""`reproduce`: measure a published number again, with all that pinned it, and say whether it holds."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from dashboard import repository
from dashboard.artifact_names import PYPI, Getting
from dashboard.artifacts.artifact import MANIFEST, Artifact, ArtifactSpec
from dashboard.artifacts.provide import Provided
from dashboard.bench import BUDGET, Bench, RoundError
from dashboard.plan import REPOSITORY, CodeFolders
from dashboard.receipt import Receipt
from dashboard.remeasure_place import Place, opened
from dashboard.reproduce_code import Code, find
from dashboard.series_wanted import WantedSeries, of_values
from tvmdash import common, machine, records
from tvmdash.comparison import Repeated, repeated
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError

FOLDER = "reproductions"
SCHEMA_VERSION = 1
ROUNDS = 5
_MACHINE = ("host", "hw_model")
_FACTS = ("cpu_microcode", "governor", "memory_bytes", "affinity", "system", "distribution", "libc", "python")
_log = logging.getLogger("reproduce")


@dataclass(frozen=True)
class Wanted:
    """What is to be reproduced. series: as people name it; empty: every one of the receipt."""

    receipt: Receipt
    series: str = ""
    rounds: int = ROUNDS
    budget_s: float = math.inf
    rebuild: bool = True


@dataclass(frozen=True)
class Line:
    """One series: its value then and now. found is None where it could not be measured often enough."""

    id: str
    name: str
    unit: str
    old: float
    new: tuple[float, ...]
    found: Repeated | None = None


@dataclass
class Reproduction:
    """What came of it. is_same_machine is None where the receipt does not say. differs: facts, then and now."""

    stamp: str
    source: str
    experiment: str
    night: str
    artifact: Mapping[str, Any]
    is_same_machine: bool | None
    is_same_code: bool
    code: str
    differs: list[tuple[str, str, str]] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    rounds: int = 0
    ended: str = ""
    elapsed_s: float = 0.0

    @property
    def holds(self) -> bool:
        """Whether every series was measured often enough and is inside the noise."""
        return bool(self.lines) and all(line.found is not None and line.found.holds for line in self.lines)

    def to_json(self) -> dict[str, Any]:
        """As the file holds it."""
        return {"schema_version": SCHEMA_VERSION, **asdict(self)}


def reproduce(home: Home, wanted: Wanted, *, code: CodeFolders) -> tuple[Reproduction, Path]:
    """Set up what the receipt pins, as far as it can be had, and measure; what came of it, and its file.

    DashboardError where the TVM cannot be had or the first round fails; HeldError where a night holds the home.
    """
    receipt, begun = wanted.receipt, time.monotonic()
    series = _series(receipt, wanted.series)
    with opened(home, code, seed=receipt.seed) as place:
        found = find(receipt, place.job(receipt.experiment), code, place.folder / "receipt")
        getting = Getting(place.plan.config, place.plan.config.tmp_data / "logs" / place.stamp, wanted.rebuild)
        with _provided(receipt, getting) as provided:
            artifact = provided.artifact
            bench = Bench(_apart(place), time.monotonic(), wanted.budget_s)
            bench.use(_with_library(found, artifact))
            done = _begin(place, receipt, found, artifact, provided.note)
            nights = _measure(bench, receipt, wanted, artifact, series, done)
    done.lines = _judged(series, receipt, nights)
    done.differs += _engine_facts(receipt, nights)
    done.elapsed_s = round(time.monotonic() - begun, 3)
    path = home.root / "results" / FOLDER / f"{done.stamp}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    common.write_json(path, done.to_json())
    return done, path


def _series(receipt: Receipt, text: str) -> list[WantedSeries]:
    every = of_values(receipt.values)
    chosen = [one for one in every if not text or text in (one.id, one.name, one.labels.get("path"))]
    chosen = chosen or [one for one in every if text in one.name or one.id.startswith(text)]
    if not chosen:
        raise DashboardError(f"{receipt.source}: holds no series {text!r}, only {len(every)} others.")
    return chosen


def _provided(receipt: Receipt, getting: Getting) -> Provided:
    """The very artifact where it is at hand, else the same commit or version, built anew."""
    artifact = receipt.artifact
    key, facts = str(artifact.get("key")), dict(artifact.get("facts") or {})
    if "/" not in key and (getting.config.artifacts / key / MANIFEST).is_file():
        return getting.named(key)
    if facts.get("remote"):
        options = json.loads(str(facts.get("options") or "{}"))
        return getting.of(ArtifactSpec.of(str(facts["remote"]), str(artifact["commit"]), options))
    return getting.of(ArtifactSpec(PYPI, str(artifact["version"])))


def _apart(place: Place) -> Place:
    """A place whose setups are kept apart, so that old code does not push out what tonight's setup left."""
    setup = place.plan.config.setup / ".reproduce"
    setup.mkdir(parents=True, exist_ok=True)
    engines = setup / ".engines"
    if not engines.is_symlink() and not engines.exists():
        engines.symlink_to(Path("..") / ".engines")
    (setup.parent / ".engines").mkdir(exist_ok=True)
    return replace(place, plan=replace(place.plan, config=replace(place.plan.config, setup=setup)))


def _with_library(found: Code, artifact: Artifact) -> Any:
    """The job; with an old library its stages see that one."""
    if found.shared is None:
        return found.job
    python_path = [found.shared / "python", *artifact.pythonpath]
    added = {"BENCHMARK_DEPS": str(found.shared), "PYTHONPATH": ":".join(map(str, python_path))}
    return replace(found.job, config={**found.job.config, "env": {**found.job.config.get("env", {}), **added}})


def _begin(place: Place, receipt: Receipt, found: Code, artifact: Artifact, note: str) -> Reproduction:
    then, now = receipt.environment.get("machine"), machine.facts()
    same: bool | None = None
    if isinstance(then, dict) and all(then.get(name) for name in _MACHINE):
        same = all(then.get(name) == now[name] for name in _MACHINE)
    done = Reproduction(
        place.stamp, receipt.source, receipt.experiment, receipt.stamp, artifact.identity(), same, found.is_same,
        found.words,
    )  # fmt: skip
    done.differs += _facts(receipt, artifact, found, dict(then) if isinstance(then, dict) else {}, now)
    if note:
        done.differs.append(("TVM", str(receipt.artifact.get("version")), note))
    return done


def _facts(
    receipt: Receipt, artifact: Artifact, found: Code, then: Mapping[str, Any], now: Mapping[str, Any]
) -> Iterator[tuple[str, str, str]]:
    """What is not as it was: of the build, of this repository, of the machine."""
    was = {**dict(receipt.artifact.get("facts") or {}), "key": receipt.artifact.get("key")}
    has = {**artifact.facts, "key": artifact.key}
    for name in sorted(was.keys() | has.keys()):
        if str(was.get(name)) != str(has.get(name)) and name != "build_s":
            yield f"TVM's {name}", str(was.get(name)), str(has.get(name))
    commit = str(receipt.repository.get("commit") or "unknown")
    current = str(repository.describe(REPOSITORY).get("commit") or "unknown")
    if found.shared is None and commit != current:
        yield "commit of this repository", commit[:12], current[:12]
    for name in (*_MACHINE, *_FACTS):
        if then and then.get(name) != now.get(name):
            yield name, _known(then.get(name)), _known(now.get(name))


def _known(value: object) -> str:
    return "unknown" if value is None else str(value)


def _measure(
    bench: Bench, receipt: Receipt, wanted: Wanted, artifact: Artifact, series: list[WantedSeries], done: Reproduction
) -> list[dict[str, Any]]:
    points = list({json.dumps(one.point, sort_keys=True): one.point for one in series}.values())
    nights: list[dict[str, Any]] = []
    for number in range(wanted.rounds):
        try:
            bench.check_budget(receipt.experiment)
            nights.append(bench.measure_night(receipt.experiment, artifact, points))
        except RoundError as error:
            if error.state != BUDGET and not nights:
                raise
            done.ended = str(error)
            break
        done.rounds = number + 1
        _log.info("%s: round %d", receipt.experiment, number + 1)
    return nights


def _judged(series: list[WantedSeries], receipt: Receipt, nights: list[dict[str, Any]]) -> list[Line]:
    old = {one.key.id: one.value for one in receipt.values}
    parsed = [list(records.values_of(night, receipt.experiment, receipt.stamp)) for night in nights]
    new = [tuple(value for one in parsed if (value := wanted.value_in(one)) is not None) for wanted in series]
    judged = repeated([old[one.id] for one in series], new)
    return [
        Line(one.id, one.name, one.unit, old[one.id], values, found)
        for one, values, found in zip(series, new, judged, strict=True)
    ]


def _engine_facts(receipt: Receipt, nights: list[dict[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """Versions of what runs beside TVM, as the data itself names them."""
    was = receipt.environment.get("engine")
    has = (nights[0].get("environment") or {}).get("engine") if nights else None
    if isinstance(was, dict) and isinstance(has, dict):
        for name in sorted(was.keys() | has.keys()):
            if was.get(name) != has.get(name):
                yield f"engine's {name}", str(was.get(name))[:200], str(has.get(name))[:200]
