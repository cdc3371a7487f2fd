"""The models: where their weights come from, what goes in, and what an answer says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import real_inputs

from tvmdash.experiment import reference_engines
from tvmdash.experiment.engines import Engine
from tvmdash.networks.ops import Array, Shape

ONNX = ("onnx==1.23.2", "protobuf==7.36.2")
PACKAGES = Engine(
    "models",
    (
        *reference_engines.ONNXRUNTIME.requirements,
        ONNX[0],
        "silero-vad==6.2.3",
        "magika==1.0.3",
        "rapidocr-onnxruntime==1.4.4",
    ),
    pip_options=("--ignore-requires-python",),
)
"""It measures nothing: setup makes the inputs with it. Of the three packages only the models are read, so the versions
of Python that rapidocr-onnxruntime's code is made for do not matter."""


@dataclass(frozen=True)
class Model:
    """A model in an installed package.

    `shapes` are those that its inputs are fixed to. An input in `carried` gets the output of that place of the call
    before. `inputs` makes the feeds of one or more calls, without what is carried (which begins as zeros); `read` says
    in words what the first outputs of all calls mean; `labels` finds the names that it needs in the model's file.
    """

    file: str
    licence: str
    shapes: Mapping[str, Shape]
    inputs: Callable[[int], list[dict[str, Array]]]
    read: Callable[[Sequence[Array], Sequence[str]], str]
    carried: Mapping[str, int]
    labels_in: str = ""


def _speech(outputs: Sequence[Array], _labels: Sequence[str]) -> str:
    chances = [float(output.max()) for output in outputs]
    return f"speech in {sum(chance > 0.5 for chance in chances)} of {len(chances)} chunks"


def _file_type(outputs: Sequence[Array], labels: Sequence[str]) -> str:
    return labels[int(outputs[0][0].argmax())]


def _text(outputs: Sequence[Array], labels: Sequence[str]) -> str:
    """The likeliest sign at each place, repetitions and blanks taken out (connectionist temporal classification)."""
    places = outputs[0][0].argmax(axis=-1)
    kept = [index for index, before in zip(places, [0, *places[:-1]], strict=True) if index not in (0, before)]
    return "".join(np.array(["", *labels, " "])[kept])


MODELS: Mapping[str, Model] = {
    "silero_vad": Model(
        "silero_vad/data/silero_vad_op18_ifless.onnx",
        "MIT",
        {"input": (1, 576), "state": (2, 1, 128), "sr": ()},
        real_inputs.audio,
        _speech,
        {"state": 1},
    ),
    "magika": Model(
        "magika/models/standard_v3_3/model.onnx",
        "Apache-2.0",
        {"bytes": (1, 2048)},
        real_inputs.file_bytes,
        _file_type,
        {},
        labels_in="config.min.json",
    ),
    "ppocr_rec": Model(
        "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
        "Apache-2.0",
        {"x": (1, 3, 48, 160)},
        real_inputs.drawn_text,
        _text,
        {},
        labels_in="character",
    ),
}
