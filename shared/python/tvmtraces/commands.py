"""The verbs of `python3 -m tvmtraces`."""

from __future__ import annotations

import argparse
import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from tvmdash.errors import DashboardError
from tvmdash.text import format_bytes, format_quantity
from tvmtraces.analysis import GROUPS, Finding, SummaryRow, find_findings, summary
from tvmtraces.connection import Progress, open_traces
from tvmtraces.database import Connection, connect
from tvmtraces.export.converters import CONVERTERS
from tvmtraces.filters import CHOICES, Filters, Straddle, Window
from tvmtraces.output import FORMATS, format_left_out
from tvmtraces.planning import describe_view
from tvmtraces.sealed import SealedSource
from tvmtraces.sealing import seal, verify
from tvmtraces.views import ALL_VIEWS

QUERY_TIMEOUT_S = 600.0
_INTERRUPT_EVERY_S = 0.2
Work = Callable[[argparse.Namespace, Progress], str]


@dataclass(frozen=True)
class Command:
    """A verb: its help text, its arguments, its work."""

    about: str
    arguments: Callable[[argparse.ArgumentParser], None]
    work: Work


def filters_of(options: argparse.Namespace) -> Filters:
    """Make the filters of parsed options."""
    window = None
    if options.begin or options.end:
        window = Window(options.begin or "", options.end or "", Straddle(options.straddle))
    choices: dict[str, Any] = {name: tuple(getattr(options, name)) for name in CHOICES}
    return Filters(window, **choices)


def add_filters(parser: argparse.ArgumentParser) -> None:
    """Add the options of `filters_of`."""
    group = parser.add_argument_group("filters (may be repeated; * and ? stand for any; !PATTERN leaves out)")
    group.add_argument(
        "--from", dest="begin", metavar="MOMENT", help="2026-11-21T03:15:00Z, ns, +2.5s, -2.5s, 25%%, @marker"
    )
    group.add_argument("--to", dest="end", metavar="MOMENT", help="likewise")
    group.add_argument("--straddle", choices=[choice.value for choice in Straddle], default=Straddle.CONTAINED.value)
    for name in CHOICES:
        option = {"processes": "process", "categories": "category"}.get(name, name.removesuffix("s"))
        group.add_argument(f"--{option}", dest=name, action="append", default=[], metavar="PATTERN")


def add_inputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("inputs", nargs="+", metavar="INPUT", help="databases, sealed runs, folders, patterns")


def add_question(parser: argparse.ArgumentParser) -> None:
    """Add the options of a verb that queries."""
    add_inputs(parser)
    add_format(parser)
    add_filters(parser)


def add_format(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=list(FORMATS), default="console")


def _query_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sql", metavar="SQL", help='as in "SELECT * FROM top"')
    parser.add_argument(
        "--timeout", type=float, default=QUERY_TIMEOUT_S, metavar="SECONDS",
        help=f"stop the query after so many seconds (default: {QUERY_TIMEOUT_S:g}; 0: never)",
    )  # fmt: skip
    add_question(parser)


def _query(options: argparse.Namespace, progress: Progress) -> str:
    limit = _TimeLimit(options.timeout)
    reading = limit.watch_reading(progress)
    with connect(options.inputs, filters=filters_of(options), progress=reading) as traces, limit.hold(traces):
        result = traces.execute(options.sql)
        names = [column[0] for column in result.description or ()]
        return FORMATS[options.format](names, result.fetchall())


