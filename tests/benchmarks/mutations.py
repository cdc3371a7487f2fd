"""How many planted faults tests find: `tests/python.sh tests/benchmarks/mutations.py CHECKOUT [--seed N] [--only K]`.

Faults are drawn by the seed from product Python: a third are thresholds (a number that has a name, or is a rule of the
judge, times or by five), the others as many of each kind that `_mutate` knows. Each is written into a copy of the
checkout, where the tests that reach the file run, the nearest first and cheap before dear ones, until one fails that
passes without the fault. Printed for each: the result, CPU seconds, the fault, the test that found it. `too long` means
that none had failed when the time was up: run those once more with a longer limit, or their own tests by hand. One
worker on two cores that others share: about an hour.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import itertools
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))
import changed
import nearest_first

PRODUCT = ("dashboard/", "experiments/", "shared/python/tvmdash/", "subsystem/")
RULES = "shared/python/tvmdash/judge/rules.py"
NO_THRESHOLD = re.compile("VERSION|CHUNK|.*(?<!MIN)_S$")
"""Names of versions, buffers and waits: a test of a wait would need a clock, or repeat the number."""
PIN = "tests/test_docs.py::test_the_rules_page_is_what_the_judge_decides_by"
"""It repeats each number of the judge, so it says nothing of whether one matters."""
TURNED: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
MOVED: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
EXCHANGED: Mapping[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
}


@dataclass(frozen=True)
class Fault:
    """The bytes of a file from `start`, which are `old`, become `new`."""

    file: str
    line: int
    start: int
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {' '.join(self.old.split()):.100} -> {' '.join(self.new.split()):.100}"

    def plant(self, checkout: Path) -> None:
        path = checkout / self.file
        text, old = path.read_bytes(), self.old.encode()
        assert text[self.start :].startswith(old), self
        path.write_bytes(text[: self.start] + self.new.encode() + text[self.start + len(old) :])


def draw_faults(checkout: Path, count: int, seed: int, without: Sequence[str]) -> list[Fault]:
    """A third of them thresholds; the others as many of each kind, wherever in the product that kind can be planted."""
    source = random.Random(seed)
    names = subprocess.run(["git", "ls-files", "*.py"], cwd=checkout, capture_output=True, text=True, check=True).stdout
    kinds: dict[str, list[Fault]] = defaultdict(list)
    for name in names.splitlines():
        left_out = name.startswith(tuple(without))
        if name.startswith(PRODUCT) and (name == RULES or not left_out):
            for kind, fault in find_faults(name, (checkout / name).read_text(encoding="utf-8")):
                if kind == "threshold" or not left_out:
                    kinds[kind].append(fault)
    drawn = source.sample(kinds.pop("threshold"), count // 3)
    queues = [source.sample(faults, len(faults)) for _, faults in sorted(kinds.items())]
    return drawn + [queues[number % len(queues)].pop() for number in range(count - len(drawn))]


def find_faults(name: str, text: str) -> Iterator[tuple[str, Fault]]:
    """All that can be planted in a file, with their kinds."""
    data, tree = text.encode(), ast.parse(text)
    lines = [0, *itertools.accumulate(map(len, data.splitlines(keepends=True)))]
    named = set(_thresholds_in(tree, rules=name == RULES))
    shown = {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    """Python 3.11 says wrong places of what is in an f-string."""
    for node in ast.walk(tree):
        for kind, part, new in _mutate(node, named):
            if part not in shown:
                start, end = lines[part.lineno - 1] + part.col_offset, lines[part.end_lineno - 1] + part.end_col_offset
                yield kind, Fault(name, part.lineno, start, data[start:end].decode(), new)


def _thresholds_in(tree: ast.Module, *, rules: bool) -> Iterator[ast.expr]:
    """The numbers that a constant of the module, a field of a class or a rule of the judge has for its value."""
    bodies = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]
    for node in itertools.chain(*bodies):
        target = node.target if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [None])[0]
        value = getattr(node, "value", None)
        if rules and isinstance(value, ast.Call) and value.args:
            value = value.args[0]
        if _is_number(value) and isinstance(target, ast.Name) and not NO_THRESHOLD.search(target.id):
            yield value


def _is_number(node: ast.AST | None) -> bool:
    """A number or a calculation with numbers, other than 0 and 1."""
    if not isinstance(node, (ast.Constant, ast.BinOp)):
        return False
    parts = [part for part in ast.walk(node) if isinstance(part, ast.expr) and not isinstance(part, ast.BinOp)]
    numbers = all(isinstance(part, ast.Constant) and type(part.value) in {int, float} for part in parts)
    return numbers and _value_of(node) not in {0, 1}


def _value_of(node: ast.AST) -> float:
    return eval(ast.unparse(node))  # of numbers and operators


def _change(node: ast.expr) -> str:
    """Five times the number, or a fifth of it: which, is by the line."""
    value = _value_of(node)
    if node.lineno % 2:
        return f"{value * 5}"
    return f"{max(1, value // 5) if isinstance(value, int) else value / 5}"


def _mutate(node: ast.AST, named: AbstractSet[ast.expr]) -> Iterator[tuple[str, ast.expr | ast.stmt, str]]:
    """What of a node can be another, and what that becomes, by kinds of faults."""
    if isinstance(node, ast.stmt):
        yield from _mutate_statement(node)
    elif isinstance(node, ast.expr):
        yield from _mutate_expression(node, named)


def _mutate_statement(node: ast.stmt) -> Iterator[tuple[str, ast.expr | ast.stmt, str]]:
    match node:
        case ast.If() if ast.unparse(node.test) != "TYPE_CHECKING":
            yield "condition", node.test, f"(not ({ast.unparse(node.test)}))"
        case ast.Expr(value=ast.Call() as call) if "log" not in ast.unparse(call.func).lower():
            yield "call dropped", node, "pass"
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield "no return", node, "pass"
        case ast.Raise():
            yield "no raise", node, "pass"


def _mutate_expression(node: ast.expr, named: AbstractSet[ast.expr]) -> Iterator[tuple[str, ast.expr, str]]:
    match node:
        case _ if node in named:
            yield "threshold", node, _change(node)
        case ast.Constant() if _is_number(node):
            yield "number", node, _change(node)
        case ast.Compare(ops=[op]) if type(op) in TURNED:
            yield "turned", node, f"({ast.unparse(ast.Compare(node.left, [TURNED[type(op)]()], node.comparators))})"
        case ast.Compare(ops=[op]) if type(op) in MOVED:
            yield "moved", node, f"({ast.unparse(ast.Compare(node.left, [MOVED[type(op)]()], node.comparators))})"
        case ast.BinOp(op=op) if type(op) in EXCHANGED and not isinstance(node.left, (ast.Constant, ast.JoinedStr)):
            yield "operator", node, f"({ast.unparse(ast.BinOp(node.left, EXCHANGED[type(op)](), node.right))})"
        case ast.BoolOp():
            other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield "joined", node, f"({ast.unparse(ast.BoolOp(other, node.values))})"
        case ast.IfExp():
            yield "condition", node.test, f"(not ({ast.unparse(node.test)}))"
        case ast.Call(args=[first, second, *_]) if not isinstance(first, ast.Starred):
            if not isinstance(second, ast.Starred) and type(first) is type(second):
                swapped = ast.Call(node.func, [second, first, *node.args[2:]], node.keywords)
                yield "swapped", node, ast.unparse(swapped)


def rank_tests(checkout: Path, name: str) -> list[str]:
    """The test modules that reach the file: first those that say its name, then by the steps that they need, and those
    whose path resembles the file's.
    """
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
    tests = [module for module in seen if Path(module).name.startswith("test_") and "tests/slow" not in module]
    word = re.compile(rf"\b{Path(name).stem}\b")
    return sorted(tests, key=lambda test: not word.search((checkout / test).read_text(encoding="utf-8")))


def _words_of(name: str) -> list[str]:
    return re.findall("[a-z]+", name.removesuffix(".py"))


@dataclass(frozen=True)
class Outcome:
    """What tests said of one fault."""

    result: str
    cpu_s: float
    by: str = ""


NEAR = 8
"""So many test modules run by themselves first: to import all of them takes longer than most need to fail."""


def try_fault(copy: Path, fault: Fault, tests: Sequence[str], limit_s: float) -> Outcome:
    """`found`, `survived`, `too long`, or `no test` where none reaches the file. The copy is sound again."""
    cpu_s, outcome = 0.0, Outcome("no test", 0.0)
    for part in (tests[:NEAR], tests[NEAR:]):
        if part and cpu_s < limit_s:
            outcome = _try_tests(copy, fault, part, limit_s - cpu_s)
            cpu_s += outcome.cpu_s
            if outcome.by:
                break
    return replace(outcome, cpu_s=cpu_s)


def _try_tests(copy: Path, fault: Fault, tests: Sequence[str], limit_s: float) -> Outcome:
    known = [PIN]
    cpu_s = 0.0
    while True:
        with _planted(copy, fault):
            code, said = _run_tests(copy, ["-x", *tests, *(f"--deselect={name}" for name in known)], limit_s)
        spent = re.search(r"^\d+\.\d$", said, re.MULTILINE)
        cpu_s += float(spent[0]) if spent else limit_s  # none where it was interrupted at its very end
        failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", said, re.MULTILINE)
        if code != pytest.ExitCode.TESTS_FAILED:
            return Outcome(RESULTS[code], cpu_s, failed[-1] if failed else "")
        if all(_fails(copy, failed[-1], limit_s, one) is (one is fault) for one in (None, fault)):
            return Outcome("found", cpu_s, failed[-1])
        known.append(failed[-1])


def _fails(copy: Path, test: str, limit_s: float, fault: Fault | None) -> bool:
    """Whether the test fails with that fault, or without any."""
    with _planted(copy, fault):
        return _run_tests(copy, [test], limit_s)[0] == pytest.ExitCode.TESTS_FAILED


@contextlib.contextmanager
def _planted(copy: Path, fault: Fault | None) -> Iterator[None]:
    sound = (copy / fault.file).read_bytes() if fault else b""
    if fault:
        fault.plant(copy)
    try:
        yield
    finally:
        if fault:
            (copy / fault.file).write_bytes(sound)


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
    parser.add_argument(
        "--without",
        nargs="*",
        default=[],
        metavar="START",
        help="of paths: of these files no fault is drawn, but for the judge's rules",
    )
    parser.add_argument("--list", action="store_true", help="show the faults, and plant none")
    parser.add_argument("--only", type=int, nargs="*", help="numbers of faults; by default all")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=float, default=240.0, metavar="CPU_S", help="of tests for each fault")
    parser.add_argument("--scratch", type=Path, default=Path("/tmp/mutations"))
    given = parser.parse_args()
    checkout = given.checkout.resolve()
    faults = draw_faults(checkout, given.count, given.seed, given.without)
    chosen = given.only or range(len(faults))
    if given.list:
        print(*(f"{number:3} {faults[number]}" for number in chosen), sep="\n")
        return
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
