"""The imports that stand in a file, whenever they are executed."""

from __future__ import annotations

import ast
import contextlib
import functools
import gc
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Import:
    """One import: the module `name`, at `place`, executed on import of its file where `eager`."""

    name: str
    place: str
    eager: bool

    @property
    def package(self) -> str:
        return self.name.split(".")[0]


@functools.cache
def imports_in(path: Path) -> tuple[Import, ...]:
    with gc_paused():
        return tuple(_imports(ast.parse(path.read_text(encoding="utf-8"), str(path)), path, eager=True))


@contextlib.contextmanager
def gc_paused() -> Iterator[None]:
    """A tree is a million objects, none of them garbage: looking for that costs three times as much as parsing."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _imports(node: ast.AST, path: Path, *, eager: bool) -> Iterator[Import]:
    for child in _statements(node):
        place = f"{path}:{getattr(child, 'lineno', 0)}"
        if isinstance(child, ast.Import):
            yield from (Import(alias.name, place, eager) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"{place}: a relative import. Write the whole name."
            yield from (Import(f"{child.module}.{alias.name}", place, eager) for alias in child.names)
        else:
            inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) or _is_for_types(child)
            yield from _imports(child, path, eager=eager and not inside)


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """What stands in it: an import is never part of an expression, of which a module consists for the most part."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        below = getattr(node, name, ())
        if isinstance(below, list):
            yield from below


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def modules_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)
