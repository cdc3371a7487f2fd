"""The scores: tonight with its parts, and over all nights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from files import graphs
from files.graphs import SiteGraph
from markup.sparks import Labels, SparkCurve, chart
from markupsafe import Markup
from render import page as pages
from views.context import SiteContext
from views.night_results import amount

from tvmdash.dashboard_info.pages import SCORE, ScoredNight, ScoreTonight
from tvmdash.text import format_percent, three_digits

MOST_NIGHTS = 365
_LONGEST_HEADLINE = 60
_LEAST_POINTS = 2


@dataclass(frozen=True)
class ScoreView:
    """A score; `change` since the night before that it may be compared with; `words` say what the others do not."""

    score: ScoreTonight
    value: str
    words: str
    interval: str
    change: str
    line: Markup
    first: str | None
    last: str | None
    graphs: tuple[SiteGraph, ...]


@dataclass(frozen=True)
class Retired:
    """A score that the config no longer defines."""

    title: str
    line: Markup
    last: str


def write_scores(context: SiteContext, new: Path) -> None:
    """Write scores.html, with the pictures that it shows."""
    scores = context.scores
    defined = {*(score.id for score in scores.scores), *(score.id for score in scores.left_out)}
    text = pages.render(
        "scores.html",
        context.frame("scores"),
        scores=[_view(context, score, new) for score in scores.scores],
        retired=[
            Retired(history.title, _line(history.title, history.unit, history.points), history.points[-1].stamp)
            for history in context.score_histories
            if history.id not in defined and history.points
        ],
        stamp=scores.stamp,
        tonight=context.tonight.stamp,
        told=scores.faults,
        left_out=scores.left_out,
        faults=context.faults["Scores"],
    )
    (new / "scores.html").write_text(text, encoding="utf-8")


def _view(context: SiteContext, score: ScoreTonight, new: Path) -> ScoreView:
    folder = context.home.output(SCORE)
    pictures = [graphs.take_picture(folder / item.file, SCORE, new, context.old) for item in score.graphs]
    own = [history.points for history in context.score_histories if history.id == score.id]
    points = own[0][-MOST_NIGHTS:] if own else ()
    value, text = _headline(score)
    has_headline = bool(score.headline)  # its words tell the interval and the change
    return ScoreView(
        score,
        value,
        text,
        "" if has_headline else _interval(score),
        "" if has_headline else _change(score),
        _line(score.title, score.unit, points),
        points[0].stamp if points else None,
        points[-1].stamp if points else None,
        tuple(picture for picture in pictures if picture),
    )


def _interval(score: ScoreTonight) -> str:
    if score.low is None or score.high is None:
        return ""
    return f"{three_digits(score.low)} to {three_digits(score.high)}"


def _change(score: ScoreTonight) -> str:
    before = score.before.value if score.before else None
    if before is None or score.value is None or before <= 0:
        return ""
    return "unchanged" if score.value == before else format_percent(score.value / before - 1)


def _headline(score: ScoreTonight) -> tuple[str, str]:
    """Return the score's value as it is told, and the rest of its words, which do not tell the value again."""
    if score.value is None:
        return "no value", score.words
    if score.headline and len(score.headline) <= _LONGEST_HEADLINE:
        return score.headline, score.details
    return amount(score.value, score.unit), score.words


def _line(title: str, unit: str, points: Sequence[ScoredNight]) -> Markup:
    """Draw complete nights as points; an incomplete one is a gap. Empty where there is one point, which is told."""
    shown = points[-MOST_NIGHTS:]
    values = [point.value if point.complete else None for point in shown]
    known = [value for value in values if value is not None]
    if len(known) < _LEAST_POINTS:
        return Markup("")
    text = (
        f"{title} over {len(shown)} nights: {amount(min(known), unit)} to"
        f" {amount(max(known), unit)}, last {amount(known[-1], unit)}"
    )
    low = [point.low if point.complete else None for point in shown]
    high = [point.high if point.complete else None for point in shown]
    reach = [value for value in (*values, *low, *high) if value is not None]
    labels = Labels(amount(max(reach), unit), amount(min(reach), unit))
    return chart([SparkCurve(title, values, low, high)], text, labels)
