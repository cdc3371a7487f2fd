"""What a bisection measured, one line each as it happens, so that one that is killed goes on where it was."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dashboard.artifacts.artifact import Artifact
from dashboard.investigate.series_selection import WantedSeries
from tvmdash import common
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.machine import hardware

SCHEMA_VERSION = 1
FOLDER = "bisections"
BEGIN, PAIR, FAILED, BUILT = "begin", "pair", "failed", "built"


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
        lines = list(journal._lines()) if path.is_file() else []
        if not lines:
            path.unlink(missing_ok=True)
            journal._append({"event": BEGIN, "schema_version": SCHEMA_VERSION, **begin})
            return journal
        before = {name: value for name, value in lines[0].items() if name not in {"event", "schema_version"}}
        other = sorted(name for name in before.keys() | begin.keys() if before.get(name) != begin.get(name))
        if other:
            raise DashboardError(
                f"{path}: this journal was started with a different {' and '.join(other)}, so its measurements are "
                "not comparable. Use --fresh to start over."
            )
        for line in lines[1:]:
            journal._count(line)
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
        self._count(line)

    def _count(self, line: Mapping[str, Any]) -> None:
        commit = str(line["commit"])
        self.elapsed_s += float(line["seconds"])
        if line["event"] == PAIR:
            self.pairs.setdefault(commit, []).append((float(line["good"]), float(line["here"])))
        elif line["event"] == FAILED:
            self.failed[commit] = str(line["why"])
        else:
            self.built += 1

    def _append(self, line: Mapping[str, Any]) -> None:
        with self.path.open("ab") as file:
            file.write(json.dumps(line, allow_nan=False).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def _lines(self) -> list[dict[str, Any]]:
        """All lines; a last one that was torn by a kill is cut off."""
        raw = self.path.read_bytes()
        whole, _, torn = raw.rpartition(b"\n")
        if torn:
            os.truncate(self.path, len(raw) - len(torn))
        lines = [common.parse_json(line, f"{self.path}:{at}") for at, line in enumerate(whole.splitlines(), 1) if line]
        if lines and not all(isinstance(line, dict) and "event" in line for line in lines):
            raise DashboardError(f"{self.path}: not a bisection journal. Use --fresh to start over.")
        return lines
