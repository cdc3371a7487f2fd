"""What is rewritten ahead is what pytest would have made, and an edit makes it outdated."""

from __future__ import annotations

import os
from pathlib import Path

import rewritten
from _pytest.assertion import rewrite


def test_pytest_takes_what_was_rewritten_ahead_and_an_edit_makes_it_outdated(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("")
    test = tmp_path / "below" / "test_a.py"
    test.parent.mkdir()
    test.write_text("def test_a():\n    assert [1] == [2]\n")
    assert set(rewritten.list_outdated(tmp_path)) == {test, tmp_path / "conftest.py"}
    for path in rewritten.list_outdated(tmp_path):
        rewritten.write(path)
    assert rewritten.list_outdated(tmp_path) == []
    code = rewrite._read_pyc(test, rewritten.kept_of(test))
    assert code is not None
    assert "@pytest_ar" in code.co_names, "its asserts are pytest's"
    later = rewritten.kept_of(test).stat().st_mtime + 1
    os.utime(test, (later, later))
    assert rewritten.list_outdated(tmp_path) == [test]
