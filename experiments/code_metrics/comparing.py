"""Tonight's code beside that of another build: the reference's numbers, and the functions that are others."""

from __future__ import annotations

import functools
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generated import HOST_SIZE
from keeping import Keep, KeptCode, KeptFunction
from parting import CODE_GENERATION, UNSTABLE, Parting, find_parting
from tracing import MAIN

from tvmdash.exp_templates import Point
from tvmdash.experiment.paired.reference import Reference, read_reference
from tvmdash.records import code_changes, description
from tvmdash.records.code_changes import ChangedPoint, FunctionSide, OtherBuild

TIMEOUT_S = 3600.0
_log = logging.getLogger("code_metrics")


@dataclass(frozen=True)
class ComparedFunction:
    """A function that two builds made differently, or one of them not at all."""

    name: str
    before: KeptFunction | None
    after: KeptFunction | None
    parting: Parting

    def with_texts(self) -> code_changes.ChangedFunction:
        sides = [None if side is None else _texts(side) for side in (self.before, self.after)]
        return code_changes.ChangedFunction(self.name, sides[0], sides[1], self.parting.name, self.parting.why_not)

    def describe(self) -> dict[str, Any]:
        if self.parting.why_not:
            return {"name": self.name, "why_not": self.parting.why_not}
        return {"name": self.name, "first_pass": self.parting.name}


def _texts(side: KeptFunction) -> FunctionSide:
    return FunctionSide(side.hash, side.numbers, side.code, side.tir)


def compare(before: KeptCode, after: KeptCode) -> list[ComparedFunction]:
    """List the functions that differ: first those that a pass made differently, the text that moved the farthest first.

    Where one function is another, the compiler behind the passes may make another choice in those beside it; what calls
    kernels from the host comes behind them, and `main`, where it plans other memory, behind all.
    """
    names = before.functions.keys() | after.functions.keys()
    pairs = {name: (before.functions.get(name), after.functions.get(name)) for name in names}
    changed = [
        ComparedFunction(name, then, now, _find_parting(before, after, name))
        for name, (then, now) in pairs.items()
        if then is None or now is None or (then.hash, dict(then.numbers)) != (now.hash, dict(now.numbers))
    ]
    return sorted(changed, key=_order)


def _order(function: ComparedFunction) -> tuple[bool, bool, bool, float, str]:
    numbers = {name for side in (function.before, function.after) if side for name in side.numbers}
    behind = (function.name == MAIN, function.parting.name == CODE_GENERATION, HOST_SIZE in numbers)
    return *behind, -_distance(function), function.name


def _distance(function: ComparedFunction) -> float:
    """Return the distance of the two, as a share of their text."""
    sizes = [len(side.code) if side else 0 for side in (function.before, function.after)]
    return 1.0 if 0 in sizes else abs(sizes[0] - sizes[1]) / max(sizes)


def _find_parting(before: KeptCode, after: KeptCode, name: str) -> Parting:
    if before.is_stable is False or after.is_stable is False:
        return Parting(why_not=UNSTABLE)
    return find_parting(before.steps, after.steps, name)


def describe_others(
    keep: Keep, point: Point, now: KeptCode, wanted: Sequence[Mapping[str, Any]], seed: int
) -> dict[str, Any]:
    """Describe other builds for a record: the reference's numbers, and what changed since the build measured before.

    wanted: the points of this process, which the reference measures all at once where it has not yet.
    """
    facts: dict[str, Any] = {}
    reference = _reference()
    if reference is not None and reference.key != keep.build:
        _have_measured(keep, reference, wanted, seed)
        kept = keep.read(reference.key, point)
        if kept is not None:
            facts["paired"] = {"reference": dict(kept.numbers)}
    previous = keep.previous() or (reference.key if reference else None)
    before = keep.read(previous, point) if previous and previous != keep.build else None
    if before is not None and (changed := compare(before, now)):
        described = [function.describe() for function in changed]
        facts["changed"] = {"build": previous, "version": before.version, "functions": described}
    return facts


@functools.cache
def _reference() -> Reference | None:
    return read_reference()


def reference_key() -> str:
    """Return the artifact that tonight's is held against; empty where there is none."""
    reference = _reference()
    return reference.key if reference else ""


_asked: set[str] = set()


def _have_measured(keep: Keep, reference: Reference, wanted: Sequence[Mapping[str, Any]], seed: int) -> None:
    """Have the reference measure those of the points that are not kept of it; once in a process."""
    if reference.key in _asked:
        return
    _asked.add(reference.key)
    missing = [point for point in wanted if keep.read(reference.key, _point(point)) is None]
    if not missing:
        return
    argv = [sys.executable, str(Path(__file__).parent / "measuring.py")]
    asked = json.dumps({"points": missing, "seed": seed})
    done = subprocess.run(
        argv, input=asked, env=reference.environment(dict(os.environ)), capture_output=True, text=True, check=False,
        timeout=TIMEOUT_S,
    )  # fmt: skip
    if done.returncode or done.stderr:
        _log.warning("the reference %s: %s", reference.version, done.stderr.strip()[-1000:])


def _point(wanted: Mapping[str, Any]) -> Point:
    return Point(wanted["workload"], wanted["values"], "", wanted["target"])


def read_changes(keep: Keep, records: Sequence[Mapping[str, Any]]) -> Iterator[ChangedPoint]:
    """Yield both sides of each changed function, as text, for each record that has any."""
    for record in records:
        changed = record["additional_info"].get("changed")
        if not changed:
            continue
        labels = description.select_identity(record, record["additional_info"])
        values = {**labels["build_config"], **labels["workload_args"]}
        point = Point(record["workload"], values, "", record["target"])
        before, after = keep.read(changed["build"], point), keep.read(keep.build, point)
        if before is not None and after is not None:
            functions = tuple(function.with_texts() for function in compare(before, after))
            yield ChangedPoint(point.workload, values, OtherBuild(changed["build"], before.version), functions)
