"""The benchmark log format v0.1 of TVM's documentation (docs/arch/benchmark.rst), to records and from them.

What it has no field for travels in its `metadata`, so that a record comes back as it was. A foreign entry becomes a
record thus: a workload without a domain gets `network.`; a text of `engine_config.tvm_target` is the target; where it
gives no raw times the mean stands for the median, which the record says as a doubt; a deviation
that it does not give is null.
"""

from __future__ import annotations

import datetime
import re
import statistics
from collections.abc import Mapping
from typing import Any

from tvmdash import common, records
from tvmdash.errors import DashboardError
from tvmdash.records.description import SAMPLES
from tvmdash.records.exchange.rows import NO_MEDIAN, PlacedRecord

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
