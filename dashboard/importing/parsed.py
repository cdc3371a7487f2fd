"""Nights as importers find them, in records or in nested numbers; and the tables that importers go by."""

from __future__ import annotations

import datetime
import enum
import zoneinfo
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from dashboard.importing.source import File
from tvmdash import records
from tvmdash.errors import DashboardError
from tvmdash.measure import reduction
from tvmdash.records.description import SAMPLES
from tvmdash.records.exchange import NO_MEDIAN

_OBJECTS = ("workload_args", "engine_config", "build_config", "runtime_config", "execution_config")


class Role(enum.Enum):
    """The role of a field of a format in a measurement."""

    IDENTITY = "identity"
    """It tells series apart, as it names what was measured."""
    MACHINE = "machine"
    VERSION = "version"
    """The version of the measured, or of the measurement itself: another version of that is another series."""
    VALUE = "value"
    NOTE = "note"
    """It is kept with the record, and nothing is judged by it."""
    FORM = "form"
    """It says how the file is to be read, and nothing else."""


@dataclass(frozen=True)
class ImportField:
    """A field: its role, and the record's column that it goes to, with the name of its entry there.

    to: empty where the format's own code puts it in its place. convert: makes of the value what the record holds.
    """

    role: Role
    to: tuple[str, ...] = ()
    convert: Callable[[Any], Any] | None = None


Table = Mapping[str, ImportField]
"""The fields of an object of a format by their names."""


def fields(role: Role, names: str, column: str = "") -> Table:
    """Make a row for each of the names, which go to `column` under their own names."""
    return {name: ImportField(role, (column, name) if column else ()) for name in names.split()}


def place(table: Table, value: Mapping[str, Any], *, unknown: set[str] | None = None, at: str = "") -> dict[str, Any]:
    """Fill a record's columns from the fields of `value`; names of others, below `at`, go to `unknown`."""
    columns: dict[str, Any] = {}
    for name, item in value.items():
        known = table.get(name)
        if known is None:
            if unknown is not None:
                unknown.add(f"{at}{name}")
        elif known.to and item is not None:
            column, *entry = known.to
            made = known.convert(item) if known.convert else item
            if entry and made not in (None, {}, []):
                columns.setdefault(column, {})[entry[0]] = made
            elif not entry:
                columns[column] = made
    return columns


def merge(*parts: Mapping[str, Any]) -> dict[str, Any]:
    """Merge the columns of all parts; objects are put together."""
    whole: dict[str, Any] = {}
    for part in parts:
        for name, item in part.items():
            both = isinstance(item, dict) and isinstance(whole.get(name), dict)
            whole[name] = merge(whole[name], item) if both else item
    return whole


@dataclass(frozen=True)
class ParsedNight:
    """One night of one experiment. `content` is a data.json without what the dashboard adds.

    `part` tells the nights of one file apart, of `parts` in all; `kept` goes along in `night.imported`, `night` in
    `night`; `left_out` says in words what of the file was not taken; `unknown` names fields that nobody knows. Nights
    that `join` are one where experiment, moment, TVM and `joins` are: their records together. formerly: what homes of
    before December 2026 called the experiment of such a file; who has imported under it goes on.
    """

    experiment: str
    moment: datetime.datetime
    tvm_hash: str
    content: Mapping[str, Any]
    part: str = ""
    parts: int = 1
    kept: Mapping[str, Any] = field(default_factory=dict)
    night: Mapping[str, Any] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    unknown: frozenset[str] = frozenset()
    joins: str | None = None
    formerly: str = ""


@dataclass(frozen=True)
class ImportReading:
    """The user's choices for reading a source: the zone of stamps and the experiment, where it names none itself."""

    zone: zoneinfo.ZoneInfo = field(default_factory=lambda: zoneinfo.ZoneInfo("UTC"))
    experiment: str | None = None

    def moment(self, naive: datetime.datetime) -> datetime.datetime:
        """Return the UTC moment of a stamp, in `zone` where it names none. Of an hour that comes twice the first."""
        aware = naive if naive.tzinfo else naive.replace(tzinfo=self.zone)
        try:
            return aware.astimezone(datetime.UTC).replace(microsecond=0)
        except OverflowError as error:
            raise DashboardError(f"{naive} is not a supported date and time.") from error


