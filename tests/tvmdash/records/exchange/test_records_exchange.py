"""Records out and in: what comes back is what went, every version of ours stays readable, strangers are checked."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tvmdash.records.exchange.hostile import read_hostile
from tvmdash import records
from tvmdash.errors import DashboardError
from tvmdash.records import Record, migrations
from tvmdash.records import record as record_module
from tvmdash.records.exchange import (
    FORMATS,
    PlacedRecord,
    find_format,
    keep,
    migrate,
    read_records,
    records_in,
    write_records,
)
from tvmdash.records.exchange.formats import NO_MEDIAN

GOLDEN = Path(__file__).resolve().parents[3] / "golden"
LIBRARY = Path(__file__).resolve().parents[4] / "shared" / "python"
STAMP = "20261121T031500Z"


def golden(version: int = 1) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((GOLDEN / f"data_v{version}.json").read_text())
    return found


def placed(**changes: Any) -> PlacedRecord:
    return PlacedRecord("relax_opt", STAMP, "c7b458e94", Record.from_json({**golden()["records"][0], **changes}))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with the golden night, and one foreign night without records."""
    for name, value in (("relax_opt", golden()), ("foreign", {"gpu": {"mean": 1.0}})):
        folder = tmp_path / "home" / "results" / "experiments" / "data" / name
        folder.mkdir(parents=True)
        (folder / f"data_{STAMP}.json").write_text(json.dumps(value))
    return tmp_path / "home"


@pytest.mark.parametrize("version", range(1, records.SCHEMA_VERSION + 1))
def test_every_version_ever_written_is_readable(version: int, tmp_path: Path) -> None:
    path = tmp_path / f"data_{STAMP}.json"
    path.write_text(json.dumps(golden(version)))
    night = records.read_data(path, "relax_opt")
    assert [record.workload for record in night.records] == ["network.nature-dqn"]
    assert [failure.error for failure in night.failures] == ["wrong answer"]


def test_migrations_are_a_chain_of_steps_that_leave_their_input_alone() -> None:
    given_value = {"schema_version": 1, "records": [], "old": 1}
    steps = {
        1: lambda value: {**{k: v for k, v in value.items() if k != "old"}, "new": value["old"] + 1},
        2: lambda value: {**value, "newest": value["new"] + 1},
    }
    assert migrate(given_value, steps=steps, newest=3) == {"schema_version": 3, "records": [], "new": 2, "newest": 3}
    assert migrate({**given_value, "schema_version": 3}, steps=steps, newest=3)["old"] == 1
    assert given_value == {"schema_version": 1, "records": [], "old": 1}


