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
from dashboard.importing.formats import FORMATS
from dashboard.importing.ingest import BROKEN, IN_ALREADY, SKIPPED, TAKEN, UNREAD, ImportRequest, ingest
from dashboard.importing.parsed import ImportReading
from dashboard.night import lock
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.text import elide, format_list

_NAMED, _LONGEST = 5, 60


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    """Add it to the command line."""
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
    take.add_argument(
        "--experiment",
        metavar="NAME",
        help="experiment to file the nights under (default: the one that the source names)",
    )
    take.add_argument(
        "--timezone", metavar="ZONE", default="UTC", help="time zone of timestamps without one, e.g. Europe/Berlin"
    )
    take.add_argument(
        "--machine", metavar="NAME", help="machine that measured (default: the one that the source names)"
    )
    take.add_argument("--tvm", metavar="COMMIT", help="TVM that was measured (default: the one that the source names)")
    take.add_argument("--dry-run", action="store_true", help="show what would be imported; write nothing")


def _import(arguments: argparse.Namespace) -> int:
    reading = ImportReading(_parse_zone(arguments.timezone), arguments.experiment)
    given = (reading, arguments.dry_run, arguments.machine, arguments.tvm)
    with tempfile.NamedTemporaryFile() as spooled:
        source, name = arguments.source, arguments.name
        if source == Path("-"):
            shutil.copyfileobj(sys.stdin.buffer, spooled)
            spooled.flush()
            source, name = Path(spooled.name), name or "stdin.json"
        return SOME_FAILED if run(ImportRequest(Home(arguments.home), source, *given, name), print) else OK_CODE


def run(request: ImportRequest, say: Callable[[str], object]) -> bool:
    """Import; `say` a line for each file and then the sum; whether a file is broken.

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


def _parse_zone(name: str) -> zoneinfo.ZoneInfo:
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        remedy = "Use an IANA name such as Europe/Berlin."
        raise DashboardError(f"--timezone {name!r:.60}: unknown time zone. {remedy}") from error
