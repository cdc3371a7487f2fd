"""TVM over its versions: what `backfill` measured, apart from the nights."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from files.incremental import IncrementalSite, fingerprint, mark
from markup.escaping import clean
from markup.sparks import svg
from markupsafe import Markup, escape
from render import page as pages
from views.context import SiteContext

from tvmdash.backfill import history as version_history
from tvmdash.backfill import history_text as words
from tvmdash.backfill.history import BackfillCourse, BackfillHistory, BackfillStep
from tvmdash.records.metrics import is_worse, way
from tvmdash.text import elide

if TYPE_CHECKING:
    from tvmdash.judge.two import Difference

PAGE = "versions.html"
MOST_COLUMNS = 6
"""Of more TVMs, a table shows the first and the last, and all of them unfolded."""
_NAME = 40


@dataclass(frozen=True)
class Value:
    """On one TVM, in words: `reach` is the interval; both empty where there is none."""

    version: str
    value: str = ""
    reach: str = ""


@dataclass(frozen=True)
class CourseRow:
    """A series. values: on every TVM; shown: on those that have a column. whole: the last TVM against the first."""

    anchor: str
    name: str
    picture: Markup
    values: tuple[Value, ...]
    shown: tuple[Value, ...]
    whole: str
    reach: str
    state: str


@dataclass(frozen=True)
class MeasuredVersion:
    """An experiment with its series; `page` is empty where it has none of its own."""

    name: str
    title: str
    page: str
    rows: tuple[CourseRow, ...]


@dataclass(frozen=True)
class StepRow:
    """A told step: its cells in words, whether it is for the worse, and the row of its series."""

    anchor: str
    state: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Version:
    """A TVM. committed: the day, empty for a release. stamps: of its first and its last night."""

    name: str
    committed: str
    nights: int
    stamps: tuple[str, str]


def write_versions(context: SiteContext, titles: Sequence[tuple[str, str, str]], carrier: IncrementalSite) -> None:
    """Have versions.html; `titles` are name, title and page of the experiments.

    It knows nothing of tonight: it is carried over until backfill has measured again.
    """
    made_from = _made_from(context, titles)
    if carrier.carry(PAGE, made_from):
        return
    history = version_history.read(context.home)
    values = _values(history, {name: (title, page) for name, title, page in titles}) if history.versions else {}
    text = pages.render(
        PAGE,
        context.lasting_frame("versions"),
        history=history,
        about=words.MEASURED_AFTER_ONE_ANOTHER,
        command=words.format_command(),
        failures=list(words.list_failures(history)),
        **values,
    )
    carrier.write(PAGE, text.encode(), made_from)


def _made_from(context: SiteContext, titles: Sequence[tuple[str, str, str]]) -> str:
    """Changes with the files that backfill left, the experiments, and what of them is a control."""
    files = [f"{path} {mark(path)}" for path in version_history.files(context.home)]
    return fingerprint(repr(titles), *sorted(context.controls.names), "", *files)


def _values(history: BackfillHistory, titles: Mapping[str, tuple[str, str]]) -> dict[str, object]:
    anchors = {id(course): f"series-{number}" for number, course in enumerate(history.courses, 1)}
    real = [step for step in history.steps() if step.found.is_told]
    tvms = [_version(history, name) for name in history.versions]
    shown = [tvm for tvm in tvms if tvm.name in _columns(history)]
    return {
        "facts": [(name, text) for name, text in _facts(history) if text],
        "verdict": list(words.format_verdict(history)),
        "control": words.describe_control(history),
        "method": words.describe_method("compare"),
        "step_columns": words.STEP_COLUMNS,
        "steps": [_step(step, anchors[id(step.course)]) for step in real],
        "axis": _axis(history),
        "dated": _is_dated(history),
        "columns": shown,
        "folded": len(shown) < len(tvms),
        "last_against_first": words.compare_last_with_first(history),
        "experiments": [_experiment(history, name, titles, anchors) for name in history.experiments],
        "tvms": tvms,
    }


def _facts(history: BackfillHistory) -> list[tuple[str, str]]:
    return [
        ("TVMs", _named(history.versions)),
        ("Measured", words.describe_measured(history)),
        *(("Machine", name) for name in sorted(history.machines)),
        ("Rounds, at most", words.describe_rounds(history)),
        ("Load", words.describe_load(history)),
    ]


def _named(versions: Sequence[str]) -> str:
    if len(versions) <= MOST_COLUMNS:
        return ", ".join(elide(version, _NAME) for version in versions)
    return f"{len(versions)}, from {elide(versions[0], _NAME)} to {elide(versions[-1], _NAME)}"


def _step(step: BackfillStep, anchor: str) -> StepRow:
    return StepRow(anchor, _state(step.course, step.found), tuple(words.format_step(step)))


def _state(course: BackfillCourse, difference: Difference) -> str:
    return way(is_worse(difference.effect, course.series.direction))


def _columns(history: BackfillHistory) -> tuple[str, ...]:
    """The TVMs that have a column of their own."""
    return history.versions if len(history.versions) <= MOST_COLUMNS else (history.versions[0], history.versions[-1])


def _is_dated(history: BackfillHistory) -> bool:
    """Whether the TVMs stand at their dates: all are commits, not all of one moment."""
    return len(history.committed) == len(history.versions) and len(set(history.committed.values())) > 1


def _places(history: BackfillHistory) -> list[float]:
    """Where each TVM stands, from 0 to 1: at its date, or else at equal distances."""
    if _is_dated(history):
        moments = [history.committed[name].timestamp() for name in history.versions]
        return [(moment - moments[0]) / (moments[-1] - moments[0]) for moment in moments]
    last = len(history.versions) - 1
    return [number / last if last else 0.5 for number in range(last + 1)]


def _axis(history: BackfillHistory) -> Markup:
    names = list(history.versions)
    how = "TVMs in their order"
    if _is_dated(history):
        names = [_day(history.committed[version]) for version in (names[0], names[-1])]
        how = "Commits at their dates"
    return axis(_places(history), names, f"{how}, {elide(names[0], _NAME)} to {elide(names[-1], _NAME)}")


def _day(moment: datetime.datetime) -> str:
    return f"{moment:%Y-%m-%d}"


def _experiment(
    history: BackfillHistory, name: str, titles: Mapping[str, tuple[str, str]], anchors: Mapping[int, str]
) -> MeasuredVersion:
    places = _places(history)
    rows = [_row(history, course, places, anchors[id(course)]) for course in history.of(name)]
    return MeasuredVersion(name, *titles.get(name, (name, "")), tuple(rows))


def _row(history: BackfillHistory, course: BackfillCourse, places: Sequence[float], anchor: str) -> CourseRow:
    values = {version: _value(course, version) for version in history.versions}
    whole, reach = words.split_whole(course)
    named = any(step is not None and step.is_told for step in course.steps)
    sure = course.whole is not None and not course.whole.bounds[0] <= 0 <= course.whole.bounds[1]
    return CourseRow(
        anchor,
        course.short_name,
        _picture(history, course, places, list(values.values())),
        tuple(values.values()),
        tuple(values[version] for version in _columns(history)),
        whole,
        reach,
        _state(course, course.whole) if course.whole and named and sure else "",
    )


def _value(course: BackfillCourse, version: str) -> Value:
    level = course.level(version)
    if level is None:
        return Value(version)
    return Value(version, *words.split_level(level, course.series.unit))


def _picture(
    history: BackfillHistory, course: BackfillCourse, places: Sequence[float], values: Sequence[Value]
) -> Markup:
    moves = [None, *course.steps] if course.steps else [None] * len(places)
    spots = []
    for position, value, step in zip(places, values, moves, strict=True):
        level = course.level(value.version)
        if level is None:
            spots.append(Spot(position))
            continue
        shown = f"{elide(value.version, _NAME)}: {value.value}" + (f" ({value.reach})" if value.reach else "")
        moved = _state(course, step) if step is not None and step.is_told else ""
        spots.append(Spot(position, level.value, level.low, level.high, shown, moved))
    known = [value for value in values if value.value]
    if not known:
        return Markup("")
    ends = [f"{elide(value.version, _NAME)} {value.value}" for value in (known[0], known[-1])]
    return line(spots, f"{len(known)} of {len(history.versions)} TVMs: {', '.join(ends)}")


def _version(history: BackfillHistory, name: str) -> Version:
    stamps = history.nights[name]
    committed = history.committed.get(name)
    return Version(name, _day(committed) if committed else "", len(stamps), (stamps[0], stamps[-1]))


WIDTH, HEIGHT, AXIS_HEIGHT = 240, 44, 30
_SIDE, _PAD = 6, 5
_LEAST_RANGE = 0.03
"""Of logarithms: never so narrow that a flicker looks like a change."""
_LETTER = 6.2
"""So wide is a letter of an axis, at most."""
_MARK = 4
_UPPER, _LOWER = 8, 19
"""The rows of names on an axis."""
_LONGEST = 18


@dataclass(frozen=True)
class Spot:
    """A TVM on the way: its place from 0 to 1, the value there and its interval, what moved since the spot before.

    words: what is shown to who points at it.
    """

    place: float
    value: float | None = None
    low: float | None = None
    high: float | None = None
    words: str = ""
    moved: str = ""


def line(spots: Sequence[Spot], text: str) -> Markup:
    """The values, which are above 0, with their intervals, each where its TVM stands; empty where there is none.

    Heights are logarithms: twice as much is as far up as half as much is down. words: for those who do not see it.
    """
    reach = [math.log(value) for spot in spots for value in (spot.value, spot.low, spot.high) if value]
    if not reach:
        return Markup("")
    middle, span = (min(reach) + max(reach)) / 2, max(max(reach) - min(reach), _LEAST_RANGE)

    def y(value: float) -> str:
        return _short(HEIGHT / 2 - (math.log(value) - middle) / span * (HEIGHT - 2 * _PAD))

    pieces, bars, dots = [], [], []
    for before, spot in zip([None, *spots], spots, strict=False):
        if spot.value is None:
            continue
        at = x(spot.place)
        if before and before.value is not None:
            kind = f"line {spot.moved}".strip()
            pieces.append(f'<path class="{kind}" d="M{x(before.place)} {y(before.value)}L{at} {y(spot.value)}"/>')
        if spot.low and spot.high and spot.low < spot.high:
            bars.append(f'<path class="reach" d="M{at} {y(spot.low)}V{y(spot.high)}"/>')
        title = f"<title>{escape(clean(spot.words))}</title>"
        kind = f"dot {spot.moved}".strip()
        dots.append(f'<circle class="{kind}" cx="{at}" cy="{y(spot.value)}" r="2.5">{title}</circle>')
    return svg("course", (WIDTH, HEIGHT), str(clean(text)), [*bars, *pieces, *dots])


def x(position: float) -> str:
    """Where on a line of WIDTH a place from 0 to 1 is."""
    return _short(_SIDE + position * (WIDTH - 2 * _SIDE))


def axis(places: Sequence[float], names: Sequence[str], text: str) -> Markup:
    """A mark at each place from 0 to 1. names: of all places, of which the ends remain without room, or of the ends."""
    base = AXIS_HEIGHT - _MARK
    marks = "".join(f"M{x(position)} {base}v{_MARK}" for position in places)
    parts = [f'<path class="mark" d="M{_SIDE} {base}H{WIDTH - _SIDE}{marks}"/>']
    for position, name, y in _labels(places, names):
        kind = {0.0: ' class="begin"', 1.0: ' class="end"'}.get(position, "")
        left = {0.0: "0", 1.0: str(WIDTH)}.get(position, x(position))
        parts.append(f'<text{kind} x="{left}" y="{y}">{escape(clean(name))}</text>')
    return svg("axis", (WIDTH, AXIS_HEIGHT), str(clean(text)), parts)


def _labels(places: Sequence[float], names: Sequence[str]) -> list[tuple[float, str, int]]:
    """Where a name stands, the name, and in which of two rows: all names if they can be read, else the ends'."""
    all_of_them = [
        (position, name, (_UPPER, _LOWER)[at % 2 == 0])
        for at, (position, name) in enumerate(zip(places, names, strict=False))
    ]
    if len(names) == len(places) and _have_room(all_of_them):
        return all_of_them
    ends = ((0.0, names[0]), (1.0, names[-1])) if len(places) > 1 else ((0.5, names[0]),)
    return [(position, elide(name, _LONGEST), _LOWER) for position, name in ends]


def _have_room(labels: Sequence[tuple[float, str, int]]) -> bool:
    taken = dict.fromkeys((_UPPER, _LOWER), -_LETTER)
    for position, name, row in labels:
        wide = len(name) * _LETTER
        middle = _SIDE + position * (WIDTH - 2 * _SIDE) - wide / 2
        begin = {0.0: 0.0, 1.0: WIDTH - wide}.get(position, middle)
        if begin < taken[row] + _LETTER or begin + wide > WIDTH:
            return False
        taken[row] = begin + wide
    return True


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
