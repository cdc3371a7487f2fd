"""Google Benchmark's JSON: one night for each file, one record for each benchmark and number of threads, in real time.

Where repetitions are given they are the samples, else the library's own mean, median and standard deviation.
"""

from __future__ import annotations

import contextlib
import datetime
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from dashboard.importing import parsed
from dashboard.importing.parsed import ImportField, ImportFormat, ImportReading, ParsedNight, Role, Table, fields, place
from dashboard.importing.source import File
from tvmdash.errors import DashboardError


def _whole(value: object) -> int | None:
    number = parsed.parse_number(value)
    return None if number is None else int(number)


CONTEXT: Table = {
    **fields(Role.FORM, "date executable json_schema_version"),
    "host_name": ImportField(Role.MACHINE, ("env_name",), str),
    "num_cpus": ImportField(Role.MACHINE, ("hw_model",), lambda cores: f"{_whole(cores) or 'unknown'} cores"),
    **fields(Role.NOTE, "mhz_per_cpu cpu_scaling_enabled aslr_enabled caches", "additional_info"),
    "load_avg": ImportField(
        Role.NOTE, ("additional_info", "load_before"), lambda load: {"load_avg": load} if load else None
    ),
    "library_version": ImportField(Role.VERSION, ("engine_version",), str),
    **fields(Role.IDENTITY, "library_build_type", "build_config"),
}
"""mhz_per_cpu is the clock at that moment: it does not tell machines apart."""
_MEMORY = {
    "allocs_per_iter": "allocations",
    **dict.fromkeys(("max_bytes_used", "total_allocated_bytes", "net_heap_growth"), "bytes"),
}
ROW: Table = {
    **fields(Role.IDENTITY, "name run_name label"),
    "threads": ImportField(Role.IDENTITY, ("workload_args", "threads"), _whole),
    "iterations": ImportField(Role.NOTE, ("execution_config", "number"), _whole),
    "repetitions": ImportField(Role.NOTE, ("execution_config", "repeat"), _whole),
    **fields(Role.VALUE, " ".join(("real_time", *_MEMORY))),
    **fields(Role.NOTE, "cpu_time"),
    **fields(
        Role.FORM, "family_index per_family_instance_index run_type repetition_index aggregate_name aggregate_unit"
    ),
    **fields(Role.FORM, "time_unit error_occurred error_message skipped skip_message"),
    **fields(Role.FORM, "big_o cpu_coefficient real_coefficient rms"),
}
"""Any other field of a row is a counter that the benchmark's author named: a note, kept with the record."""
_TO_MS = {"ns": -6, "us": -3, "ms": 0, "s": 3}
"""The powers of ten."""
_DATES = ("%Y-%m-%d %H:%M:%S", "%Y/%m/%d-%H:%M:%S", "%m/%d/%y %H:%M:%S", "%Y/%m/%d %H:%M:%S")
"""The formats before 1.5.2: local time, on Windows by `%x %X` of the C locale."""
_TAIL = re.compile(r"_(mean|median|stddev|cv|BigO|RMS)$")
_TAKEN = ("mean", "median", "stddev")
_Row = Mapping[str, Any]


def _owns(file: File) -> bool:
    return file.name.suffix == ".json" and b'"benchmarks"' in file.content and b'"context"' in file.content


def _read(file: File, reading: ImportReading) -> Iterator[ParsedNight]:
    value = parsed.check_mapping(file.json())
    context = parsed.check_mapping(value.get("context"))
    moment, unknown = _moment(context.get("date"), reading), set[str]()
    columns = place(CONTEXT, context, unknown=unknown, at="$.context.")
    if unknown:  # what `AddCustomContext` added
        others = {name: item for name, item in context.items() if name not in CONTEXT}
        columns = parsed.merge(columns, {"additional_info": {"context": others}})
    rows = parsed.check_objects(value.get("benchmarks"))
    left_out: Counter[str] = Counter()
    failed = [row for row in rows if row.get("error_occurred")]
    left_out["benchmarks that were skipped"] = sum(bool(row.get("skipped")) for row in rows)
    measured = [row for row in rows if not row.get("error_occurred") and not row.get("skipped")]
    found = []
    for more, group in _group(measured):
        times = _read_times(group, left_out)
        if times is None:
            left_out["benchmarks without a real time"] += 1
        else:
            named = {"workload": _name_workload(group[0]), "engine": "google_benchmark"}
            args = {"workload_args": {"threads": 1, **more}}
            of_row = parsed.merge(named, args, place(ROW, group[0]), _read_beside(group))
            found.append(parsed.record(moment, columns, of_row, times))
    failures = [
        {"workload": _name_workload(row), "values": {}, "error": str(row.get("error_message") or "error_occurred")}
        for row in failed
    ]
    executable = PurePosixPath(str(context.get("executable", ""))).name
    yield ParsedNight(
        executable or "google_benchmark",
        moment,
        "",
        parsed.make_data(found, failures),
        left_out=parsed.format_left_out(left_out),
        unknown=frozenset(unknown),
        formerly=executable or file.name.stem,
    )


