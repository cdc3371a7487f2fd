"""Take a source into a home: every file told, every night once.

Sameness: an imported night carries in `night.imported` its format and of each file that it came from the SHA-256, the
name and the part. A file whose digest is there is in already, whatever it and its experiment are called since. A file
of the same name, part and moment with other bytes has changed: it is told and skipped, because a night that is kept
does not change.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dashboard.importing import asv, google_benchmark, placed_records, pyperf, relay_bench
from dashboard.importing.parsed import ImportFormat, ImportReading, ParsedNight
from dashboard.importing.source import File, Unreadable, list_files
from tvmdash import common, config_util, records
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.records import metrics, migrations

FORMATS: tuple[ImportFormat, ...] = (
    relay_bench.FORMAT,
    relay_bench.CSV,
    placed_records.FORMAT,
    asv.FORMAT,
    pyperf.FORMAT,
    google_benchmark.FORMAT,
)
BESIDE = frozenset({"machine.json", "benchmarks.json", "asv.conf.json", "status.json", "config.json", "summary.json"})
"""Files that the tools put beside their results."""


def format_of(file: File) -> ImportFormat | None:
    return next((file_format for file_format in FORMATS if file_format.owns(file)), None)


TAKEN, IN_ALREADY, SKIPPED, BROKEN, UNREAD = "taken", "in already", "skipped", "broken", "unread"
INDEX = "imports.json"
_INDEX_VERSION = 1
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_NEXT_SECOND = datetime.timedelta(seconds=1)
_MANY = 200
"""A night of so many records is written in columns: one by one they would take ten times what they came from."""
_FACTS = ("format", "sha256", "file", "part", "parts", "moment", "files")
_RESULTS = (".json", ".csv", ".jsonl", ".ndjson")


@dataclass(frozen=True)
class ImportReport:
    """The outcome for one file, or for one night of it.

    is_result: the file is of a known format, or cannot be read; unknown: the fields that the format's table lacks.
    """

    state: str
    file: str
    text: str
    is_result: bool = True
    unknown: frozenset[str] = frozenset()


@dataclass(frozen=True)
class ImportRequest:
    """The user's request. machine, tvm: what the source does not say, or says wrongly; name: of standard input."""

    home: Home
    source: Path
    reading: ImportReading = field(default_factory=ImportReading)
    dry_run: bool = False
    machine: str | None = None
    tvm: str | None = None
    name: str = ""


@dataclass(frozen=True)
class _Origin:
    """One file, or one part of it, that a night comes from."""

    file: str
    sha256: str
    part: str
    shown: str = ""


def ingest(request: ImportRequest) -> Iterator[ImportReport]:
    """Take the source in, file by file; DashboardError where the home, the source or a name cannot be."""
    if not (request.home.root / "config").is_dir():
        raise DashboardError(
            f"{request.home.root}: not a dashboard home: the config folder is missing. Give the path of a home."
        )
    if request.reading.experiment is not None and not _NAME.fullmatch(request.reading.experiment):
        raise DashboardError(
            f"{request.reading.experiment!r:.60} is not a valid experiment name. Use letters, digits, _ . and -."
        )
    for option, text in (("--machine", request.machine), ("--tvm", request.tvm)):
        if text is not None and (not text.isprintable() or not 0 < len(text.strip()) == len(text) <= 100):
            raise DashboardError(f"{option} {text!r:.60}: not a name. Use up to 100 printable characters.")
    yield from _Import(request).run()


