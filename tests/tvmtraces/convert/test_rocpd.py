"""RocPD databases: the names that AMD's package looks for, whole references, and the sums that went in.

The writer's files were opened with AMD's own importer, views, summary and time window (rocm-systems of August 2025)
when it was made; the columns below are those of schema 3.0.3.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tvmtraces.convert import Counter, Event, RocpdProcess, Slice, write_rocpd

MOMENT = 1_795_000_000_123_456_789
EVENTS: list[Event] = [
    Slice("night", "night", "a night", "night", MOMENT, 100_000, 1, {"tvm": "0.27"}),
    Slice("relax_opt", "operators", "fused_matmul", "operator", MOMENT + 1, 1_500),
    Slice("relax_opt", "operators", "fused_matmul", "operator", MOMENT + 2_000, 2_500),
    Slice("relax_opt", "operators", "fused_add", "operator", MOMENT + 5_000, 1_000),
    Counter("relax_opt", "load", "cores", MOMENT + 3, 0.5),
]
PROCESSES = {
    "relax_opt": RocpdProcess(pid=4711, ppid=1, host="bench", command="run.sh", start_ns=MOMENT, end_ns=MOMENT + 9)
}


@pytest.fixture
def database(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    write_rocpd(tmp_path / "x.db", EVENTS, processes=PROCESSES)
    with closing(sqlite3.connect(tmp_path / "x.db")) as opened:
        yield opened


def test_every_table_has_the_suffix_that_its_metadata_name_and_a_view_without_it(database: sqlite3.Connection) -> None:
    facts = dict(database.execute("SELECT tag, value FROM rocpd_metadata"))
    assert facts["schema_version"] == "3.0.3"
    assert facts["uuid"] == "_" + facts["guid"].replace("-", "_")
    tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    views = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'view'")}
    ours = {name for name in tables if name.startswith("rocpd_")}
    assert len(ours) > 20
    assert all(name.endswith(facts["uuid"]) and name.removesuffix(facts["uuid"]) in views for name in ours)


def test_every_reference_has_its_row_and_nothing_is_broken(database: sqlite3.Connection) -> None:
    assert database.execute("PRAGMA foreign_key_check").fetchall() == []
    assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_operators_are_kernels_and_the_rest_regions(database: sqlite3.Connection) -> None:
    kernels = 'SELECT name, region, category, pid, start, "end", duration FROM kernels ORDER BY start'
    assert database.execute(kernels).fetchall()[0] == (
        "fused_matmul",
        "fused_matmul",
        "operator",
        4711,
        MOMENT + 1,
        MOMENT + 1_501,
        1_500,
    )
    regions = database.execute("SELECT name, category, duration, extdata FROM regions").fetchall()
    assert regions == [("a night", "night", 100_000, '{"tvm": "0.27"}')]
    processes = dict(database.execute("SELECT pid, command FROM processes").fetchall())
    assert processes[4711] == "run.sh"


def test_the_top_list_adds_up(database: sqlite3.Connection) -> None:
    assert database.execute("SELECT name, total_calls, total_duration FROM top_kernels").fetchall() == [
        ("fused_matmul", 2, 4.0),
        ("fused_add", 1, 1.0),
    ]
    assert database.execute("SELECT sum(percentage), sum(total_duration) FROM top").fetchone() == (
        pytest.approx(100.0),
        105.0,
    )
    assert database.execute("SELECT type, GpuTime, WallTime FROM busy").fetchall() == [("CPU", 5_000, 5_999)]


def test_counters_are_samples_with_a_value(database: sqlite3.Connection) -> None:
    query = """SELECT S.name, S.timestamp, I.name, I.units, V.value FROM samples S
        JOIN rocpd_pmc_event V ON V.event_id = S.event_id JOIN rocpd_info_pmc I ON I.id = V.pmc_id"""
    assert database.execute(query).fetchall() == [("load", MOMENT + 3, "load", "cores", 0.5)]


COLUMNS = {
    "kernels": "id guid tid category region name nid pid agent_abs_index agent_log_index agent_type_index agent_type "
    "code_object_id kernel_id dispatch_id stream_id queue_id graph_exec_id graph_node_id queue stream start end "
    "duration grid_x grid_y grid_z workgroup_x workgroup_y workgroup_z lds_size scratch_size vgpr_count "
    "accum_vgpr_count sgpr_count static_lds_size static_scratch_size event_id stack_id parent_stack_id corr_id",
    "regions": "id guid category name nid pid tid start end duration event_id stack_id parent_stack_id corr_id extdata "
    "call_stack line_info",
    "samples": "id guid category name nid pid tid timestamp event_id stack_id parent_stack_id corr_id extdata "
    "call_stack line_info",
    "processes": "nid machine_id system_name hostname system_release system_version guid ppid pid init start end fini "
    "command",
    "threads": "nid machine_id system_name hostname system_release system_version guid ppid pid tid start end name",
    "top": "name total_calls total_duration average percentage",
    "busy": "agent_id type GpuTime WallTime Busy",
}


@pytest.mark.parametrize("view", COLUMNS)
def test_views_have_the_columns_of_rocpd(view: str, database: sqlite3.Connection) -> None:
    found = database.execute(f"SELECT * FROM {view} LIMIT 0").description
    assert " ".join(column[0] for column in found) == COLUMNS[view]


def test_our_own_reader_opens_it(tmp_path: Path) -> None:
    from tvmtraces import connect

    write_rocpd(tmp_path / "x.db", EVENTS, processes=PROCESSES)
    with connect([tmp_path / "x.db"]) as traces:
        found = traces.execute(
            "SELECT name, count(*), sum(duration) FROM kernels GROUP BY name ORDER BY name"
        ).fetchall()
    assert found == [("fused_add", 1, 1_000), ("fused_matmul", 2, 4_000)]


SLICE = st.builds(
    Slice,
    st.sampled_from(["p", "q'"]),
    st.sampled_from(["a", "b"]),
    st.text(max_size=3),
    st.sampled_from(["operator", "stage"]),
    st.integers(0, 2**60),
    st.integers(0, 2**40),
)


@settings(max_examples=25, deadline=None)
@given(st.lists(SLICE, max_size=12))
def test_sums_by_name_are_those_of_the_slices(tmp_path_factory: pytest.TempPathFactory, slices: list[Slice]) -> None:
    place = tmp_path_factory.mktemp("rocpd") / "x.db"
    write_rocpd(place, sorted(slices, key=lambda one: one.start_ns))
    with closing(sqlite3.connect(place)) as opened:
        found = {
            name: (calls, total)
            for name, calls, total in opened.execute("SELECT name, total_calls, total_duration FROM top")
        }
    expected: dict[str, tuple[int, float]] = {}
    for one in slices:
        calls, total = expected.get(one.name, (0, 0))
        expected[one.name] = (calls + 1, total + one.duration_ns)
    assert found == {name: (calls, pytest.approx(total / 1000)) for name, (calls, total) in expected.items()}
