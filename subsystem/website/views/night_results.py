"""The results of a night, for its own page: scores, incidents that began, and what only that night can tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from files.incremental import fingerprint

from tvmdash.common import structured
from tvmdash.errors import DashboardError
from tvmdash.incidents.headline import format_headline
from tvmdash.records.metrics import Way
from tvmdash.text import format_quantity, three_digits
from views.context import SiteContext
from views.forest import count_told
from views.tonight import ExperimentView

_MOST_WORDS = 600


@dataclass(frozen=True)
class KeptResults:
    """Facts that only the night itself can tell: kept in the home's ledger when the night is published.

    series: how many were in which state; summaries: experiment, title, words; sentence, reasons: the account of that
    morning, its severity first. says_jobs: of a night of long ago, it said only how the jobs went, which the night's
    record knows as well.
    """

    series: Mapping[str, int] = field(default_factory=dict)
    summaries: tuple[tuple[str, str, str], ...] = ()
    sentence: tuple[str, str] | None = None
    says_jobs: bool = False
    reasons: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, value: Mapping[str, Any], headline: str) -> KeptResults:
        """Parse the ledger's entry; empty where it is anything else. headline: how the jobs went, as told then."""
        try:
            kept = structured.from_json(cls, value, "a night's page")
        except DashboardError:
            return cls()
        told = kept.sentence is not None and kept.sentence[1] == headline
        return kept if "says_jobs" in value else replace(kept, says_jobs=told)


@dataclass(frozen=True)
class Begun:
    """An incident that began on the night."""

    id: str
    headline: str
    way: Way


@dataclass(frozen=True)
class ScoreValue:
    """A score on the night, in words."""

    id: str | None
    title: str
    words: str


@dataclass(frozen=True)
class Results:
    """All of it."""

    kept: KeptResults
    begun: tuple[Begun, ...] = ()
    scores: tuple[ScoreValue, ...] = ()
    machines: tuple[str, ...] = ()

    @property
    def fingerprint(self) -> str:
        """Changes with what the page shows."""
        return fingerprint(repr(self))


class ResultsView:
    """The results by night; `experiments` are tonight's."""

    def __init__(self, context: SiteContext, experiments: Sequence[ExperimentView]) -> None:
        self._tonight = context.tonight.stamp
        self._begun: dict[str, list[Begun]] = {}
        for incident in reversed(context.alerts.incidents):
            self._begun.setdefault(incident.begin, []).append(
                Begun(incident.id, format_headline(incident), incident.way)
            )
        self._scores: dict[str, list[ScoreValue]] = {}
        for stamp, value in _scores(context):
            self._scores.setdefault(stamp, []).append(value)
        self._machines = context.machines
        self._kept = _tonight(context, experiments)

    def of(self, stamp: str, known: KeptResults) -> Results:
        """Return the night's results; `known` is what was kept of it before."""
        kept = self._kept if stamp == self._tonight else known
        begun, scores = self._begun.get(stamp, ()), self._scores.get(stamp, ())
        return Results(kept, tuple(begun), tuple(scores), self._machines.get(stamp, ()))


def _scores(context: SiteContext) -> Iterator[tuple[str, ScoreValue]]:
    shown = {score.id for score in context.scores.scores}
    for history in context.score_histories:
        for point in history.points:
            if point.value is not None:
                text = amount(point.value, history.unit)
                if point.low is not None and point.high is not None:
                    text += f" ({three_digits(point.low)} to {three_digits(point.high)})"
                text += "" if point.complete else ", incomplete"
                yield point.stamp, ScoreValue(history.id if history.id in shown else None, history.title, text)


def _tonight(context: SiteContext, experiments: Sequence[ExperimentView]) -> KeptResults:
    summaries = tuple(
        (view.title, view.summary.title, view.summary.value[:_MOST_WORDS])
        for view in experiments
        if view.summary is not None and view.summary.stamp is None
    )
    account = context.account
    return KeptResults(count_told(context), summaries, (account.severity, account.headline), reasons=account.reasons)


def amount(value: float, unit: str) -> str:
    """Format a score's value with its unit; a count has no digits behind the point."""
    return f"{value:.0f} {unit}" if unit == "points" else format_quantity(value, unit)