class _Import:
    """One import. Nights of several files wait until all files have been seen, their records compressed."""

    def __init__(self, request: ImportRequest) -> None:
        self._request = request
        self._nights = _ImportedNights(request)
        self._waiting: dict[tuple[Any, ...], list[tuple[ParsedNight, _Origin, bytes]]] = {}

    def run(self) -> Iterator[ImportReport]:
        for file in list_files(self._request.source, self._request.name):
            if isinstance(file, Unreadable):
                yield ImportReport(BROKEN, file.shown, file.why)
            else:
                yield from self._take(file)
        # Only now: any file may have been a part of them.
        for (style, *_), parts in self._waiting.items():
            yield self._nights.put(*_join(parts), style)  # each file of it was checked
        self._nights.keep_index()

    def _take(self, file: File) -> Iterator[ImportReport]:
        known = self._nights.find(file.digest)
        if known:
            yield ImportReport(IN_ALREADY, file.shown, f"is {known}")
            return
        style = format_of(file)
        if style is None:
            if file.name.name not in BESIDE:
                formats = ", ".join(file_format.name for file_format in FORMATS)
                state = SKIPPED if file.name.suffix in _RESULTS else UNREAD
                yield ImportReport(state, file.shown, f"has no supported format ({formats})", is_result=False)
            return
        try:
            for night in style.read(file, self._request.reading):
                yield from self._take_night(style, self._nights.adopt(night, style), file)
        except (DashboardError, RecursionError) as error:  # a stranger's file costs itself
            yield ImportReport(BROKEN, file.shown, f"{style.name}: {error}")

    def _take_night(self, style: ImportFormat, night: ParsedNight, file: File) -> Iterator[ImportReport]:
        origin = _Origin(file.name.name, file.digest, night.part, file.shown)
        report = self._nights.refuse(night, style, origin)
        if report is not None:
            yield report
        elif "records" in night.content and not night.content["records"] and not night.content.get("failures"):
            text = "contains no results that could be imported as records"
            left_out = f"; left out: {', '.join(night.left_out)}" if night.left_out else ""
            yield ImportReport(SKIPPED if night.left_out else BROKEN, file.shown, f"{style.name}: {text}{left_out}")
        elif night.joins is None:
            yield self._nights.put(night, [origin], style)
        else:
            records.check_data({**night.content, "tvm_hash": night.tvm_hash})
            key = (style, night.experiment, night.moment, night.tvm_hash, night.joins)
            packed = zlib.compress(json.dumps(migrations.pack(night.content)).encode(), 1)
            self._waiting.setdefault(key, []).append((replace(night, content={}), origin, packed))


def _join(parts: Sequence[tuple[ParsedNight, _Origin, bytes]]) -> tuple[ParsedNight, list[_Origin]]:
    # The digest of several files must not depend on their order in the source.
    parts = sorted(parts, key=lambda part: (part[1].part, part[1].file))
    contents = [json.loads(zlib.decompress(packed)) for _, _, packed in parts]
    content = {**contents[0], "records": [block for each in contents for block in each["records"]]}
    left_out = tuple(dict.fromkeys(text for night, _, _ in parts for text in night.left_out))
    unknown = frozenset[str]().union(*(night.unknown for night, _, _ in parts))
    night = replace(parts[0][0], content=content, left_out=left_out, unknown=unknown)
    return night, [origin for _, origin, _ in parts]


def _digest_of(origins: Sequence[_Origin]) -> str:
    content = "\n".join(f"{origin.file} {origin.sha256}" for origin in origins)
    return hashlib.sha256(content.encode()).hexdigest()


