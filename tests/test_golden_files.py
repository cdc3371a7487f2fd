"""Golden files: what differs fails with its diff, --update writes them anew, CI refuses it; sentences stay in them."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import golden_files
import pytest

from tests.imports import gc_paused

TESTS = Path(__file__).resolve().parent
CASE = """
def test_messages(golden):
    golden.messages("room", [("one", "The first."), ("two", "{}.")])
"""


def run_with(folder: Path, second: str, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a test whose second message is `second`, beside its own golden files."""
    (folder / "golden_files.py").write_bytes(Path(golden_files.__file__).read_bytes())
    (folder / "test_a.py").write_text(CASE.format(second))
    argv = [sys.executable, "-m", "pytest", "-p", "golden_files", "-p", "xdist", "-p", "no:cacheprovider", *options]
    plain = {key: value for key, value in os.environ.items() if key != "CI"}
    env = {**plain, "PYTHONPATH": str(folder), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **environment}
    return subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=600, check=False)


def test_update_writes_messages_names_the_file_and_what_differs_later_fails_with_its_diff(tmp_path: Path) -> None:
    file = tmp_path / "golden" / "messages" / "room.txt"
    assert run_with(tmp_path, "Second").returncode == 1, "there is no golden file yet"
    assert not file.exists()
    updated = run_with(tmp_path, "Second", "--update", "-n", "1")
    assert (updated.returncode, "messages/room.txt" in updated.stdout) == (0, True)
    assert "\n[two]\nSecond.\n" in file.read_text(encoding="utf-8")
    assert run_with(tmp_path, "Second").returncode == 0
    differs = run_with(tmp_path, "Other")
    assert differs.returncode == 1
    assert "-Second.\n+Other." in differs.stdout
    assert "Second" in file.read_text(encoding="utf-8"), "without --update nothing is written"


def test_ci_refuses_to_update(tmp_path: Path) -> None:
    refused = run_with(tmp_path, "Second", "--update", CI="true")
    assert (refused.returncode, "CI is set" in refused.stderr) == (pytest.ExitCode.USAGE_ERROR, True)
    assert not (tmp_path / "golden").exists()


def test_each_file_of_messages_is_written_by_the_test_that_it_names() -> None:
    for path in (golden_files.FOLDER / "messages").iterdir():
        file, _, name = path.read_text(encoding="utf-8").splitlines()[0].split()[3].partition("::")
        source = (TESTS.parent / file).read_text(encoding="utf-8").partition(f"def {name}(")[2].partition("\ndef ")[0]
        assert f'golden.messages("{path.stem}"' in source, path.name


MOST_PINNED = 672
"""Asserts that pin a sentence; it may only fall. A new sentence belongs into a golden file, asserts hold values."""


def test_sentences_are_pinned_in_golden_files_only() -> None:
    count = 0
    for path in TESTS.rglob("*.py"):
        with gc_paused():
            count += len(list(pinned(ast.parse(path.read_bytes()))))
    assert count <= MOST_PINNED


COMPARING = {"startswith", "endswith", "count", "index", "search", "match", "fullmatch", "findall"}
"""Calls whose argument is what a text is held against; that of others is what a test does, as a query is."""


def pinned(tree: ast.Module) -> Iterator[ast.AST]:
    """Asserts, and what `pytest.raises` matches, with a literal of more than 25 characters and two blanks."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            held = [node.test]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.raises":
            held = [keyword.value for keyword in node.keywords if keyword.arg == "match"]
        else:
            continue
        if any(len(text) > 25 and text.count(" ") > 1 for each in held for text in list_compared(each)):
            yield node


def list_compared(node: ast.AST) -> Iterator[str]:
    """The literals that something is compared with."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    inner: Iterable[ast.AST] = ast.iter_child_nodes(node)
    if isinstance(node, ast.Call):
        is_comparing = ast.unparse(node.func).rpartition(".")[2] in COMPARING
        inner = [node.func, *(node.args if is_comparing else ())]
    for child in inner:
        yield from list_compared(child)


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("assert told == 'TVM did not get slower at all'", 1),
        ("assert f'{name} did not get any slower tonight' in told", 1),
        ("with pytest.raises(Error, match='there is no such file here'): pass", 1),
        ("assert ask('SELECT count(*) FROM kernels') == 3", 0),
        ("assert told.startswith('TVM did not get slower at all')", 1),
        ("assert told.level == 'regression', 'why it must be so, in many words'", 0),
        ("assert path == 'a/path/that/is/rather/long/indeed'", 0),
    ],
)
def test_what_counts_as_a_pinned_sentence(source: str, count: int) -> None:
    assert len(list(pinned(ast.parse(source)))) == count
