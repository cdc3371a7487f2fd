"""airspeed velocity's result directories (result version 2): MACHINE/COMMIT-ENVIRONMENT.json, one night for each file.

The night's moment is the commit's date, as in asv's own graphs. Times become records; what asv tells in other units is
left out, and said.
"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dashboard.importing.parsed import (
    ImportFormat,
    ImportReading,
    ParsedNight,
    check_mapping,
    describe_stated,
    make_data,
    parse_number,
    parse_numbers,
    record,
    reduce_samples,
)
from dashboard.importing.source import File
from tvmdash.errors import DashboardError

VERSION = 2
_SECONDS_TO_MS = 1000.0
_TIMED = ("time_", "timeraw_", "Time", "TimeRaw")


def _owns(file: File) -> bool:
    return file.name.suffix == ".json" and b'"commit_hash"' in file.content and b'"results"' in file.content


def _read(file: File, reading: ImportReading) -> Iterator[ParsedNight]:
    value = check_mapping(file.json())
    if value.get("version") != VERSION:
        raise DashboardError(
            f"$.version: {value.get('version')!r:.40} is not {VERSION}. Run `asv update` on a copy first."
        )
    milliseconds, columns = parse_number(value.get("date")), value.get("result_columns")
    if milliseconds is None or not isinstance(columns, list):
        raise DashboardError("$.date or $.result_columns is missing; this is not an asv result file.")
    moment = _moment(milliseconds)
    named = _read_parameter_names(file)
    parsed: list[dict[str, Any]] = []
    other, without = [], 0
    for name, row in sorted(check_mapping(value.get("results")).items()):
        if not name.rpartition(".")[2].startswith(_TIMED):
            other.append(name)
        elif isinstance(row, list):
            result = dict(zip(map(str, columns), row, strict=False))
            points = list(_read_points(result, named.get(name, [])))
            without += sum(measured is None for _, measured in points)
            parsed += [
                record(moment, measured, workload=f"asv.{name}", workload_args=args, **_columns(value))
                for args, measured in points
                if measured is not None
            ]
    left_out = [f"{len(other)} benchmarks that are not times"] if other else []
    left_out += [f"{without} points without a result (failed or skipped)"] if without else []
    commit = str(value.get("commit_hash", ""))
    yield ParsedNight("asv", moment, commit, make_data(parsed), left_out=tuple(left_out))


def _moment(milliseconds: float) -> datetime.datetime:
    try:
        return datetime.datetime.fromtimestamp(milliseconds // 1000, datetime.UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise DashboardError(f"$.date: {milliseconds} is not a time in milliseconds since 1970.") from error


def _columns(value: Mapping[str, Any]) -> dict[str, Any]:
    """What a file says of all its results."""
    machine = check_mapping(value.get("params"))
    return {
        "engine": "asv",
        "engine_version": str(value.get("commit_hash", "")),
        "engine_config": {"python": value.get("python"), "requirements": check_mapping(value.get("requirements"))},
        "env_name": str(machine.get("machine", "")),
        "hw_model": str(machine.get("cpu", "")),
        "runtime_config": check_mapping(value.get("env_vars")),
        "info": {"asv_environment": value.get("env_name"), "machine": machine},
    }


def _read_parameter_names(file: File) -> dict[str, list[str]]:
    """The names of each benchmark's parameters, which asv keeps beside the machines' folders in benchmarks.json."""
    beside = file.near("../benchmarks.json")
    try:
        benchmarks = check_mapping(beside.json()) if beside else {}
    except DashboardError:
        return {}  # the parameters go by their numbers then
    lists = ((name, check_mapping(benchmark).get("param_names")) for name, benchmark in benchmarks.items())
    return {name: [str(parameter) for parameter in known] for name, known in lists if isinstance(known, list)}


def _read_points(
    result: Mapping[str, Any], named: Sequence[str]
) -> Iterator[tuple[dict[str, str], dict[str, Any] | None]]:
    """Parameters and measured times of each point; None where asv has none."""
    given = result.get("params")
    params = (
        [list(map(str, options)) for options in given if isinstance(options, list)] if isinstance(given, list) else []
    )
    values = result.get("result")
    combinations: Sequence[tuple[str, ...]] = list(itertools.islice(itertools.product(*params), 100_000))
    for index, combination in enumerate(combinations):
        numbered = [f"param{position}" for position in range(1, len(combination) + 1)]
        called = named if len(named) == len(set(named)) == len(combination) else numbered
        args = dict(zip(called, combination, strict=True))
        yield args, _read_measured(result, values, index)


def _read_measured(result: Mapping[str, Any], values: object, index: int) -> dict[str, Any] | None:
    def at(name: str) -> Any:
        column = result.get(name)
        return column[index] if isinstance(column, list) and index < len(column) else None

    seconds = parse_number(values[index]) if isinstance(values, list) and index < len(values) else None
    if seconds is None:
        return None
    samples = [sample * _SECONDS_TO_MS for sample in parse_numbers(at("samples"))]
    measured = (
        reduce_samples(samples)
        if samples
        else describe_stated(seconds * _SECONDS_TO_MS, median_ms=seconds * _SECONDS_TO_MS)
    )
    interval = [parse_number(at(name)) for name in ("stats_ci_99_a", "stats_ci_99_b")]
    known = [bound * _SECONDS_TO_MS for bound in interval if bound is not None]
    repeat = parse_number(at("stats_repeat"))
    more = {"execution_elapsed_ms_ci_99": known} if len(known) == len(interval) else {}
    count = {"samples": int(repeat)} if repeat and repeat >= 1 and not samples else {}
    return {**measured, "info": {**measured["info"], **more, **count}}


FORMAT = ImportFormat("asv", "asv result directories", _owns, _read)
