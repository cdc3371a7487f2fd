"""What backfill measured, in sentences: the same on the Markdown page and on the website."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tvmdash.backfill.history import BackfillCourse, BackfillHistory, BackfillLevel, BackfillStep
from tvmdash.common import parse_stamp
from tvmdash.judge import RULES
from tvmdash.text import (
    add_in_brackets,
    estimate_in_parts,
    format_list,
    format_percent,
    format_percent_range,
    format_quantity,
    three_digits,
)

if TYPE_CHECKING:
    from tvmdash.judge.two import Difference

FLAT = 0.1
"""A series is called flat where the last TVM is known to lie this near to the first, as a share."""
STEP_COLUMNS = ("series", "from", "to", "before", "after", "change", "95 %")
MEASURED_AFTER_ONE_ANOTHER = "The same experiments on several TVMs, measured one after the other on one machine."
_REASON = 200


def format_command(home: str = "HOME") -> str:
    """What measures TVMs of the past."""
    return f"python3 -m dashboard backfill {home} --artifacts pypi:0.25.0..0.27.0 --rounds {RULES.fewest_pairs}"


def describe_method(compare: str) -> str:
    """How rounds become values and steps; compare: the verb's name, or a link of it."""
    return (
        "A round measures each TVM once, from the oldest to the newest, the next round from the newest to the oldest."
        " Values are geometric means of the rounds with their 95 % interval."
        f" A step from one TVM to the next is judged as {compare} judges: by the ratios within the rounds, and told"
        f" from odds of {RULES.told:g} to 1 on, all series considered. Of fewer than {RULES.fewest_pairs} rounds, only"
        " what differs by the same in each is told, as sizes do. The last column is flat where nothing moved and the"
        f" interval is within ±{100 * FLAT:.0f} %, and unclear where it is wider: nobody can tell from these rounds."
    )


def describe_measured(history: BackfillHistory) -> str:
    """When, as in "2026-11-21 23:04 to 23:11 UTC"."""
    first, last = (parse_stamp(stamp) for stamp in history.stamps)
    return f"{first:%Y-%m-%d %H:%M} to {last:{'%H:%M' if first.date() == last.date() else '%Y-%m-%d %H:%M'}} UTC"


def describe_rounds(history: BackfillHistory) -> str:
    """The most of each experiment."""
    return ", ".join(f"{name} {count}" for name, count in history.rounds.items())


def describe_load(history: BackfillHistory) -> str:
    """What else the machine did; empty where that is not known."""
    if not history.loads:
        return ""
    low, middle, high = min(history.loads), statistics.median(history.loads), max(history.loads)
    cores = history.machine.get("cores")
    text = f"{low:.1f} to {high:.1f} before the points, {middle:.1f} before half of them or less"
    busy = isinstance(cores, int) and middle > cores
    return text + (f": on {cores} cores, other programs ran all the time and times scatter" if busy else "")


def compare_last_with_first(history: BackfillHistory) -> str:
    """What the whole change is of."""
    return f"{history.versions[-1]} against {history.versions[0]}"


def format_verdict(history: BackfillHistory) -> Iterator[str]:
    """How many steps are told, then what is known of the others; a sentence each."""
    judged = history.steps()
    real = sum(step.found.is_told for step in judged)
    possible = len(history.courses) * len(history.pairs())
    if not judged:
        yield f"No conclusion: none of the {possible} steps was measured in {RULES.fewest_pairs} rounds or more."
        return
    yield f"{real} of {len(judged)} steps are told." if real else f"No step is told, of {len(judged)}."
    if possible > len(judged):
        yield f"{possible - len(judged)} more could not be judged because too few rounds measured both TVMs."
    for kind, units in (("times", False), ("sizes", True)):
        quiet = [
            step.found for step in judged if not step.found.is_told and (step.course.series.unit == "bytes") == units
        ]
        if quiet:
            yield _format_flat(quiet, kind)


