"""What each format's fields become: identity, machine, version, value or note; and what goes on after an import."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import random
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from dashboard.cli import main as cli
from dashboard.cli.arguments import OK_CODE
from dashboard.importing import asv, google_benchmark, placed_records, pyperf, relay_bench
from dashboard.importing.parsed import Table
from tests.dashboard.importing.test_importing import counts, home, take, write
from tvmdash import records
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.machine import identity
from tvmdash.machine.identity import MachineIdentity, Rename, RenameKind
from tvmdash.records import PointValue, migrations
from tvmdash.records.exchange import records_in
from tvmdash.traces.home_files import DataSource

__all__ = ["home"]
REAL = Path(__file__).resolve().parents[2] / "golden" / "import_real"
Capture = pytest.CaptureFixture[str]


def points(home: Home, experiment: str) -> dict[str, list[PointValue]]:
    """By stamp, what the dashboard reads of the experiment's nights."""
    paths = [home.data_file(experiment, stamp) for stamp in home.data_stamps(experiment)]
    return {path.stem.removeprefix("data_"): list(records.read_data(path, experiment).values()) for path in paths}


def name_machine(home: Home, *renames: Rename) -> None:
    home.machine_file.parent.mkdir(parents=True, exist_ok=True)
    identity.write(home.machine_file, MachineIdentity("desk", "20260101T000000Z", None, "x", renames=renames))


def gb_row(name: str, micros: float, **more: Any) -> dict[str, Any]:
    times = {"iterations": 9, "real_time": micros, "cpu_time": micros, "time_unit": "us"}
    return {"name": name, "run_name": name, "run_type": "iteration", "threads": 1, **times, **more}


def gb(rows: Sequence[Any], date: str = "2026-10-21T03:00:00+00:00", **context: Any) -> str:
    named = {"date": date, "host_name": "box", "executable": "./bm", "num_cpus": 4, "mhz_per_cpu": 3000}
    return json.dumps({"context": {**named, **context}, "benchmarks": rows})


def perf(second: int, values: Sequence[float] = (0.1, 0.101), **metadata: Any) -> str:
    run = {"metadata": {"date": f"2026-10-21 03:00:{second:02}"}, "values": list(values)}
    named = {"name": "nbody", "hostname": "box", "unit": "second"}
    return json.dumps({"version": "1.0", "benchmarks": [{"runs": [run]}], "metadata": {**named, **metadata}})


def asv_file(folder: Path, commit: str, results: dict[str, Any], env: str = "py3.12", machine: str = "m1") -> Path:
    value = {
        "commit_hash": commit, "env_name": env, "date": 1_760_000_000_000 + 86_400_000 * int(commit[0], 16),
        "params": {"machine": machine, "cpu": "X", "python": env}, "python": env, "requirements": {}, "env_vars": {},
        "result_columns": ["result", "params", "version"], "results": results, "durations": {}, "version": 2,
    }  # fmt: skip
    return write(folder, f"{machine}/{commit[:8]}-{env}.json", json.dumps(value))


def test_another_version_of_an_asv_benchmark_is_another_series(home: Home, tmp_path: Path, capsys: Capture) -> None:
    source = tmp_path / "results"
    for commit, version in (("1a", "one" * 20), ("2b", "one" * 20), ("3c", "two" * 20)):
        asv_file(source, commit, {"b.time_x": [[0.01], [], version], "b.time_same": [[0.01], [], "v"]})
    take(home, source, capsys)
    ids = [[point.key.id for point in night] for night in points(home, "asv").values()]
    assert ids[0] == ids[1]
    assert [one == other for one, other in zip(ids[1], ids[2], strict=True)] == [True, False]


def test_all_environments_and_machines_of_one_commit_are_one_night(home: Home, tmp_path: Path, capsys: Capture) -> None:
    source = tmp_path / "results"
    for machine, env in (("m1", "py3.11"), ("m1", "py3.12"), ("m2", "py3.12")):
        asv_file(source, "1abc", {"b.time_x": [[0.01], []]}, env, machine)
    _, lines = take(home, source, capsys)
    assert counts(lines[-1]) == (1, 0, 0, 0)
    [night] = points(home, "asv").values()
    assert len({point.key.id for point in night}) == 3
    asv_file(source, "1abc", {"b.time_x": [[0.01], []]}, "py3.12", "m3")
    _, lines = take(home, source, capsys)
    assert counts(lines[-1]) == (1, 3, 0, 0)  # a night that is kept does not change


