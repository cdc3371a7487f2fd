"""`import`: import the results of other tools, and report what was imported and what was skipped."""

from __future__ import annotations

import argparse
import contextlib
import zoneinfo
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dashboard.cli.arguments import OK_CODE, SOME_FAILED, Verbs, add_home_verb
from dashboard.importing.formats import FORMATS
from dashboard.importing.ingest import BROKEN, IN_ALREADY, SKIPPED, TAKEN, ImportReport, ImportRequest, ingest
from dashboard.importing.parsed import ImportReading
from dashboard.night import lock
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    """Add it to the command line."""
    take = add_home_verb(
        verbs, "import", _import, "import results of relay-bench, asv, pyperf or Google Benchmark", code=False
    )
    take.add_argument(
        "source", type=Path, metavar="SOURCE", help="file, folder or tar archive to read; it is never modified"
    )
    take.add_argument(
        "--experiment",
        metavar="NAME",
        help="experiment to file the nights under (default: the one that the source names)",
    )
    take.add_argument(
        "--timezone", metavar="ZONE", default="UTC", help="time zone of timestamps without one, e.g. Europe/Berlin"
    )
    take.add_argument("--dry-run", action="store_true", help="show what would be imported; write nothing")


def _import(arguments: argparse.Namespace) -> int:
    return SOME_FAILED if run(arguments.home, arguments, print).any_broken else OK_CODE


@dataclass(frozen=True)
class ImportedFiles:
    """How many nights and files came to which state."""

    counts: Counter[str]

    @property
    def any_broken(self) -> bool:
        """Whether a file could not be read."""
        return self.counts[BROKEN] > 0


def run(home: Path, options: argparse.Namespace, say: Callable[[str], None]) -> ImportedFiles:
    """Import; `say` a line for each file and then the sum. DashboardError where the source holds no results."""
    reading = ImportReading(_parse_zone(options.timezone))
    request = ImportRequest(Home(home), options.source, options.experiment, reading, options.dry_run)
    counted: Counter[str] = Counter()
    results = 0
    with contextlib.nullcontext() if options.dry_run else lock.night_lock(request.home):
        for report in ingest(request):
            counted[report.state] += 1
            results += report.is_result
            say(_format_line(report, dry_run=options.dry_run))
    if not results:
        known = ", ".join(file_format.name for file_format in FORMATS)
        raise DashboardError(f"{options.source}: no results in a supported format. Supported formats: {known}.")
    say(_sum(counted, options))
    return ImportedFiles(counted)


def _parse_zone(name: str) -> zoneinfo.ZoneInfo:
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise DashboardError(
            f"--timezone {name!r:.60}: unknown time zone. Use an IANA name such as Europe/Berlin."
        ) from error


def _format_line(report: ImportReport, *, dry_run: bool) -> str:
    state = "would take" if dry_run and report.state == TAKEN else report.state
    return f"{state:10}  {report.file}: {report.text}"


def _sum(counted: Counter[str], options: argparse.Namespace) -> str:
    taken = f"{counted[TAKEN]} nights {'would be ' if options.dry_run else ''}taken"
    rest = f"{counted[IN_ALREADY]} already imported, {counted[SKIPPED]} skipped, {counted[BROKEN]} broken"
    return f"{taken}, {rest}. Timestamps without a time zone were read as {options.timezone}."
