"""A score as the config defines it, parsed; whatever is wrong is told with its place and costs that score alone."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tvmdash import config_util
from tvmdash.config_util import Field
from tvmdash.errors import DashboardError
from tvmdash.records import Record
from tvmdash.records.metrics import METRICS, Metric

SPEEDUP, SHARE, GEOMEAN, CORRECT = "speedup", "share_reaching", "geomean_time", "correct_count"
KINDS = (SPEEDUP, SHARE, GEOMEAN, CORRECT)
ALL = "all"
EXPERIMENT = "experiment"
_COLUMNS = tuple(name for name in Record.__dataclass_fields__ if not name.startswith("execution_elapsed"))
_RUN_TIME = METRICS[0].name
_SELECTS = 'Columns of the records, and what they hold, as in {"build_config.opt_level": 3}.'
_FIELDS: config_util.Fields = {
    "title": Field("str", "What people call it.", min=1),
    EXPERIMENT: Field("str", "The experiment that it is of.", min=1),
    "kind": Field("choice", "What is computed.", choices=KINDS),
    "baseline": Field("map", _SELECTS, default=None, nullable=True),
    "contender": Field("map", _SELECTS, default={}),
    "workloads": Field("any", "All, or a list of names.", default=ALL),
    "threshold": Field("float", "The speed-up to reach.", default=None, nullable=True),
    "metric": Field("choice", "Which number.", default=_RUN_TIME, choices=tuple(metric.name for metric in METRICS)),
}


@dataclass(frozen=True)
class Selector:
    """The records of `experiment` whose columns have these values, as in {"build_config.opt_level": 3}."""

    experiment: str
    values: Mapping[str, Any] = field(default_factory=dict)

    def selects(self, record: Record) -> bool:
        return all(_value_at(record, path) == value for path, value in self.values.items())

    def may_have_selected(self, values: Mapping[str, Any]) -> bool:
        """Match a failed point by its axis values, as far as these tell."""
        axes = {path.rpartition(".")[2]: value for path, value in self.values.items()}
        return all(values[name] == value for name, value in axes.items() if name in values)

    @property
    def key(self) -> tuple[str, ...]:
        return (self.experiment, *(f"{path}={value}" for path, value in self.values.items()))

    def __str__(self) -> str:
        return ", ".join(f"{path} {value}" for path, value in self.values.items()) or "all records"


@dataclass(frozen=True)
class Definition:
    """One score. `workloads` is None for all; `threshold` is only for the share that reaches it."""

    title: str
    kind: str
    contender: Selector
    baseline: Selector | None
    workloads: tuple[str, ...] | None
    threshold: float
    metric: Metric

    @property
    def id(self) -> str:
        """Changes with everything that changes the score's meaning, so not with its title."""
        value = {name: item for name, item in asdict(self).items() if name != "title"}
        metric = self.metric  # as the first IDs were made: they name the scores' histories
        value["metric"] = {"name": metric.name, "unit": metric.unit, "lower_is_better": True, "place": metric.place}
        value |= {"counts": "checked answers"} if self.kind == CORRECT else {}
        return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]

    @property
    def experiments(self) -> tuple[str, ...]:
        selectors = [self.contender, *([self.baseline] if self.baseline else [])]
        return tuple(dict.fromkeys(selector.experiment for selector in selectors))

    @property
    def unit(self) -> str:
        return {SPEEDUP: "times", SHARE: "%", CORRECT: "points"}.get(self.kind, self.metric.unit)

    @property
    def lower_is_better(self) -> bool:
        return self.kind == GEOMEAN and self.metric.direction == "lower"


def parse_all(values: Sequence[Any], shown: str = "config.json") -> tuple[list[Definition], list[str]]:
    """Return the good definitions, and a sentence for each fault of the others; `shown` names the config's file."""
    good: dict[str, Definition] = {}
    faults = []
    for index, value in enumerate(values):
        at = f"$.scores[{index}]"
        try:
            definition = _parse(value, shown, at)
            if definition.id in good or definition.title in {other.title for other in good.values()}:
                raise DashboardError(
                    f"{shown}: {at}: duplicate of an earlier score or of its title. Remove one of them."
                )
        except DashboardError as error:
            faults += str(error).splitlines()
            continue
        good[definition.id] = definition
    return list(good.values()), faults


def _parse(value: Any, shown: str, at: str) -> Definition:
    fields = config_util.check(value, _FIELDS, shown, at=at)
    kind, baseline, threshold, metric = (fields[name] for name in ("kind", "baseline", "threshold", "metric"))
    compares = kind in (SPEEDUP, SHARE)
    workloads = fields["workloads"]
    is_list = isinstance(workloads, list) and workloads and all(isinstance(item, str) and item for item in workloads)
    for is_wrong, name, problem in (
        (compares and baseline is None, "baseline", f"a {kind} needs a baseline to compare with. Add it."),
        (not compares and baseline is not None, "baseline", f"a {kind} has no baseline. Remove it."),
        (
            kind == SHARE and not (threshold or 0) > 0,
            "threshold",
            "the speed-up to reach, above 0, is missing. Add it.",
        ),
        (kind != SHARE and threshold is not None, "threshold", f"allowed for {SHARE} only. Remove it."),
        (kind == CORRECT and metric != _RUN_TIME, "metric", f"a {kind} counts points regardless of it. Remove it."),
        (workloads != ALL and not is_list, "workloads", f'{workloads!r:.60} is neither "all" nor a list of names.'),
    ):
        if is_wrong:
            raise DashboardError(f"{shown}: {at}.{name}: {problem}")
    contender = _make_selector(fields["contender"], fields["experiment"], f"{shown}: {at}.contender")
    return Definition(
        fields["title"].strip(),
        kind,
        contender,
        _make_selector(baseline, fields["experiment"], f"{shown}: {at}.baseline") if compares else None,
        None if workloads == ALL else tuple(dict.fromkeys(workloads)),
        float(threshold or 0),
        next(item for item in METRICS if item.name == metric),
    )


def _make_selector(values: Mapping[str, Any], experiment: str, shown: str) -> Selector:
    values = dict(values)
    own = values.pop(EXPERIMENT, experiment)
    for path in values:
        column = path.partition(".")[0]
        if column not in _COLUMNS:
            near = difflib.get_close_matches(column, _COLUMNS, n=1)
            remedy = f"Did you mean {near[0]!r}?" if near else f"Columns: {', '.join(_COLUMNS)}."
            raise DashboardError(f"{shown}.{path}: records have no column {column!r}. {remedy}")
    if not isinstance(own, str) or not own:
        raise DashboardError(f"{shown}.{EXPERIMENT}: {own!r:.60} is not the name of an experiment.")
    return Selector(own, values)


def _value_at(record: Record, path: str) -> Any:
    """Return the value at a path such as `build_config.opt_level`; None where the record has none."""
    column, _, rest = path.partition(".")
    value: Any = getattr(record, column)
    return value if not rest else value.get(rest) if isinstance(value, Mapping) else None


def find_differing(records: Sequence[Record]) -> list[str]:
    """Find the paths on which these records differ: what a selector must name to choose one of them."""
    mappings = ("workload_args", "engine_config", "build_config", "runtime_config")
    keys = {f"{name}.{key}": None for record in records for name in mappings for key in getattr(record, name)}
    return [
        path
        for path in ("engine", "engine_version", "target", *keys)
        if len({json.dumps(_value_at(record, path), sort_keys=True) for record in records}) > 1
    ]