def _moment(date: object, reading: ImportReading) -> datetime.datetime:
    text = str(date)
    if "T" in text:
        with contextlib.suppress(ValueError):
            return reading.moment(datetime.datetime.fromisoformat(text))
    for style in _DATES:
        with contextlib.suppress(ValueError):
            return reading.moment(datetime.datetime.strptime(text, style))  # noqa: DTZ007 - its zone is the reading's
    remedy = "Write it as 2026-01-31T03:15:00+00:00."
    raise DashboardError(f"$.context.date: {date!r:.40} is not a date that Google Benchmark writes. {remedy}")


def _name(row: _Row) -> str:
    return str(row.get("run_name") or _TAIL.sub("", str(row.get("name", ""))) or "unnamed")


def _name_workload(row: _Row) -> str:
    return f"google_benchmark.{_name(row)}"


def _group(rows: Sequence[_Row]) -> Iterator[tuple[dict[str, Any], list[_Row]]]:
    """Yield the rows of each benchmark, with what tells it from others of one name, which the library allows.

    Their labels do where each has its own, else their order: from the second on `instance` is its number. So the
    first is as it was before there was another.
    """
    same: dict[tuple[str, int], dict[object, list[_Row]]] = {}
    for row in rows:
        instances = same.setdefault((_name(row), _whole(row.get("threads")) or 1), {})
        instances.setdefault(_find_instance(row, instances), []).append(row)
    for instances in same.values():
        labels = {str(group[0].get("label") or "") for group in instances.values()}
        for number, group in enumerate(instances.values(), start=1):
            if len(instances) == 1:
                yield {}, group
            elif len(labels) == len(instances) and "" not in labels:
                yield {"label": str(group[0]["label"])}, group
            else:
                yield {"instance": number} if number > 1 else {}, group


def _find_instance(row: _Row, instances: Mapping[object, Sequence[_Row]]) -> object:
    """Return the key that the rows of one benchmark share: its index in the file; before 1.5.3 its label.

    There a repetition that is there already is another benchmark's.
    """
    index = (row.get("family_index"), row.get("per_family_instance_index"))
    if index != (None, None):
        return index
    label, which = _find_repetition(row)
    same = (_find_repetition(other) for group in instances.values() for other in group)
    return label, sum(other == (label, which) for other in same) if which is not None else 0


def _find_repetition(row: _Row) -> tuple[str, object]:
    return str(row.get("label") or ""), _find_aggregate(row) or row.get("repetition_index")


def _find_aggregate(row: _Row) -> str | None:
    """Return the statistic that a row holds; None for a measurement."""
    match = _TAIL.search(str(row.get("name", "")))
    if row.get("run_type") == "aggregate":
        return str(row.get("aggregate_name"))
    return match[1] if match and "run_type" not in row else None


def _read_times(group: Sequence[_Row], left_out: Counter[str]) -> dict[str, Any] | None:
    samples, known = [], {}
    for row in group:
        time, unit = parsed.parse_number(row.get("real_time")), _TO_MS.get(str(row.get("time_unit", "ns")))
        kind = _find_aggregate(row)
        if kind not in (None, *_TAKEN):
            left_out[f"aggregates `{kind}`"] += 1
        elif time is not None and unit is not None and kind is None:
            samples.append(parsed.to_ms(time, unit))
        elif time is not None and unit is not None:
            known[kind] = parsed.to_ms(time, unit)
    if samples:
        return parsed.reduce_samples([samples])
    if "mean" not in known:
        return None
    return parsed.describe_stated(known["mean"], std_ms=known.get("stddev"), median_ms=known.get("median"))


def _read_beside(group: Sequence[_Row]) -> dict[str, Any]:
    """Read the CPU time, memory and counters, each as the mean of the repetitions or the library's own."""
    means = [row for row in group if _find_aggregate(row) is None] or [
        row for row in group if _find_aggregate(row) == "mean"
    ]
    numbers: dict[str, list[float]] = {}
    for row in means:
        for name, item in row.items():
            if (number := parsed.parse_number(item)) is not None and (name in _MEMORY or name not in ROW):
                numbers.setdefault(name, []).append(number)
        cpu, unit = parsed.parse_number(row.get("cpu_time")), _TO_MS.get(str(row.get("time_unit", "ns")))
        if cpu is not None and unit is not None:
            numbers.setdefault("cpu_time_ms", []).append(parsed.to_ms(cpu, unit))
    kept = {name: sum(each) / len(each) for name, each in numbers.items()}
    own = [
        parsed.describe_own(name, kept.pop(name), unit=unit, direction="lower")
        for name, unit in _MEMORY.items()
        if name in kept
    ]
    return parsed.merge(*own, {"additional_info": {"counters": kept} if kept else {}})


FORMAT = ImportFormat("google-benchmark", _owns, _read)
