"""The detector as the project's shared evaluation (EVAL/run.py, kept outside this repository) calls it.

    cd tests/benchmarks/alerts
    PYTHONPATH=../../../shared/python python3 EVAL/run.py --detector adapter:make

`make` has re-runs, `make_without_reruns` has not.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "shared" / "python"))

from tvmdash.judge.history import change_points
from tvmdash.judge.history.fleet import fleet as change_fleet
from tvmdash.judge.history.series import History, SeriesState, Settings

FloatArray = np.ndarray[Any, Any]


def _online(settings: Settings, with_reruns: bool) -> Callable[..., tuple[bool, int | None]]:
    def online(
        values: FloatArray,
        std: FloatArray,
        n: FloatArray,
        state: dict[str, Any],
        rerun: Callable[[int, int], Sequence[float]],
    ) -> tuple[bool, int | None]:
        history = History(values, std, n)
        own = state.get("series") or SeriesState()
        decision = change_points.observe(history, own, settings=settings, rerun=rerun if with_reruns else None)
        state["series"] = decision.state
        return decision.kind == "alert", decision.cut

    return online


def _fleet(settings: Settings, with_reruns: bool) -> Callable[..., tuple[list[tuple[int, int]], bool]]:
    def fleet(
        values: FloatArray,
        std: FloatArray,
        n: FloatArray,
        state: dict[str, Any],
        rerun: Callable[[int, int, int], Sequence[float]],
        controls: Sequence[int],
    ) -> tuple[list[tuple[int, int]], bool]:
        histories = {str(at): History(values[at], std[at], n[at]) for at in range(len(values))}
        names = {str(control) for control in controls}
        own = state.get("fleet") or change_fleet.FleetState()
        measure = (lambda name, night, count: rerun(int(name), night, count)) if with_reruns else None
        decided = change_fleet.night(histories, own, controls=names, settings=settings, rerun=measure)
        state["fleet"] = decided.state
        alerts = [(int(k), d.cut) for k, d in decided.decisions.items() if d.kind == "alert" and d.cut is not None]
        return alerts, decided.machine is not None

    return fleet


def make() -> dict[str, Any]:
    """The default: suspects are measured again."""
    return {"name": "tvmdash", "online": _online(Settings(), True), "fleet": _fleet(Settings(), True)}


def make_without_reruns() -> dict[str, Any]:
    """History alone."""
    own = {"online": _online(Settings(), False), "fleet": _fleet(Settings(), False)}
    return {"name": "tvmdash without re-runs", **own}
