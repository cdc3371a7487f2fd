"""Take a source into a home: every file told, every night once.

Sameness: an imported night carries in `night.imported` its format, the SHA-256 of the file that it came from and the
part of that file. What has all three the same is in already, wherever it lies now. A file of the same name, part and
moment with other bytes has changed since: it is told and skipped, because a night that is kept does not change.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from dashboard.importing.formats import FORMATS, format_of, holds_no_results
from dashboard.importing.parsed import ImportFormat, ImportReading, ParsedNight
from dashboard.importing.source import File, Unreadable, list_files
from tvmdash import common, config_util, records
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.records import metrics

TAKEN, IN_ALREADY, SKIPPED, BROKEN = "taken", "in already", "skipped", "broken"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_NEXT_SECOND = datetime.timedelta(seconds=1)


@dataclass(frozen=True)
class ImportReport:
    """What became of one file, or of one night of it. is_result: the file is of a known format, or cannot be read."""

    state: str
    file: str
    text: str
    is_result: bool = True


@dataclass(frozen=True)
class ImportRequest:
    """What the user asks for."""

    home: Home
    source: Path
    experiment: str | None = None
    reading: ImportReading = field(default_factory=ImportReading)
    dry_run: bool = False


def ingest(request: ImportRequest) -> Iterator[ImportReport]:
    """Take the source in, file by file; DashboardError where the home, the source or the name cannot be."""
    if not (request.home.root / "config").is_dir():
        raise DashboardError(
            f"{request.home.root}: not a dashboard home: the config folder is missing. Give the path of a home."
        )
    if request.experiment is not None and not _NAME.fullmatch(request.experiment):
        raise DashboardError(
            f"{request.experiment!r:.60} is not a valid experiment name. Use letters, digits, _ . and -."
        )
    imported_nights = _ImportedNights(request)
    joined: _Joined = {}
    for file in list_files(request.source):
        if isinstance(file, Unreadable):
            yield ImportReport(BROKEN, file.shown, file.why)
        else:
            yield from _ingest_file(file, request, imported_nights, joined)
    for (_, _, folder), parts in joined.items():
        night, file, style = _join(folder, parts)
        try:
            yield imported_nights.put(night, file, style)
        except DashboardError as error:  # a stranger's files cost themselves
            yield ImportReport(BROKEN, file.shown, f"{style.name}: {error}")


_Joined = dict[tuple[str, datetime.datetime, PurePosixPath], list[tuple[ParsedNight, File, ImportFormat]]]


def _join(
    folder: PurePosixPath, parts: list[tuple[ParsedNight, File, ImportFormat]]
) -> tuple[ParsedNight, File, ImportFormat]:
    """The nights of several files as one, of a file that stands for them all."""
    parts = sorted(parts, key=lambda part: part[1].name)
    first, _, style = parts[0]
    together = [record for night, _, _ in parts for record in night.content["records"]]
    content = "\n".join(f"{file.name.name} {file.digest}" for _, file, _ in parts).encode()
    shown = ", ".join(file.shown for _, file, _ in parts)
    left_out = tuple(text for night, _, _ in parts for text in night.left_out)
    night = replace(first, content={**first.content, "records": together}, left_out=left_out)
    return night, File(shown, folder, content), style


def _ingest_file(
    file: File, request: ImportRequest, imported_nights: _ImportedNights, joined: _Joined
) -> Iterator[ImportReport]:
    style = format_of(file)
    if style is None:
        if not holds_no_results(file):
            known = ", ".join(file_format.name for file_format in FORMATS)
            yield ImportReport(SKIPPED, file.shown, f"has no supported format ({known})", is_result=False)
        return
    try:
        for night in style.read(file, request.reading):
            if night.joins:
                joined.setdefault((night.experiment, night.moment, file.name.parent), []).append((night, file, style))
            else:
                yield imported_nights.put(night, file, style)
    except (DashboardError, RecursionError) as error:  # a stranger's file costs itself
        yield ImportReport(BROKEN, file.shown, f"{style.name}: {error}")


class _ImportedNights:
    """The data files of a home, and what in them was imported."""

    def __init__(self, request: ImportRequest) -> None:
        self._request = request
        self._machine = request.home.machine()
        self._now = common.utc_now()
        self._imported: dict[str, dict[str, Mapping[str, Any]]] = {}
        self._stamps: dict[str, set[str]] = {}

    def put(self, night: ParsedNight, file: File, style: ImportFormat) -> ImportReport:
        """Keep a night unless it is in."""
        night = replace(
            night, experiment=self._request.experiment or self._name_now(_clean_name(night.experiment, style))
        )
        imported = self._load(night.experiment)
        origin = {"format": style.name, "sha256": file.digest, "part": night.part}
        known = next((stamp for stamp, facts in imported.items() if origin.items() <= facts.items()), None)
        if known:
            return ImportReport(IN_ALREADY, file.shown, f"is {night.experiment}/data_{known}.json")
        moment = common.stamp_of(night.moment)
        if night.moment > self._now + common.CLOCK_TOLERANCE:
            text = f"is dated {moment}, in the future: the clock says {common.stamp_of(self._now)}. Correct its date."
            return ImportReport(BROKEN, file.shown, text)
        source = {"format": style.name, "file": file.name.name, "part": night.part, "moment": moment}
        changed = next((stamp for stamp, facts in imported.items() if source.items() <= facts.items()), None)
        if changed:
            text = f"has changed since it was imported as {night.experiment}/data_{changed}.json, which is kept"
            return ImportReport(SKIPPED, file.shown, text)
        return self._write(night, file, {**origin, **source})

    def _name_now(self, experiment: str) -> str:
        """What the home calls the experiment today that a source calls so."""
        return self._machine.experiment_now(experiment, "") if self._machine else experiment

    def _load(self, experiment: str) -> dict[str, Mapping[str, Any]]:
        """For each imported night of an experiment what it says of its origin."""
        if experiment not in self._imported:
            folder = self._request.home.data(experiment)
            self._stamps[experiment] = set(records.data_stamps(folder))
            origins = (
                (stamp, _read_origin(folder / f"data_{stamp}.json")) for stamp in sorted(self._stamps[experiment])
            )
            self._imported[experiment] = {stamp: origin for stamp, origin in origins if origin}
        return self._imported[experiment]

    def _write(self, night: ParsedNight, file: File, origin: Mapping[str, Any]) -> ImportReport:
        stamp = self._free_stamp(night)
        whole = {
            **night.content,
            "timestamp": stamp,
            "tvm_hash": night.tvm_hash,
            "night": {
                "stamp": stamp,
                "experiment": night.experiment,
                "imported": {
                    **origin,
                    "source": file.shown,
                    "timezone": self._request.reading.zone.key,
                    **({"left_out": list(night.left_out)} if night.left_out else {}),
                    **night.kept,
                },
            },
        }
        records.check_data(whole)
        config_util.check_metrics(metrics.declared_in(whole), file.shown)
        if not self._request.dry_run:
            path = self._request.home.data_file(night.experiment, stamp)
            path.parent.mkdir(parents=True, exist_ok=True)
            common.write_json(path, whole)
        self._stamps[night.experiment].add(stamp)
        self._imported[night.experiment][stamp] = origin
        return ImportReport(TAKEN, file.shown, _format_night(night, stamp))

    def _free_stamp(self, night: ParsedNight) -> str:
        """The stamp of the night's moment, or of the first second after it that no other night of it has."""
        moment = night.moment
        while (stamp := common.stamp_of(moment)) in self._stamps[night.experiment]:
            moment += _NEXT_SECOND
        return stamp


def _read_origin(path: Path) -> Mapping[str, Any]:
    """Where a data file was imported from; nothing where it was not, or is not readable."""
    try:
        value = common.read_json(path)
    except DashboardError:
        return {}  # the dashboard tells of it; here its stamp counts as taken
    night = value.get("night") if isinstance(value, dict) else None
    imported = night.get("imported") if isinstance(night, dict) else None
    return imported if isinstance(imported, dict) else {}


def _clean_name(text: str, style: ImportFormat) -> str:
    """An experiment's name made of what a stranger calls it."""
    clean = re.sub(r"[^A-Za-z0-9_.-]+", "_", text).lstrip(".-")[:80]
    return clean if _NAME.fullmatch(clean) else style.name.replace("-", "_")


def _format_night(night: ParsedNight, stamp: str) -> str:
    if "records" in night.content:
        held = f"{len(night.content['records'])} records"
    else:
        held = f"{sum(1 for _ in records.numeric_leaves(night.content))} numbers"
    left_out = f"; left out: {', '.join(night.left_out)}" if night.left_out else ""
    return f"{night.experiment}/data_{stamp}.json: {held}{left_out}"
