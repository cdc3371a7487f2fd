"""Sealed runs: a folder with Parquet files for each table that has rows, and `catalogue.json`, which says so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tvmdash import common
from tvmdash.errors import DashboardError
from tvmtraces.batches import Batch, WantedRows
from tvmtraces.tables import SEAL_VERSION, TABLES

CATALOGUE = "catalogue.json"


Constants = Mapping[str, int | str | None]
"""Columns that hold one value throughout."""


@dataclass(frozen=True)
class SealedTable:
    """One Parquet file: its rows, its bytes, its SHA-256, the columns that it leaves out."""

    rows: int
    size_bytes: int
    sha256: str
    left_out: Constants = field(default_factory=dict)


@dataclass(frozen=True)
class SealedFile:
    """A Parquet file of a sealed run of this version."""

    path: Path
    version: int
    left_out: Constants = field(default_factory=dict)


def name_part(table: str, number: int) -> str:
    """Return the name, without `.parquet`, of a table's file: `dispatch`, `dispatch.1`, `dispatch.2`, ..."""
    return f"{table}.{number}" if number else table


def table_of(name: str) -> str:
    """Return the table that a file of that name, without `.parquet`, has rows of."""
    return name.partition(".")[0]


@dataclass(frozen=True)
class Catalogue:
    """The catalogue of a sealed run. `start_ns` and `end_ns` bound everything timed in it.

    `part` is empty, or says which part of its processes' traces this is, after a split by time. `left_out` says how
    much of what the sources hold is not in it.
    """

    version: int
    name: str
    sealed: str
    guids: tuple[str, ...]
    nights: tuple[str, ...]
    experiments: tuple[str, ...]
    hosts: tuple[str, ...]
    start_ns: int | None
    end_ns: int | None
    source_bytes: int
    sources: tuple[str, ...]
    part: str
    tables: Mapping[str, SealedTable]
    left_out: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the file's content: without `left_out` where it is empty, as before it existed."""
        value = asdict(self)
        return value if self.left_out else {name: item for name, item in value.items() if name != "left_out"}

    @property
    def table_names(self) -> frozenset[str]:
        """Return the tables that have rows."""
        return frozenset(map(table_of, self.tables))

    @property
    def size_bytes(self) -> int:
        return sum(table.size_bytes for table in self.tables.values())


@dataclass(frozen=True)
class SealedSource:
    """A sealed run; its rows are read by the engine itself."""

    path: Path
    catalogue: Catalogue
    kind: str = "sealed"

    @property
    def guids(self) -> tuple[str, ...]:
        return self.catalogue.guids

    def files(self, table: str) -> list[SealedFile]:
        """Return the Parquet files of a table; none where the run has no rows of it."""
        return [
            SealedFile(self.path / f"{name}.parquet", self.catalogue.version, sealed.left_out)
            for name, sealed in self.catalogue.tables.items()
            if table_of(name) == table
        ]

    def read(self, wanted: WantedRows) -> Iterator[Batch]:
        """Return nothing: DuckDB reads the `files`."""
        return iter(())

    def counts(self) -> dict[str, int]:
        """Return the rows of its tables; descriptions of processes may be in other parts of a split as well."""
        counts: dict[str, int] = {}
        for name, sealed in self.catalogue.tables.items():
            if not TABLES[table_of(name)].describes:
                counts[table_of(name)] = counts.get(table_of(name), 0) + sealed.rows
        return counts


def sealed_source(folder: Path) -> SealedSource:
    """Open the sealed run in `folder`; DashboardError where it is newer, or a file differs from the catalogue."""
    path = folder / CATALOGUE
    value = common.read_json(path)
    version = value.get("version") if isinstance(value, dict) else None
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise DashboardError(f"{path}: $.version: {version!r:.40} is not a version of a sealed run. Leave it out.")
    if version > SEAL_VERSION:
        raise DashboardError(f"{path}: $.version: {version} is newer than {SEAL_VERSION}. Update the dashboard.")
    try:
        catalogue = _catalogue(value)
    except (KeyError, TypeError, AttributeError) as error:
        raise DashboardError(f"{path}: not the catalogue of a sealed run: {error!r}. Leave it out.") from error
    for table, sealed in catalogue.tables.items():
        _check_file(folder / f"{table}.parquet", sealed)
    return SealedSource(folder, catalogue)


def _catalogue(value: Mapping[str, Any]) -> Catalogue:
    tables = {str(name): SealedTable(**table) for name, table in value["tables"].items()}
    for name, table in tables.items():
        known = TABLES[table_of(name)].columns if table_of(name) in TABLES else None
        if known is None or "/" in name or not table.left_out.keys() <= known.keys():
            raise KeyError(f"table {name!r:.60}")
        if not all(value is None or isinstance(value, (int, str)) for value in table.left_out.values()):
            raise TypeError(f"table {name!r:.60}: left_out holds whole numbers, texts and null")
    lists = {name: tuple(map(str, value[name])) for name in ("guids", "nights", "experiments", "hosts", "sources")}
    bounds = (value["start_ns"], value["end_ns"])
    if not all(bound is None or type(bound) is int for bound in bounds):
        raise TypeError("start_ns and end_ns are whole numbers or null")
    if not isinstance(value["part"], str) or not isinstance(value.get("left_out", {}), dict):
        raise TypeError("part is a text, left_out an object")
    return Catalogue(**{**value, **lists, "tables": tables})


def _check_file(path: Path, sealed: SealedTable) -> None:
    if path.is_symlink() or not path.is_file():
        raise DashboardError(f"{path}: listed in the catalogue but missing. Restore it or leave the run out.")
    size = path.stat().st_size
    if size != sealed.size_bytes:
        raise DashboardError(
            f"{path}: has {size} bytes, its catalogue says {sealed.size_bytes}. Restore it or leave the run out."
        )
