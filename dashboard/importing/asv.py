"""airspeed velocity's result directories: MACHINE/COMMIT-ENVIRONMENT.json; the files of one commit are one night.

The night's moment is the commit's date, as in asv's own graphs. A benchmark whose version changed is another series,
as for asv itself.
"""

from __future__ import annotations

import datetime
import functools
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dashboard.importing import parsed
from dashboard.importing.parsed import ImportField, ImportFormat, ImportReading, ParsedNight, Role, Table, fields, place
from dashboard.importing.source import File
from tvmdash.errors import DashboardError

FILE: Table = {
    "commit_hash": ImportField(Role.VERSION, ("engine_version",), str),
    "env_name": ImportField(Role.NOTE, ("additional_info", "asv_environment")),
    "params": ImportField(Role.MACHINE, ("additional_info", "machine"), parsed.check_mapping),
    **fields(Role.IDENTITY, "python requirements", "engine_config"),
    "env_vars": ImportField(Role.IDENTITY, ("runtime_config",), parsed.check_mapping),
    "durations": ImportField(Role.NOTE, ("additional_info", "asv_durations")),
    **fields(Role.FORM, "date result_columns results version"),
}
MACHINE: Table = {
    "machine": ImportField(Role.MACHINE, ("env_name",), str),
    "cpu": ImportField(Role.MACHINE, ("hw_model",), str),
}
"""The fields of `params` with columns of their own: the others are notes."""
BENCHMARK: Table = {
    **fields(Role.VALUE, "result"),
    **fields(Role.IDENTITY, "params"),
    "version": ImportField(
        Role.VERSION, ("workload_args", "benchmark_version"), lambda version: str(version)[:_DIGITS]
    ),
    "started_at": ImportField(Role.NOTE, ("additional_info", "asv_started_at")),
    "duration": ImportField(Role.NOTE, ("additional_info", "asv_duration_s")),
    **fields(Role.NOTE, "profile"),
}
POINT: Table = {
    **fields(Role.VALUE, "samples"),
    **fields(Role.NOTE, "stats_ci_99_a stats_ci_99_b stats_repeat"),
    "stats_q_25": ImportField(Role.NOTE, ("additional_info", "execution_elapsed_ms_q_25"), parsed.to_ms),
    "stats_q_75": ImportField(Role.NOTE, ("additional_info", "execution_elapsed_ms_q_75"), parsed.to_ms),
    "stats_number": ImportField(Role.NOTE, ("execution_config", "number")),
}
"""Lists with a value for each combination of parameters."""
_ROW: Table = {**fields(Role.FORM, " ".join(POINT)), **BENCHMARK}
_VERSION = 2
_DIGITS = 12
_MOST_POINTS = 100_000
_OWN: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "time": ("", {}),
    "memory": ("memory", {"unit": "bytes", "direction": "lower"}),
    "peakmemory": ("peak_memory", {"unit": "bytes", "direction": "lower"}),
    "track": ("tracked", {}),
}
"""The name of a number that is no time, by type. asv does not say which way is the better of a tracked one."""
_PREFIX = re.compile(r"(?:timeraw|time|peakmem|mem|track)_|(?:TimeRaw|Time|PeakMem|Mem|Track)(?=[A-Z_])")
_TYPES = {"time": "time", "timeraw": "time", "mem": "memory", "peakmem": "peakmemory", "track": "track"}


def _owns(file: File) -> bool:
    return file.name.suffix == ".json" and b'"commit_hash"' in file.content and b'"results"' in file.content


def _read(file: File, reading: ImportReading) -> Iterator[ParsedNight]:
    value = parsed.check_mapping(file.json())
    if value.get("version") != _VERSION:
        raise DashboardError(f"$.version: {value.get('version')!r:.40} is not 2. Run `asv update` on a copy first.")
    milliseconds, names = parsed.parse_number(value.get("date")), value.get("result_columns")
    if milliseconds is None or not isinstance(names, list):
        raise DashboardError("$.date or $.result_columns is missing; this is not an asv result file.")
    moment, unknown = _moment(milliseconds), set[str]()
    of_file = place(FILE, value, unknown=unknown, at="$.")
    of_file = parsed.record(moment, of_file, place(MACHINE, parsed.check_mapping(value.get("params"))))
    described = _parse_benchmarks(file.near("../benchmarks.json"))
    left_out: Counter[str] = Counter()
    found = []
    for name, row in sorted(parsed.check_mapping(value.get("results")).items()):
        if not isinstance(row, list):
            raise DashboardError(f"$.results.{name:.60}: {type(row).__name__} is not a list.")
        result = dict(zip(map(str, names), row, strict=False))
        of_benchmark = place(_ROW, result, unknown=unknown, at="$.results[*].")
        kind = _Kind.of(name, parsed.check_mapping(described.get(name)))
        if kind is None:
            left_out["benchmarks of a type that asv has not"] += 1
            continue
        whole = parsed.merge(of_file, of_benchmark, {"workload": f"asv.{name}", "engine": "asv"})
        for args, measured in _read_points(result, kind):
            if measured is None:
                left_out["points without a result (failed or skipped)"] += 1
            else:
                found.append(parsed.merge(whole, {"workload_args": args}, measured))
    yield ParsedNight(
        "asv",
        moment,
        str(value.get("commit_hash", "")),
        parsed.make_data(found),
        part=of_file["env_name"],
        left_out=parsed.format_left_out(left_out),
        unknown=frozenset(unknown),
        joins="",
    )


