"""The body of a measuring process: prepare, check and time the points of its task, one after the other."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tvmdash import common, config_util
from tvmdash.analysis_util import OPERATORS
from tvmdash.config_util import Config
from tvmdash.errors import DashboardError
from tvmdash.experiment.config import MeasuringConfig
from tvmdash.experiment.info import Measurable, Point, Prepared
from tvmdash.experiment.on_devices import list_points
from tvmdash.experiment.paired.pairs import TONIGHT
from tvmdash.experiment.paired.turns import Turns, read_turns
from tvmdash.experiment.per_operator import is_asked, sum_up
from tvmdash.experiment.points import key, name_values
from tvmdash.machine import hardware
from tvmdash.machine.libraries import describe_libraries
from tvmdash.measure import content
from tvmdash.measure.capture import Capture, Sample
from tvmdash.measure.content import Code, FileHashes
from tvmdash.measure.phases import TIMING, phase
from tvmdash.measure.under_load import watching
from tvmdash.records import description
from tvmdash.records.metrics import OWN
from tvmdash.trial_util import Timing, time_workload

TASK_FILE = "task.json"
HASHES_FILE = "hashes.json"
"""Beside the folders of the processes: the hashes of files that the run has read so far."""
_MACHINE = ("hw_model", "cpu_microcode", "affinity", "system")
_PLACES = frozenset({"LD_LIBRARY_PATH"})
"""Variables that say where files lie, not what is in them."""
_log = logging.getLogger("experiment")


@dataclass(frozen=True)
class MeasuringJob:
    """One point of a task: how many samples at most, and whether it is to be profiled.

    one_core: it is timed on one core at a time, because it runs on one thread and its CPU time says how long it takes.
    """

    point: Mapping[str, Any]
    repeat: int
    profile: bool
    one_core: bool = False


@dataclass(frozen=True)
class MeasuringTask:
    """What one process does: its points in order, with this engine, in this environment.

    side, pair: where it measures in turn with another process, which of the two it is, and the number of the pair.
    alone: nothing else runs while it compiles, so that its compile times count.
    """

    engine: str
    environment: Mapping[str, str]
    jobs: tuple[MeasuringJob, ...]
    side: str | None = None
    pair: int | None = None
    alone: bool = True

    def write(self, folder: Path) -> None:
        """Leave it in `folder` for the process."""
        common.write_json(folder / TASK_FILE, asdict(self), durable=False)

    @classmethod
    def read(cls, folder: Path) -> MeasuringTask:
        """The task in `folder`."""
        value = common.read_json(folder / TASK_FILE)
        return cls(**{**value, "jobs": tuple(MeasuringJob(**job) for job in value["jobs"])})

    @property
    def paired(self) -> dict[str, Any]:
        """What the process says of itself where it is one of two."""
        return {} if self.side is None else {"side": self.side, "pair": self.pair}


@dataclass(frozen=True)
class _Contents:
    """Hashes of what points run; facts: of the machine and the config, which they run on and by."""

    facts: Mapping[str, Any]
    hashes: FileHashes

    @classmethod
    def of(cls, folder: Path, host: Mapping[str, Any], *configs: object) -> _Contents:
        variables = {name: value for name, value in host["environment"].items() if name not in _PLACES}
        machine = {name: host[name] for name in _MACHINE}
        return cls({**machine, "environment": variables, "configs": configs}, FileHashes(folder.parent / HASHES_FILE))

    def find(self, prepared: Prepared, job: MeasuringJob, ran: Iterable[Code]) -> dict[str, str]:
        """The fact about a point that was timed just now; nothing where it cannot be known."""
        if prepared.program is None:
            return {}
        try:
            program = prepared.program()
        # The point is measured already; another TVM may not be able to write what it compiled.
        except Exception:  # noqa: BLE001
            _log.warning("could not hash the code of %s, so it is measured in full", job.point, exc_info=True)
            return {}
        facts = {**self.facts, "point": key(job.point)}
        found = content.hash_content(program, ran, facts, self.hashes)
        self.hashes.save()
        return {} if found is None else {content.FACT: found}


@dataclass(frozen=True)
class _Sides:
    """How this process takes its turns; contents: of tonight's TVM, not of the reference."""

    turns: Turns
    contents: _Contents | None


