"""`import`: import the results of other tools, and report what was imported and what was skipped."""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
import tempfile
import zoneinfo
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from dashboard.cli.arguments import OK_CODE, SOME_FAILED, Verbs, add_home_verb
from dashboard.importing.ingest import BROKEN, FORMATS, IN_ALREADY, SKIPPED, TAKEN, UNREAD, ImportRequest, ingest
from dashboard.importing.parsed import ImportReading
from dashboard.night import lock
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.text import elide, format_list

_NAMED, _LONGEST = 5, 60


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    take = add_home_verb(
        verbs, "import", _import, "import results of asv, pyperf, Google Benchmark, relay-bench or records", code=False
    )
    take.add_argument(
        "source",
        type=Path,
        metavar="SOURCE",
        help="file, folder or archive (tar, zip) to read, or - for standard input; it is never modified",
    )
    take.add_argument("--name", default="", metavar="FILE", help="name of the file that comes by standard input")
    add_overrides(take)
    take.add_argument("--dry-run", action="store_true", help="show what would be imported; write nothing")


def add_overrides(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what a source does not say, or says wrongly."""
    own = "(default: the one that the source names)"
    parser.add_argument("--experiment", metavar="NAME", help=f"experiment to file the nights under {own}")
    zone = "time zone of timestamps without one, e.g. Europe/Berlin"
    parser.add_argument("--timezone", metavar="ZONE", default="UTC", help=zone)
    parser.add_argument("--machine", metavar="NAME", help=f"machine that measured {own}")
    parser.add_argument("--tvm", metavar="COMMIT", help=f"TVM that was measured {own}")


def _import(arguments: argparse.Namespace) -> int:
    reading = make_reading(arguments.timezone, arguments.experiment)
    given = (reading, arguments.dry_run, arguments.machine, arguments.tvm)
    with tempfile.NamedTemporaryFile() as spooled:
        source, name = arguments.source, arguments.name
        if source == Path("-"):
            shutil.copyfileobj(sys.stdin.buffer, spooled)
            spooled.flush()
            source, name = Path(spooled.name), name or "stdin.json"
        return SOME_FAILED if run(ImportRequest(Home(arguments.home), source, *given, name), print) else OK_CODE


def run(request: ImportRequest, say: Callable[[str], object]) -> bool:
    """Import; `say` a line for each file and then the sum. Return True where a file is broken.

    DashboardError where the source holds no results.
    """
    counted: Counter[str] = Counter()
    names: dict[str, dict[str, None]] = {"Not read": {}, "Unknown fields": {}}
    with contextlib.nullcontext() if request.dry_run else lock.night_lock(request.home):
        for report in ingest(request):
            counted[report.state] += 1
            names["Not read"] |= {} if report.is_result else {report.file: None}
            names["Unknown fields"] |= dict.fromkeys(sorted(report.unknown))
            state = "would take" if request.dry_run and report.state == TAKEN else report.state
            if state != UNREAD:
                say(f"{state:10}  {report.file}: {report.text}")
    if counted.total() == len(names["Not read"]):
        known = ", ".join(file_format.name for file_format in FORMATS)
        raise DashboardError(f"{request.source}: no results in a supported format. Supported formats: {known}.")
    taken = f"{counted[TAKEN]} nights {'would be ' if request.dry_run else ''}taken"
    rest = f"{counted[IN_ALREADY]} already imported, {counted[SKIPPED]} skipped, {counted[BROKEN]} broken."
    lists = {label: format_list([elide(name, _LONGEST) for name in each], _NAMED) for label, each in names.items()}
    besides = [f"{label}: {text}." for label, text in lists.items() if text]
    zone = f"Timestamps without a time zone were read as {request.reading.zone.key}."
    say(" ".join([f"{taken}, {rest}", *besides, zone]))
    return counted[BROKEN] > 0


def make_reading(zone: str, experiment: str | None) -> ImportReading:
    """Return how to read the source; DashboardError for an unknown time zone."""
    try:
        return ImportReading(zoneinfo.ZoneInfo(zone), experiment)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        remedy = "Use an IANA name such as Europe/Berlin."
        raise DashboardError(f"--timezone {zone!r:.60}: unknown time zone. {remedy}") from error
