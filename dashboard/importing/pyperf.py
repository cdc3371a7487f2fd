"""pyperf's JSON (version 1.0): one night for each file, one record for each benchmark in seconds.

The night's moment is the start of the first run, which pyperf writes in local time.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from typing import Any

from dashboard.importing.parsed import (
    ImportFormat,
    ImportReading,
    ParsedNight,
    check_mapping,
    check_objects,
    make_data,
    parse_number,
    parse_numbers,
    record,
    reduce_samples,
)
from dashboard.importing.source import File
from tvmdash.errors import DashboardError

_SECONDS_TO_MS = 1000.0
_CONFIG = ("loops", "inner_loops", "timeit_stmt", "timeit_setup", "command", "description")


def _owns(file: File) -> bool:
    return file.name.suffix == ".json" and b'"benchmarks"' in file.content and b'"runs"' in file.content


def _read(file: File, reading: ImportReading) -> Iterator[ParsedNight]:
    value = check_mapping(file.json())
    benchmarks = check_objects(value.get("benchmarks"))
    if not str(value.get("version", "")).startswith("1."):
        raise DashboardError(f"$.version: {value.get('version')!r:.40} is not 1.0.")
    top = check_mapping(value.get("metadata"))
    moment = _moment(benchmarks, reading)
    parsed, other = [], 0
    for benchmark in benchmarks:
        metadata = {**top, **check_mapping(benchmark.get("metadata"))}
        times = [seconds * _SECONDS_TO_MS for run in _runs(benchmark) for seconds in parse_numbers(run.get("values"))]
        if metadata.get("unit", "second") != "second" or not times:
            other += 1
        else:
            parsed.append(_record(moment, metadata, times, len(_runs(benchmark))))
    left_out = (f"{other} benchmarks without values in seconds",) if other else ()
    yield ParsedNight(file.name.stem, moment, "", make_data(parsed), left_out=left_out)


def _runs(benchmark: Mapping[str, Any]) -> list[dict[str, Any]]:
    return check_objects(benchmark.get("runs"))


def _moment(benchmarks: list[dict[str, Any]], reading: ImportReading) -> datetime.datetime:
    dates = [check_mapping(run.get("metadata")).get("date") for benchmark in benchmarks for run in _runs(benchmark)]
    known = sorted(date for date in dates if isinstance(date, str))
    try:
        return reading.moment(datetime.datetime.fromisoformat(known[0]))
    except (ValueError, IndexError) as error:
        raise DashboardError("$.benchmarks[*].runs[*].metadata.date: no run has a start time.") from error


def _record(moment: datetime.datetime, metadata: Mapping[str, Any], times: list[float], runs: int) -> dict[str, Any]:
    def text(name: str) -> str:
        return str(metadata.get(name, ""))

    config = {name: metadata[name] for name in _CONFIG if name in metadata}
    load = parse_number(metadata.get("load_avg_1min"))
    return record(
        moment,
        reduce_samples(times),
        workload=f"pyperf.{metadata.get('name') or 'unnamed'}",
        engine=text("python_implementation") or "python",
        engine_version=text("python_version"),
        env_name=text("hostname"),
        hw_model=text("cpu_model_name"),
        execution_config={**config, "runs": runs},
        info={"load_before": {"load_1_min": load}} if load is not None else {},
    )


FORMAT = ImportFormat("pyperf", "pyperf's JSON", _owns, _read)
