"""File formats for the exchange of records: one visible row for each.

The benchmark log format v0.1 of TVM's documentation (docs/arch/benchmark.rst) lacks fields, so that the rest travels in
its `metadata` and a record comes back as it was. A foreign entry becomes a record thus: a workload without a domain
gets `network.`; a text of `engine_config.tvm_target` is the target; without raw times the mean stands for the median,
which the record says as a doubt; a missing deviation is null.
"""

from __future__ import annotations

import datetime
import json
import os
import re
import statistics
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvmdash import common, records
from tvmdash.errors import DashboardError
from tvmdash.records.description import SAMPLES
from tvmdash.records.exchange.rows import IMPORTED, NO_MEDIAN, PlacedRecord, find_nights

VERSION = "0.1"
_DOMAIN = re.compile(r"[^.\s]+\..+", re.DOTALL)
_OURS, _IMAGE = "tvmdash", ("docker_tag", "docker_hash")
_MAPPINGS = (
    "metadata", "workload_args", "workload_metadata", "engine_config", "compilation_config", "software_config",
    "runtime_config", "hardware_config", "execution_config", "metrics",
)  # fmt: skip
_METRICS = {
    "validation_accuracy": "accuracy",
    "compile_time": "compilation_ms_mean",
    "code_size": "code_size",
    "device_memory_usage": "device_memory_usage",
}


def to_log(row: PlacedRecord) -> dict[str, Any]:
    """Return the record as an entry of the log."""
    record = row.record
    info = dict(record.additional_info)
    moment = row.moment
    metrics = {theirs: info[ours] for ours, theirs in _METRICS.items() if info.get(ours) is not None}
    rest = {**row.origin(), "timestamp": record.timestamp}
    return {
        "workload": record.workload,
        "engine": record.engine,
        "hardware": record.hw_model,
        "runtime_ms_mean": record.execution_elapsed_ms_mean,
        "runtime_ms_std": record.execution_elapsed_ms_std,
        "timestamp": moment.strftime("%Y%m%d%H%M%S"),
        "schema_version": VERSION,
        "metadata": {**{name: info.get(name) for name in _IMAGE}, _OURS: {**rest, "additional_info": info}},
        "workload_args": dict(record.workload_args),
        "workload_metadata": {},
        "engine_version": record.engine_version,
        "engine_config": {**record.engine_config, "tvm_target": record.target},
        "compilation_config": dict(record.build_config),
        "software_config": {},
        "runtime_config": dict(record.runtime_config),
        "hardware_config": {"env_name": record.env_name},
        "execution_config": dict(record.execution_config),
        "metrics": metrics,
        "runtime_raw": [{"runtime_ms": time} for process in info.get(SAMPLES, ()) for time in process],
    }


def from_log(entry: Mapping[str, Any], experiment: str) -> PlacedRecord:
    """Parse an entry; `experiment` is whose it is, where the entry does not say.

    DashboardError names the place in it.
    """
    parts = {name: _mapping(entry, name) for name in _MAPPINGS}
    if str(entry.get("schema_version")) != VERSION:
        raise DashboardError(f"$.schema_version: {entry.get('schema_version')!r:.40} is not {VERSION!r}.")
    ours = parts["metadata"].get(_OURS)
    ours = ours if isinstance(ours, dict) else {}
    moment = _moment(entry.get("timestamp"))
    mean, std = _number(entry, "runtime_ms_mean"), entry.get("runtime_ms_std")
    workload = _text(entry, "workload")
    target = parts["engine_config"].get("tvm_target", "")
    columns = {
        "timestamp": ours.get("timestamp", moment.isoformat().replace("+00:00", "Z")),
        "schema_version": records.SCHEMA_VERSION,
        "additional_info": ours.get("additional_info") or _info(entry, parts, mean),
        "workload": workload if _DOMAIN.fullmatch(workload) else f"network.{workload}",
        "workload_args": parts["workload_args"],
        "engine": _text(entry, "engine"),
        "engine_version": str(entry.get("engine_version", "")),
        "engine_config": {name: item for name, item in parts["engine_config"].items() if name != "tvm_target"},
        "target": target if isinstance(target, str) else str(target),
        "build_config": parts["compilation_config"],
        "env_name": str(parts["hardware_config"].get("env_name", "")),
        "hw_model": _text(entry, "hardware"),
        "runtime_config": parts["runtime_config"],
        "execution_config": parts["execution_config"],
        "execution_elapsed_ms_mean": mean,
        "execution_elapsed_ms_std": None if std is None else _number(entry, "runtime_ms_std"),
    }
    origin = {
        "experiment": ours.get("experiment", experiment),
        "night": ours.get("night", common.stamp_of(moment)),
        "tvm_hash": ours.get("tvm_hash", columns["engine_version"]),
        **{name: ours[name] for name in ("pins", "environment") if name in ours},
    }
    return PlacedRecord.from_json({**origin, **columns})


