"""The body of a measuring process: prepare, check and time the points of its task, one after the other."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tvmdash import common, config_util
from tvmdash.analysis_util import OPERATORS
from tvmdash.config_util import Config
from tvmdash.errors import DashboardError
from tvmdash.experiment.config import MeasuringConfig
from tvmdash.experiment.engines import Engine, EngineFacts
from tvmdash.experiment.info import Measurable, Point, Prepared
from tvmdash.experiment.on_devices import list_points
from tvmdash.experiment.paired.pairs import CODE_LAYOUT, TONIGHT
from tvmdash.experiment.paired.turns import Turns, read_turns
from tvmdash.experiment.per_operator import is_asked, sum_up
from tvmdash.experiment.points import MeasuringJob, key, name_values
from tvmdash.machine import hardware
from tvmdash.machine.libraries import describe_libraries
from tvmdash.measure import content, phases
from tvmdash.measure.capture import Capture, Region, Sample
from tvmdash.measure.capture_format import KNOWN_OPERATORS
from tvmdash.measure.content import Code, FileHashes
from tvmdash.measure.phases import TIMING, phase
from tvmdash.measure.prebuilt import Prebuilt
from tvmdash.measure.under_load import watching
from tvmdash.records import description
from tvmdash.records.metrics import COMPILE_CPU_TIME, COMPILE_TIME, OWN
from tvmdash.trial_util import Timing, time_workload

TASK_FILE = "task.json"
HASHES_FILE = "hashes.json"
"""File beside the folders of the processes: hashes of files that the run has read so far."""
_MACHINE = ("hw_model", "cpu_microcode", "affinity", "system")
_PLACES = frozenset({"LD_LIBRARY_PATH"})
"""Variables that hold places of files, not their content."""
_OF_COMPILING = frozenset({COMPILE_TIME, COMPILE_CPU_TIME})
_log = logging.getLogger("experiment")


@dataclass(frozen=True)
class MeasuringTask:
    """The task of one process: its points in order, with this engine, in this environment.

    side, pair: where it measures in turn with another process, which of the two it is, and the number of the pair.
    compiles: it measures nothing; it leaves what the processes after it load.
    """

    engine: str
    environment: Mapping[str, str]
    jobs: tuple[MeasuringJob, ...]
    side: str | None = None
    pair: int | None = None
    compiles: bool = False

    def write(self, folder: Path) -> None:
        common.write_json(folder / TASK_FILE, asdict(self), durable=False)

    @classmethod
    def read(cls, folder: Path) -> MeasuringTask:
        value = common.read_json(folder / TASK_FILE)
        return cls(**{**value, "jobs": tuple(MeasuringJob(**job) for job in value["jobs"])})

    @property
    def paired(self) -> dict[str, Any]:
        """Return the process's facts about its place in a pair; empty where it measures alone."""
        return {} if self.side is None else {"side": self.side, "pair": self.pair}

    def find_prebuilt(self, folder: Path, job: MeasuringJob) -> Prebuilt | None:
        """Return the place of the job's compiled code, or None; `folder` is that of this process."""
        if not (job.built or self.compiles):
            return None
        return Prebuilt.of(folder.parent, self.side or TONIGHT, key(job.point), builds=self.compiles)


@dataclass(frozen=True)
class _Contents:
    """Hashes of the programs of points; facts: of the machine and the config."""

    facts: Mapping[str, Any]
    hashes: FileHashes

    @classmethod
    def of(cls, folder: Path, host: Mapping[str, Any], *configs: object) -> _Contents:
        variables = {name: value for name, value in host["environment"].items() if name not in _PLACES}
        machine = {name: host[name] for name in _MACHINE}
        return cls({**machine, "environment": variables, "configs": configs}, FileHashes(folder.parent / HASHES_FILE))

    def find(self, prepared: Prepared, job: MeasuringJob, ran: Iterable[Code]) -> dict[str, str]:
        """Return the fact about a point that was timed just now; empty where it cannot be known."""
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
    """The turns of this process; contents: of tonight's TVM, not of the reference."""

    turns: Turns
    contents: _Contents | None


def measure(experiment: Measurable[Config], config: Config, measuring: MeasuringConfig, folder: Path) -> str:
    """Do the task in `folder`, leave the raw database beside it, and return the status."""
    task = MeasuringTask.read(folder)
    engine = next(engine for engine in experiment.engines if engine.name == task.engine)
    host = hardware.facts()  # before the engine starts: TVM binds the thread that calls it to one core
    kept = [task.find_prebuilt(folder, job) for job in task.jobs]
    engine_facts = _ask_engine(engine, kept)
    points, turns = _points_of(experiment, config, task), read_turns()
    if task.compiles:
        assert turns
        for (_, point), place in zip(points, kept, strict=True):
            assert place
            turns.wait_to_prepare()
            turns.end(_compile(experiment, config, measuring, point, place, engine_facts))
        return f"{len(task.jobs)} points compiled"
    identity = EngineFacts(**engine_facts["identity"])
    described = {"engine_config": dict(identity.config), "runtime_config": hardware.describe_system(host)}
    facts = {
        "machine": host,
        "env_name": hardware.env_name(),
        "engine": asdict(identity),
        description.FACT: described,
        **task.paired,
    }
    contents = _Contents.of(folder, host, config, measuring) if task.side == TONIGHT else None
    sides = _Sides(turns, contents) if turns else None
    with Capture(folder, facts) as capture:
        for number, (job, point) in enumerate(points):
            _log.info("%s %s %s (%d of %d)", point.workload, point.engine, dict(point.values), number + 1, len(points))
            _measure_trial(experiment, config, measuring, capture, (point, job, task, kept[number]), sides)
    return f"{len(task.jobs)} points"


