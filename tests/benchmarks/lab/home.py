"""A world's home on disk: its nights are written as the dashboard writes them and judged by stat_alerts itself."""

from __future__ import annotations

import contextlib
import functools
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

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
        done = data.measure(world, night, world.build(night), range(len(world.rows)), rng, paired=True)
        self.measured.append(done)
        self.again_s.append(0.0)
        with store.open_for_writing(self.home.store_file) as index:
            for experiment, value in done.files.items():
                path = self.home.data_file(experiment, stamp_of(night))
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(value), encoding="utf-8")
                self._learn_rows(experiment, value)
                index.ingest(path.parent, experiment)

    def _learn_rows(self, experiment: str, value: dict[str, Any]) -> None:
        records.check_data(value)
        self.rows.update((key, row) for key, row, _ in self._values(experiment, value))

    def _values(self, experiment: str, value: dict[str, Any]) -> Iterator[tuple[str, int, float]]:
        """Each number of a data file: the ID of its series, its row, its value."""
        for point in records.night_of(value, experiment, value["night"]["stamp"], IDENTITY).values():
            place = point.key.labels.get("workload") or point.key.labels["path"]
            metric = RUN_TIME if point.key.metric == RUN_TIME_RATIO else point.key.metric
            yield point.key.id, self._places[experiment, metric, place], point.value

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
            verdict, _ = subsystem.concluding.conclude(
                self.home, tonight, done.table, done.judged, done.ledger, options
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
        """Leave in the file `answer` what the command would."""
        assert (verb, home) == ("remeasure", str(self.home.root)), "the laboratory answers no other verb"
        night = len(self.measured) - 1
        rounds = [self._round(night, number, asked) for number, asked in enumerate(common.read_json(Path(question)))]
        value = {"schema_version": 1, "night": stamp_of(night), "rounds": rounds}
        common.write_json(Path(answer), value, durable=False)
        return 0

    def _round(self, night: int, number: int, asked: dict[str, Any]) -> dict[str, Any]:
        """One run of an experiment with the artifact of a night; not begun where the time is over."""
        then, experiment = night_of(asked["stamp"]), asked["experiment"]
        build = self.world.build(then)
        answer = {
            "experiment": experiment, "stamp": asked["stamp"], "round": number, "state": "measured",
            "artifact": build.key, "values": {}, "seconds": 0.0, "error": "",
        }  # fmt: skip
        if not self.world.kept(then, night):
            return {**answer, "state": "gone", "error": "its artifact was removed"}
        self._asked[night] += 1
        rng = self.world.rng(4, night, self._asked[night])
        rows = self._rows_of(experiment, asked["points"])
        done = data.measure(self.world, night, build, rows, rng, paired=False)
        if self.again_s[night] + done.seconds > BUDGET_S:
            return {**answer, "state": "budget", "error": "the time is over"}
        self.again_s[night] += done.seconds
        values = {key: value for name, file in done.files.items() for key, _, value in self._values(name, file)}
        return {**answer, "values": values, "seconds": done.seconds}

    def _rows_of(self, experiment: str, points: list[dict[str, Any]]) -> list[int]:
        named = {point.get("workload") or point["path"] for point in points}
        rows = enumerate(self.world.rows)
        return [at for at, row in rows if row.experiment.name == experiment and (row.point in named or not named)]

    def events(self) -> list[Event]:
        """The ledger."""
        return list(incident_file.read(self.output / LEDGER_FILE))
