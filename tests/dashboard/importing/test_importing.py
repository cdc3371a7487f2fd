"""`dashboard import`: every format, twice as good as once, nothing of the source changed, strangers' files harmless."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dashboard.cli import main as cli
from dashboard.cli.arguments import HELD, OK_CODE, SOME_FAILED, USAGE
from dashboard.importing.ingest import FORMATS
from dashboard.night import lock
from tests.golden_files import Golden
from tvmdash import records
from tvmdash.dashboard_info import Home
from tvmdash.machine import identity
from tvmdash.machine.identity import MachineIdentity, Rename, RenameKind
from tvmdash.series import store

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "import"
OLD = "relay-home/results/experiments/data/relay_opt"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "home" / "config").mkdir(parents=True)
    return Home(tmp_path / "home")


def take(home: Home, source: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, list[str]]:
    """Exit code and lines of one import."""
    code = cli.main(["import", str(home.root), str(source), *options])
    printed = capsys.readouterr()
    return code, (printed.out + printed.err).splitlines()


def night(home: Home, experiment: str) -> tuple[records.NightData, dict[str, Any]]:
    """The only night of an experiment, as the dashboard reads it, and what it says of its origin."""
    [stamp] = home.data_stamps(experiment)
    path = home.data_file(experiment, stamp)
    return records.read_data(path, experiment), json.loads(path.read_text())["night"]["imported"]


def contents(folder: Path) -> dict[str, tuple[str, int]]:
    """Digest and time of change of every file below a folder."""
    return {
        str(path.relative_to(folder)): (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


def counts(line: str) -> tuple[int, ...]:
    """How many nights were taken, imported already, skipped, broken."""
    return tuple(map(int, re.findall(r"(\d+) (?:nights taken|already imported|skipped|broken)", line)))


def without_parser(line: str) -> str:
    """The line without what Python's parser says, in words of its version."""
    return line.partition(": Expecting")[0]