def _moment(milliseconds: float) -> datetime.datetime:
    try:
        return datetime.datetime.fromtimestamp(milliseconds // 1000, datetime.UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise DashboardError(f"$.date: {milliseconds} is not a time in milliseconds since 1970.") from error


@dataclass(frozen=True)
class _Kind:
    """The result of a benchmark: a time, where `own` is empty, else a number of that name; and its parameters."""

    own: str
    declared: Mapping[str, str]
    parameters: Sequence[str]

    @classmethod
    def of(cls, name: str, described: Mapping[str, Any]) -> _Kind | None:
        """Classify by asv's benchmarks.json, else by the name's beginning, as asv does; None of an unknown type."""
        match = _PREFIX.match(name.rpartition(".")[2])
        kind = str(described.get("type") or (_TYPES[match[0].rstrip("_").lower()] if match else ""))
        if kind not in _OWN:
            return None
        own, declared = _OWN[kind]
        unit, parameters = described.get("unit"), described.get("param_names")
        stated = {"unit": str(unit)} if own and unit else {}
        return cls(own, {**stated, **declared}, list(map(str, parameters)) if isinstance(parameters, list) else [])

    def columns(self, value: float, point: Mapping[str, Any]) -> dict[str, Any]:
        if self.own:
            return parsed.describe_own(self.own, value, **self.declared)
        samples = [parsed.to_ms(sample) for sample in parsed.parse_numbers(point.get("samples"))]
        median = parsed.to_ms(value)
        measured = parsed.reduce_samples([samples]) if samples else parsed.describe_stated(median, median_ms=median)
        interval = [parsed.parse_number(point.get(name)) for name in ("stats_ci_99_a", "stats_ci_99_b")]
        known = [parsed.to_ms(bound) for bound in interval if bound is not None]
        repeat = parsed.parse_number(point.get("stats_repeat"))
        count = {"samples": int(repeat)} if repeat and repeat >= 1 and not samples else {}
        bounds = {"execution_elapsed_ms_ci_99": known} if len(known) == len(interval) else {}
        return parsed.merge(place(POINT, point), measured, {"additional_info": {**count, **bounds}})


@functools.lru_cache(maxsize=2)
def _parse_benchmarks(beside: File | None) -> Mapping[str, Any]:
    """Read asv's description of the benchmarks, in benchmarks.json beside the machines' folders."""
    try:
        return parsed.check_mapping(beside.json()) if beside else {}
    except DashboardError:
        return {}  # the parameters go by their numbers then


def _read_points(result: Mapping[str, Any], kind: _Kind) -> Iterator[tuple[dict[str, str], dict[str, Any] | None]]:
    """Parameters and columns of each point; None where asv has no result."""
    given = result.get("params")
    lists = given if isinstance(given, list) else []
    params = [list(map(str, options)) for options in lists if isinstance(options, list)]
    values = result.get("result")
    if not isinstance(values, list | None):
        raise DashboardError(f"$.results[*].result: {type(values).__name__} is not a list.")
    named = kind.parameters
    columns = {name: item for name, item in result.items() if name in POINT and isinstance(item, list)}
    for index, combination in enumerate(itertools.islice(itertools.product(*params), _MOST_POINTS)):
        numbered = [f"param{position}" for position in range(1, len(combination) + 1)]
        called = named if len(named) == len(set(named)) == len(combination) else numbered
        args = dict(zip(called, combination, strict=True))
        value = parsed.parse_number(values[index]) if isinstance(values, list) and index < len(values) else None
        if value is None:
            yield args, None
        else:
            point = {name: item[index] for name, item in columns.items() if index < len(item)}
            yield args, kind.columns(value, point)


FORMAT = ImportFormat("asv", _owns, _read)