def test_a_data_file_is_read_through_the_chain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it will be when there is a version 2: here a step of the future renames the TVM."""
    chain = migrations.migrate
    step = {0: lambda value: {**value, "tvm_hash": f"{value['tvm_hash']} by a step"}}

    def migrated(value: Any) -> dict[str, Any]:
        moved = chain({**value, "schema_version": value["schema_version"] + 1}, steps={1: step[0]}, newest=2)
        return {**moved, "schema_version": 1}

    monkeypatch.setattr(record_module, "migrate", migrated)
    path = tmp_path / f"data_{STAMP}.json"
    path.write_text(json.dumps({**golden(), "schema_version": 0}))
    assert records.read_data(path, "relax_opt").tvm_hash == f"{golden()['tvm_hash']} by a step"


def test_a_newer_version_is_told_from_a_broken_one() -> None:
    with pytest.raises(DashboardError, match=r"3 is newer than 2\. Update the dashboard"):
        migrate({"schema_version": 3, "records": []})


@pytest.mark.parametrize("version", [0, None, "1", True, 1.0])
def test_an_unknown_version_is_refused(version: object) -> None:
    with pytest.raises(DashboardError, match="not a whole number from 1 to 1"):
        migrate({"schema_version": version, "records": []})


def test_what_holds_no_records_is_no_version_of_ours() -> None:
    assert migrate({"gpu": 1.5}) == {"gpu": 1.5}


@pytest.mark.parametrize("style", FORMATS)
def test_records_come_back_as_they_went(style: str, home: Path, tmp_path: Path) -> None:
    if style == "parquet":
        pytest.importorskip("duckdb", reason="duckdb is not installed: Parquet cannot be written")
    rows = list(records_in(home))
    assert [row.experiment for row in rows] == ["relax_opt"]
    assert write_records(tmp_path / "out", rows, style) == 1
    assert list(read_records(tmp_path / "out", style)) == rows
    assert write_records(tmp_path / "none", [], style) == 0
    assert list(read_records(tmp_path / "none", style)) == []


@pytest.mark.parametrize("style", FORMATS)
def test_a_deviation_that_is_not_known_stays_unknown(style: str, tmp_path: Path) -> None:
    if style == "parquet":
        pytest.importorskip("duckdb", reason="duckdb is not installed: Parquet cannot be written")
    rows = [placed(execution_elapsed_ms_std=None), placed(execution_elapsed_ms_std=0.5)]
    write_records(tmp_path / "out", rows, style)
    assert list(read_records(tmp_path / "out", style)) == rows


JSON_OBJECT = st.dictionaries(
    st.text(max_size=5),
    st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    max_size=3,
)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["json", "jsonl", "tvm-0.1"]),
    st.text(min_size=1, max_size=8),
    JSON_OBJECT,
    st.floats(0, 1e9),
    st.floats(0, 1e9) | st.none(),
)
def test_any_record_comes_back(
    tmp_path_factory: pytest.TempPathFactory,
    style: str,
    engine: str,
    config: dict[str, Any],
    mean: float,
    std: float | None,
) -> None:
    times = {"execution_elapsed_ms_mean": mean, "execution_elapsed_ms_std": std}
    row = placed(engine=engine, build_config=config, workload_args=config, **times)
    path = tmp_path_factory.mktemp("any") / "out"
    write_records(path, [row], style)
    assert list(read_records(path, style)) == [row]


def test_the_log_format_of_tvm_is_read_as_its_documentation_prints_it() -> None:
    one, two = read_records(GOLDEN / "tvm_log_v01.json", "tvm-0.1", "elsewhere")
    assert (one.experiment, one.night, one.tvm_hash) == ("elsewhere", "20191123T003411Z", "1.0.0")
    assert (one.record.workload, one.record.target) == ("network.resnet-18", "llvm -mcpu=cascadelake")
    assert one.record.engine_config == {"llvm": "llvm-8"}
    assert one.record.build_config == {"relay_opt_level": 3}
    assert one.record.timestamp == "2019-11-23T00:34:11Z"
    info = one.record.additional_info
    assert (info["execution_elapsed_ms_median"], info["samples"], info["compile_time"]) == (12, 3, 12)
    assert info["validation_accuracy"] == 48.5
    assert two.record.workload == "bert.base"
    assert two.record.additional_info["doubts"] == [NO_MEDIAN]
    assert (two.night, two.record.execution_elapsed_ms_std) == ("20191028T171139Z", None)


def test_the_log_format_has_the_fields_of_the_documentation(tmp_path: Path) -> None:
    write_records(tmp_path / "out", [placed()], "tvm-0.1")
    entry = json.loads((tmp_path / "out").read_text())
    assert entry["runtime_ms_mean"] == 12.1
    assert entry["hardware"] == "AMD EPYC 9B14"
    assert entry["timestamp"] == "20261121031507"
    assert entry["schema_version"] == "0.1"
    assert entry["engine_config"] == {"pipeline": "zero", "tvm_target": "llvm -mcpu=x86-64-v3"}
    assert entry["metrics"] == {"compilation_ms_mean": 712.5, "code_size": 6700000}
    documented = json.loads((GOLDEN / "tvm_log_v01.json").read_text())[0]
    assert documented.keys() <= entry.keys()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"night": "yesterday"}, "record 1: .*night.*not a stamp"),
        ({"experiment": "../../etc"}, "not a valid experiment name"),
        ({"experiment": "a\nb"}, "not a valid experiment name"),
        ({"experiment": "x" * 256}, "not a valid experiment name"),
        ({"night": "20261399T999999Z"}, r"\$.night: .*month"),
        ({"additional_info": {**golden()["records"][0]["additional_info"], "paired": 5}}, r"paired: 5 is not of type"),
        ({"experiment": 5}, r"\$.experiment: 5 is not a text"),
        ({"workload": "nodomain"}, "workload"),
        ({"execution_elapsed_ms_mean": "fast"}, "execution_elapsed_ms_mean"),
        ({"surprise": 1}, "surprise"),
        ({"schema_version": 2}, "schema_version"),
    ],
)
def test_a_strangers_record_is_checked(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    (tmp_path / "in").write_text(json.dumps({**placed().to_json(), **change}) + "\n")
    with pytest.raises(DashboardError, match=words):
        list(read_records(tmp_path / "in", "jsonl"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema_version": "0.2"}, "record 1: .*schema_version"),
        ({"timestamp": "soon"}, "timestamp"),
        ({"runtime_ms_mean": None}, "runtime_ms_mean"),
        ({"metrics": []}, "metrics"),
        ({"hardware": ""}, "hardware"),
    ],
)
def test_a_broken_entry_of_the_log_is_refused(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    entry = json.loads((GOLDEN / "tvm_log_v01.json").read_text())[1]
    (tmp_path / "in").write_text(json.dumps({**entry, **change}))
    with pytest.raises(DashboardError, match=words):
        list(read_records(tmp_path / "in", "tvm-0.1"))


@pytest.mark.parametrize("style", FORMATS)
def test_what_is_no_file_of_records_is_said(style: str, tmp_path: Path) -> None:
    if style == "parquet":
        pytest.importorskip("duckdb", reason="duckdb is not installed: Parquet cannot be read")
    (tmp_path / "in").write_text("hello")
    with pytest.raises(DashboardError, match=str(tmp_path / "in")):
        list(read_records(tmp_path / "in", style))


@pytest.mark.parametrize("style", FORMATS)
def test_a_format_is_known_by_the_name_of_its_file(style: str, home: Path, tmp_path: Path) -> None:
    if style == "parquet":
        pytest.importorskip("duckdb", reason="duckdb is not installed: Parquet cannot be written")
    assert run("export", home, "--to", tmp_path / f"all.{style}").returncode == 0
    assert [row.experiment for row in read_records(tmp_path / f"all.{style}", style)] == ["relax_opt"]
    into = run("import", tmp_path / f"all.{style}", "--to", tmp_path / "copy")
    assert (into.returncode, into.stderr) == (0, "")


def test_a_name_that_says_no_format_is_of_json_lines_and_what_is_asked_for_comes_first(
    home: Path, tmp_path: Path
) -> None:
    assert find_format(tmp_path / "records.txt") == "jsonl"
    assert find_format(tmp_path / "RECORDS.PARQUET") == "parquet"
    assert run("export", home, "--to", tmp_path / "all.json", "--format", "jsonl").returncode == 0
    assert len(list(read_records(tmp_path / "all.json", "jsonl"))) == 1


def test_a_moment_that_is_none_is_said_where_a_format_needs_one(tmp_path: Path) -> None:
    with pytest.raises(DashboardError, match=rf"relax_opt/{STAMP}: \$.timestamp: 'soon' is not an ISO 8601 date"):
        write_records(tmp_path / "out", [placed(timestamp="soon")], "tvm-0.1")
    assert not list(tmp_path.iterdir())


def test_hostile_files_are_read_or_refused_and_nothing_else_is_written(tmp_path: Path) -> None:
    """Few of them: tests/slow/test_hostile_records.py reads ten thousand."""
    count = 250
    pytest.importorskip("duckdb", reason="duckdb is not installed: Parquet cannot be read")
    (tmp_path / "jail").mkdir()
    outcomes = read_hostile(tmp_path / "jail", count, seed=20)
    assert outcomes["refused"] > count // 2
    assert outcomes["read"] > count // 50
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_an_import_is_written_once_and_never_over_something_else(tmp_path: Path) -> None:
    first = keep([placed()], tmp_path)
    assert [path.name for path in first.written] == [f"data_{STAMP}.json"]
    assert records.read_data(first.written[0], "relax_opt").records == (placed().record,)
    assert keep([placed()], tmp_path).written == ()
    with pytest.raises(DashboardError, match="already exists with different contents"):
        keep([placed(engine="other")], tmp_path)
    with pytest.raises(DashboardError, match="two TVMs"):
        keep([placed(), PlacedRecord("relax_opt", STAMP, "other", placed().record)], tmp_path / "new")
    assert not (tmp_path / "new").exists()


def run(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tvmdash.records.exchange", *map(str, words)]
    return subprocess.run(command, cwd=LIBRARY, capture_output=True, text=True, check=False)


def test_the_commands_export_and_import(home: Path, tmp_path: Path) -> None:
    out = run("export", home, "--to", tmp_path / "all.jsonl")
    assert (out.returncode, out.stdout) == (0, f"{tmp_path / 'all.jsonl'}: 1 record.\n")
    into = run("import", tmp_path / "all.jsonl", "--to", tmp_path / "copy")
    assert into.returncode == 0
    assert len(records.read_data(tmp_path / "copy" / "relax_opt" / f"data_{STAMP}.json", "relax_opt").records) == 1
    again = run("export", home, "--to", tmp_path / "all.jsonl")
    assert again.returncode == 2
    assert "already exists" in again.stderr


def test_what_was_imported_is_exported_as_it_was(home: Path, tmp_path: Path) -> None:
    run("export", home, "--to", tmp_path / "first.jsonl")
    run("import", tmp_path / "first.jsonl", "--to", tmp_path / "copy")
    for name, source in (("all", tmp_path / "copy"), ("one", tmp_path / "copy" / "relax_opt")):
        out = run("export", source, "--to", tmp_path / f"{name}.jsonl")
        assert (out.returncode, out.stdout) == (0, f"{tmp_path / f'{name}.jsonl'}: 1 record.\n")
        assert (tmp_path / f"{name}.jsonl").read_text() == (tmp_path / "first.jsonl").read_text()


def test_an_export_or_import_of_nothing_says_so_and_fails(home: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for words, said in (
        ([tmp_path / "empty"], f"{tmp_path / 'empty'}: no records. Give a home,"),
        ([home, "--experiment", "none"], f"{home}: no records of experiment none."),
    ):
        out = run("export", *words, "--to", tmp_path / "out.jsonl")
        assert (out.returncode, out.stdout) == (2, "")
        assert out.stderr.startswith(said)
        assert not (tmp_path / "out.jsonl").exists()
    (tmp_path / "none.jsonl").write_text("")
    into = run("import", tmp_path / "none.jsonl", "--to", tmp_path / "copy")
    assert (into.returncode, into.stdout) == (2, "")
    assert into.stderr.startswith(f"{tmp_path / 'none.jsonl'}: contains no records.")
