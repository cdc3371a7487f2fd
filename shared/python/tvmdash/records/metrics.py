"""Metrics: name, unit, better direction, and kind."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any, Literal, Protocol, get_args

Direction = Literal["lower", "higher", "none"]
"""The better direction; without one, no change is better or worse."""
Kind = Literal["time", "rate", "exact", "accuracy", "ratio", "number"]
"""exact: sizes and counts, which have no noise. number: nothing is known of it, so it is judged like a time."""
FleetKind = Literal["times", "sizes", "numbers"]
"""Kinds of series that one machine moves together; numbers: of a foreign experiment, of unknown kind."""
Way = Literal["worse", "better", "changed"]
WORSE, BETTER, CHANGED = WAYS = ("worse", "better", "changed")


@dataclass(frozen=True)
class Metric:
    """A number in a record. `place` is its column, or `additional_info` and its name there.

    tolerance: in its unit, how much worse it may get before that is a regression; until then it changed. title: what
    its author calls it.
    """

    name: str
    unit: str
    direction: Direction
    place: tuple[str, ...]
    kind: Kind = "time"
    tolerance: float = 0.0
    title: str = ""


_WITHIN_TOLERANCE = math.inf
"""A point whose error is beyond the tolerance of its data type has failed, and has no value."""
ENOUGH_RATIOS, FEWEST_ALONE = 20, 18
"""Ratios from which on a series with times is judged by its ratios; with fewer times than the second, at once."""
LARGEST_ERROR = Metric("largest_error", "", "lower", ("additional_info", "max_error"), "accuracy", _WITHIN_TOLERANCE)
RUN_TIME, RUN_TIME_RATIO = "run_time", "run_time_ratio"
"""The time of a point, and its ratio to that of the reference, measured in turn."""
COMPILE_TIME, COMPILE_CPU_TIME = "compile_time", "compile_cpu_time"
"""Wall-clock time, and the CPU time that is compared: beside load the ratio of two scatters by 30 and by 7 %."""
IN_TURN = (RUN_TIME, "device_time", "transfer_time", "energy", COMPILE_TIME)
"""Metrics that both processes of a pair measure; the first is that of the turns."""
METRICS = (
    Metric(RUN_TIME, "ms", "lower", ("additional_info", "execution_elapsed_ms_median")),
    *(
        Metric(f"{name}_ratio", "", "lower", ("additional_info", "paired", "ratios", name, "ratio"), "ratio")
        for name in IN_TURN
    ),
    Metric("device_time", "ms", "lower", ("additional_info", "device_time")),
    Metric("transfer_time", "ms", "lower", ("additional_info", "transfer_time")),
    Metric("energy", "mJ", "lower", ("additional_info", "energy")),
    Metric(COMPILE_TIME, "ms", "lower", ("additional_info", COMPILE_TIME)),
    Metric("code_size", "bytes", "lower", ("additional_info", "code_size"), "exact"),
    Metric("planned_memory", "bytes", "lower", ("additional_info", "device_memory_usage"), "exact"),
    Metric("memory_traffic", "bytes", "lower", ("additional_info", "memory_traffic"), "exact"),
    *(
        Metric(name, unit, "lower", ("additional_info", name), "exact")
        for name, unit in {
            "source_size": "bytes",
            "host_size": "bytes",
            "kernels": "kernels",
            "registers": "registers",
            "scalar_registers": "registers",
            "spills": "bytes",
            "shared_memory": "bytes",
            "instructions": "instructions",
        }.items()
    ),
    Metric("accuracy", "", "higher", ("additional_info", "validation_accuracy"), "accuracy"),
    LARGEST_ERROR,
)
_OF_EVERY_RECORD = frozenset(metric.name for metric in METRICS)
MAY_BE_EXACT = frozenset({"exact", "accuracy"})
"""Kinds of numbers that have no noise where all processes of a night agree."""
FOREIGN = Metric("value", "", "none", (), "number")
"""Metric of a foreign experiment's number without a declaration."""
VALUE_RATIO = "value_ratio"
"""The ratio of a foreign experiment's number to that of the reference."""
RATIOS: Mapping[str, str] = MappingProxyType({**{f"{name}_ratio": name for name in IN_TURN}, VALUE_RATIO: FOREIGN.name})
"""The base metric of each ratio to the reference."""
COMPARABLE: frozenset[Kind] = frozenset({"time", "rate"})
"""Kinds of a foreign experiment's numbers that have a ratio to the reference."""


def is_worse(effect: float, direction: Direction) -> bool | None:
    """Return True where a change by `effect` (above 0 is up) is for the worse; None where it is neither."""
    if direction == "none" or effect == 0:
        return None
    return (effect > 0) == (direction == "lower")


def is_regression(effect: float, change: float, direction: Direction, tolerance: float) -> bool | None:
    """Return True where a change by `effect` is for the worse, None where it is neither or within the tolerance."""
    worse = is_worse(effect, direction)
    return None if worse and abs(change) <= tolerance * (1 + _ROUNDING) else worse


class ExactSeries(Protocol):
    """The facts that decide whether another value of an exact number is a worse one."""

    @property
    def metric(self) -> str: ...
    @property
    def direction(self) -> Direction: ...
    @property
    def kind(self) -> Kind: ...
    @property
    def tolerance(self) -> float: ...


def judge_exact_change(series: ExactSeries, before: float, after: float) -> bool | None:
    """Return True where an exact number got worse, False where better, None where it only changed.

    A count that got better only changed; so does any size that every record has: nearly every change of a compiler
    makes some code larger and some smaller.
    """
    worse = is_regression(after - before, after - before, series.direction, series.tolerance)
    return None if series.kind == "exact" and (not worse or series.metric in _OF_EVERY_RECORD) else worse


