"""Spans of a process, kept from `record` to `taken`."""

from __future__ import annotations

from tvmdash.measure import phases


def test_phases_so_far_are_told_and_stay_kept() -> None:
    phases.record()
    with phases.phase("outer"), phases.phase("inner"):
        pass
    assert [one.name for one in phases.list_so_far()] == ["inner", "outer"]
    assert [one.name for one in phases.take()] == ["inner", "outer"]


def test_without_a_recorder_no_phase_is_told() -> None:
    phases.take()
    with phases.phase("alone"):
        pass
    assert phases.list_so_far() == []
