"""The history of several TVMs as one Markdown page."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from dashboard.markdown import plain, table
from dashboard.results_history import Course, History, Level
from dashboard.results_words import machine_in_words
from tvmdash.common import parse_stamp
from tvmdash.comparison import NAMED_ROUNDS, Difference
from tvmdash.words import elide, estimate_in_words, list_in_words, quantity_in_words, three_digits

CONTROL = "canary"
"""The experiment without TVM: what moves there is the machine."""
FLAT = 0.1
"""A series is called flat where the last TVM is known to lie this near to the first, as a share."""
_REASON = 200


def page(history: History) -> str:
    """The page, beginning with what it is and how it is made again."""
    lines = [*_head(history), *_verdict(history), *_control(history)]
    for name in dict.fromkeys(course.series.experiment for course in history.courses):
        lines += ["", *_experiment(history, name)]
    return "\n".join([*lines, *_failures(history)]) + "\n"


def _head(history: History) -> Iterator[str]:
    first, last = (parse_stamp(stamp) for stamp in history.stamps)
    yield "# History over several TVMs"
    yield ""
    yield (
        "The same experiments on several TVMs, measured one after the other on one machine. The page is made from what"
        " `backfill` left in a home and not edited by hand:"
    )
    yield ""
    first_last = "..".join(elide(version, 40) for version in (history.versions[0], history.versions[-1]))
    rounds = max(history.rounds.values(), default=1)
    source = "git" if history.are_commits else "pypi"
    yield f"    python3 -m dashboard backfill HOME --artifacts {source}:{first_last} --rounds {rounds}"
    yield "    python3 -m dashboard results HOME --history --output docs/history.md"
    yield ""
    yield (
        "A round measures each TVM once, from the oldest to the newest, the next round from the newest to the oldest."
        " Values are geometric means of the rounds with their 95 % interval."
        " A step from one TVM to the next is judged as [compare](investigating.md) judges: by the"
        " ratios within the rounds, and named only where it is beyond chance, all steps of all series considered"
        " (Holm, 5 %)."
        f" Of fewer than {NAMED_ROUNDS} rounds, only what differs by the same in each is named, as sizes do. The last"
        f" column is flat where nothing moved and the interval is within ±{100 * FLAT:.0f} %, and unclear where it is"
        " wider: then nobody can tell from these rounds."
    )
    yield ""
    yield from table(
        ["", ""], [[name, words] for name, words in _facts(history, f"{first:%Y-%m-%d %H:%M}", last) if words], words=2
    )


def _facts(history: History, first: str, last: object) -> Iterator[tuple[str, str]]:
    yield "TVMs", plain(", ".join(history.versions), 2000)
    yield "measured", f"{first} to {last:%H:%M} UTC"
    yield "machine", machine_in_words(history.machine)
    others = len(history.machines) - 1
    yield "", f"and {others} other machines or states of it" if others > 0 else ""
    yield "rounds, at most", plain(", ".join(f"{name} {count}" for name, count in history.rounds.items()))
    if history.loads:
        low, middle, high = min(history.loads), statistics.median(history.loads), max(history.loads)
        cores = history.machine.get("cores")
        told = f"{low:.1f} to {high:.1f} before the points, {middle:.1f} before half of them or less"
        busy = isinstance(cores, int) and middle > cores
        yield "load", told + (f": on {cores} cores, other programs ran all the time and times scatter" if busy else "")
    for fault in history.broken:
        yield "unreadable", plain(fault)


def _steps(history: History, courses: Sequence[Course]) -> list[tuple[Course, str, str, Difference]]:
    """Each step that could be judged."""
    pairs = history.pairs()
    return [
        (course, *pair, step)
        for course in courses
        for pair, step in zip(pairs, course.steps, strict=True)
        if step is not None
    ]


def _verdict(history: History) -> Iterator[str]:
    courses = history.courses
    judged = _steps(history, courses)
    real = [one for one in judged if one[3].real]
    possible = len(courses) * len(history.pairs())
    yield from ["", "## What changed", ""]
    if not judged:
        yield f"Nothing can be said: none of {possible} steps was measured in three rounds or more."
        return
    said = f"{len(real)} of {len(judged)} steps are real." if real else f"None of {len(judged)} steps is real."
    if possible > len(judged):
        said += f" {possible - len(judged)} more could not be judged: too few rounds measured both TVMs."
    yield said
    for kind, units in (("times", False), ("sizes", True)):
        quiet = [step for course, _, _, step in judged if not step.real and (course.series.unit == "bytes") == units]
        if quiet:
            yield f"{_flat(quiet, kind)}"
    if real:
        rows = [_row(course, before, after, step) for course, before, after, step in real]
        yield from ["", *table(["series", "from", "to", "before", "after", "change", "95 %"], rows, words=3)]


def _flat(quiet: Sequence[Difference], kind: str) -> str:
    if all(step.effect == 0 for step in quiet):
        return f"The other {len(quiet)} steps of {kind} are exactly 0."
    widths = sorted(50 * (step.high - step.low) for step in quiet)
    half, most = three_digits(widths[len(widths) // 2]), three_digits(widths[-1])
    return (
        f"Of the other {len(quiet)} steps of {kind}, half are known to within ±{half} %, all to ±{most} %:"
        " a smaller change would not be seen here."
    )


def _row(course: Course, before: str, after: str, step: Difference) -> list[str]:
    levels = [course.level(version) for version in (before, after)]
    values = [quantity_in_words(level.value, course.series.unit) if level else "" for level in levels]
    bounds = "in every round" if step.low == step.high else f"{percent(step.low)} to {percent(step.high)}"
    return [plain(course.name), plain(before), plain(after), *values, percent(step.effect), bounds]


def _control(history: History) -> Iterator[str]:
    judged = _steps(history, [course for course in history.courses if course.series.experiment == CONTROL])
    if not judged:
        return
    sizes = sorted(abs(step.effect) for _, _, _, step in judged)
    half, most = three_digits(100 * sizes[len(sizes) // 2]), three_digits(100 * sizes[-1])
    real = sum(step.real for _, _, _, step in judged)
    yield from ["", "## The control", ""]
    yield (
        f"The {CONTROL} runs the same machine code on every TVM, so whatever moves there is the machine."
        f" Of its {len(judged)} steps {real or 'none'} {'is' if real == 1 else 'are'} called real; half are larger than"
        f" {half} %, the largest is {most} %. A step of TVM's times that is not clearly larger than that may be the"
        " machine's as well."
    )


def _experiment(history: History, name: str) -> Iterator[str]:
    courses = [course for course in history.courses if course.series.experiment == name]
    yield f"## {plain(name)}"
    yield ""
    last = f"{history.versions[-1]} against {history.versions[0]}"
    rows = [
        [plain(course.name.removeprefix(f"{name} ")), *_levels(history, course), _word(course)] for course in courses
    ]
    yield from table(["series", *map(plain, history.versions), plain(last)], rows)


def _levels(history: History, course: Course) -> Iterator[str]:
    for version in history.versions:
        level = course.level(version)
        yield plain(_around(level, course.series.unit)) if level else ""


def _around(level: Level, unit: str) -> str:
    """The interval is left out where the rounds agreed to the last digit."""
    exact = level.low == level.high
    return estimate_in_words(level.value, None if exact else level.low, level.high, unit)


def _word(course: Course) -> str:
    """The last TVM against the first, and whether anything on the way was real."""
    whole = course.whole
    if whole is None:
        return "not judged"
    if whole.low == whole.high == 0:
        return "the same"
    bounds = f" ({percent(whole.low)} to {percent(whole.high)})" if whole.low != whole.high else ""
    if any(step is not None and step.real for step in course.steps):
        return f"{percent(whole.effect)}{bounds}"
    if whole.low > 0 or whole.high < 0:
        return f"perhaps {percent(whole.effect)}{bounds}"
    return f"flat{bounds}" if max(-whole.low, whole.high) <= FLAT else f"unclear{bounds}"


def percent(effect: float) -> str:
    """A fraction as a signed percentage, with digits as it is large."""
    value = 100 * effect
    return f"{value:+.{0 if abs(value) >= 99.5 else 1}f} %"


def _failures(history: History) -> Iterator[str]:
    if not history.failures:
        return
    yield from ["", "## Failed", ""]
    for (experiment, version), failures in history.failures.items():
        reasons = list(dict.fromkeys(" ".join(failure.error.split()) for failure in failures))
        told = list_in_words([reason[:_REASON] for reason in reasons], 2)
        yield f"- {plain(experiment)} on {plain(version)}: {len(failures)} points: {plain(told)}"
