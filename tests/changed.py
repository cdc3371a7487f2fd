"""Prints the test modules that a change since a git revision can reach: `tests/python.sh tests/changed.py REVISION`.

A test module reaches what it imports, what that imports, and so on; a string that names a module counts as an import,
and so does one of a test that names the folder of a job, since that is how tests start programs. A file that is no
Python reaches who reaches a module of its folder. What nothing reaches by imports (settings of tools, requirements,
what all tests share) runs everything.
"""

from __future__ import annotations

import functools
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from types import CodeType

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tests.imports import imports_in, modules_of

REPO = Path(__file__).resolve().parent.parent
ROOTS = {
    "dashboard": REPO,
    "tests": REPO,
    "tvmdash": REPO / "shared" / "python",
    "tvmtraces": REPO / "shared" / "python",
}
"""The folder that each package is imported from."""
JOBS = ("experiments", "subsystem")
OF_JOBS = ("benchmarks", "browser", "experiments", "github", "slow", "subsystem")
"""Folders of tests in which the bare name of a job means that job; elsewhere jobs of the tests have such names."""
EVERYTHING = (
    "tests/conftest.py",
    "tests/run.sh",
    "tests/requirements",
    "requirements",
    "pyproject.toml",
    "shared/bash/",
)
MESSAGES = "tests/golden/messages/"
ALWAYS = ("tests/test_docs.py", "tests/test_layers.py")
"""These walk the whole tree."""


def list_changed(revision: str) -> set[str]:
    """Names of files, relative to the repository."""
    commands = (["diff", "--name-only", revision], ["ls-files", "--others", "--exclude-standard"])
    done = [subprocess.run(["git", *words], cwd=REPO, capture_output=True, text=True, check=True) for words in commands]
    return {name for one in done for name in one.stdout.splitlines()}


def find_reached(changed: AbstractSet[str], graph: Mapping[str, AbstractSet[str]] | None = None) -> set[str]:
    """The test modules that one of these files can make fail."""
    graph = graph or read_graph()
    users: dict[str, set[str]] = defaultdict(set)
    for name, used in graph.items():
        for other in used:
            users[other].add(name)
    reached, front = set(ALWAYS), [module for name in changed for module in _modules_at(name, graph)]
    while front:
        name = front.pop()
        if name not in reached:
            reached.add(name)
            front += users[name]
    return reached


def _modules_at(name: str, graph: Mapping[str, AbstractSet[str]]) -> list[str]:
    """The module of that name; else those of the nearest folder that holds any, else who names the folder in a test."""
    if name in graph:
        return [name]
    if name.startswith(MESSAGES) and (REPO / name).exists():
        return [(REPO / name).read_text(encoding="utf-8").split()[3].partition("::")[0]]  # which the first line names
    for folder in list(Path(name).parents)[:-1]:
        below = [module for module in graph if folder in Path(module).parents]
        if below:
            return below
    tests = [module for module in graph if module.startswith("tests/")]
    return [module for module in tests if Path(name).parts[0] in _strings_in(REPO / module)]


@functools.cache
def read_graph() -> dict[str, frozenset[str]]:
    """For each Python file of the repository those that it names, all relative to the repository."""
    named = _names_of_modules()
    jobs = _files_of_jobs()
    paths = {path for package, root in ROOTS.items() for path in modules_of(root / package)}
    paths |= {REPO / name for files in jobs.values() for name in files}
    return {_relative(path): frozenset(_find_used(path, named, jobs) - {_relative(path)}) for path in paths}


def _find_used(path: Path, named: Mapping[str, str], jobs: Mapping[str, frozenset[str]]) -> set[str]:
    words = {part for found in imports_in(path) for part in (found.name, found.name.rpartition(".")[0])}
    words |= {text for text in _strings_in(path) if "." in text}  # what is imported only once a verb needs it
    used = {named[word] for word in words if word in named}
    job = path.relative_to(REPO).parts
    if job[0] in JOBS:
        return used | jobs[job[1]]
    if job[0] == "tests":
        strings = _strings_in(path)
        used |= {named[word] for word in strings if word in named}
        whole = job[1] in OF_JOBS
        used |= {
            file
            for name in jobs
            if (name if whole else f"{_kind_of(jobs[name])}/{name}") in strings
            for file in jobs[name]
        }
    return used


@functools.cache
def _strings_in(path: Path) -> frozenset[str]:
    """The literals of its code, taken from what it compiles to: that takes a third of a walk over its syntax."""
    waiting: list[object] = [compile(path.read_text(encoding="utf-8"), str(path), "exec", dont_inherit=True)]
    strings = set[str]()
    while waiting:
        held = waiting.pop()
        if isinstance(held, str):
            strings |= {held, *held.split("/")}
        elif isinstance(held, CodeType):
            waiting += held.co_consts
        elif isinstance(held, tuple | frozenset):
            waiting += held
    return frozenset(strings)


def _names_of_modules() -> dict[str, str]:
    named = {}
    for package, root in ROOTS.items():
        for path in modules_of(root / package):
            parts = path.relative_to(root).with_suffix("").parts
            named[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = _relative(path)
    return named


def _files_of_jobs() -> dict[str, frozenset[str]]:
    folders = [folder for kind in JOBS for folder in (REPO / kind).iterdir() if folder.is_dir()]
    return {folder.name: frozenset(map(_relative, modules_of(folder))) for folder in folders}


def _kind_of(files: AbstractSet[str]) -> str:
    return next(iter(files)).split("/")[0]


def _relative(path: Path) -> str:
    return path.relative_to(REPO).as_posix()


def main() -> None:
    """Print `tests` where all of them are reached."""
    files = list_changed(sys.argv[1])
    if any(name.startswith(EVERYTHING) for name in files):
        print("tests")
        return
    reached = find_reached(files)
    print(*sorted(name for name in reached if Path(name).name.startswith("test_") and (REPO / name).exists()), sep="\n")


if __name__ == "__main__":
    main()
