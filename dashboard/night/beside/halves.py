"""The runs of one experiment with tonight's TVM and the reference: in pairs, the first of each drawn by lot."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER = "pairs"


@dataclass(frozen=True)
class Half:
    """One run, with tonight's TVM or the reference; its stages leave what they leave in `folder`.

    is_the_nights: it is the run that every night has, and what it measured is published.
    """

    pair: int
    of_reference: bool
    folder: Path
    is_the_nights: bool = False

    def of(self, stage: str) -> Path:
        """What the stage leaves."""
        return self.folder / stage

    def log(self, stage: str) -> Path:
        """The stage's output."""
        return self.folder / f"{stage}.log"


def plan_halves(root: Path, pairs: int, seed: str) -> list[Half]:
    """All runs in their order; `root` is the folder of the job."""
    rng, halves = random.Random(seed), list[Half]()
    for number in range(pairs):
        halves += rng.sample(_pair(root, number), 2)
    return halves


def list_pairs(root: Path, pairs: int) -> list[Sequence[Half]]:
    """By pair, the half of tonight's TVM and that of the reference."""
    return [_pair(root, number) for number in range(pairs)]


def _pair(root: Path, number: int) -> Sequence[Half]:
    """Tonight's half and the reference's; of the first pair tonight's is the night's own."""
    folder, own = root / FOLDER, number == 0
    tonight = Half(number, of_reference=False, folder=root if own else folder / f"{number}-tonight", is_the_nights=own)
    return tonight, Half(number, of_reference=True, folder=folder / f"{number}-reference")
