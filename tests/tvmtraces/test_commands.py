"""The command line of traces: formats, exit codes, and every example of docs/reference/traces.md on a small night."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tvmtraces.test_seal import write_data, write_night
from tests.tvmtraces.traces_for_tests import BEGIN_NS, write_raw
from tvmtraces.__main__ import main
from tvmtraces.commands import COMMANDS
from tvmtraces.export.converters import CONVERTERS
from tvmtraces.views import VIEWS

REPO = Path(__file__).resolve().parents[2]
PAGE = (REPO / "docs" / "reference" / "traces.md").read_text(encoding="utf-8")
STAMP = "20261121T031500Z"


def run(folder: Path, *arguments: str, code: int = 0) -> str:
    """What the command, done in this process, prints: its output, or its errors where it fails."""
    output, errors = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            ended = main(arguments)
        except SystemExit as usage:
            ended = usage.code
    assert ended == code, errors.getvalue()
    return output.getvalue() if code == 0 else errors.getvalue()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a night's raw databases, its data file and its record, and another night's."""
    folder = tmp_path_factory.mktemp("night")
    for number, workload in enumerate(("network.mlp", "network.dqn")):
        write_raw(folder / "raw" / f"process_{number}", workload=workload)
        spans = [("matmul", 0, 95), ("relu", 100, 10)]
        write_raw(folder / "raw-before" / f"process_{number}", spans, workload=workload, begun_ns=BEGIN_NS - 10**14)
    write_data(folder, "relax_opt", STAMP)
    write_night(folder, STAMP)
    return folder


def test_a_query_that_takes_too_long_is_stopped(home: Path) -> None:
    endless = "SELECT count(*) FROM range(1000000000) a, range(1000000000) b WHERE a.range + b.range = -1"
    said = "the query was stopped after 0.3 s. Ask for less, as with --night or LIMIT, or raise --timeout.\n"
    assert run(home, "query", endless, "raw", "--timeout", "0.3", code=1).endswith(said)
    assert "matmul" in run(home, "query", "SELECT name FROM kernels", "raw", "--timeout", "0")


def test_rows_come_in_five_formats(home: Path) -> None:
    sql = "SELECT name, duration, 'a|b <i>' AS mark FROM kernels WHERE duration < 50 ORDER BY guid LIMIT 1"
    assert json.loads(run(home, "query", sql, "raw", "--format", "json")) == [
        {"name": "relu", "duration": 10, "mark": "a|b <i>"}
    ]
    assert list(csv.reader(io.StringIO(run(home, "query", sql, "raw", "--format", "csv")))) == [
        ["name", "duration", "mark"],
        ["relu", "10", "a|b <i>"],
    ]
    assert run(home, "query", sql, "raw").splitlines() == [
        "name  duration  mark",
        "----  --------  -------",
        "relu        10  a|b <i>",
    ]
    assert "| relu | 10 | a\\|b &lt;i&gt; |" in run(home, "query", sql, "raw", "--format", "markdown")
    assert "<td>a|b &lt;i&gt;</td>" in run(home, "query", sql, "raw", "--format", "html")


def test_a_fault_is_one_sentence_and_exit_code_1(home: Path) -> None:
    assert "no such file or folder" in run(home, "query", "SELECT 1", "nowhere", code=1)
    assert "nonsense" in run(home, "query", "SELECT nonsense FROM kernels", "raw", code=1)
    assert "given twice" in run(home, "seal", "new", "raw", "raw/process_0", code=1)
    assert not (home / "new").exists()
    assert "invalid choice" in run(home, "nothing", code=2)
    assert "not a time" in run(home, "summary", "raw", "--from", "soon", code=1)


def test_a_reader_that_has_enough_is_no_fault(home: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(REPO / "shared" / "python")}
    sql = "SELECT * FROM range(100000)"
    command = f"{shlex.quote(sys.executable)} -m tvmtraces query {shlex.quote(sql)} raw --format csv | head -1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], cwd=home, env=environment, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, b"", b"range\n")


def test_every_verb_view_and_converter_is_documented() -> None:
    assert not [name for name in COMMANDS if f"tvmdash.traces {name}" not in PAGE]
    assert not [name for name in VIEWS if f"`{name}`" not in PAGE]
    assert not [name for name in CONVERTERS if f"`{name}`" not in PAGE]


