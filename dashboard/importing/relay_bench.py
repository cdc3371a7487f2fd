"""uwsampl/relay-bench: its data_MM-DD-YYYY-HHMM.json, nested means, and the raw CSV that these were made of.

Stamps are of the writer's local time. The means, in seconds, become series by their path, as they were, so that the
experiment goes on where it runs here; `detailed` (mean, median and standard deviation of the same) is kept with the
night and makes series only where there are no means.
"""

from __future__ import annotations

import csv
import datetime
import io
import re
from collections.abc import Iterator, Mapping

from dashboard.importing import parsed
from dashboard.importing.parsed import ImportField, ImportFormat, ImportReading, ParsedNight, Role, Table, fields, place
from dashboard.importing.source import File
from tvmdash import records
from tvmdash.errors import DashboardError

DATA: Table = {
    **fields(Role.FORM, "timestamp"),
    **fields(Role.VERSION, "tvm_hash"),
    **fields(Role.NOTE, "detailed start_time end_time time_delta success run_cpu_telemetry run_gpu_telemetry"),
}
"""All else in the file is a value."""
METRICS = {"$.*": {"unit": "s", "direction": "lower", "kind": "time"}}
ROW: Table = {
    **fields(Role.IDENTITY, "network"),
    "device": ImportField(Role.IDENTITY, ("target",), str),
    **fields(Role.FORM, "rep run"),
    **fields(Role.VALUE, "time"),
}
"""The columns of a CSV file; others are parameters. `rep` counts inputs, `run` calls."""
_STAMP = "%m-%d-%Y-%H%M"
_NAME = re.compile(r"data_([0-9]{2}-[0-9]{2}-[0-9]{4}-[0-9]{4})\.json")
_FOLDER = re.compile(r"benchmarks_([0-9]{2}-[0-9]{2}-[0-9]{4}-[0-9]{4})")
_DOMAIN_BREAKS = re.compile(r"[.\s]")


def _parse_stamp(text: str, reading: ImportReading) -> datetime.datetime:
    try:
        return reading.moment(datetime.datetime.strptime(text, _STAMP))  # noqa: DTZ007 - its zone is the reading's
    except ValueError as error:
        raise DashboardError(f"{text!r:.40} is not a timestamp like 08-02-2019-0315.") from error


def _owns(file: File) -> bool:
    return _NAME.fullmatch(file.name.name) is not None


def _read(file: File, reading: ImportReading) -> Iterator[ParsedNight]:
    match = _NAME.fullmatch(file.name.name)
    value = file.json()
    if match is None or not isinstance(value, dict):
        raise DashboardError(f"$: {type(value).__name__} is not an object with numbers in it.")
    stamp = value.get("timestamp", match[1])
    if stamp != match[1]:
        raise DashboardError(f"$.timestamp: {stamp!r:.40} does not match {match[1]} in the file name.")
    beside = {name: item for name, item in value.items() if name in DATA and DATA[name].role is Role.NOTE}
    content = {name: item for name, item in value.items() if name not in {*DATA, "night", "metrics"}}
    if not any(records.numeric_leaves(content)):
        content = {"detailed": parsed.check_mapping(beside.pop("detailed", {}))}
    if not any(records.numeric_leaves(content)) or "records" in content:
        raise DashboardError("contains no numbers in nested objects.")
    hash_ = value.get("tvm_hash")
    yield ParsedNight(
        file.name.parent.name,
        _parse_stamp(match[1], reading),
        hash_ if isinstance(hash_, str) else "",
        {**content, "metrics": METRICS},
        kept=beside,
    )


def _find_stamp(file: File) -> str | None:
    matches = [match for folder in file.name.parts[:-2] if (match := _FOLDER.fullmatch(folder))]
    return matches[-1][1] if matches else None


def _owns_csv(file: File) -> bool:
    return file.name.suffix == ".csv" and "-" in file.name.stem and _find_stamp(file) is not None


def _read_csv(file: File, reading: ImportReading) -> Iterator[ParsedNight]:
    moment = _parse_stamp(_find_stamp(file) or "", reading)
    framework, _, task = file.name.stem.partition("-")
    groups, bad = _group_rows(file)
    found = []
    for key, times in groups.items():
        network, parameters = dict(key).get("network"), {name: item for name, item in key if name not in ROW}
        named = {
            "workload": f"network.{network}" if network else f"{_DOMAIN_BREAKS.sub('_', task) or 'task'}.{framework}",
            "workload_args": parameters,
            "engine": framework,
            "additional_info": {"task": task},
        }
        found.append(parsed.record(moment, named, place(ROW, dict(key)), parsed.reduce_samples([times])))
    if not found:
        raise DashboardError("contains no row with a time.")
    left_out = parsed.format_left_out({"rows without a time": bad})
    folder = file.name.parent
    yield ParsedNight(folder.name, moment, "", parsed.make_data(found), left_out=left_out, joins=str(folder))


def _group_rows(file: File) -> tuple[Mapping[tuple[tuple[str, str], ...], list[float]], int]:
    """Group the times in ms by parameters, and count the rows without one."""
    groups: dict[tuple[tuple[str, str], ...], list[float]] = {}
    bad = 0
    try:
        rows = csv.DictReader(io.StringIO(file.content.decode("utf-8"), newline=""))
        if "time" not in (rows.fieldnames or ()):
            raise DashboardError("has no header with a column `time`.")
        for row in rows:
            seconds = _parse_seconds(row.get("time"))
            if seconds is None:
                bad += 1
                continue
            known = ((name, item) for name, item in row.items() if name not in {"rep", "run", "time", None})
            key = tuple((str(name), str(item)) for name, item in known)
            groups.setdefault(key, []).append(parsed.to_ms(seconds))
    except (UnicodeDecodeError, csv.Error) as error:
        raise DashboardError(f"is not CSV: {error}") from error
    return groups, bad


def _parse_seconds(text: str | None) -> float | None:
    try:
        seconds = float(text or "")
    except ValueError:
        return None
    return seconds if 0 <= seconds < 1e9 else None


FORMAT = ImportFormat("relay-bench", _owns, _read)
CSV = ImportFormat("relay-bench-csv", _owns_csv, _read_csv)
