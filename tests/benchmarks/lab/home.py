"""A world's home on disk: its nights are written as the dashboard writes them and judged by stat_alerts itself."""

from __future__ import annotations

import contextlib
import functools
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast
from unittest import mock

from dashboard.artifacts.artifact import Artifact
from dashboard.night.tvms import count_measured
from dashboard.trials import remeasure as files
from dashboard.trials.rounds import MeasuredRun, Round, RoundOutcome, RoundState, TvmOfNight
from tests.benchmarks.lab import data
from tests.benchmarks.lab.data import IDENTITY, Measured, night_of, stamp_of
from tests.benchmarks.lab.world import World
from tests.subsystem import scripts
from tvmdash import common, records
from tvmdash.dashboard_info import FAILED, OK, Home, JobResult, Night, StepResult
from tvmdash.incidents import file as incident_file
from tvmdash.incidents.ledger import LEDGER_FILE, Event
from tvmdash.machine import identity
from tvmdash.measure import within_night
from tvmdash.records.metrics import RUN_TIME, RUN_TIME_RATIO
from tvmdash.series import store
from tvmdash.verdict import Level

BUDGET_S = 600.0
"""For measuring suspects again, as the config has it where it says nothing."""


@functools.cache
def stat_alerts() -> ModuleType:
    """The subsystem."""
    return scripts.load("stat_alerts")


