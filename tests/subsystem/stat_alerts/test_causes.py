"""Whose doing a shift is told to be, and on what evidence: TVM's generated code, its runtime, the machine, unknown."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.subsystem import scripts
from tests.subsystem.stat_alerts.alert_homes import stamp_of
from tvmdash.incidents import ledger as ledgers
from tvmdash.incidents.ledger import Incident, Ledger
from tvmdash.incidents.text import describe
from tvmdash.judge.history.cause import Reason, ReasonKind
from tvmdash.judge.history.series import Decision, Measured, SeriesState
from tvmdash.records import Build

SUBSYSTEM = scripts.load("stat_alerts")
NIGHTS_OF: Any = SUBSYSTEM.judge_pending.__globals__["one_night"].__globals__
TABLE: Any = SUBSYSTEM.read_table.__globals__
CAUSES: Any = NIGHTS_OF["judge"].__globals__["causes"]
NIGHTS, STEP, SIGMA = 58, 50, 0.006


@dataclass
class Home:
    """Run times of one machine, the last `controls` of them of the canary; each night has an artifact of its own.

    version: the one TVM of all nights, where each has not its own.
    """

    series: int
    controls: int = 0
    seed: int = 1
    code: np.ndarray[Any, Any] = field(default_factory=lambda: np.arange(1, NIGHTS + 1))
    artifacts: list[str | None] = field(default_factory=lambda: [f"build {night}" for night in range(NIGHTS)])
    pinned: int = 0
    version: str = ""
    level: np.ndarray[Any, Any] = field(init=False)

    def __post_init__(self) -> None:
        self.level = np.zeros((self.series + self.pinned + self.controls, NIGHTS))

    def machine(self, size: float, since: int = STEP) -> Home:
        self.level[:, since:] += np.log1p(size)
        return self

    def tvm(self, size: float, since: int = STEP) -> Home:
        self.level[: self.series, since:] += np.log1p(size)
        return self

    def table(self) -> Any:
        rng = np.random.default_rng(self.seed)
        values = np.exp(self.level + SIGMA * rng.standard_normal(self.level.shape))
        nothing = np.full_like(values, np.nan)
        owners = ["e"] * self.series + ["pinned"] * self.pinned + ["canary"] * self.controls
        rows = tuple(
            TABLE["TableRow"](f"s{at:02}", owner, "run_time", "ms", "lower", f"{owner} {at}", "times on m", {})
            for at, owner in enumerate(owners)
        )
        stamps = tuple(map(stamp_of, range(NIGHTS)))
        versions = {
            owner: {stamp: self.version or f"v{at}" for at, stamp in enumerate(stamps)} for owner in set(owners)
        }
        builds = {
            owner: {stamp: Build(name, "f") for stamp, name in zip(stamps, self.artifacts, strict=True)}
            for owner in ("e", "canary")
        }
        builds["pinned"] = dict.fromkeys(stamps, Build("release", "f"))
        unknown = np.full(values.shape, -1, np.int64)
        code = np.tile(self.code, (len(rows), 1))
        return TABLE["Table"](
            stamps, 0, rows, values, nothing, nothing, code, np.zeros_like(code), unknown, versions, builds
        )

    def incidents(self, first: int = 40) -> list[Incident]:
        """What is told of the nights from `first` on."""
        table, options = self.table(), NIGHTS_OF["Options"]()
        memory, ledger = NIGHTS_OF["Memory"](), Ledger()
        for night in range(first, NIGHTS):
            memory, _, events = NIGHTS_OF["one_night"](table, night, memory, ledger, options)
            ledger = ledgers.fold(events, ledger)
        return list(ledger.incidents.values())


SERIES = [1, 2, 4, 8, 40]
WITH_CONTROLS = [(1, 1), (1, 2), (1, 5), (2, 1), (2, 3), (4, 1), (4, 2), (4, 5), (8, 1), (8, 3), (40, 1), (40, 4)]


@pytest.mark.parametrize(("series", "controls"), WITH_CONTROLS)
def test_what_controls_did_as_well_is_the_machines_with_any_number_of_series(series: int, controls: int) -> None:
    incidents = Home(series, controls).machine(0.06).incidents()
    assert {one.blame for one in incidents} == {"machine"}
    assert not [one for one in incidents if one.is_open]
    assert all("not TVM" in describe(one) for one in incidents)
    assert not any("first with TVM" in describe(one) for one in incidents)


@pytest.mark.parametrize(("series", "controls"), WITH_CONTROLS)
def test_what_controls_did_not_do_is_tvms_with_any_number_of_series(series: int, controls: int) -> None:
    incidents = Home(series, controls).tvm(0.06).incidents()
    assert {(one.kind, one.blame, one.is_open) for one in incidents} == {("change", "compiler", True)}
    assert sum(len(one.moved) for one in incidents) == series
    causes = [one.cause for one in incidents if one.cause is not None]
    assert {(cause.whose, cause.evidence, cause.controls) for cause in causes} == {("code", "controls", controls)}


@pytest.mark.parametrize("series", SERIES)
def test_equal_generated_code_that_got_slower_beside_still_controls_is_tvms_runtime(series: int) -> None:
    incidents = Home(series, 5, code=np.ones(NIGHTS, np.int64)).tvm(0.08).incidents()
    assert {(one.kind, one.is_worse) for one in incidents} == {("change", True)}
    assert {one.cause and one.cause.whose for one in incidents} == {"runtime"}


@pytest.mark.parametrize("series", SERIES)
def test_without_any_control_the_cause_is_unknown_and_the_words_claim_no_measurement(series: int) -> None:
    for code in (np.ones(NIGHTS, np.int64), None):
        home = Home(series) if code is None else Home(series, code=code)
        incidents = home.tvm(0.08).incidents()
        assert {(one.blame, one.is_open) for one in incidents} == {("unknown", True)}
        for one in incidents:
            assert one.cause is not None
            assert (one.cause.evidence, one.cause.controls, one.cause.older) == ("nothing", 0, 0)
            assert bool(one.cause.same_code) == (code is not None)
            told = describe(one)
            assert "moved with" not in told
            assert "not TVM" not in told


@pytest.mark.parametrize("series", SERIES)
def test_what_the_same_artifact_shows_on_both_sides_is_not_tvms(series: int) -> None:
    home = Home(series, artifacts=["release"] * NIGHTS).machine(0.08)
    incidents = home.incidents()
    assert {(one.blame, one.is_open, one.cause and one.cause.evidence) for one in incidents} == {
        ("machine", False, "same_artifact")
    }


@pytest.mark.parametrize(("series", "change"), [(1, "tvm"), (8, "tvm"), (8, "machine")])
def test_another_build_of_the_same_commit_is_not_called_tvm_as_before(series: int, change: str) -> None:
    artifacts: list[str | None] = ["built with LLVM 18"] * STEP + ["built with LLVM 19"] * (NIGHTS - STEP)
    home = Home(series, artifacts=artifacts, version="v7")
    incidents = getattr(home, change)(0.08).incidents()
    assert incidents
    for one in incidents:
        assert "another build" in describe(one)
        assert "as before" not in describe(one)
        assert Incident.from_json(one.to_json(), Path("x"), "$").is_rebuilt


@pytest.mark.parametrize("artifact", ["release", None])
def test_the_same_build_is_called_tvm_as_before(artifact: str | None) -> None:
    (incident,) = Home(1, controls=2, artifacts=[artifact] * NIGHTS, version="v7").tvm(0.08).incidents()
    assert not incident.is_rebuilt
    assert "another build" not in describe(incident)


def test_the_same_version_serves_where_no_artifact_is_recorded_and_is_called_that() -> None:
    home = Home(1, artifacts=[None] * NIGHTS).machine(0.08)
    table = home.table()
    table.versions["e"].update(dict.fromkeys(table.stamps, "0.27.0"))
    cause = CAUSES.cause_of(table, 0, alert(STEP, 0.08), [], NIGHTS - 1)
    assert (cause.whose, cause.evidence) == ("machine", "same_version")


def test_an_artifact_that_changed_a_night_beside_the_cut_is_not_the_same_on_both_sides() -> None:
    for change in (STEP - 1, STEP + 1):
        home = Home(1, artifacts=["old"] * change + ["new"] * (NIGHTS - change)).tvm(0.08)
        cause = CAUSES.cause_of(home.table(), 0, alert(STEP, 0.08), [], NIGHTS - 1)
        assert cause.whose == "unknown"


def test_series_on_one_artifact_are_controls_of_those_that_are_not() -> None:
    (moved,) = Home(4, pinned=4).machine(0.06).incidents()
    assert (moved.blame, moved.is_open) == ("machine", False)
    still = Home(4, pinned=4).tvm(0.06).incidents()
    assert {one.cause and one.cause.evidence for one in still} == {"controls"}
    assert {one.blame for one in still} == {"compiler"}


@pytest.mark.parametrize(("moved", "controls", "whose"), [(1, 3, "unknown"), (1, 2, "unknown"), (1, 5, "code")])
def test_one_control_of_several_that_moved_does_not_make_it_the_machines(moved: int, controls: int, whose: str) -> None:
    home = Home(2, controls).tvm(0.06)
    home.level[2 : 2 + moved, STEP:] += np.log1p(0.06)
    changes = [one for one in home.incidents() if one.kind == "change"]
    assert {one.cause and one.cause.whose for one in changes} == {whose}


def test_a_control_that_moved_on_another_night_says_nothing_of_the_machine() -> None:
    home = Home(2, 1).tvm(0.06)
    home.level[2, STEP - 8 :] += np.log1p(0.06)
    changes = [one for one in home.incidents() if one.kind == "change"]
    assert {one.blame for one in changes} <= {"compiler", "unknown"}
    assert len(changes) == 1


@pytest.mark.parametrize(("series", "controls"), [(1, 1), (2, 2), (4, 5), (8, 3)])
def test_unchanged_series_are_never_told(series: int, controls: int) -> None:
    assert Home(series, controls).incidents() == []


def alert(cut: int, effect: float, *reruns: tuple[int, float]) -> Decision:
    """An alert of the last night, with what was measured again."""
    measured = tuple(Measured(night, value) for night, value in reruns)
    shifted, state = Reason(ReasonKind.SHIFTED), SeriesState()
    at = NIGHTS - 1
    return Decision(
        "alert", shifted, at, state, cut=cut, after=cut - 1, effect=effect, reruns=measured, is_reproduced=True
    )


AGAIN = [*((night, 1.08) for night in range(STEP, STEP + 4)), *((night, 1.0) for night in range(30, 34))]


@pytest.mark.parametrize(("code", "whose"), [(1, "runtime"), (0, "build"), (None, "code")])
def test_artifacts_that_differ_when_measured_in_turn_are_stronger_than_the_hash_and_the_controls(
    code: int | None, whose: str
) -> None:
    numbers = np.arange(1, NIGHTS + 1) if code is None else np.full(NIGHTS, code)
    home = Home(1, 5, code=numbers).machine(0.08)
    cause = CAUSES.cause_of(home.table(), 0, alert(STEP, 0.08, *AGAIN), [1, 2, 3, 4, 5], NIGHTS - 1)
    assert (cause.whose, cause.evidence) == (whose, "measured_again")
    assert (cause.old, cause.new) == (pytest.approx(1.0, abs=0.01), pytest.approx(1.08, abs=0.01))
    assert cause.old_artifacts == ("build 30", "build 31", "build 32", "build 33")


def test_one_artifact_measured_again_for_both_sides_is_still_the_same_artifact() -> None:
    home = Home(1, artifacts=["release"] * NIGHTS).machine(0.08)
    cause = CAUSES.cause_of(home.table(), 0, alert(STEP, 0.08, *AGAIN), [], NIGHTS - 1)
    assert (cause.whose, cause.evidence) == ("machine", "same_artifact")


def test_a_cut_one_night_late_does_not_hide_that_the_artifacts_differ() -> None:
    home = Home(1, artifacts=["old"] * (STEP - 1) + ["new"] * (NIGHTS - STEP + 1)).tvm(0.08)
    cause = CAUSES.cause_of(home.table(), 0, alert(STEP, 0.08, *AGAIN, (STEP - 1, 1.08)), [], NIGHTS - 1)
    assert (cause.whose, cause.evidence, cause.old_artifacts) == ("code", "measured_again", ("old",))
