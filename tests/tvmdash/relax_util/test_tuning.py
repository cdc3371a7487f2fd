"""Tuning databases as files: what is kept, what is dropped, what is found again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tvmdash.errors import DashboardError
from tvmdash.relax_util import tuning
from tvmdash.relax_util.tuning import FILES, RECORDS, Subject

SUBJECT = Subject("mlp", 1, {"kind": "llvm", "num-cores": 1}, "zero")


@pytest.fixture(autouse=True)
def tuning_root(tmp_path, monkeypatch):
    monkeypatch.setenv("TVMDASH_TUNING", str(tmp_path / "tuning"))
    monkeypatch.setenv("TVMDASH_ARTIFACT", "build")
    return tmp_path / "tuning"


def a_search(folder: Path, *run_s: float | None) -> Path:
    """A search's files, a record for each time; meta_schedule writes 1e10 where a trial failed."""
    folder.mkdir(exist_ok=True)
    for name in FILES:
        (folder / name).write_text("")
    lines = [json.dumps([0, [number, [one] if one else None, {}, []]]) for number, one in enumerate(run_s)]
    (folder / RECORDS).write_text("".join(f"{line}\n" for line in lines))
    return folder


def kept() -> list[int]:
    folder, _ = tuning.find(SUBJECT)
    return [json.loads(line)[1][0] for line in (folder / RECORDS).read_text().splitlines()]


def test_a_build_without_a_database_says_what_to_run():
    with pytest.raises(DashboardError, match="not tuned: no tuning database for mlp with batch 1"):
        tuning.find(SUBJECT)


def test_without_the_folder_of_databases_it_says_so(monkeypatch):
    monkeypatch.delenv("TVMDASH_TUNING")
    with pytest.raises(DashboardError, match="not tuned: TVMDASH_TUNING"):
        tuning.find(SUBJECT)


def test_a_kept_database_has_the_good_ones_of_the_first_trials(tmp_path):
    assert tuning.keep(SUBJECT, a_search(tmp_path / "s", 0.2, 1e10, None, 0.1, 0.3), 4, {"search_s": 9.0})
    assert kept() == [0, 3]
    assert tuning.find(SUBJECT)[1]["search_s"] == 9.0


def test_the_first_database_of_a_build_stays_until_one_from_more_trials_comes(tmp_path):
    assert tuning.keep(SUBJECT, a_search(tmp_path / "s", 0.2, 0.1), 2, {})
    assert not tuning.keep(SUBJECT, a_search(tmp_path / "s", 1e10, 0.01), 2, {})
    assert kept() == [0, 1]
    assert tuning.keep(SUBJECT, a_search(tmp_path / "s", 1e10, 0.01, 0.1), 3, {})
    assert kept() == [1, 2]


@pytest.mark.parametrize(
    "other",
    [
        Subject("mlp", 2, SUBJECT.target, "zero"),
        Subject("mlp", 1, {"kind": "llvm", "num-cores": 2}, "zero"),
        Subject("mlp", 1, SUBJECT.target, "default"),
        Subject("dqn", 1, SUBJECT.target, "zero"),
    ],
    ids=["batch", "threads", "pipeline", "network"],
)
def test_a_database_is_for_one_subject_alone(tmp_path, other):
    tuning.keep(SUBJECT, a_search(tmp_path / "s", 0.2), 1, {})
    with pytest.raises(DashboardError, match="not tuned"):
        tuning.find(other)


def test_a_database_is_for_one_build_alone_and_those_of_old_builds_go(tmp_path, tuning_root, monkeypatch):
    monkeypatch.setattr(tuning, "BUILDS_KEPT", 2)
    for build in ("one", "two", "three"):
        monkeypatch.setenv("TVMDASH_ARTIFACT", build)
        with pytest.raises(DashboardError, match="not tuned"):
            tuning.find(SUBJECT)
        tuning.keep(SUBJECT, a_search(tmp_path / "s", 0.2), 1, {})
    assert sorted(path.name for path in tuning_root.iterdir()) == ["three", "two"]
    assert kept() == [0]
