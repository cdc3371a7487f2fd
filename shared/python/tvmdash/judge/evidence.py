"""The judge's evidence on a series: pairs of processes of two builds in turn, and the steps that are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tvmdash.judge.rules import RULES


@dataclass(frozen=True)
class Pairs:
    """Pairs of fresh processes of `build` and `base` in turn, all on one night.

    log: the mean natural logarithm of build / base; std: of one pair, 0 where there was one only. layout: 0 as it was
    built, other numbers for children in which code lies elsewhere; base_layout: of the base.
    """

    night: int
    build: str
    base: str
    log: float
    std: float
    count: int
    layout: int = 0
    base_layout: int = 0


@dataclass(frozen=True)
class KnownStep:
    """A step that was told: from the build at `begin` on, by `size` (a natural logarithm).

    incident: empty of one that is open no more, because it was for the better, accepted, or taken back. until: of one
    that was taken back, the place of the build from which on things are as before it; ended: the incident that it was.
    """

    begin: int
    size: float
    incident: str = ""
    until: int | None = None
    ended: str = ""


@dataclass(frozen=True)
class Evidence:
    """One series, the oldest pairs first.

    places: the order in TVM's history of the builds that are in question, by their names; a build without a place
    (a reference of another kind) only joins others. code: by build, a hash of the generated code. sign: 1 where more is
    worse, −1 where less is, 0 where neither. has_returned: tonight's is a new commit that runs what an earlier one ran,
    byte for byte, so that both have one name here. metric: what is measured; series of one scatter alike and may move
    together. window: so many of the last pairs are weighed.
    """

    experiment: str
    pairs: Sequence[Pairs]
    places: Mapping[str, int]
    tonight: str
    code: Mapping[str, int] = field(default_factory=dict)
    sign: int = 1
    is_control: bool = False
    is_of_device: bool = False
    metric: str = ""
    has_returned: bool = False
    steps: Sequence[KnownStep] = ()
    window: int = RULES.window

    @property
    def place(self) -> int:
        """The place of tonight's build."""
        return self.places[self.tonight]


class Ask(Protocol):
    """Measures `count` more pairs of a series tonight, in another layout where one can be had; None where none can."""

    def __call__(self, series: str, build: str, base: str, count: int) -> Pairs | None: ...
