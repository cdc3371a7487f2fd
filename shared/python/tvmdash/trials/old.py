"""Files of older dashboards in place of trials: results/comparisons, bisections, reproductions and backfills."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tvmdash import common
from tvmdash.common import structured
from tvmdash.errors import DashboardError
from tvmdash.records.metrics import MAY_BE_EXACT
from tvmdash.trials.trial import Trial

_OF_SERIES = ("id", "experiment", "metric", "labels", "direction", "title", "name", "unit")
_Fields = Mapping[str, Any]


def read(value: common.Json, path: Path) -> Trial:
    """The trial that the file is by now; DashboardError where it is damaged."""
    folder = find_folder(value, path)
    assert folder is not None
    kind, translate = _READERS[folder]
    try:
        assert isinstance(value, dict)
        made = {"stamp": path.stem, "state": "done", "until": 0.0, "machine": "", "experiments": {}, "kind": kind}
        made |= {"measured_s": value.get("elapsed_s") or 0.0, **translate(value)}
    except (AssertionError, AttributeError, KeyError, TypeError, ValueError) as error:
        text = f"{path}: it is not what a {kind} left. Restore it from the backup, or delete it."
        raise DashboardError(text) from error
    return structured.from_json(Trial, made, path)


def find_folder(value: common.Json, path: Path) -> str | None:
    """Find where a dashboard before left such a file, which may lie elsewhere by now; None of a trial of today."""
    if path.parent.name in _READERS:
        return path.parent.name
    return next((folder for key, folder in _KEYS.items() if isinstance(value, dict) and key in value), None)


def _take(fields: _Fields, *names: str) -> dict[str, Any]:
    return {name: fields[name] for name in names if name in fields}


def _make_change(found: _Fields, pairs: int) -> dict[str, Any] | None:
    if found.get("low") is None or found.get("high") is None:
        return None
    known = _take(found, "effect", "low", "high")
    return {**known, "within": found["high"] - found["effect"], "visible": 0.0, "pairs": pairs, "real": False}


def _make_tvm(asked: str, artifact: _Fields) -> dict[str, Any]:
    key, version = (str(artifact.get(name) or "") for name in ("key", "version"))
    return {"asked": asked, "key": key, "version": version, "commit": artifact.get("commit")}


def _translate_comparison(old: _Fields) -> _Fields:
    base, candidate = (_make_tvm(old[side]["asked"], old[side]["artifact"]) for side in ("a", "b"))
    series, numbers = [], []
    for each in old.get("series", ()):
        rounds, found = each.get("rounds") or (), each.get("difference") or {}
        if each.get("kind", "time") not in MAY_BE_EXACT:
            change = _make_change(found, found.get("rounds", 0))
            series.append({**_take(each, *_OF_SERIES), "rounds": rounds, "change": change})
        elif rounds:
            values = {
                "base": rounds[0][0],
                "candidate": rounds[0][1],
                "varies": any(both != rounds[0] for both in rounds),
            }
            numbers.append({**_take(each, *_OF_SERIES, "kind"), **values})
    return {"base": base, "candidate": candidate, "series": series, "numbers": numbers}


def _translate_bisection(old: _Fields) -> _Fields:
    is_over = old["state"] == "budget"
    part = _take(old, "good", "bad", "candidates", "suspects", "probability", "builds", "measurements", "error")
    part |= {**_take(old, "noise", "least"), "answer": "open" if is_over else old["state"]}
    part["steps"] = {name: {"failed": why} for name, why in old.get("failed", {}).items()}
    ends = (old.get(end, {}).get("id", "") for end in ("good", "bad"))
    base, candidate = ({"asked": name, "key": name, "version": name} for name in ends)
    series = {"id": old["series"], "experiment": "", "metric": "", "labels": {}, "name": old["name"]}
    series |= {**_take(old, "experiment", "direction"), "change": _make_change(old, old["measurements"] // 2)}
    state = "budget" if is_over else "done"
    return {"stamp": "", "state": state, "base": base, "candidate": candidate, "series": [series], "bisection": part}


def _translate_reproduction(old: _Fields) -> _Fields:
    tvm = _make_tvm(f"{old.get('experiment', '')}/{old.get('night', '')}", old.get("artifact", {}))
    lines = {
        each["id"]: {
            "verdict": each["verdict"], "value": each["old"], "now": (each.get("found") or {}).get("new"),
            "why": each.get("why", ""),
        }
        for each in old.get("lines", ())
    }  # fmt: skip
    series = [
        {
            "experiment": "", "metric": "", "labels": {}, **_take(each, *_OF_SERIES),
            "rounds": [(each["old"], new) for new in each.get("new", ())],
        }
        for each in old.get("lines", ())
    ]  # fmt: skip
    part = {"verdict": "cannot tell", **_take(old, "verdict", "why", "experiment", "night"), "lines": lines}
    return {"base": tvm, "candidate": tvm, "series": series, "reproduction": part}


def _translate_backfill(old: _Fields) -> _Fields:
    first, _, last = old.get("artifacts", "").rpartition("..")
    base, candidate = ({"asked": name, "key": "", "version": name} for name in (first, last))
    state = "budget" if old.get("left") else "done"
    return {"state": state, "base": base, "candidate": candidate, "backfill": old}


_READERS: Mapping[str, tuple[str, Callable[[_Fields], _Fields]]] = {
    "comparisons": ("compare", _translate_comparison),
    "bisections": ("bisect", _translate_bisection),
    "reproductions": ("reproduce", _translate_reproduction),
    "backfills": ("backfill", _translate_backfill),
}
_KEYS = {"suspects": "bisections", "lines": "reproductions", "a": "comparisons"}
"""Fields that only files of that folder have."""
FOLDERS = tuple(_READERS)
"""In `results`."""
