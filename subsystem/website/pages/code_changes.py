"""A page for each night whose generated code was another one, and one for each point that changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from data.code_changes import FunctionDifference, NightDifferences, NumberOnBothSides, PointDifference
from files.code_changes import FOLDER, file_of
from files.incremental import IncrementalSite
from incident.code import draw_difference, read_differences
from markupsafe import Markup
from render import page as pages
from views.context import SiteContext

from tvmdash.records.metrics import METRICS
from tvmdash.text import format_exact

_ROOT = "../"
_UNITS = {metric.name: metric.unit for metric in METRICS}


@dataclass(frozen=True)
class CodeNight:
    """A page on code that an experiment's page leads to."""

    stamp: str
    page: str


@dataclass(frozen=True)
class FunctionView:
    """A function that changed: what of it in words, and its differences as HTML (None: the texts are the same)."""

    name: str
    state: str
    cause: str
    numbers: tuple[str, ...]
    tir: Markup | None
    code: Markup | None

    @property
    def has_texts(self) -> bool:
        return self.tir is not None or self.code is not None


@dataclass(frozen=True)
class PointRow:
    """A point in the list of a night; page is empty where none of its functions has texts."""

    id: str
    label: str
    page: str
    functions: tuple[str, ...]
    causes: tuple[str, ...]
    numbers: tuple[str, ...]


def write_code_pages(context: SiteContext, carrier: IncrementalSite) -> None:
    """Have the pages of all nights in code/, carried over where nothing changed."""
    for experiment, stamp in context.code_nights:
        name = file_of(experiment, stamp)
        made_from = carrier.files[name][0]
        old = {each: from_ for each in _known(carrier, name) if (from_ := carrier.made_from(each)) == made_from}
        if file_of(experiment, stamp, ".html") in old and all(carrier.carry(each, made_from) for each in old):
            continue
        night = read_differences(carrier.new / name)
        if night is not None:
            for page, text in _render(context, night):
                carrier.write(page, text.encode(), made_from)


def find_code_nights(context: SiteContext, experiment: str) -> list[CodeNight]:
    """List the nights on which this experiment's code changed, newest first."""
    stamps = sorted((stamp for name, stamp in context.code_nights if name == experiment), reverse=True)
    return [CodeNight(stamp, file_of(experiment, stamp, ".html")) for stamp in stamps]


def _known(carrier: IncrementalSite, name: str) -> Iterator[str]:
    """Find the pages that the old site had of this night."""
    start = name.removesuffix(".json")
    return (each for each in carrier.known if each.startswith(start) and each.endswith(".html"))


def _render(context: SiteContext, night: NightDifferences) -> Iterator[tuple[str, str]]:
    frame = context.lasting_frame(FOLDER, _ROOT)
    rows = [_row(night, point) for point in night.points]
    yield (
        file_of(night.experiment, night.stamp, ".html"),
        pages.render(
            "code/night.html", frame, night=night, rows=rows, functions=sum(len(row.functions) for row in rows)
        ),
    )
    for point, row in zip(night.points, rows, strict=True):
        if row.page:
            views = tuple(map(_view, point.functions))
            back = f"{file_of(night.experiment, night.stamp, '.html')}#point-{point.id}"
            text = pages.render("code/point.html", frame, night=night, point=point, functions=views, back=back)
            yield row.page, text


def _row(night: NightDifferences, point: PointDifference) -> PointRow:
    has_texts = any(function.tir or function.code for function in point.functions)
    return PointRow(
        point.id,
        point.label,
        file_of(night.experiment, night.stamp, f"-{point.id}.html") if has_texts else "",
        tuple(function.name for function in point.functions),
        tuple(dict.fromkeys(function.first_pass or f"not known: {function.why_not}" for function in point.functions)),
        tuple(_format_sums(point)),
    )


def _format_sums(point: PointDifference) -> Iterator[str]:
    """Sum each number over the functions that changed."""
    sums: dict[str, list[int]] = {}
    for function in point.functions:
        for number in function.numbers:
            then_now = sums.setdefault(number.metric, [0, 0])
            then_now[0] += number.before or 0
            then_now[1] += number.after or 0
    for metric, (before, after) in sums.items():
        if before != after:
            yield _name(metric) + format_exact(after - before, _UNITS.get(metric, ""), sign=True)


def _view(function: FunctionDifference) -> FunctionView:
    return FunctionView(
        function.name,
        "new" if function.is_new else "gone" if function.is_gone else "",
        _describe_cause(function),
        tuple(map(_format_number, function.numbers)),
        draw_difference(function.tir),
        draw_difference(function.code),
    )


def _describe_cause(function: FunctionDifference) -> str:
    if function.why_not:
        return f"no pass is named: {function.why_not}"
    return f"first differs after {function.first_pass}" if function.first_pass else ""


def _format_number(number: NumberOnBothSides) -> str:
    name, unit = _name(number.metric), _UNITS.get(number.metric, "")
    if number.before is None:
        return name + format_exact(number.after or 0, unit)
    if number.after is None:
        return f"{name}{format_exact(number.before, unit)} before"
    return f"{name}{format_exact(number.before, '')} → {format_exact(number.after, unit)}"


def _name(metric: str) -> str:
    """Name the metric in front of a number; nothing where its unit says it."""
    return "" if _UNITS.get(metric) == metric else f"{metric.replace('_', ' ')} "