def test_asv_memory_and_tracked_numbers_are_metrics_of_their_own(home: Home, tmp_path: Path, capsys: Capture) -> None:
    results = {"b.peakmem_x": [[5e7], []], "b.TrackIt.track_y": [[3, 4], [["1", "2"]]], "b.odd": [[1.0], []]}
    asv_file(tmp_path / "r", "1abc", results)
    described = {"b.TrackIt.track_y": {"type": "track", "unit": "objects", "param_names": ["n"]}}
    write(tmp_path / "r", "benchmarks.json", json.dumps(described))
    _, lines = take(home, tmp_path / "r", capsys)
    [night] = points(home, "asv").values()
    found = {(p.key.metric, p.unit, p.direction, p.value) for p in night}
    expected = {("peak_memory", "bytes", "lower", 5e7)}
    assert found == expected | {("tracked", "objects", "none", 3.0), ("tracked", "objects", "none", 4.0)}
    assert "1 benchmarks of a type that asv has not" in lines[0]


@pytest.mark.parametrize("archive", ["tar.gz", "tar.xz", "zip"])
def test_what_lies_beside_results_in_an_archive_is_read_as_well(
    archive: str, home: Home, tmp_path: Path, capsys: Capture
) -> None:
    source = tmp_path / "results"
    asv_file(source, "1abc", {"b.time_x": [[0.01, 0.02], [["1", "2"]]]})
    write(source, "benchmarks.json", json.dumps({"b.time_x": {"type": "time", "param_names": ["threads"]}}))
    packed = tmp_path / f"all.{archive}"
    if archive == "zip":
        with zipfile.ZipFile(packed, "w") as made:
            for path in sorted(source.rglob("*.json")):
                made.write(path, path.relative_to(tmp_path))
    else:
        with tarfile.open(packed, "w:gz" if archive == "tar.gz" else "w:xz") as made_tar:
            made_tar.add(source, "results")
    assert take(home, packed, capsys)[0] == OK_CODE
    [night] = points(home, "asv").values()
    assert [point.key.labels["workload_args"] for point in night] == [{"threads": "1"}, {"threads": "2"}]


@pytest.mark.parametrize(
    ("date", "stamp"),
    [
        ("2016-08-02 17:44:46", "20160802T154446Z"),
        ("08/02/16 17:44:46", "20160802T154446Z"),
        ("2018/12/13-10:33:24", "20181213T093324Z"),
        ("2021-08-02T17:44:46+02:00", "20210802T154446Z"),
        ("2021-08-02T17:44:46-07:00", "20210803T004446Z"),
    ],
)
def test_every_date_that_google_benchmark_wrote_is_read(
    date: str, stamp: str, home: Home, tmp_path: Path, capsys: Capture
) -> None:
    source = write(tmp_path, "in.json", gb([gb_row("BM_x", 1.0)], date))
    take(home, source, capsys, "--timezone", "Europe/Berlin")
    assert home.data_stamps("bm") == [stamp]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([{"label": "int8", "family_index": 0}, {"label": "fp32", "family_index": 1}],
         [({"label": "int8"}, 0.1), ({"label": "fp32"}, 0.9)]),
        ([{"family_index": 0}, {"family_index": 1}], [({}, 0.1), ({"instance": 2}, 0.9)]),
        ([{"label": "a"}, {"label": "b"}], [({"label": "a"}, 0.1), ({"label": "b"}, 0.9)]),
        ([{"repetition_index": 0}, {"repetition_index": 0}], [({}, 0.1), ({"instance": 2}, 0.9)]),
        ([{"repetition_index": 0}, {"repetition_index": 1}], [({}, 0.5)]),
        ([{}, {}], [({}, 0.5)]),
        ([{"family_index": 0, "label": "x"}, {"family_index": 0, "label": "x"}], [({}, 0.5)]),
    ],
)  # fmt: skip
def test_two_benchmarks_of_one_name_are_told_apart(
    rows: Sequence[Any], expected: Any, home: Home, tmp_path: Path, capsys: Capture
) -> None:
    given = [gb_row("BM_x", micros, **more) for micros, more in zip((100, 900), rows, strict=True)]
    take(home, write(tmp_path, "in.json", gb(given)), capsys)
    [night] = [list(records_in(home.data("bm")))]
    found = [({k: v for k, v in row.record.workload_args.items() if k != "threads"}, row.record) for row in night]
    assert [(more, record.execution_elapsed_ms_mean) for more, record in found] == expected


