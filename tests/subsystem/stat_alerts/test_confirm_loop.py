"""The loop around the detector: the same decisions as with answers at once, in few runs that many series share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.subsystem import scripts
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.incidents.ledger import Ledger
from tvmdash.judge.history.series import Settings
from tvmdash.records import Build

SUBSYSTEM = scripts.load("stat_alerts")
CONFIRMING: Any = SUBSYSTEM.judge_pending.__globals__["confirming"]
ASKING: Any = CONFIRMING.Asking.__init__.__globals__
JUDGING: Any = SUBSYSTEM.judge_pending.__globals__["one_night"].__globals__
POINTS, NIGHTS, SIGMA = 12, 90, 0.006


class Lab:
    """One experiment whose builds, one a night, are known; the k-th run of a build of a series is always the same."""

    def __init__(self, root: Path, seed: int = 1, points: int = POINTS) -> None:
        self.home, self.output = Home(root / "home"), root / "output"
        self.output.mkdir(parents=True)
        self.rng = np.random.default_rng(seed)
        self.points = points
        self.level = np.zeros((points, NIGHTS))
        self.noise = SIGMA * self.rng.standard_normal((points, NIGHTS))
        self.again = SIGMA * self.rng.standard_normal((points, NIGHTS, 60))
        self.machine = 0.0
        self.calls: list[list[tuple[str, int]]] = []
        self.taken: Counter[tuple[int, int]] = Counter()
        self.broken: set[str] = set()
        self.stops_after: int | None = None
        self.stamps = tuple(f"2026{1 + night // 28:02}{1 + night % 28:02}T031500Z" for night in range(NIGHTS))
        self.artifacts: dict[str, str] = {}

    def table(self) -> Any:
        values = np.exp(self.level + self.noise)
        values[:, -1] *= np.exp(self.machine)
        nothing = np.full_like(values, np.nan)
        row = ASKING["Table"].history.__globals__["TableRow"]
        rows = [
            row(f"s{at:02}", "e", "run_time", "ms", "lower", f"s{at:02}", "times on m", {"workload": f"n.{at}"})
            for at in range(self.points)
        ]
        code = np.tile(np.arange(1, NIGHTS + 1), (self.points, 1))
        builds = {"e": {stamp: Build(self.artifacts.get(stamp, f"build-{stamp}"), "f") for stamp in self.stamps}}
        unknown = np.full_like(code, -1)
        return ASKING["Table"](
            self.stamps, 0, tuple(rows), values, nothing, nothing, code, np.zeros_like(code), unknown, {"e": {}}, builds
        )

    def value(self, point: int, night: int, turn: int) -> float:
        return float(np.exp(self.level[point, night] + self.machine + self.again[point, night, turn]))

    def at_once(self, series: str, night: int, count: int) -> list[float]:
        """The detector's question answered directly."""
        point, values = int(series[1:]), []
        for _ in range(count):
            values.append(self.value(point, night, self.taken[point, night]))
            self.taken[point, night] += 1
        return values

    def measure(self, home: Home, request: list[dict[str, Any]], budget_s: float) -> list[dict[str, Any]]:
        """What `dashboard remeasure` would answer."""
        self.calls.append([(one["stamp"], len(one["points"])) for one in request])
        answers = []
        for one in request:
            if self.stops_after is not None and sum(map(len, self.calls[:-1])) + len(answers) >= self.stops_after:
                answers.append({"state": "budget", "values": {}, "seconds": 0.0, "error": "over"})
                continue
            if one["stamp"] in self.broken:
                answers.append({"state": "failed", "values": {}, "seconds": 0.1, "error": "run: it crashed"})
                continue
            night, values = self.stamps.index(one["stamp"]), {}
            for named in one["points"]:
                point = int(named["workload"].partition(".")[2])
                values[f"s{point:02}"] = self.value(point, night, self.taken[point, night])
                self.taken[point, night] += 1
            answers.append({"state": "measured", "values": values, "seconds": 0.5, "error": ""})
        return answers

    def judge(self, again: Any) -> Any:
        memory, options = JUDGING["Memory"](), JUDGING["Options"](Settings())
        return JUDGING["judge"](self.table(), NIGHTS - 1, memory, Ledger(), options, again)

    def looped(self, **changes: Any) -> Any:
        self.taken.clear()
        evidence = CONFIRMING.Evidence(self.stamps[-1], budget_s=600.0)
        given = {"evidence": evidence, "may_measure": True, "measure": self.measure, **changes}
        confirming = CONFIRMING.Confirming(self.home, self.output, self.table(), NIGHTS - 1, **given)
        return confirming.judged(self.judge)

    def directly(self) -> dict[str, Any]:
        self.taken.clear()
        ask = self.at_once

        return decisions(self.judge(ask))


def decisions(judged: Any) -> dict[str, Any]:
    return {key: one for fleet in judged.fleets for key, one in fleet.decided.decisions.items()}


def stepped(lab: Lab) -> None:
    lab.level[3, -1] += np.log(1.06)
    lab.level[7, -2:] += np.log(1.05)
    lab.noise[5, -1] += 0.06


def with_modes(lab: Lab) -> None:
    lab.level[2] += np.where(lab.rng.random(NIGHTS) < 0.15, 0.05, 0.0)
    lab.level[2, -1] = 0.05


