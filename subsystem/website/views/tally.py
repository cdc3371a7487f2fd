"""Tonight in a sentence: whether TVM got slower, and how much of that could be known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tvmdash.dashboard_info import Night
from tvmdash.incidents.ledger import SUBSYSTEM
from tvmdash.records.metrics import BETTER, CHANGED, WORSE
from tvmdash.text import elide, format_list
from tvmdash.verdict import Level, NightVerdict
from views import night as night_views
from views.alerts import Alerts
from views.night import ABSENT, FAILED, OK, PARTIAL, experiments, job_state, subsystems
from views.series import BLIND, GONE, MISSING, SERIES_WORDS, STATES, STEADY, SUSPECT, UNJUDGED, YOUNG

_MOST_NAMES = 3
GOOD, WARN, BAD, UNKNOWN = "good", "warn", "bad", "unknown"
ICONS = {GOOD: "✓", WARN: "!", BAD: "✖", UNKNOWN: "?"}


@dataclass(frozen=True)
class Sentence:
    """What the page says first, and how it looks: good, warn, bad or unknown.

    says_jobs: it says only how the night's jobs went, since nothing can be said of TVM.
    """

    state: str
    words: str
    says_jobs: bool = False

    @property
    def icon(self) -> str:
        return ICONS[self.state]


def speed(verdict: NightVerdict | None, counts: Mapping[str, int]) -> Sentence | None:
    """What the night says of TVM; None where nothing was measured. `counts` are of the series by state."""
    if sum(counts.values()) == counts[MISSING] + counts[GONE]:
        return None
    if verdict is None or verdict.level == Level.NO_DATA:
        return Sentence(UNKNOWN, "Measured, but not judged against noise")
    return Sentence(_state(verdict), verdict.headline)


def _state(verdict: NightVerdict) -> str:
    if verdict.level == Level.REGRESSION:
        return BAD if verdict.new else WARN
    if verdict.level == Level.BLIND:
        return UNKNOWN
    return GOOD if verdict.is_green else WARN


def of_night(sentence: Sentence | None, went: Went, *, disturbed: bool = False) -> Sentence:
    """The sentence, never green where something of the night is missing; without one, how the night went.

    Where all is well but the machine was perhaps disturbed, it says so.
    """
    broken = went.state not in (OK, ABSENT)
    if sentence is None:
        text = went.words if broken else f"{went.words}; nothing was measured"
        return Sentence(BAD if broken else UNKNOWN, text, says_jobs=True)
    if sentence.state != GOOD:
        return sentence
    if disturbed:
        return Sentence(WARN, f"{sentence.words}; but the machine was possibly disturbed")
    return Sentence(WARN, sentence.words) if broken else sentence


@dataclass(frozen=True)
class Went:
    """How the night's jobs and points went, in words."""

    state: str
    words: str


def how_it_went(judged: night_views.NightVerdictView, failed_points: int, points: int, *, unreadable: bool) -> Went:
    """From the night's own verdict, how many points failed of how many, and whether data cannot be read."""
    state = PARTIAL if judged.state == OK and (failed_points or unreadable) else judged.state
    more = f"; {failed_points} of {points} points failed" if failed_points else ""
    return Went(state, judged.headline + more)


def why_not_judged(alerts: Alerts, night: Night) -> str:
    """Why the alerts say nothing about tonight; empty where they do."""
    if alerts.night == night.stamp:
        return ""
    job = next((job for job in subsystems(night) if job.name == SUBSYSTEM), None)
    if job is None:
        return "The subsystem stat_alerts did not run on this night."
    step = job.first_failure
    if step is not None:
        return f"{job.title} did not report: {step.message}"
    return f"{job.title} has not reported on this night."


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
        for state in (WORSE, SUSPECT, BETTER, CHANGED, STEADY, BLIND, YOUNG, UNJUDGED, MISSING, GONE)
        if counts[state] or state not in (SUSPECT, CHANGED, BLIND, YOUNG, UNJUDGED, GONE)
    ]
    assert set(shown) <= set(STATES)
    rows = [Tally(state, counts[state], SERIES_WORDS[state]) for state in shown]
    return [*rows, Tally(FAILED, failed_points, f"failed point{'' if failed_points == 1 else 's'}")]


def names_of_failed(night: Night) -> str:
    """Which jobs did not end well, as far as a line holds them; empty where all did."""
    bad = [job.title for job in experiments(night) if job_state(job) != OK]
    bad += [job.title for job in subsystems(night) if job_state(job) == FAILED]
    return format_list([elide(title, 60) for title in bad], _MOST_NAMES) if bad else ""
