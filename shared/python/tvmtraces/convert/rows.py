"""Events as rows of one table: CSV, JSON lines, Parquet.

`kind` is "slice" or "counter"; a column that does not apply is empty. Times are integer nanoseconds since 1970.
"""

from __future__ import annotations

import csv
import io
import json
import math
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any

from tvmdash.errors import DashboardError
from tvmtraces.convert.events import Batch, Counters, Event, Slices, batches, combine, format_json
from tvmtraces.convert.events import names as make_names
from tvmtraces.convert.parts import Files, Written

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
        lines = [",".join(COLUMNS) + "\n"] if batch is None else _format_csv(batch)
        file.write("".join(lines).encode())

    return _write(destination, events, write)


def _format_csv(batch: Batch) -> list[str]:
    if isinstance(batch, Slices):
        places, texts = combine(batch.process, batch.lane, batch.category, batch.name)
        heads = [_quote_csv("slice", *row) for row in texts]
        tails = [f",,,{_quote_csv(text)}\n" if text else ",,,\n" for text in _format_details(batch)]
        spans = zip(places.tolist(), batch.start_ns.tolist(), batch.duration_ns.tolist(), tails, strict=True)
        return [f"{heads[place]},{start},{duration}{tail}" for place, start, duration, tail in spans]
    places, texts = combine(batch.process, batch.name, batch.unit)
    ends = [(_quote_csv("counter", process, "", "", name), _quote_csv(unit)) for process, name, unit in texts]
    values = zip(places.tolist(), batch.timestamp_ns.tolist(), batch.value.tolist(), strict=True)
    return [f"{ends[place][0]},{moment},,{value!r},{ends[place][1]},\n" for place, moment, value in values]


def _quote_csv(*texts: str) -> str:
    line = io.StringIO(newline="")
    csv.writer(line, lineterminator="\n").writerow(texts)
    return line.getvalue()[:-1] if texts != ("",) else ""


def _format_details(batch: Slices) -> list[str]:
    """The details of each slice as JSON, nothing where it has none."""
    if not batch.details:
        return [""] * len(batch)
    return [format_json(detail) if detail else "" for detail in batch.details]


def write_json_lines(destination: Path, events: Iterable[Event]) -> Written:
    """Write one JSON object a line, without what does not apply; DashboardError leaves nothing behind."""

    def write(file: IO[bytes], batch: Batch | None) -> None:
        if batch is not None:
            file.write("".join(_format_json_lines(batch)).encode())

    return _write(destination, events, write)


def _format_json_lines(batch: Batch) -> list[str]:
    if isinstance(batch, Slices):
        names = ("process", "lane", "category", "name")
        places, texts = combine(batch.process, batch.lane, batch.category, batch.name)
        heads = [format_json({"kind": "slice", **dict(zip(names, row, strict=True))})[:-1] for row in texts]
        tails = [f', "details": {text}}}\n' if text else "}\n" for text in _format_details(batch)]
        spans = zip(places.tolist(), batch.start_ns.tolist(), batch.duration_ns.tolist(), tails, strict=True)
        return [
            f'{heads[place]}, "start_ns": {start}, "duration_ns": {duration}{tail}'
            for place, start, duration, tail in spans
        ]
    places, texts = combine(batch.process, batch.name, batch.unit)
    ends = [
        (format_json({"kind": "counter", "process": process, "name": name})[:-1], format_json(unit))
        for process, name, unit in texts
    ]
    lines = []
    for place, moment, value in zip(places.tolist(), batch.timestamp_ns.tolist(), batch.value.tolist(), strict=True):
        told = f', "value": {value!r}' if math.isfinite(value) else ""  # JSON has no word for the others
        lines.append(f'{ends[place][0]}, "start_ns": {moment}{told}, "unit": {ends[place][1]}}}\n')
    return lines


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
                arrays, selection = _make_arrays(batch)
                database.register("batch", arrays)
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
    database.execute("SET threads = 1")  # each further one would hold row groups of its own
    return database


def _format_literal(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def _make_arrays(batch: Batch) -> tuple[dict[str, Any], str]:
    """The batch's numbers as DuckDB reads them, and the selection that makes columns of them: texts by their codes."""
    import numpy

    if isinstance(batch, Slices):
        texts = {"process": batch.process, "lane": batch.lane, "category": batch.category, "name": batch.name}
        texts["details"] = make_names(_format_details(batch))
        numbers: dict[str, Any] = {"start_ns": batch.start_ns, "duration_ns": batch.duration_ns}
    else:
        texts = {"process": batch.process, "name": batch.name, "unit": batch.unit}
        numbers = {"start_ns": batch.timestamp_ns, "value": batch.value}
    chosen = {"kind": "'slice'" if isinstance(batch, Slices) else "'counter'"}
    arrays: dict[str, Any] = {name: numpy.ascontiguousarray(column) for name, column in numbers.items()}
    for name, column in texts.items():
        arrays[name] = numpy.ascontiguousarray(column.codes)
        pool = json.dumps(list(column.pool)).replace("'", "''")
        chosen[name] = f"""(SELECT from_json('{pool}', '["VARCHAR"]'))["{name}" + 1]"""
        if name == "details":
            chosen[name] = f"nullif({chosen[name]}, '')"
    chosen |= {name: f'"{name}"' for name in numbers}
    listed = (f'CAST({chosen.get(name, "NULL")} AS {kind}) AS "{name}"' for name, kind in COLUMNS.items())
    return arrays, ", ".join(listed)


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
