"""The formats that can be imported, in the order in which a file is shown to them."""

from __future__ import annotations

import csv
import datetime
import io
import re
from collections.abc import Iterator, Mapping

from dashboard.importing import ancestor, asv, google_benchmark, pyperf
from dashboard.importing.ancestor import parse_stamp
from dashboard.importing.parsed import ImportFormat, ImportReading, ParsedNight, make_data, record, reduce_samples
from dashboard.importing.source import File
from tvmdash.errors import DashboardError

# A row is one timed call in seconds: parameters, `rep` (input), `run` (call). One record for each framework and its
# parameters; the files of an experiment are one night.
_FOLDER = re.compile(r"benchmarks_([0-9]{2}-[0-9]{2}-[0-9]{4}-[0-9]{4})")
_NOT_ARGUMENTS = frozenset({"rep", "run", "time", "device", "network"})
_DOMAIN_BREAKS = re.compile(r"[.\s]")
_SECONDS_TO_MS = 1000.0


def _stamp(file: File) -> str | None:
    """The stamp of the folder that holds the experiment's."""
    folders = file.name.parts[:-2]
    matches = [match for folder in folders if (match := _FOLDER.fullmatch(folder))]
    return matches[-1][1] if matches else None


def _owns(file: File) -> bool:
    return file.name.suffix == ".csv" and "-" in file.name.stem and _stamp(file) is not None


def _read(file: File, reading: ImportReading) -> Iterator[ParsedNight]:
    moment = parse_stamp(_stamp(file) or "", reading)
    framework, _, task = file.name.stem.partition("-")
    groups, bad = _group_rows(file)
    parsed = [_record(moment, framework, task, dict(key), times) for key, times in groups.items()]
    left_out = (f"{bad} rows without a time",) if bad else ()
    experiment = file.name.parent.name
    yield ParsedNight(experiment, moment, "", make_data(parsed), left_out=left_out, joins=True)


def _group_rows(file: File) -> tuple[Mapping[tuple[tuple[str, str], ...], list[float]], int]:
    """The times in ms by parameters, and how many rows have none."""
    try:
        rows = csv.DictReader(io.StringIO(file.content.decode("utf-8"), newline=""))
        if "time" not in (rows.fieldnames or ()):
            raise DashboardError("has no header with a column `time`.")
        groups: dict[tuple[tuple[str, str], ...], list[float]] = {}
        bad = 0
        for row in rows:
            seconds = _parse_seconds(row.get("time"))
            if seconds is None:
                bad += 1
                continue
            key = tuple((name, item) for name, item in row.items() if name not in {"rep", "run", "time", None})
            groups.setdefault(tuple((str(n), str(v)) for n, v in key), []).append(seconds * _SECONDS_TO_MS)
    except (UnicodeDecodeError, csv.Error) as error:
        raise DashboardError(f"is not CSV: {error}") from error
    return groups, bad


def _parse_seconds(text: str | None) -> float | None:
    try:
        seconds = float(text or "")
    except ValueError:
        return None
    return seconds if 0 <= seconds < 1e9 else None


def _record(
    moment: datetime.datetime, framework: str, task: str, parameters: dict[str, str], times: list[float]
) -> dict[str, object]:
    network = parameters.get("network")
    return record(
        moment,
        reduce_samples(times),
        workload=f"network.{network}" if network else f"{_DOMAIN_BREAKS.sub('_', task) or 'task'}.{framework}",
        workload_args={name: item for name, item in parameters.items() if name not in _NOT_ARGUMENTS},
        engine=framework,
        target=parameters.get("device", ""),
        info={"task": task},
    )


FORMAT = ImportFormat("relay-bench-csv", "relay-bench's raw CSV files and their archives", _owns, _read)


FORMATS: tuple[ImportFormat, ...] = (
    ancestor.FORMAT,
    FORMAT,
    asv.FORMAT,
    pyperf.FORMAT,
    google_benchmark.FORMAT,
)
_BESIDE = frozenset({"machine.json", "benchmarks.json", "asv.conf.json", "status.json", "config.json", "summary.json"})


def format_of(file: File) -> ImportFormat | None:
    """Whose file this is."""
    return next((file_format for file_format in FORMATS if file_format.owns(file)), None)


def holds_no_results(file: File) -> bool:
    """Whether the tools put this file beside their results."""
    return file.name.name in _BESIDE or file.name.suffix not in {".json", ".csv"}
