"""The imports that stand in a file, whenever they are executed."""

from __future__ import annotations

import ast
import functools
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
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    return tuple(_imports(tree, path, eager=True))


def _imports(node: ast.AST, path: Path, *, eager: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        place = f"{path}:{getattr(child, 'lineno', 0)}"
        if isinstance(child, ast.Import):
            yield from (Import(alias.name, place, eager) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"{place}: a relative import. Write the whole name."
            yield from (Import(f"{child.module}.{alias.name}", place, eager) for alias in child.names)
        else:
            inside = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) or _is_for_types(child)
            yield from _imports(child, path, eager=eager and not inside)


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def modules_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)
