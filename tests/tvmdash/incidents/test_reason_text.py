"""The reason of a decision: a kind with numbers in files, words for people."""

from __future__ import annotations

import json

import pytest

from tvmdash.errors import DashboardError
from tvmdash.incidents.reason_text import format_reason
from tvmdash.judge.history.cause import Cause, Reason, ReasonKind
from tvmdash.judge.history.series import Decision, SeriesState


def decided(reason: Reason, cause: Cause | None = None) -> str:
    return format_reason(Decision("quiet", reason, 1, SeriesState(), cause=cause))


@pytest.mark.parametrize("kind", ReasonKind)
def test_each_kind_has_words_and_is_read_back_from_a_file(kind: ReasonKind) -> None:
    reason = Reason(kind, 0.5, 3, 18)
    assert decided(reason)
    assert Reason.from_json(json.loads(json.dumps(reason.to_json()))) == reason


@pytest.mark.parametrize("damage", [{"kind": "nonsense"}, {"needed": "18"}])
def test_what_is_no_reason_is_refused(damage: dict[str, str]) -> None:
    with pytest.raises(DashboardError):
        Reason.from_json({**Reason(ReasonKind.OPEN).to_json(), **damage})
