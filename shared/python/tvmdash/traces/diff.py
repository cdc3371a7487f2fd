"""`traces diff`: which operators got slower, from one night, file or TVM to another."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import replace

from tvmdash.dashboard_info import OF_REFERENCE, VARIANT_SIGN
from tvmdash.errors import DashboardError
from tvmdash.judge.operators import OperatorChange, OperatorComparison, OperatorSide, compare_operators
from tvmtraces.analysis import Point, PointTimes, read_point_times
from tvmtraces.commands import Command, add_filters, add_format, filters_of, format_table
from tvmtraces.connection import Progress, Traces, open_traces
from tvmtraces.filters import escape

_REFERENCE = f"{VARIANT_SIGN}{OF_REFERENCE}"
_NAMES = ["point", "operator", "before_ns", "after_ns", "change_ns", "low_ns", "high_ns", "processes", "verdict"]
_FOR_PROGRAMS = ["hash", "shapes", "flop", "bytes"]


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("before", metavar="A", help="traces, or with --in a night stamp")
    parser.add_argument(
        "after", metavar="B", nargs="?", help="likewise; without it A is compared with the reference TVM in it"
    )
    parser.add_argument(
        "--in", dest="inside", action="append", metavar="INPUT", help="folder that contains the nights A and B"
    )
    add_format(parser)
    add_filters(parser)


def _run(options: argparse.Namespace, progress: Progress) -> str:
    sides = [_read(options, options.before)]
    if options.after is None:
        theirs = {point: times for point, times in sides[0].items() if point[0].endswith(_REFERENCE)}
        if not theirs:
            raise DashboardError(f"{options.before}: no reference was measured in it. Give a second night or file.")
        own = {point: times for point, times in sides[0].items() if point not in theirs}
        sides = [{(point[0].removesuffix(_REFERENCE), *point[1:]): times for point, times in theirs.items()}, own]
    else:
        sides.append(_read(options, options.after))
    return _format(sides[0], sides[1], options.format, in_turn=options.after is None)


def _read(options: argparse.Namespace, named: str) -> Mapping[Point, PointTimes]:
    with _open_side(options, named) as traces:
        return read_point_times(traces)


def _open_side(options: argparse.Namespace, named: str) -> Traces:
    """The traces of a side: those named, or of the night of that stamp."""
    filters = filters_of(options)
    if options.inside is None:
        return open_traces([named], filters=filters)
    opened = open_traces(options.inside, filters=replace(filters, nights=(escape(named),)))
    if not opened.execute("SELECT count(*) FROM processes").fetchall()[0][0]:
        opened.close()
        places = ", ".join(options.inside)
        raise DashboardError(
            f"{named}: no process of this night in {places}. Query the view `nights` for the nights there are."
        )
    return opened


def _format(before: Mapping[Point, PointTimes], after: Mapping[Point, PointTimes], style: str, *, in_turn: bool) -> str:
    rows: list[list[object]] = []
    lines: list[str] = []
    for point in sorted(before.keys() & after.keys()):
        first, last = before[point], after[point]
        name = " ".join(part for part in point if part not in ("", "{}"))
        if first.operators and last.operators:
            compared = compare_operators(_make_side(first), _make_side(last), in_turn=in_turn)
            rows += _list_rows(name, compared)
        else:
            lines.append(f"Not profiled on both sides: {name}")
    for text, points in (("Only before", before.keys() - after.keys()), ("Only after", after.keys() - before.keys())):
        lines += [f"{text}: {' '.join(filter(None, point))}" for point in sorted(points)]
    if style == "console":
        return format_table(_NAMES, [row[: len(_NAMES)] for row in rows], style, None) + "".join(
            f"{line}\n" for line in lines
        )
    return format_table([*_NAMES, *_FOR_PROGRAMS], rows, style, None)


def _make_side(times: PointTimes) -> OperatorSide:
    return OperatorSide(times.operators, times.whole, times.known)


def _list_rows(point: str, compared: OperatorComparison) -> Iterator[list[object]]:
    for change in compared.changes:
        yield _make_row(point, change.name, change)
    if compared.whole is not None:
        yield _make_row(point, "(whole run)", compared.whole)
        rest = compared.unexplained_ms
        nothing = [None] * (len(_NAMES) + len(_FOR_PROGRAMS) - 5)
        yield [point, "(unexplained)", None, None, None if rest is None else round(rest * 1e6, 3), *nothing]


def _make_row(point: str, name: str, change: OperatorChange) -> list[object]:
    times = (change.before_ms, change.after_ms, change.change_ms, change.low_ms, change.high_ms)
    in_ns = [None if time is None else round(time * 1e6, 3) for time in times]
    processes = f"{change.processes[0]}, {change.processes[1]}"
    return [point, name, *in_ns, processes, change.words, *(change.known.get(each) for each in _FOR_PROGRAMS)]


DIFF = Command("show which operators got slower, how surely, and what they do not explain", _add_arguments, _run)
