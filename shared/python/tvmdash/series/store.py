"""An index of every series over all nights in SQLite; the data files are the truth, this can be deleted.

Only the night writes it; everyone else reads. A file is read once: its name is the key, and data files never change.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import logging
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tvmdash import records
from tvmdash.common.files import mounts
from tvmdash.errors import DashboardError
from tvmdash.machine import identity
from tvmdash.machine.identity import MachineIdentity
from tvmdash.records.metrics import FOREIGN, Direction, Kind
from tvmdash.series import packed, tables

SCHEMA_VERSION = tables.VERSION
# Times of files are coarse, by up to two seconds (FAT).
_SETTLED_NS = 2 * 10**9
_NO_BUILD = records.Build()
_UNDECLARED = [FOREIGN.unit, FOREIGN.direction, FOREIGN.kind, "", FOREIGN.tolerance]
_log = logging.getLogger("store")


@dataclass(frozen=True)
class Series:
    """One series: `stamps` ascending, the others of equal length (None where unknown).

    `store_packed.floats` and `integers` make arrays of columns; out of thousands of nights that is ten times faster.
    `code` is a number that stands for the compiled module that was timed, `content` one for all that the point ran:
    equal code, equal number. A metric whose unit changes begins another series of the same id. alike: as in
    `records.PointValue`.
    """

    id: str
    experiment: str
    metric: str
    unit: str
    direction: Direction
    labels: Mapping[str, Any]
    stamps: tuple[str, ...]
    values: Sequence[float]
    low: Sequence[float | None]
    high: Sequence[float | None]
    std: Sequence[float | None]
    samples: Sequence[int | None] = ()
    code: Sequence[int | None] = ()
    alike: Sequence[int | None] = ()
    content: Sequence[int | None] = ()
    kind: Kind = field(default="time", kw_only=True)
    title: str = field(default="", kw_only=True)
    tolerance: float = field(default=0.0, kw_only=True)


@dataclass(frozen=True)
class Outline:
    """A series without its points; `number` is its own in this index."""

    number: int
    id: str
    experiment: str
    metric: str
    unit: str
    direction: Direction
    labels: Mapping[str, Any]
    kind: Kind = "time"
    title: str = ""
    tolerance: float = 0.0


@dataclass(frozen=True)
class Count:
    """A series' number of points, in all and before a given year, and the last one's stamp."""

    points: int
    past: int
    last_stamp: str


@dataclass(frozen=True)
class NightPoints:
    """The points of one experiment in one night: the number of each point's series, and columns of one length."""

    numbers: Sequence[int]
    values: Sequence[float]
    low: Sequence[float | None]
    high: Sequence[float | None]
    code: Sequence[int | None]


