"""Processes are told apart by guid and process: whatever is grouped or filtered by them adds up to the whole."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.thorough import examples
from tests.tvmtraces import rocpd_files
from tests.tvmtraces.traces_for_tests import BEGIN_NS, write_raw
from tvmtraces import Connection, Filters, connect
from tvmtraces.analysis import summary
from tvmtraces.connection import open_traces
from tvmtraces.export.converters import CONVERTERS
from tvmtraces.filters import escape
from tvmtraces.sealing import seal

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
HOSTS = ("host0", "host1")
NAMES = ("conv", "relu")


@dataclass(frozen=True)
class Process:
    """A process of a RocPD writer: the numbers of its host and of itself there, its calls (kind, name, length)."""

    host: int
    pid: int
    calls: list[tuple[str, int, int]]


Files = list[list[list[Process]]]
"""Files, each with the processes of several guids."""

CALLS = st.tuples(st.sampled_from(["kernel_dispatch", "region", "memory_copy"]), st.integers(0, 1), st.integers(0, 99))
PROCESSES = st.builds(Process, st.integers(0, 1), st.sampled_from([7, 8]), st.lists(CALLS, max_size=3))
FILES = st.lists(st.lists(st.lists(PROCESSES, min_size=1, max_size=3), min_size=1, max_size=2), min_size=1, max_size=2)
FEW = examples(2, 15)
KINDS = st.sampled_from(["raw", "sealed"])
TWO_HOSTS = [[[Process(0, 7, [("kernel_dispatch", 0, 10)]), Process(1, 7, [("kernel_dispatch", 0, 20)])]]]
"""One guid, two processes of one process id on two hosts."""


def write(path: Path, writers: list[list[Process]], first_guid: int) -> None:
    """A RocPD database with the processes of several writers, each of one guid."""
    with closing(sqlite3.connect(path)) as database:
        for number, processes in enumerate(writers, start=first_guid):
            rocpd_files.create(database, f"_{number}", f"guid-{number}")
            _write_set(database, f"_{number}", processes)
        database.commit()


def _write_set(database: sqlite3.Connection, suffix: str, processes: list[Process]) -> None:
    def put(table: str, **row: object) -> int:
        names, marks = ", ".join(f'"{name}"' for name in row), ", ".join("?" * len(row))
        query = f'INSERT INTO "rocpd_{table}{suffix}" ({names}) VALUES ({marks})'
        return int(database.execute(query, list(row.values())).lastrowid or 0)

    for name in NAMES:
        put("string", string=name)
    for number, host in enumerate(HOSTS, start=1):
        put("info_node", hash=number, machine_id=host, hostname=host)
    for process in processes:
        place = {"nid": process.host + 1, "pid": put("info_process", nid=process.host + 1, pid=process.pid)}
        thread = put("info_thread", **place, tid=1)
        agent = put("info_agent", **place, type="CPU")
        queue = put("info_queue", **place, name="queue")
        symbols = [
            put("info_kernel_symbol", **place, code_object_id=1, kernel_name=name, display_name=name) for name in NAMES
        ]
        counter = put("info_pmc", **place, name="WAVES", symbol="WAVES")
        for number, (kind, name, duration) in enumerate(process.calls):
            event = put("event", category_id=None)
            row = {**place, "tid": thread, "start": BEGIN_NS, "end": BEGIN_NS + duration, "event_id": event}
            if kind == "kernel_dispatch":
                shape = {f"{what}_size_{axis}": 1 for what in ("grid", "workgroup") for axis in "xyz"}
                call = {"agent_id": agent, "kernel_id": symbols[name], "dispatch_id": number}
                put(kind, **row, **shape, **call, queue_id=queue, stream_id=1, region_name_id=1)
                put("pmc_event", event_id=event, pmc_id=counter, value=1.0)
            elif kind == "region":
                put(kind, **row, name_id=name + 1)
            else:
                put(kind, **row, name_id=name + 1, size=1, dst_agent_id=agent, src_agent_id=agent)


@contextmanager
def written(files: Files) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "files"
        folder.mkdir()
        guid = 0
        for number, writers in enumerate(files):
            write(folder / f"{number}.db", writers, guid)
            guid += len(writers)
        yield folder


@contextmanager
def opened(place: Path, how: str, filters: Filters | None = None) -> Iterator[Connection]:
    if how == "sealed":
        sealed = place.parent / "sealed"
        if not sealed.exists():
            seal([place], sealed)
        with connect(sealed, filters=filters) as traces:
            yield traces
    else:
        with connect(place, filters=filters) as traces:
            yield traces


def processes_of(files: Files) -> list[Process]:
    return [process for writers in files for processes in writers for process in processes]


def sums(traces: Connection, by: str | None = None) -> tuple[int, int]:
    """Calls and nanoseconds of a summary, over all its rows."""
    rows = list(summary(traces, by=by))
    return sum(row.calls for row in rows), sum(row.total_ns for row in rows)


@FEW
@given(FILES, KINDS)
@example(TWO_HOSTS, "raw")
def test_the_groups_of_a_summary_add_up_to_the_whole(files: Files, how: str) -> None:
    hosts, processes = Counter[str](), Counter[int]()
    for number, process in enumerate(processes_of(files)):
        hosts[HOSTS[process.host]] += sum(duration for *_, duration in process.calls)
        processes[number] += sum(duration for *_, duration in process.calls)
    durations = [duration for process in processes_of(files) for *_, duration in process.calls]
    with written(files) as place, opened(place, how) as traces:
        assert [sums(traces, by) for by in (None, "host", "process")] == [(len(durations), sum(durations))] * 3
        by_host, by_process = Counter[str | None](), Counter[str | None]()
        for row in summary(traces, by="host"):
            by_host[row.group] += row.total_ns
        for row in summary(traces, by="process"):
            by_process[row.group] += row.total_ns
    assert +by_host == +hosts
    assert sorted((+by_process).values()) == sorted((+processes).values()), "each process for itself"


@FEW
@given(FILES, KINDS)
@example(TWO_HOSTS, "raw")
def test_every_view_shows_each_row_once_and_every_sum_is_of_all_rows(files: Files, how: str) -> None:
    known = processes_of(files)
    calls = Counter(kind for process in known for kind, *_ in process.calls)
    total = {kind: sum(d for process in known for k, _, d in process.calls if k == kind) for kind in calls}
    kernels, copies = (total.get(kind, 0) for kind in ("kernel_dispatch", "memory_copy"))
    with written(files) as place, opened(place, how) as traces:

        def ask(sql: str) -> tuple[object, ...]:
            row: tuple[object, ...] = traces.execute(sql).fetchall()[0]
            return row

        for view in ("processes", "threads", "agents"):
            assert ask(f"SELECT count(*) FROM {view}") == (len(known),), view
        for view, kind in (("kernels", "kernel_dispatch"), ("regions", "region"), ("memory_copies", "memory_copy")):
            assert ask(f"SELECT count(*), coalesce(sum(duration), 0) FROM {view}") == (calls[kind], total.get(kind, 0))
        top = "SELECT coalesce(sum(total_calls), 0), coalesce(sum(total_duration), 0)"
        assert ask(f"{top} FROM top") == (calls.total(), pytest.approx(sum(total.values()) / 1000))
        assert ask(f"{top} FROM top_kernels") == (calls["kernel_dispatch"], pytest.approx(kernels / 1000))
        assert ask("SELECT coalesce(sum(GpuTime), 0) FROM busy") == (kernels + copies,)
        counted = "SELECT count(*), coalesce(sum(value), 0) FROM counters_collection"
        assert ask(counted) == (calls["kernel_dispatch"], calls["kernel_dispatch"])


@examples(1, 10)
@given(FILES, KINDS)
@example(TWO_HOSTS, "raw")
def test_what_filters_leave_of_each_process_adds_up_to_the_whole(files: Files, how: str) -> None:
    counted = "SELECT (SELECT count(*) FROM kernels), (SELECT count(*) FROM counters_collection), count(*) FROM threads"
    with written(files) as place:
        with opened(place, how) as traces:
            whole = sums(traces), traces.execute(counted).fetchall()[0]
            keys = [f"{guid}/{number}" for guid, number in traces.execute("SELECT guid, process FROM processes")]
        for choices in ([Filters(hosts=(host,)) for host in HOSTS], [Filters(processes=(key,)) for key in keys]):
            parts = []
            for chosen in choices:
                with opened(place, how, chosen) as traces:
                    parts.append((*sums(traces), *traces.execute(counted).fetchall()[0]))
            assert tuple(map(sum, zip(*parts, strict=True))) == (*whole[0], *whole[1])


def test_runs_of_processes_sealed_apart_are_read_as_the_whole(tmp_path: Path) -> None:
    files = [[*TWO_HOSTS[0], [Process(0, 7, [("region", 1, 5)])]]]
    with written(files) as place:
        for guid in ("guid-0", "guid-1"):
            seal(place, tmp_path / "parts" / guid, filters=Filters(processes=(guid,)))
        with open_traces(tmp_path / "parts") as parts, open_traces(place) as whole:
            for view in ("kernels", "regions", "processes", "threads", "agents", "top", "busy"):
                expected = sorted(map(repr, whole.execute(f"SELECT * FROM {view}")))
                assert sorted(map(repr, parts.execute(f"SELECT * FROM {view}"))) == expected, view


def test_a_guid_that_looks_like_a_path_or_a_pattern_is_only_a_name(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "x.db")) as database:
        rocpd_files.create(database, "_1", "../[a]*")
        _write_set(database, "_1", TWO_HOSTS[0][0])
        database.commit()
    run = seal(tmp_path / "x.db", tmp_path / "sealed", filters=Filters(processes=(escape("../[a]*"),)))
    with connect(run.path) as traces:
        assert sums(traces) == (2, 30)


def test_processes_with_one_guid_stay_apart_when_their_traces_are_converted(tmp_path: Path) -> None:
    """What several processes did is exported to RocPD, read, and exported again: each host keeps its calls."""
    for index, host in enumerate(HOSTS):
        write_raw(tmp_path / "raw" / str(index), [("conv", 0, 10 * (index + 1))], host=host)
    write = CONVERTERS["rocpd"].write
    write([str(tmp_path / "raw")], tmp_path / "one.db", Filters(), None)
    write([str(tmp_path / "one.db")], tmp_path / "two.db", Filters(), None)
    for name in ("one.db", "two.db"):
        with connect(tmp_path / name) as traces:
            found = {row.group: row.total_ns for row in summary(traces, by="host") if row.domain == "operator"}
            assert found == {"host0": 10, "host1": 20}, name


def test_a_sealed_run_of_version_1_tells_its_processes_apart(tmp_path: Path) -> None:
    """Written before rows named their process: three processes of a RocPD export, and one of ours."""
    place = tmp_path / "sealed_v1"
    shutil.copytree(GOLDEN / "sealed_v1", place)
    with connect([place, write_raw(tmp_path / "raw", [("conv", 0, 7)], host="host1")]) as traces:
        assert sums(traces, "host") == sums(traces, "process") == sums(traces)
        found = {row.group: row.total_ns for row in summary(traces, by="host") if row.name == "conv"}
        assert found == {"host0": 10 + 30, "host1": 20 + 7}
    with connect(place, filters=Filters(hosts=("host1",))) as traces:
        assert traces.execute("SELECT name, duration FROM kernels").fetchall() == [("conv", 20)]