def _info(entry: Mapping[str, Any], parts: Mapping[str, Mapping[str, Any]], mean: float) -> dict[str, Any]:
    """Return additional_info from a foreign entry's fields beyond the columns."""
    metadata, metrics = parts["metadata"], parts["metrics"]
    info = {name: metadata.get(name) for name in _IMAGE}
    info |= {ours: metrics[theirs] for ours, theirs in _METRICS.items() if theirs in metrics}
    info |= {name: parts[name] for name in ("workload_metadata", "software_config", "hardware_config") if parts[name]}
    raw = entry.get("runtime_raw")
    times = [run["runtime_ms"] for run in raw or [] if isinstance(run, dict) and _is_number(run.get("runtime_ms"))]
    if times:
        median = statistics.median(times)
        return {**info, "execution_elapsed_ms_median": median, "samples": len(times), SAMPLES: [times]}
    return {**info, "execution_elapsed_ms_median": mean, "doubts": [NO_MEDIAN]}


def _moment(value: object) -> datetime.datetime:
    """Parse fourteen digits, as in the documentation's example, or seconds since 1970, as in its table; both UTC."""
    text = str(value)
    try:
        if re.fullmatch(r"[0-9]{14}", text):
            return datetime.datetime.strptime(text, "%Y%m%d%H%M%S").replace(tzinfo=datetime.UTC)
        return datetime.datetime.fromtimestamp(float(text), datetime.UTC).replace(microsecond=0)
    except (ValueError, OverflowError, OSError) as error:
        raise DashboardError(f"$.timestamp: {value!r:.40} is neither 20191123003411 nor seconds since 1970.") from error


def _mapping(entry: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = entry.get(name, {})
    if not isinstance(value, dict):
        raise DashboardError(f"$.{name}: {type(value).__name__} is not an object.")
    return value


def _text(entry: Mapping[str, Any], name: str) -> str:
    value = entry.get(name)
    if not isinstance(value, str) or not value:
        raise DashboardError(f"$.{name}: {value!r:.60} is not a string, which the log format requires.")
    return value


def _number(entry: Mapping[str, Any], name: str) -> float:
    value = entry.get(name)
    if value is None or not _is_number(value):
        raise DashboardError(f"$.{name}: {value!r:.60} is not a number, which the log format requires.")
    return float(value)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_OBJECTS = frozenset((
    "additional_info", "workload_args", "engine_config", "build_config", "runtime_config", "execution_config", "pins",
    "environment",
))  # fmt: skip
_COLUMNS = {
    **dict.fromkeys(("experiment", "night", "tvm_hash", "timestamp"), "VARCHAR"),
    "schema_version": "BIGINT",
    **dict.fromkeys(("additional_info", "workload", "workload_args", "engine", "engine_version"), "VARCHAR"),
    **dict.fromkeys(("engine_config", "target", "build_config", "env_name", "hw_model"), "VARCHAR"),
    **dict.fromkeys(("runtime_config", "execution_config"), "VARCHAR"),
    **dict.fromkeys(("execution_elapsed_ms_mean", "execution_elapsed_ms_std"), "DOUBLE"),
    **dict.fromkeys(("pins", "environment"), "VARCHAR"),
}
"""Columns in Parquet; objects are JSON."""
_ADDED = frozenset(("experiment", "night", "tvm_hash", "pins", "environment"))
"""Columns that apache/tvm#4304 does not have."""


_DTYPES = {"VARCHAR": "object", "BIGINT": "int64", "DOUBLE": "float64"}


@dataclass(frozen=True)
class Format:
    """A format: its description, its writer to a path that does not exist, and its reader."""

    about: str
    write: Callable[[Path, Iterable[PlacedRecord]], int]
    read: Callable[[Path, str], Iterator[PlacedRecord]]


def named_format(path: Path) -> str | None:
    """Return the format that the file's name ends with, as in records.parquet, or None."""
    return next((name for name in FORMATS if path.name.lower().endswith(f".{name}")), None)


def find_format(path: Path) -> str:
    """Return the format that the file's name ends with, else jsonl."""
    return named_format(path) or "jsonl"


def write_records(path: Path, rows: Iterable[PlacedRecord], style: str) -> int:
    """Write records to `path`, which does not exist yet, whole or not at all; return their number."""
    if path.exists():
        raise DashboardError(f"{path}: already exists. Give a new file name.")
    if not path.parent.is_dir():
        raise DashboardError(f"{path.parent}: no such folder. Create it first.")
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name[:100]}.", suffix=".tmp", dir=path.parent)
    os.close(descriptor)
    beside = Path(name)
    try:
        count = FORMATS[style].write(beside, rows)
        # mkstemp makes a file for its owner alone
        beside.chmod(0o644)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return count


def read_records(path: Path, style: str, experiment: str = IMPORTED) -> Iterator[PlacedRecord]:
    """Read the records in a file; DashboardError names file, row and place. `experiment` is for rows that name none."""
    return find_nights(FORMATS[style].read(path, experiment))


def _write_json(path: Path, rows: Iterable[PlacedRecord]) -> int:
    values = [row.to_json() for row in rows]
    common.write_json(path, values)
    return len(values)


