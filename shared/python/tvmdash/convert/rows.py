"""Events as rows of one table: CSV, JSON lines, Parquet.

`kind` is "slice" or "counter"; a column that does not apply is empty. Times are integer nanoseconds since 1970.
"""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from tvmdash.convert.events import Batch, Counters, Event, Slices, batches, format_json
from tvmdash.convert.parts import Files, Written
from tvmdash.errors import DashboardError

COLUMNS = {
    "kind": "VARCHAR",
    "process": "VARCHAR",
    "lane": "VARCHAR",
    "category": "VARCHAR",
    "name": "VARCHAR",
    "start_ns": "BIGINT",
    "duration_ns": "BIGINT",
    "value": "DOUBLE",
    "unit": "VARCHAR",
    "details": "VARCHAR",
}
"""The columns with their SQL types; `details` is JSON."""


def write_csv(destination: Path, events: Iterable[Event]) -> Written:
    """Write RFC 4180 CSV with a header, lines ended as in Unix; DashboardError leaves nothing behind."""

    def write(file: IO[bytes], batch: Batch | None) -> None:
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        if batch is None:
            writer.writerow(COLUMNS)
        else:
            writer.writerows(_make_rows(batch))
        file.write(text.getvalue().encode())

    return _write(destination, events, write)


def write_json_lines(destination: Path, events: Iterable[Event]) -> Written:
    """Write one JSON object a line, without what does not apply; DashboardError leaves nothing behind."""

    def write(file: IO[bytes], batch: Batch | None) -> None:
        for row in _make_rows(batch) if batch is not None else ():
            known = {name: value for name, value in zip(COLUMNS, row, strict=True) if value is not None}
            if "details" in known:
                known["details"] = json.loads(known["details"])
            file.write((json.dumps(_drop_non_finite(known), ensure_ascii=False) + "\n").encode())

    return _write(destination, events, write)


def write_parquet(destination: Path, events: Iterable[Event]) -> Written:
    """Write one Parquet file (zstd) with DuckDB; DashboardError leaves nothing behind.

    Batches lie in a folder beside `place` in the meantime.
    """
    counted = {Slices: 0, Counters: 0}
    with Files(destination) as files, tempfile.TemporaryDirectory(prefix=".parquet.", dir=destination.parent) as folder:
        database = _import_duckdb()
        try:
            for number, batch in enumerate(batches(events)):
                counted[type(batch)] += len(batch)
                database.register("batch", _make_arrays(batch))
                selection = ", ".join(_format_selected(name, kind) for name, kind in COLUMNS.items())
                target = _format_literal(Path(folder) / f"{number:08}.parquet")
                database.execute(f"COPY (SELECT {selection} FROM batch) TO {target} (FORMAT parquet)")  # noqa: S608
                database.unregister("batch")
            source = _parts(Path(folder))
            target = _format_literal(files.temporary())
            database.execute(f"COPY ({source}) TO {target} (FORMAT parquet, COMPRESSION zstd)")
        finally:
            database.close()
        paths = files.finish()
    return Written(paths, counted[Slices], counted[Counters])


def _parts(folder: Path) -> str:
    """The selection of all batches in order; an empty one with the same columns where there are none."""
    paths = sorted(folder.glob("*.parquet"))
    if paths:
        return f"SELECT * FROM read_parquet([{', '.join(map(_format_literal, paths))}])"  # noqa: S608 - quoted
    nothing = ", ".join(f'CAST(NULL AS {kind}) AS "{name}"' for name, kind in COLUMNS.items())
    return f"SELECT {nothing} WHERE false"


def _import_duckdb() -> Any:
    try:
        import duckdb
    except ImportError as error:
        message = "Parquet needs the package duckdb, which is not installed. Choose another format."
        raise DashboardError(message) from error
    database = duckdb.connect(":memory:")
    database.execute("SET preserve_insertion_order = true")
    return database


_ONLY_OF = {"duration_ns": "slice", "value": "counter"}


def _format_selected(name: str, kind: str) -> str:
    """A column of the registered batch; the numbers that stand where none apply become NULL."""
    own = f"CASE WHEN kind = '{_ONLY_OF[name]}' THEN \"{name}\" END" if name in _ONLY_OF else f'"{name}"'
    return f'CAST({own} AS {kind}) AS "{name}"'


def _format_literal(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def _make_arrays(batch: Batch) -> dict[str, Any]:
    """The batch's columns as DuckDB reads them."""
    import numpy

    columns = zip(*_make_rows(batch), strict=True) if len(batch) else [()] * len(COLUMNS)
    arrays: dict[str, Any] = {}
    for (name, kind), values in zip(COLUMNS.items(), columns, strict=True):
        dtype = {"VARCHAR": "object", "BIGINT": "int64", "DOUBLE": "float64"}[kind]
        filled = values if kind == "VARCHAR" else [0 if value is None else value for value in values]
        arrays[name] = numpy.array(filled, dtype=dtype)
    return arrays


def _write(destination: Path, events: Iterable[Event], write: Callable[[IO[bytes], Batch | None], None]) -> Written:
    """Have `write` write the beginning (None), then each batch."""
    counted = {Slices: 0, Counters: 0}
    with Files(destination) as files:
        file = files.new()
        write(file, None)
        for batch in batches(events):
            counted[type(batch)] += len(batch)
            write(file, batch)
        paths = files.finish()
    return Written(paths, counted[Slices], counted[Counters])


def _make_rows(batch: Batch) -> Iterator[tuple[Any, ...]]:
    """The batch's rows in the order of COLUMNS."""
    if isinstance(batch, Slices):
        texts_of_details = [format_json(detail) if detail else None for detail in batch.details or ()]
        texts = (column.texts() for column in (batch.process, batch.lane, batch.category, batch.name))
        numbers = (batch.start_ns.tolist(), batch.duration_ns.tolist())
        for *row, detail in zip(*texts, *numbers, texts_of_details or [None] * len(batch), strict=True):
            yield ("slice", *row, None, None, detail)
    else:
        columns = (batch.process.texts(), batch.name.texts(), batch.timestamp_ns.tolist(), batch.value.tolist())
        for process, name, moment, value, unit in zip(*columns, batch.unit.texts(), strict=True):
            yield ("counter", process, None, None, name, moment, None, value, unit, None)


def _drop_non_finite(row: dict[str, Any]) -> dict[str, Any]:
    """The row without a value that JSON cannot hold."""
    return {name: value for name, value in row.items() if not isinstance(value, float) or value - value == 0}
