"""Which way is the better one: what alerts and website say of numbers that are declared, and of those that are not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.subsystem.stat_alerts.alert_homes import AlertHome, stamp_of
from tests.subsystem.website.sites import Page, Site, job
from tvmdash.dashboard_info import COMPLETE

NIGHTS, STEP = 45, 35
RATE = {"tokens_per_s": {"name": "decoding", "unit": "tokens/s", "direction": "higher", "kind": "rate"}}
EXPERIMENTS: dict[str, tuple[dict[str, Any], float]] = {
    "falls": (RATE, 0.9),
    "rises": (RATE, 1.1),
    "unsaid": ({}, 1.1),
}


def make_home(folder: Path) -> AlertHome:
    """A foreign experiment for each of EXPERIMENTS, whose number moves at the night STEP, each on a TVM of its own."""
    home = AlertHome(folder)
    rng = np.random.default_rng(5)
    for night in range(NIGHTS):
        for name, (metrics, factor) in EXPERIMENTS.items():
            rate = 80.0 * (factor if night >= STEP else 1.0) * float(np.exp(0.005 * rng.standard_normal()))
            home.write_data(name, night, {"tvm_hash": f"{name}{night}", "metrics": metrics, "tokens_per_s": rate})
    home.ingest()
    return home


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[AlertHome, dict[str, str], Page]:
    """The home, its report and its first page."""
    home = make_home(tmp_path_factory.mktemp("directions"))
    site = Site(home.home)
    for night in range(NIGHTS - 1):
        site.night(job("falls", stamp_of(night)), at=stamp_of(night), state=COMPLETE)
    report = home.run(NIGHTS - 1)
    site.night(job("falls", stamp_of(NIGHTS - 1)), at=stamp_of(NIGHTS - 1))
    return home, report, site.publish_here(stamp_of(NIGHTS - 1))


def incident_of(home: AlertHome, experiment: str) -> dict[str, Any]:
    (found,) = (one for one in home.incidents() if one["moved"][0]["name"].startswith(experiment))
    return found


@pytest.mark.parametrize(("experiment", "worse"), [("falls", True), ("rises", False), ("unsaid", None)])
def test_a_number_is_worse_or_better_only_by_its_own_direction(
    told: tuple[AlertHome, dict[str, str], Page], experiment: str, worse: bool | None
) -> None:
    incident = incident_of(told[0], experiment)
    assert incident["moved"][0]["worse"] is worse
    assert incident["open"] is (worse is True)


def test_the_report_names_a_declared_number_with_its_unit_and_only_the_loss_is_open(
    told: tuple[AlertHome, dict[str, str], Page],
) -> None:
    home, report, _ = told
    assert "falls decoding −9" in report["title"]
    assert "falls decoding −" in report["value"]
    words = {one["id"]: one["words"] for one in home.page()["incidents"]}
    for experiment, way in (("falls", "(worse)"), ("rises", "(better)"), ("unsaid", "higher:")):
        assert way in words[incident_of(home, experiment)["id"]]
    assert "tokens/s" in words[incident_of(home, "falls")["id"]]


@pytest.mark.parametrize(
    ("experiment", "row"), [("falls", "✖decoding −9.3 %"), ("rises", "decoding +"), ("unsaid", "$.tokens_per_s +")]
)
def test_the_first_page_says_what_is_worse_and_of_the_rest_how_it_is_now(
    told: tuple[AlertHome, dict[str, str], Page], experiment: str, row: str
) -> None:
    rows = [" ".join(text.split()) for text in told[2].texts["tr"]]
    assert rows[rows.index(experiment) + 1].startswith(row)


def test_the_ledger_calls_them_regression_improvement_and_change(told: tuple[AlertHome, dict[str, str], Page]) -> None:
    page = Site(told[0].home).page("alerts.html")
    text = " ".join(page.words.split())
    found = dict(re.findall(r"([✖★◇])\w+ (falls|rises|unsaid)", text))
    assert found == {"✖": "falls", "★": "rises", "◇": "unsaid"}
