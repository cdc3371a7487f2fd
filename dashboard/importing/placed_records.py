"""Records in the columns of apache/tvm#4304, and TVM's benchmark log format v0.1: JSON lines, or a JSON list.

Those that `records export` wrote name experiment, night and TVM. Others are put into nights by their timestamps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from dashboard.importing import parsed
from dashboard.importing.parsed import ImportFormat, ImportReading, ParsedNight, Role, Table, fields
from dashboard.importing.source import File
from tvmdash import common, records
from tvmdash.errors import DashboardError
from tvmdash.records.exchange import IMPORTED, PlacedRecord, find_nights, parse_rows

COLUMNS: Table = {
    **fields(Role.IDENTITY, " ".join(records.IDENTITY)),
    **fields(Role.MACHINE, "env_name hw_model"),
    **fields(Role.VERSION, "engine_version"),
    **fields(Role.VALUE, "execution_elapsed_ms_mean"),
    **fields(Role.NOTE, "execution_elapsed_ms_std execution_config additional_info"),
    **fields(Role.FORM, "timestamp schema_version"),
}
"""An unknown column is an error: the format is our own."""
_OURS, _LOG = b'"execution_elapsed_ms_mean"', b'"runtime_ms_mean"'


def _owns(file: File) -> bool:
    is_json = file.name.suffix in {".json", ".jsonl", ".ndjson"}
    return is_json and (_OURS in file.content or _LOG in file.content) and b'"records"' not in file.content[:4096]


def _read(file: File, reading: ImportReading) -> Iterator[ParsedNight]:
    experiment = reading.experiment or IMPORTED
    nights: dict[tuple[str, str, str], list[PlacedRecord]] = {}
    for row in find_nights(parse_rows(_list_values(file), file.name.name, experiment)):
        nights.setdefault((row.experiment, row.night, row.tvm_hash), []).append(row)
    for (experiment, night, tvm_hash), rows in nights.items():
        pins, environment = rows[0].pins, rows[0].environment
        if any((row.pins, row.environment) != (pins, environment) for row in rows):
            raise DashboardError(f"{experiment}, {night}: would mix records of different configs or machines.")
        content = parsed.make_data([row.record.to_json() for row in rows])
        yield ParsedNight(
            experiment,
            common.parse_stamp(night),
            tvm_hash,
            {**content, **({"environment": dict(environment)} if environment else {})},
            part=f"{experiment}/{night}/{tvm_hash}" if len(nights) > 1 else "",
            parts=len(nights),
            night=pins,
        )


def _list_values(file: File) -> Iterable[Any]:
    try:
        value = file.json()
    except DashboardError:
        lines = enumerate(file.content.splitlines(), start=1)
        return [common.parse_json(line, f"line {number}") for number, line in lines if line.strip()]
    return value if isinstance(value, list) else [value]


FORMAT = ImportFormat("records", _owns, _read)
