"""Ten thousand hostile files of records, of other seeds than those of the fast tests."""

from __future__ import annotations

from pathlib import Path

from tests.tvmdash.records.exchange.hostile import read_hostile


def test_ten_thousand_hostile_files_are_read_or_refused_and_nothing_else_is_written(tmp_path: Path) -> None:
    (tmp_path / "jail").mkdir()
    outcomes = read_hostile(tmp_path / "jail", 10_000, seed=21)
    print(dict(outcomes))
    assert sum(outcomes.values()) == 10_000
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