def test_every_format_is_taken_and_each_file_told(
    home: Home, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    before = contents(GOLDEN)
    code, lines = take(home, GOLDEN, capsys)
    again = take(home, GOLDEN, capsys)[1]
    told = [("a source of every format", lines), ("the same again", again)]
    golden.messages("import", [(name, "\n".join(map(without_parser, each))) for name, each in told])
    assert code == SOME_FAILED  # one golden file is cut off
    assert counts(lines[-1]) == (6, 0, 0, 1)
    assert "read as UTC" in lines[-1]
    (broken,) = (line.split()[1] for line in lines if line.startswith("broken"))
    assert broken == f"{OLD}/data_02-12-2021-0315.json:"
    names = {path.name for path in home.data("x").parent.iterdir()}
    assert names == {"relay_opt", "cnn_comp", "asv", "pyperf", "bench_runtime"}
    formats = {json.loads(path.read_text())["night"]["imported"]["format"] for path in home.root.rglob("data_*.json")}
    assert formats == {one.name for one in FORMATS} - {"records"}
    assert contents(GOLDEN) == before


def test_the_same_source_twice_adds_nothing(home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    take(home, GOLDEN, capsys)
    before = contents(home.data("x").parent)
    code, lines = take(home, GOLDEN, capsys)
    assert counts(lines[-1]) == (0, 7, 0, 1)  # one night is of two files
    moved = tmp_path / "moved.json"
    shutil.copy(GOLDEN / "pyperf.json", moved)
    code, lines = take(home, moved, capsys, "--experiment", "pyperf")
    assert (code, lines[0].split()[-1]) == (OK_CODE, "pyperf/data_20261021T031410Z.json")
    assert contents(home.data("x").parent) == before


def test_a_file_that_has_changed_since_is_told_and_left(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "pyperf.json"
    shutil.copy(GOLDEN / "pyperf.json", source)
    take(home, source, capsys)
    before = contents(home.data("pyperf"))
    source.write_text(source.read_text().replace("0.021,", "0.029,"))
    code, lines = take(home, source, capsys)
    assert code == OK_CODE
    assert "has changed since" in lines[0]
    assert "pyperf/data_20261021T031410Z.json" in lines[0]
    assert contents(home.data("pyperf")) == before


def test_a_night_of_the_future_is_told_and_not_taken(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    value = json.loads((GOLDEN / "google_benchmark.json").read_text())
    value["context"]["date"] = "2999-01-02T03:04:05+00:00"
    (tmp_path / "later.json").write_text(json.dumps(value))
    code, lines = take(home, tmp_path / "later.json", capsys)
    assert code == SOME_FAILED
    assert lines[0].split()[:2] == ["broken", f"{tmp_path}/later.json:"]
    assert "29990102T030405Z" in lines[0]
    assert not home.experiments_with_data()


def test_a_source_of_a_renamed_experiment_is_filed_under_its_name_of_today(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    take(home, GOLDEN / "pyperf.json", capsys)
    renames = (Rename(RenameKind.EXPERIMENT, "pyperf", "interpreter", "2026-11-01T00:00:00Z", "ann"),)
    identity.write(home.machine_file, MachineIdentity("box", "20261101T000000Z", None, "x", renames=renames))
    home.data("pyperf").rename(home.data("interpreter"))
    _, lines = take(home, GOLDEN / "pyperf.json", capsys)
    assert lines[0].endswith("is interpreter/data_20261021T031410Z.json")
    assert home.experiments_with_data() == ["interpreter"]


def test_a_dry_run_says_what_it_would_take_and_writes_nothing(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    _, lines = take(home, GOLDEN, capsys, "--dry-run")
    assert lines[-1].startswith("6 nights would be taken")
    assert sum(line.startswith("would take") for line in lines) == 6
    assert contents(home.root) == {}


def test_what_was_imported_becomes_series(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    take(home, GOLDEN, capsys)
    with store.open_for_reading(None, home.data("relay_opt"), "relay_opt") as opened:
        series = {one.labels["path"]: one for one in opened.series("relay_opt")}
    assert series["$.cpu.O0.resnet-18"].values == (0.31, 0.3)
    assert series["$.cpu.O0.resnet-18"].stamps == ("20190614T033000Z", "20210211T031500Z")
    assert series["$.cpu.O3.resnet-18"].values == (0.21,)  # NaN in 2021
    assert len(series) == 4  # `detailed` says the same again
    with store.open_for_reading(None, home.data("cnn_comp"), "cnn_comp") as opened:
        assert len(opened.series("cnn_comp", "run_time")) == 3


def test_the_ancestors_local_stamps_are_read_in_the_zone_given(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    take(home, GOLDEN / OLD, capsys, "--timezone", "America/Los_Angeles")
    assert home.data_stamps("relay_opt") == ["20190614T103000Z", "20210211T111500Z"]  # summer, winter
    value = json.loads(home.data_file("relay_opt", "20210211T111500Z").read_text())
    assert value["tvm_hash"] == "5a9f5d8f0d"
    assert value["night"]["imported"]["timezone"] == "America/Los_Angeles"
    assert value["night"]["imported"]["detailed"]["cpu"]["O0"]["resnet-18"]["std"] == 0.01
    assert value["night"]["imported"]["time_delta"] == "0:05:40"


def test_an_archive_of_raw_csv_is_one_night_of_records(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = tmp_path / "benchmarks_08-02-2019-0315_data.tar.gz"
    with tarfile.open(archive, "w:gz") as file:
        file.add(GOLDEN / "benchmarks_08-02-2019-0315", "tmp/data/benchmarks_08-02-2019-0315")
    code, _ = take(home, archive, capsys)
    assert code == OK_CODE
    found, origin = night(home, "cnn_comp")
    assert found.stamp == "20190802T031500Z"
    by_engine = {(record.engine, record.workload): record for record in found.records}
    relay = by_engine["relay", "network.resnet-18"]
    assert relay.execution_elapsed_ms_mean == pytest.approx(22.0)
    assert relay.additional_info["execution_elapsed_ms_median"] == pytest.approx(22.0)
    assert relay.additional_info["samples"] == 3
    assert (relay.target, relay.workload_args) == ("cpu", {"batch_size": "1", "opt_level": "3"})
    assert by_engine["pt", "network.resnet-18"].execution_elapsed_ms_mean == pytest.approx(37.0)
    assert origin["left_out"] == ["1 rows without a time"]
    _, again = take(home, archive, capsys)
    assert counts(again[-1])[:2] == (0, 2)


def test_asv_results_become_records_of_the_commit(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    _, lines = take(home, GOLDEN / "asv", capsys)
    found, _ = night(home, "asv")
    assert (found.stamp, found.tvm_hash) == ("20251101T000000Z", "4d0ac168c0ffee")
    memory, first, second, third = found.records
    assert (memory.workload, memory.execution_elapsed_ms_mean) == ("asv.suite.peakmem_conv", None)
    assert first.workload == "asv.suite.time_conv"
    assert first.workload_args == {"layout": "'NCHW'", "threads": "1", "benchmark_version": "abc"}
    assert (first.env_name, first.hw_model) == ("bench1", "EPYC")
    assert first.additional_info["execution_elapsed_ms_median"] == pytest.approx(2.1)  # of its samples
    assert second.workload_args == {"layout": "'NHWC'", "threads": "1", "benchmark_version": "abc"}
    assert second.execution_elapsed_ms_mean == pytest.approx(4.2)
    assert third.execution_elapsed_ms_mean == 500.0
    assert "left out: 2 points without a result" in lines[0]


def test_pyperf_values_are_samples(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    take(home, GOLDEN / "pyperf.json", capsys)
    found, _ = night(home, "pyperf")
    record, memory = found.records
    assert record.workload == "pyperf.compile mlp"
    assert (record.additional_info["samples"], record.additional_info["processes"]) == (6, 2)
    assert record.additional_info["execution_elapsed_ms_median"] == pytest.approx(21.7)
    assert memory.execution_elapsed_ms_mean is None
    assert (record.engine, record.hw_model, record.env_name) == ("cpython", "EPYC", "bench1")
    assert record.execution_config == {"loops": 4, "runs": 3}


def test_google_benchmark_repetitions_are_samples_and_errors_failures(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    take(home, GOLDEN / "google_benchmark.json", capsys)
    found, _ = night(home, "bench_runtime")
    assert found.stamp == "20261021T011419Z"  # it names its zone
    alloc, copy = found.records
    assert (alloc.workload, alloc.execution_elapsed_ms_mean) == (
        "google_benchmark.BM_Alloc/1024",
        pytest.approx(121e-6),
    )
    assert alloc.additional_info["samples"] == 2
    assert (alloc.workload_args, copy.workload_args) == ({"threads": 1}, {"threads": 4})
    assert copy.additional_info["execution_elapsed_ms_median"] == 2.4
    assert copy.execution_elapsed_ms_std == 0.1
    assert [(one.workload, one.error) for one in found.failures] == [("google_benchmark.BM_Broken", "no GPU")]


def test_a_deviation_that_the_source_does_not_tell_is_null(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = json.loads((GOLDEN / "google_benchmark.json").read_text())
    once, mean = told["benchmarks"][0], told["benchmarks"][3]
    (tmp_path / "few.json").write_text(json.dumps({**told, "benchmarks": [once, mean]}))
    take(home, tmp_path / "few.json", capsys)
    found, _ = night(home, "bench_runtime")
    assert [record.execution_elapsed_ms_std for record in found.records] == [None, None]
    assert [point.std for point in found.values()] == [None, None]


def test_a_name_can_be_given_and_must_be_one(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    take(home, GOLDEN / "pyperf.json", capsys, "--experiment", "python_speed")
    assert home.data_stamps("python_speed")
    for name in ("../up", "", ".hidden", "a/b"):
        code, lines = take(home, GOLDEN / "pyperf.json", capsys, "--experiment", name)
        assert code == USAGE
        assert "is not a valid experiment name" in lines[-1]


def test_what_the_home_measured_itself_is_never_written_over(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    own = home.data_file("pyperf", "20261021T031410Z")
    own.parent.mkdir(parents=True)
    own.write_text('{"mine": 1}')
    take(home, GOLDEN / "pyperf.json", capsys)
    assert home.data_stamps("pyperf") == ["20261021T031410Z", "20261021T031411Z"]
    assert own.read_text() == '{"mine": 1}'


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("not a dashboard home", ["HOME/config", "GOLDEN"]),
        ("no such file or folder", ["HOME", "GOLDEN/none"]),
        ("unknown time zone", ["HOME", "GOLDEN", "--timezone", "Mars/Olympus"]),
        ("unknown time zone", ["HOME", "GOLDEN", "--timezone", "../../etc/passwd"]),
    ],
)
def test_what_cannot_be_is_said(words: str, options: list[str], home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    real = [one.replace("HOME", str(home.root)).replace("GOLDEN", str(GOLDEN)) for one in options]
    assert cli.main(["import", *real]) == USAGE
    assert words in capsys.readouterr().err


def test_nothing_is_imported_while_a_night_runs(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    with lock.night_lock(home):
        code, _ = take(home, GOLDEN, capsys)
    assert code == HELD
    assert not home.data("x").parent.exists()


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


BAD = [
    ("data_02-11-2021-0315.json", "[" * 100_000),
    ("data_02-11-2021-0315.json", '{"timestamp": "02-11-2021-0316", "a": 1}'),
    ("data_02-31-2021-0315.json", '{"timestamp": "02-31-2021-0315", "a": 1}'),
    ("data_02-11-2021-0315.json", '{"timestamp": "02-11-2021-0315", "a": "words"}'),
    ("data_02-11-2021-0315.json", b"\xff\xfe"),
    ("data_02-11-2021-0315.json", "[1, 2]"),
    ("benchmarks_02-11-2021-0315/exp/relay-exp.csv", "network,time\nresnet,fast\n"),
    ("benchmarks_02-11-2021-0315/exp/relay-exp.csv", "network,rep\nresnet,1\n"),
    ("benchmarks_02-11-2021-0315/exp/relay-exp.csv", 'network,time\n"\nresnet",1\n'),
    ("benchmarks_02-11-2021-0315/exp/relay-exp.csv", b"network,time\n\xff,1\n"),
    ("a.json", '{"commit_hash": "x", "results": {}, "version": 1}'),
    (
        "a.json",
        '{"commit_hash": "x", "results": {"time_x": [[1.0]]}, "version": 2, "date": 1e30, "result_columns": []}',
    ),
    ("a.json", '{"commit_hash": "x", "results": [], "version": 2, "date": 1, "result_columns": ["result"]}'),
    ("a.json", '{"benchmarks": [{"runs": [{"values": [1]}]}], "version": "1.0"}'),
    ("a.json", '{"benchmarks": [{"runs": 5}], "version": "1.0"}'),
    ("a.json", '{"benchmarks": [], "runs": [], "version": "2.0"}'),
    ("a.json", '{"benchmarks": [{"name": "x"}], "context": {"date": "yesterday"}}'),
    (
        "a.json",
        '{"commit_hash": 1, "results": {"time_x": [1]}, "version": 2, "date": 1, "result_columns": ["result"]}',
    ),
    ("a.json", '{"benchmarks": 7, "context": {"date": "2026-01-01T00:00:00Z"}}'),
    ("a.tar.gz", b"not a tar"),
]


@pytest.mark.parametrize(("name", "content"), BAD)
def test_a_broken_file_costs_itself(
    name: str, content: str | bytes, home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "source", name, content)
    shutil.copy(GOLDEN / "pyperf.json", tmp_path / "source" / "z.json")
    code, lines = take(home, tmp_path / "source", capsys)
    assert code == SOME_FAILED
    assert counts(lines[-1]) == (1, 0, 0, 1)


def test_an_archive_within_a_folder_is_read_as_well(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "source" / "old").mkdir(parents=True)
    with tarfile.open(tmp_path / "source" / "old" / "results.tar.gz", "w:gz") as archive:
        archive.add(GOLDEN / "pyperf.json", "pyperf.json")
    code, lines = take(home, tmp_path / "source", capsys)
    assert (code, counts(lines[-1])) == (0, (1, 0, 0, 0))


def test_a_file_too_large_for_results_is_told_and_not_read(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with write(tmp_path / "source", "huge.json", "").open("wb") as file:
        file.truncate(65 << 20)  # a hole
    shutil.copy(GOLDEN / "pyperf.json", tmp_path / "source" / "z.json")
    code, lines = take(home, tmp_path / "source", capsys)
    assert (code, counts(lines[-1])) == (SOME_FAILED, (1, 0, 0, 1))
    assert any("has more than" in line for line in lines)


def test_of_an_archive_that_is_too_large_unpacked_the_rest_is_not_read(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    huge, good = tarfile.TarInfo("huge.json"), tarfile.TarInfo("pyperf.json")
    content = (GOLDEN / "pyperf.json").read_bytes()
    huge.size, good.size = 5 << 30, len(content)
    with (tmp_path / "source.tar").open("wb") as file:
        file.write(huge.tobuf())
        file.seek(huge.size, os.SEEK_CUR)  # a hole: it takes no room
        file.write(good.tobuf() + content)
        file.write(bytes(-file.tell() % tarfile.BLOCKSIZE + 2 * tarfile.BLOCKSIZE))
    code, lines = take(home, tmp_path / "source.tar", capsys)
    assert code == SOME_FAILED
    assert counts(lines[-1]) == (0, 0, 0, 1)


def test_links_and_pipes_are_told_and_not_opened(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "pyperf.json").symlink_to(GOLDEN / "pyperf.json")
    (source / "folder").symlink_to(GOLDEN)
    os.mkfifo(source / "pipe.json")
    code, lines = take(home, source, capsys)
    assert code == SOME_FAILED
    assert counts(lines[-1]) == (0, 0, 0, 2)


def test_an_archives_names_and_links_reach_nothing_outside(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = tmp_path / "evil.tar.gz"
    content = b"network,time\nresnet,0.5\n"
    with tarfile.open(archive, "w:gz") as file:
        for name in ("../../benchmarks_02-11-2021-0315/../relay-x.csv", "benchmarks_02-11-2021-0315/.../relay-x.csv"):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            file.addfile(member, io.BytesIO(content))
        link = tarfile.TarInfo("benchmarks_02-11-2021-0315/exp/relay-x.csv")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        file.addfile(link)
    take(home, archive, capsys)
    written = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.json")}
    written -= {"home/results/imports.json"}
    assert written
    assert all(path.startswith("home/results/experiments/data/relay_bench_csv/data_") for path in written)


def test_what_is_of_no_known_format_is_told(home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "source", "other.json", '{"a": 1}')
    write(tmp_path / "source", "notes.txt", "hello")
    shutil.copy(GOLDEN / "pyperf.json", tmp_path / "source")
    code, lines = take(home, tmp_path / "source", capsys)
    assert code == OK_CODE
    assert lines[0].split()[:2] == ["skipped", "other.json:"]
    assert len(lines) == 3
    assert "Not read: notes.txt and other.json." in lines[-1]


@pytest.mark.parametrize("name", ["README.md", "other.json", "empty"])
def test_a_source_that_holds_no_results_is_an_error(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    (tmp_path / "empty").mkdir()
    write(tmp_path, "README.md", "# Read me")
    write(tmp_path, "other.json", '{"a": 1}')
    code, lines = take(home, tmp_path / name, capsys)
    assert code == USAGE
    assert lines[-1].startswith(f"{tmp_path / name}: no results")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KEYS = ("version", "date", "result_columns", "results", "commit_hash", "benchmarks", "runs", "context", "metadata")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    value=st.dictionaries(st.sampled_from(KEYS), JSON),
    name=st.sampled_from(["data_02-11-2021-0315.json", "a.json"]),
)
def test_no_json_of_a_stranger_is_a_bug_of_ours(
    value: dict[str, Any], name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = Home(tmp_path / "any")
    (home.root / "config").mkdir(parents=True, exist_ok=True)
    source = write(tmp_path / "source", name, json.dumps(value))
    code, _ = take(home, source, capsys)
    assert code in {OK_CODE, SOME_FAILED, USAGE}


def test_asv_parameters_go_by_number_where_their_names_are_not_there(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(GOLDEN / "asv" / "bench1", tmp_path / "source" / "bench1")
    write(tmp_path / "source", "benchmarks.json", "{ broken")
    take(home, tmp_path / "source", capsys)
    found, _ = night(home, "asv")
    args = found.records[1].workload_args
    assert args == {"param1": "'NCHW'", "param2": "1", "benchmark_version": "abc"}