def test_what_was_skipped_is_no_time_and_the_clock_is_no_identity(home: Home, tmp_path: Path, capsys: Capture) -> None:
    skipped = gb_row("BM_s", 0.0, skipped=True, skip_message="no GPU")
    for day, mhz in ((1, 3000), (2, 4200)):
        text = gb([gb_row("BM_x", 1.0), skipped], f"2026-10-0{day}T03:00:00+00:00", mhz_per_cpu=mhz)
        write(tmp_path / "source", f"{day}.json", text)
    _, lines = take(home, tmp_path / "source", capsys)
    assert "1 benchmarks that were skipped" in lines[0]
    nights = points(home, "bm").values()
    assert [[point.value for point in night] for night in nights] == [[0.001], [0.001]]
    assert len({point.key.id for night in nights for point in night}) == 1


def test_memory_is_a_metric_and_a_counter_is_kept(home: Home, tmp_path: Path, capsys: Capture) -> None:
    rows = [gb_row("BM_x", 1.0, max_bytes_used=64, tokens=5.0), gb_row("BM_x", 1.0, max_bytes_used=64, tokens=7.0)]
    take(home, write(tmp_path, "in.json", gb(rows)), capsys)
    [night] = points(home, "bm").values()
    assert [(p.key.metric, p.value, p.direction) for p in night][1:] == [("max_bytes_used", 64.0, "lower")]
    [row] = records_in(home.data("bm"))
    assert row.record.additional_info["counters"]["tokens"] == 6.0


def test_unknown_fields_are_named_in_the_last_line(home: Home, tmp_path: Path, capsys: Capture) -> None:
    write(tmp_path / "source", "a.json", gb([gb_row("BM_x", 1.0)], compiler="clang"))
    write(tmp_path / "source", "b.json", perf(1, cat="grey"))
    _, lines = take(home, tmp_path / "source", capsys)
    assert "Unknown fields: $.context.compiler and $.metadata.cat." in lines[-1]
    [row] = records_in(home.data("bm"))
    assert row.record.additional_info["context"] == {"compiler": "clang"}


@pytest.mark.parametrize(("ending", "compress"), [("gz", gzip.compress), ("xz", lzma.compress), ("bz2", bz2.compress)])
def test_a_compressed_file_is_the_file(
    ending: str, compress: Callable[[bytes], bytes], home: Home, tmp_path: Path, capsys: Capture
) -> None:
    write(tmp_path / "source", f"night.json.{ending}", compress(perf(1).encode()))
    _, lines = take(home, tmp_path / "source", capsys)
    assert counts(lines[-1]) == (1, 0, 0, 0)
    write(tmp_path / "again", "night.json", perf(1))
    assert counts(take(home, tmp_path / "again", capsys)[1][-1]) == (0, 1, 0, 0)


def test_a_compressed_file_that_is_damaged_or_a_bomb_costs_itself(home: Home, tmp_path: Path, capsys: Capture) -> None:
    write(tmp_path / "source", "bomb.json.xz", lzma.compress(bytes(65 << 20)))
    write(tmp_path / "source", "cut.json.gz", gzip.compress(perf(1).encode())[:-9])
    write(tmp_path / "source", "good.json", perf(2))
    assert counts(take(home, tmp_path / "source", capsys)[1][-1]) == (1, 0, 0, 2)


