"""uwsampl/relay-bench's data_MM-DD-YYYY-HHMM.json: nested means, for later nights with `detailed` and `tvm_hash`.

Stamps are of the writer's local time. The means, in seconds, become series by their path, as they were; `detailed`
(mean, median and standard deviation of the same) is kept with the night and makes series only where there are no means.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator

from dashboard.importing.parsed import ImportFormat, ImportReading, ParsedNight, check_mapping
from dashboard.importing.source import File
from tvmdash import records
from tvmdash.errors import DashboardError

STAMP_FORMAT = "%m-%d-%Y-%H%M"
_NAME = re.compile(r"data_([0-9]{2}-[0-9]{2}-[0-9]{4}-[0-9]{4})\.json")
_BESIDE = ("start_time", "end_time", "time_delta", "run_cpu_telemetry", "run_gpu_telemetry", "success")


def _owns(file: File) -> bool:
    return _NAME.fullmatch(file.name.name) is not None


def parse_stamp(text: str, reading: ImportReading) -> datetime.datetime:
    """The UTC moment of the ancestor's stamp."""
    try:
        return reading.moment(datetime.datetime.strptime(text, STAMP_FORMAT))  # noqa: DTZ007 - its zone is the reading's
    except ValueError as error:
        raise DashboardError(f"{text!r:.40} is not a timestamp like 08-02-2019-0315.") from error


def _read(file: File, reading: ImportReading) -> Iterator[ParsedNight]:
    match = _NAME.fullmatch(file.name.name)
    value = file.json()
    if match is None or not isinstance(value, dict):
        raise DashboardError(f"$: {type(value).__name__} is not an object with numbers in it.")
    stamp = value.get("timestamp", match[1])
    if stamp != match[1]:
        raise DashboardError(f"$.timestamp: {stamp!r:.40} does not match {match[1]} in the file name.")
    beside = {name: value[name] for name in (*_BESIDE, "detailed") if name in value}
    content = {name: item for name, item in value.items() if name not in {*beside, "timestamp", "tvm_hash", "night"}}
    if not any(records.numeric_leaves(content)):
        content = {"detailed": check_mapping(beside.pop("detailed", {}))}
    if not any(records.numeric_leaves(content)) or "records" in content:
        raise DashboardError("contains no numbers in nested objects.")
    hash_ = value.get("tvm_hash")
    yield ParsedNight(
        file.name.parent.name,
        parse_stamp(match[1], reading),
        hash_ if isinstance(hash_, str) else "",
        content,
        kept=beside,
    )


FORMAT = ImportFormat("relay-bench", "relay-bench's data_MM-DD-YYYY-HHMM.json", _owns, _read)
