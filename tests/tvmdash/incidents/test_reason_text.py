"""The reason of a decision: a kind with numbers in files, words for people."""

from __future__ import annotations

import json

import pytest

from tvmdash.detect.cause import MACHINE, RUNTIME, Cause
from tvmdash.detect.reason import Reason, ReasonKind
from tvmdash.detect.series import Decision, SeriesState
from tvmdash.errors import DashboardError
from tvmdash.incidents.reason_text import format_reason

IN_WORDS = {
    Reason(ReasonKind.NOT_POSITIVE, -3.0): "tonight's value -3 is not positive",
    Reason(ReasonKind.TOO_FEW_NIGHTS, nights=2, needed=18): "2 nights of history; 18 are needed",
    Reason(ReasonKind.NEW_LEVEL, nights=3): "the level began 3 nights ago; too few to compare",
    Reason(ReasonKind.WITHIN_NOISE, 1.26, 4, 5.7): "within its noise: z +1.3 of 5.7 over 4 nights",
    Reason(ReasonKind.TOO_SHORT, nights=2, needed=4): "only 2 nights yet; 4 are needed",
    Reason(ReasonKind.NOT_RELEVANT, 0.0035): "a shift of +0.35 % is not relevant",
}


def decided(reason: Reason, cause: Cause | None = None) -> str:
    return format_reason(Decision("quiet", reason, 1, SeriesState(), cause=cause))


@pytest.mark.parametrize(("reason", "words"), IN_WORDS.items())
def test_a_reason_is_told_with_its_numbers(reason: Reason, words: str) -> None:
    assert decided(reason) == words


@pytest.mark.parametrize("kind", ReasonKind)
def test_each_kind_has_words_and_is_read_back_from_a_file(kind: ReasonKind) -> None:
    reason = Reason(kind, 0.5, 3, 18)
    assert decided(reason)
    assert Reason.from_json(json.loads(json.dumps(reason.to_json()))) == reason


def test_a_shift_is_told_with_whose_it_is_once_that_is_decided() -> None:
    shifted = Reason(ReasonKind.SHIFTED)
    assert decided(shifted) == "the level shifted"
    assert decided(shifted, Cause(RUNTIME)) == "the level shifted; cause: TVM's runtime"
    assert decided(Reason(ReasonKind.CONTROL_MOVED), Cause(MACHINE)) == "a control moved, and its program never changes"


@pytest.mark.parametrize("damage", [{"kind": "nonsense"}, {"needed": "18"}])
def test_what_is_no_reason_is_refused(damage: dict[str, str]) -> None:
    with pytest.raises(DashboardError):
        Reason.from_json({**Reason(ReasonKind.OPEN).to_json(), **damage})
