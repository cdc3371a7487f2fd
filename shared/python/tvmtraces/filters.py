"""The shown part of the traces, as values that become conditions on the tables.

What straddles an edge of the time window, by `Straddle`: *contained* keeps what lies wholly inside; *overlapping* keeps
what lies inside in part, whole; *clipped* keeps that part, with start and duration cut to the window; *starting* keeps
what begins inside, whole, so that windows side by side hold everything once. An instant is inside from the window's
begin up to, not at, its end.
"""

from __future__ import annotations

import datetime
import enum
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from tvmdash.errors import DashboardError
from tvmtraces.tables import TABLES

_RELATIVE = re.compile(r"([+-])([0-9.]+)\s*(ns|us|µs|ms|s|min|h)")
_NOT = "!"
_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}


OF_EVENTS: Mapping[str, tuple[str, ...]] = {
    "counter": ("dispatch", "instant"),
    "argument": ("region", "instant", "dispatch", "copy", "allocation", "graph_launch"),
}
"""Tables that know an event alone, and those whose rows, where filters leave them, have that event."""


def order_of_views(table: str) -> int:
    """The views of the tables in the order in which they can be made: some look at others."""
    return 0 if table == "trial" else 2 if table in OF_EVENTS else 1


class Straddle(enum.Enum):
    """Treatment of what straddles an edge of the window."""

    CONTAINED = "contained"
    OVERLAPPING = "overlapping"
    CLIPPED = "clipped"
    STARTING = "starting"


@dataclass(frozen=True)
class Window:
    """A time window.

    Each bound is one of `2026-11-21T03:15:00Z` or nanoseconds since 1970 (absolute), `+2.5s` (after the run's begin),
    `-2.5s` (before its end), `25%` (of the run), `@name` (a marker: as begin, where the first region or trial of that
    name begins; as end, where the first one that begins in the window ends). An empty bound is the run's own.
    """

    begin: str = ""
    end: str = ""
    straddle: Straddle = Straddle.CONTAINED

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "straddle", Straddle(self.straddle))
        except ValueError:
            choices = ", ".join(choice.value for choice in Straddle)
            raise DashboardError(f"straddle: {self.straddle!r} is none of {choices}.") from None


@dataclass(frozen=True)
class Filters:
    """Every list is a choice: a row stays where one of its patterns (`*`, `?`, `[abc]`) fits; no pattern, no condition.

    A pattern after `!` leaves out what fits it; where there are only such, all else stays.
    `hosts` are host names of machines, or the config's names of hosts, which stand in the names of their jobs;
    `processes` are process ids, guids, or `guid/process`; `workloads` leave only what belongs to a trial; `operators`
    are names of kernels; `regions` those of regions and API calls; `categories` those of kernels, copies, regions and
    samples. What sensors said of the host stays where it was said while a chosen process ran. Without `annotations`
    slices in other tools' formats are names, categories and times alone: no errors, messages or figures.
    """

    window: Window | None = None
    hosts: Sequence[str] = ()
    processes: Sequence[str | int] = ()
    nights: Sequence[str] = ()
    experiments: Sequence[str] = ()
    workloads: Sequence[str] = ()
    operators: Sequence[str] = ()
    regions: Sequence[str] = ()
    categories: Sequence[str] = ()
    annotations: bool = True

    def __post_init__(self) -> None:
        for name in CHOICES:
            if isinstance(getattr(self, name), str):
                raise DashboardError(f"{name}: {getattr(self, name)!r} is a text. Give a list of patterns.")


CHOICES = tuple(field.name for field in fields(Filters) if field.name not in ("window", "annotations"))
"""Names of the pattern lists among the fields."""


@dataclass(frozen=True)
class ChosenProcess:
    """A process that the filters leave: its key, and the number of its node among those of its guid."""

    guid: str
    process: int
    nid: int | None


@dataclass(frozen=True)
class TimeSpan:
    """A resolved window in nanoseconds: from `begin_ns` up to `end_ns`."""

    begin_ns: int
    end_ns: int
    straddle: Straddle

    @property
    def edges(self) -> tuple[int, int]:
        return self.begin_ns, self.end_ns


def format_literal(text: str) -> str:
    if "\0" in text:
        raise DashboardError(f"{text!r:.60}: a NUL character cannot be asked for.")
    return "'" + text.replace("'", "''") + "'"


