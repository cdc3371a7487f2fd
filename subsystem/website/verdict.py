"""Tonight in a sentence: whether TVM got slower, and how much of that could be known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import night_views
from alert_data import Alerts
from night_views import ABSENT, FAILED, OK, PARTIAL, experiments, job_state, subsystems
from series_views import MISSING, STATES, STEADY, UNJUDGED, YOUNG
from words_shown import SERIES_WORDS

from tvmdash.dashboard_info import Night
from tvmdash.incident_ledger import SUBSYSTEM, Incident
from tvmdash.incident_words import headline as incident_headline
from tvmdash.metrics import BETTER, CHANGED, WORSE
from tvmdash.words import elide, list_in_words

_MOST_NAMES = 3
GOOD, WARN, BAD, UNKNOWN = "good", "warn", "bad", "unknown"
ICONS = {GOOD: "✓", WARN: "!", BAD: "▼", UNKNOWN: "?"}


@dataclass(frozen=True)
class Sentence:
    """What the page says first, and how it looks: good, warn, bad or unknown."""

    state: str
    words: str

    @property
    def icon(self) -> str:
        return ICONS[self.state]


def speed(alerts: Alerts, tonight: str, counts: Mapping[str, int]) -> Sentence | None:
    """Whether TVM got slower tonight; None where nothing was measured. `counts` are of the series by state."""
    if sum(counts.values()) == counts[MISSING]:
        return None
    if alerts.night != tonight:
        return Sentence(UNKNOWN, "Measured, but not judged against noise")
    judged = counts[STEADY] + counts[BETTER] + counts[CHANGED] + counts[WORSE]
    return _judged(alerts.news(tonight), alerts.open, judged)


def _judged(news: Sequence[Incident], still: Sequence[Incident], judged: int) -> Sentence:
    """From what is new tonight and what is open, worst first, and how many series could be judged."""
    worse = [one for one in news if one.is_open]
    better = [one for one in news if one.moved and one.way == BETTER]
    if worse:
        sentence = Sentence(BAD, f"TVM got {_direction(worse)}: {_told(worse)}")
    elif still:
        are = "1 regression is" if len(still) == 1 else f"{len(still)} regressions are"
        sentence = Sentence(WARN, f"Nothing new; {are} open: {_told(still)}")
    elif news:
        sentence = Sentence(GOOD, f"TVM got better: {_told(better)}" if better else _told(news))
    elif not judged:
        sentence = Sentence(UNKNOWN, "Too early to tell: no series could be judged")
    else:
        sentence = Sentence(GOOD, "TVM did not get slower: nothing moved beyond its noise")
    return sentence


def _direction(incidents: Sequence[Incident]) -> str:
    metrics = {moved.metric for one in incidents for moved in one.moved if moved.worse}
    return "slower" if all(metric.endswith("time") for metric in metrics) else "worse"


def _told(incidents: Sequence[Incident]) -> str:
    more = f", and {len(incidents) - 1} more" if len(incidents) > 1 else ""
    return incident_headline(incidents[0]) + more


def of_night(sentence: Sentence | None, went: Went, *, disturbed: bool = False) -> Sentence:
    """The sentence, never green where something of the night is missing; without one, how the night went.

    Where all is well but the machine was perhaps disturbed, it says so.
    """
    broken = went.state not in (OK, ABSENT)
    if sentence is None:
        return Sentence(BAD if broken else UNKNOWN, went.words if broken else f"{went.words}; nothing was measured")
    if sentence.state != GOOD:
        return sentence
    if disturbed:
        return Sentence(WARN, f"{sentence.words}; but the machine was perhaps disturbed")
    return Sentence(WARN, sentence.words) if broken else sentence


@dataclass(frozen=True)
class Went:
    """How the night's jobs and points went, in words."""

    state: str
    words: str


def how_it_went(told: night_views.Verdict, failed_points: int, points: int, *, unreadable: bool) -> Went:
    """From the night's own verdict, how many points failed of how many, and whether data cannot be read."""
    state = PARTIAL if told.state == OK and (failed_points or unreadable) else told.state
    more = f"; {failed_points} of {points} points failed" if failed_points else ""
    return Went(state, told.headline + more)


def why_not_judged(alerts: Alerts, night: Night) -> str:
    """Why the alerts say nothing about tonight; empty where they do."""
    if alerts.night == night.stamp:
        return ""
    job = next((job for job in subsystems(night) if job.name == SUBSYSTEM), None)
    if job is None:
        return "The subsystem stat_alerts took no part in this night."
    step = job.first_failure
    if step is not None:
        return f"{job.title} did not report: {step.message}"
    return f"{job.title} has not reported about this night."


@dataclass(frozen=True)
class Tally:
    """One count of the verdict."""

    state: str
    count: int
    words: str


def tallies(counts: Mapping[str, int], failed_points: int) -> list[Tally]:
    """How many series are in which state; what is nobody's case is left out, but for the five that people look for."""
    shown = [
        state
        for state in (WORSE, BETTER, CHANGED, STEADY, YOUNG, UNJUDGED, MISSING)
        if counts[state] or state not in (CHANGED, YOUNG, UNJUDGED)
    ]
    assert set(shown) <= set(STATES)
    rows = [Tally(state, counts[state], SERIES_WORDS[state]) for state in shown]
    return [*rows, Tally(FAILED, failed_points, f"failed point{'' if failed_points == 1 else 's'}")]


def names_of_failed(night: Night) -> str:
    """Which jobs did not end well, as far as a line holds them; empty where all did."""
    bad = [job.title for job in experiments(night) if job_state(job) != OK]
    bad += [job.title for job in subsystems(night) if job_state(job) == FAILED]
    return list_in_words([elide(title, 60) for title in bad], _MOST_NAMES) if bad else ""
