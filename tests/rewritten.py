"""Compiles all Python of the repository, and rewrites the asserts of tests as pytest does, where that is not done yet.

Workers that start at once in a fresh clone would each do it: it takes 5 CPU seconds. pytest has no other way to ask for
it, so this calls functions of it that are not public; what it left is checked by pytest, by the hash of the source.
"""

from __future__ import annotations

import compileall
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import SimpleNamespace

from _pytest.assertion import rewrite

TESTS = Path(__file__).resolve().parent
PRODUCT = ("dashboard", "experiments", "shared", "subsystem")
_STATE = SimpleNamespace(trace=lambda _: None)


def kept_of(test: Path) -> Path:
    """Where pytest keeps what it made of a test module."""
    return rewrite.get_cache_dir(test) / f"{test.stem}{rewrite.PYC_TAIL}"


def write(test: Path) -> None:
    """Rewrite the asserts of one test module."""
    kept = kept_of(test)
    if rewrite.try_makedirs(kept.parent):
        source_hash, code = rewrite._rewrite_test(test, None)
        rewrite._write_pyc(_STATE, code, source_hash, kept)


def list_outdated(folder: Path) -> list[Path]:
    """The test modules below that are newer than what is kept of them."""
    tests = [*folder.rglob("test_*.py"), *folder.rglob("conftest.py")]
    return [
        test for test in tests if not kept_of(test).exists() or kept_of(test).stat().st_mtime < test.stat().st_mtime
    ]


def main() -> None:
    """Do it, one process for each core."""
    if outdated := list_outdated(TESTS):
        with ProcessPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(write, outdated, chunksize=8))
        for folder in PRODUCT:
            compileall.compile_dir(TESTS.parent / folder, quiet=2)


if __name__ == "__main__":
    main()
