"""The models: where their weights come from, what goes in, and what an answer says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tvmdash.experiment import reference_engines
from tvmdash.experiment.engines import Engine
from tvmdash.networks.ops import Array, Shape

RATE_HZ, CHUNK, CONTEXT = 16000, 512, 64
CHUNKS = 24
"""Chunks of 32 ms that silero-vad hears, each with the last 64 samples of the one before."""
PITCH_HZ, SYLLABLES_HZ = 125.0, 4.0
FORMANTS_HZ = ((700.0, 90.0), (1220.0, 110.0), (2600.0, 160.0))
"""Resonances and band widths of an open vowel (Peterson & Barney 1952)."""
TEXT = "Relax 42"
MAGIKA_SIDE, PADDING = 1024, 256
SOURCE = '''import os
import sys


def count_lines(path):
    """How many lines the file at `path` has."""
    with open(path, encoding="utf-8") as file:
        return sum(1 for _ in file)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(f"{os.path.basename(name)}: {count_lines(name)}")
'''


def audio(seed: int) -> list[dict[str, Array]]:
    """Make the chunks of three quarters of a second: a third faint noise, then a vowel in syllables."""
    rng = np.random.default_rng([seed, 5])
    length = CHUNKS * CHUNK
    times = np.arange(length) / RATE_HZ
    envelope = np.where(times > times[-1] / 3, 0.5 - 0.5 * np.cos(2 * np.pi * SYLLABLES_HZ * times), 0.0)
    sound = 0.3 * envelope * _vowel(times) + 0.003 * rng.standard_normal(length)
    padded = np.concatenate([np.zeros(CONTEXT), sound]).astype(np.float32)
    starts = range(0, length, CHUNK)
    return [
        {"input": padded[None, start : start + CONTEXT + CHUNK], "sr": np.array(RATE_HZ, np.int64)} for start in starts
    ]


def _vowel(times: Array) -> Array:
    """Sum the harmonics of the pitch, each as strong as the resonances make it; at most 1."""
    harmonics = PITCH_HZ * np.arange(1, int(RATE_HZ / 2 / PITCH_HZ))
    gains = sum(1.0 / (1.0 + ((harmonics - centre) / width) ** 2) for centre, width in FORMANTS_HZ) / harmonics
    wave: Array = np.sum(gains[:, None] * np.sin(2 * np.pi * harmonics[:, None] * times), axis=0)
    wave /= np.abs(wave).max()
    return wave


def file_bytes(_seed: int) -> list[dict[str, Array]]:
    """Make magika's input of a small Python file: its beginning, and its end; 256 where there is nothing."""
    stripped = np.frombuffer(SOURCE.strip().encode(), np.uint8).astype(np.int32)
    first, last = stripped[:MAGIKA_SIDE], stripped[-MAGIKA_SIDE:]
    sides = [
        np.pad(first, (0, MAGIKA_SIDE - len(first)), constant_values=PADDING),
        np.pad(last, (MAGIKA_SIDE - len(last), 0), constant_values=PADDING),
    ]
    return [{"bytes": np.concatenate(sides)[None].astype(np.int32)}]


def drawn_text(seed: int) -> list[dict[str, Array]]:
    """Draw `TEXT` in dark grey on light grey with a little noise, scaled to -1 to 1: (1, 3, 48, 160)."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("L", (160, 48), 235)
    ImageDraw.Draw(image).text((8, 4), TEXT, fill=30, font=ImageFont.load_default(size=32))
    noise = np.random.default_rng([seed, 6]).normal(0.0, 4.0, (48, 160))
    grey = np.clip(np.asarray(image, np.float32) + noise, 0, 255) / 127.5 - 1.0
    return [{"x": np.broadcast_to(grey.astype(np.float32), (1, 3, 48, 160)).copy()}]


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
class RealModel:
    """A model in an installed package.

    `shapes` are those that its inputs are fixed to. An input in `carried` gets the output of that place of the call
    before. `inputs` makes the feeds of one or more calls, without what is carried (which begins as zeros). `decide`
    gives what the first output of a call decides, and `read` says in words what all of these mean; `labels` finds the
    names that it needs in the model's file.
    """

    file: str
    licence: str
    shapes: Mapping[str, Shape]
    inputs: Callable[[int], list[dict[str, Array]]]
    decide: Callable[[Array], Array]
    read: Callable[[Sequence[Array], Sequence[str]], str]
    carried: Mapping[str, int]
    labels_in: str = ""


def _speech(decided: Sequence[Array], _labels: Sequence[str]) -> str:
    return f"speech in {sum(bool(chunk.any()) for chunk in decided)} of {len(decided)} chunks"


def _file_type(decided: Sequence[Array], labels: Sequence[str]) -> str:
    return labels[int(decided[0][0])]


def _text(decided: Sequence[Array], labels: Sequence[str]) -> str:
    """Read the likeliest sign at each place, without repetitions and blanks (connectionist temporal classification)."""
    places = decided[0][0]
    kept = [index for index, before in zip(places, [0, *places[:-1]], strict=True) if index not in (0, before)]
    return "".join(np.array(["", *labels, " "])[kept])


MODELS: Mapping[str, RealModel] = {
    "silero_vad": RealModel(
        "silero_vad/data/silero_vad_op18_ifless.onnx",
        "MIT",
        {"input": (1, 576), "state": (2, 1, 128), "sr": ()},
        audio,
        lambda output: output > 0.5,
        _speech,
        {"state": 1},
    ),
    "magika": RealModel(
        "magika/models/standard_v3_3/model.onnx",
        "Apache-2.0",
        {"bytes": (1, 2048)},
        file_bytes,
        lambda output: output.argmax(axis=-1),
        _file_type,
        {},
        labels_in="config.min.json",
    ),
    "ppocr_rec": RealModel(
        "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
        "Apache-2.0",
        {"x": (1, 3, 48, 160)},
        drawn_text,
        lambda output: output.argmax(axis=-1),
        _text,
        {},
        labels_in="character",
    ),
}