class _ImportedNights:
    """The data files of a home, and what in them was imported. results/imports.json is an index of that."""

    def __init__(self, request: ImportRequest) -> None:
        self._request = request
        self._machine = request.home.machine()
        self._now = common.utc_now()
        self._path = request.home.root / "results" / INDEX
        self._kept = _read_index(self._path)
        self._origins = {name: self._load(name) for name in request.home.experiments_with_data()}
        self._by_digest: dict[str, list[tuple[str, str]]] = {}
        for name, origins in self._origins.items():
            for stamp, origin in origins.items():
                self._note(name, stamp, origin)

    def _load(self, experiment: str) -> dict[str, Mapping[str, Any]]:
        """Load the origins of an experiment's nights by stamp, empty where one was not imported."""
        known = common.object_in(self._kept, experiment)
        folder = self._request.home.data(experiment)
        return {
            stamp: dict(common.object_in(known, stamp))
            if stamp in known
            else _read_origin(folder / f"data_{stamp}.json")
            for stamp in records.data_stamps(folder)
        }

    def _note(self, experiment: str, stamp: str, origin: Mapping[str, Any]) -> None:
        for sha256 in {origin.get("sha256"), *(file.get("sha256") for file in origin.get("files", ()))} - {None}:
            self._by_digest.setdefault(str(sha256), []).append((experiment, stamp))

    def find(self, sha256: str) -> str | None:
        """Find the data file of the first night that has these bytes in already as a whole."""
        nights = self._by_digest.get(sha256)
        if not nights:
            return None
        experiment, stamp = nights[0]
        whole = len(nights) >= int(self._origins[experiment][stamp].get("parts", 1))
        return f"{experiment}/data_{stamp}.json" if whole else None

    def adopt(self, night: ParsedNight, style: ImportFormat) -> ParsedNight:
        """Name the night's experiment, machine and TVM as the user and the home do."""
        request = self._request
        formerly = _clean_name(night.formerly, style) if night.formerly else ""
        has_format = any(origin.get("format") == style.name for origin in self._origins.get(formerly, {}).values())
        name = request.reading.experiment or (formerly if has_format else _clean_name(night.experiment, style))
        name = self._machine.experiment_now(name, "") if self._machine else name
        night = replace(night, experiment=name, tvm_hash=request.tvm or night.tvm_hash)
        if request.machine is None:
            return night
        content = dict(night.content)
        if "records" in content:
            content["records"] = [{**record, "env_name": request.machine} for record in content["records"]]
        return replace(night, content=content, night={**night.night, "machine": request.machine})

    def refuse(self, night: ParsedNight, style: ImportFormat, origin: _Origin) -> ImportReport | None:
        """Report why it cannot be taken; None where it can."""
        origins, moment = self._origins.setdefault(night.experiment, {}), common.stamp_of(night.moment)
        for stamp, facts in origins.items():
            if (facts.get("format"), facts.get("moment")) != (style.name, moment):
                continue
            for file in facts.get("files") or [facts]:
                if file.get("part", "") not in {origin.part, ""} or file.get("file") != origin.file:
                    continue
                if file["sha256"] == origin.sha256:
                    return ImportReport(IN_ALREADY, origin.shown, f"is {night.experiment}/data_{stamp}.json")
                text = f"has changed since it was imported as {night.experiment}/data_{stamp}.json, which is kept"
                return ImportReport(SKIPPED, origin.shown, text)
        if night.moment > self._now + common.CLOCK_TOLERANCE:
            text = f"is dated {moment}, in the future: the clock says {common.stamp_of(self._now)}. Correct its date."
            return ImportReport(BROKEN, origin.shown, text)
        return None

    def put(self, night: ParsedNight, origins: Sequence[_Origin], style: ImportFormat) -> ImportReport:
        """Keep the night, unless it is in already."""
        first, shown = origins[0], ", ".join(origin.shown for origin in origins)
        several = len(origins) > 1
        known = self.find(_digest_of(origins))
        if known:  # as imports of before December 2026 named the files of a night
            return ImportReport(IN_ALREADY, shown, f"is {known}")
        origin = {
            "format": style.name,
            "sha256": _digest_of(origins) if several else first.sha256,
            "file": first.file,
            "part": first.part,
            **({"parts": night.parts} if night.parts > 1 else {}),
            "moment": common.stamp_of(night.moment),
            **({"files": [{"file": e.file, "sha256": e.sha256, "part": e.part} for e in origins]} if several else {}),
        }
        stamp = self._write(night, origin, shown)
        self._origins.setdefault(night.experiment, {})[stamp] = origin
        self._note(night.experiment, stamp, origin)
        return ImportReport(TAKEN, shown, _format_night(night, stamp), unknown=night.unknown)

    def _write(self, night: ParsedNight, origin: Mapping[str, Any], shown: str) -> str:
        stamp = self._free_stamp(night)
        imported = {
            **origin,
            "source": shown,
            "timezone": self._request.reading.zone.key,
            **({"left_out": list(night.left_out)} if night.left_out else {}),
            **({"unknown": sorted(night.unknown)} if night.unknown else {}),
            **night.kept,
        }
        own = {**night.night, "stamp": stamp, "experiment": night.experiment, "imported": imported}
        is_table = night.content.get("schema_version") == migrations.IN_COLUMNS
        whole = {**night.content, "timestamp": stamp, "tvm_hash": night.tvm_hash, "night": own}
        if not is_table:  # else its files were checked
            records.check_data(whole)
        config_util.check_metrics(metrics.declared_in(whole), shown)
        if not self._request.dry_run:
            path = self._request.home.data_file(night.experiment, stamp)
            path.parent.mkdir(parents=True, exist_ok=True)
            is_large = "records" in whole and _count_records(whole) >= _MANY
            if is_large:
                whole = whole if is_table else migrations.pack(whole)
                common.write_text(path, json.dumps(whole, ensure_ascii=False, separators=(",", ":")) + "\n")
            else:
                common.write_json(path, migrations.unpack(whole) if is_table else whole)
        return stamp

    def _free_stamp(self, night: ParsedNight) -> str:
        """Find the first stamp from the night's moment on that no other night of it has."""
        moment, taken = night.moment, self._origins.get(night.experiment, {})
        while (stamp := common.stamp_of(moment)) in taken:
            moment += _NEXT_SECOND
        return stamp

    def keep_index(self) -> None:
        """Leave what is known of all data files to the next import, so that it need not read them."""
        known = {
            experiment: {
                stamp: {name: origin[name] for name in _FACTS if name in origin} for stamp, origin in of_it.items()
            }
            for experiment, of_it in self._origins.items()
            if of_it
        }
        if known != self._kept and not self._request.dry_run:
            text = json.dumps({"schema_version": _INDEX_VERSION, "experiments": known}, ensure_ascii=False)
            common.write_text(self._path, text + "\n", durable=False)