def test_forty_files_of_pyperf_are_forty_nights_of_one_experiment(home: Home, tmp_path: Path, capsys: Capture) -> None:
    for number in range(40):
        write(tmp_path / "source", f"night{number}.json", perf(number))
    take(home, tmp_path / "source", capsys)
    assert {name: len(home.data_stamps(name)) for name in home.experiments_with_data()} == {"pyperf": 40}


def test_who_imported_pyperf_under_a_files_name_goes_on_under_it(home: Home, tmp_path: Path, capsys: Capture) -> None:
    old = {"format": "pyperf", "sha256": "0" * 64, "file": "nightly.json", "part": "", "moment": "20260101T000000Z"}
    night = {"stamp": "20260101T000000Z", "experiment": "nightly", "imported": old}
    write(home.data("nightly"), "data_20260101T000000Z.json", json.dumps({"a": 1, "night": night}))
    take(home, write(tmp_path, "nightly.json", perf(1)), capsys)
    assert home.experiments_with_data() == ["nightly"]


def test_timeit_statements_of_one_name_are_two_series(home: Home, tmp_path: Path, capsys: Capture) -> None:
    for second, statement in enumerate(("[1]*9", "[1]*99")):
        write(tmp_path / "source", f"{second}.json", perf(second, name="timeit", timeit_stmt=statement))
    take(home, tmp_path / "source", capsys)
    assert len({point.key.id for night in points(home, "pyperf").values() for point in night}) == 2


def test_relay_bench_goes_on_in_the_experiment_that_runs_here(home: Home, tmp_path: Path, capsys: Capture) -> None:
    name_machine(home)
    means = {"resnet": {"relay": {"mean": 0.01}}}
    value = {"timestamp": "11-03-2026-0315", "success": True, **means}
    write(tmp_path / "cnn_comp", "data_11-03-2026-0315.json", json.dumps(value))
    take(home, tmp_path / "cnn_comp", capsys)
    own = {**means, "timestamp": "x", "tvm_hash": "", "night": {"machine": "desk"}}
    write(home.data("cnn_comp"), "data_20261104T031500Z.json", json.dumps(own))
    before, tonight = points(home, "cnn_comp").values()
    assert [point.key.id for point in before] == [point.key.id for point in tonight]
    assert [(point.unit, point.direction, point.kind) for point in before] == [("s", "lower", "time")]


def test_machine_and_tvm_can_be_given(home: Home, tmp_path: Path, capsys: Capture) -> None:
    write(tmp_path / "source", "bm.json", gb([gb_row("BM_x", 1.0)], host_name="f3a9c2d1"))
    write(tmp_path / "source", "exp/data_11-03-2026-0315.json", '{"a": {"mean": 1.0}}')
    take(home, tmp_path / "source", capsys, "--machine", "runner", "--tvm", "abc123")
    for experiment in ("bm", "exp"):
        [path] = home.data(experiment).iterdir()
        night = records.read_data(path, experiment)
        assert night.tvm_hash == "abc123"
        assert [point.key.labels["env_name"] for point in night.values()] == ["runner"]
    for options in (("--machine", ""), ("--tvm", "x\ny"), ("--machine", "a" * 101)):
        assert "not a name" in take(home, tmp_path / "source", capsys, *options)[1][-1]


def test_a_file_is_taken_once_whatever_it_is_called_since(home: Home, tmp_path: Path, capsys: Capture) -> None:
    source = write(tmp_path, "bm.json", gb([gb_row("BM_x", 1.0)]))
    take(home, source, capsys)
    name_machine(home, Rename(RenameKind.EXPERIMENT, "bm", "bench", "2026-11-01T00:00:00Z", "ann"))
    home.data("bm").rename(home.data("bench"))
    for options in ((), ("--experiment", "bm"), ("--experiment", "other")):
        assert take(home, source, capsys, *options)[1][0].endswith("is bench/data_20261021T030000Z.json")
    write(tmp_path, "next.json", gb([gb_row("BM_x", 1.0)], "2026-10-22T03:00:00+00:00"))
    take(home, tmp_path / "next.json", capsys, "--experiment", "bm")
    assert home.experiments_with_data() == ["bench"]