EXAMPLES = [
    (command, expected.splitlines())
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    for command, expected in re.findall(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
]


def test_every_example_of_the_page_runs_as_it_says(home: Path) -> None:
    """In the order of the page, in one folder; digits that depend on the machine are written as N there."""
    assert len(EXAMPLES) >= len(COMMANDS)
    for command, expected in EXAMPLES:
        words = shlex.split(command.replace("\\\n", " "))
        assert words[:3] == ["python3", "-m", "tvmdash.traces"], command
        printed = run(home, *words[3:]).splitlines()
        assert len(printed) == len(expected), (command, printed)
        for line, pattern in zip(printed, expected, strict=True):
            wanted = re.sub(r"\\?\bN\b", r"[-0-9.]+", re.escape(re.sub(r"\s+", " ", pattern.strip())))
            wanted = wanted.replace("GUID", "[-0-9a-f]+")
            assert re.fullmatch(wanted, re.sub(r"\s+", " ", line.strip())), (command, line, pattern)


@pytest.mark.parametrize("number", [0, 1])
def test_a_python_example_of_the_page_runs(number: int, home: Path) -> None:
    scripts = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(scripts) == 2
    environment = {**os.environ, "PYTHONPATH": str(REPO / "shared" / "python")}
    done = subprocess.run(
        [sys.executable, "-c", scripts[number]], cwd=home, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "matmul" in done.stdout
    assert number == 0 or ("80.0" in done.stdout and "('relu', 20)" in done.stdout)


def test_what_a_pattern_after_an_exclamation_mark_fits_is_left_out(home: Path) -> None:
    count = "SELECT name, count(*) AS n FROM {} GROUP BY name ORDER BY name"
    kernels = ("query", count.format("kernels"), "raw", "--format", "csv")
    assert run(home, *kernels, "--operator", "!mat*") == "name,n\nrelu,2\n"
    assert run(home, *kernels, "--operator", "!mat*", "--operator", "!re*") == "name,n\n"
    assert run(home, *kernels, "--operator", "*", "--operator", "!relu") == "name,n\nmatmul,4\n"
    assert run(home, *kernels, "--category", "!operator") == "name,n\n"
    assert run(home, *kernels, "--host", "!node") == "name,n\n"
    assert run(home, *kernels, "--host", "!other") == "name,n\nmatmul,4\nrelu,2\n"
    assert run(home, *kernels, "--workload", "!*.mlp") == "name,n\nmatmul,2\nrelu,1\n"
    regions = ("query", count.format("regions"), "raw", "--format", "csv")
    assert run(home, *regions) == "name,n\ncompile,2\n"
    assert run(home, *regions, "--region", "!comp*") == "name,n\n"
    assert run(home, *regions, "--region", "comp*") == "name,n\ncompile,2\n"


def test_views_are_listed_and_described(home: Path) -> None:
    listed = [line.split(",")[0] for line in run(home, "views", "--format", "csv").splitlines()[1:]]
    assert listed == [*VIEWS, "rocpd_string ..."]
    told = [tuple(line.split(",")) for line in run(home, "views", "kernels", "--format", "csv").splitlines()[1:]]
    rows = json.loads(run(home, "query", "DESCRIBE kernels", "raw", "--format", "json"))
    assert told == [(row["column_name"], row["column_type"]) for row in rows]
    assert "no such view" in run(home, "views", "nothing", code=1)


def test_a_moment_is_readable(home: Path) -> None:
    sql = "SELECT utc(start) AS at FROM kernels ORDER BY start LIMIT 1"
    assert run(home, "query", sql, "raw", "--format", "csv") == "at\n2026-11-18T11:06:40.000000000Z\n"


def test_two_nights_are_compared_by_their_stamps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, night in enumerate(("20261120T031500Z", "20261121T031500Z")):
        monkeypatch.setenv("TVMDASH_NIGHT", night)
        write_raw(tmp_path / "kept" / night, [("matmul", 0, 100 + 50 * number)])
    monkeypatch.delenv("TVMDASH_NIGHT")
    stamps = ("diff", "20261120T031500Z", "20261121T031500Z")
    (first, *_, rest) = csv.DictReader(io.StringIO(run(tmp_path, *stamps, "--in", "kept", "--format", "csv")))
    assert [first[name] for name in ("operator", "before_ns", "after_ns", "change_ns", "processes", "verdict")] == [
        "matmul", "100.0", "150.0", "50.0", "1, 1", "unclear",
    ]  # fmt: skip
    assert (rest["operator"], rest["change_ns"]) == ("(unexplained)", "-50.0")
    assert "no process of this night" in run(tmp_path, *stamps[:2], "20261122T031500Z", "--in", "kept", code=1)


def test_a_night_is_compared_with_the_reference_that_it_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for process in range(5):
        for job, slower in (("cnn@reference", 0), ("cnn", 30)):
            monkeypatch.setenv("TVMDASH_JOB", job)
            write_raw(tmp_path / "raw" / f"{job}{process}", [("matmul", 0, 100 + slower + process % 3)])
    monkeypatch.delenv("TVMDASH_JOB")
    first = next(csv.DictReader(io.StringIO(run(tmp_path, "diff", "raw", "--format", "csv"))))
    assert (first["point"], first["operator"], first["verdict"]) == ('cnn network.mlp {"batch": 1}', "matmul", "worse")
    assert float(first["low_ns"]) < 30 < float(first["high_ns"])
    write_raw(tmp_path / "other")
    assert "no reference" in run(tmp_path, "diff", "other", code=1)
