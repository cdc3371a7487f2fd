"""A cause as a value and in words: what controls weigh, and that only what was measured is said."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tvmdash.detect.cause import Cause, of_many, of_tvm
from tvmdash.detect.fleet import controls as change_controls
from tvmdash.detect.fleet.controls import ControlShift
from tvmdash.detect.series import History
from tvmdash.errors import DashboardError
from tvmdash.incidents.cause_text import describe_cause, format_cause_in_short

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
    cause = change_controls.weigh(controls, 0.06)
    assert (cause.whose, cause.controls) == (whose, len(controls))
    assert change_controls.weigh([ControlShift(-c.size, c.error, -c.near) for c in controls], -0.06).whose == whose


def test_a_control_that_moved_nights_before_the_cut_did_not_move_with_it() -> None:
    values = np.exp(0.002 * np.random.default_rng(1).standard_normal(60))
    values[42:] *= 1.06
    shift = change_controls.find_shift(History(values), 50)
    assert shift is not None
    assert shift.size == pytest.approx(0.058, abs=0.005)
    assert shift.near == pytest.approx(0.0, abs=0.01)
    assert change_controls.weigh([shift], 0.06).whose == "unknown"
    assert change_controls.find_shift(History(values[:50]), 50) is None


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
    assert "the generated code of 1 of 2 series is the same" in describe_cause(together)


IN_WORDS = {
    MEASURED: "This is TVM's runtime (VM, thread pool, allocator or FFI); its generated code is the same: "
    "older and newer artifacts, measured in turn the same night, differ (1.00 against 1.08 of the level before).",
    Cause("code", "controls", changed_code=1, controls=5, controls_shift=0.001): "This is TVM, and its generated code "
    "changed: 5 controls did not move with it (together +0.10 %).",
    Cause("machine", "controls", controls=5, controls_moved=4, controls_shift=0.06): "This is the machine, not TVM: "
    "4 of 5 controls moved with it (+6.0 %).",
    Cause("machine", "controls", controls=5, controls_shift=0.01): "This is the machine, not TVM: "
    "5 controls together moved by +1.0 %.",
    Cause("machine", "same_artifact"): "This is the machine, not TVM: "
    "the same artifact was measured before and after it.",
    Cause("machine", "same_artifact", experiment_changed=True): "This is the machine or the experiment, not TVM: "
    "the same artifact was measured before and after it; the experiment's own code or config changed.",
    Cause("machine", "older_artifacts", older=6, older_shift=0.05): "This is the machine, not TVM: "
    "older artifacts of 6 series, remeasured that night, moved as well (+5.0 %).",
    Cause("build", "exact"): "This is TVM: it is an exact number, which the machine cannot change.",
    Cause("unknown", same_code=1): "Cause unknown, the generated code is unchanged: TVM's runtime or the machine, "
    "not distinguished: there is no control, and no older artifact was remeasured.",
    Cause("unknown", controls=3, controls_moved=1, controls_shift=0.01, new_artifacts=("b",)): "Cause unknown, TVM or "
    "the machine: 1 of 3 controls moved with it, and remeasuring did not tell them apart.",
}


@pytest.mark.parametrize(("cause", "words"), IN_WORDS.items())
def test_a_cause_in_words_says_what_was_measured_and_no_more(cause: Cause, words: str) -> None:
    assert describe_cause(cause) == words


def test_a_cause_in_short() -> None:
    short = [format_cause_in_short(Cause(whose)) for whose in ("runtime", "code", "build", "machine", "unknown")]
    assert short == [
        "cause: TVM's runtime",
        "cause: TVM's generated code",
        "cause: TVM",
        "cause: the machine, not TVM",
        "cause unknown",
    ]
    assert format_cause_in_short(Cause(same_code=1)) == "cause unknown, TVM's runtime or the machine"
