"""Requests, points, TVMs, rounds and their outcomes, shared by all that measures beside the nights."""

from __future__ import annotations

import enum
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dashboard.artifacts.artifact import Artifact, ArtifactSpec
from tvmdash import records
from tvmdash.errors import DashboardError
from tvmdash.records import PointValue
from tvmdash.trials.suspect import Suspect


@dataclass(frozen=True)
class MeasuringRequest:
    """Which experiments are measured on which TVMs, how often and for how long.

    experiments: by name; none of them means all that run in the home. series: as people name them; none means all.
    tvms: as people name them: the two that are compared, the ends of a search, or a range. rounds: how often each is
    measured. budget_s: for measuring altogether. rebuild: get what is not at hand. seed: None draws one; within a
    night the night's own counts. isolates: TVMs that are not of the home's branch are built and run apart.
    """

    experiments: tuple[str, ...] = ()
    series: tuple[str, ...] = ()
    tvms: tuple[str, ...] = ()
    rounds: int = 1
    budget_s: float = math.inf
    rebuild: bool = True
    seed: int | None = None
    isolates: bool = False


Point = Mapping[str, Any]
IDENTITY = tuple(name for name in records.IDENTITY if name not in {"env_name", "hw_model"})
"""The columns that name a point in TVMDASH_POINTS: a record's identity without the machine."""
PATH = "path"
"""The label that names a number of a foreign experiment."""


def point_of(labels: Mapping[str, Any]) -> dict[str, Any]:
    """Return the labels that name the point of a series."""
    return {PATH: labels[PATH]} if PATH in labels else {name: labels.get(name) for name in IDENTITY}


def key_of(point: Point) -> str:
    """Make a text that is the same for equal points and for no others."""
    return json.dumps(point, sort_keys=True)


@dataclass(frozen=True)
class BuildCandidate:
    """One build that could be the first slow one, and how it is got."""

    spec: ArtifactSpec
    suspect: Suspect

    @property
    def id(self) -> str:
        """The commit's 40 digits, or the version."""
        return self.suspect.id


class RoundState(enum.StrEnum):
    """The state of a round, in the words that the file of `remeasure` holds."""

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
    CHANGED = "changed"
    """The experiment's code or config is another than when the trial began."""
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
    measured in turn with this TVM, as a night is with its reference. layout: the code of both is linked in the layout
    of that number, 0 as it comes. metrics: what is wanted of them, or anything.
    """

    experiment: str
    tvms: tuple[Tvm, ...]
    points: tuple[Point, ...] = ()
    number: int = 0
    needs_values: bool = True
    beside: Tvm | None = None
    layout: int = 0
    metrics: tuple[str, ...] = ()

    @property
    def order(self) -> tuple[int, ...]:
        """The indices of the TVMs in the order in which they are measured."""
        indices = tuple(range(len(self.tvms)))
        return indices[::-1] if self.number % 2 else indices

    def asks_for(self, labels: Mapping[str, Any]) -> bool:
        """Return True where a series with these labels was asked for."""
        return not self.points or key_of(point_of(labels)) in {key_of(point) for point in self.points}


@dataclass(frozen=True)
class MeasuredRun:
    """One run: the data file that it left, and the values in it of the points that were asked for."""

    artifact: Artifact
    data: Mapping[str, Any]
    values: tuple[PointValue, ...]


@dataclass(frozen=True)
class RoundOutcome:
    """The outcome of a round. runs: in the order of its TVMs; none unless it was MEASURED.

    at: the index of the TVM that it failed on. artifact: the key of that one, or of the one measured last; None where
    it is not known. built_s: what building a TVM for it took.
    """

    round: Round
    state: RoundState
    runs: tuple[MeasuredRun, ...] = ()
    error: str = ""
    at: int = 0
    artifact: str | None = None
    built_s: float = 0.0
    elapsed_s: float = 0.0

    @property
    def is_measured(self) -> bool:
        return self.state is RoundState.MEASURED

    def raise_error(self) -> None:
        """Raise MeasuringError where the round gave nothing."""
        if not self.is_measured:
            raise MeasuringError(self.state, self.error)
