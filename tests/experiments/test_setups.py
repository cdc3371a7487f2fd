"""What each experiment's setup installs: what its config names, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from tests.experiments.test_identities import SAMPLE, config_of, experiment_of
from tvmdash import config_util
from tvmdash.experiment.on_devices import list_engines
from tvmdash.machine import devices

ON_CARD = {"device": ["cpu", "cuda"]}
RIVALS = {"onnxruntime", "torch"}


def installed(name: str, **given: Any) -> set[str]:
    """The engines that pip is asked for."""
    experiment = experiment_of(name)
    config = config_of(name, experiment, {"active": True, **given})
    typed = config_util.structure(type(experiment), config, experiment._fields, name)
    return {engine.name for engine in list_engines(experiment, typed) if engine.requirements}


@pytest.fixture(autouse=True)
def _no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(devices.VARIABLE, raising=False)


@pytest.mark.parametrize(
    ("name", "given", "asked"),
    [
        ("cnn_comp", {"engines": ["tvm untuned"]}, set()),
        ("cnn_comp", {"engines": ["tvm untuned"], **ON_CARD}, set()),
        ("cnn_comp", {"engines": ["tvm tuned", "torch compile"]}, {"torch"}),
        ("cnn_comp", {"engines": ["tvm untuned", "onnxruntime"], **ON_CARD}, {"onnxruntime", "onnxruntime cuda"}),
        ("cnn_comp", {"engines": ["onnxruntime"], "device": ["cuda"]}, {"onnxruntime cuda"}),
        ("cnn_comp", {}, RIVALS),
        ("cnn_comp", ON_CARD, RIVALS | {"onnxruntime cuda", "torch cuda"}),
        ("rnn_comp", {"engines": ["tvm"]}, set()),
        ("rnn_comp", {}, RIVALS),
        ("char_rnn", {"ways": ["tvm loop compiled"]}, set()),
        ("char_rnn", {}, {"torch"}),
        ("treelstm", {"ways": ["tvm depth"]}, set()),
        ("treelstm", {}, {"torch"}),
        ("compile_time", {"frontends": ["relax"]}, set()),
        ("compile_time", {}, {"onnx"}),
        ("code_metrics", {"targets": ["x86_64", "rocm"]}, set()),
        ("code_metrics", {}, {"cuda_compilers"}),
        ("transformer", {"device": ["cuda"]}, {"torch cuda"}),
        ("llm", {"engines": ["tvm"]}, set()),
        ("llm", {"dtypes": ["q4f32"]}, {"llama.cpp"}),
        ("llm", {}, {"torch", "llama.cpp"}),
        ("operators", {"device": ["cuda"]}, {"onnxruntime cuda"}),
        ("real_models", {}, {"onnxruntime", "models", "tvm"}),
    ],
)
def test_only_what_the_config_names_is_installed(name: str, given: dict[str, Any], asked: set[str]) -> None:
    assert installed(name, **given) == asked


def test_no_other_experiment_installs_rivals() -> None:
    named = {"cnn_comp", "rnn_comp", "char_rnn", "treelstm", "transformer", "operators", "real_models", "llm"}
    others = [path.name for path in SAMPLE.iterdir() if path.name not in named]
    assert others
    assert not [name for name in others if installed(name) & RIVALS]