def _read_json(path: Path, experiment: str) -> Iterator[PlacedRecord]:
    yield from parse_rows(_read_entries(path), str(path), experiment)


def _write_lines(path: Path, rows: Iterable[PlacedRecord]) -> int:
    return _write_each(path, (row.to_json() for row in rows))


def _write_each(path: Path, values: Iterable[Mapping[str, Any]]) -> int:
    count = 0
    with path.open("w", encoding="utf-8", errors="replace") as file:
        for value in values:
            file.write(json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n")
            count += 1
    return count


def _read_lines(path: Path, experiment: str) -> Iterator[PlacedRecord]:
    yield from parse_rows(_read_lines_of(path), str(path), experiment)


def _write_log(path: Path, rows: Iterable[PlacedRecord]) -> int:
    """Write the records that are times: the format has no place for another number."""
    return _write_each(path, (to_log(row) for row in rows if row.record.execution_elapsed_ms_mean is not None))


def _read_entries(path: Path) -> Iterator[common.Json]:
    """Read a list, one object over lines, as the documentation of the log format prints it, or one object a line."""
    try:
        value = common.read_json(path)
    except DashboardError:
        yield from _read_lines_of(path)
    else:
        yield from value if isinstance(value, list) else [value]


def _read_lines_of(path: Path) -> Iterator[common.Json]:
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield common.parse_json(line, f"{path}: line {number}")
    except OSError as error:
        raise DashboardError(f"{path}: cannot be read: {error.strerror}.") from error


def parse_rows(values: Iterable[common.Json], where: str, experiment: str = IMPORTED) -> Iterator[PlacedRecord]:
    """Parse objects of our own or of the log format; DashboardError names the row and the place in it."""
    for number, value in enumerate(values, start=1):
        try:
            if not isinstance(value, dict):
                raise DashboardError(f"$: {type(value).__name__} is not an object.")
            parse = from_log if "runtime_ms_mean" in value else PlacedRecord.from_json
            yield parse(value, experiment)
        except DashboardError as error:
            raise DashboardError(f"{where}: record {number}: {error}") from error


def _write_parquet(path: Path, rows: Iterable[PlacedRecord]) -> int:
    import numpy

    table = [row.to_json() for row in rows]
    arrays: dict[str, Any] = {}
    for name, kind in _COLUMNS.items():
        values = [json.dumps(row[name], sort_keys=True) if name in _OBJECTS else row[name] for row in table]
        arrays[name] = numpy.array(values, dtype=_DTYPES[kind])
    database = _import_duckdb()
    try:
        database.register("rows", arrays)
        chosen = ", ".join(f'CAST({_known(name)} AS {kind}) AS "{name}"' for name, kind in _COLUMNS.items())
        selection = f"SELECT {chosen} FROM rows"  # noqa: S608 - our own names
        database.execute(f"COPY ({selection}) TO {_format_literal(path)} (FORMAT parquet, COMPRESSION zstd)")
    finally:
        database.close()
    return len(table)


def _known(name: str) -> str:
    """Return a column of the arrays as SQL: NaN, which stands for null there, becomes NULL."""
    return f'CASE WHEN isnan("{name}") THEN NULL ELSE "{name}" END' if _COLUMNS[name] == "DOUBLE" else f'"{name}"'


def _read_parquet(path: Path, experiment: str) -> Iterator[PlacedRecord]:
    database = _import_duckdb()
    try:
        rows_of = f"FROM read_parquet({_format_literal(path)})"
        there = {str(row[0]) for row in database.execute(f"DESCRIBE SELECT * {rows_of}").fetchall()}
        names = [name for name in _COLUMNS if name in there or name not in _ADDED]
        columns = ", ".join(f'"{name}"' for name in names)
        fetched = database.execute(f"SELECT {columns} {rows_of}").fetchall()
    except Exception as error:
        raise DashboardError(f"{path}: not a Parquet file of records: {error}") from error
    finally:
        database.close()
    rows = (dict(zip(names, row, strict=True)) for row in fetched)
    where = f"{path}: an object of a record"
    parse = common.parse_json
    values = ({k: parse(str(v).encode(), where) if k in _OBJECTS else v for k, v in row.items()} for row in rows)
    yield from parse_rows(values, str(path), experiment)


def _import_duckdb() -> Any:
    try:
        import duckdb
    except ImportError as error:
        message = "Parquet needs the package duckdb, which is not installed. Choose another format."
        raise DashboardError(message) from error
    # an exchange of files must not download anything
    return duckdb.connect(":memory:", config={"autoinstall_known_extensions": "false"})


def _format_literal(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


FORMATS: Mapping[str, Format] = {
    "json": Format("one JSON list of records", _write_json, _read_json),
    "jsonl": Format("a JSON object a line", _write_lines, _read_lines),
    "parquet": Format("Parquet, objects as JSON texts", _write_parquet, _read_parquet),
    "tvm-0.1": Format("the benchmark log format v0.1 of TVM's documentation, an entry a line", _write_log, _read_json),
}
