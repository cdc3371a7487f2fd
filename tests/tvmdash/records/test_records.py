"""Records, series keys, and data files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tvmdash import common, config_util, records
from tvmdash.errors import DashboardError
from tvmdash.records import SeriesKey

STAMP = "20261121T031500Z"


def record(**changes: Any) -> dict[str, Any]:
    """A record in the columns of apache/tvm#4304."""
    info = {
        "docker_tag": None,
        "docker_hash": None,
        "execution_elapsed_ms_median": 2.0,
        "compile_time": 30,
        "samples": 10,
    }
    return {
        "timestamp": "2026-11-21T03:15:00Z",
        "schema_version": 1,
        "additional_info": info,
        "workload": "vision.resnet18",
        "workload_args": {"batch": 1},
        "engine": "tvm",
        "engine_version": "0.27.0",
        "engine_config": {},
        "target": "llvm",
        "build_config": {},
        "env_name": "bench1",
        "hw_model": "EPYC",
        "runtime_config": {"threads": 1},
        "execution_config": {},
        "execution_elapsed_ms_mean": 2.1,
        "execution_elapsed_ms_std": 0.1,
        **changes,
    }


def with_info(**more: Any) -> dict[str, Any]:
    return record(additional_info={**record()["additional_info"], **more})


def data(*found: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"schema_version": 1, "tvm_hash": "abc", "records": list(found), **more}


def read(tmp_path: Path, value: Any) -> records.NightData:
    path = tmp_path / f"data_{STAMP}.json"
    path.write_text(json.dumps(value))
    return records.read_data(path, "exp")


def test_the_schema_is_sound() -> None:
    Draft202012Validator.check_schema(common.read_json(records.SCHEMAS / "data_v1.json"))


def test_a_night_is_read_with_each_metric_that_it_carries(tmp_path: Path) -> None:
    failure = {"workload": "vision.vgg", "values": {"batch": 1}, "error": "out of memory"}
    night = read(tmp_path, data(record(), failures=[failure]))
    assert (night.stamp, night.tvm_hash, night.failures[0].error) == (STAMP, "abc", "out of memory")
    values = {point.key.metric: (point.value, point.unit, point.std, point.samples) for point in night.values()}
    assert values == {"run_time": (2.0, "ms", 0.1, 10), "compile_time": (30.0, "ms", None, None)}


@pytest.mark.parametrize("column", records.IDENTITY)
def test_another_identity_is_another_series(tmp_path: Path, column: str) -> None:
    changed: Any = {"x": 1} if isinstance(record()[column], dict) else f"{record()[column]}x"
    one, other = (next(read(tmp_path, data(record(**change))).values()).key.id for change in ({}, {column: changed}))
    assert one != other


@pytest.mark.parametrize("column", ["timestamp", "engine_version", "execution_config", "execution_elapsed_ms_mean"])
def test_when_and_by_which_version_is_not_identity(tmp_path: Path, column: str) -> None:
    changed: Any = {"number": 5} if column == "execution_config" else 9.5 if "elapsed" in column else "2027"
    one, other = (next(read(tmp_path, data(record(**change))).values()).key.id for change in ({}, {column: changed}))
    assert one == other


def test_which_version_of_the_dashboard_ran_a_night_is_not_identity(tmp_path: Path) -> None:
    def keys(repository: dict[str, Any]) -> set[str]:
        night = {"stamp": STAMP, "experiment": "exp", "machine": "bench1", "repository": repository}
        return {value.key.id for value in read(tmp_path, data(record(), night=night)).values()}

    old = keys({"commit": "7de98901", "dirty": False})
    assert old
    assert keys({"version": "0.9.0", "commit": "7de98901", "dirty": False}) == old
    assert keys({"version": "1.0.0", "commit": None, "dirty": None}) == old


