"""AMD's own SQL is the truth about AMD's databases: every view row by row, every sum, over the whole matrix.

Skipped where TVMDASH_ROCM_SYSTEMS names no checkout of ROCm/rocm-systems. `python -m tests.tvmtraces.test_amd`
prints the table of agreement.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.tvmtraces import amd_source
from tests.tvmtraces.amd_source import MULTIPLIED, VARIABLE, Schema, rows_of, schemas, tables_of, views_of
from tvmtraces import Filters, connect
from tvmtraces.analysis import GROUPS, summary
from tvmtraces.export.converters import CONVERTERS
from tvmtraces.sealing import seal

pytestmark = pytest.mark.skipif(
    not schemas(), reason=f"{VARIABLE} names no checkout of ROCm/rocm-systems, whose SQL is what is compared with"
)
SHAPES = {"one file": 1, "files merged into one": 3, "files read together": 3}
CALLS = 12


def write(folder: Path, schema: Schema, shape: str, processes: int) -> list[Path]:
    """AMD's databases of a shape; every second one has references that lead nowhere."""
    several = SHAPES[shape]
    groups = [list(range(several))] if shape != "files read together" else [[number] for number in range(several)]
    paths = []
    for group in groups:
        paths.append(folder / f"{group[0]}.db")
        amd_source.write(paths[-1], schema, group, processes=processes, calls=CALLS, holes=True)
    return paths


@contextmanager
def theirs(schema: Schema, paths: list[Path]) -> Iterator[Any]:
    """What AMD's Python shows of the files."""
    opened = amd_source.import_rocpd(schema).RocpdImportData([str(path) for path in paths])
    with closing(opened.connection):
        yield opened


def compare(schema: Schema, shape: str, processes: int, how: str) -> dict[str, str]:
    """For each of AMD's views what differs; nothing where all rows are the same."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = write(folder, schema, shape, processes)
        place = seal(paths, folder / "sealed").path if how == "sealed" else paths
        with theirs(schema, paths) as amd, connect(place) as ours:
            return {view: compare_view(amd, ours, view, SHAPES[shape]) for view in views_of(schema)}


def compare_view(amd: Any, ours: Any, view: str, writers: int) -> str:
    """What differs in a view."""
    columns, expected = rows_of(amd, view)
    _, found = rows_of(ours, view, columns)
    if view in MULTIPLIED and writers > 1:
        return "" if view.endswith("summary") or set(found) <= set(expected) else "rows that AMD does not have"
    if not expected and view not in ("spm_counters", "graph_launches"):
        return "AMD shows nothing, so that nothing is compared"
    alone = [[row for row in rows if row not in others][:2] for rows, others in ((expected, found), (found, expected))]
    return "" if expected == found else f"{len(expected)} rows, ours {len(found)}; one side alone has {alone}"


@pytest.mark.parametrize("how", ["as they are", "sealed"])
@pytest.mark.parametrize("processes", [1, 5])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", schemas())
def test_every_view_shows_amds_rows(name: str, shape: str, processes: int, how: str) -> None:
    different = {view: words for view, words in compare(schemas()[name], shape, processes, how).items() if words}
    assert not different


@pytest.mark.parametrize("processes", [1, 5])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", schemas())
def test_every_table_of_rocpd_has_amds_rows(name: str, shape: str, processes: int, tmp_path: Path) -> None:
    schema = schemas()[name]
    paths = write(tmp_path, schema, shape, processes)
    with theirs(schema, paths) as amd, connect(paths) as ours:
        for table in tables_of(schema):
            columns, expected = rows_of(amd, table)
            assert (table, rows_of(ours, table, columns)[1]) == (table, expected)


@pytest.mark.parametrize("by", GROUPS)
@pytest.mark.parametrize("name", schemas())
def test_the_parts_of_a_summary_add_up_to_what_amds_views_sum_up_to(name: str, by: str, tmp_path: Path) -> None:
    schema = schemas()[name]
    paths = write(tmp_path, schema, "files read together", 5)
    with theirs(schema, paths) as amd, connect(paths) as ours:
        rows = [list(summary(ours, by=chosen)) for chosen in (None, by)]
        query = " UNION ALL ".join(f"SELECT duration FROM {view}" for view in ("kernels", "memory_copies", "regions"))
        expected = amd.execute(f"SELECT count(*), sum(duration) FROM ({query})").fetchone()
    assert [(sum(row.calls for row in part), sum(row.total_ns for row in part)) for part in rows] == [expected] * 2


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", schemas())
def test_a_database_converted_to_rocpd_shows_amds_rows_in_amds_own_views(name: str, shape: str, tmp_path: Path) -> None:
    schema = schemas()[name]
    paths = write(tmp_path, schema, shape, 5)
    CONVERTERS["rocpd"].write([str(path) for path in paths], tmp_path / "converted.db", Filters(), None)
    with theirs(schema, paths) as before, theirs(schema, [tmp_path / "converted.db"]) as after:
        views = [view for view in views_of(schema) if view not in MULTIPLIED]
        assert not {view: words for view in views if (words := compare_view(before, after, view, 1))}


def say(name: str, database: Any, **options: Any) -> str:
    """What a function of AMD's modules prints of a database."""
    module, _, function = name.partition(":")
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        getattr(importlib.import_module(module), function)(database, **options)
    return printed.getvalue()


@pytest.mark.parametrize("name", [name for name in schemas() if name != "systems"])  # its views are not for them
def test_amds_own_modules_accept_a_connection_and_print_the_same(name: str, tmp_path: Path) -> None:
    schema, path = schemas()[name], tmp_path / "one.db"
    amd_source.write(path, schema, [0], processes=2, calls=CALLS, holes=False)
    options = {"domain_summary": True, "summary_by_rank": True, "format": "console"}
    with theirs(schema, [path]) as amd, connect(path) as ours:
        expected = say("rocpd.summary:generate_all_summaries", amd, **options)
        assert "KERNELS_SUMMARY" in expected
        assert say("rocpd.summary:generate_all_summaries", ours, **options) == expected
    with theirs(schema, [path]) as amd, connect(path) as ours:
        window = {"start": "25%", "end": "75%"}
        expected = say("rocpd.time_window:apply_time_window", amd, **window)
        assert say("rocpd.time_window:apply_time_window", ours, **window) == expected
        for view in views_of(schema):
            columns, rows = rows_of(amd, view)
            assert (view, rows_of(ours, view, columns)[1]) == (view, rows)


def main() -> None:
    """Print the table of agreement: views whose rows are AMD's, of all views, in each cell of the matrix."""
    cells = [(shape, processes) for shape in SHAPES for processes in (1, 5)]
    print("| schema | " + " | ".join(f"{shape}, {processes} in a uuid" for shape, processes in cells) + " |")
    print("|---" * (len(cells) + 1) + "|")
    for name, schema in schemas().items():
        found = []
        for shape, processes in cells:
            both = [compare(schema, shape, processes, how) for how in ("as they are", "sealed")]
            found.append("; ".join(f"{sum(not words for words in one.values())} of {len(one)}" for one in both))
        print(f"| {name} | " + " | ".join(found) + " |", flush=True)


if __name__ == "__main__":
    main()
