"""A score as the config defines it, parsed; whatever is wrong is told with its place and costs that score alone."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tvmdash.errors import DashboardError
from tvmdash.records import Record
from tvmdash.records.metrics import METRICS, Metric

SPEEDUP, SHARE, GEOMEAN, CORRECT = "speedup", "share_reaching", "geomean_time", "correct_count"
KINDS = (SPEEDUP, SHARE, GEOMEAN, CORRECT)
ALL = "all"
EXPERIMENT = "experiment"
_COLUMNS = tuple(name for name in Record.__dataclass_fields__ if not name.startswith("execution_elapsed"))
_KNOWN = ("title", "experiment", "kind", "baseline", "contender", "workloads", "threshold", "metric")


@dataclass(frozen=True)
class Selector:
    """Which records: those of `experiment` whose columns have these values, as in {"build_config.opt_level": 3}."""

    experiment: str
    values: Mapping[str, Any] = field(default_factory=dict)

    def selects(self, record: Record) -> bool:
        """Whether the record is one of them."""
        return all(_value_at(record, path) == value for path, value in self.values.items())

    def may_have_selected(self, values: Mapping[str, Any]) -> bool:
        """Whether a failed point with these axis values is one of them, as far as the values tell."""
        axes = {path.rpartition(".")[2]: value for path, value in self.values.items()}
        return all(values[name] == value for name, value in axes.items() if name in values)

    @property
    def key(self) -> tuple[str, ...]:
        """What tells it from others."""
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
        """The experiments that it reads."""
        selectors = [self.contender, *([self.baseline] if self.baseline else [])]
        return tuple(dict.fromkeys(selector.experiment for selector in selectors))

    @property
    def unit(self) -> str:
        """Of its value."""
        return {SPEEDUP: "times", SHARE: "%", CORRECT: "points"}.get(self.kind, self.metric.unit)

    @property
    def lower_is_better(self) -> bool:
        """Whether a lower value is the better one."""
        return self.kind == GEOMEAN and self.metric.direction == "lower"


def parse_all(values: Sequence[Any], shown: str = "config.json") -> tuple[list[Definition], list[str]]:
    """The good definitions, and a sentence for each bad one; `shown` names the config's file."""
    good: dict[str, Definition] = {}
    faults = []
    for index, value in enumerate(values):
        json_path = f"{shown}: $.scores[{index}]"
        try:
            definition = _parse(value, json_path)
        except DashboardError as error:
            faults.append(str(error))
            continue
        if definition.id in good or definition.title in {other.title for other in good.values()}:
            faults.append(f"{json_path}: duplicate of an earlier score or of its title. Remove one of them.")
        else:
            good[definition.id] = definition
    return list(good.values()), faults


def _parse(value: Any, json_path: str) -> Definition:
    if not isinstance(value, dict):
        raise DashboardError(
            f"{json_path}: {value!r:.60} is not an object. Write {{...}} with title, experiment and kind."
        )
    for name in sorted(set(value) - set(_KNOWN)):
        near = difflib.get_close_matches(name, _KNOWN, n=1)
        raise DashboardError(
            f"{json_path}.{name}: unknown field. "
            + (f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(_KNOWN)}.")
        )
    title, experiment = _string(value, "title", json_path), _string(value, "experiment", json_path)
    kind = _choice(value.get("kind"), KINDS, f"{json_path}.kind")
    compares = kind in (SPEEDUP, SHARE)
    if compares and "baseline" not in value:
        raise DashboardError(
            f"{json_path}.baseline: required field is missing. A {kind} needs a baseline to compare with."
        )
    if not compares and "baseline" in value:
        raise DashboardError(f"{json_path}.baseline: a {kind} has no baseline. Remove it.")
    return Definition(
        title,
        kind,
        _selector(value.get("contender", {}), experiment, f"{json_path}.contender"),
        _selector(value["baseline"], experiment, f"{json_path}.baseline") if compares else None,
        _workloads(value.get("workloads", ALL), f"{json_path}.workloads"),
        _threshold(value, kind, json_path),
        _metric(value.get("metric", METRICS[0].name), kind, f"{json_path}.metric"),
    )


