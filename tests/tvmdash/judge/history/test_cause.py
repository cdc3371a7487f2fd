"""A cause as a value and in words: what controls weigh, and that only what was measured is said."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tvmdash.errors import DashboardError
from tvmdash.judge.history.cause import Cause, of_many, of_tvm
from tvmdash.judge.history.fleet.common import ControlShift, find_control_shift, weigh_controls
from tvmdash.judge.history.series import History

MEASURED = Cause(
    "runtime", "measured_again", same_code=1, old=1.0, new=1.08, old_artifacts=("a",), new_artifacts=("b",)
)


def still(count: int, error: float = 0.003) -> list[ControlShift]:
    return [ControlShift(0.001, error, 0.001)] * count


def moved(count: int, size: float = 0.06, error: float = 0.003) -> list[ControlShift]:
    return [ControlShift(size, error, size)] * count


@pytest.mark.parametrize(
    ("controls", "whose"),
    [
        (moved(1), "machine"),
        (moved(1, 0.3), "unknown"),
        (moved(1, -0.06), "build"),
        (moved(1, error=0.03), "unknown"),
        (still(1), "build"),
        (still(1, error=0.03), "unknown"),
        (moved(1) + still(1), "unknown"),
        (moved(1) + still(2), "unknown"),
        (moved(1) + still(3), "build"),
        (moved(2) + still(3), "machine"),
        (moved(2) + still(8), "unknown"),
        (moved(3) + still(7), "machine"),
        (moved(4, error=0.02), "machine"),
        (still(5), "build"),
        ([], "unknown"),
    ],
)
def test_controls_decide_by_how_many_moved_clearly(controls: list[ControlShift], whose: str) -> None:
    cause = weigh_controls(controls, 0.06)
    assert (cause.whose, cause.controls) == (whose, len(controls))
    assert weigh_controls([ControlShift(-c.size, c.error, -c.near) for c in controls], -0.06).whose == whose


def test_a_control_that_moved_nights_before_the_cut_did_not_move_with_it() -> None:
    values = np.exp(0.002 * np.random.default_rng(1).standard_normal(60))
    values[42:] *= 1.06
    shift = find_control_shift(History(values), 50)
    assert shift is not None
    assert shift.size == pytest.approx(0.058, abs=0.005)
    assert shift.near == pytest.approx(0.0, abs=0.01)
    assert weigh_controls([shift], 0.06).whose == "unknown"
    assert find_control_shift(History(values[:50]), 50) is None


def test_a_cause_is_read_as_it_was_written_and_anything_else_is_refused() -> None:
    assert Cause.from_json(json.loads(json.dumps(MEASURED.to_json()))) == MEASURED
    for wrong in ({"whose": "me"}, {"evidence": "a dream"}, {"old": "1.0"}, [], "machine"):
        with pytest.raises(DashboardError):
            Cause.from_json(wrong)


def test_the_generated_code_only_tells_which_part_of_tvm_it_is() -> None:
    assert [of_tvm(Cause("build", same_code=same, changed_code=changed)).whose for same, changed in
            ((1, 0), (0, 1), (0, 0), (1, 1))] == ["runtime", "code", "build", "build"]  # fmt: skip


def test_what_several_series_did_has_the_cause_with_the_strongest_evidence() -> None:
    controls = Cause("code", "controls", changed_code=1, controls=5)
    together = of_many([controls, MEASURED, Cause()])
    assert (together.whose, together.evidence, together.same_code, together.changed_code) == (
        "build", "measured_again", 1, 1,
    )  # fmt: skip
