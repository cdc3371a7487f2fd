"""The page that stat_alerts leaves, page.json: the standing of each series and the incidents of the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tvmdash.common.structured import Stamp, named
from tvmdash.judge.history.cause import Reason
from tvmdash.verdict import Standing
from tvmdash.verdict.remeasured import ConfirmationSummary

PAGE_FILE = "page.json"
SCHEMA_VERSION = 1


@dataclass(frozen=True)
class SeriesBeside:
    """A series beside the same on the reference TVM, measured in turn: effect, low, high as a fraction, 95 %.

    differs: by more than one of all the experiment's series would by chance on one night of twenty.
    """

    reference: str
    effect: float
    low: float
    high: float
    differs: bool


@dataclass(frozen=True)
class SeriesVerdict:
    """The detector's verdict on a series. effect: of a suspect, how far it is from its level, as a fraction.

    noise: robust standard deviation, as a fraction of the value. smallest_visible_change: what would be told within a
    week in four cases of five. why: None for an exact number. since: first night of the level. last: its last values.
    """

    id: str
    name: str
    verdict: str
    reason: str
    since: Stamp
    noise_grade: str
    noise: float | None
    smallest_visible_change: float | None
    control: bool
    standing: Standing
    effect: float | None
    effect_low: float | None = None
    effect_high: float | None = None
    experiment: str = ""
    metric: str = ""
    unit: str = ""
    why: Reason | None = None
    z: float | None = None
    last: tuple[float | None, ...] = ()
    beside: SeriesBeside | None = None


@dataclass(frozen=True)
class ToldIncident:
    """An incident as told, beside all that incidents.json holds of it; of a `silent` one nobody is told."""

    id: str
    silent: bool = False
    headline: str = ""
    words: str = ""


@dataclass(frozen=True)
class AlertRate:
    """The rate of alerts where nothing happened, per 1000 metric-nights, of which there were `nights`."""

    nights: int
    alerts: int
    per_1000: float | None
    at_most_per_1000: float | None


@dataclass(frozen=True)
class Honesty:
    """The detector's own error rate on shuffled history and on known-unchanged code, and what it should be below."""

    target_per_1000: float | None = None
    shuffled: AlertRate | None = None
    unchanged: AlertRate | None = None


@dataclass(frozen=True)
class AnnotationNote:
    """An annotation of a night, None where it is not known which; is_break: a series begins anew there."""

    night: Stamp | None
    kind: str
    words: str
    scope: str
    is_break: bool = field(metadata=named("break"))
    id: str = ""


@dataclass(frozen=True)
class AlertsPage:
    """The night `night` as stat_alerts judged it. stamps: of the series' `last` values.

    confirmation: what was measured again that night, and with what outcome.
    """

    night: Stamp
    series: tuple[SeriesVerdict, ...]
    incidents: tuple[ToldIncident, ...]
    honesty: Honesty
    annotations: tuple[AnnotationNote, ...]
    stamps: tuple[str, ...] = ()
    confirmation: ConfirmationSummary = field(default_factory=ConfirmationSummary)
    partial: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class StddevSeries:
    """A series as the ancestor's rule judges it."""

    id: str
    name: str
    alert: bool
    reason: str


@dataclass(frozen=True)
class StddevPage:
    """The night as the ancestor's rule judged it, which has no verdict on noise and keeps no ledger."""

    night: Stamp
    series: tuple[StddevSeries, ...]
    rule: str = "stddev"
