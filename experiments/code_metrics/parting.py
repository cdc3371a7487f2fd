"""The first pass whose output differs between two compilations of one module, as two traces tell it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

Steps = Sequence[tuple[str, Mapping[str, str]]]
CODE_GENERATION = "code generation"
MAIN = "main"
OTHER_HASHES = "these two TVMs hash the same input differently, so the outputs of their passes cannot be compared"
NO_TRACE = "the passes of one of the two compilations were not kept"
UNSTABLE = "the hashes of this module differ from process to process, as those of modules with symbolic shapes do"


@dataclass(frozen=True)
class Parting:
    """The first pass whose output differs, after so many `passes`; where that cannot be said, why_not."""

    name: str = ""
    passes: int = 0
    why_not: str = ""


class _Side:
    """One compilation so far: by function its hash and what it calls, and the step that it came with."""

    def __init__(self) -> None:
        self.known: dict[str, str] = {}
        self.came: dict[str, int] = {}

    def take(self, made: Mapping[str, str], at: int) -> None:
        self.known.update(made)
        for name in made:
            self.came.setdefault(name, at)


class _Walk:
    """Two compilations side by side. first: by function, the step after which it differs and goes on to."""

    def __init__(self) -> None:
        self.before, self.after = _Side(), _Side()
        self.first: dict[str, int] = {}

    def take(self, then: Steps, now: Steps, at: int) -> None:
        """Go on by a step that both have, or by steps that one of the two alone has."""
        for side, steps in ((self.before, then), (self.after, now)):
            for _, made in steps:
                side.take(made, at)
        for name in {name for _, made in (*then, *now) for name in made}:
            if self.before.known.get(name) == self.after.known.get(name):
                self.first.pop(name, None)
            else:
                self.first.setdefault(name, at)

    def find_origin(self, name: str, seen: frozenset[str] = frozenset()) -> int | None:
        """The step since which the function, or one that it calls, differs; None where they do not."""
        origins = [self._find_own(name)] if name in self.first else []
        if not origins:
            called = {text for side in (self.before, self.after) for text in side.known.get(name, "").split()[1:]}
            found = (self.find_origin(other, seen | {name}) for other in called - seen - {name})
            origins = [origin for origin in found if origin is not None]
        return min(origins, default=None)

    def _find_own(self, name: str) -> int:
        """A function that came as another one was made of another program, where the program differed before."""
        step, main = self.first[name], self.first.get(MAIN)
        came = min(side.came.get(name, step) for side in (self.before, self.after))
        return main if main is not None and came == step and main < step else step


def find_parting(before: Steps, after: Steps, function: str) -> Parting:
    """Where `function`, as the generated code calls it, first differs."""
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
    """The steps that both have one by one, and together those that one alone has."""
    old, new = ([name for name, _ in steps] for steps in (before, after))
    for kind, b0, b1, a0, a1 in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            yield from (([then], [now]) for then, now in zip(before[b0:b1], after[a0:a1], strict=True))
        else:
            yield before[b0:b1], after[a0:a1]


def names_before(function: str) -> list[str]:
    """What passes call it before code is generated of it."""
    bare = _ADDED.sub("", function.removeprefix("__tvm_ffi_"))
    return list(dict.fromkeys([function, bare]))


_ADDED = re.compile(r"_compute_$|_kernel(_\d+)?$")


def _bare(step: str) -> str:
    return step.rpartition(" #")[0] or step
