"""relax_opt and pass_comparison, run on real TVM through their shell stages."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace

import pytest

from tests.experiments.trying import EXPERIMENTS, Tried, modules
from tvmdash import config_util, records
from tvmdash.experiment.info import History
from tvmdash.experiment.points import IDENTITY
from tvmdash.networks import NETWORKS
from tvmdash.series.store import Series

pytestmark = pytest.mark.usefixtures("tvm_artifact")
STAMP = "20261121T000000Z"


@pytest.fixture(scope="module")
def relax_opt(tmp_path_factory):
    config = {"variants": ["zero", "default"], "opt_levels": [0, 3], "number": 1}
    tried = Tried(tmp_path_factory.mktemp("relax_opt"), "relax_opt", config)
    return tried, tried.night(by_script=True)


@pytest.fixture(scope="module")
def pass_comparison(tmp_path_factory):
    changes = ["-FoldConstant", "-FuseOps  -FuseTIR", "-s_tir.LowerOpaqueBlock", "-FuseOp", "+EliminateCommonSubexpr"]
    tried = Tried(tmp_path_factory.mktemp("pass_comparison"), "pass_comparison", {"changes": changes, "number": 1})
    return tried, tried.night()


def test_relax_opt_measures_every_variant_at_every_level(relax_opt):
    _, data = relax_opt
    points = {(record.build_config["variant"], record.build_config["opt_level"]) for record in data.records}
    assert points == {("zero", 0), ("zero", 3), ("default", 0), ("default", 3)}
    assert not data.failures


def test_a_record_says_what_was_compiled_and_that_the_answer_is_right(relax_opt):
    import tvm

    _, data = relax_opt
    assert len({record.additional_info["module_hash"] for record in data.records}) == 4
    for record in data.records:
        info, target = record.additional_info, json.loads(record.target)
        assert 0 <= info["max_error"] <= info["tolerance"]
        assert (target["kind"], target["opt-level"]) == ("llvm", record.build_config["opt_level"])
        assert record.engine_version.partition(":")[0] == tvm.__version__
        assert info["compile_time"] > 0
        assert info["code_size"] > 1000
        assert info["device_memory_usage"] > 1000
        assert info["passes_ms"]
        assert info["samples"] == 3


def test_tvm_stays_on_the_cores_that_the_night_was_given(relax_opt):
    _, data = relax_opt
    assert {tuple(record.additional_info["conditions"]["affinity"]) for record in data.records} == {
        tuple(sorted(os.sched_getaffinity(0)))
    }


def test_the_commit_is_that_of_the_imported_tvm(relax_opt):
    import tvm

    _, data = relax_opt
    assert f"g{data.tvm_hash}" == tvm._version.__commit_id__


def test_relax_opt_draws_and_says(relax_opt):
    tried, data = relax_opt
    assert data.records
    assert "mlp" in tried.told()
    assert list((tried.root / "graph").glob("*.svg"))


def by_passes(data: records.NightData) -> dict[str, records.Record]:
    return {record.build_config["passes"]: record for record in data.records}


def test_pass_comparison_measures_the_unchanged_pipeline_and_each_change(pass_comparison):
    _, data = pass_comparison
    assert by_passes(data).keys() == {"unchanged", "-FoldConstant", "-FuseOps -FuseTIR", "+EliminateCommonSubexpr"}


def test_a_pass_that_is_off_shows_in_what_it_was_for(pass_comparison):
    _, data = pass_comparison
    of = {passes: record.additional_info for passes, record in by_passes(data).items()}
    unchanged = of["unchanged"]
    assert of["-FoldConstant"]["device_memory_usage"] > 100 * unchanged["device_memory_usage"]
    assert of["-FuseOps -FuseTIR"]["code_size"] > unchanged["code_size"]
    assert "FoldConstant" in unchanged["passes_ms"]
    assert "FoldConstant" not in of["-FoldConstant"]["passes_ms"]


def test_a_change_that_crashes_tvm_or_is_misspelt_costs_itself_alone(pass_comparison):
    _, data = pass_comparison
    errors = {failure.values["passes"]: failure.error for failure in data.failures}
    assert errors.keys() == {"-s_tir.LowerOpaqueBlock", "-FuseOp"}
    assert "Did you mean 'FuseOps'?" in errors["-FuseOp"]


def test_a_change_without_a_sign_is_refused_with_its_remedy(tmp_path):
    status = Tried(tmp_path, "pass_comparison", {"changes": ["FuseOps"]}).run_here()
    assert not status["success"]
    assert "$.changes: 'FuseOps': write +Name to add a pass before, -Name to switch one off." in status["message"]


@pytest.mark.parametrize("experiment", ["relax_opt", "pass_comparison"])
def test_the_configs_networks_are_those_that_exist(experiment):
    field = config_util.read_fields(EXPERIMENTS / experiment / "fields.json")["networks"]
    assert field.of is not None
    assert set(field.of.choices) == set(NETWORKS)


def a_series(passes, value, low, high, metric="run_time"):
    labels = {"workload": "network.mlp", "build_config": {"passes": passes}}
    return Series(passes, "p", metric, "ms", True, labels, (STAMP,), (value,), (low,), (high,), (0.1,))


def the_words(*series):
    module = modules("pass_comparison").pass_comparison
    return module.summarize_history(History("p", (), series, (STAMP,), ()))


def test_only_changes_whose_interval_is_apart_from_the_unchanged_one_are_told():
    unchanged = a_series("unchanged", 2.0, 1.9, 2.1)
    words = the_words(
        unchanged, a_series("-A", 3.0, 2.9, 3.2), a_series("-B", 1.0, 0.9, 1.1), a_series("-C", 9, 2.0, 20)
    )
    assert words == ["- mlp: -B 2.00x faster and -A 1.50x slower"]
    small = a_series("-E", 2.06, 2.05, 2.07), a_series("unchanged", 2.0, 1.99, 2.01)
    assert the_words(*small) == ["- mlp: no effect beyond the noise (1 change tried)"]
    assert the_words(unchanged, a_series("-C", 9, 2.0, 20)) == ["- mlp: no effect beyond the noise (1 change tried)"]
    assert the_words(unchanged, a_series("-D", 9, None, None)) == ["- mlp: no effect beyond the noise (1 change tried)"]


def test_what_a_change_does_to_code_and_memory_is_told_with_its_time():
    def size(metric, passes, value):
        return a_series(passes, value, value, value, metric)

    words = the_words(
        a_series("unchanged", 2.0, 1.9, 2.1),
        a_series("-A", 3.0, 2.9, 3.2),
        *(size("code_size", passes, value) for passes, value in {"unchanged": 1000, "-A": 1300, "-B": 1005}.items()),
        *(size("planned_memory", passes, value) for passes, value in {"unchanged": 7, "-A": 7, "-B": 1400}.items()),
    )
    assert words == ["- mlp: -A 1.50x slower; code: -A 1.30x larger; planned memory: -B 200x more"]


def test_a_change_on_a_device_is_held_against_the_unchanged_pipeline_there():
    here = [a_series("unchanged", 2.0, 1.9, 2.1), a_series("-A", 3.0, 2.9, 3.2)]
    there = [a_series("unchanged", 8.0, 7.9, 8.1), a_series("-A", 4.0, 3.9, 4.1)]
    moved = [
        replace(item, id=f"{item.id} there", labels={**item.labels, "runtime_config": {"device": "opencl"}})
        for item in there
    ]
    assert the_words(*here, *moved) == ["- mlp: -A 1.50x slower", "- mlp on opencl: -A 2.00x faster"]


def test_without_the_unchanged_pipeline_nothing_is_compared():
    assert "not measured" in the_words(a_series("-A", 3.0, 2.9, 3.2))[0]


def test_operators_are_records_and_series_where_they_are_asked_for(tmp_path):
    tried = Tried(
        tmp_path, "relax_opt", {"variants": ["zero"], "per_operator": True, "processes": 2, "max_processes": 2}
    )
    data = tried.measured()
    whole, *operators = data.records
    names = [record.workload_args["operator"] for record in operators]
    assert {"softmax", "vm.builtin"} < set(names)
    assert {record.additional_info["processes"] for record in operators} == {2}
    assert {record.additional_info["samples"] for record in operators} == {20}
    told = whole.additional_info["operators"]
    assert told["count"] == len(operators)
    assert told["sum_ms"] > max(record.additional_info["execution_elapsed_ms_min"] for record in operators)
    assert len({value.key.id for value in data.values() if value.key.metric == "run_time"}) == 1 + len(operators)
    text = tried.told()
    assert "1 points measured" in text or "1 point measured" in text
    assert "mlp: its operators take" in text
    (tmp_path / "points.json").write_text(json.dumps([{name: operators[0].labels[name] for name in IDENTITY}]))
    shutil.rmtree(tmp_path / "raw")
    (tmp_path / "raw").mkdir()
    assert tried.measured(TVMDASH_POINTS=str(tmp_path / "points.json")).records[0].labels == whole.labels