_ROUNDING = 1e-9
"""0.99 less 0.98 is a little more than 0.01."""


def way(worse: bool | None) -> Way:  # noqa: FBT001 - the one thing that it turns into a word
    """Return the word for a result of `is_worse`."""
    return "changed" if worse is None else "worse" if worse else "better"


def lower_is_better(direction: Direction) -> bool | None:
    """Return the direction for plots and summaries: None where it is not declared."""
    return None if direction == "none" else direction == "lower"


@dataclass(frozen=True)
class Declared:
    """An experiment's declaration of one of its own numbers; the defaults hold without one."""

    name: str = ""
    unit: str = FOREIGN.unit
    direction: Direction = FOREIGN.direction
    kind: Kind = FOREIGN.kind
    tolerance: float = FOREIGN.tolerance

    def to_json(self) -> dict[str, Any]:
        """Return the entry of `metrics` in a file, without defaults."""
        return {name: value for name, value in asdict(self).items() if value != getattr(Declared, name)}

    def __str__(self) -> str:
        """Describe it, as in `tokens/s, higher is better, rate`."""
        ways = {"lower": "lower is better", "higher": "higher is better", "none": "neither way is better"}
        return ", ".join(filter(None, (self.unit, ways[self.direction], self.kind)))


def read_own(info: Mapping[str, Any]) -> Iterator[Metric]:
    """Yield the metrics that an experiment declares of its own numbers in a record's `additional_info`."""
    entries = info.get(OWN)
    for name, entry in entries.items() if isinstance(entries, dict) else ():
        if name not in RESERVED:
            said = _declared(entry)
            place = ("additional_info", name)
            yield Metric(name, said.unit, said.direction, place, said.kind, said.tolerance, said.name)


OWN = "metrics"
"""Entry of `additional_info` that declares the experiment's own numbers."""
RESERVED = frozenset({OWN, FOREIGN.name, *RATIOS, *_OF_EVERY_RECORD, *(metric.place[-1] for metric in METRICS)})
"""Names that every record defines already."""


class Declarations:
    """The `metrics` of a data.json or a fields.json, asked for a foreign experiment's number at a path.

    A name that begins with `$` is held against the whole path, any other against the path's last name; `*` stands for
    anything. Of several that fit, the longest counts.
    """

    def __init__(self, entries: Mapping[str, Any]) -> None:
        known = sorted(entries.items(), key=lambda entry: -len(entry[0]))
        self._known = {name: (_pattern(name), _declared(entry)) for name, entry in known}

    def __iter__(self) -> Iterator[tuple[str, Declared]]:
        """Yield each name with its declaration, the longest first."""
        return ((name, declared) for name, (_, declared) in self._known.items())

    def of(self, path: str) -> Declared:
        """Return the declaration of the number at `path`, as in `$.gpu.mean`."""
        name = self.find(path)
        return Declared() if name is None else self._known[name][1]

    def find(self, path: str) -> str | None:
        """Return the name under which the number at `path` is declared."""
        return next((name for name, (pattern, _) in self._known.items() if pattern.fullmatch(path)), None)


def _pattern(name: str) -> re.Pattern[str]:
    """The name as a pattern that does not try all ways in which several `*` could share a path between them.

    What stands before the last `*` is found where it comes first, for good: if the rest is not behind that, it is not
    behind any later place either.
    """
    begin, behind = ("", "") if name.startswith("$") else (r"(?:.*?\.)?", r"(?:\[\d+\])*+")
    *before, last = map(re.escape, name.split("*"))
    pieces = "".join(rf"(?>{'.*?' if at else begin}{piece})" for at, piece in enumerate(before))
    return re.compile(rf"{pieces}{'.*' if before else begin}{last}{behind}", re.DOTALL)


def _declared(entry: Any) -> Declared:
    """Parse the valid parts of an entry: a file that was kept is read whatever stands in it."""
    given = entry if isinstance(entry, dict) else {}
    choices = {"direction": get_args(Direction), "kind": get_args(Kind)}
    kept: dict[str, Any] = {
        name: value
        for name, value in given.items()
        if name in _TEXTS and isinstance(value, str) and value in choices.get(name, (value,))
    }
    tolerance = given.get(_TOLERANCE)
    if isinstance(tolerance, (int, float)) and not isinstance(tolerance, bool) and tolerance >= 0:
        kept[_TOLERANCE] = float(tolerance)
    return Declared(**kept)


_TOLERANCE = "tolerance"
_TEXTS = frozenset(Declared.__dataclass_fields__) - {_TOLERANCE}


def declared_in(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the `metrics` of a foreign data.json where they declare; empty where they are measured numbers."""
    metrics = data.get("metrics")
    if not isinstance(metrics, dict) or any(_is_measured(entry) for entry in metrics.values()):
        return {}
    return metrics


def _is_measured(entry: Any) -> bool:
    if not isinstance(entry, dict):
        return _holds_numbers(entry)
    declared = {*_TEXTS, _TOLERANCE} if _TEXTS & entry.keys() else _TEXTS  # alone it may have been measured
    return any(_holds_numbers(value) for name, value in entry.items() if name not in declared)


def _holds_numbers(value: Any) -> bool:
    if isinstance(value, (dict, list)):
        return any(map(_holds_numbers, value.values() if isinstance(value, dict) else value))
    return isinstance(value, (int, float)) and not isinstance(value, bool)
