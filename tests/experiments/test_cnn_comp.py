"""cnn_comp on real TVM and ONNX Runtime through its stages; PyTorch's part is in tests/slow."""

from __future__ import annotations

import json
import sys

import pytest

from tests import artifact_for_tests
from tests.experiments import trying, tunings
from tvmdash import config_util
from tvmdash.errors import DashboardError
from tvmdash.experiment import engine_store
from tvmdash.experiment.info import History, Point, Prepared
from tvmdash.networks import NETWORKS
from tvmdash.relax_util import tuning, workloads
from tvmdash.relax_util.tuning import Subject
from tvmdash.series.store import Series
from tvmdash.summary_util import Section, SectionKind, Summary
from tvmdash.trial_util import python_timer

pytestmark = pytest.mark.usefixtures("tvm_artifact")
ENGINES = ["tvm untuned", "tvm tuned", "onnxruntime", "torch eager"]
CONFIG = {"networks": ["mlp", "dqn"], "engines": ENGINES, "number": 1}
HALF = {"networks": ["mlp"], "engines": ["tvm untuned"], "dtypes": ["float16"], "shapes": ["dynamic"], "number": 1}
BUILD = "of-the-tests"
INSTALL_TIMEOUT_S = 300


@pytest.fixture(scope="module")
def code():
    return trying.modules("cnn_comp")


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """A folder of databases with one for mlp alone, and how many kernels it knows."""
    root = tmp_path_factory.mktemp("tuning")
    subject = Subject("mlp", 1, workloads.target({"threads": 1, "mcpu": ""}), "zero_fold_bn")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TVMDASH_TUNING", str(root))
        patch.setenv("TVMDASH_ARTIFACT", BUILD)
        kernels = tunings.make(subject, root / "made")
        tuning.keep(subject, root / "made", kernels, {"search_s": 1.0})
    return root, kernels


@pytest.fixture(scope="module")
def night(tmp_path_factory, code, tuned):
    """A night with TVM and ONNX Runtime; torch is not installed."""
    tried = trying.Tried(tmp_path_factory.mktemp("cnn_comp") / "night", "cnn_comp", CONFIG)
    engines = artifact_for_tests.shelf_folder().parent / "engines"
    setup = engines / "setups" / "cnn_comp_without_torch"
    setup.mkdir(parents=True, exist_ok=True)
    (tried.code / "setup").symlink_to(setup)
    installed = engine_store.install([code.cnn_comp.ONNXRUNTIME], engines / "store", setup, timeout_s=INSTALL_TIMEOUT_S)
    assert not installed["onnxruntime"].reason
    return tried, tried.night(TVMDASH_TUNING=str(tuned[0]), TVMDASH_ARTIFACT=BUILD)


def by_engine(data, network):
    found = [record for record in data.records if record.workload == f"network.{network}"]
    return {(record.engine, record.build_config["variant"]): record for record in found}


def test_each_engine_gives_the_reference_answer_under_the_same_conditions(night):
    _, data = night
    assert by_engine(data, "mlp").keys() == {("tvm", "untuned"), ("tvm", "tuned"), ("onnxruntime", "default")}
    assert by_engine(data, "dqn").keys() == {("tvm", "untuned"), ("onnxruntime", "default")}
    for record in data.records:
        assert 0 <= record.additional_info["max_error"] <= record.additional_info["tolerance"]
        assert (record.labels["workload_args"], record.labels["runtime_config"]) == ({"batch": 1}, {"threads": 1})
    conditions = [record.additional_info["conditions"] for record in data.records]
    same = [{name: one[name] for name in ("layout", "transfer_timed", "affinity", "environment")} for one in conditions]
    assert all(one == same[0] for one in same)
    assert same[0]["environment"]["OMP_NUM_THREADS"] == same[0]["environment"]["TVM_NUM_THREADS"] == "1"


def test_tuned_is_what_the_databases_schedules_make(night, tuned):
    _, data = night
    record, untuned = (by_engine(data, "mlp")["tvm", variant] for variant in ("tuned", "untuned"))
    assert record.additional_info["tuning"]["kernels_scheduled"] == tuned[1] == 4
    assert record.additional_info["module_hash"] != untuned.additional_info["module_hash"]


def test_what_is_not_tuned_or_not_installed_fails_alone_and_says_why(night):
    _, data = night
    errors = {(failure.workload, failure.values["variant"]): failure.error for failure in data.failures}
    assert errors.keys() == {("network.dqn", "tuned"), ("network.mlp", "eager"), ("network.dqn", "eager")}
    assert "not tuned: no tuning database for dqn" in errors["network.dqn", "tuned"]
    assert "the engine torch is not installed" in errors["network.mlp", "eager"]


def test_half_precision_for_any_batch_is_held_against_the_float32_network(tmp_path):
    tried = trying.Tried(tmp_path / "night", "cnn_comp", HALF)
    (tried.code / "setup").mkdir()
    (record,) = tried.measured().records
    assert record.workload_args["inputs"] == [{"shape": [1, 784], "dtype": "float16"}]
    assert (record.labels["workload_args"], record.labels["build_config"]) == (
        {"batch": 1, "dtype": "float16"},
        {"variant": "untuned", "shapes": "dynamic"},
    )
    assert 1e-5 < record.additional_info["max_error"] < record.additional_info["tolerance"]
    assert {metric.name for metric, _ in record.metrics()} >= {"largest_error", "run_time"}


def test_the_summary_names_the_fastest_and_says_how_tvm_stands(night):
    tried, _ = night
    told = tried.told()
    assert "than onnxruntime" in told
    assert "mlp: fastest" in told
    assert list((tried.root / "graph").glob("*.svg"))