class Store:
    """The index of one home, or of one data folder."""

    def __init__(self, connection: sqlite3.Connection, *, in_memory: bool = False) -> None:
        self.connection = connection
        self.in_memory = in_memory
        self._latest: dict[str, tuple[tuple[Any, ...], int]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.connection.close()

    def ingest(self, folder: Path, experiment: str) -> int:
        """Take in the data files of an experiment that are not in yet; how many there were.

        A file that cannot be read is remembered with its error and logged: it costs its own night only.
        """
        return self.ingest_all([(folder, experiment)])

    def ingest_all(self, experiments: Iterable[tuple[Path, str]]) -> int:
        """Do as `ingest` for several, by folder and name, in one transaction: who reads meanwhile sees none or all."""
        with self.connection:
            return sum(self._ingest(folder, experiment) for folder, experiment in experiments)

    def _ingest(self, folder: Path, experiment: str) -> int:
        if self.is_taken(folder):
            return 0
        known = {
            row[0] for row in self.connection.execute("SELECT night FROM runs WHERE experiment = ?", (experiment,))
        }
        new = [stamp for stamp in records.data_stamps(folder) if stamp not in known]
        home = identity.of_folder(folder) if new else None
        self._latest.clear()
        for stamp in new:
            self._take(folder / f"data_{stamp}.json", experiment, stamp, home)
        self.mark_taken(folder)
        return len(new)

    def is_taken(self, path: Path) -> bool:
        """Return True where the file, or the list of names in a folder, is in the index as it is now."""
        row = self.connection.execute("SELECT mark FROM _taken WHERE source = ?", (str(path),)).fetchone()
        return row is not None and row[0] == _mark_of(path)

    def mark_taken(self, path: Path) -> None:
        """Note that it is, unless it changed just now."""
        mark = _mark_of(path)
        # What changes again at once may look the same by size and time.
        if mark and time.time_ns() - path.stat().st_mtime_ns > _SETTLED_NS:
            self.connection.execute("INSERT OR REPLACE INTO _taken VALUES (?, ?)", (str(path), mark))

    def _take(self, path: Path, experiment: str, stamp: str, home: MachineIdentity | None) -> None:
        try:
            night = records.read_data(path, experiment, home=home)
        except DashboardError as error:
            _log.warning("%s", error)
            self._add_run(experiment, stamp, error=str(error))
            return
        facts = self._number_facts(night.facts)
        self._add_run(experiment, stamp, night.tvm_hash, len(night.failures), night.machine, night.build, facts=facts)
        self._put(experiment, stamp, [self._point(point) for point in night.values()])

    def _add_run(
        self,
        experiment: str,
        stamp: str,
        tvm: str = "",
        failures: int = 0,
        machine: str = "",
        build: records.Build = _NO_BUILD,
        error: str | None = None,
        facts: int | None = None,
    ) -> None:
        row = (stamp, experiment, tvm, *astuple(build), machine, failures, error, facts)
        self.connection.execute("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)

    def _number_facts(self, facts: Mapping[str, Any]) -> int | None:
        """The number of what is known of a machine: most nights say the same."""
        if not facts:
            return None
        text = json.dumps(facts, ensure_ascii=False)
        self.connection.execute("INSERT OR IGNORE INTO machines VALUES (?, ?)", (code_number(text), text))
        return code_number(text)

    def _put(self, experiment: str, stamp: str, points: Sequence[packed.PackedPoint]) -> None:
        """One night's points, in both forms that they are read in."""
        rows = ((p.number, stamp, p.value, p.std, p.low, p.high, p.samples, p.code, p.alike, p.content) for p in points)
        self.connection.executemany("INSERT OR REPLACE INTO _points VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        self.connection.execute("INSERT INTO _packed VALUES (?, ?, ?)", (experiment, stamp, packed.pack(points)))
        counted = ((number, stamp[:4], 1, stamp, stamp) for number in {point.number for point in points})
        self.connection.executemany(
            "INSERT INTO _counts VALUES (?, ?, ?, ?, ?) ON CONFLICT (series, year) DO UPDATE SET points = points + 1,"
            " first = min(first, excluded.first), last = max(last, excluded.last)",
            counted,
        )

    def _point(self, point: records.PointValue) -> packed.PackedPoint:
        code, content = (code_number(str(text)) if text else None for text in (point.code, point.content))
        measured = (point.value, point.low, point.high, point.std, point.samples)
        return packed.PackedPoint(self._number(point), *measured, code, point.alike, content)

    def _number(self, point: records.PointValue) -> int:
        """The series of the point, which is as its newest declaration says; to get a unit is not to change it."""
        declared = (point.unit, point.direction, point.kind, point.title, point.tolerance)
        latest = self._latest.get(point.key.id)
        if latest is not None and latest[0] == declared:
            return latest[1]  # the nights of one ingest say the same again and again
        number = self._find_number(point)
        self._latest[point.key.id] = (declared, number)
        return number

    def _find_number(self, point: records.PointValue) -> int:
        key = point.key
        query = (
            "SELECT number, unit, direction, kind, title, tolerance FROM _series"
            " WHERE id = ? AND (unit = ? OR unit = '' OR ? = '') ORDER BY unit = ? DESC, number DESC"
        )
        stored = self.connection.execute(query, (key.id, *(point.unit,) * 3)).fetchone()
        if stored:
            number, *known = stored
            declared = [point.unit or known[0], point.direction, point.kind, point.title, point.tolerance]
            if declared != known and [point.unit, *declared[1:]] != _UNDECLARED:
                names = "unit = ?, direction = ?, kind = ?, title = ?, tolerance = ?"
                update = f"UPDATE _series SET {names} WHERE number = ?"  # noqa: S608 - our own words
                self.connection.execute(update, (*declared, number))
            return int(number)
        labels = json.dumps(key.labels, sort_keys=True, ensure_ascii=False)
        facts = (point.kind, point.title, point.tolerance)
        row = (key.id, key.experiment, key.metric, point.unit, point.direction, labels, *facts)
        cursor = self.connection.execute("INSERT INTO _series VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        return int(cursor.lastrowid or 0)

    def series(self, experiment: str, metric: str | None = None, *, since: str = "", until: str = "~") -> list[Series]:
        """The experiment's series with their points from the stamp `since` on and before `until`, as they first came.

        Four times as fast as `points_of` one after the other, and up to 180 bytes a point.
        """
        outlines = self.outlines(experiment, metric)
        query = "SELECT stamp, points FROM _packed WHERE experiment = ? AND stamp >= ? AND stamp < ? ORDER BY stamp"
        stamped = self.connection.execute(query, (experiment, since, until)).fetchall()
        nights = packed.Nights([row[0] for row in stamped], [row[1] for row in stamped])
        return [_series(outline, nights.of(outline.number)) for outline in outlines]

    def size(self, experiment: str) -> int:
        query = "SELECT count(*) FROM _series WHERE experiment = ?"
        return int(self.connection.execute(query, (experiment,)).fetchone()[0])

    def points_between(self, experiment: str, since: str, until: str) -> int:
        """Count the experiment's points from the stamp `since` on and before `until`."""
        query = "SELECT coalesce(sum(length(points)), 0) FROM _packed WHERE experiment = ? AND stamp >= ? AND stamp < ?"
        total = self.connection.execute(query, (experiment, since, until)).fetchone()[0]
        return int(total) // packed.BYTES

    def outlines(self, experiment: str, metric: str | None = None) -> list[Outline]:
        """The experiment's series without their points, in the order they first came."""
        rows = self.connection.execute(
            "SELECT number, id, experiment, metric, unit, direction, labels, kind, title, tolerance FROM _series"
            " WHERE experiment = ? AND (? IS NULL OR metric = ?) ORDER BY number",
            (experiment, metric, metric),
        )
        return list(map(_outline, rows))

    def counts(self, experiment: str, *, year: str = "") -> dict[int, Count]:
        """By number, the points of each series that has any; `past` are those before the year."""
        rows = self.connection.execute(
            "SELECT number, sum(points), total(points) FILTER (WHERE year < ?), max(last)"
            " FROM _counts JOIN _series ON number = series WHERE experiment = ? GROUP BY number",
            (year, experiment),
        )
        return {number: Count(points, int(past), last) for number, points, past, last in rows}

    @property
    def is_empty(self) -> bool:
        """True while no night is in yet: the index is new, or was made anew."""
        return self.connection.execute("SELECT 1 FROM runs LIMIT 1").fetchone() is None

    @property
    def born(self) -> str:
        """The name of this index, another for one that was made anew."""
        return str(self.connection.execute("SELECT name FROM _born").fetchone()[0])

    def points_of(self, outline: Outline, *, since: str = "", until: str = "~") -> Series:
        """The series with its points from the stamp `since` on and before `until`."""
        return _series(outline, self._columns(outline.number, since, until))

    def _columns(self, number: int, since: str, until: str) -> tuple[Any, ...]:
        """Stamps and the other columns of `Series` of the points from `since` on and before `until`."""
        points = self.connection.execute(
            "SELECT stamp, value, low, high, std, samples, code, alike, content FROM _points"
            " WHERE series = ? AND stamp >= ? AND stamp < ? ORDER BY stamp",
            (number, since, until),
        ).fetchall()
        return tuple(zip(*points, strict=True)) if points else ((),) * 9

    def points_of_night(self, experiment: str, stamp: str) -> NightPoints:
        query = "SELECT points FROM _packed WHERE experiment = ? AND stamp = ?"
        row = self.connection.execute(query, (experiment, stamp)).fetchone()
        return NightPoints(*packed.unpack(row[0] if row else b""))

    def stamps(self, experiment: str) -> list[str]:
        """The nights on which the experiment has readable data, oldest first."""
        return list(self.versions(experiment))

    def faults(self, experiment: str) -> dict[str, str]:
        """Return the fault in the data of each night that cannot be read."""
        query = "SELECT night, error FROM runs WHERE experiment = ? AND error IS NOT NULL ORDER BY night"
        return dict(self.connection.execute(query, (experiment,)).fetchall())

    def versions(self, experiment: str) -> dict[str, str]:
        """The `tvm_hash` of each night on which the experiment has readable data, oldest first."""
        return dict(self._runs(experiment, "tvm"))

    def builds(self, experiment: str) -> dict[str, records.Build]:
        """Return the build measured on each night on which the experiment has readable data, oldest first."""
        columns = "artifact, fingerprint, reference, reference_version"
        return {night: records.Build(*build) for night, *build in self._runs(experiment, columns)}

    def machines(self, experiment: str) -> dict[str, str]:
        """The machine of each night on which the experiment has readable data, in words ("" where unknown)."""
        return dict(self._runs(experiment, "machine"))

    def machine_facts(self, experiment: str) -> dict[str, Mapping[str, Any]]:
        """Return the machine's facts in the experiment's readable data, by night, oldest first."""
        known = {facts: json.loads(text) for facts, text in self.connection.execute("SELECT facts, json FROM machines")}
        return {night: known[facts] for night, facts in self._runs(experiment, "facts") if facts}

    def failures(self, experiment: str) -> dict[str, int]:
        """Count the failed points of each night on which the experiment has readable data."""
        return dict(self._runs(experiment, "failures"))

    def _runs(self, experiment: str, columns: str) -> Iterable[tuple[Any, ...]]:
        query = f"SELECT night, {columns} FROM runs WHERE experiment = ? AND error IS NULL ORDER BY night"  # noqa: S608
        return self.connection.execute(query, (experiment,))


def _outline(row: Sequence[Any]) -> Outline:
    number, name, experiment, metric, unit, direction, labels, *facts = row
    return Outline(number, name, experiment, metric, unit, direction, json.loads(labels), *facts)


def _series(outline: Outline, columns: Sequence[Any]) -> Series:
    """The series of the outline with these columns, as `_columns` gives them."""
    facts = (outline.id, outline.experiment, outline.metric, outline.unit, outline.direction, outline.labels)
    return Series(*facts, *columns, kind=outline.kind, title=outline.title, tolerance=outline.tolerance)


def _mark_of(path: Path) -> str:
    try:
        status = path.stat()
    except OSError:
        return ""
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ino}"


@functools.lru_cache(maxsize=4096)
def code_number(text: str) -> int:
    """The number, above 0 and below 2^31, that stands for a hash of code or another text.

    It is compared with those of its own series alone, where two that differ are taken for equal once in 2,000 million.
    Of 60 bits two would never be, and a night of 240 series would add 7 kB more.
    """
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) >> 1 or 1


def open_for_writing(path: Path) -> Store:
    """Open the index in `path`, made anew where it is missing, damaged or of another version."""
    try:
        return Store(_connect(path))
    except sqlite3.OperationalError:
        raise  # a full disk, a lock: the index itself is whole
    except sqlite3.DatabaseError as error:
        _log.warning("%s: %s; it is rebuilt from the data files.", path, error)
        remove(path)
        return Store(_connect(path))


def remove(path: Path) -> None:
    """Remove the index in `path` with what SQLite has beside it."""
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def _connect(path: Path | str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=30, check_same_thread=False)
    try:
        # A log beside the file needs memory that its users share, which a file system over the network has not.
        log = "DELETE" if mounts.find_network_type(Path(path).parent) else "WAL"
        connection.execute(f"PRAGMA journal_mode = {log}")
        connection.execute("PRAGMA synchronous = NORMAL")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version not in {0, SCHEMA_VERSION}:
            raise sqlite3.DatabaseError(f"schema version {version} is not {SCHEMA_VERSION}")
        if version == 0:
            connection.executescript(f"BEGIN; {tables.SQL} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;")
    except sqlite3.DatabaseError:
        connection.close()
        raise
    return connection


@contextlib.contextmanager
def open_for_reading(path: Path | None, folder: Path, experiment: str) -> Iterator[Store]:
    """Open the home's index in `path`, or, where there is none, make one of `folder` alone, in memory."""
    store = read_only(path) if path is not None and path.is_file() else None
    if store is None:
        store = in_memory()
        store.ingest(folder, experiment)
    with store:
        yield store


def in_memory() -> Store:
    """Make an empty index that nobody else sees."""
    return Store(_connect(":memory:"), in_memory=True)


def read_only(path: Path) -> Store | None:
    """Open the index in `path`; None where it is damaged or of another version, until the night has made it anew."""
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=30)
    try:
        if connection.execute("PRAGMA user_version").fetchone()[0] == SCHEMA_VERSION:
            return Store(connection)
    except sqlite3.DatabaseError as error:
        _log.warning("%s: %s; the data files are read instead.", path, error)
    connection.close()
    return None
