"""One round of measuring, asked for and answered: the types that all measuring commands share."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dashboard.artifacts.artifact import Artifact, ArtifactSpec
from dashboard.trials.points import Point, key_of, point_of
from tvmdash.errors import DashboardError
from tvmdash.records import PointValue


class RoundState(enum.StrEnum):
    """How a round went. The file that `remeasure` leaves holds these words."""

    MEASURED = "measured"
    GONE = "gone"
    """Its artifact was removed."""
    UNKNOWN = "unknown"
    """The night's data names no artifact."""
    UNBUILT = "unbuilt"
    """Its TVM is not at hand and could not be built."""
    INACTIVE = "inactive"
    """The home does not run the experiment."""
    FAILED = "failed"
    """A stage of the experiment failed."""
    BUDGET = "budget"
    """The time was over."""


class MeasuringError(DashboardError):
    """Why a round gave no values."""

    def __init__(self, state: RoundState, text: str) -> None:
        super().__init__(text)
        self.state = state


@dataclass(frozen=True)
class TvmOfNight:
    """The TVM on which the night `stamp` measured the round's experiment."""

    stamp: str


Tvm = Artifact | ArtifactSpec | TvmOfNight
"""A TVM to measure on: one that the caller holds, one to get or build, one of an earlier night."""


@dataclass(frozen=True)
class Round:
    """One run of an experiment on each of `tvms`, of these points or, without any, of all.

    The order of the TVMs alternates with `number`. needs_values: a run without a value has failed. beside: the run is
    measured in turn with this TVM, as a night is with its reference.
    """

    experiment: str
    tvms: tuple[Tvm, ...]
    points: tuple[Point, ...] = ()
    number: int = 0
    needs_values: bool = True
    beside: Tvm | None = None

    @property
    def order(self) -> tuple[int, ...]:
        """The indices of the TVMs in the order in which they are measured."""
        indices = tuple(range(len(self.tvms)))
        return indices[::-1] if self.number % 2 else indices

    def asks_for(self, labels: Mapping[str, Any]) -> bool:
        """Whether a series with these labels was asked for."""
        return not self.points or key_of(point_of(labels)) in {key_of(point) for point in self.points}


@dataclass(frozen=True)
class MeasuredRun:
    """One run: the data file that it left, and the values in it of the points that were asked for."""

    artifact: Artifact
    data: Mapping[str, Any]
    values: tuple[PointValue, ...]


@dataclass(frozen=True)
class RoundOutcome:
    """What came of a round. runs: in the order of its TVMs; none unless it was MEASURED.

    at: the index of the TVM that it failed on. artifact: the key of that one, or of the one measured last; None where
    it is not known. built_s: what building a TVM for it took. is_final: the same round is not tried again.
    """

    round: Round
    state: RoundState
    runs: tuple[MeasuredRun, ...] = ()
    error: str = ""
    at: int = 0
    artifact: str | None = None
    built_s: float = 0.0
    elapsed_s: float = 0.0
    is_final: bool = False

    @property
    def is_measured(self) -> bool:
        """Whether there are runs."""
        return self.state is RoundState.MEASURED

    def raise_error(self) -> None:
        """Raise MeasuringError where the round gave nothing."""
        if not self.is_measured:
            raise MeasuringError(self.state, self.error)
