"""Google Benchmark's JSON: one night for each file, one record for each benchmark and number of threads, in real time.

Where repetitions are given they are the samples, else the library's own mean, median and standard deviation.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from dashboard.importing.parsed import (
    ImportFormat,
    ImportReading,
    ParsedNight,
    check_mapping,
    check_objects,
    describe_stated,
    make_data,
    parse_number,
    record,
    reduce_samples,
)
from dashboard.importing.source import File
from tvmdash.errors import DashboardError

_TO_MS = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3}
_OLD_DATE = "%Y/%m/%d-%H:%M:%S"
_TAIL = re.compile(r"_(mean|median|stddev|cv|BigO|RMS)$")


def _owns(file: File) -> bool:
    return file.name.suffix == ".json" and b'"benchmarks"' in file.content and b'"context"' in file.content


def _read(file: File, reading: ImportReading) -> Iterator[ParsedNight]:
    value = check_mapping(file.json())
    context = check_mapping(value.get("context"))
    moment = _moment(context.get("date"), reading)
    rows = check_objects(value.get("benchmarks"))
    groups: dict[tuple[str, int], list[dict[str, Any]]] = {}
    failures = []
    for row in rows:
        if row.get("error_occurred"):
            error = str(row.get("error_message", "")) or "error_occurred"
            failures.append({"workload": _name_workload(row), "values": {}, "error": error})
        else:
            groups.setdefault((_name(row), int(parse_number(row.get("threads")) or 1)), []).append(row)
    parsed, without = [], 0
    for (_, threads), group in groups.items():
        measured = _read_measured(group)
        if measured is None:
            without += 1
        else:
            parsed.append(_record(moment, context, group[0], threads, measured))
    left_out = (f"{without} benchmarks without a real time",) if without else ()
    executable = PurePosixPath(str(context.get("executable", ""))).name
    experiment = executable or file.name.stem
    yield ParsedNight(experiment, moment, "", make_data(parsed, failures), left_out=left_out)


def _moment(date: object, reading: ImportReading) -> datetime.datetime:
    text = str(date)
    try:
        parsed = datetime.datetime.fromisoformat(text) if "T" in text else _parse_old_date(text)
    except ValueError as error:
        raise DashboardError(f"$.context.date: {date!r:.40} is not a Google Benchmark date.") from error
    return reading.moment(parsed)


def _parse_old_date(text: str) -> datetime.datetime:
    return datetime.datetime.strptime(text, _OLD_DATE)  # noqa: DTZ007 - its zone is the reading's


def _name(row: Mapping[str, Any]) -> str:
    return str(row.get("run_name") or _TAIL.sub("", str(row.get("name", ""))) or "unnamed")


def _name_workload(row: Mapping[str, Any]) -> str:
    return f"google_benchmark.{_name(row)}"


def _find_aggregate(row: Mapping[str, Any]) -> str | None:
    """Which statistic a row is; None for a measurement."""
    match = _TAIL.search(str(row.get("name", "")))
    if row.get("run_type") == "aggregate":
        return str(row.get("aggregate_name"))
    return match[1] if match and "run_type" not in row else None


def _read_measured(group: list[dict[str, Any]]) -> dict[str, Any] | None:
    samples, known = [], {}
    for row in group:
        time, unit = parse_number(row.get("real_time")), _TO_MS.get(str(row.get("time_unit", "ns")))
        if time is None or unit is None:
            continue
        kind = _find_aggregate(row)
        if kind is None:
            samples.append(time * unit)
        else:
            known[kind] = time * unit
    if samples:
        return reduce_samples(samples)
    if "mean" not in known:
        return None
    return describe_stated(known["mean"], std_ms=known.get("stddev"), median_ms=known.get("median"))


def _record(
    moment: datetime.datetime,
    context: Mapping[str, Any],
    row: Mapping[str, Any],
    threads: int,
    measured: Mapping[str, Any],
) -> dict[str, Any]:
    cores, megahertz = parse_number(context.get("num_cpus")), parse_number(context.get("mhz_per_cpu"))
    iterations = parse_number(row.get("iterations"))
    return record(
        moment,
        measured,
        workload=_name_workload(row),
        workload_args={"threads": threads},
        engine="google_benchmark",
        engine_version=str(context.get("library_version", "")),
        build_config={"library_build_type": context.get("library_build_type")},
        env_name=str(context.get("host_name", "")),
        hw_model=f"{int(cores)} cores at {int(megahertz)} MHz" if cores and megahertz else "",
        execution_config={"number": int(iterations)} if iterations else {},
        info={"load_before": {"load_avg": context.get("load_avg")}} if context.get("load_avg") else {},
    )


FORMAT = ImportFormat("google-benchmark", "Google Benchmark's JSON", _owns, _read)