def _format_flat(quiet: Sequence[Difference], kind: str) -> str:
    if all(step.effect == 0 for step in quiet):
        return f"The other {len(quiet)} steps of {kind} are exactly 0."
    widths = sorted(50 * (high - low) for low, high in (step.bounds for step in quiet))
    half, most = three_digits(widths[len(widths) // 2]), three_digits(widths[-1])
    return (
        f"Of the other {len(quiet)} steps of {kind}, half are known to within ±{half} %, all to ±{most} %:"
        " a smaller change would not be seen here."
    )


def format_step(step: BackfillStep) -> list[str]:
    """A cell for each of STEP_COLUMNS."""
    levels = [step.course.level(version) for version in (step.before, step.after)]
    values = [format_quantity(level.value, step.course.series.unit) if level else "" for level in levels]
    low, high = step.found.bounds
    bounds = "in every round" if low == high else format_percent_range(low, high)
    return [step.course.name, step.before, step.after, *values, format_percent(step.found.effect), bounds]


def describe_control(history: BackfillHistory) -> str:
    """What the experiments that know no TVM say of the machine; empty where none was measured."""
    steps = [step for step in history.steps() if history.is_control(step.course)]
    if not steps:
        return ""
    judged = [step.found for step in steps]
    names = list(dict.fromkeys(step.course.series.experiment for step in steps))
    who = f"The control {names[0]} runs" if len(names) == 1 else f"The controls {format_list(names, 3)} run"
    sizes = sorted(abs(step.effect) for step in judged)
    half, most = three_digits(100 * sizes[len(sizes) // 2]), three_digits(100 * sizes[-1])
    real = sum(step.is_told for step in judged)
    return (
        f"{who} the same machine code on every TVM, so whatever moves there is the machine."
        f" Of {len(judged)} steps there {real or 'none'} {'is' if real == 1 else 'are'} told; half are larger"
        f" than {half} %, the largest is {most} %. A step of TVM's times that is not clearly larger than that may be"
        " the machine's as well."
    )


def format_level(level: BackfillLevel, unit: str) -> str:
    """The value; its interval is left out where the rounds agreed to the last digit."""
    return add_in_brackets(*split_level(level, unit))


def split_level(level: BackfillLevel, unit: str) -> tuple[str, str]:
    """The value, and its interval or nothing."""
    exact = level.low == level.high
    return estimate_in_parts(level.value, None if exact else level.low, level.high, unit)


def format_whole(course: BackfillCourse) -> str:
    """The last TVM against the first, and whether anything on the way was told."""
    return add_in_brackets(*split_whole(course))


def split_whole(course: BackfillCourse) -> tuple[str, str]:
    """The same, and its interval or nothing."""
    whole = course.whole
    if whole is None:
        return "not judged", ""
    low, high = whole.bounds
    if low == high == 0:
        return "the same", ""
    bounds = format_percent_range(low, high) if low != high else ""
    if any(step is not None and step.is_told for step in course.steps):
        return format_percent(whole.effect), bounds
    if low > 0 or high < 0:
        return f"perhaps {format_percent(whole.effect)}", bounds
    return "flat" if max(-low, high) <= FLAT else "unclear", bounds


def list_failures(history: BackfillHistory) -> Iterator[tuple[str, str, str]]:
    """What TVMs could not do, or could not be had for: experiment, TVM, what of it failed and why."""
    for (experiment, version), failed in history.failures.items():
        reasons = list(dict.fromkeys(" ".join(failure.error.split()) for failure in failed))
        text = format_list([reason[:_REASON] for reason in reasons], 2)
        yield experiment, version, f"{len(failed)} point{'' if len(failed) == 1 else 's'}: {text}"
    for unmeasured in history.unmeasured:
        reason = " ".join(unmeasured.error.split())[:_REASON]
        yield (
            unmeasured.experiment or "every experiment",
            unmeasured.tvm,
            reason if unmeasured.experiment else f"could not be built: {reason}",
        )
