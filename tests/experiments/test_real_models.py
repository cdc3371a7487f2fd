"""real_models: real weights from packages, inputs that mean something, answers held against ONNX Runtime's."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from tests.experiments.trying import EXPERIMENTS, Tried, modules
from tvmdash import config_util, records
from tvmdash.errors import DashboardError
from tvmdash.experiment.info import History
from tvmdash.summary_util import Failure

pytestmark = pytest.mark.usefixtures("tvm_artifact")
OWN = modules("real_models")
SEED = 3


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tried, records.NightData]:
    config = {"models": ["magika"], "forms": ["shipped", "folded"], "number": 1}
    tried = Tried(tmp_path_factory.mktemp("models"), "real_models", config)
    return tried, tried.night(set_up=True)


def test_a_night_measures_the_folded_model_and_onnx_runtime(night: tuple[Tried, records.NightData]) -> None:
    data = night[1]
    assert {(record.engine, record.build_config.get("form")) for record in data.records} == {
        ("tvm", "folded"),
        ("onnxruntime", None),
    }
    for record in data.records:
        info = record.additional_info
        assert info["max_error"] <= info["tolerance"]
        assert info["reads"] == "python"
        assert (info["model_package"], info["model_licence"]) == ("magika 1.0.3", "Apache-2.0")


def test_which_form_failed_is_known_by_its_value_not_by_its_label() -> None:
    failures = (Failure("#1#", "no", "model.magika", {"form": "shipped"}), Failure("shipped", "no"))
    told = OWN.real_models.imported(History("e", (), (), ("20260101T000000Z",), failures))
    assert told == ["- Models that TVM runs: 0 of 1 shipped"]


def test_what_the_frontend_cannot_import_is_a_failure_with_its_reason(night: tuple[Tried, records.NightData]) -> None:
    (failure,) = night[1].failures
    assert failure.values["form"] == "shipped"
    assert "TVM's ONNX frontend cannot import the shipped model: Reshape" in failure.error
    text = night[0].told()
    assert "cannot import the shipped model" in text
    assert "- Models that TVM runs: 0 of 1 shipped and 1 of 1 folded" in text


@pytest.mark.parametrize("name", sorted(OWN.models.MODELS))
def test_inputs_have_the_shapes_that_models_are_fixed_to_and_stay_the_same(name: str) -> None:
    model = OWN.models.MODELS[name]
    calls, again = model.inputs(SEED), model.inputs(SEED)
    for call, repeated in zip(calls, again, strict=True):
        assert {key: array.shape for key, array in call.items()} == {
            key: shape for key, shape in model.shapes.items() if key not in model.carried
        }
        for key, array in call.items():
            np.testing.assert_array_equal(array, repeated[key])


def test_audio_begins_faint_and_its_chunks_overlap_by_their_context() -> None:
    chunks = [call["input"][0] for call in OWN.models.audio(SEED)]
    for before, chunk in itertools.pairwise(chunks):
        np.testing.assert_array_equal(chunk[: OWN.models.CONTEXT], before[-OWN.models.CONTEXT :])
    assert np.abs(chunks[2]).max() < 0.05
    assert max(np.abs(chunk).max() for chunk in chunks[8:]) > 0.2


def test_text_is_read_as_ctc_has_it() -> None:
    places = [0, 1, 1, 0, 1, 2, 3, 3, 0]  # blank, a, a, blank, a, b, space, space, blank
    model = OWN.models.MODELS["ppocr_rec"]
    assert model.read([model.decide(np.eye(4)[places][None])], ["a", "b"]) == "aab "


def given(folder: Path):
    """Two calls of a model that gives its input and counts in its state."""
    calls = {}
    for place in range(2):
        calls |= {f"{place}/x": np.full(3, place + 1.0), f"{place}/state": np.full(2, float(place))}
        calls |= {f"{place}/out0": np.full(3, place + 1.0), f"{place}/out1": np.full(2, place + 1.0)}
    np.savez(folder / "calls.npz", **calls)
    facts = {"package": "p 1", "file": "f", "licence": "MIT", "calls": 2, "reads": "2 calls", "labels": []}
    (folder / "facts.json").write_text(json.dumps(facts))
    shapes = {"x": (3,), "state": (2,)}
    read = lambda decided, labels: f"{len(decided)} calls"  # noqa: E731
    model = OWN.models.RealModel("f", "MIT", shapes, lambda seed: [], np.round, read, {"state": 1})
    return OWN.real_models.Given(model, folder)


def test_a_state_is_carried_by_the_engine_itself_from_call_to_call(tmp_path: Path) -> None:
    seen = []

    def call(feeds):
        seen.append(feeds["state"].copy())
        return feeds["x"], feeds["state"] + 1.000001

    checked = given(tmp_path).check(call)
    assert (checked["reads"], checked["validation_accuracy"]) == ("2 calls", 1.0)
    assert 0 < checked["max_error"] < checked["tolerance"]
    np.testing.assert_allclose(seen, [[0, 0], [1.000001] * 2], rtol=1e-9)


def test_an_answer_that_is_off_in_its_state_alone_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(DashboardError, match=r"wrong answer: the largest error 0\.5 against ONNX Runtime"):
        given(tmp_path).check(lambda feeds: (feeds["x"], feeds["state"] + 1.5))


def test_an_answer_that_means_something_else_is_wrong(tmp_path: Path) -> None:
    own = given(tmp_path)
    own.facts["reads"] = "3 calls"
    with pytest.raises(DashboardError, match="it reads '2 calls', ONNX Runtime '3 calls'"):
        own.check(lambda feeds: (feeds["x"], feeds["state"] + 1))


def test_the_configs_models_are_those_that_exist() -> None:
    fields = config_util.read_fields(EXPERIMENTS / "real_models" / "fields.json")
    assert set(fields["models"].of.choices) == set(OWN.models.MODELS)
