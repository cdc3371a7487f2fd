"""How many planted faults tests find: `tests/python.sh tests/benchmarks/mutations.py CHECKOUT [--seed N] [--only K]`.

Faults are drawn by the seed from product Python: a third are thresholds (a number that has a name, times or by five),
the others a comparison turned or moved by one, a condition negated, an operator exchanged, a value that is not
returned. Each is written into a copy of the checkout, where the tests that reach the file run, the nearest first and
cheap before dear ones, until one fails that passes without the fault. Printed for each: the result, CPU seconds, the
fault, the test that found it. `too long` means that none had failed when the time was up. One worker on two cores that
others share: about an hour.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))
import changed
import nearest_first

PRODUCT = ("dashboard/", "shared/python/tvmdash/", "subsystem/")
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
    """The test modules that reach the file: by the steps that they need, then those whose path resembles the file's."""
    changed.REPO = checkout
    changed.ROOTS = {"dashboard": checkout, "tests": checkout, "tvmdash": checkout / "shared" / "python"}
    users: dict[str, list[str]] = {}
    for user, used in changed.read_graph().items():
        for other in used:
            users.setdefault(other, []).append(user)
    words, seen, front = set(_words_of(name)), [name], [name]
    while front:
        nearer = {user for module in front for user in users.get(module, ())} - set(seen)
        front = sorted(nearer, key=lambda user: (-len(words.intersection(_words_of(user))), user))
        seen += front
    return [module for module in seen if Path(module).name.startswith("test_") and "tests/slow" not in module]


def _words_of(name: str) -> list[str]:
    return re.findall("[a-z]+", name.removesuffix(".py"))


@dataclass(frozen=True)
class Outcome:
    """What tests said of one fault."""

    result: str
    cpu_s: float
    by: str = ""


def try_fault(copy: Path, fault: Fault, tests: Sequence[str], limit_s: float) -> Outcome:
    """`found`, `survived`, `too long`, or `no test` where none reaches the file. The copy is left as it was."""
    known: list[str] = []
    cpu_s = 0.0
    while True:
        sound = (copy / fault.file).read_bytes()
        fault.plant(copy)
        try:
            code, said = _run_tests(copy, ["-x", *tests, *(f"--deselect={name}" for name in known)], limit_s)
        finally:
            (copy / fault.file).write_bytes(sound)
        cpu_s += float(said.splitlines()[-1])
        if code != pytest.ExitCode.TESTS_FAILED:
            return Outcome(RESULTS[code], cpu_s)
        failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", said, re.MULTILINE)[-1]
        if _run_tests(copy, [failed], limit_s)[0] == pytest.ExitCode.OK:
            return Outcome("found", cpu_s, failed)
        known.append(failed)


HANGS = 10
"""A fault may make a program wait for ever: so many times the limit is the end by the clock, too."""
RESULTS: Mapping[int, str] = {
    pytest.ExitCode.OK: "survived",
    pytest.ExitCode.INTERRUPTED: "found",  # a test module could not be imported
    pytest.ExitCode.NO_TESTS_COLLECTED: "no test",
    nearest_first.OUT_OF_TIME: "too long",
}


def _run_tests(copy: Path, arguments: Sequence[str], limit_s: float) -> tuple[int, str]:
    options = ["-q", "-n", "0", "-m", "not slow", "--hypothesis-seed=0", "--tb=no", "-rfE"]
    run = subprocess.Popen(
        [sys.executable, "-P", Path(__file__).with_name("nearest_first.py"), f"{limit_s}", *options, *arguments],
        cwd=copy,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{copy}:{copy}/shared/python"},
    )
    try:
        said, _ = run.communicate(timeout=HANGS * limit_s)
    except subprocess.TimeoutExpired:
        run.send_signal(signal.SIGINT)  # pytest ends what the test has started, and says what all has cost
        said, _ = run.communicate()
        return nearest_first.OUT_OF_TIME, said
    return run.returncode, said


def main() -> None:
    """Print a line for each fault and the sum."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--seed", type=int, default=20261127)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--only", type=int, nargs="*", help="numbers of faults; by default all")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=float, default=240.0, metavar="CPU_S", help="of tests for each fault")
    parser.add_argument("--scratch", type=Path, default=Path("/tmp/mutations"))
    given = parser.parse_args()
    checkout = given.checkout.resolve()
    faults = draw_faults(checkout, given.count, given.seed)
    chosen = given.only or range(len(faults))
    ranked = {number: rank_tests(checkout, faults[number].file) for number in chosen}
    given.scratch.mkdir(parents=True, exist_ok=True)
    copies: SimpleQueue[Path] = SimpleQueue()
    results: Counter[str] = Counter()

    def one(number: int) -> None:
        copy = copies.get()
        outcome = try_fault(copy, faults[number], ranked[number], given.limit)
        copies.put(copy)
        results[outcome.result] += 1
        print(f"{number:3} {outcome.result:9} {outcome.cpu_s:5.0f} s  {faults[number]}  {outcome.by}", flush=True)

    with tempfile.TemporaryDirectory(dir=given.scratch) as scratch, ThreadPoolExecutor(given.workers) as pool:
        for number in range(given.workers):
            copies.put(Path(scratch) / str(number))
            git = ["git", "worktree", "add", "--quiet", "--detach", f"{scratch}/{number}", "HEAD"]
            subprocess.run(git, cwd=checkout, check=True)
        list(pool.map(one, chosen))
    subprocess.run(["git", "worktree", "prune"], cwd=checkout, check=True)
    print(*(f"{result}: {count}" for result, count in sorted(results.items())), sep=", ")


if __name__ == "__main__":
    main()