class _TimeLimit:
    """Stops a query that takes too long, while it reads and while it computes; 0 s are no limit."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._end = time.monotonic() + limit_s if limit_s > 0 else math.inf

    def _make_error(self) -> DashboardError:
        remedy = "Ask for less, as with --night or LIMIT, or raise --timeout."
        return DashboardError(f"the query was stopped after {self._limit_s:g} s.", remedy=remedy)

    def watch_reading(self, progress: Progress) -> Progress:
        """Return a progress callback that also raises once the time is over."""

        def tell(what: str, done: int, of: int) -> None:
            if time.monotonic() >= self._end:
                raise self._make_error()
            progress(what, done, of)

        return tell

    @contextlib.contextmanager
    def hold(self, traces: Connection) -> Iterator[None]:
        """Interrupt what the connection computes once the time is over, and again until it has stopped."""
        is_done = threading.Event()

        def watch() -> None:
            wait_s = max(0.0, self._end - time.monotonic())
            while not is_done.wait(None if math.isinf(wait_s) else wait_s):
                traces.interrupt()
                wait_s = _INTERRUPT_EVERY_S

        watching = threading.Thread(target=watch, daemon=True)
        watching.start()
        try:
            yield
        except DashboardError as error:
            if time.monotonic() >= self._end:
                raise self._make_error() from error
            raise
        finally:
            is_done.set()
            watching.join()


def _add_summary_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--by", choices=list(GROUPS))
    add_question(parser)


_TIMES = ("total_ns", "mean_ns", "min_ns", "median_ns", "p95_ns", "max_ns", "std_ns")


def _run_summary(options: argparse.Namespace, progress: Progress) -> str:
    with open_traces(options.inputs, filters=filters_of(options), progress=progress) as traces:
        rows = list(summary(traces, by=options.by))
    names = [field.name for field in fields(SummaryRow) if field.name != "group" or options.by]
    return format_table(names, [[getattr(row, name) for name in names] for row in rows], options.format, options.by)


def format_table(names: Sequence[str], rows: list[list[Any]], style: str, by: str | None) -> str:
    """Format a table: nanoseconds for programs, suitable units for people."""
    shown = [by if name == "group" and by else name for name in names]
    if style != "console":
        return FORMATS[style](shown, rows)
    timed = [index for index, name in enumerate(names) if name.endswith("_ns")]
    for row in rows:
        for index in timed:
            row[index] = None if row[index] is None else _format_signed(float(row[index]))
    return FORMATS[style]([name.removesuffix("_ns") for name in shown], rows)


def _format_signed(elapsed_ns: float) -> str:
    text = format_quantity(abs(elapsed_ns), "ns")
    return f"-{text}" if elapsed_ns < 0 else text


def _add_out_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("destination", type=Path, metavar="DESTINATION", help="folder to create; must not exist yet")
    add_inputs(parser)
    add_filters(parser)


def _seal(options: argparse.Namespace, progress: Progress) -> str:
    chosen = filters_of(options)
    filters = None if chosen == Filters() else chosen
    return _format_sealed(seal(options.inputs, options.destination, filters=filters, progress=progress))


def _format_sealed(run: SealedSource) -> str:
    rows = sum(table.rows for table in run.catalogue.tables.values())
    sizes = f"{format_bytes(run.catalogue.size_bytes)} from {format_bytes(run.catalogue.source_bytes)}"
    left_out = format_left_out(run.catalogue.left_out)
    return f"{run.path}: {rows} rows in {len(run.catalogue.table_names)} tables, {sizes}{left_out}.\n"


def _views_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "view", nargs="?", metavar="VIEW", help="view whose columns are listed (default: list all views)"
    )
    add_format(parser)


def _views(options: argparse.Namespace, progress: Progress) -> str:
    if options.view is None:
        rows = [[name, view.about] for name, view in ALL_VIEWS.items()]
        own = ["rocpd_string ...", "a row of RocPD's own tables, as RocPD databases among the inputs have them"]
        return FORMATS[options.format](["view", "a row is"], [*rows, own])
    if options.view not in ALL_VIEWS:
        raise DashboardError(f"{options.view}: no such view. Run `views` without arguments to list them.")
    return FORMATS[options.format](["column", "type"], describe_view(options.view))


def _findings(options: argparse.Namespace, progress: Progress) -> str:
    with open_traces(options.inputs, filters=filters_of(options), progress=progress) as traces:
        found = list(find_findings(traces))
    if not found and options.format == "console":
        return "Nothing stands out.\n"
    names = [field.name for field in fields(Finding)]
    return FORMATS[options.format](names, [[getattr(finding, name) for name in names] for finding in found])


def _verify(options: argparse.Namespace, progress: Progress) -> str:
    return "".join(_format_sealed(verify(Path(path))) for path in options.inputs)


def _convert_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "to", choices=list(CONVERTERS), help="; ".join(f"{n}: {c.about}" for n, c in CONVERTERS.items())
    )
    _add_out_arguments(parser)
    parser.add_argument(
        "--no-annotations",
        action="store_true",
        help="leave error texts, messages and figures out of slices, e.g. before sharing",
    )


def _convert(options: argparse.Namespace, progress: Progress) -> str:
    filters = replace(filters_of(options), annotations=not options.no_annotations)
    written = CONVERTERS[options.to].write(options.inputs, options.destination, filters, progress)
    return f"{options.destination}: {written}.\n"


COMMANDS: dict[str, Command] = {
    "query": Command("run a SQL query", _query_arguments, _query),
    "views": Command("list the views, or the columns of one", _views_arguments, _views),
    "summary": Command("summarize durations by domain and name", _add_summary_arguments, _run_summary),
    "findings": Command("list anomalies in a trace with their size and place", add_question, _findings),
    "seal": Command("create a sealed run of many traces, verified against the sources", _add_out_arguments, _seal),
    "verify": Command("verify every byte of sealed runs against their catalogues", add_inputs, _verify),
    "convert": Command("convert traces to another format", _convert_arguments, _convert),
}
"""Verbs by name; `tvmdash.traces` adds those that need the judge."""
