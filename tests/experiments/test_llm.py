"""llm: nothing is recorded unless the answers are right; each phase is a series; a slow point is left out by name."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.experiments.trying import EXPERIMENTS, STAMP, Tried, config_of, modules
from tvmdash import config_util, records, relax_util
from tvmdash.errors import DashboardError
from tvmdash.experiment.info import History
from tvmdash.relax_util import CompileOptions
from tvmdash.relax_util.targets import make_target
from tvmdash.series.store import Series

pytestmark = pytest.mark.usefixtures("tvm_artifact")
OWN = modules("llm")
SEED, TINY = 3, OWN.network.NETWORKS["tiny"]
PREFILL = {"phase": "prefill", "prompt": 8, "batch": 1, "dtype": "float32", "threads": 1}
DECODE = {"phase": "decode", "depth": 20, "batch": 2, "dtype": "float32", "threads": 1}


def answers_of(file: Path, dtype: str = "float32") -> Any:
    np.savez(file, **OWN.answers.make(TINY, dtype, [8], [20], 2, SEED))
    return OWN.answers.Answers.read(file)


def decoder_of(dtype: str, variant: str) -> Any:
    """Compiled and loaded."""
    relax_llama = modules("llm", with_tvm=True).relax_llama
    kind = relax_llama.ModuleKind(TINY, dtype, variant, make_target("llvm"))
    options = CompileOptions("llvm", OWN.llm.PIPELINES[variant])
    loaded = relax_util.load(relax_util.compile_module(relax_llama.lower(kind), options), 1)
    listed = OWN.network.list_arrays(OWN.network.make_weights(TINY, dtype, SEED))
    return OWN.decoding.Decoder(loaded, [array for _, array in listed], 2, 40)


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return answers_of(tmp_path_factory.mktemp("answers") / "answers.npz")


@pytest.fixture(scope="module")
def decoder() -> Any:
    return decoder_of("float32", "recipe")


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tried, records.NightData]:
    tried = Tried(tmp_path_factory.mktemp("llm"), "llm", {"variants": ["recipe"]})
    return tried, tried.night(set_up=True)


def call_of(decoder: Any, values: dict[str, Any]) -> Any:
    session = OWN.calls.DecoderSession(decoder, 1000, np.zeros(1, np.uint8), {}, {}, decoder.count_kernels)
    return OWN.calls.PointCall(TINY, values, session, OWN.calls.make_tokens(TINY, values, SEED), SEED)


def test_decoding_after_a_prefill_is_the_prefill_of_one_more() -> None:
    reference = OWN.network.NumpyDecoder(TINY, OWN.network.make_weights(TINY, "float32", SEED))
    tokens = OWN.network.make_tokens(TINY, 9, SEED)
    whole, _ = reference.forward(tokens)
    _, cache = reference.forward(tokens[:-1])
    np.testing.assert_allclose(reference.forward(tokens[-1:], cache)[0], whole, rtol=1e-9)


def test_a_token_never_sees_what_comes_after_it() -> None:
    reference = OWN.network.NumpyDecoder(TINY, OWN.network.make_weights(TINY, "float32", SEED))
    caches = [reference.forward([5, 6, 7, last])[1] for last in (8, 9)]
    for (keys, values), (other_keys, other_values) in zip(*caches, strict=True):
        np.testing.assert_array_equal(keys[:, :3], other_keys[:, :3])
        np.testing.assert_array_equal(values[:, :3], other_values[:, :3])


def test_greedy_tokens_prove_something(known: Any) -> None:
    tokens = {token for trace in known.traces for token in trace.tokens}
    assert len(tokens) >= len(known.traces) * OWN.answers.STEPS // 2
    assert min(trace.margins.min() for trace in known.traces) > 1e-3


def test_tvm_gives_the_reference_alone_and_together(decoder: Any, known: Any) -> None:
    facts = OWN.answers.check_alone(decoder, known.traces, "float32")
    OWN.answers.check_together(decoder, known.traces, "float32")
    assert facts["trace_error"] <= 1e-5
    assert facts["same_tokens"] == 2 * OWN.answers.STEPS


def test_wrong_weights_are_a_wrong_answer(decoder: Any, known: Any) -> None:
    listed = dict(OWN.network.list_arrays(OWN.network.make_weights(TINY, "float32", SEED)))
    arrays = [array * np.float32(1.001) if name == "1.out.weight" else array for name, array in listed.items()]
    wrong = OWN.decoding.Decoder(decoder._loaded, arrays, 2, 40)
    with pytest.raises(DashboardError, match="8 tokens after 14: wrong"):
        OWN.answers.check_alone(wrong, known.traces, "float32")


class Swapping:
    """A decoder that mixes up the rows of a batch."""

    def __init__(self, decoder: Any) -> None:
        self._decoder = decoder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._decoder, name)

    def decode(self, tokens: Any, rows: range) -> Any:
        return self._decoder.decode(tokens, list(reversed(rows)))


def test_sequences_that_disturb_one_another_are_a_wrong_answer(decoder: Any, known: Any) -> None:
    OWN.answers.check_alone(Swapping(decoder), known.traces, "float32")
    with pytest.raises(DashboardError, match="sequences together: wrong"):
        OWN.answers.check_together(Swapping(decoder), known.traces, "float32")


@pytest.mark.parametrize("margin", [0.5, 1.5])
def test_another_token_is_wrong_only_beyond_the_tolerance(margin: float) -> None:
    logits = np.zeros((1, 4))
    logits[0] = [10.0, 10.0 - margin * 1e-4, 0.0, -1.0]
    given = logits.copy()
    given[0, 0], given[0, 1] = given[0, 0] - 0.9e-4, given[0, 1] + 0.9e-4
    trace = OWN.answers.Trace([1, 2], [0], logits)
    if margin < 1:
        assert OWN.answers.check_trace(given, trace, "float32")["same_tokens"] == 0
    else:
        with pytest.raises(DashboardError, match=r"token 1 after a prompt of 2 is 1, the reference's 0"):
            OWN.answers.check_trace(given, trace, "float32")


@pytest.mark.parametrize("values", [PREFILL, DECODE], ids=["prefill", "decode"])
def test_a_timed_call_starts_from_the_same_cache_each_time(decoder: Any, known: Any, values: dict[str, Any]) -> None:
    call = call_of(decoder, values)
    assert call.check(known, 10.0)["max_error"] <= 1e-5
    assert all(taken > 0 for taken in call.time(2, 3))
    call.find_facts(4)
    np.testing.assert_allclose(decoder.read(call.step()), known.of_point(values), atol=1e-4)


def test_kernels_are_counted_by_phase(decoder: Any, known: Any) -> None:
    counts = []
    for values in (PREFILL, DECODE):
        call = call_of(decoder, values)
        call.check(known, 10.0)
        counts.append(call.find_facts(2)["kernels"])
    assert counts[0] > 10
    assert counts[1] > 10


def test_a_point_whose_first_call_takes_too_long_is_left_out_by_name(decoder: Any, known: Any) -> None:
    with pytest.raises(
        DashboardError, match=r"left out: the first call took .* s of CPU time a thread. Set \$.max_call_s"
    ):
        call_of(decoder, PREFILL).check(known, 0.0)


def test_each_percentile_has_enough_tokens(decoder: Any, known: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    call = call_of(decoder, {**DECODE, "batch": 1})
    call.check(known, 10.0)
    assert "token_p99" not in call.find_facts(8)
    monkeypatch.setattr(OWN.calls, "P99_FROM", 4)
    assert "token_p99" in call.find_facts(4)


def test_a_night_has_both_phases_with_their_numbers(night: tuple[Tried, records.NightData]) -> None:
    data = night[1]
    assert not data.failures
    steps = [(record.workload_args["phase"], record.workload_args["batch"]) for record in data.records]
    assert steps == [("prefill", 1), ("decode", 1), ("decode", 2), ("decode", 1), ("decode", 2)]
    for record in data.records:
        info, is_first = record.additional_info, record.workload_args["phase"] == "prefill"
        assert 0 < info["max_error"] <= info["tolerance"]
        assert info["kernels"] > 10
        assert info["peak_memory"] > 10e6
        for name in (
            "compile_time",
            "code_size",
            "passes_ms",
            "first_call",
            "load_time",
            "weights_time",
            "flops_percent",
        ):
            assert (name in info) == is_first, name
        for name in ("token_p50", "token_p95", "bandwidth_percent"):
            assert (name in info) != is_first, name
        tokens = record.workload_args["prompt"] if is_first else record.workload_args["batch"]
        assert info["tokens_per_second"] == pytest.approx(tokens / info["execution_elapsed_ms_median"] * 1e3)


def test_the_words_tell_the_first_token_from_the_next(night: tuple[Tried, records.NightData]) -> None:
    text = night[0].told()
    assert "prompt 8:" in text
    assert "depth 40:" in text
    assert (night[0].root / "graph" / "decode.svg").exists()


def a_series(engine: str, ms: float, device: str = "", **args: Any) -> Series:
    labels = {
        "workload": "llm.15M",
        "engine": engine,
        "build_config": {},
        "runtime_config": {"threads": 1, **({"device": device} if device else {})},
        "workload_args": {"dtype": "float32", **args},
    }
    return Series(
        f"{engine}{args}", "llm", "run_time", "ms", True, labels, (STAMP,), (ms,), (ms / 2,), (ms * 2,), (0.1,)
    )


def test_engines_stand_beside_one_another_at_each_length_and_depth() -> None:
    series = (
        a_series("tvm", 10.0, phase="prefill", prompt=32, batch=1),
        a_series("torch", 2.0, phase="prefill", prompt=32, batch=1),
        a_series("tvm", 3.0, "opencl", phase="decode", depth=512, batch=1),
    )
    plots = OWN.llm.make_plots({}, History("llm", OWN.llm.Llm.axes, series, (STAMP,), ()))
    prefill, decode = plots["tonight"], plots["decode"]
    assert [group.split(", ")[1] for group in (*prefill.groups, *decode.groups)] == ["prompt 32", "depth 512"]
    assert (prefill.series, decode.series) == (("tvm", "torch"), ("tvm on opencl",))
    assert [len(plot.lines) for name, plot in plots.items() if name.endswith("all_time")] == [2, 1]
    assert [(bar.value, bar.low, bar.high) for bar in prefill.values[0]] == [(10.0, 5.0, 20.0), (2.0, 1.0, 4.0)]


def test_engines_measure_what_they_have() -> None:
    asked = {"dtypes": ["float32", "q4f32"], "batches": [1, 4], "engines": ["tvm", "torch", "llama.cpp"]}
    points = OWN.llm.Llm().points(config_of(OWN.llm.Llm, "llm", **asked))
    found = {(point.engine, point.values["dtype"], point.values["batch"]) for point in points}
    tvm = {("tvm", dtype, batch) for dtype in ("float32", "q4f32") for batch in (1, 4)}
    rivals = {("torch", "float32", 1), ("torch", "float32", 4), ("llama.cpp", "float32", 1), ("llama.cpp", "q4f32", 1)}
    assert found == tvm | rivals
    assert len({point.group for point in points if point.engine == "tvm"}) == 6


def test_the_longer_measurement_that_the_docs_show_is_one() -> None:
    page = (EXPERIMENTS.parent / "docs" / "reference" / "experiments.md").read_text(encoding="utf-8")
    (given,) = re.findall(r"```json\n(.*?)```", page.partition("## llm\n")[2].partition("\n## ")[0], re.DOTALL)
    points = OWN.llm.Llm().points(config_of(OWN.llm.Llm, "llm", **json.loads(given)))
    assert {(point.name, point.values["dtype"]) for point in points if point.engine == "tvm"} == {
        (name, dtype) for name in ("15M", "110M") for dtype in ("float32", "float16", "q4f32")
    }


def test_four_bits_are_the_very_weights_in_gguf() -> None:
    matrix = OWN.network._weight("head", (6, 64), [1, 2])
    packed = OWN.network.pack(matrix, "float32")
    assert np.abs(packed.unpack() - matrix).max() <= packed.scales.max() / 2 + 1e-6
    blocks = np.frombuffer(OWN.llama_cpp._make_q4_0(packed), np.uint8).reshape(6, 2, 18)
    scales = blocks[..., :2].copy().view(np.float16).astype(np.float32)
    halves = [blocks[..., 2:] & 15, blocks[..., 2:] >> 4]
    numbers = np.concatenate(halves, axis=-1).astype(np.float32) - 8
    np.testing.assert_array_equal((numbers * scales).reshape(6, 64), packed.unpack())


def test_a_gguf_file_says_how_many_tensors_follow(tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    OWN.llama_cpp.write_gguf(file, TINY, OWN.network.make_weights(TINY, "q4f32", SEED))
    magic, version, tensors, _ = struct.unpack("<4sIQQ", file.read_bytes()[:24])
    assert (magic, version, tensors) == (b"GGUF", 3, 3 + 9 * TINY.layers)
    assert file.stat().st_size % OWN.llama_cpp.ALIGNMENT == 0


def test_the_second_sample_measures_it_and_the_first_does_not() -> None:
    for home, active in (("sample-llm-home", True), ("sample-dashboard-home", False)):
        file = EXPERIMENTS.parent / home / "config" / "experiments" / "llm" / config_util.CONFIG_FILE
        given = json.loads(file.read_text())
        assert given.pop("active") is active
        config = config_of(OWN.llm.Llm, "llm", **given)
        assert config.networks == ("15M",)
        assert config.max_minutes <= 10


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "variant"),
    [
        ("float32", "default"),
        ("float16", "recipe"),
        ("q4f32", "default"),
        ("q4f32", "recipe"),
        ("q4f16", "recipe"),
        ("float32", "ours"),
        ("float16", "ours"),
        ("q4f32", "ours"),
    ],
)
def test_every_dtype_and_variant_is_right(tmp_path: Path, dtype: str, variant: str) -> None:
    known, decoder = answers_of(tmp_path / "answers.npz", dtype), decoder_of(dtype, variant)
    OWN.answers.check_alone(decoder, known.traces, dtype)
    OWN.answers.check_together(decoder, known.traces, dtype)
    for values in (PREFILL, DECODE):
        call = call_of(decoder, {**values, "dtype": dtype})
        assert call.check(known, 10.0)["max_error"] <= {"16": 1e-2, "32": 1e-5}[dtype[-2:]]


@pytest.mark.slow
def test_rivals_give_the_same_answers(tmp_path: Path) -> None:
    config = {"variants": ["recipe"], "dtypes": ["float32", "q4f32"], "engines": ["tvm", "torch", "llama.cpp"]}
    tried = Tried(tmp_path, "llm", config)
    tried.set_up()
    data = tried.measured()
    assert not data.failures
    assert {(record.engine, record.workload_args["dtype"]) for record in data.records} == {
        ("tvm", "float32"),
        ("tvm", "q4f32"),
        ("torch", "float32"),
        ("llama.cpp", "float32"),
        ("llama.cpp", "q4f32"),
    }
