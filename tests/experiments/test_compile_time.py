"""compile_time: a process compiles once, each phase is a record, and what was compiled answers rightly."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest

from tests.experiments.trying import EXPERIMENTS, Tried, config_of, modules
from tvmdash import config_util, networks, records
from tvmdash.errors import DashboardError
from tvmdash.exp_templates import Point
from tvmdash.measure import phases
from tvmdash.relax_util import CompileOptions

pytestmark = pytest.mark.usefixtures("tvm_artifact")
PARTS = ("frontend", "pipeline", "build", "machine_code")


@pytest.fixture
def own() -> Iterator[SimpleNamespace]:
    """The experiment's modules as in a process that has compiled nothing yet."""
    phases.record()
    yield modules("compile_time")
    phases.take()


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tried, records.NightData]:
    tried = Tried(tmp_path_factory.mktemp("compile_time"), "compile_time", {"frontends": ["relax", "onnx"]})
    return tried, tried.night(set_up=True, by_script=True)  # in processes that time how TVM is imported


def test_each_phase_from_each_frontend_is_a_record_of_one_cold_compilation(
    night: tuple[Tried, records.NightData],
) -> None:
    data = night[1]
    assert not data.failures
    ms = {(r.build_config.get("frontend"), r.build_config["phase"]): r.execution_elapsed_ms_mean for r in data.records}
    both = [(frontend, phase) for frontend in ("relax", "onnx") for phase in ("total", *PARTS, "load")]
    assert set(ms) == {(None, "import"), *both}
    for frontend in ("relax", "onnx"):
        assert ms[frontend, "total"] >= sum(ms[frontend, phase] for phase in PARTS)
    for record in data.records:
        config = record.execution_config
        assert (config["number"], config["repeat"], config["warmup"]) == (1, 1, 0)
        assert record.additional_info["samples"] == record.additional_info["processes"] == 1
        assert record.additional_info["conditions"]["warmup_calls"] == 0


def test_the_whole_tells_passes_code_and_memory(night: tuple[Tried, records.NightData]) -> None:
    wholes = [record for record in night[1].records if record.build_config["phase"] == "total"]
    assert len({record.additional_info["module_hash"] for record in wholes}) == 1, "the frontends gave other code"
    for record in wholes:
        info = record.additional_info
        assert 0 <= info["max_error"] <= info["tolerance"]
        assert info["code_size"] > 1000
        assert "FoldConstant" in info["passes_ms"]
        assert sum(info["passes_ms"].values()) + info["outside_passes_ms"] <= record.execution_elapsed_ms_mean
        assert info["peak_memory_bytes"] >= info["memory_before_bytes"] > 10_000_000
    (imported,) = (record for record in night[1].records if record.build_config["phase"] == "import")
    assert imported.additional_info["modules_imported"] > 100


def test_the_words_tell_the_import_and_what_each_compilation_consists_of(
    night: tuple[Tried, records.NightData],
) -> None:
    text = night[0].told()
    assert "- import of TVM: " in text
    assert "- mlp from onnx: " in text
    assert "from onnx against from relax: " in text
    drawn = {path.stem for path in (night[0].root / "graph").glob("*.svg")}
    assert {"tonight", "phases_from_relax", "phases_from_onnx"} <= drawn


def test_without_onnx_its_points_fail_and_say_so(
    own: SimpleNamespace, tmp_path_factory: pytest.TempPathFactory
) -> None:
    tried = Tried(tmp_path_factory.mktemp("without"), "compile_time", {})
    experiment = own.compile_time.CompileTime()
    type(experiment).folder = property(lambda _self: tried.code)
    point = Point("compile.mlp", {"phase": "total", "frontend": "onnx"}, "mlp from onnx", "{}")
    with pytest.raises(DashboardError, match=r"the package onnx.*never installed"):
        experiment.prepare(point, config_of(own.compile_time.CompileTime, "compile_time"), 0)


def source(own: SimpleNamespace, network: str = "mlp") -> object:
    return own.compilation.ModelSource(network, "relax", 1, 0)


def test_a_process_compiles_one_thing_once(own: SimpleNamespace) -> None:
    first = own.compilation.compile_once(source(own), CompileOptions(), 1)
    assert own.compilation.compile_once(source(own), CompileOptions(), 1) is first
    with pytest.raises(DashboardError, match="has compiled something already"):
        own.compilation.compile_once(source(own, "dqn"), CompileOptions(), 1)


def test_a_failed_compilation_fails_every_phase_with_the_same_error(own: SimpleNamespace) -> None:
    wrong = CompileOptions(disabled_passes=("NoSuchPass",))
    errors = []
    for _ in range(2):
        with pytest.raises(DashboardError, match="NoSuchPass") as caught:
            own.compilation.compile_once(source(own), wrong, 1)
        errors.append(caught.value)
    assert errors[0] is errors[1]


def test_a_wrong_answer_fails_the_compilation(own: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    right = networks.reference
    monkeypatch.setattr(networks, "reference", lambda *arguments: right(*arguments) * 1.001)
    done = own.compilation.compile_once(source(own), CompileOptions(), 1)
    with pytest.raises(DashboardError, match="wrong answer"):
        done.check()


def test_an_import_that_comes_second_is_not_timed(own: SimpleNamespace) -> None:
    import tvm  # noqa: F401

    with pytest.raises(DashboardError, match="imported before"):
        own.compilation.import_tvm()


def test_the_peak_is_that_of_what_follows(own: SimpleNamespace) -> None:
    with mmap.mmap(-1, 128_000_000) as big:  # an array goes back to whoever hands out memory, which may keep it
        big[:: mmap.PAGESIZE] = bytes(len(big[:: mmap.PAGESIZE]))
        high = own.compilation.now()
        assert high.peak >= high.resident >= len(big)
    if not own.compilation.forget_peak():
        pytest.skip("this system forbids to forget the peak")
    low = own.compilation.now().peak
    assert low < high.peak - 64_000_000
    again = np.ones(8_000_000)
    assert own.compilation.now().peak >= low + again.nbytes // 2


def test_the_configs_networks_exist() -> None:
    fields = config_util.read_fields(EXPERIMENTS / "compile_time" / "fields.json")
    assert set(fields["networks"].of.choices) == set(networks.NETWORKS)