def _points_of(experiment: Measurable[Config], config: Config, task: MeasuringTask) -> list[tuple[MeasuringJob, Point]]:
    """Return the jobs with their points, in the task's order."""
    known = {key(name_values(experiment.axes, point)): point for point in list_points(experiment, config)}
    lost = next((job.point for job in task.jobs if key(job.point) not in known), None)
    if lost is not None:  # one that the experiment lists by what is here by now
        raise DashboardError(f"the point {lost} no longer exists. Did its device change since the run started?")
    return [(job, known[key(job.point)]) for job in task.jobs]


def _ask_engine(engine: Engine, kept: Sequence[Prebuilt | None]) -> dict[str, Any]:
    """Return the engine's facts and libraries, from the compiling process where nothing is compiled here."""
    if kept and all(place and not place.builds for place in kept) and kept[0]:
        return kept[0].read_facts()
    try:
        return {"identity": asdict(engine.say()), "libraries": describe_libraries()}
    except Exception as error:  # a rival's import raises anything; without it nothing here can be measured
        raise DashboardError(f"the engine {engine.name} failed to start: {type(error).__name__}: {error}") from error


def _compile(
    experiment: Measurable[Config],
    config: Config,
    measuring: MeasuringConfig,
    point: Point,
    place: Prebuilt,
    engine_facts: Mapping[str, Any],
) -> str | None:
    """Prepare the point and keep the compiled code; return why that failed, or None."""
    phases.record()
    try:
        with place:
            experiment.prepare(point, config, measuring.data_seed)
    # Whatever a compiler or a linker cannot do: the point is compiled where it is measured, and fails there.
    except Exception as error:  # noqa: BLE001
        _log.warning("%s %s was not compiled ahead", point.workload, dict(point.values), exc_info=True)
        return f"{type(error).__name__}: {error}"[:500]
    facts = {"libraries": describe_libraries(), "phases": phases.take(), CODE_LAYOUT: place.layout}
    place.write_facts({**engine_facts, **facts})
    return None if place.asked else "its `prepare` gives compile_module no function"


def _measure_trial(
    experiment: Measurable[Config],
    config: Config,
    measuring: MeasuringConfig,
    capture: Capture,
    asked: tuple[Point, MeasuringJob, MeasuringTask, Prebuilt | None],
    sides: _Sides | None,
) -> None:
    (point, job, task, kept), turns, ran = asked, sides.turns if sides else None, dict[str, str]()
    number = turns.wait_to_prepare() if turns else 0
    trial = capture.begin(job.point)
    before = hardware.load()
    timing = replace(measuring.timing, repeat=job.repeat)
    try:
        built = kept.read_facts() if kept else {}
        with phase("prepare"), kept or contextlib.nullcontext():
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
            operators = prepared.profile() if prepared.profile else ()
        found: dict[str, Any] = {}
        # after the clock, which it might disturb
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
    libraries = {**built.get("libraries", {}), **describe_libraries()}
    facts = {
        **prepared.info(),
        **checked,
        **found,
        **ran,
        **_declare(experiment, prepared),
        **({OPERATORS: sum_up(operators)} if operators and is_asked(config) else {}),
        **({KNOWN_OPERATORS: prepared.operators} if operators and prepared.operators else {}),
        description.FACT: {**prepared.describe(), "runtime_config": libraries},
        "conditions": _describe_conditions(prepared, task, timing, samples)
        | ({CODE_LAYOUT: layout} if (layout := built.get(CODE_LAYOUT)) else {}),
        "load_before": before,
        "load_after": hardware.load(),
        "execution_config": {**asdict(timing), "number": samples[0].number, "repeat": len(samples)},
    }
    # beside other work a compile time says little of the compiler
    facts = {name: value for name, value in facts.items() if job.alone or name not in _OF_COMPILING}
    passes, regions = [(name, round(ms * 1e6)) for name, ms in prepared.passes_ms], []
    if kept and job.alone:
        regions = [Region(name, "phase", start_ns, duration_ns) for name, start_ns, duration_ns in built["phases"]]
    elif kept:
        passes = []  # the compilation is an earlier trial's
    capture.end(trial, samples=samples, facts=facts, passes=passes, operators=operators, regions=regions)
    if turns:
        turns.end()


def _declare(experiment: Measurable[Config], prepared: Prepared) -> dict[str, Any]:
    """Return the declarations of the experiment's own numbers, by fields.json and then by the point itself."""
    of_point = {name: declared.to_json() for name, declared in prepared.metrics.items()}
    own = {**config_util.read_metrics(experiment.folder / config_util.FIELDS_FILE), **of_point}
    return {OWN: own} if own else {}


def _describe_conditions(
    prepared: Prepared, task: MeasuringTask, timing: Timing, samples: list[Sample]
) -> dict[str, Any]:
    """Return the conditions that two engines must share for their times to be comparable."""
    return {
        "layout": prepared.layout,
        "transfer_timed": prepared.transfer_timed,
        "warmup_calls": timing.warmup * samples[0].number,
        "affinity": sorted(os.sched_getaffinity(0)),
        "environment": dict(task.environment),
    }
