"""Generated code, kept for each TVM build: numbers, texts and passes of every point, to compare builds.

    $TVMDASH_CODE/ARTIFACT_KEY/POINT.json.gz     and     $TVMDASH_CODE/order.json, the builds as they were measured

POINT is a hash of the point and of this experiment's own code: other code of the experiment finds nothing kept.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from generated import Generated
from parting import names_before
from tracing import MAIN

from tvmdash import common
from tvmdash.common.files import trees
from tvmdash.exp_templates import Point
from tvmdash.relax_util import tvm_facts

VARIABLE = "TVMDASH_CODE"
ORDER = "order.json"
BUILDS_KEPT = 6


@dataclass(frozen=True)
class KeptFunction:
    """A function: its hash, its numbers, its text as code and, where it is known, as TIR before code generation.

    `main`, the program that calls the others, has planned memory alone; its text is Relax and stands under `tir`.
    """

    hash: str
    numbers: Mapping[str, int]
    code: str
    tir: str = ""


@dataclass(frozen=True)
class KeptCode:
    """A point on one TVM build. is_stable: whether another process had the same hashes, None before there was one."""

    version: str
    numbers: Mapping[str, int]
    functions: Mapping[str, KeptFunction]
    steps: tuple[tuple[str, Mapping[str, str]], ...]
    is_stable: bool | None = None

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> KeptCode:
        """Read what `asdict` made, written by this very code."""
        functions = {name: KeptFunction(**function) for name, function in value["functions"].items()}
        steps = tuple((name, made) for name, made in value["steps"])
        return cls(value["version"], value["numbers"], functions, steps, value["is_stable"])


@dataclass(frozen=True)
class Keep:
    """The folder of all builds, and the key of the build of this process."""

    root: Path
    build: str

    @classmethod
    def of_environment(cls) -> Keep | None:
        """Find where the night keeps them; None outside of nights."""
        root = os.environ.get(VARIABLE)
        return cls(Path(root), os.environ.get("TVMDASH_ARTIFACT") or f"by-hand-{tvm_facts().version}") if root else None

    def read(self, build: str, point: Point) -> KeptCode | None:
        """Return None where the point is not kept of that build."""
        path = self._path(build, point)
        if not path.exists():
            return None
        return KeptCode.from_json(json.loads(gzip.decompress(path.read_bytes())))

    def write(self, point: Point, generated: Generated) -> KeptCode:
        """Keep what this process's build made of the point."""
        known, made = self.read(self.build, point), _kept(generated)
        if known is not None:
            same = [[*step] for step in known.steps] == [[*step] for step in made.steps]
            made = replace(made, is_stable=same and known.is_stable is not False)
        path = self._path(self.build, point)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(asdict(made), sort_keys=True)
        # without the time, the same code is the same file
        common.write_bytes(path, gzip.compress(text.encode(), mtime=0))
        return made

    def begin(self, reference: str = "") -> None:
        """Say that this process's build is being measured; forget builds that were, long ago, but not the reference."""
        order = self._order()
        if order[-1:] != [self.build]:
            self.root.mkdir(parents=True, exist_ok=True)
            order = [*order, self.build][-10 * BUILDS_KEPT :]
            common.write_json(self.root / ORDER, order)
        kept = [*list(dict.fromkeys(reversed(order)))[:BUILDS_KEPT], reference]
        for folder in self.root.iterdir():
            if folder.is_dir() and folder.name not in kept:
                trees.remove(folder)

    def previous(self) -> str | None:
        """Return the build that was measured before this one."""
        return next((build for build in reversed(self._order()) if build != self.build), None)

    def _order(self) -> list[str]:
        path = self.root / ORDER
        return list(common.read_json(path)) if path.exists() else []

    def _path(self, build: str, point: Point) -> Path:
        named = json.dumps([point.workload, dict(point.values), point.target, _own_code()], sort_keys=True)
        return self.root / build / f"{hashlib.sha256(named.encode()).hexdigest()[:16]}.json.gz"


@functools.cache
def _own_code() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _kept(generated: Generated) -> KeptCode:
    texts = generated.trace.read_texts()
    functions = {
        name: KeptFunction(function.hash, function.numbers, function.text, _find_tir(name, texts))
        for name, function in generated.functions.items()
    }
    planned = generated.planned_memory_bytes
    memory = {} if planned is None else {"planned_memory": planned}
    functions[MAIN] = KeptFunction(str(planned), memory, "", generated.trace.read_program())
    return KeptCode(tvm_facts().version, {**generated.numbers, **memory}, functions, tuple(generated.trace.steps))


def _find_tir(function: str, texts: Mapping[str, str]) -> str:
    return next((texts[name] for name in names_before(function) if name in texts), "")