def format_patterns(columns: str | Sequence[str], chosen: Sequence[str | int]) -> str:
    """Return the condition that one of the columns fits a pattern, and none of them one of those after `!`."""
    names = [columns] if isinstance(columns, str) else columns
    patterns = [str(pattern) for pattern in chosen]
    wanted = [
        f"{name} GLOB {format_literal(pattern)}"
        for name in names
        for pattern in patterns
        if not pattern.startswith(_NOT)
    ]
    unwanted = [
        f"NOT coalesce({name}, '') GLOB {format_literal(pattern.removeprefix(_NOT))}"
        for name in names
        for pattern in patterns
        if pattern.startswith(_NOT)
    ]
    either = [f"({' OR '.join(wanted)})"] if wanted else []
    return f"({' AND '.join([*either, *unwanted])})"


def format_host_of_job(job: str) -> str:
    """Return SQL for the host in the name of a job, as `dashboard_info.host_of` finds it; NULL where it has none."""
    return f"nullif(split_part(split_part({job}, '@', 1), '~', 2), '')"


def escape(text: str) -> str:
    """Return the pattern that fits `text` alone; after a leading `!`, any other first character fits too."""
    return re.sub(r"[*?[]", r"[\g<0>]", "?" + text[1:] if text.startswith(_NOT) else text)


def process_condition(filters: Filters) -> str | None:
    """Return the condition on the table of processes, or None."""
    parts = [
        format_patterns(column, chosen)
        for column, chosen in (
            ("night", filters.nights),
            ("experiment", filters.experiments),
        )
        if chosen
    ]
    if filters.hosts:
        parts.append(format_patterns(("hostname", format_host_of_job("experiment")), filters.hosts))
    if filters.processes:
        parts.append(format_patterns(("CAST(pid AS VARCHAR)", "guid", "guid || '/' || process"), filters.processes))
    return " AND ".join(parts) or None


def format_selection(
    table: str, filters: Filters, span: TimeSpan | None, chosen: Sequence[ChosenProcess] | None
) -> str:
    """Return `SELECT ... FROM all_<table> WHERE ...`: the rows of a table that the filters leave.

    `chosen` are the processes that `process_condition` leaves, None where there is no such condition.
    """
    spec = TABLES[table]
    conditions = _format_conditions(table, filters, chosen)
    if table in OF_EVENTS and filters != Filters():
        left = " UNION ALL ".join(f"SELECT guid, event_id FROM base_{other}" for other in OF_EVENTS[table])  # noqa: S608
        conditions.append(f"(guid, event_id) IN ({left})")
    columns = {name: f'"{name}"' for name in spec.columns}
    if span is not None and spec.start is not None:
        conditions.append(_format_inside(spec.start, spec.duration, span))
        if span.straddle is Straddle.CLIPPED and spec.duration is not None:
            columns.update(_format_clipped(spec.start, spec.duration, span))
    shown = ", ".join(f'{expression} AS "{name}"' for name, expression in columns.items())
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    once = "DISTINCT " if spec.describes else ""
    return f"SELECT {once}{shown} FROM all_{table}{where}"  # noqa: S608 - our own names, literals escaped


def _format_conditions(table: str, filters: Filters, chosen: Sequence[ChosenProcess] | None) -> list[str]:
    columns, conditions = TABLES[table].columns, []
    if chosen is not None and "process" in columns:
        own = _format_among("guid, process", [(process.guid, process.process) for process in chosen])
        conditions.append(f"({own} OR {_format_meanwhile(chosen)})" if table == "telemetry" else own)
    if chosen is not None and table == "node":
        conditions.append(_format_among("guid, id", [(item.guid, item.nid) for item in chosen]))
    if "guid" not in columns:
        conditions += [
            format_patterns(name, filters.nights) for name in ("night",) if filters.nights and name in columns
        ]
        conditions += [
            format_patterns(name, filters.experiments)
            for name in ("experiment", "job")
            if filters.experiments and name in columns
        ]
    if filters.workloads and "workload" in columns:
        conditions.append(format_patterns("workload", filters.workloads))
    elif filters.workloads and "trial" in columns:
        conditions.append("(guid, process, trial) IN (SELECT guid, process, id FROM base_trial)")
    elif filters.workloads and TABLES[table].start is not None and "guid" in columns:
        conditions.append("1 = 0")
    if filters.operators and table in ("operator", "dispatch"):
        conditions.append(format_patterns("name", filters.operators))
    if filters.regions and table == "region":
        conditions.append(format_patterns("name", filters.regions))
    if filters.categories and table not in OF_EVENTS and (table == "operator" or "category" in columns):
        conditions.append(format_patterns("'operator'" if table == "operator" else "category", filters.categories))
    return conditions


