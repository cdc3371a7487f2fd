"""cnn_comp with PyTorch, which takes 0.9 GB: every network but VGG-16 on every rival, answers compared."""

from __future__ import annotations

import pytest

from tests.experiments import trying

pytestmark = [pytest.mark.usefixtures("tvm_artifact"), pytest.mark.slow]
SMALL = ["mlp", "dqn", "squeezenet", "mobilenet_v2", "resnet18", "dcgan"]


@pytest.fixture(scope="module")
def rivals(tmp_path_factory):
    config = {"networks": SMALL, "engines": ["onnxruntime", "torch eager"], "number": 1}
    tried = trying.Tried(tmp_path_factory.mktemp("rivals") / "night", "cnn_comp", config)
    tried.set_up()
    return tried.measured()


def test_every_network_gives_the_reference_answer_on_each_rival(rivals):
    assert not rivals.failures
    measured = {(record.workload, record.engine) for record in rivals.records}
    assert measured == {(f"network.{name}", engine) for name in SMALL for engine in ("onnxruntime", "torch")}
    assert all(record.additional_info["max_error"] <= record.additional_info["tolerance"] for record in rivals.records)


def test_torch_compile_is_measured_compiled_anew_and_fails_alone_without_a_compiler(tmp_path):
    config = {"networks": ["mlp"], "engines": ["torch eager", "torch compile"], "number": 1}
    for name, variables in (("with", {}), ("without", {"CXX": "no-such-compiler"})):
        tried = trying.Tried(tmp_path / name, "cnn_comp", config)
        tried.set_up()
        data = tried.measured(**variables)
        variants = {record.build_config["variant"]: record.additional_info for record in data.records}
        assert "eager" in variants
        if name == "with":
            assert variants["compile"]["compile_time"] > 100
        else:
            (failure,) = data.failures
            assert "torch.compile needs a C++ compiler, and there is no no-such-compiler" in failure.error
