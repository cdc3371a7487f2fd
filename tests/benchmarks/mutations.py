"""How many planted faults tests find: `tests/python.sh tests/benchmarks/mutations.py CHECKOUT [--seed N] [--only K]`.

Faults are drawn by the seed from product Python: a third are thresholds (a number that has a name, times or by five),
the others a comparison turned or moved by one, a condition negated, an operator exchanged, a value that is not
returned. Each is written into a copy of the checkout, where the tests that reach the file run, the nearest first,
until one fails. A fault that no test finds is printed with its place. Takes an hour or two on two cores.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import changed

PRODUCT = ("dashboard/", "shared/python/tvmdash/", "subsystem/")
PER_FAULT_S = 900.0
TURNED: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
EXCHANGED: Mapping[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
}


@dataclass(frozen=True)
class Fault:
    """`old`, an expression at that place of a file, becomes `new`."""

    file: str
    line: int
    column: int
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.old} -> {self.new}"

    def plant(self, checkout: Path) -> None:
        path = checkout / self.file
        lines = path.read_bytes().splitlines(keepends=True)
        line = lines[self.line - 1]
        old = self.old.encode()
        assert line[self.column : self.column + len(old)] == old, self
        lines[self.line - 1] = line[: self.column] + self.new.encode() + line[self.column + len(old) :]
        path.write_bytes(b"".join(lines))


def draw_faults(checkout: Path, count: int, seed: int) -> list[Fault]:
    """A third of them thresholds, at most one to a function."""
    source = random.Random(seed)
    names = subprocess.run(["git", "ls-files", "*.py"], cwd=checkout, capture_output=True, text=True, check=True).stdout
    files = [name for name in names.splitlines() if name.startswith(PRODUCT)]
    thresholds = [fault for name in files for fault in _find_thresholds(checkout, name)]
    others = [fault for name in files for fault in _find_others(checkout, name)]
    return [*source.sample(thresholds, count // 3), *source.sample(others, count - count // 3)]


def _find_thresholds(checkout: Path, name: str) -> Iterator[Fault]:
    text = (checkout / name).read_text(encoding="utf-8")
    for node in ast.parse(text).body:
        value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
        is_number = isinstance(value, ast.Constant) and type(value.value) in {int, float} and value.value not in {0, 1}
        target = node.target if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [None])[0]
        if (
            is_number
            and isinstance(target, ast.Name)
            and "VERSION" not in target.id
            and value.lineno == value.end_lineno
        ):
            old = ast.get_source_segment(text, value) or ""
            yield Fault(name, value.lineno, value.col_offset, old, f"{old} / 5" if "." in old else f"{old} * 5")


def _find_others(checkout: Path, name: str) -> Iterator[Fault]:
    text = (checkout / name).read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)):
        found = _mutate(node)
        if found and node.lineno == node.end_lineno:
            old = ast.get_source_segment(text, node) or ""
            yield Fault(name, node.lineno, node.col_offset, old, f"({found})")


def _mutate(node: ast.AST) -> str:
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in TURNED:
        return ast.unparse(ast.Compare(node.left, [TURNED[type(node.ops[0])]()], node.comparators))
    if isinstance(node, ast.BinOp) and type(node.op) in EXCHANGED and not isinstance(node.left, ast.Constant):
        return ast.unparse(ast.BinOp(node.left, EXCHANGED[type(node.op)](), node.right))
    if isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        return ast.unparse(ast.BoolOp(other, node.values))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return ast.unparse(node.operand)
    return ""


def rank_tests(checkout: Path, name: str) -> list[str]:
    """The test modules that reach the file, those that need the fewest steps first."""
    changed.REPO = checkout
    changed.ROOTS = {"dashboard": checkout, "tests": checkout, "tvmdash": checkout / "shared" / "python"}
    graph = changed.read_graph()
    users: dict[str, list[str]] = {}
    for user, used in graph.items():
        for other in used:
            users.setdefault(other, []).append(user)
    seen, front = [name], [name]
    while front:
        front = sorted({user for module in front for user in users.get(module, ())} - set(seen))
        seen += front
    return [module for module in seen if Path(module).name.startswith("test_") and "tests/slow" not in module]


def try_fault(checkout: Path, fault: Fault, scratch: Path, tests: list[str]) -> str:
    """`found`, `survived` or `too long`."""
    copy = scratch / f"{abs(hash(fault)):x}"
    subprocess.run(["git", "worktree", "add", "--quiet", "--detach", copy], cwd=checkout, check=True)
    try:
        fault.plant(copy)
        argv = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:randomly", "-m", "not slow", *tests]
        paths = f"{copy}:{copy}/shared/python"
        done = subprocess.run(
            argv,
            cwd=copy,
            capture_output=True,
            timeout=PER_FAULT_S,
            env={**os.environ, "PYTHONPATH": paths},
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "too long"
    finally:
        subprocess.run(["git", "worktree", "remove", "--force", copy], cwd=checkout, check=False)
        shutil.rmtree(copy, ignore_errors=True)
    return "survived" if done.returncode == 0 else "found"


def main() -> None:
    """Print a line for each fault and the sum."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--seed", type=int, default=20261127)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--only", type=int, nargs="*", help="numbers of faults; by default all")
    parser.add_argument("--scratch", type=Path, default=Path("/tmp/mutations"))
    given = parser.parse_args()
    checkout = given.checkout.resolve()
    faults = draw_faults(checkout, given.count, given.seed)
    chosen = given.only or range(len(faults))
    ranked = {number: rank_tests(checkout, faults[number].file) for number in chosen}
    given.scratch.mkdir(parents=True, exist_ok=True)
    results = {}

    def one(number: int) -> None:
        begun = time.monotonic()
        results[number] = try_fault(checkout, faults[number], given.scratch, ranked[number])
        print(f"{number:3} {results[number]:9} {time.monotonic() - begun:5.0f} s  {faults[number]}", flush=True)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(one, chosen))
    print({result: list(results.values()).count(result) for result in sorted(set(results.values()))})


if __name__ == "__main__":
    main()
