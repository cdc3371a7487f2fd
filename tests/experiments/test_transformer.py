"""transformer: its numpy answer is a transformer's, TVM's is the same for every length, its words are rates."""

from __future__ import annotations

import numpy as np
import pytest

from tests.experiments.trying import EXPERIMENTS, STAMP, Tried, modules
from tvmdash import config_util, records, relax_util
from tvmdash.errors import DashboardError
from tvmdash.experiment.info import History
from tvmdash.networks import transformer as networks_transformer
from tvmdash.relax_util import CompileOptions
from tvmdash.relax_util import transformer as relax_transformer
from tvmdash.series.store import Series

pytestmark = pytest.mark.usefixtures("tvm_artifact")
OWN = modules("transformer")
SEED, LENGTHS = 3, (1, 5, 9)
DECODER = networks_transformer.Model(layers=2, width=16, heads=2, vocabulary=20, positions=12)
ATTENTION = networks_transformer.Model(layers=1, width=16, heads=2, vocabulary=0, positions=12)


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tried, records.NightData]:
    """Without setup, so without PyTorch."""
    tried = Tried(tmp_path_factory.mktemp("transformer"), "transformer", {"models": ["attention"]})
    return tried, tried.night()


@pytest.mark.parametrize("model", [DECODER, ATTENTION], ids=["decoder", "attention"])
def test_decoding_after_a_prefill_is_the_prefill_of_one_more(model) -> None:
    weights = networks_transformer.make_weights(model, SEED)
    decoded = networks_transformer.make_step(model, weights, "decode", 6, SEED).expected
    whole = networks_transformer.make_step(model, weights, "prefill", 7, SEED).expected
    np.testing.assert_allclose(decoded[0][-1], whole[0][-1], rtol=1e-4, atol=1e-5)  # the cache is float32
    for longer, kept in zip(whole[1:], decoded[1:], strict=True):
        np.testing.assert_allclose(kept, longer, rtol=1e-4, atol=1e-5)


def test_a_token_never_sees_what_comes_after_it() -> None:
    weights = networks_transformer.make_weights(ATTENTION, SEED)
    x = np.random.default_rng(SEED).standard_normal((6, 16))
    changed = x.copy()
    changed[4:] += 1.0
    before, after = (networks_transformer.forward(ATTENTION, weights, (value,), ())[0] for value in (x, changed))
    np.testing.assert_array_equal(before[:4], after[:4])
    assert not np.allclose(before[4:], after[4:])


@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_one_module_with_a_symbol_answers_every_length(phase: str) -> None:
    weights = networks_transformer.make_weights(DECODER, SEED)
    module = relax_transformer.lower(DECODER, weights, phase, None)
    loaded = relax_util.load(relax_util.compile_module(module, CompileOptions("llvm")), 1)
    for length in LENGTHS:
        step = networks_transformer.make_step(DECODER, weights, phase, length, SEED)
        outputs = loaded.outputs(*step.inputs, *step.cache)
        assert OWN.transformer._checked(outputs, step)["max_error"] <= 1e-5


def test_a_wrong_cache_is_a_wrong_answer() -> None:
    step = networks_transformer.make_step(DECODER, networks_transformer.make_weights(DECODER, SEED), "decode", 4, SEED)
    good = list(step.expected)
    bad = [*good[:-1], good[-1] + 0.01]
    assert OWN.transformer._checked(good, step)["max_error"] == 0
    with pytest.raises(DashboardError, match="wrong answer"):
        OWN.transformer._checked(bad, step)


def test_heads_that_do_not_divide_the_width_are_refused() -> None:
    with pytest.raises(DashboardError, match="width 16 is not divisible by 3 heads"):
        networks_transformer.Model(1, 16, 3, 0, 4)


def test_a_night_without_pytorch_says_so_and_measures_tvm(night: tuple[Tried, records.NightData]) -> None:
    data = night[1]
    measured = {(record.workload_args["phase"], record.build_config["shapes"]) for record in data.records}
    assert measured == {(phase, shapes) for phase in ("prefill", "decode") for shapes in ("static", "dynamic")}
    assert {failure.values["engine"] for failure in data.failures} == {"torch"}
    assert all("it was never installed" in failure.error for failure in data.failures)


def test_a_record_has_its_tokens_per_second(night: tuple[Tried, records.NightData]) -> None:
    for record in night[1].records:
        tokens = record.workload_args["length"] if record.workload_args["phase"] == "prefill" else 1
        info = record.additional_info
        assert info["tokens_per_second"] == pytest.approx(tokens / info["execution_elapsed_ms_median"] * 1e3)
        assert 0 < info["max_error"] <= info["tolerance"]
        assert ("device_memory_usage" in info) == (record.build_config["shapes"] == "static")


def test_the_words_and_a_graph_are_in_tokens_per_second(night: tuple[Tried, records.NightData]) -> None:
    text = night[0].told()
    assert "- attention, prefill of 8 tokens: tvm static " in text
    assert "- dynamic against static, decode: " in text
    assert (night[0].root / "graph" / "tokens_per_second.svg").exists()


def a_series(phase: str, shapes: str, ms: float) -> Series:
    labels = {
        "workload": "transformer.decoder",
        "engine": "tvm",
        "build_config": {"shapes": shapes},
        "workload_args": {"phase": phase, "length": 50},
    }
    return Series(phase + shapes, "e", "run_time", "ms", True, labels, (STAMP,), (ms,), (ms / 2,), (ms * 2,), (0.1,))


def test_dynamic_shapes_are_held_against_static_ones_of_the_same_phase() -> None:
    series = (
        a_series("prefill", "static", 10.0),
        a_series("prefill", "dynamic", 20.0),
        a_series("decode", "static", 4),
    )
    history = History("e", (), series, (STAMP,), ())
    assert OWN.transformer.summarize_history(history) == [
        "- decoder, prefill of 50 tokens: tvm static 5000 and tvm dynamic 2500 tokens/s",
        "- decoder, decode after 50 tokens: tvm static 250 tokens/s",
        "- dynamic against static, prefill: 2.00x slower (1 workload)",
    ]
    bar = OWN.transformer.plot(history).values[0][0]
    assert (bar.value, bar.low, bar.high) == pytest.approx((5000, 2500, 10000))


def test_the_smoke_size_is_small() -> None:
    fields = config_util.read_fields(EXPERIMENTS / "transformer" / "fields.json")
    assert max(fields["lengths"].smoke) <= 8
    assert fields["width"].smoke % fields["heads"].smoke == 0


@pytest.mark.slow
def test_pytorch_gives_the_same_answers(tmp_path) -> None:
    tried = Tried(tmp_path, "transformer", {"shapes": ["dynamic"], "layers": 1})
    tried.set_up()
    data = tried.measured()
    assert not data.failures
    assert {record.engine for record in data.records} == {"tvm", "torch"}
    assert len(data.records) == 8
    assert "against torch" in tried.told()