def test_a_series_is_named_for_ever() -> None:
    assert (
        SeriesKey("e", "m", {"a": 1, "b": "ü"}).id == SeriesKey("e", "m", {"b": "ü", "a": 1}).id == "bea90b329aecfefb"
    )


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([], "list is not an object"),
        (data(record(workload="resnet")), r"\$\.records\[0\]\.workload"),
        (data(record(additional_info={})), r"\$\.records\[0\]\.additional_info"),
        (data(record(execution_elapsed_ms_std=-1)), "execution_elapsed_ms_std"),
        (data(record(execution_elapsed_ms_mean="2")), "execution_elapsed_ms_mean"),
        (data(with_info(samples=2**31)), r"\$\.records\[0\]\.additional_info\.samples"),
        (data(with_info(alike={"code_size": 10**20})), r"additional_info\.alike\.code_size"),
        (data(record(more=1)), "more"),
        (data({k: v for k, v in record().items() if k != "target"}), "target"),
        (data(failures=[{"workload": "a.b"}]), r"\$\.failures\[0\]"),
        ({"records": []}, "schema_version"),
        (data() | {"schema_version": 3}, "3 is newer than 2. Update the dashboard"),
        (data() | {"records": {}}, r"\$\.records"),
    ],
)
def test_data_that_is_wrong_is_refused_with_file_and_place(tmp_path: Path, value: Any, words: str) -> None:
    with pytest.raises(DashboardError, match=words) as caught:
        read(tmp_path, value)
    assert str(caught.value).startswith(f"{tmp_path}/data_{STAMP}.json: ")
    assert len(str(caught.value)) < 1000


def test_the_numbers_of_a_foreign_experiment_are_series_by_their_path(tmp_path: Path) -> None:
    night = read(
        tmp_path,
        {"timestamp": 1, "tvm_hash": "x", "gpu": {"O3": {"mean": 2}}, "list": [1, [0.5]], "name": "x", "ok": True},
    )
    assert night.leaves == {"$.gpu.O3.mean": 2.0, "$.list[0]": 1.0, "$.list[1][0]": 0.5}


LEAVES = st.none() | st.booleans() | st.integers(-(10**290), 10**290) | st.floats() | st.text(max_size=3)
NESTED = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)


@given(st.dictionaries(st.text(max_size=5), NESTED, max_size=5))
def test_every_leaf_is_a_finite_float_whatever_strangers_leave(value: dict[str, Any]) -> None:
    for place, number in records.numeric_leaves(value):
        assert place.startswith("$.")
        assert isinstance(number, float)
        assert abs(number) < float("inf")


def test_only_files_with_a_stamp_are_nights(tmp_path: Path) -> None:
    for name in (
        f"data_{STAMP}.json",
        "data_20261120T031500Z.json",
        "data_backup.json",
        "data_.json",
        f".data_{STAMP}.json.x.tmp",
    ):
        (tmp_path / name).write_text("{}")
    assert records.data_stamps(tmp_path) == ["20261120T031500Z", STAMP]
    assert records.data_stamps(tmp_path / "nowhere") == []


METRICS = {
    "$.gpu.tokens": {"name": "decoding", "unit": "tokens/s", "direction": "higher", "kind": "rate"},
    "$.gpu.*": {"unit": "ms", "direction": "lower", "kind": "time"},
    "size": {"unit": "bytes", "direction": "lower", "kind": "exact"},
}


def test_a_foreign_experiment_declares_its_numbers_by_path_pattern_or_last_name(tmp_path: Path) -> None:
    value = {"metrics": METRICS, "gpu": {"tokens": 80, "mean": 2.0, "size": 7}, "a": {"size": [1, 2]}, "other": 1}
    told = {
        point.key.labels["path"]: (point.title, point.unit, point.direction, point.kind)
        for point in read(tmp_path, value).values()
    }
    assert told == {
        "$.gpu.tokens": ("decoding", "tokens/s", "higher", "rate"),
        "$.gpu.mean": ("", "ms", "lower", "time"),
        "$.gpu.size": ("", "ms", "lower", "time"),  # the longest that fits
        "$.a.size[0]": ("", "bytes", "lower", "exact"),
        "$.a.size[1]": ("", "bytes", "lower", "exact"),
        "$.other": ("", "", "none", "number"),
    }


