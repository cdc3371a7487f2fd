"""The detector's questions, answered from what was measured; what is lacking is noted, so that it can be measured.

The detector asks for one value after the other, and what it asks for next depends on the answer. Runs are dear and many
series ask at once. So a question without an answer is answered as if the night in question came out again as it did
then; the detector goes on, and some steps ahead are known. Decisions made on such answers are thrown away.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from judging.evidence import Evidence
from judging.table import Table

from tvmdash import records
from tvmdash.series.naming import id_of
from tvmdash.verdict.remeasured import RatioRun


@dataclass(frozen=True)
class Wanted:
    """One run: an experiment with the artifact of a night, for the points of these series.

    beside: the night and the artifact that is measured in turn with it, both empty where it is measured alone.
    """

    experiment: str
    stamp: str
    artifact: str
    series: tuple[str, ...]
    beside: tuple[str, str] = ("", "")


@dataclass
class Asking:
    """A FleetRerun over `evidence`, `depth` steps ahead for each series.

    only: none but these series get steps ahead (None: all). silent: what is asked for these is not answered at all.
    wants: after a pass, the nights that each series lacks, in order; wants_pairs: the two nights whose artifacts it
    wants to be measured in turn. stalled: who asked for more than there was.
    """

    table: Table
    evidence: Evidence
    depth: int
    only: AbstractSet[str] | None = None
    silent: AbstractSet[str] = frozenset()
    wants: dict[str, list[str]] = field(default_factory=dict)
    wants_pairs: dict[str, tuple[str, str]] = field(default_factory=dict)
    stalled: set[str] = field(default_factory=set)
    asked: dict[str, list[str]] = field(default_factory=dict)
    _served: Counter[tuple[str, str]] = field(default_factory=Counter)
    _rows: Mapping[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self._rows = {row.key: index for index, row in enumerate(self.table.rows)}

    def __call__(self, series: str, night: int, count: int) -> Sequence[float]:
        values: list[float] = []
        while len(values) < count and (value := self._one(series, night)) is not None:
            values.append(value)
        return values

    def _one(self, series: str, night: int) -> float | None:
        experiment = self.table.rows[self._rows[series]].experiment
        stamp = self.table.stamps[night]
        self.asked.setdefault(series, []).append(stamp)
        artifact = self.artifact(experiment, stamp)
        if series in self.silent or artifact is None:
            return None
        values = self.evidence.values(id_of(series), artifact)
        at = self._served[series, artifact]
        if at < len(values):
            self._served[series, artifact] += 1
            return values[at]
        if self.evidence.lack(id_of(series), experiment, artifact) is not None:
            return None
        return self._ahead(series, night, stamp)

    def pairs(self, series: str, new: int, old: int, count: int) -> Sequence[RatioRun]:
        """Return `count` runs of the artifacts of two nights in turn, or as many as there are."""
        experiment = self.table.rows[self._rows[series]].experiment
        stamps = (self.table.stamps[new], self.table.stamps[old])
        artifacts = [self.artifact(experiment, stamp) for stamp in stamps]
        if series in self.silent or None in artifacts or artifacts[0] == artifacts[1]:
            return ()
        self.asked.setdefault(series, []).extend(stamps)
        tonight, before = (artifact or "" for artifact in artifacts)
        runs = self.evidence.ratios(id_of(series), tonight, before)
        if len(runs) < count and self.evidence.lack(id_of(series), experiment, tonight, before) is None:
            if self.depth and (self.only is None or series in self.only):
                self.wants_pairs[series] = stamps
            else:
                self.stalled.add(series)
        return runs[:count]

    @property
    def wants_any(self) -> bool:
        return bool(self.wants or self.wants_pairs)

    def _ahead(self, series: str, night: int, stamp: str) -> float | None:
        wanted = self.wants.get(series, [])
        if len(wanted) >= self.depth or not (self.only is None or series in self.only):
            self.stalled.add(series)
            return None
        self.wants[series] = [*wanted, stamp]
        value = float(self.table.measured_values[self._rows[series], night - self.table.offset])
        return value if math.isfinite(value) else None

    def rounds(self) -> Iterator[Wanted]:
        """Plan the runs wanted: step by step, in each step the series that share an experiment and an artifact."""
        for step in range(max(map(len, self.wants.values()), default=0)):
            together: dict[tuple[str, str], tuple[str, list[str]]] = {}
            for series, stamps in self.wants.items():
                if step < len(stamps):
                    experiment = self.table.rows[self._rows[series]].experiment
                    artifact = self.artifact(experiment, stamps[step]) or ""
                    together.setdefault((experiment, artifact), (stamps[step], []))[1].append(series)
            for (experiment, artifact), (stamp, members) in together.items():
                yield Wanted(experiment, stamp, artifact, tuple(members))

        in_turn: dict[tuple[str, tuple[str, str]], list[str]] = {}
        for series, both in self.wants_pairs.items():
            experiment = self.table.rows[self._rows[series]].experiment
            in_turn.setdefault((experiment, both), []).append(series)
        for (experiment, (new, old)), members in in_turn.items():
            tonight, before = (self.artifact(experiment, stamp) or "" for stamp in (new, old))
            yield Wanted(experiment, new, tonight, tuple(members), (old, before))

    def points(self, wanted: Wanted) -> list[dict[str, Any]]:
        """Return the identities of the points that those series are of, each once."""
        points: dict[str, dict[str, Any]] = {}
        for series in wanted.series:
            point = point_of(self.table.rows[self._rows[series]].labels)
            points[json.dumps(point, sort_keys=True)] = point
        return list(points.values())

    def metrics(self, wanted: Wanted) -> list[str]:
        """List the metrics of those series; none of a foreign number, which has no such name."""
        rows = (self.table.rows[self._rows[series]] for series in wanted.series)
        return sorted({row.metric for row in rows if "path" not in row.labels})

    def artifact(self, experiment: str, stamp: str) -> str | None:
        """Return the artifact measured on that night; None where it is not recorded."""
        return self.table.build(experiment, self.table.index_of(stamp)).artifact


IDENTITY = tuple(name for name in records.IDENTITY if name not in {"env_name", "hw_model"})


def point_of(labels: Mapping[str, Any]) -> dict[str, Any]:
    """Identify the point of a series in a request; a foreign number by its path."""
    if "path" in labels:
        return {"path": labels["path"]}
    return {name: labels.get(name) for name in IDENTITY}
