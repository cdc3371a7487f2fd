"""Styles, vendored files and our scripts, which are modules in the sources and a few classic scripts in the site.

So pages work from disk, where a browser loads no module, and ask a server for few files.
"""

from __future__ import annotations

import functools
import posixpath
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

CLASSIC = frozenset({"start.js", "age.js", "need.js"})
START = "app.js"
_RUNTIME = "need.js"
_COMMENT = re.compile(r"^[ \t]*(?:/\*(?:(?!\*/).)*\*/|//[^\n]*)[ \t]*\n", re.MULTILINE | re.DOTALL)
_INDENT = re.compile(r"^[ \t]+", re.MULTILINE)
_IMPORT = re.compile(r'^import (\{[^}]*\}) from "(\.[\w./]+)";$', re.MULTILINE)
_IMPORT_LATER = re.compile(r'\bimport\("(\.[\w./]+)"\)(?!\.[A-Z])')  # not that of a type, in a comment
_EXPORT = re.compile(r"^export (?=(?:(?:async )?function\*?|const|class) (\w+))", re.MULTILINE)
_MODULE_WORD = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


@dataclass(frozen=True)
class Module:
    """A script by its name below js/, and the modules that it imports at once, and later."""

    name: str
    text: str

    @functools.cached_property
    def imports(self) -> set[str]:
        return {self._name(match[2]) for match in _IMPORT.finditer(self.text)}

    @functools.cached_property
    def imports_later(self) -> set[str]:
        return {self._name(match[1]) for match in _IMPORT_LATER.finditer(self.text)}

    def as_function(self) -> str:
        """Rewrite the module as a function of `need` that gives its exports; ValueError where its form is unknown."""
        exported = ", ".join(match[1] for match in _EXPORT.finditer(self.text))
        text = _IMPORT.sub(
            lambda match: f'const {match[1].replace(" as ", ": ")} = await need("{self._name(match[2])}");', self.text
        )
        text = _IMPORT_LATER.sub(lambda match: f'need("{self._name(match[1])}")', text)
        text = _EXPORT.sub("", text)
        left = _MODULE_WORD.search(text)
        if left:
            raise ValueError(f"static/js/{self.name}: {left[0]}: cannot be put into one script with the others.")
        return f"async (need) => {{\n{text}return {{ {exported} }};\n}}"

    def _name(self, path: str) -> str:
        return posixpath.normpath(posixpath.join(posixpath.dirname(self.name), path))


def copy_static(static: Path, new: Path) -> None:
    """Put `static` into the new site; of our scripts the bundles, without comments, a quarter of what would be sent."""
    modules: dict[str, Module] = {}
    for path in filter(Path.is_file, static.rglob("*")):  # copytree tells a full disk once for each file
        name = path.relative_to(static)
        (new / name).parent.mkdir(parents=True, exist_ok=True)
        if name.parts[0] != "js":
            if name.suffix == ".css" and len(name.parts) == 1:
                (new / name).write_text(shorten(path.read_text(encoding="utf-8")), encoding="utf-8")
            else:
                shutil.copyfile(path, new / name)
            continue
        module = Module(name.relative_to("js").as_posix(), shorten(path.read_text(encoding="utf-8")))
        if path.name not in CLASSIC:
            modules[module.name] = module
        elif path.name != _RUNTIME:
            (new / name).write_text(module.text, encoding="utf-8")
    runtime = shorten((static / "js" / _RUNTIME).read_text(encoding="utf-8"))
    for script, bundle in bundles(modules, START).items():
        (new / "js" / script).write_text(bundle + (runtime if script == START else ""), encoding="utf-8")


def shorten(text: str) -> str:
    """Drop comments that have lines for themselves, and indentation, of a script or style sheet."""
    return _INDENT.sub("", _COMMENT.sub("", text))


def bundles(modules: Mapping[str, Module], start: str) -> dict[str, str]:
    """Make a classic script of `start` and all that it imports, and one of each module that is imported later.

    Each has the module that it is named after and what that imports, but for what is certainly there already.
    """
    there: dict[str, set[str]] = {start: set()}
    waiting = [start]
    while waiting:
        name = waiting.pop()
        inside = _closure(modules, name)
        for later in {later for one in inside for later in modules[one].imports_later}:
            # it only shrinks, so this ends
            certain = (there[name] | inside) & there.get(later, there[name] | inside)
            if there.get(later) != certain:
                there[later] = certain
                waiting.append(later)
    return {name: _bundle(modules, sorted(_closure(modules, name) - certain)) for name, certain in there.items()}


def _closure(modules: Mapping[str, Module], name: str) -> set[str]:
    found: set[str] = set()
    waiting = [name]
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += modules[one].imports
    return found


def _bundle(modules: Mapping[str, Module], names: list[str]) -> str:
    parts = [f'modules["{name}"] ??= {modules[name].as_function()};\n' for name in names]
    return f'(function (modules) {{\n"use strict";\n{"".join(parts)}}})((globalThis.tvmdashModules ??= {{}}));\n'