def _string(value: Mapping[str, Any], name: str, json_path: str) -> str:
    text = value.get(name)
    if not isinstance(text, str) or not text.strip():
        raise DashboardError(f"{json_path}.{name}: required field is missing or not a string. Add it.")
    return text.strip()


def _choice(value: Any, choices: Sequence[str], json_path: str) -> str:
    if value not in choices:
        raise DashboardError(f"{json_path}: {value!r:.60} is not a valid choice. Use one of: {', '.join(choices)}.")
    return str(value)


def _metric(value: Any, kind: str, json_path: str) -> Metric:
    name = _choice(value, [metric.name for metric in METRICS], json_path)
    if kind == CORRECT and name != METRICS[0].name:
        raise DashboardError(f"{json_path}: a {kind} counts points regardless of metric. Remove it.")
    return next(metric for metric in METRICS if metric.name == name)


def _threshold(value: Mapping[str, Any], kind: str, json_path: str) -> float:
    number = value.get("threshold")
    if kind != SHARE:
        if number is not None:
            raise DashboardError(f"{json_path}.threshold: allowed for {SHARE} only. Remove it.")
        return 0.0
    if isinstance(number, bool) or not isinstance(number, (int, float)) or number <= 0:
        raise DashboardError(f"{json_path}.threshold: {number!r:.60} is not a speed-up above 0 (use e.g. 1.5).")
    return float(number)


def _workloads(value: Any, json_path: str) -> tuple[str, ...] | None:
    if value == ALL:
        return None
    if not isinstance(value, list) or not value or not all(isinstance(item, str) and item for item in value):
        raise DashboardError(f'{json_path}: {value!r:.60} is neither "all" nor a list of names (use e.g. ["mlp"]).')
    return tuple(dict.fromkeys(value))


def _selector(value: Any, experiment: str, json_path: str) -> Selector:
    if not isinstance(value, dict):
        raise DashboardError(f'{json_path}: {value!r:.60} is not an object (use e.g. {{"build_config.opt_level": 3}}).')
    values = {path: item for path, item in value.items() if path != EXPERIMENT}
    for path in values:
        column = path.partition(".")[0]
        if column not in _COLUMNS:
            near = difflib.get_close_matches(column, _COLUMNS, n=1)
            remedy = f"Did you mean {near[0]!r}?" if near else f"Columns: {', '.join(_COLUMNS)}."
            raise DashboardError(f"{json_path}.{path}: records have no column {column!r}. {remedy}")
    own = value.get(EXPERIMENT, experiment)
    if not isinstance(own, str) or not own:
        raise DashboardError(f"{json_path}.{EXPERIMENT}: {own!r:.60} is not a valid experiment name.")
    return Selector(own, values)


def _value_at(record: Record, path: str) -> Any:
    """The value at a path such as `build_config.opt_level`; None where the record has none."""
    column, _, rest = path.partition(".")
    value: Any = getattr(record, column)
    return value if not rest else value.get(rest) if isinstance(value, Mapping) else None


def differing(records: Sequence[Record]) -> Iterator[str]:
    """The paths on which these records differ: what a selector must name to choose one of them."""
    flat = [dict(_flat(record)) for record in records]
    for path in dict.fromkeys(path for columns in flat for path in columns):
        if len({json.dumps(columns.get(path), sort_keys=True) for columns in flat}) > 1:
            yield path


def _flat(record: Record) -> Iterator[tuple[str, Any]]:
    for name in ("engine", "engine_version", "target"):
        yield name, getattr(record, name)
    for name in ("workload_args", "engine_config", "build_config", "runtime_config"):
        yield from ((f"{name}.{key}", value) for key, value in getattr(record, name).items())
