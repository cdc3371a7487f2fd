"""operators: answers are right on both engines, shapes are the networks', shares follow from measured peaks."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.experiments.trying import EXPERIMENTS, STAMP, Tried, modules
from tvmdash import config_util, networks, records
from tvmdash.errors import DashboardError
from tvmdash.experiment.info import History
from tvmdash.relax_util import CompileOptions
from tvmdash.relax_util.operators import kinds, table
from tvmdash.series.store import Series

pytestmark = pytest.mark.usefixtures("tvm_artifact")
OWN = modules("operators")
KINDS = sorted({operator.kind for operator in table.OPERATORS})
OF_NETWORKS = [operator for operator in table.OPERATORS if operator.source.split()[0] in networks.NETWORKS]


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tried, records.NightData]:
    config = {"operators": ["dense", "softmax"], "dtypes": ["float32", "float16"]}
    tried = Tried(tmp_path_factory.mktemp("operators"), "operators", config)
    tried.set_up()
    return tried, tried.measured()


@pytest.mark.parametrize("operator", OF_NETWORKS, ids=lambda operator: operator.label)
def test_a_shape_said_to_be_a_networks_stands_there(operator) -> None:
    name, layer = operator.source.split()
    network = networks.NETWORKS[name]()
    shapes, weights = network.shapes(), network.weight_shapes()
    node = next(node for node in network.nodes if node.name == layer)
    assert [shapes[value] for value in node.inputs] == list(operator.inputs)
    assert all(weights[f"{layer}.weight"] == shape for shape in operator.weights)
    assert np.prod(shapes[layer]) == np.prod(operator.output)
    if operator.kind.endswith("conv2d"):
        assert (node.op.stride, node.op.padding) == (operator.args["stride"], operator.args["padding"])


@pytest.mark.parametrize("kind", KINDS)
def test_an_operator_gives_numpys_answer_on_tvm(kind: str) -> None:
    operator = table.chosen([kind], 1)[0]
    prepared = OWN.operators.on_tvm(operator, "float32", CompileOptions("llvm"), 1, 3)
    assert prepared.check()["max_error"] <= 1e-5


def test_work_is_counted_as_published() -> None:
    first = next(operator for operator in table.OPERATORS if operator.source == "resnet18 conv0")
    assert first.operations == 2 * 118_013_952  # multiply-adds of ResNet's first layer
    assert first.terms == 3 * 7 * 7
    add = next(operator for operator in table.OPERATORS if operator.source == "resnet18 layer0.0.add")
    assert (add.operations, add.bytes_moved(4)) == (64 * 56 * 56, 3 * 4 * 64 * 56 * 56)


def test_every_operator_has_a_name_of_its_own_in_graphs() -> None:
    names = [operator.short for operator in table.OPERATORS]
    assert len(set(names)) == len(names)
    assert "depthwise 144x56x56 144x1x3x3" in names
    assert max(map(len, names)) <= 32


def test_a_wrong_answer_fails_and_a_long_sum_in_float16_says_why() -> None:
    long = kinds.dense("here", 1, 2000, 4)
    ones = np.ones((1, 4))
    with pytest.raises(DashboardError, match=r"float32\.$"):
        OWN.operators._check(long, lambda: ones * 1.1, ones, "float32")()
    with pytest.raises(DashboardError, match="a sum of 2000 products"):
        OWN.operators._check(long, lambda: ones * 1.1, ones, "float16")()


def test_a_night_measures_both_engines_and_the_machine(night: tuple[Tried, records.NightData]) -> None:
    data = night[1]
    assert not data.failures
    measured = {
        (record.labels["workload"], record.engine, record.workload_args.get("dtype", record.workload_args.get("kib")))
        for record in data.records
    }
    operators = {
        (f"topi.{kind}", engine, dtype)
        for kind in ("dense", "softmax")
        for engine in ("tvm", "onnxruntime")
        for dtype in ("float32", "float16")
    }
    machine = {(f"machine.{name}", "numpy", kib) for name in ("triad", "copy") for kib in (256, 8192)}
    assert measured == operators | machine | {("machine.matmul", "numpy", "float32")}


def test_an_operator_of_tvm_carries_the_hash_of_its_definition(night: tuple[Tried, records.NightData]) -> None:
    ours = [record for record in night[1].records if record.engine == "tvm"]
    for record in ours:
        assert record.workload == f"{record.labels['workload']}:{record.additional_info['definition'][:12]}"
        assert record.workload_args["inputs"][0]["dtype"] == record.workload_args["dtype"]
    assert len({record.workload for record in ours}) == len(ours)


def test_a_record_has_its_rates_and_its_share_of_what_was_measured(night: tuple[Tried, records.NightData]) -> None:
    dense = [record for record in night[1].records if record.labels["workload"] == "topi.dense"]
    product = next(record for record in night[1].records if record.workload == "machine.matmul")
    for record in dense:
        info, operations = record.additional_info, 2 * 784 * 256
        ms = info["execution_elapsed_ms_median"]
        assert info["gflops_per_s"] == pytest.approx(operations / ms / 1e6)
        bounds = (operations / info["peak_gflops_per_s"], info["bytes_moved"] / info["peak_gbytes_per_s"])
        assert info["roofline_percent"] == pytest.approx(max(bounds) / 1e6 / ms * 100)
        assert info["peak_gflops_per_s"] == product.additional_info["gflops_per_s"] > 0.1
        assert info["max_error"] <= info["tolerance"]


def test_the_words_name_the_machine_and_what_is_far_from_it(night: tuple[Tried, records.NightData]) -> None:
    text = night[0].told()
    assert "- The machine tonight with 1 thread: " in text
    assert "- TVM farthest from the peak: dense 1x784 by 256x784 float" in text
    assert "TVM at its best against onnxruntime" in text
    assert "numpy" not in text
    assert (night[0].root / "graph" / "roofline_float32.svg").exists()


def rate(workload: str, ms: float, threads: int = 1, **args: object):
    return OWN.peaks.PeakRate(workload, args, threads, ms)


def test_the_peak_is_of_the_same_threads_and_of_the_working_set_that_holds_the_data() -> None:
    mib = OWN.peaks.BYTES_PER_CALL / 1e6
    rates = [
        rate("machine.matmul", 2.0, n=1000),
        rate("machine.matmul", 1.0, n=1000, threads=2),
        rate("machine.triad", mib / 10, kib=64),
        rate("machine.copy", mib / 20, kib=64),
        rate("machine.triad", mib / 5, kib=1024),
    ]
    peaks = OWN.peaks.peaks(rates, 1)
    assert peaks.gflops == pytest.approx(1000)
    assert [peaks.bandwidth_for(size) for size in (1000, 64 * 1024, 64 * 1024 + 1, 10**9)] == pytest.approx(
        [20, 20, 5, 5]
    )
    assert peaks.least_ms(10**9, 1000) == (pytest.approx(1.0), "arithmetic")
    assert peaks.least_ms(1000, 5 * 10**6) == (pytest.approx(1.0), "memory")
    assert OWN.peaks.peaks(rates, 2) is None  # no bandwidth with two threads


@pytest.mark.parametrize(("workload", "threads"), [("machine.triad", 1), ("machine.triad", 3), ("machine.copy", 2)])
def test_bandwidth_is_measured_on_work_that_was_done(workload: str, threads: int) -> None:
    prepared = OWN.peaks.prepare(workload, {"kib": 301, "threads": threads}, seed=3)
    assert prepared.check()["max_error"] <= 1e-6
    assert prepared.timer(2, 1)[0] > 0


def test_a_peaks_sample_is_its_fastest_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OWN.peaks, "python_timer", lambda work: lambda number, repeat: [7, 3, 9][:repeat])
    assert OWN.peaks.fastest(int)(3, 2) == [9, 9]


def a_series(workload: str, engine: str, ms: float, args: dict[str, object]) -> Series:
    labels = {"workload": workload, "engine": engine, "workload_args": args, "runtime_config": {"threads": 1}}
    return Series(f"{workload}{engine}", "e", "run_time", "ms", True, labels, (STAMP,), (ms,), (ms,), (ms,), (0.1,))


def test_nights_that_outlive_the_table_are_still_told() -> None:
    gone = a_series("topi.dense", "tvm", 1.0, {"shape": "9x9", "other": "9x9", "dtype": "float32"})
    history = History("e", (), (gone,), (STAMP,), ())
    assert OWN.roofline.summarize_history(history) == ["- The machine's peaks are missing (1)."]
    assert OWN.roofline.plots(history) == {}


def test_what_is_more_call_than_operator_is_not_ranked() -> None:
    machine = [
        a_series("machine.matmul", "numpy", 2.0, {"n": 1000}),
        a_series("machine.triad", "numpy", 0.1, {"kib": 64}),
        a_series("machine.copy", "numpy", 0.1, {"kib": 64}),
    ]
    short, long = [operator for operator in table.OPERATORS if operator.kind == "dense"][:2]
    took_ms = ((short, 0.019), (long, 0.021))
    own = [a_series("topi.dense", "tvm", ms, {**of.args, "dtype": "float32"}) for of, ms in took_ms]
    history = History("e", (), (*machine, *own), (STAMP,), ())
    (ranked,) = [line for line in OWN.roofline.summarize_history(history) if "farthest" in line]
    assert [operator.label in ranked for operator in (short, long)] == [False, True]


def test_the_configs_operators_are_those_of_the_table() -> None:
    fields = config_util.read_fields(EXPERIMENTS / "operators" / "fields.json")
    assert set(fields["operators"].of.choices) == set(KINDS)
    names = {"dtype", *(name for operator in table.OPERATORS for name in operator.args)}
    assert names <= set(OWN.operators.ARGUMENTS)
    assert all(dataclasses.is_dataclass(operator) for operator in table.OPERATORS)
