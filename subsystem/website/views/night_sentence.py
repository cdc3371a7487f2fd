"""What is said of tonight, on the first page and on the night's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvmdash.text import elide, format_list
from views import night as night_views
from views import tally as verdict
from views.context import SiteContext
from views.series import counts
from views.tally import Sentence, Went
from views.tonight import ExperimentView


@dataclass(frozen=True)
class Said:
    """The sentence, how the jobs went, and which runs the machine may have disturbed (empty where none)."""

    sentence: Sentence
    went: Went
    disturbed: str


def of_tonight(context: SiteContext, experiments: Sequence[ExperimentView]) -> Said:
    """From the verdict on TVM, from how the jobs went, and from the machine."""
    judged = night_views.judge(context.tonight, is_tonight=True)
    points = [view.points for view in experiments if view.points]
    went = verdict.how_it_went(
        judged,
        sum(count.failed for count in points),
        sum(count.total for count in points),
        unreadable=any(view.data_fault for view in experiments),
    )
    disturbed = _disturbed(context)
    speed = verdict.speed(context.verdict.value, counts(context.series))
    return Said(verdict.of_night(speed, went, disturbed=bool(disturbed)), went, disturbed)


def _disturbed(context: SiteContext) -> str:
    """Which of tonight's runs the machine may have disturbed, in words; empty where none."""
    runs = context.telemetry.runs
    names = [run.experiment for run in runs if run.abnormal]
    if not names or context.telemetry.stamp != context.tonight.stamp:
        return ""
    of, were = f"{len(runs)} run{'' if len(runs) == 1 else 's'}", "was" if len(names) == 1 else "were"
    return f"{len(names)} of {of} {were} possibly disturbed: {format_list([elide(name, 60) for name in names], 3)}"
