"""rnn_comp: TVM's recurrences give numpy's answers, a wrong one fails, rivals are given the same weights."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.experiments.trying import EXPERIMENTS, Tried, modules
from tvmdash import config_util, records
from tvmdash.errors import DashboardError

pytestmark = pytest.mark.usefixtures("tvm_artifact")
OWN = modules("rnn_comp")
CASES = [(kind, form, length) for kind in ("rnn", "lstm", "gru") for form, length in (("layer", 3), ("cell", 1))]


def problem(kind: str, form: str, length: int, batch: int = 2) -> Any:
    return OWN.recurrence.problem(OWN.recurrence.Case(kind, form, 8, length, batch), 3)


def try_engines(root: Path, engines: list[str]) -> Tried:
    return Tried(root, "rnn_comp", {"engines": engines, "hidden": [8], "batch": 2, "number": 1})


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tried, records.NightData]:
    tried = try_engines(tmp_path_factory.mktemp("rnn"), ["tvm", "onnxruntime"])
    return tried, tried.night()


def test_tvm_gives_numpys_answers_for_every_recurrence(night: tuple[Tried, records.NightData]) -> None:
    found = [record for record in night[1].records if record.engine == "tvm"]
    assert {record.workload for record in found} == {f"rnn.{kind}_{form}" for kind, form, _ in CASES}
    for record in found:
        info = record.additional_info
        assert 0 < info["max_error"] <= info["tolerance"]
        assert record.labels["build_config"] == {"lowering": "unrolled"}
        assert info["conditions"]["layout"] == "TNC"
        assert not info["conditions"]["transfer_timed"]
        assert ("length" in record.workload_args) == record.workload.endswith("layer")


def test_a_rival_that_is_not_installed_costs_its_own_points_and_says_so(night: tuple[Tried, records.NightData]) -> None:
    failures = night[1].failures
    assert {failure.workload for failure in failures} == {f"rnn.{kind}_{form}" for kind, form, _ in CASES}
    assert all("never installed" in failure.error for failure in failures)
    text = night[0].told()
    assert "6 points failed" in text
    assert (night[0].root / "graph" / "tonight.svg").exists()


@pytest.mark.parametrize("kind", ["rnn", "lstm", "gru"])
def test_a_layer_is_its_cell_again_and_again(kind: str) -> None:
    layer, recurrence = problem(kind, "layer", 3), OWN.recurrence
    outputs, *last = layer.expected
    state = layer.state
    for step in range(3):
        cell = recurrence.Case(kind, "cell", 8, 1, 2)
        state = recurrence.reference(cell, layer.weights, layer.x[step : step + 1], state)
        np.testing.assert_allclose(outputs[step], state[0])
    np.testing.assert_allclose(last, state)


def test_a_wrong_state_fails_although_the_outputs_are_right() -> None:
    asked = problem("lstm", "layer", 3)
    outputs, h, c = asked.expected
    assert OWN.rnn_comp.checked((outputs, h, c), asked)["max_error"] == 0
    with pytest.raises(DashboardError, match="wrong answer"):
        OWN.rnn_comp.checked((outputs, h, c * 1.001), asked)
    with pytest.raises(ValueError, match="longer"):
        OWN.rnn_comp.checked((outputs, h), asked)


def test_another_gate_order_moves_whole_gates() -> None:
    rows = np.arange(8)
    assert OWN.recurrence.in_order(rows, "lstm", "iofg").tolist() == [0, 1, 6, 7, 2, 3, 4, 5]
    for kind, order in OWN.rnn_comp.GATES.items():
        assert sorted(order) == sorted(OWN.recurrence.GATES[kind])


def test_the_configs_kinds_and_engines_exist() -> None:
    fields = config_util.read_fields(EXPERIMENTS / "rnn_comp" / "fields.json")
    assert set(fields["kinds"].of.choices) == set(OWN.recurrence.STEPS) == set(OWN.rnn_comp.STEPS)
    assert list(fields["engines"].of.choices) == [engine.name for engine in OWN.rnn_comp.RnnComp.engines]


@pytest.mark.slow
def test_every_engine_gives_the_same_answers_and_the_words_compare_them(tmp_path: Path) -> None:
    engines = ["tvm", "onnxruntime", "torch"]
    tried = try_engines(tmp_path, engines)
    tried.set_up()
    data = tried.measured()
    assert not data.failures
    assert len(data.records) == len(CASES) * len(engines)
    for record in data.records:
        assert record.additional_info["max_error"] <= record.additional_info["tolerance"]
    text = tried.told()
    assert "TVM at its best against torch: " in text
    assert re.search("^Fastest: .* of 6", text, re.MULTILINE)
    assert "- lstm_layer: fastest " in text
