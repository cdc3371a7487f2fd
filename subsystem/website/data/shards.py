"""The points of each series as column-wise JSON and as CSV; docs/reference/website-data.md describes both."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from files import forked
from files.incremental import IncrementalSite, fingerprint

from data.catalogue import Catalogue, Entry, Stores
from data.counting import Nights
from data.said import NOTHING_TOLD, Concerned, format_inside, make_tonight_part
from tvmdash.series.store import Series

SCHEMA_VERSION = 1
FOLDER = "series"
CSV_HEADER = "stamp,value,low,high,std,samples,tvm,machine,code"
_LEAST_IN_PROCESS = 100
"""Fewer shards are written sooner than a process is forked."""
_MANY_POINTS = 100_000
"""Fewer are read one by one sooner than numpy is loaded."""


@dataclass(frozen=True)
class _Shard:
    """The two files of a series' points from the stamp `since` on and before `until`, and what stands in them."""

    name: str
    entry: Entry
    nights: Nights
    since: str
    until: str
    points: int
    facts: str
    told: str
    made_from: str

    def files(self) -> tuple[str, str]:
        """JSON and CSV."""
        return f"{FOLDER}/{self.name}.json", f"{FOLDER}/{self.name}.csv"


def write_shards(catalogue: Catalogue, stores: Stores, carrier: IncrementalSite) -> None:
    """Bring series/ up to date: only series with a new point, or of which something else is said now, are written."""
    carrier.folder(FOLDER)
    shards = [shard for shard in _shards(catalogue) if not _carried(carrier, shard)]
    shards.sort(key=lambda shard: shard.entry.outline.experiment)
    many = sum(shard.points for shard in shards) >= _MANY_POINTS
    work = functools.partial(_write, stores=stores, carrier=carrier, many=many)
    for part in forked.in_parts(work, shards, least=_LEAST_IN_PROCESS):
        carrier.take_in(part)


def _shards(catalogue: Catalogue) -> Iterator[_Shard]:
    boundary, incidents = catalogue.boundary, Concerned.by(catalogue.alerts.incidents)
    for entry in catalogue.entries:
        nights = catalogue.experiments[entry.outline.experiment].nights
        facts, alerts = _facts(entry), make_tonight_part(catalogue, entry, incidents.of(entry))
        upto = nights.upto.get(entry.count.last_stamp, "")
        made_from = fingerprint(upto, str(entry.count.points), boundary, facts, alerts)
        recent = entry.count.points - entry.count.past
        yield _Shard(entry.id, entry, nights, boundary, "~", recent, facts, alerts, made_from)
        if entry.count.past:  # changes once a year, or when an old night is taken in
            upto = nights.upto.get(nights.last(boundary), "")
            made_from = fingerprint(upto, str(entry.count.past), boundary, facts)
            past = entry.count.past
            yield _Shard(f"{entry.id}.past", entry, nights, "", boundary, past, facts, NOTHING_TOLD, made_from)


def _carried(carrier: IncrementalSite, shard: _Shard) -> bool:
    return all(carrier.carry(file, shard.made_from) for file in shard.files())


def _write(shards: Sequence[_Shard], *, stores: Stores, carrier: IncrementalSite, many: bool) -> IncrementalSite:
    """Write them; in a process of its own if need be."""
    frames, written = _Frames(), carrier.part()
    sources: dict[tuple[str, str, str], list[_Shard]] = {}
    for shard in shards:
        sources.setdefault((shard.entry.outline.experiment, shard.since, shard.until), []).append(shard)
    with stores.for_fork() as opened:
        for (experiment, since, until), group in sources.items():
            outlines = [shard.entry.outline for shard in group]
            for shard, points in zip(group, opened.points(experiment, outlines, since, until, many=many), strict=True):
                columns = frames.columns(points, shard.nights)
                as_json, as_csv = shard.files()
                written.write(as_json, columns.json(shard.facts, shard.told).encode("ascii"), shard.made_from)
                written.write(as_csv, columns.csv().encode("utf-8", errors="replace"), shard.made_from)
    return written