def test_a_foreign_number_of_another_machine_is_another_series(tmp_path: Path) -> None:
    nights = [read(tmp_path, {"latency": 1.5, "night": {"machine": name}}) for name in ("bench1", "bench2", "bench1")]
    first, second, third = (next(night.values()).key for night in nights)
    assert first.id == third.id
    assert first.id != second.id
    assert second.labels == {"path": "$.latency", "env_name": "bench2"}


def test_a_tolerance_is_declared_with_something_else_and_is_a_measurement_by_itself(tmp_path: Path) -> None:
    declared = read(tmp_path, {"metrics": {"top1": {"kind": "accuracy", "tolerance": 0.01}}, "top1": 0.9})
    assert [(point.value, point.tolerance) for point in declared.values()] == [(0.9, 0.01)]
    measured = read(tmp_path, {"metrics": {"top1": {"tolerance": 0.01}}})
    assert measured.leaves == {"$.metrics.top1.tolerance": 0.01}


def test_numbers_under_the_name_metrics_are_series_as_they_always_were(tmp_path: Path) -> None:
    night = read(tmp_path, {"metrics": {"latency": {"unit": "ms", "mean": 2.5}, "count": 3}})
    assert night.leaves == {"$.metrics.latency.mean": 2.5, "$.metrics.count": 3.0}


def test_a_kept_file_with_a_declaration_that_is_none_is_read_all_the_same(tmp_path: Path) -> None:
    night = read(tmp_path, {"metrics": {"a": "x", "b": {"direction": "up", "unit": "ms"}}, "a": 1, "b": 2})
    assert [(point.unit, point.direction) for point in night.values()] == [("", "none"), ("ms", "none")]


def test_counts_that_are_written_as_floats_are_counts_in_the_index(tmp_path: Path) -> None:
    night = read(tmp_path, data(with_info(samples=10.0, code_size=300, alike={"code_size": 3.0})))
    counts = {point.key.metric: (point.samples, point.alike) for point in night.values()}
    assert (counts["run_time"], counts["code_size"]) == ((10, None), (None, 3))
    assert [type(count) for count in (counts["run_time"][0], counts["code_size"][1])] == [int, int]


def test_numbers_of_any_size_are_floats_in_the_index(tmp_path: Path) -> None:
    info = with_info(execution_elapsed_ms_low=2, execution_elapsed_ms_high=10**299)["additional_info"]
    night = read(tmp_path, data(record(additional_info=info, execution_elapsed_ms_std=10**20)))
    (point,) = (point for point in night.values() if point.key.metric == "run_time")
    assert [type(value) for value in (point.low, point.high, point.std)] == [float, float, float]


@pytest.mark.parametrize("end", [[1.0], "x", None, {}])
def test_a_kept_ratio_whose_interval_is_none_is_read_without_it(tmp_path: Path, end: Any) -> None:
    ratio = {"ratio": 1.1, "log_ratios": [0.1, 0.2], "low": end, "high": 1.2}
    night = read(tmp_path, {"a": 1.0, "night": {"paired": {"ratios": {"$.a": ratio}}}})
    assert [(point.value, point.low, point.high) for point in night.values()] == [(1.0, None, None), (1.1, None, 1.2)]


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"direction": "up"}, "direction: 'up' is not a valid choice. Use one of: lower, higher, none."),
        ({"kind": "exakt"}, "kind: 'exakt' is not a valid choice. Did you mean 'exact'?"),
        ({"unit": 5}, "unit: 5 is not a string."),
        ({"units": "ms"}, "units: unknown field. Did you mean 'unit'?"),
    ],
)
def test_a_declaration_that_is_wrong_is_refused_with_file_place_value_and_remedy(
    entry: dict[str, Any], words: str
) -> None:
    with pytest.raises(DashboardError) as caught:
        config_util.check_metrics({"$.gpu.mean": entry}, "data.json")
    assert str(caught.value) == f"data.json: $.metrics['$.gpu.mean'].{words}"


def test_the_foreign_schema_is_sound() -> None:
    Draft202012Validator.check_schema(common.read_json(config_util.FOREIGN_SCHEMA))