def _format_among(columns: str, keys: Sequence[tuple[str, int | None]]) -> str:
    """Return the condition that two columns, a text and a number, are one of the keys."""
    known = ", ".join(f"({format_literal(text)}, {number})" for text, number in sorted(set(keys)) if number is not None)
    return f"({columns}) IN (SELECT * FROM (VALUES {known}) AS chosen)" if known else "1 = 0"  # noqa: S608 - escaped


def _format_meanwhile(chosen: Sequence[ChosenProcess]) -> str:
    """Return the condition that a sensor's reading, which is of no process, is of the time of a chosen one."""
    own = _format_among("P.guid, P.process", [(process.guid, process.process) for process in chosen])
    return f"""(guid IS NULL AND EXISTS (SELECT 1 FROM all_process P WHERE {own}
        AND "timestamp" BETWEEN P."start" AND coalesce(P."end", {2**63 - 1})))"""  # noqa: S608 - escaped by `literal`


def _format_inside(start: str, duration: str | None, span: TimeSpan) -> str:
    if duration is None or span.straddle is Straddle.STARTING:
        return f'("{start}" >= {span.begin_ns} AND "{start}" < {span.end_ns})'
    end = f'"{start}" + "{duration}"'
    if span.straddle is Straddle.CONTAINED:
        return f'("{start}" >= {span.begin_ns} AND "{start}" < {span.end_ns} AND {end} <= {span.end_ns})'
    return f'("{start}" < {span.end_ns} AND ({end} > {span.begin_ns} OR "{start}" >= {span.begin_ns}))'


def _format_clipped(start: str, duration: str, span: TimeSpan) -> dict[str, str]:
    begin, end = span.begin_ns, span.end_ns
    cut_start = f'CASE WHEN "{start}" < {begin} THEN {begin} ELSE "{start}" END'
    cut_end = f'CASE WHEN "{start}" + "{duration}" > {end} THEN {end} ELSE "{start}" + "{duration}" END'
    return {start: cut_start, duration: f"({cut_end}) - ({cut_start})"}


def is_marker(bound: str) -> bool:
    """Return True where a bound names a marker, which has to be looked up in the traces."""
    return bound.startswith("@")


def is_absolute(bound: str) -> bool:
    """Return True where a bound needs no other time to be resolved."""
    return bool(bound) and not is_marker(bound) and not bound.endswith("%") and _RELATIVE.fullmatch(bound) is None


def resolve_moment(bound: str, first_ns: int, last_ns: int) -> int:
    """Resolve a bound that is no marker to nanoseconds, in a run from `first_ns` to `last_ns`."""
    match = _RELATIVE.fullmatch(bound)
    try:
        if match:
            offset = round(float(match[2]) * _UNITS[match[3]])
            return first_ns + offset if match[1] == "+" else last_ns - offset
        if bound.endswith("%"):
            return first_ns + round((last_ns - first_ns) * float(bound[:-1]) / 100)
        if bound.isdecimal():
            return int(bound)
        return _parse_absolute(bound)
    except ValueError:
        raise DashboardError(
            f"{bound!r:.60} is not a time. Use 2026-11-21T03:15:00Z, nanoseconds, +2.5s, -2.5s, 25% or @marker."
        ) from None


def _parse_absolute(text: str) -> int:
    """Parse ISO 8601 to nanoseconds; UTC where it names no zone."""
    match = re.fullmatch(r"(.*?)(\.[0-9]+)?(Z|[+-][0-9]{2}:?[0-9]{2})?", text)
    # apart, as datetime keeps microseconds only
    whole, fraction, zone = match.groups() if match else (text, None, None)
    parsed = datetime.datetime.fromisoformat(whole)
    if zone and zone != "Z":
        parsed = datetime.datetime.strptime(whole + zone.replace(":", ""), "%Y-%m-%dT%H:%M:%S%z")
    aware = parsed if parsed.tzinfo else parsed.replace(tzinfo=datetime.UTC)
    since = aware - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    return (since.days * 86400 + since.seconds) * 10**9 + round(float(fraction or 0) * 1e9)
