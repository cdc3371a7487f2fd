"""Broken inputs, small ones: each is read or refused in words, and nothing is written anywhere.

`python -m tests.tvmtraces.test_fuzz 10000` breaks more of them and says what became of them.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.thorough import THOROUGH
from tests.tvmtraces import rocpd_files
from tests.tvmtraces.test_broken import break_sealed, put_a_value, put_bytes
from tests.tvmtraces.traces_for_tests import write_format_1, write_raw
from tvmdash.errors import DashboardError
from tvmtraces import connect
from tvmtraces.batches import WantedRows
from tvmtraces.connection import read_all
from tvmtraces.sealing import seal
from tvmtraces.sources import find
from tvmtraces.tables import TABLES

WANTED = WantedRows({name: frozenset(table.columns) for name, table in TABLES.items()})
EACH = {"raw": 300, "format 1": 200, "rocpd": 300, "sealed": 200}
"""How many of each kind are broken of 1,000, which is what `tests/run.sh --slow` breaks."""
SHARE = 1 if THOROUGH else 10
ODD = ("../x", "a/../../x", "/etc/passwd", "", "x\0y", "operator.99", None, -1, 2**70, 1.5, [], {}, "*.parquet", True)


def break_catalogue(folder: Path, chance: random.Random) -> None:
    """An odd value, or an odd key, somewhere in the catalogue."""
    path = folder / "catalogue.json"
    value = json.loads(path.read_text())
    target, key = value, chance.choice(sorted(value))
    while isinstance(target[key], dict) and target[key] and chance.random() < 0.8:
        target, key = target[key], chance.choice(sorted(target[key]))
    if chance.random() < 0.5:
        target[key] = chance.choice(ODD)
    else:
        target[str(chance.choice(ODD))] = target.pop(key)
    path.write_text(json.dumps(value))


BREAKS: dict[str, tuple[Callable[[Path, random.Random], None], ...]] = {
    "raw": (put_a_value, put_bytes),
    "format 1": (put_a_value, put_bytes),
    "rocpd": (put_a_value, put_bytes),
    "sealed": (break_sealed, break_catalogue),
}


def make(folder: Path) -> dict[str, Path]:
    """A small whole input of each kind."""
    raw = write_raw(folder / "raw")
    rocpd_files.write(folder / "rocpd.db", rocpd_files.kernels(3, seed=1, names=2), ["a", "b"], pid=100, more=True)
    format_1 = write_format_1(folder / "format_1.db")
    return {"raw": raw, "format 1": format_1, "rocpd": folder / "rocpd.db",
            "sealed": seal([raw], folder / "sealed").path}  # fmt: skip


def read(place: Path, kind: str) -> None:
    """Everything in an input."""
    if kind != "sealed":
        read_all(find([place]), WANTED, None)
        if kind == "rocpd":
            with connect(place) as traces:
                for table in ("rocpd_string", "rocpd_kernel_dispatch", "rocpd_info_process"):
                    traces.execute(f"SELECT * FROM {table}").fetchall()
        return
    with connect(place) as traces:
        for run in traces.sources:
            for table in run.catalogue.table_names:  # type: ignore[attr-defined]
                traces.execute(f"SELECT * FROM base_{table}").fetchall()


def break_some(kind: str, whole: Path, seeds: range, folder: Path) -> Counter[str]:
    """What became of an input broken in so many ways; the seed with which another error came up, if one did."""
    outcomes = Counter[str]()
    place = folder / "broken.db"
    for seed in seeds:
        (shutil.copytree if kind == "sealed" else shutil.copy)(whole, place)
        chance = random.Random(seed)
        chance.choice(BREAKS[kind])(place, chance)
        before = sorted(folder.rglob("*"))
        try:
            read(place, kind)
            outcomes["read"] += 1
        except DashboardError as error:
            outcomes["refused" if str(error) else f"refused without a word: seed {seed}"] += 1
        except Exception as error:  # noqa: BLE001 - which one is what is asked
            outcomes[f"{type(error).__name__}: {error}"[:200] + f": seed {seed}"] += 1
        if sorted(folder.rglob("*")) != before:
            outcomes[f"wrote a file: seed {seed}"] += 1
        (shutil.rmtree if kind == "sealed" else os.unlink)(place)
    return outcomes


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return make(tmp_path_factory.mktemp("whole"))


@pytest.mark.parametrize("kind", BREAKS)
def test_whatever_is_broken_is_read_or_refused_in_words(
    kind: str, whole: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    (tmp_path / "place").mkdir()
    outcomes = break_some(kind, whole[kind], range(EACH[kind] // SHARE), tmp_path / "place")
    assert set(outcomes) == {"read", "refused"}, outcomes
    assert sum(outcomes.values()) == EACH[kind] // SHARE
    assert list(temporary.iterdir()) == []


def main() -> None:
    """Break as many as the argument says, a part of each kind as in the test."""
    total = int(sys.argv[1])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wholes = make(folder / "whole")
        (folder / "place").mkdir()
        for kind, each in EACH.items():
            seeds = range(10**6, 10**6 + total * each // 1000)
            print(kind, dict(break_some(kind, wholes[kind], seeds, folder / "place")), flush=True)


if __name__ == "__main__":
    main()