def _facts(entry: Entry) -> str:
    """What the series is, as the inside of a JSON object."""
    outline = entry.outline
    value = {
        "schema_version": SCHEMA_VERSION,
        "id": entry.id,
        "key": entry.key,
        "name": entry.name,
        "experiment": outline.experiment,
        "metric": outline.metric,
        "unit": outline.unit,
        "direction": outline.direction,
        "labels": entry.labels,
        "identity": outline.labels,
    }
    return format_inside(value)


@dataclass(frozen=True)
class _Frame:
    """What all series with points on the same nights of an experiment have in common, as texts."""

    stamps: tuple[str, ...]
    tvm: list[str]
    machine: list[str]
    json: str

    @classmethod
    def of(cls, stamps: tuple[str, ...], nights: Nights) -> _Frame:
        tvm, tvms = _pooled([nights.versions.get(stamp, "") for stamp in stamps])
        machine, machines = _pooled([nights.machines.get(stamp) or "" for stamp in stamps])
        cells = [_cell(text) for text in tvms]
        places = f'"tvm":[{",".join(tvm)}],"machine":[{",".join(machine)}]'
        pools = f'"tvms":{json.dumps(tvms)},"machines":{json.dumps(machines)}'
        listed = ",".join([f'"{stamp}"' for stamp in stamps])
        return cls(stamps, [cells[int(at)] for at in tvm], machine, f'"stamp":[{listed}],{places},{pools}')


class _Frames:
    """The frames of one publish, each made once."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, tuple[str, ...]], _Frame] = {}

    def columns(self, series: Series, nights: Nights) -> _Columns:
        """The series in its frame."""
        key = (series.experiment, series.stamps)
        if key not in self._made:
            self._made[key] = _Frame.of(series.stamps, nights)
        return _Columns(series, self._made[key])


class _Columns:
    """The points of a series as texts, formatted once for both kinds of file."""

    def __init__(self, series: Series, frame: _Frame) -> None:
        digits = 15 if series.unit == "bytes" else 7
        self._frame = frame
        self._numbers = [
            format_column(column, digits) for column in (series.values, series.low, series.high, series.std)
        ]
        self._samples = _named(series.samples, {count: str(count) for count in set(series.samples)})
        self._code = _named(series.code, {code: str(at) for at, code in enumerate(dict.fromkeys(series.code))})

    def json(self, facts: str, alerts: str) -> str:
        """The shard."""
        names = ("value", "low", "high", "std", "samples", "code")
        columns = (*self._numbers, self._samples, self._code)
        parts = [f'"{name}":[{",".join(column)}]' for name, column in zip(names, columns, strict=True)]
        return f"{{{facts},{self._frame.json},{','.join(parts)},{alerts}}}\n"

    def csv(self) -> str:
        """The same points, one a line."""
        frame = self._frame
        numbers = [*self._numbers, self._samples]
        columns = (frame.stamps, *map(_blank, numbers), frame.tvm, frame.machine, _blank(self._code))
        return "\n".join([CSV_HEADER, *map(",".join, zip(*columns, strict=True)), ""])


def format_column(values: Sequence[float | None], digits: int) -> list[str]:
    """Each number with so many significant digits, as JSON writes it."""
    form = f"%.{digits}g"
    if None not in values and all(map(math.isfinite, values)):  # type: ignore[arg-type]
        return (",".join([form] * len(values)) % tuple(values)).split(",") if values else []
    return ["null" if value is None or not math.isfinite(value) else form % value for value in values]


def _named(values: Sequence[int | None], names: dict[int | None, str]) -> list[str]:
    """The name of each value, null for None."""
    return list(map({**names, None: "null"}.__getitem__, values))


def _pooled(values: Sequence[str]) -> tuple[list[str], list[str]]:
    """Each distinct value once, in the order they come, and for each value its place among them."""
    pool = {value: str(at) for at, value in enumerate(dict.fromkeys(values))}
    return [pool[value] for value in values], list(pool)


def _blank(column: list[str]) -> list[str]:
    return ["" if text == "null" else text for text in column] if "null" in column else column


def _cell(text: str) -> str:
    """The text as a cell: quoted where it must be, and never a formula of a spreadsheet."""
    safe = f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
    quoted = safe.replace('"', '""')
    return f'"{quoted}"' if any(sign in safe for sign in '",\r\n') else safe
