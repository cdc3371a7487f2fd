"""pyperf's JSON: one night for each file, one record for each benchmark, each run a process.

The night's moment is the start of the first run, which pyperf writes in local time.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from dashboard.importing import parsed
from dashboard.importing.parsed import ImportField, ImportFormat, ImportReading, ParsedNight, Role, Table, fields, place
from dashboard.importing.source import File
from tvmdash.errors import DashboardError

_NOTES = """
    aslr cpu_affinity cpu_config cpu_count cpu_machine platform timer boot_time python_cflags python_compiler
    python_config_args python_executable python_hash_seed python_gc perf_version performance_version commit_id
    commit_branch commit_date
"""
_NOT_KEPT = """
    python_unicode cpu_freq cpu_temp runnable_threads uptime duration mem_max_rss mem_peak_pagefile_usage
    command_max_rss calibrate_loops recalibrate_loops calibrate_warmups recalibrate_warmups
"""
METADATA: Table = {
    "name": ImportField(Role.IDENTITY, ("workload",), lambda name: f"pyperf.{name or 'unnamed'}"),
    **fields(Role.VERSION, "timeit_stmt timeit_setup timeit_teardown", "workload_args"),
    "hostname": ImportField(Role.MACHINE, ("env_name",), str),
    "cpu_model_name": ImportField(Role.MACHINE, ("hw_model",), str),
    "python_implementation": ImportField(Role.IDENTITY, ("engine",), lambda name: str(name) or "python"),
    "python_version": ImportField(Role.VERSION, ("engine_version",), str),
    **fields(Role.FORM, "unit date"),
    "load_avg_1min": ImportField(Role.NOTE, ("additional_info", "load_before"), lambda load: {"load_1_min": load}),
    **fields(Role.NOTE, "loops inner_loops timeit_duplicate command description tags", "execution_config"),
    **fields(Role.NOTE, _NOTES, "additional_info"),
    **fields(Role.NOTE, _NOT_KEPT),
}
"""The metadata of a suite, a benchmark or a run; notes of the moment are not kept."""
RUN: Table = {**fields(Role.VALUE, "values samples"), **fields(Role.NOTE, "warmups"), **fields(Role.FORM, "metadata")}
"""`samples` is what `values` was called before version 6."""
_VERSIONS = (5, 6, "1.0")
_OWN: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "byte": ("memory", {"unit": "bytes", "direction": "lower"}),
    "integer": ("count", {}),
}
"""The numbers of benchmarks whose unit is not the second."""


def _owns(file: File) -> bool:
    return file.name.suffix == ".json" and b'"benchmarks"' in file.content and b'"runs"' in file.content


def _read(file: File, reading: ImportReading) -> Iterator[ParsedNight]:
    value = parsed.check_mapping(file.json())
    benchmarks = parsed.check_objects(value.get("benchmarks"))
    if value.get("version") not in _VERSIONS:
        known = ", ".join(map(str, _VERSIONS))
        raise DashboardError(f"$.version: {value.get('version')!r:.40} is not one of {known}.")
    moment, unknown = _moment(benchmarks, reading), set[str]()
    left_out: Counter[str] = Counter()
    found = []
    for benchmark in benchmarks:
        metadata, runs = _read_metadata(value, benchmark), _runs(benchmark)
        for run in runs:
            place(RUN, run, unknown=unknown, at="$.benchmarks[*].runs[*].")
        processes = [parsed.parse_numbers(run.get("values", run.get("samples"))) for run in runs]
        unit = metadata.get("unit", "second")
        measured = _measure(str(unit), [values for values in processes if values])
        if measured is None:
            left_out["benchmarks without values" if unit in {"second", *_OWN} else f"benchmarks in {unit!r:.40}"] += 1
            continue
        named = {"workload": "pyperf.unnamed", "engine": "python"}
        of_it = place(METADATA, metadata, unknown=unknown, at="$.metadata.")
        found.append(parsed.record(moment, named, of_it, {"execution_config": {"runs": len(runs)}}, measured))
    yield ParsedNight(
        "pyperf",
        moment,
        "",
        parsed.make_data(found),
        left_out=parsed.format_left_out(left_out),
        unknown=frozenset(unknown),
        formerly=file.name.stem,
    )


def _runs(benchmark: Mapping[str, Any]) -> list[dict[str, Any]]:
    return parsed.check_objects(benchmark.get("runs"))


def _read_metadata(value: Mapping[str, Any], benchmark: Mapping[str, Any]) -> dict[str, Any]:
    """Merge the metadata for all runs of a benchmark: the suite's, then the benchmark's, then its first run's."""
    own = benchmark.get("metadata", benchmark.get("common_metadata"))
    first = next((parsed.check_mapping(run.get("metadata")) for run in _runs(benchmark)), {})
    return {**first, **parsed.check_mapping(value.get("metadata")), **parsed.check_mapping(own)}


def _measure(unit: str, processes: list[list[float]]) -> dict[str, Any] | None:
    if not processes:
        return None
    if unit == "second":
        return parsed.reduce_samples([[parsed.to_ms(seconds) for seconds in values] for values in processes])
    if unit not in _OWN:
        return None
    name, declared = _OWN[unit]
    every = [value for values in processes for value in values]
    return parsed.describe_own(name, sum(every) / len(every), **declared)


def _moment(benchmarks: list[dict[str, Any]], reading: ImportReading) -> datetime.datetime:
    dates = [
        parsed.check_mapping(run.get("metadata")).get("date") for benchmark in benchmarks for run in _runs(benchmark)
    ]
    known = sorted(date for date in dates if isinstance(date, str))
    try:
        return reading.moment(datetime.datetime.fromisoformat(known[0]))
    except (ValueError, IndexError) as error:
        raise DashboardError("$.benchmarks[*].runs[*].metadata.date: no run has a start time.") from error


FORMAT = ImportFormat("pyperf", _owns, _read)