def test_the_index_of_imports_may_be_deleted_or_wrong(home: Home, tmp_path: Path, capsys: Capture) -> None:
    source, index = write(tmp_path, "bm.json", gb([gb_row("BM_x", 1.0)])), home.root / "results" / "imports.json"
    take(home, source, capsys)
    for content in (None, "[]", "{", '{"schema_version": 99}', '{"schema_version": 1, "experiments": {"bm": 7}}'):
        index.unlink() if content is None else index.write_text(content)
        assert counts(take(home, source, capsys)[1][-1]) == (0, 1, 0, 0)
    [path] = home.data("bm").iterdir()
    path.unlink()
    assert counts(take(home, source, capsys)[1][-1]) == (1, 0, 0, 0)


def test_a_large_night_is_hardly_larger_than_its_source(home: Home, tmp_path: Path, capsys: Capture) -> None:
    chance = random.Random(0)
    options = [[str(number) for number in range(500)], ["'a'", "'b'"]]
    values = [round(chance.uniform(1e-3, 2e-3), 9) for _ in range(1000)]
    source = asv_file(tmp_path / "r", "1abc", {"b.time_x": [values, options, "v"], "b.peakmem_y": [[7e6], []]})
    take(home, tmp_path / "r", capsys)
    [path] = home.data("asv").iterdir()
    assert path.stat().st_size < 4 * source.stat().st_size
    [night] = points(home, "asv").values()
    assert len(night) == 1001
    assert [p.value for p in night if p.key.metric == "run_time"] == [pytest.approx(1e3 * value) for value in values]
    assert len(list(records_in(path))) == 1001
    assert DataSource(path).counts() == {"record": 1001}


def test_records_in_columns_come_back_as_they_were() -> None:
    model = json.loads((REAL.parent / "data_v1.json").read_text())
    first = model["records"][0]
    others = [{**first, "workload": f"network.x{n}", "additional_info": {"n": n, "t": n % 2 == 1}} for n in range(9)]
    odd = [{**first, "additional_info": {"n": value}} for value in (1, 1.0, True, None, {}, [], [1], {"a": {}})]
    value = {**model, "records": [*model["records"], *others, *odd, {**first, "workload_args": {}}]}
    packed = json.loads(json.dumps(migrations.pack(value)))
    unpacked = migrations.unpack(packed)
    as_text = lambda record: json.dumps(record, sort_keys=True)  # noqa: E731
    assert sorted(map(as_text, unpacked["records"])) == sorted(map(as_text, value["records"]))
    assert {**unpacked, "records": []} == {**value, "records": []}


@pytest.mark.parametrize(
    "block",
    [
        {"count": 2, "same": [], "runs": [], "columns": [[["workload"], ["a"]]]},
        {"count": 10**7, "same": [], "runs": [], "columns": []},
        {"count": 2, "same": [], "runs": [[["workload"], [["a", 10**6]]]], "columns": []},
        {"count": 1, "same": [["workload", "a"]], "runs": [], "columns": []},
        {"count": 1, "same": [[["a", "b", "c"], 1]], "runs": [], "columns": []},
        {"count": 1, "same": [[["a"], 1], [["a", "b"], 1]], "runs": [], "columns": []},
        {"count": 1},
        7,
    ],
)
def test_columns_that_are_wrong_are_refused(block: Any) -> None:
    with pytest.raises(DashboardError):
        migrations.unpack({"schema_version": 2, "tvm_hash": "", "records": [block]})


