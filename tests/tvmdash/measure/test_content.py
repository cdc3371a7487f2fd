"""The hash of all that a process ran while it timed a point."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tvmdash.measure.content import Code, FileHashes, hash_content, watch_python

SHARED = Path(__file__).parents[3] / "shared" / "python"
HASH = """
import ctypes, os, sys
from pathlib import Path
from tvmdash.measure.content import FileHashes, hash_content
kept = ctypes.CDLL(sys.argv[1])
if len(sys.argv) > 3:
    os.unlink(sys.argv[1])
print(hash_content("program", [__file__], {}, FileHashes(Path(sys.argv[2]))))
"""


def hash_in_process(library: Path, root: Path, *more: str) -> str:
    script = root / "timed.py"
    script.write_text(HASH)
    argv = [sys.executable, str(script), str(library), str(root / "hashes.json"), *more]
    environment = {**os.environ, "PYTHONPATH": str(SHARED)}
    done = subprocess.run(argv, env=environment, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A shared library that nothing else has loaded."""
    copy = tmp_path / "libruntime.so"
    mapped = Path("/proc/self/maps").read_text().splitlines()
    copy.write_bytes(
        Path(next(line.split()[-1] for line in mapped if "/libm." in line or "/libm-" in line)).read_bytes()
    )
    return copy


def test_one_byte_of_a_library_makes_another_hash_and_its_place_does_not(tmp_path: Path, library: Path) -> None:
    before = hash_in_process(library, tmp_path)
    assert len(before) == 64
    elsewhere = tmp_path / "other_artifact" / library.name
    elsewhere.parent.mkdir()
    elsewhere.write_bytes(library.read_bytes())
    assert hash_in_process(elsewhere, tmp_path) == before
    with library.open("ab") as file:
        file.write(b"\0")
    assert hash_in_process(library, tmp_path) != before


def test_nothing_is_said_of_a_process_whose_library_was_replaced(tmp_path: Path, library: Path) -> None:
    assert hash_in_process(library, tmp_path, "replaced") == "None"


def test_the_python_that_ran_and_the_facts_are_in_the_hash(tmp_path: Path) -> None:
    file, hashes = tmp_path / "timed.py", FileHashes(tmp_path / "hashes.json")
    file.write_text("a = 1")
    ran: list[Code] = [str(file), b"made in the process"]
    first = hash_content("program", ran, {"threads": 1}, hashes)
    assert first is not None
    assert hash_content("program", ran, {"threads": 1}, hashes) == first
    others = [
        hash_content("another program", ran, {"threads": 1}, hashes),
        hash_content("program", ran, {"threads": 2}, hashes),
        hash_content("program", [*ran, b"more"], {"threads": 1}, hashes),
    ]
    file.write_text("a = 22")
    others.append(hash_content("program", ran, {"threads": 1}, hashes))
    assert len({first, *others}) == 5


def test_a_file_is_read_once_for_all_processes_of_a_run(tmp_path: Path) -> None:
    file, path = tmp_path / "library", tmp_path / "hashes.json"
    file.write_bytes(b"code")
    hashes = FileHashes(path)
    digest = hashes.find(str(file))
    hashes.save()
    known = json.loads(path.read_text())
    known[str(file)][-1] = "as the process before found"
    path.write_text(json.dumps(known))
    assert FileHashes(path).find(str(file)) == "as the process before found"
    file.write_bytes(b"other code")
    assert FileHashes(path).find(str(file)) != digest


def called() -> None:
    """Stands for what a timer calls."""


def test_python_is_watched_by_file_or_where_it_has_none_by_its_bytes() -> None:
    ran: set[Code] = set()
    made: dict[str, Code] = {}
    exec("def inner(): pass", made)
    with watch_python(ran):
        called()
        made["inner"]()  # type: ignore[operator]
    called()
    assert __file__ in ran
    assert len([code for code in ran if isinstance(code, bytes)]) == 1
