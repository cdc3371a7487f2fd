"""The generator of names in numpy: its weights, what it starts from, and the names that every engine has to give.

The network of the PyTorch tutorial "Generating names with a character-level RNN": category, letter and hidden state
side by side go through two linear layers, to the next hidden state and to an output, and both through a third to the
next letter. The most likely letter is taken, so the names are determined. The weights are drawn, not trained: the
names are nonsense, and each letter depends on all before it.
"""

from __future__ import annotations

import functools
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tvmdash.errors import DashboardError
from tvmdash.networks.ops import Array

ALPHABET = string.ascii_letters + " .,;'-"
END = len(ALPHABET)
"""The index of the letter that ends a name."""
LETTERS, CATEGORIES = END + 1, 18
GAIN = 2.5
"""Factor of the weights over PyTorch's. With 1 the hidden state forgets: names repeat one letter."""
LEAST_MARGIN = 1e-4
"""Lead of the best letter over the second, by the largest score, that makes float32 take the same one."""
DRAWS = 50


@dataclass(frozen=True)
class Size:
    """Hidden size, names in one call, and letters that a name may have after its first."""

    hidden: int
    names: int
    longest: int


@dataclass(frozen=True)
class Start:
    """The start of a name: its category as (1, CATEGORIES) float32, its first letter's index."""

    category: Array
    letter: int


@dataclass(frozen=True)
class GeneratorTask:
    """`weights`: hidden_w, output_w, letter_w (inputs, outputs) and hidden_b, output_b, letter_b, float32."""

    size: Size
    weights: Mapping[str, Array]
    starts: tuple[Start, ...]
    names: tuple[str, ...]

    @property
    def letters(self) -> int:
        """Letters that one call generates: without each name's first."""
        return sum(len(name) - 1 for name in self.names)


@functools.lru_cache(maxsize=2)
def task(size: Size, seed: int) -> GeneratorTask:
    """Draw the task of a seed. Weights that leave a letter in doubt are drawn again."""
    for draw in range(DRAWS):
        rng = np.random.default_rng([seed, draw])
        weights, starts = _weights(size.hidden, rng), _starts(size.names, rng)
        names = [_name(weights, start, size) for start in starts]
        if None not in names:
            return GeneratorTask(size, weights, starts, tuple(filter(None, names)))
    problem = f"none of {DRAWS} generators has names that float32 is sure of"
    raise DashboardError(f"$.data_seed {seed}: {problem}. Choose another, or fewer names.")


def _weights(hidden: int, rng: np.random.Generator) -> dict[str, Array]:
    inputs = CATEGORIES + LETTERS + hidden
    shapes = {"hidden": (inputs, hidden), "output": (inputs, LETTERS), "letter": (hidden + LETTERS, LETTERS)}
    weights: dict[str, Array] = {}
    for name, (rows, columns) in shapes.items():
        reach = GAIN / np.sqrt(rows)
        weights[f"{name}_w"] = rng.uniform(-reach, reach, (rows, columns)).astype(np.float32)
        weights[f"{name}_b"] = rng.uniform(-reach, reach, columns).astype(np.float32)
    return weights


def _starts(names: int, rng: np.random.Generator) -> tuple[Start, ...]:
    """Draw different categories, and capitals."""
    eye, capital = np.eye(CATEGORIES, dtype=np.float32), len(string.ascii_lowercase)
    return tuple(
        Start(eye[None, category], capital + int(rng.integers(capital)))
        for category in rng.permutation(CATEGORIES)[:names]
    )


def _name(weights: Mapping[str, Array], start: Start, size: Size) -> str | None:
    """Compute the name in float64; None where a letter is in doubt."""
    wide = {name: array.astype(np.float64) for name, array in weights.items()}
    letters, hidden = [start.letter], np.zeros(size.hidden)
    while len(letters) <= size.longest:
        both = np.concatenate([start.category[0], np.eye(LETTERS)[letters[-1]], hidden])
        hidden = both @ wide["hidden_w"] + wide["hidden_b"]
        output = np.concatenate([hidden, both @ wide["output_w"] + wide["output_b"]])
        scores = output @ wide["letter_w"] + wide["letter_b"]
        second, best = np.argsort(scores)[-2:]
        if scores[best] - scores[second] <= LEAST_MARGIN * np.abs(scores).max():
            return None
        if best == END:
            break
        letters.append(int(best))
    return spelled(letters)


def spelled(letters: Sequence[int]) -> str:
    """Spell the name up to its end."""
    return "".join(ALPHABET[letter] for letter in letters)


def checked(names: Sequence[str], expected: Sequence[str]) -> dict[str, object]:
    """Return the names and the share that is right, for the record; DashboardError where one is not the reference's."""
    if list(names) != list(expected):
        differing = [pair for pair in zip(names, expected, strict=False) if pair[0] != pair[1]]
        problem = f"{differing[0][0]!r} is not {differing[0][1]!r}" if differing else f"{len(names)} names"
        raise DashboardError(f"wrong answer: {problem}, which numpy gives; {len(expected)} names were asked for.")
    same = sum(name == right for name, right in zip(names, expected, strict=True))
    return {"names": list(names), "validation_accuracy": same / len(expected)}
