"""Raw databases: what is committed stays, whatever happens to the process."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tvmdash.errors import DashboardError
from tvmdash.measure.capture import Capture, OperatorSpan, Sample, read_trials

SHARED = Path(__file__).resolve().parents[3] / "shared" / "python"


def test_what_a_trial_gave_is_read_back(tmp_path: Path) -> None:
    with Capture(tmp_path, {"engine": "e"}) as capture:
        trial = capture.begin({"workload": "a.b"})
        spans = [OperatorSpan(0, "matmul", 5, 7)]
        samples = [Sample(2_000_000, 2), Sample(3_000_000, 2)]
        capture.end(trial, samples=samples, facts={"x": 1}, passes=[("Fold", 9)], operators=spans)
    (read,) = read_trials(tmp_path)
    assert read.samples == tuple(samples)
    assert [sample.ms for sample in read.samples] == [1.0, 1.5]
    assert (read.point, read.facts, read.process, read.error) == ({"workload": "a.b"}, {"x": 1}, {"engine": "e"}, None)


def test_a_killed_process_loses_only_the_trial_it_was_in(tmp_path: Path) -> None:
    script = textwrap.dedent("""
        import sys, time
        from pathlib import Path
        from tvmdash.measure.capture import Capture, Sample
        capture = Capture(Path(sys.argv[1]), {})
        for number in range(3):
            trial = capture.begin({"number": number})
            if number == 2:
                print("in the third", flush=True)
                time.sleep(60)
            capture.end(trial, samples=[Sample(1000, 1)])
    """)
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(SHARED)},
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"in the third\n"
        process.send_signal(signal.SIGKILL)
    trials = list(read_trials(tmp_path))
    assert [trial.error is None for trial in trials] == [True, True, False]
    assert "was killed during" in (trials[2].error or "")


def test_databases_of_several_processes_are_read_as_one(tmp_path: Path) -> None:
    for name in ("process_0", "process_1"):
        (tmp_path / name).mkdir()
        with Capture(tmp_path / name, {}) as capture:
            capture.end(capture.begin({"in": name}), samples=[Sample(1, 1)])
    assert [trial.point["in"] for trial in read_trials(tmp_path)] == ["process_0", "process_1"]


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "raw_1_1.db").write_bytes(b"not a database, long enough to be looked at" * 40)
    with pytest.raises(DashboardError, match=r"raw_1_1\.db: not a raw database"):
        list(read_trials(tmp_path))


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    with Capture(tmp_path, {}):
        pass
    (path,) = tmp_path.glob("raw_*.db")
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(DashboardError, match="format version 99 is not 1"):
        list(read_trials(tmp_path))


def test_many_rows_of_a_trial_are_all_read_back(tmp_path: Path) -> None:
    samples = [Sample(number, 1) for number in range(1, 1251)]
    with Capture(tmp_path, {}) as capture:
        capture.end(capture.begin({}), samples=samples, passes=[(f"pass{number}", number) for number in range(301)])
    (read,) = read_trials(tmp_path)
    assert list(read.samples) == samples
    (path,) = tmp_path.glob("raw_*.db")
    with sqlite3.connect(path) as database:
        query = "SELECT N.name, P.duration_ns FROM passes P JOIN names N ON N.id = P.name ORDER BY P.position"
        assert database.execute(query).fetchall() == [(f"pass{number}", number) for number in range(301)]
    database.close()


def test_a_trial_that_cannot_be_told_leaves_nothing_of_itself_and_the_next_one_is_whole(tmp_path: Path) -> None:
    spans = [OperatorSpan(0, "matmul", 5, 7)]
    with Capture(tmp_path, {}) as capture:
        with pytest.raises(ValueError, match="not JSON compliant"):
            capture.end(capture.begin({"n": 1}), samples=[Sample(1, 1)], facts={"x": float("nan")}, operators=spans)
        capture.end(capture.begin({"n": 2}), samples=[Sample(2, 1)], operators=spans)
    first, second = read_trials(tmp_path)
    assert (first.samples, first.error is None) == ((), False)
    assert (second.samples, second.error) == ((Sample(2, 1),), None)
    (path,) = tmp_path.glob("raw_*.db")
    with sqlite3.connect(path) as database:
        assert database.execute("SELECT id, name FROM names").fetchall() == [(1, "matmul")]
        assert database.execute("SELECT names FROM runs").fetchall() == [((1).to_bytes(4, "little"),)]
    database.close()
