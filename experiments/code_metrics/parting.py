"""The first pass whose output differs between two compilations of one module, as two traces tell it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tracing import GONE, MAIN

Steps = Sequence[tuple[str, Mapping[str, str]]]
CODE_GENERATION = "code generation"
OTHER_HASHES = "these two TVMs hash the same input differently, so the outputs of their passes cannot be compared"
NO_TRACE = "the passes of one of the two compilations were not kept"
UNSTABLE = "the hashes of this module differ from process to process, as those of modules with symbolic shapes do"


@dataclass(frozen=True)
class Parting:
    """The first pass whose output differs, after so many `passes`; where that cannot be said, why_not."""

    name: str = ""
    passes: int = 0
    why_not: str = ""


class _PartedSide:
    """One compilation so far: by function its hash and what it calls."""

    def __init__(self) -> None:
        self.known: dict[str, str] = {}

    def has(self, name: str) -> bool:
        return self.known.get(name, GONE) != GONE

    def called(self, name: str) -> set[str]:
        return set(self.known.get(name, "").split()[1:])


class _Walk:
    """Two compilations side by side.

    first: by function, the step after which it differs and goes on to. new: those that came or went with that step.
    """

    def __init__(self) -> None:
        self.before, self.after = _PartedSide(), _PartedSide()
        self.first: dict[str, int] = {}
        self.new: set[str] = set()

    def take(self, then: Steps, now: Steps, at: int) -> None:
        """Go on by a step that both have, or by steps that one of the two alone has."""
        names = {name for _, made in (*then, *now) for name in made}
        were = {name for name in names if self.before.has(name) and self.after.has(name)}
        for side, steps in ((self.before, then), (self.after, now)):
            for _, made in steps:
                side.known.update(made)
        for name in names:
            self._hold_against(name, at, was_there=name in were)

    def _hold_against(self, name: str, at: int, *, was_there: bool) -> None:
        then, now = (side.known.get(name, GONE) for side in (self.before, self.after))
        if then != now and name not in self.first:
            self.first[name] = at
            self.new |= set() if was_there and GONE not in (then, now) else {name}
        elif then == now != GONE:  # passes on the host's functions alone take the others away for a while
            self.first.pop(name, None)
            self.new.discard(name)

    def find_origin(self, name: str, seen: frozenset[str] = frozenset()) -> int | None:
        """Find the step since which the function, or one that it calls, differs; None where they do not."""
        origins = [self._find_own(name)] if name in self.first else []
        if not origins:
            found = (self.find_origin(other, seen | {name}) for other in self._called(name) - seen - {name})
            origins = [origin for origin in found if origin is not None]
        return min(origins, default=None)

    def _find_own(self, name: str) -> int:
        """Find the step of the function itself; of one that came or went, of what differed before: program, or parts.

        Its parts are what it calls, and what the functions call that share one of these with it: other fusion.
        """
        if name not in self.new:
            return self.first[name]
        parts = self._called(name)
        fused = {other for side in (self.before, self.after) for other in side.known if parts & side.called(other)}
        every = {name, MAIN}.union(*(self._called(other) for other in fused - {MAIN}))
        return min(self.first[other] for other in every if other in self.first)

    def _called(self, name: str) -> set[str]:
        return self.before.called(name) | self.after.called(name)


def find_parting(before: Steps, after: Steps, function: str) -> Parting:
    """Find the pass after which `function`, as the generated code calls it, first differs."""
    if not before or not after:
        return Parting(why_not=NO_TRACE)
    if before[0] != after[0]:
        return Parting(why_not=OTHER_HASHES)
    walk, names, passed = _Walk(), names_before(function), list[str]()
    for then, now in _align(before, after):
        walk.take(then, now, len(passed))
        passed.append((now or then)[-1][0])
        origins = [origin for name in names if (origin := walk.find_origin(name)) is not None]
        if origins:
            return Parting(_bare(passed[min(origins)]), min(origins))
    return Parting(CODE_GENERATION, len(after))


def _align(before: Steps, after: Steps) -> Iterator[tuple[Steps, Steps]]:
    """Yield the steps that both have one by one, and together those that one alone has."""
    old, new = ([name for name, _ in steps] for steps in (before, after))
    for kind, b0, b1, a0, a1 in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            yield from (([then], [now]) for then, now in zip(before[b0:b1], after[a0:a1], strict=True))
        else:
            yield before[b0:b1], after[a0:a1]


def names_before(function: str) -> list[str]:
    """Name the function as passes call it, before code is generated of it."""
    bare = _ADDED.sub("", function.removeprefix("__tvm_ffi_"))
    return list(dict.fromkeys([function, bare]))


_ADDED = re.compile(r"_compute_$|_kernel(_\d+)?$")


def _bare(step: str) -> str:
    return step.rpartition(" #")[0] or step