def test_a_wrong_answer_is_no_record(code, monkeypatch):
    problem = code.runners.problem("mlp", 1, 0)
    ready = Prepared(timer=python_timer(lambda: None)), lambda: problem.expected * 1.001
    monkeypatch.setitem(code.runners.RUNNERS, "onnxruntime", lambda *_: ready)
    point = Point("network.mlp", {"variant": "default", "batch": 1, "threads": 1}, "mlp", "{}", "onnxruntime")
    prepared = code.cnn_comp.CnnComp().prepare(point, trying.config_of(code.cnn_comp.CnnComp, "cnn_comp"), 0)
    with pytest.raises(DashboardError, match=r"wrong answer: largest error 0\.001"):
        prepared.check()


def test_without_a_compiler_torch_compile_says_what_it_needs(code, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(DashboardError, match=r"torch.compile needs a C\+\+ compiler, and there is no no-such-compiler"):
        code.runners._check_compiler()


def test_only_untuned_vgg16_is_measured_once(code, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "cnn_comp", code.cnn_comp)  # where inspect looks for its file
    (tmp_path / "config.json").write_text('{"active": true}')
    experiment = code.cnn_comp.CnnComp()
    points = experiment.points(experiment.load_config(tmp_path))
    once = [(point.workload, point.values["variant"]) for point in points if point.once]
    assert once == [("network.vgg16", "untuned")]
    assert len(points) == len(NETWORKS) * 5


def test_the_configs_networks_are_those_that_exist():
    for experiment in ("cnn_comp", "tuning"):
        field = config_util.read_fields(trying.EXPERIMENTS / experiment / "fields.json")["networks"]
        assert set(field.of.choices) == set(NETWORKS)


def a_series(network, engine, variant, value):
    labels = {"workload": f"network.{network}", "engine": engine, "build_config": {"variant": variant}}
    name = json.dumps([network, engine, variant])
    return Series(name, "e", "run_time", "ms", True, labels, (trying.STAMP,), (value,), (value,), (value,), (0.0,))


def test_tvm_tuned_and_untuned_are_each_compared_with_each_rival_over_what_both_did(code):
    series = [
        *(a_series(network, "tvm", "untuned", 8.0) for network in ("a", "b", "c")),
        *(a_series(network, "tvm", "tuned", 2.0) for network in ("a", "b")),
        *(a_series(network, "onnxruntime", "default", 1.0) for network in ("a", "b", "c")),
        a_series("b", "torch", "eager", 4.0),
    ]
    history = History("e", (), tuple(series), (trying.STAMP,), ())
    ort, eager = "onnxruntime", "torch eager"
    lines = {
        SectionKind.MEASURED: "7 points measured.",
        SectionKind.ENGINES: "- torch against TVM: x",
        SectionKind.EXTREMES: "- a: fastest x (1 ms), slowest y",
    }
    default = Summary.of_sections("t", [Section(kind, (line,)) for kind, line in lines.items()])
    assert code.cnn_comp.summary(default, history).value.splitlines() == [
        "7 points measured.",
        f"- TVM untuned: 8.00x slower (8.00 to 8.00, 3 workloads) than {ort}, 2.00x slower (1 workload) than {eager}",
        f"- TVM tuned: 2.00x slower (2.00 to 2.00, 2 workloads) than {ort}, 2.00x faster (1 workload) than {eager}",
        "- TVM tuned against untuned: 4.00x faster (4.00 to 4.00, 2 workloads)",
        "- a: fastest x (1 ms), slowest y",
    ]


def test_half_precision_and_any_batch_are_of_untuned_tvm_and_leave_the_other_points_their_names(code):
    kind = code.cnn_comp.CnnComp
    given = {"networks": ["mlp"], "engines": ["tvm untuned", "onnxruntime"]}
    usual = kind().points(trying.config_of(kind, "cnn_comp", **given))
    both = {"dtypes": ["float32", "bfloat16"], "shapes": ["static", "dynamic"]}
    points = kind().points(trying.config_of(kind, "cnn_comp", **given, **both))
    assert [point for point in points if not point.values.keys() & {"dtype", "shapes"}] == usual
    assert [
        (point.engine, point.values.get("dtype"), point.values.get("shapes")) for point in points if point not in usual
    ] == [("tvm", None, "dynamic"), ("tvm", "bfloat16", None), ("tvm", "bfloat16", "dynamic")]


def test_the_summary_says_what_another_type_or_any_batch_costs(code):
    def of_kind(metric, value, args, build):
        labels = {"workload": "network.a", "engine": "tvm", "workload_args": args, "build_config": build}
        name = json.dumps([metric, args, build])
        return Series(name, "e", metric, "", True, labels, (trying.STAMP,), (value,), (value,), (value,), (0.0,))

    series = [
        of_kind("run_time", 4.0, {"batch": 1}, {"variant": "untuned"}),
        of_kind("run_time", 8.0, {"batch": 1, "dtype": "float16"}, {"variant": "untuned"}),
        of_kind("largest_error", 0.003, {"batch": 1, "dtype": "float16"}, {"variant": "untuned"}),
        of_kind("run_time", 2.0, {"batch": 1}, {"variant": "untuned", "shapes": "dynamic"}),
        of_kind("largest_error", 1e-7, {"batch": 1}, {"variant": "untuned", "shapes": "dynamic"}),
    ]
    assert code.cnn_comp.summarize_kinds(History("e", (), tuple(series), (trying.STAMP,), ())) == [
        "- TVM in float16 against float32: 2.00x slower (1 workload); largest error 0.003",
        "- TVM in dynamic shapes against float32: 2.00x faster (1 workload); largest error 1e-07",
    ]