def _read_index(path: Path) -> Mapping[str, Any]:
    """Read the index that the last import left; empty where it is missing or of no use, for then it is made anew."""
    try:
        value = common.read_json(path)
    except DashboardError:
        return {}
    is_ours = isinstance(value, dict) and value.get("schema_version") == _INDEX_VERSION
    return common.object_in(value, "experiments") if is_ours else {}


def _read_origin(path: Path) -> Mapping[str, Any]:
    """Read the origin of an imported data file; empty where it was not imported, or is not readable."""
    try:
        raw = path.read_bytes()
        value = common.parse_json(raw, str(path)) if b'"imported"' in raw else {}
    except (OSError, DashboardError):
        return {}  # the dashboard tells of it; here its stamp counts as taken
    return common.object_in(common.object_in(value, "night"), "imported")


def _count_records(content: Mapping[str, Any]) -> int:
    if content["schema_version"] == migrations.IN_COLUMNS:
        return sum(int(block["count"]) for block in content["records"])
    return len(content["records"])


def _clean_name(text: str, style: ImportFormat) -> str:
    clean = re.sub(r"[^A-Za-z0-9_.-]+", "_", text).lstrip(".-")[:80]
    return clean if _NAME.fullmatch(clean) else style.name.replace("-", "_")


def _format_night(night: ParsedNight, stamp: str) -> str:
    if "records" in night.content:
        held = f"{_count_records(night.content)} records"
    else:
        held = f"{sum(1 for _ in records.numeric_leaves(night.content))} numbers"
    left_out = f"; left out: {', '.join(night.left_out)}" if night.left_out else ""
    return f"{night.experiment}/data_{stamp}.json: {held}{left_out}"