@dataclass
class LabHome:
    """The home of `world` below `root`.

    rows: by the ID of each series, the row of the world that it tells of: a time, or its ratio to the reference.
    """

    root: Path
    world: World
    rows: dict[str, int] = field(default_factory=dict)
    verdicts: list[dict[str, Any]] = field(default_factory=list)
    crashes: list[str] = field(default_factory=list)
    measured: list[Measured] = field(default_factory=list)
    again_s: list[float] = field(default_factory=list)
    _asked: Counter[int] = field(default_factory=Counter)
    _labels: dict[int, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.home = Home(self.root / "home")
        self.output = self.home.output("stat_alerts")
        for folder in (self.output, self.home.nights, self.home.machine_file.parent):
            folder.mkdir(parents=True, exist_ok=True)
        identity.write(self.home.machine_file, IDENTITY)
        self._places = {(row.experiment.name, row.metric, row.point): at for at, row in enumerate(self.world.rows)}

    def play(self) -> None:
        """All nights, one after the other."""
        with self.measuring_again():
            for night in range(self.world.nights):
                self.measure(night)
                try:
                    self.judge(night)
                except Exception as error:  # noqa: BLE001 - a night that cannot be judged is a result as well
                    self.crashes.append(f"night {night}: {error!r}")
                    self.verdicts.append({"night": stamp_of(night), "level": Level.NO_DATA})

    def measure(self, night: int) -> None:
        """What the run stages of a night leave."""
        world, rng = self.world, self.world.rng(3, night)
        build, beside = world.build(night), world.reference(night)
        before = self._count_measured(beside.key) if beside else {}
        done = data.measure(world, night, build, range(len(world.rows)), rng, beside=beside, before=before)
        self.measured.append(done)
        self.again_s.append(0.0)
        with store.open_for_writing(self.home.store_file) as index:
            for experiment, value in done.files.items():
                path = self.home.data_file(experiment, stamp_of(night))
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(value), encoding="utf-8")
                self._learn_rows(experiment, value)
                index.ingest(path.parent, experiment)

    def _count_measured(self, reference: str) -> dict[str, dict[str, int]]:
        """What the dashboard tells the runs of a night with that reference, by experiment."""
        artifact = cast("Artifact", SimpleNamespace(key=reference))
        return {item.name: count_measured(self.home, item.name, artifact) for item in self.world.experiments}

    def _learn_rows(self, experiment: str, value: dict[str, Any]) -> None:
        records.check_data(value)
        for point in self._run(experiment, value).values:
            labels = point.key.labels
            metric = RUN_TIME if point.key.metric == RUN_TIME_RATIO else point.key.metric
            row = self._places[experiment, metric, labels.get("workload") or labels["path"]]
            self.rows[point.key.id], self._labels[row] = row, labels

    def judge(self, night: int) -> None:
        """What stat_alerts makes of the night: as its `work` does, without what is only for readers."""
        subsystem, stamp = stat_alerts(), stamp_of(night)
        tonight = Night(stamp, "running", jobs=tuple(self._jobs(night)))
        common.write_json(self.home.night_file(stamp), tonight.to_json(), durable=False)
        options = subsystem.Options(subsystem.Settings(), confirm_s=BUDGET_S, confirm_off="")
        done = subsystem.judge_pending(self.home, self.output, stamp, options)
        if done.judged is None or done.table.stamps[-1] != stamp:
            verdict = subsystem.concluding.nothing_measured(tonight)
        else:
            seen = subsystem.sensitivity.measured(self.output, done.table, done.judged)
            verdict, _ = subsystem.concluding.conclude(
                self.home, tonight, done.table, done.judged, done.ledger, options, seen
            )
        subsystem.write_verdict(self.home, verdict)
        self.verdicts.append(common.read_json(self.output / "verdict.json"))

    def _jobs(self, night: int) -> Iterator[JobResult]:
        stamp = stamp_of(night)
        for experiment in self.world.experiments:
            failed = experiment.name in self.world.failing.get(night, ())
            if failed or experiment.name in self.measured[night].files:
                step = StepResult("run", FAILED if failed else OK, "", stamp)
                yield JobResult("experiment", experiment.name, "", "", (step,))

    @contextlib.contextmanager
    def measuring_again(self) -> Iterator[None]:
        """`dashboard remeasure` is answered by the world, and no program is started."""
        with mock.patch.object(within_night, "call", self.remeasure):
            yield

    def remeasure(self, verb: str, home: str, question: str, answer: str, *budget: str, timeout_s: float) -> int:
        """Read the file `question` and leave the file `answer`, both as the command itself does."""
        assert (verb, home) == ("remeasure", str(self.home.root)), "the laboratory answers no other verb"
        night = len(self.measured) - 1
        outcomes = [self._outcome(night, asked) for asked in files.read_rounds(Path(question))]
        files.write_outcomes(Path(answer), stamp_of(night), outcomes)
        return 0

    def _outcome(self, night: int, asked: Round) -> RoundOutcome:
        """One run of an experiment; not begun where its artifacts are gone or the time is over."""
        nights = [night_of(tvm.stamp) for tvm in (*asked.tvms, asked.beside) if isinstance(tvm, TvmOfNight)]
        builds = [self.world.build(then) for then in nights]
        if not all(self.world.kept(then, night) for then in nights):
            return RoundOutcome(asked, RoundState.GONE, error="its artifact was removed", artifact=builds[0].key)
        self._asked[night] += 1
        rng = self.world.rng(4, night, self._asked[night])
        beside = builds[1] if len(builds) > 1 else None
        rows = [at for at, row in enumerate(self.world.rows) if row.experiment.name == asked.experiment]
        rows = [at for at in rows if at in self._labels and asked.asks_for(self._labels[at])]
        done = data.measure(self.world, night, builds[0], rows, rng, beside=beside)
        if self.again_s[night] + done.seconds > BUDGET_S:
            return RoundOutcome(asked, RoundState.BUDGET, error="the time is over", artifact=builds[0].key)
        self.again_s[night] += done.seconds
        runs = [self._run(name, value) for name, value in done.files.items()]
        return RoundOutcome(
            asked, RoundState.MEASURED, tuple(runs), artifact=builds[0].key, elapsed_s=done.seconds
        )  # fmt: skip

    def _run(self, experiment: str, value: dict[str, Any]) -> MeasuredRun:
        """What was left by a run whose artifact is none of the dashboard's."""
        points = tuple(records.night_of(value, experiment, value["night"]["stamp"], IDENTITY).values())
        return MeasuredRun(cast("Artifact", None), value, points)

    def events(self) -> list[Event]:
        """The ledger."""
        return list(incident_file.read(self.output / LEDGER_FILE))