def slow_machine(lab: Lab) -> None:
    lab.machine = 0.05


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("happens", [stepped, with_modes, slow_machine])
def test_the_decisions_are_those_of_the_detector_with_answers_at_once(
    tmp_path: Path, happens: Callable[[Lab], None], seed: int
) -> None:
    lab = Lab(tmp_path, seed)
    happens(lab)
    direct = lab.directly()
    looped = lab.looped()
    assert decisions(looped) == direct
    if happens is stepped:
        assert {key for key, one in direct.items() if one.kind == "alert"} >= {"s03", "s07"}
    again = lab.looped(evidence=looped.confirmation.evidence, may_measure=False)
    assert decisions(again) == direct, "played again from what was kept"


def test_few_calls_and_shared_runs_serve_many_suspects(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.level[:4, -1] += np.log(1.08)
    judged = lab.looped()
    found = [key for key, one in decisions(judged).items() if one.kind == "alert"]
    assert len(found) >= 3
    values = sum(points for call in lab.calls for _, points in call)
    assert len(lab.calls) <= 8
    assert len(judged.confirmation.evidence.runs) < 0.7 * values, "runs of tonight's artifact serve all suspects"
    tonight = [points for call in lab.calls for stamp, points in call if stamp == lab.stamps[-1]]
    assert tonight[0] >= 4, "the first run of tonight's artifact is for every suspect"


def test_a_time_that_ends_in_the_middle_leaves_who_is_not_sure_to_history(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    stepped(lab)
    lab.stops_after = 3
    judged = lab.looped()
    assert judged.confirmation.evidence.ended == "budget"
    assert {one.kind for one in decisions(judged).values()} == {"quiet"}
    why = {one.name: one.why for one in judged.confirmation.outcomes if one.outcome == "unmeasured"}
    assert why["s03"] == "the time budget ran out"
    assert all(not one.reruns for key, one in decisions(judged).items() if key in why)
    again = lab.looped(evidence=judged.confirmation.evidence, may_measure=False)
    assert decisions(again) == decisions(judged)


def test_an_unfinished_night_is_gone_on_with_and_nothing_is_measured_twice(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    stepped(lab)
    whole = lab.looped()
    first, asked = lab.calls[0], sum(map(len, lab.calls))
    lab.calls.clear()
    half = CONFIRMING.Evidence(lab.stamps[-1], 600.0, whole.confirmation.evidence.runs[:4])
    CONFIRMING.remeasured.write(lab.output, half)
    opened = CONFIRMING.opened(lab.home, lab.output, lab.table(), NIGHTS - 1, tonight=True, budget_s=600.0, off="")
    assert opened.may_measure
    assert len(opened.evidence.runs) == 4
    (lab.output / "remeasured" / f"{lab.stamps[-1]}.json").unlink()
    lab.looped(evidence=half)
    assert lab.calls[0] != first
    assert sum(map(len, lab.calls)) <= asked


def test_an_old_artifact_that_crashes_is_replaced_by_another(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.level[3, -1] += np.log(1.06)
    lab.looped()
    lab.broken = {stamp for call in lab.calls for stamp, _ in call if stamp != lab.stamps[-1]}
    lab.broken = set(sorted(lab.broken)[:1])
    lab.calls.clear()
    judged = lab.looped()
    assert decisions(judged)["s03"].kind == "alert"
    tried = [stamp for call in lab.calls for stamp, _ in call]
    assert max(Counter(stamp for stamp in tried if stamp in lab.broken).values(), default=0) <= 2


def test_a_call_that_fails_is_told_and_costs_nothing_else(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    stepped(lab)

    def fails(*_: Any) -> list[dict[str, Any]]:
        raise DashboardError("dashboard remeasure exited with status 75")

    judged = lab.looped(measure=fails)
    assert {one.outcome for one in judged.confirmation.outcomes} == {"unmeasured"}
    words = "\n".join(CONFIRMING.outcomes.lines(judged.confirmation))
    assert "exited with status 75" in words


def test_a_night_of_the_past_is_not_measured_again(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    options = {"budget_s": 600.0, "off": ""}
    assert CONFIRMING.opened(lab.home, lab.output, lab.table(), NIGHTS - 1, tonight=False, **options) is None
    CONFIRMING.remeasured.write(lab.output, CONFIRMING.Evidence(lab.stamps[-1], ended="complete"))
    kept = CONFIRMING.opened(lab.home, lab.output, lab.table(), NIGHTS - 1, tonight=False, **options)
    assert kept.may_measure is False


def test_strong_suspects_go_first_when_many_are_weak(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    asking = CONFIRMING.Asking(lab.table(), CONFIRMING.Evidence("x"), 2, {"s01", "s02"})
    for series in ("s01", "s02", "s03"):
        for night in (89, 0, 89):
            asking(series, night, 1)
    assert asking.stalled == {"s01", "s02", "s03"}
    wanted = [(one.stamp, one.series) for one in asking.rounds()]
    assert wanted == [(lab.stamps[89], ("s01", "s02")), (lab.stamps[0], ("s01", "s02"))]


def test_a_shift_with_the_same_artifact_is_never_tvms(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.level[3, -8:] += np.log(1.08)
    lab.artifacts = dict.fromkeys(lab.stamps[-8:], "new")
    assert decisions(lab.judge(None))["s03"].kind == "alert"
    lab.artifacts = dict.fromkeys(lab.stamps, "same")
    told = decisions(lab.judge(None))["s03"]
    assert (told.kind, told.cause.whose, told.cause.evidence) == ("environment", "machine", "same_artifact")