@dataclass(frozen=True, eq=False)
class ImportFormat:
    """A format: which files are its own, and how one is read. Tables beside it say what its fields are."""

    name: str
    owns: Callable[[File], bool]
    read: Callable[[File, ImportReading], Iterator[ParsedNight]]


def to_ms(time: float, exponent: int = 3) -> float:
    """Milliseconds of seconds, or of another unit, without the digits that a multiplication would add."""
    return float(Decimal(repr(time)).scaleb(exponent))


def reduce_samples(processes_ms: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Mean and standard deviation (None of one sample) as columns, and what `additional_info` says of these samples."""
    reduced = reduction.reduce_processes(processes_ms)
    bounds = {"execution_elapsed_ms_low": reduced.low, "execution_elapsed_ms_high": reduced.high}
    info = {
        "execution_elapsed_ms_median": reduced.median,
        "execution_elapsed_ms_min": reduced.min,
        **{name: bound for name, bound in bounds.items() if bound is not None},
        "samples": reduced.count,
        **({SAMPLES: [list(process) for process in processes_ms]} if reduced.count > 1 else {}),
        **({"processes": reduced.processes} if reduced.processes > 1 else {}),
    }
    return _timed(reduced.mean, reduced.std if reduced.count > 1 else None, info)


def describe_stated(mean_ms: float, *, std_ms: float | None = None, median_ms: float | None = None) -> dict[str, Any]:
    """Make columns as `reduce_samples`, for a source that gives no samples."""
    doubts = {"doubts": [NO_MEDIAN]} if median_ms is None else {}
    return _timed(
        mean_ms, std_ms, {"execution_elapsed_ms_median": mean_ms if median_ms is None else median_ms, **doubts}
    )


def _timed(mean_ms: float, std_ms: float | None, info: Mapping[str, Any]) -> dict[str, Any]:
    return {"execution_elapsed_ms_mean": mean_ms, "execution_elapsed_ms_std": std_ms, "additional_info": dict(info)}


def describe_own(name: str, value: float, **declared: str) -> dict[str, Any]:
    """Make the columns of a source's own number that is no time; declared: its unit and direction."""
    return {"additional_info": {name: value, "metrics": {name: {"kind": "number", **declared}}}}


def record(moment: datetime.datetime, *parts: Mapping[str, Any]) -> dict[str, Any]:
    """Make a record's JSON with the columns of all parts; a column that none gives is empty."""
    return merge(
        {
            "timestamp": moment.isoformat().replace("+00:00", "Z"),
            "schema_version": records.SCHEMA_VERSION,
            "additional_info": {"docker_tag": None, "docker_hash": None},
            **dict.fromkeys(("engine_version", "target", "env_name", "hw_model"), ""),
            **{name: {} for name in _OBJECTS},
            "execution_elapsed_ms_mean": None,
            "execution_elapsed_ms_std": None,
        },
        *parts,
    )


def make_data(parsed: Sequence[Mapping[str, Any]], failures: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    known = {"schema_version": records.SCHEMA_VERSION, "records": list(parsed)}
    return {**known, **({"failures": list(failures)} if failures else {})}


def parse_number(value: object) -> float | None:
    """Return `value` where it is a number."""
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def parse_numbers(value: object) -> list[float]:
    return [known for known in map(parse_number, value) if known is not None] if isinstance(value, list) else []


def check_mapping(value: object) -> dict[str, Any]:
    """Return `value` where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def check_objects(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def format_left_out(counts: Mapping[str, int]) -> tuple[str, ...]:
    """Describe what of a file was left out, by the things that were counted: `2 rows without a time`."""
    return tuple(f"{count} {what}" for what, count in counts.items() if count)
