"""Two artifacts side by side, as a person calls it: what is measured, what is told, what is kept, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dashboard.investigate.compare import text
from dashboard.investigate.compare.result import Compared, Comparison, Side
from dashboard.investigate.series_selection import WantedSeries
from tests.dashboard import homes
from tests.dashboard.remeasure_homes import NAME, Lab, make_lab, put_artifact
from tvmdash.records.metrics import Kind


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
    return homes.read(max((lab.home.path / "results" / "comparisons").iterdir()))


def test_what_differs_is_named_with_its_interval_and_nothing_is_published(lab: Lab, tmp_path: Path) -> None:
    table = tmp_path / "table.md"
    done = compare(lab, "pypi:0.27.0", "pypi:0.28.0", "--rounds", "6", "--markdown", str(table))
    assert done.code == 0, done.output
    assert "speed net.mlp" in done.output
    assert "net.bert" not in done.output
    assert "1 of 2 series differ. Times without a difference: 1, known to within ±" in done.output
    assert [run["build"].split("-")[1] for run in lab.runs()] == ["0.27.0", "0.28.0", "0.28.0", "0.27.0"] * 3
    found = {one["labels"]["workload"]: one for one in kept(lab)["series"]}
    difference = found["net.mlp"]["difference"]
    assert difference["low"] < 0.08 < difference["high"]
    assert (difference["real"], found["net.bert"]["difference"]["real"]) == (True, False)
    assert len(found["net.mlp"]["rounds"]) == 6
    assert "B against A is the median of the rounds' ratios, with that median's 95 % interval." in done.output
    text = table.read_text()
    assert "| speed net.mlp" in text
    assert "slower |" in text
    assert not lab.home.home.data(NAME).exists()
    assert not lab.home.home.night_stamps()
    assert list((lab.home.root / "tmp").glob("remeasure*")) == []


def test_a_build_against_itself_shows_no_difference_and_says_what_it_is(lab: Lab) -> None:
    key = put_artifact(lab.home.root / "shelf", "0.29.0").key
    done = compare(lab, key, "pypi:latest", "--rounds", "4", "--all")
    assert done.code == 0, done.output
    assert "Both are the same build" in done.output
    assert "None of 2 series differs." in done.output
    assert "net.bert" in done.output, "--all prints every series"
    assert "Of fewer than 6 rounds only what differs by the same in each is named" in done.output


def test_a_build_that_crashes_is_told_and_the_exit_code_says_so(lab: Lab) -> None:
    lab.change(broken=[path.name for path in (lab.home.root / "shelf").glob("wheel-0.28*")])
    done = compare(lab, "pypi:0.27.0", "pypi:0.28.0", "--rounds", "3")
    assert done.code == 1
    assert "speed ended after 0 rounds: on B, TVM 0.28.0: run: " in done.output
    assert "No conclusion: " in done.output


def test_a_budget_ends_the_rounds_and_what_was_measured_counts(lab: Lab) -> None:
    done = compare(lab, "pypi:0.27.0", "pypi:0.28.0", "--rounds", "1000", "--budget", "4s")
    assert "The time budget ran out before all rounds were done: speed." in done.output
    assert kept(lab)["over"] == [NAME]
    assert 2 <= len(lab.runs()) < 200


def series(at: int, unit: str = "ms", metric: str = "run_time", kind: Kind = "time") -> WantedSeries:
    return WantedSeries(f"id{at}", "e", metric, unit, {"workload": f"net.{at}"}, "lower", kind)


def test_times_sizes_and_other_numbers_are_told_apart_and_a_wild_one_spoils_no_figure_of_the_others() -> None:
    quiet = [(1.0, 1.001), (1.001, 1.0), (1.0, 1.0), (1.0, 1.001)]
    wild = [(1.0, 3.0), (3.0, 1.0), (1.0, 2.0), (2.0, 1.0)]
    sizes = [(100.0, 100.0)] * 4
    side = Side("pypi:0.27.0", {"version": "0.27.0", "commit": None, "key": "k"})
    done = Comparison("20261121T000000Z", side, side, 1, {"host": "h", "hw_model": "m"}, {})
    whole = [
        *(Compared(series(at), list(quiet)) for at in range(3)),
        Compared(series(3, metric="compile_time"), wild),
        *(Compared(series(at, "bytes", "code_size"), list(sizes)) for at in (4, 5)),
        Compared(series(6, "", "value", "number"), [(10.0, 11.0), (11.0, 10.0), (10.0, 10.0)]),
        Compared(series(7), [(0.0, 1.0)] * 3),
    ]
    done.series = {one.series.id: one for one in whole}
    done.judge()
    assert text.format_table(done).splitlines()[-1] == (
        "None of 7 series differs. Times without a difference: 4, half known to within ±0.15 %, all to within a factor"
        " of 5.4 (the widest: e net.3 compile time). Sizes without a difference: 2, the same in every round. Numbers"
        " without a difference: 1, known to within ±27 %. 1 could not be judged (too few rounds, or values not above "
        "0)."
    )


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
