"""What a bisection measured, one line each as it happens, so that one that is killed goes on where it was."""

from __future__ import annotations

import hashlib
import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dashboard.artifacts.artifact import Artifact
from dashboard.trials.series_selection import WantedSeries
from tvmdash import common, structured
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.files.lines import append
from tvmdash.machine import hardware
from tvmdash.structured import among

SCHEMA_VERSION = 1
FOLDER = "bisections"
BEGIN, PAIR, FAILED, BUILT = "begin", "pair", "failed", "built"
_FRESH = "Fix it, or use --fresh to start over."
_log = logging.getLogger("bisect")


def path_of(home: Home, series: WantedSeries, good: Artifact, bad: Artifact) -> Path:
    """The journal of this question; the answer is beside it as .json."""
    digest = hashlib.sha256(f"{series.id}\0{good.key}\0{bad.key}".encode()).hexdigest()[:8]
    name = re.sub(r"[^A-Za-z0-9_]+", "-", series.experiment)
    return home.root / "results" / FOLDER / f"{name}-{series.id[:8]}-{digest}.jsonl"


def facts_of(fingerprint: str, series: WantedSeries, good: Artifact, bad: Artifact) -> dict[str, Any]:
    """What must be the same for values of two calls to be compared."""
    here = hardware.facts()
    return {
        "experiment": series.experiment,
        "series": series.id,
        "good": good.key,
        "bad": bad.key,
        "machine": f"{here['host']}, {here['hw_model']}",
        "fingerprint": fingerprint,
    }


@dataclass(frozen=True)
class _Line:
    """What was built, measured or could not be, of a commit; good, here: of a pair."""

    event: str = field(metadata=among(PAIR, FAILED, BUILT))
    commit: str
    seconds: float
    good: float | None = None
    here: float | None = None
    why: str = ""


@dataclass
class BisectJournal:
    """The file and what it says: pairs of values (good end, commit) and failures, by commit.

    elapsed_s: of all builds and measurements, those of earlier calls too.
    """

    path: Path
    pairs: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    built: int = 0
    elapsed_s: float = 0.0

    @classmethod
    def open(cls, path: Path, begin: Mapping[str, Any], *, fresh: bool) -> BisectJournal:
        """The journal at `path`, begun with these facts where there is none, or where it is to be forgotten.

        DashboardError where it was begun with other facts: what it holds cannot be compared.
        """
        if fresh:
            path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        journal = cls(path)
        lines = journal._read_lines() if path.is_file() else []
        if not lines:
            path.unlink(missing_ok=True)
            journal._append({"event": BEGIN, "schema_version": SCHEMA_VERSION, **begin})
            return journal
        before = journal._parse_begin(lines[0])
        other = sorted(name for name in before.keys() | begin.keys() if before.get(name) != begin.get(name))
        if other:
            raise DashboardError(
                f"{path}: this journal was started with a different {' and '.join(other)}, so its measurements are "
                "not comparable. Use --fresh to start over."
            )
        for number, line in enumerate(lines[1:], start=2):
            journal._take_in(number, line)
        return journal

    @property
    def measurements(self) -> int:
        """Runs of the experiment: two a pair."""
        return 2 * sum(map(len, self.pairs.values()))

    def pair(self, commit: str, good: float, here: float, seconds: float) -> None:
        """Keep the values of one pair."""
        self._note({"event": PAIR, "commit": commit, "good": good, "here": here, "seconds": round(seconds, 3)})

    def fail(self, commit: str, why: str, seconds: float) -> None:
        """Keep that the commit cannot be built or measured."""
        self._note({"event": FAILED, "commit": commit, "why": why[:2000], "seconds": round(seconds, 3)})

    def build(self, commit: str, seconds: float) -> None:
        """Keep that the commit was built for this bisection."""
        self._note({"event": BUILT, "commit": commit, "seconds": round(seconds, 3)})

    def _note(self, line: dict[str, Any]) -> None:
        self._append(line)
        self._count(structured.from_json(_Line, line, self.path))

    def _take_in(self, number: int, raw: bytes) -> None:
        """Count what an earlier call noted; a line that is broken costs itself only."""
        where = f"{self.path}:{number}"
        try:
            if raw.strip():
                self._count(structured.from_json(_Line, common.parse_json(raw, where), where))
        except DashboardError as error:
            _log.warning("Passed over, and stays in the file: %s", error)

    def _count(self, line: _Line) -> None:
        if line.event == PAIR and line.good is not None and line.here is not None:
            self.pairs.setdefault(line.commit, []).append((line.good, line.here))
        elif line.event == FAILED:
            self.failed[line.commit] = line.why
        elif line.event == BUILT:
            self.built += 1
        self.elapsed_s += line.seconds

    def _append(self, line: Mapping[str, Any]) -> None:
        append(self.path, [line])

    def _read_lines(self) -> list[bytes]:
        """All lines; a last one that was torn by a kill is cut off."""
        raw = self.path.read_bytes()
        whole, _, torn = raw.rpartition(b"\n")
        if torn:
            os.truncate(self.path, len(raw) - len(torn))
        return whole.splitlines()

    def _parse_begin(self, raw: bytes) -> dict[str, Any]:
        """The facts in the first line; DashboardError where it has none: nothing then says what was measured."""
        try:
            line = common.parse_json(raw, f"{self.path}:1")
        except DashboardError as error:
            raise error.at(f"{self.path}:1", remedy=_FRESH) from error
        if not isinstance(line, dict) or line.get("event") != BEGIN:
            raise DashboardError("not the first line of a bisection journal.", place=f"{self.path}:1", remedy=_FRESH)
        return {name: value for name, value in line.items() if name not in {"event", "schema_version"}}
