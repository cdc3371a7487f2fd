"""code_changes.json, which an experiment on generated code leaves beside its graphs: both sides of each change."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tvmdash.common.structured import Stamp

FILE = "code_changes.json"
SCHEMA_VERSION = 1
MOST_TEXTS, MOST_CHARACTERS = 200, 16 << 20
"""Limits of the texts of a night's functions: where TVM changes everywhere, nobody reads them all."""


@dataclass(frozen=True)
class FunctionSide:
    """A function on one TVM: `code` as generated (source or assembly), `tir` before that; empty where left out."""

    hash: str
    numbers: Mapping[str, int]
    code: str = ""
    tir: str = ""


@dataclass(frozen=True)
class ChangedFunction:
    """before, after: None where the function is not there. first_pass: whose output differs first, or `why_not`."""

    name: str
    before: FunctionSide | None
    after: FunctionSide | None
    first_pass: str = ""
    why_not: str = ""

    @property
    def size(self) -> int:
        """Return the characters of all its texts."""
        return sum(len(side.code) + len(side.tir) for side in (self.before, self.after) if side)

    def without_texts(self) -> ChangedFunction:
        sides = [side and replace(side, code="", tir="") for side in (self.before, self.after)]
        return replace(self, before=sides[0], after=sides[1])


@dataclass(frozen=True)
class OtherBuild:
    """The TVM that tonight's is compared with: its artifact's key and its version."""

    build: str
    version: str


@dataclass(frozen=True)
class ChangedPoint:
    """A point with changed functions, what needs to be seen first; `values` are those of its axes."""

    workload: str
    values: Mapping[str, Any]
    since: OtherBuild
    functions: tuple[ChangedFunction, ...]


@dataclass(frozen=True)
class CodeChanges:
    """The changed functions of the night `stamp`."""

    stamp: Stamp
    points: tuple[ChangedPoint, ...]


def bound_texts(points: Sequence[ChangedPoint]) -> tuple[ChangedPoint, ...]:
    """Drop texts of functions beyond the limits: the first of each point before any second."""
    ranks = sorted((rank, at) for at, point in enumerate(points) for rank in range(len(point.functions)))
    sizes = itertools.accumulate(points[at].functions[rank].size for rank, at in ranks)
    within = itertools.takewhile(lambda item: item[1] <= MOST_CHARACTERS, zip(ranks[:MOST_TEXTS], sizes, strict=False))
    kept = {(at, rank) for (rank, at), _ in within}
    return tuple(
        replace(
            point,
            functions=tuple(
                function if (at, rank) in kept else function.without_texts()
                for rank, function in enumerate(point.functions)
            ),
        )
        for at, point in enumerate(points)
    )
