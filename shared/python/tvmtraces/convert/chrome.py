"""Chrome's trace event format in JSON, which chrome://tracing, Perfetto and Speedscope open.

Its times are microseconds as decimal numbers, which viewers read as doubles; so they count from the first event, which
`otherData.base_ns` tells.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

from tvmtraces.convert.events import Counters, Event, Flow, Slices, batches, combine, format_json
from tvmtraces.convert.lanes import Lanes
from tvmtraces.convert.parts import Files, Written

if TYPE_CHECKING:
    from tvmtraces.convert.events import Ints


def write_chrome(destination: Path, events: Iterable[Event], *, flows: Iterable[Flow] = ()) -> Written:
    """Write a trace to `place`, which is not there yet; DashboardError leaves nothing behind.

    One batch of events is held at a time, beside the flows. A counter's NaN or infinity is left out.
    """
    counted = {Slices: 0, Counters: 0}
    with Files(destination) as files:
        trace = _Trace(files.new(), flows)
        for batch in batches(events):
            counted[type(batch)] += len(batch)
            trace.add(batch)
        trace.close()
        paths = files.finish()
    return Written(paths, counted[Slices], counted[Counters])


class _Trace:
    """The file, event by event."""

    def __init__(self, file: IO[bytes], flows: Iterable[Flow]) -> None:
        self._file = file
        self._base_ns: int | None = None
        self._lanes = Lanes()
        self._pids: dict[str, int] = {}
        self._told = 0
        self._separator = ""
        self._starting: dict[int, list[int]] = {}
        self._ending: dict[int, list[int]] = {}
        for number, flow in enumerate(flows, start=1):
            self._starting.setdefault(flow.source, []).append(number)
            self._ending.setdefault(flow.target, []).append(number)
        file.write(b'{"displayTimeUnit":"ns","traceEvents":[')

    def add(self, batch: Slices | Counters) -> None:
        """Write a batch."""
        if not len(batch):
            return
        if self._base_ns is None:
            self._base_ns = int((batch.start_ns if isinstance(batch, Slices) else batch.timestamp_ns).min())
        lines = self._write_slices(batch) if isinstance(batch, Slices) else self._write_counters(batch)
        text = ",\n".join(lines)
        if text:
            self._file.write(f"{self._separator}\n{text}".encode())
            self._separator = ","

    def close(self) -> None:
        """Write the end."""
        self._file.write(f'\n],"otherData":{{"base_ns":"{self._base_ns or 0}"}}}}\n'.encode())

    def _format_moment(self, moment_ns: int) -> str:
        """Microseconds from the first event on."""
        return _format_microseconds(moment_ns - (self._base_ns or 0))

    def _write_slices(self, batch: Slices) -> Iterator[str]:
        batch, placed = self._lanes.place(batch)
        yield from self._new_tracks()
        kinds, texts = combine(batch.name, batch.category)
        heads = [f'{{"ph":"X","name":{_quote(name)},"cat":{_quote(category)},' for name, category in texts]
        tracks = [
            f'"pid":{self._pids[track.process]},"tid":{number},"ts":'
            for number, track in enumerate(self._lanes.tracks, start=1)
        ]
        starts, durations = batch.start_ns - (self._base_ns or 0), batch.duration_ns
        rows = zip(kinds.tolist(), placed.tolist(), _format_column(starts), _format_column(durations), strict=True)
        rich = self._find_rich(batch)
        for row, (kind, track, start, duration) in enumerate(rows):
            if row not in rich:
                yield f'{heads[kind]}{tracks[track]}{start},"dur":{duration}}}'
                continue
            detail = batch.details[row] if batch.details else {}
            more = f',"args":{format_json(detail)}' if detail else ""
            yield f'{heads[kind]}{tracks[track]}{start},"dur":{duration}{more}}}'
            if batch.id is not None:
                yield from self._write_flow_ends(int(batch.id[row]), f"{tracks[track]}{start}")
            if batch.arrow is not None and batch.arrow[row]:
                yield _format_arrow(int(batch.arrow[row]), f"{tracks[track]}{start}")

    def _find_rich(self, batch: Slices) -> set[int]:
        """The rows with flows, arrows or details."""
        import numpy

        rows = {row for row, details in enumerate(batch.details or ()) if details}
        return rows.union(*(numpy.flatnonzero(kind).tolist() for kind in (batch.id, batch.arrow) if kind is not None))

    def _write_flow_ends(self, number: int, position: str) -> Iterator[str]:
        for flow in self._starting.get(number, ()):
            yield f'{{"ph":"s","name":"flow","cat":"flow","id":{flow},{position}}}'
        for flow in self._ending.get(number, ()):
            yield f'{{"ph":"f","bp":"e","name":"flow","cat":"flow","id":{flow},{position}}}'

    def _write_counters(self, batch: Counters) -> Iterator[str]:
        columns = (batch.process.texts(), batch.name.texts(), batch.unit.texts())
        rows = zip(*columns, batch.timestamp_ns.tolist(), batch.value.tolist(), strict=True)
        for process, name, unit, moment, value in rows:
            if not math.isfinite(value):  # JSON has no word for it
                continue
            yield from self._new_process(process)
            shown = _quote(f"{name} [{unit}]" if unit else name)
            known = json.dumps({unit or "value": value})
            position = f'"pid":{self._pids[process]},"ts":{self._format_moment(moment)}'
            yield f'{{"ph":"C","name":{shown},{position},"args":{known}}}'

    def _new_tracks(self) -> Iterator[str]:
        for number in range(self._told, len(self._lanes.tracks)):
            track = self._lanes.tracks[number]
            yield from self._new_process(track.process)
            yield _format_metadata("thread_name", self._pids[track.process], number + 1, track.title)
        self._told = len(self._lanes.tracks)

    def _new_process(self, process: str) -> Iterator[str]:
        if process not in self._pids:
            self._pids[process] = len(self._pids) + 1
            yield _format_metadata("process_name", self._pids[process], 0, process)


def _format_arrow(number: int, position: str) -> str:
    """The begin of an arrow, or the end of one whose number is negative."""
    kind = '"s"' if number > 0 else '"f","bp":"e"'
    return f'{{"ph":{kind},"name":"launch","cat":"launch","id":"0x{abs(number):x}",{position}}}'


def _format_metadata(kind: str, pid: int, tid: int, name: str) -> str:
    return f'{{"ph":"M","name":"{kind}","pid":{pid},"tid":{tid},"args":{{"name":{_quote(name)}}}}}'


def _quote(text: str) -> str:
    return json.dumps(text)


def _format_column(elapsed_ns: Ints) -> list[str]:
    """Nanoseconds as microseconds, exactly, row by row."""
    import numpy

    signs = numpy.where(elapsed_ns < 0, "-", "").tolist()
    whole, rest = numpy.divmod(numpy.abs(elapsed_ns), 1000)
    return [
        f"{sign}{front}.{behind:03}" for sign, front, behind in zip(signs, whole.tolist(), rest.tolist(), strict=True)
    ]


def _format_microseconds(elapsed_ns: int) -> str:
    """Nanoseconds as microseconds, exactly."""
    sign = "-" if elapsed_ns < 0 else ""
    whole, rest = divmod(abs(elapsed_ns), 1000)
    return f"{sign}{whole}.{rest:03}"
