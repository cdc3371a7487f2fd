"""The values of the change detector: history, settings, state and decision of a series.

Nights are counted: night 0 is the series' first, and a night without a value is NaN. All are frozen
values; the state is the only memory, and is JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np

from tvmdash.errors import DashboardError
from tvmdash.judge.history.cause import Cause, Reason
from tvmdash.judge.history.noise import WIDTH, FloatArray, IntArray, noise_floors

STATE_VERSION = 1
FLOOR_EVERY = 30
FLOOR_NIGHTS = 90
"""The floor is computed anew at nights divisible by this, so that a replay finds the same one."""
KEPT_NIGHTS = 150
"""A state remembers corrected values for this many nights; the history needs to reach back as far."""
ALLOWED_NOT_POSITIVE = 0.1
LEAST_SIGNED = 18


class Rerun(Protocol):
    """Measures the artifact of `night` again tonight, `count` times; the values, in the series' unit.

    Returns fewer, or none, when the budget is spent or that artifact is gone.
    """

    def __call__(self, night: int, count: int) -> Sequence[float]: ...


@dataclass(frozen=True)
class Settings:
    """The detector's constants; effects are fractions of the value, thresholds are in standard errors.

    threshold: what an alert needs without re-runs. suspect: what a suspicion needs to be measured again.
    least_suspect: the same where noise is so large that `wanted` would otherwise be missed.
    reproduced: what the re-runs alone must reach. wanted: the step that should be found within nights.
    """

    threshold: float = 5.7
    least_nights: int = 4
    least_effect: float = 0.005
    precedent: float = 1.8
    odds: float = 3e-4
    suspect: float = 3.4
    least_suspect: float = 2.0
    reproduced: float = 4.2
    wanted: float = 0.03
    most_reruns: int = 32
    least_history: int = 18


@dataclass(frozen=True)
class History:
    """One series over nights: `values[i]` is night `offset + i`, the last one is tonight.

    std, repeats: the within-night repeats' standard deviation and number, where known. The arrays may
    begin late (`offset`), as long as they reach back KEPT_NIGHTS nights with values.
    """

    values: FloatArray
    std: FloatArray | None = None
    repeats: FloatArray | None = None
    offset: int = 0

    @property
    def tonight(self) -> int:
        return self.offset + len(self.values) - 1


@dataclass(frozen=True)
class SeriesState:
    """The memory of a series from night to night.

    start: first night of the current level. reserve: residuals of closed segments, reserve_nights: the nights
    of the last of them. fixed: corrected scaled values of nights that were measured again or that the whole
    machine shifted. unit: None for logarithms, otherwise the value that counts as 1 for a series that is not
    positive. moved: nights on which re-runs found that the machine, not TVM, had moved.
    """

    start: int = 0
    reserve: tuple[float, ...] = ()
    fixed: Mapping[int, float] = field(default_factory=dict)
    unit: float | None = None
    moved: tuple[int, ...] = ()
    reserve_nights: tuple[int, ...] = ()

    def to_json(self) -> dict[str, Any]:
        # By hand: asdict copies each of thousands of numbers as if it could hold others.
        return {
            "version": STATE_VERSION,
            "start": self.start,
            "reserve": list(self.reserve),
            "fixed": {str(night): value for night, value in self.fixed.items()},
            "unit": self.unit,
            "moved": list(self.moved),
            "reserve_nights": list(self.reserve_nights),
        }

    @classmethod
    def from_json(cls, json: Mapping[str, Any]) -> SeriesState:
        """The state that `to_json` wrote; DashboardError where it is another version or damaged."""
        if json.get("version") != STATE_VERSION:
            raise DashboardError(
                f"state of a series: $.version: {json.get('version')!r} is not {STATE_VERSION}. "
                "Delete the state; it is rebuilt from the history."
            )
        try:
            return cls(
                start=int(json["start"]),
                reserve=tuple(float(value) for value in json["reserve"]),
                fixed={int(night): float(value) for night, value in json["fixed"].items()},
                unit=None if json["unit"] is None else float(json["unit"]),
                moved=tuple(int(night) for night in json["moved"]),
                reserve_nights=tuple(int(night) for night in json.get("reserve_nights", ())),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DashboardError(
                f"state of a series: {error!r}. Delete the state; it is rebuilt from the history."
            ) from error


Kind = Literal["quiet", "alert", "environment"]


@dataclass(frozen=True)
class Measured:
    """One re-run: tonight, with the artifact of `night`, gave `value`."""

    night: int
    value: float


@dataclass(frozen=True)
class Decision:
    """The detector's decision on one series on one night, with all that is needed to explain it.

    kind: "alert" (the level shifted), "environment" (it did, and it was not TVM), "quiet".
    reason: why. cut: first night of the new level; after: the last night with a value before
    it, so the culprit is in (after, cut]. effect: relative change of the value (0.03 = 3 % more; in
    units of `state.unit` for a series that is not positive), effect_low and effect_high its 95 %
    interval. z, nights, threshold: the statistic, how many nights it rests on, what it had to reach.
    scale: the noise of one night, as effect. reruns: what was measured again; is_reproduced: and shows the shift.
    cause: whose a shift is, once that is decided.
    """

    kind: Kind
    reason: Reason
    night: int
    state: SeriesState
    cut: int | None = None
    after: int | None = None
    effect: float | None = None
    effect_low: float | None = None
    effect_high: float | None = None
    z: float | None = None
    nights: int | None = None
    threshold: float | None = None
    scale: float | None = None
    reruns: tuple[Measured, ...] = ()
    is_reproduced: bool = False
    cause: Cause | None = None


@dataclass(frozen=True)
class Scaled:
    """The nights of a history that have a usable value, in the units the detector works in.

    recorded: as measured; x: the same with the state's corrections.
    """

    x: FloatArray
    recorded: FloatArray
    nights: IntArray
    relative_error: FloatArray
    unit: float | None
    left_out: int

    def index_of(self, night: int) -> int:
        """The position of the first usable night that is not before `night`."""
        return int(np.searchsorted(self.nights, night))

    def floors(self, cuts: IntArray) -> FloatArray:
        """The least noise believed of each cut; one value for each FLOOR_EVERY nights."""
        block = self.nights[np.minimum(cuts, len(self.x) - 1)] // FLOOR_EVERY
        distinct, inverse = np.unique(block, return_inverse=True)
        stop = np.maximum(np.searchsorted(self.nights, distinct * FLOOR_EVERY), min(18, len(self.x)))
        index = stop[:, None] + np.arange(-FLOOR_NIGHTS, 0)[None, :]
        recorded = np.where(index >= 0, self.recorded[np.maximum(index, 0)], np.nan)
        error = np.where(index >= 0, self.relative_error[np.maximum(index, 0)], np.nan)
        return noise_floors(error[:, -WIDTH:], recorded)[inverse]


def scale_series(history: History, state: SeriesState) -> Scaled:
    """The usable nights of `history`: logarithms where values are positive, else values over their MAD.

    Not a number, infinite: missing. A value of zero or less in a series that is positive otherwise is
    missing as well; a series with more than a tenth of such values in 18 nights is taken as signed for good.
    """
    values = np.asarray(history.values, float)
    night = np.arange(len(values), dtype=np.int64) + history.offset
    usable = np.isfinite(values)
    positive = usable & (values > 0)
    unit = state.unit
    recent = usable.nonzero()[0][-WIDTH:]
    if unit is None and recent.size >= LEAST_SIGNED and np.mean(values[recent] <= 0) > ALLOWED_NOT_POSITIVE:
        unit = _find_unit(values[recent])
    keep = positive if unit is None else usable
    x = np.log(values[keep]) if unit is None else values[keep] / unit
    error: np.ndarray[Any, np.dtype[Any]] = np.full(len(values), np.nan)
    if history.std is not None and unit is None:
        repeats = 1.0 if history.repeats is None else np.maximum(np.asarray(history.repeats, float), 1.0)
        # Values that are not positive are masked, but divided all the same.
        with np.errstate(all="ignore"):
            error = np.where(positive, np.asarray(history.std, float) / values / np.sqrt(repeats), np.nan)
    kept, recorded = night[keep], x.copy()
    if state.fixed and unit == state.unit:
        for fixed_night, fixed_value in state.fixed.items():
            index = int(np.searchsorted(kept, fixed_night))
            if index < len(kept) and kept[index] == fixed_night:
                x[index] = fixed_value
    return Scaled(x, recorded, kept, error[keep], unit, int(usable.sum() - keep.sum()))


def _find_unit(values: FloatArray) -> float:
    away = np.abs(values - np.median(values))
    # The first is 0 where more than half of the values are equal.
    for unit in (1.4826 * float(np.median(away)), float(away.mean()), float(np.abs(values).mean())):
        if unit > 0:
            return unit
    return 1.0