def measure(experiment: Measurable[Config], config: Config, measuring: MeasuringConfig, folder: Path) -> str:
    """Do the task in `folder` and leave the raw database beside it; how much was done, in words."""
    task = MeasuringTask.read(folder)
    engine = next(engine for engine in experiment.engines if engine.name == task.engine)
    known = {key(name_values(experiment.axes, point)): point for point in list_points(experiment, config)}
    host = hardware.facts()  # before the engine starts: TVM binds the thread that calls it to one core
    try:
        identity = engine.say()
    except Exception as error:  # a rival's import raises anything; without it nothing here can be measured
        raise DashboardError(f"the engine {engine.name} failed to start: {type(error).__name__}: {error}") from error
    described = {"engine_config": dict(identity.config), "runtime_config": hardware.describe_system(host)}
    facts = {
        "machine": host,
        "env_name": hardware.env_name(),
        "engine": asdict(identity),
        description.FACT: described,
        **task.paired,
    }
    turns = read_turns()
    contents = _Contents.of(folder, host, config, measuring) if task.side == TONIGHT else None
    sides = _Sides(turns, contents) if turns else None
    with Capture(folder, facts) as capture:
        for number, job in enumerate(task.jobs, start=1):
            point = known.get(key(job.point))
            if point is None:  # where the target follows from a card, and that is gone by now
                raise DashboardError(
                    f"the point {job.point} no longer exists. Did its device change since the run started?"
                )
            _log.info("%s %s %s (%d of %d)", point.workload, point.engine, dict(point.values), number, len(task.jobs))
            _measure_trial(experiment, config, measuring, capture, (point, job, task), sides)
    return f"{len(task.jobs)} points"


def _measure_trial(
    experiment: Measurable[Config],
    config: Config,
    measuring: MeasuringConfig,
    capture: Capture,
    asked: tuple[Point, MeasuringJob, MeasuringTask],
    sides: _Sides | None,
) -> None:
    (point, job, task), turns, ran = asked, sides.turns if sides else None, dict[str, str]()
    number = turns.wait_to_prepare() if turns else 0
    trial = capture.begin(job.point)
    before = hardware.load()
    timing = replace(measuring.timing, repeat=job.repeat)
    try:
        with phase("prepare"):
            prepared = experiment.prepare(point, config, measuring.data_seed)
        with phase("check"):
            checked = dict(prepared.check()) if prepared.check else {}
        with phase(TIMING):
            if turns:
                taken = turns.take(prepared.timer, timing, number)
                samples, profile = taken.samples, taken.is_to_profile
            else:
                samples, profile = time_workload(prepared.timer, timing), job.profile
        with phase("hash"):
            if sides and sides.contents:
                ran = sides.contents.find(prepared, job, taken.ran)
        with phase("profile"):
            operators = prepared.profile() if prepared.profile and profile else ()
        found: dict[str, Any] = {}
        if prepared.after:
            with phase("after"), watching(is_wanted=profile):
                found.update(prepared.after())
    # Whatever an engine cannot do is a result about this point; the others go on.
    except Exception as error:  # noqa: BLE001
        _log.warning("%s %s failed", point.workload, dict(point.values), exc_info=True)
        text = f"{type(error).__name__}: {error}"[:2000]
        capture.end(trial, error=text)
        if turns:
            turns.end(text)
        return
    facts = {
        **prepared.info(),
        **checked,
        **found,
        **ran,
        **_declare(experiment, prepared),
        **({OPERATORS: sum_up(operators)} if operators and is_asked(config) else {}),
        description.FACT: {**prepared.describe(), "runtime_config": describe_libraries()},
        "conditions": _describe_conditions(prepared, task, timing, samples),
        "load_before": before,
        "load_after": hardware.load(),
        "execution_config": {**asdict(timing), "number": samples[0].number, "repeat": len(samples)},
    }
    if not task.alone:
        facts.pop("compile_time", None)
    passes = [(name, round(ms * 1e6)) for name, ms in prepared.passes_ms]
    capture.end(trial, samples=samples, facts=facts, passes=passes, operators=operators)
    if turns:
        turns.end()


def _declare(experiment: Measurable[Config], prepared: Prepared) -> dict[str, Any]:
    """What fields.json and then the point itself say of the experiment's own numbers."""
    of_point = {name: declared.to_json() for name, declared in prepared.metrics.items()}
    own = {**config_util.read_metrics(experiment.folder / config_util.FIELDS_FILE), **of_point}
    return {OWN: own} if own else {}


def _describe_conditions(
    prepared: Prepared, task: MeasuringTask, timing: Timing, samples: list[Sample]
) -> dict[str, Any]:
    """What two engines must have in common for their times to be compared."""
    return {
        "layout": prepared.layout,
        "transfer_timed": prepared.transfer_timed,
        "warmup_calls": timing.warmup * samples[0].number,
        "affinity": sorted(os.sched_getaffinity(0)),
        "environment": dict(task.environment),
    }
