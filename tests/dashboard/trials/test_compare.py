"""Two artifacts side by side, as a person calls it: what is measured, what is told, what is kept, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.dashboard import homes
from tests.dashboard.remeasure_homes import NAME, Lab, make_lab, put_artifact


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """A lab with two builds and no night; 0.28.0 is 8 % slower in one workload."""
    made = make_lab(tmp_path / "lab")
    put_artifact(made.home.root / "shelf", "0.27.0")
    newer = put_artifact(made.home.root / "shelf", "0.28.0")
    made.change(slow={newer.key: {"mlp": 1.08}})
    return made


def compare(lab: Lab, *words: str) -> homes.Finished:
    return lab.home.run(*words, "--no-rebuild-tvm", verb="compare")


def kept(lab: Lab) -> Any:
    """The newest comparison of the home."""
    return homes.read(max((lab.home.path / "results" / "tries").glob("*.json")))


def test_what_differs_is_named_with_its_interval_and_nothing_is_published(lab: Lab, tmp_path: Path) -> None:
    table, values = tmp_path / "table.md", tmp_path / "values.json"
    words = ("pypi:0.27.0", "pypi:0.28.0", "--rounds", "6")
    done = compare(lab, *words, "--markdown", str(table), "--json", str(values))
    assert done.code == 0, done.output
    assert "speed net.mlp" in done.output
    assert "1 of 2 series" in done.output
    assert [run["build"].split("-")[1] for run in lab.runs()] == ["0.27.0", "0.28.0", "0.28.0", "0.27.0"] * 3
    assert homes.read(values) == kept(lab)
    found = {one["labels"]["workload"]: one for one in kept(lab)["series"]}
    change = found["net.mlp"]["change"]
    assert change["low"] < 0.08 < change["high"]
    assert (change["real"], found["net.bert"]["change"]["real"]) == (True, False)
    assert len(found["net.mlp"]["rounds"]) == 6
    assert table.read_text().count("| speed net.") == 1
    assert not lab.home.home.data(NAME).exists()
    assert not lab.home.home.night_stamps()
    assert list((lab.home.root / "tmp").glob("remeasure*")) == []


def test_what_was_measured_counts_when_the_same_two_are_compared_again(lab: Lab) -> None:
    words = ("pypi:0.27.0", "pypi:0.28.0", "--rounds")
    assert compare(lab, *words, "5").code == 0
    assert compare(lab, *words, "7").code == 0
    assert len(lab.runs()) == 14
    assert len(list((lab.home.path / "results" / "tries").glob("*.json"))) == 1
    compare(lab, *words, "5", "--fresh")
    assert len(lab.runs()) == 24


def test_a_build_against_itself_shows_no_difference_and_says_what_it_is(lab: Lab) -> None:
    key = put_artifact(lab.home.root / "shelf", "0.29.0").key
    done = compare(lab, key, "pypi:latest", "--rounds", "5", "--all")
    assert done.code == 0, done.output
    assert "the same build" in done.output
    assert [one["change"]["real"] for one in kept(lab)["series"]] == [False, False]
    assert "net.bert" in done.output, "--all prints every series"


def test_a_build_that_crashes_is_told_and_the_exit_code_says_so(lab: Lab) -> None:
    lab.change(broken=[path.name for path in (lab.home.root / "shelf").glob("wheel-0.28*")])
    done = compare(lab, "pypi:0.27.0", "pypi:0.28.0", "--rounds", "5")
    assert done.code == 1
    assert kept(lab)["errors"][NAME].startswith("on TVM 0.28.0: run: ")
    assert kept(lab)["runs"].get(NAME, 0) == 0
    assert "No conclusion" in done.output


def test_a_budget_ends_the_rounds_and_what_was_measured_counts(lab: Lab) -> None:
    done = compare(lab, "pypi:0.27.0", "pypi:0.28.0", "--rounds", "1000", "--budget", "4s")
    assert "time budget" in done.output
    assert kept(lab)["state"] == "budget"
    assert 2 <= len(lab.runs()) < 200


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("pypi:0.27.0", "pypi:one"), "pypi:one: tvm_branch"),
        (("pypi:0.27.0", "git:main"), "the home's tvm_remote is pypi"),
        (("nothing", "pypi:0.27.0"), "nothing: not an artifact name"),
        (("pypi:0.27.0", "/some/where@a..b"), "tvm_branch"),
        (("pypi:0.27.0", "pypi:0.28.0", "--experiments", "sped"), "sped is not an active experiment"),
        (("pypi:0.27.0", "pypi:0.28.0", "--rounds", "2"), "--rounds 2"),
        (("pypi:0.27.0", "pypi:0.28.0", "--budget", "soon"), "invalid duration"),
        (("pypi:0.27.0", "pypi:0.30.0"), "no tested TVM"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_its_reason(lab: Lab, words: tuple[str, ...], said: str) -> None:
    done = compare(lab, *words)
    assert done.code == 2
    assert said in done.output
    assert lab.runs() == []
