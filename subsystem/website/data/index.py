"""index.json: the catalogue of series and the last nights, for scripts of the site and of others."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from views import night as night_views
from views.context import SiteContext
from views.series import BLIND, GONE, MISSING, NIGHTS, STEADY, SUSPECT, UNJUDGED, YOUNG

from data.catalogue import Catalogue, Entry
from tvmdash.dashboard_info import Night, host_of
from tvmdash.records.metrics import BETTER, CHANGED, WORSE

SCHEMA_VERSION = 1
TITLE = "TVM nightly benchmarks"
Column = Callable[[Entry], Any]
_NOISE_DIGITS = 3
"""Nobody knows a scatter more exactly."""


def index_of(site: SiteContext, catalogue: Catalogue) -> bytes:
    """The file's content. It grows with the number of series and experiments, not with that of nights."""
    value = {
        "schema_version": SCHEMA_VERSION,
        "written": f"{site.now:%Y-%m-%dT%H:%M:%SZ}",
        "night": site.tonight.stamp,
        "title": TITLE,
        "max_age_hours": site.max_age_hours,
        "stamps": site.stamps[-NIGHTS:],
        "nights": {night.stamp: _night(night, catalogue) for night in reversed(site.last_nights)},
        "years": sorted({int(stamp[:4]) for stamp in site.stamps}),
        "experiments": [
            {"name": experiment.name, "title": experiment.title, "page": experiment.page, "active": experiment.active}
            for experiment in catalogue.experiments.values()
        ],
        "verdicts": _verdicts(catalogue),
        "series": _series(catalogue),
    }
    return (json.dumps(value, separators=(",", ":"), allow_nan=False) + "\n").encode("ascii")


def _night(night: Night, catalogue: Catalogue) -> dict[str, Any]:
    own_first = sorted(catalogue.experiments.values(), key=lambda experiment: bool(host_of(experiment.name)))
    machines = (experiment.nights.machines.get(night.stamp) for experiment in own_first)
    return {
        "state": night_views.judge(night, is_tonight=True).state,
        "tvm": [night_views.format_version(artifact) for artifact in night.artifacts],
        "machine": next(filter(None, machines), ""),
    }


def _verdicts(catalogue: Catalogue) -> dict[str, int]:
    states = [entry.state for entry in catalogue.entries]
    failed = sum(experiment.failures for experiment in catalogue.experiments.values())
    names = {"regressions": WORSE, "improvements": BETTER, "steady": STEADY, "missing": MISSING, "young": YOUNG,
             "changed": CHANGED, "unjudged": UNJUDGED, "suspects": SUSPECT, "blind": BLIND,
             "gone": GONE}  # fmt: skip
    return {**{name: states.count(state) for name, state in names.items()}, "failed": failed}


def _series(catalogue: Catalogue) -> Mapping[str, Sequence[Any]]:
    entries = catalogue.entries
    alerts = catalogue.alerts.series
    places = {name: at for at, name in enumerate(catalogue.experiments)}
    columns: Mapping[str, Column] = {
        "id": lambda entry: entry.id,
        "experiment": lambda entry: places[entry.outline.experiment],
        "name": lambda entry: entry.name,
        "metric": lambda entry: entry.outline.metric,
        "unit": lambda entry: entry.outline.unit,
        "direction": lambda entry: entry.outline.direction,
        "labels": lambda entry: entry.labels,
        "last": lambda entry: _rounded(entry.last),
        "low": lambda entry: _rounded(entry.low),
        "high": lambda entry: _rounded(entry.high),
        "last_stamp": lambda entry: entry.count.last_stamp,
        "change": lambda entry: (
            _rounded(1 + entry.view.change) if entry.view and entry.view.change is not None else None
        ),
        "state": lambda entry: entry.state,
        "verdict": lambda entry: alerts[entry.key].kind if entry.key in alerts else "",
        "grade": lambda entry: entry.view.grade if entry.view else "",
        "visible": lambda entry: _rounded(entry.view.visible, _NOISE_DIGITS) if entry.view else None,
        "noise": lambda entry: _rounded(entry.view.scatter, _NOISE_DIGITS) if entry.view else None,
        "ratio_noise": lambda entry: (
            _rounded(entry.view.noise, _NOISE_DIGITS) if entry.view and entry.view.beside else None
        ),
        "points": lambda entry: entry.count.points,
        "past": lambda entry: int(entry.count.past > 0),
        "incident": lambda entry: entry.view.incident if entry.view else None,
    }
    return {name: [column(entry) for entry in entries] for name, column in columns.items()}


def _rounded(value: float | None, digits: int = 7) -> float | None:
    return None if value is None else float(f"{value:.{digits}g}")
