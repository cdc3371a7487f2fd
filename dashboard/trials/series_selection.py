"""A series as a person names it: by its ID, the beginning of it, its name or a part of that."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dashboard.trials.rounds import point_of
from tvmdash import records
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.records import PointValue
from tvmdash.records.metrics import RATIOS, Direction, Kind
from tvmdash.series import naming
from tvmdash.text import format_list
from tvmdash.trials.trial import TrialSeries

_NIGHTS_BACK = 60
_LEAST_DIGITS = 4
BYTES = "bytes"


@dataclass(frozen=True)
class WantedSeries:
    """One series of an experiment, as its data held it."""

    id: str
    experiment: str
    metric: str
    unit: str
    labels: Mapping[str, Any]
    direction: Direction
    kind: Kind = "time"
    title: str = ""
    name: str = ""

    @classmethod
    def of(cls, value: PointValue) -> WantedSeries:
        """The series of this value, without a name."""
        key = value.key
        return cls(key.id, key.experiment, key.metric, value.unit, key.labels, value.direction, value.kind, value.title)

    def make_series(self) -> TrialSeries:
        """The same in a trial, without a measurement."""
        return TrialSeries(
            self.id, self.experiment, self.metric, self.labels, self.direction, self.title, self.name, unit=self.unit
        )

    @property
    def is_size(self) -> bool:
        """Whether it counts bytes, which no clock and no neighbour on the machine disturbs."""
        return self.unit == BYTES

    @property
    def point(self) -> dict[str, Any]:
        """What names its point, on any machine."""
        return point_of(self.labels)

    def value_in(self, values: Iterable[PointValue]) -> float | None:
        """Its value among these; the machine may be another than that of its ID."""
        for value in values:
            if value.key.metric == self.metric and point_of(value.key.labels) == self.point:
                return value.value
        return None

    def logs_in(self, values: Iterable[PointValue]) -> tuple[float, ...]:
        """The logarithms of its ratios to another TVM among these, one for each pair of processes."""
        for value in values:
            if RATIOS.get(value.key.metric) == self.metric and point_of(value.key.labels) == self.point:
                return value.logs
        return ()


def find(home: Home, experiment: str, text: str) -> WantedSeries:
    """The series of the experiment that `text` names, by the newest night that has one; DashboardError else."""
    stamps = home.data_stamps(experiment)
    if not stamps:
        raise DashboardError(f"{home.data(experiment)}: no night has measured {experiment} yet. Run a night first.")
    newest: list[WantedSeries] = []
    for known in itertools.islice(_nights(home, experiment, stamps), _NIGHTS_BACK):
        newest = newest or known
        named = select_named(known, text)
        if len(named) == 1:
            return named[0]
        if named:
            shown = format_list([f"{series.id} {series.name}" for series in named], 5)
            raise DashboardError(
                f"{text!r} matches {len(named)} series of {experiment}: {shown}. Give the ID of one of them."
            )
    shown = format_list([f"{series.id} {series.name}" for series in newest], 8) or "none"
    raise DashboardError(f"{text!r} matches no series of {experiment}. The newest night has: {shown}.")


def _nights(home: Home, experiment: str, stamps: list[str]) -> Iterator[list[WantedSeries]]:
    for stamp in reversed(stamps):
        with contextlib.suppress(DashboardError):  # a night that cannot be read is passed over
            values = records.read_data(home.data_file(experiment, stamp), experiment).values()
            yield of_values(value for value in values if value.key.metric not in RATIOS)


def of_values(values: Iterable[PointValue]) -> list[WantedSeries]:
    """The series of these values, named."""
    wanted = [WantedSeries.of(value) for value in values]
    names = naming.names(wanted)
    return [replace(series, name=name) for series, name in zip(wanted, names, strict=True)]


def select_named(known: list[WantedSeries], text: str) -> list[WantedSeries]:
    """By ID or name; where nothing is called just so, by a part of it."""
    exact = [series for series in known if text in (series.id, series.name, series.labels.get("path"))]
    begins = [series for series in known if len(text) >= _LEAST_DIGITS and series.id.startswith(text)]
    return exact or begins or [series for series in known if text in series.name]
