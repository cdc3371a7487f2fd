"""What stands out in a trace: planted traces in which each finding must appear, and others in which it must not."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.tvmtraces import rocpd_files
from tests.tvmtraces.traces_for_tests import BEGIN_NS, write_raw
from tvmdash.measure.capture import Capture, OperatorSpan, Sample
from tvmtraces import connect
from tvmtraces.analysis import Finding, find_findings


def found(*paths: Path, kind: str) -> list[Finding]:
    with connect(paths) as traces:
        return [finding for finding in find_findings(traces.traces) if finding.kind == kind]


def write_runs(folder: Path, runs: Sequence[Sequence[tuple[str, int, int]]]) -> Path:
    """The raw database of a process with these runs of one point, a second after one another."""
    folder.mkdir(parents=True, exist_ok=True)
    with Capture(folder, {}) as capture:
        trial = capture.begin({"workload": "network.mlp", "values": {}})
        spans = [OperatorSpan(number, *span) for number, run in enumerate(runs) for span in run]
        starts = [BEGIN_NS + number * 10**9 for number in range(len(runs))]
        capture.end(trial, samples=[Sample(300, 1)], operators=spans, run_starts_ns=starts)
    return next(folder.glob("raw_*.db"))


def test_a_gap_that_every_run_has_is_told_once_with_its_place_and_length(tmp_path: Path) -> None:
    spans = [("a", 0, 100_000), ("b", 101_000, 99_000), ("c", 400_000, 100_000)]
    (gap,) = found(write_runs(tmp_path, [spans] * 4), kind="idle gap")
    assert (gap.figure, gap.name) == (200_000, "c")
    assert gap.start_ns is not None
    assert (gap.start_ns - BEGIN_NS) % 10**9 == 200_000
    assert "for 40% of the run" in gap.text


def test_a_gap_of_one_run_alone_may_be_chance(tmp_path: Path) -> None:
    quiet, late = [("a", 0, 100_000), ("c", 101_000, 100_000)], [("a", 0, 100_000), ("c", 400_000, 100_000)]
    assert found(write_runs(tmp_path / "one", [quiet] * 4 + [late]), kind="idle gap") == []
    assert found(write_runs(tmp_path / "two", [late] * 2), kind="idle gap") == []


def test_a_gap_below_another_kernel_is_none(tmp_path: Path) -> None:
    spans = [("around", 0, 500_000), ("a", 100, 10), ("b", 400_000, 10)]
    assert found(write_runs(tmp_path, [spans] * 4), kind="idle gap") == []
    small = [("a", 0, 1000), ("b", 1140, 960)]
    assert found(write_runs(tmp_path / "small", [small] * 4), kind="idle gap") == []


def test_twenty_quiet_nights_have_no_finding_though_the_core_was_taken_away_at_times(tmp_path: Path) -> None:
    for night in range(20):
        chance = random.Random(night)
        paths = []
        for process in range(3):
            runs = []
            for _ in range(10):
                now, run = 0, []
                for number in range(12):
                    length = round(50_000 * (number + 1) * chance.lognormvariate(0, 0.03))
                    length += 5_000_000 * (chance.random() < 0.005)
                    now += chance.randrange(500, 4_000) + 5_000_000 * (chance.random() < 0.005)
                    run.append((f"op{number}", now, length))
                    now += length
                runs.append(run)
            paths.append(write_runs(tmp_path / str(night) / str(process), runs))
        with connect(paths) as traces:
            assert list(find_findings(traces.traces)) == []


def test_between_two_runs_of_a_network_no_kernel_is_expected(tmp_path: Path) -> None:
    with Capture(tmp_path, {}) as capture:
        trial = capture.begin({"workload": "network.mlp"})
        spans = [OperatorSpan(run, name, start, 100) for run in range(3) for name, start in (("a", 0), ("b", 101))]
        starts = [BEGIN_NS, BEGIN_NS + 10**6, BEGIN_NS + 10**7]
        capture.end(trial, samples=[Sample(300, 1)], operators=spans, run_starts_ns=starts)
    assert found(*tmp_path.glob("raw_*.db"), kind="idle gap") == []


@pytest.mark.parametrize(("longest", "figure"), [(100, None), (124, None), (126, 1.26), (300, 3.0)])
def test_a_process_that_works_longer_is_out_of_balance(
    tmp_path: Path, longest: int, figure: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TVMDASH_JOB", "relax_opt")
    lengths = (100, 100, longest)
    paths = [write_raw(tmp_path / str(number), [("a", 0, length)]) for number, length in enumerate(lengths)]
    told = found(*paths, kind="imbalance")
    assert [(finding.figure, finding.name) for finding in told] == ([(figure, "relax_opt")] if figure else [])


def write_copies(path: Path, kernels: Sequence[tuple[int, int]], copies: Sequence[tuple[int, int]]) -> Path:
    made = [rocpd_files.Kernel(0, start, length) for start, length in kernels]
    rocpd_files.write(path, made, ["k", "l", "m"], pid=7, more=True)
    with sqlite3.connect(path) as database:
        query = "SELECT name FROM sqlite_master WHERE name LIKE 'rocpd_memory_copy_%'"
        (table,) = database.execute(query).fetchone()
        (guid,) = database.execute(f'SELECT guid FROM "{table}"').fetchone()
        columns = "guid, nid, pid, tid, name_id, dst_agent_id, src_agent_id, size, event_id"
        (row,) = database.execute(f'SELECT {columns} FROM "{table}"').fetchall()
        database.execute(f'DELETE FROM "{table}"')
        for start, length in copies:
            marks = ", ".join("?" * (len(row) + 2))
            values = (start, start + length, *row)
            database.execute(f'INSERT INTO "{table}" (start, "end", {columns}) VALUES ({marks})', values)
        assert guid == row[0]
    database.close()
    return path


def test_copies_beside_no_kernel_are_told_with_their_time(tmp_path: Path) -> None:
    path = write_copies(tmp_path / "x.db", [(1000, 1000), (4000, 1000)], [(1500, 1000), (2600, 100), (4100, 100)])
    (told,) = found(path, kind="copies alone")
    assert (told.figure, told.start_ns) == (600, 1500)
    assert "30% of the kernels' time" in told.text


def test_copies_that_kernels_cover_are_not_told(tmp_path: Path) -> None:
    path = write_copies(tmp_path / "x.db", [(1000, 1000), (2000, 1000)], [(1500, 1000), (2900, 150)])
    assert found(path, kind="copies alone") == []


@pytest.mark.parametrize("slow", [0, 2, 8])
def test_the_operator_that_varies_most_is_named(tmp_path: Path, slow: int) -> None:
    spans = [(name, 1000 * index + shift, 100) for index in range(20) for name, shift in (("even", 0), ("odd", 500))]
    spans += [("odd", 30_000 + 1000 * index, 400) for index in range(slow)]
    spans += [("rare", 50_000 + 1000 * index, 10 * 9**index) for index in range(2)]
    told = found(write_raw(tmp_path, spans), kind="varying operator")
    figures = [(finding.name, finding.figure, finding.start_ns) for finding in told]
    assert figures == ([("odd", pytest.approx(300.0), BEGIN_NS + 30_000)] if slow == 8 else [])