def test_the_bare_columns_of_the_proposal_are_put_into_nights(home: Home, tmp_path: Path, capsys: Capture) -> None:
    model = json.loads((REAL.parent / "data_v1.json").read_text())["records"][0]
    bare = {**model, "additional_info": {"docker_tag": None, "docker_hash": None}, "execution_elapsed_ms_mean": 3.5}
    times = ("2026-10-21T23:50:00Z", "2026-10-22T00:10:00Z", "2026-10-22T23:50:00Z")
    rows = [
        {**bare, "timestamp": time, "workload": f"network.{name}", "engine_version": f"0.1:c{number}"}
        for number, time in ((1, times[0]), (1, times[1]), (2, times[2]))
        for name in ("a" + str(times.index(time) % 2),)
    ]
    write(tmp_path, "bare.jsonl", "\n".join(map(json.dumps, rows)))
    take(home, tmp_path / "bare.jsonl", capsys, "--experiment", "mine")
    assert home.data_stamps("mine") == ["20261021T235000Z", "20261022T235000Z"]
    nights = points(home, "mine")
    assert [[point.value for point in night if point.key.metric == "run_time"] for night in nights.values()] == [
        [3.5, 3.5],
        [3.5],
    ]
    code = cli.main(["records", "import", str(tmp_path / "bare.jsonl"), "--to", str(tmp_path / "folder")])
    assert (code, len(list((tmp_path / "folder" / "imported").iterdir()))) == (OK_CODE, 2)


def test_standard_input_is_a_source(
    home: Home, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with write(tmp_path, "x", gzip.compress(perf(1).encode())).open("rb") as file:
        monkeypatch.setattr("sys.stdin", type("Stdin", (), {"buffer": file}))
        _, lines = take(home, Path("-"), capsys, "--name", "nightly.json.gz")
    assert counts(lines[-1]) == (1, 0, 0, 0)


def test_files_that_the_tools_wrote_are_read_whole(home: Home, capsys: Capture) -> None:
    _, lines = take(home, REAL, capsys, "--timezone", "Europe/Berlin")
    assert counts(lines[-1]) == (8, 0, 2, 0)  # one has nothing but a percentage, one no context
    assert "Unknown fields" not in lines[-1]
    assert "Not read: README.md and google_benchmark/test4_run.json." in lines[-1]
    assert home.data_stamps("google_benchmark")[0] == "20160802T154446Z"
    by_metric = {point.key.metric for night in points(home, "asv").values() for point in night}
    assert by_metric == {"run_time", "tracked"}
    assert {point.key.metric for night in points(home, "pyperf").values() for point in night} == {"run_time", "memory"}


def test_samples_are_kept_and_go_along_as_raw_run_times(home: Home, tmp_path: Path, capsys: Capture) -> None:
    take(home, write(tmp_path, "a.json", perf(1, [0.1, 0.101, 0.099], cpu_model_name="X")), capsys)
    log = tmp_path / "log.jsonl"
    words = ["records", "export", str(home.root), "--to", str(log), "--format", "tvm-0.1"]
    assert cli.main(words) == OK_CODE
    entry = json.loads(log.read_text())
    assert [run["runtime_ms"] for run in entry["runtime_raw"]] == [100.0, 101.0, 99.0]
    entry["metadata"] = {}  # as another program writes it
    log.write_text(json.dumps(entry))
    code, lines = take(home, log, capsys)
    assert code == OK_CODE, lines
    [row] = records_in(home.data("imported"))
    assert row.record.additional_info["execution_elapsed_ms_samples"] == [[100.0, 101.0, 99.0]]
    assert row.record.additional_info["execution_elapsed_ms_median"] == 100.0


@pytest.mark.parametrize(
    "fields",
    [
        asv.FILE, asv.BENCHMARK, asv.POINT, google_benchmark.CONTEXT, google_benchmark.ROW, pyperf.METADATA,
        placed_records.COLUMNS, relay_bench.DATA, relay_bench.ROW,
    ],
)  # fmt: skip
def test_a_field_goes_to_a_column_that_a_record_has(fields: Table) -> None:
    columns = set(records.Record.__dataclass_fields__)
    assert {field.to[0] for field in fields.values() if field.to} <= columns


def test_a_copy_of_a_source_elsewhere_adds_nothing(home: Home, tmp_path: Path, capsys: Capture) -> None:
    take(home, REAL, capsys)
    shutil.copytree(REAL, tmp_path / "copy")
    assert counts(take(home, tmp_path / "copy", capsys)[1][-1])[0] == 0
