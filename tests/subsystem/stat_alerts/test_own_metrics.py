"""A number of an experiment's own, as tokens per second: judged by what its author declares, and on the pages."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.subsystem import slack_homes
from tests.subsystem.stat_alerts.alert_homes import AlertHome, Truth, stamp_of
from tests.subsystem.stat_alerts.test_night_verdict import judged
from tests.subsystem.website.sites import Site
from tvmdash.verdict import Level, Standing

NIGHTS, STEP = 44, 38
RATE = {"unit": "tokens/s", "direction": "higher", "kind": "rate"}


def with_rates(root: Path, factor: float, declared: dict[str, str]) -> AlertHome:
    """A home whose records have a rate, which is so many times as much from the night STEP on."""
    home, truth, rng = AlertHome(root), Truth(nights=NIGHTS), np.random.default_rng(4)
    for night in range(NIGHTS):
        noise = np.exp(0.004 * rng.standard_normal((2, 2)))
        rows = [truth.record(workload, 0, night, noise[at]) for at, workload in enumerate(("mlp", "dqn"))]
        for at, row in enumerate(rows):
            rate = 8000 * noise[at, 0] * (factor if night >= STEP and at == 0 else 1)
            row["additional_info"] |= {"rate": rate, "metrics": {"rate": declared}}
        value = {"schema_version": 1, "timestamp": stamp_of(night), "tvm_hash": truth.versions[night], "records": rows}
        home.write_data("relax_opt", night, value)
    home.ingest()
    return home


@pytest.mark.parametrize(
    ("factor", "declared", "level"),
    [
        (0.8, RATE, Level.REGRESSION),
        (1.2, RATE, Level.IMPROVED),
        (1.2, {"direction": "lower"}, Level.REGRESSION),
        (1.2, {}, Level.CHANGED),
    ],
)
def test_it_is_judged_by_its_declared_direction(
    tmp_path: Path, factor: float, declared: dict[str, str], level: Level
) -> None:
    home = with_rates(tmp_path, factor, declared)
    verdict = judged(home, STEP - 1)
    assert verdict.is_green
    for night in range(STEP, NIGHTS):
        verdict = judged(home, night)
        if verdict.new or verdict.improved or verdict.changed:
            break
    assert verdict.level is level, verdict.headline
    assert "relax_opt mlp rate" in verdict.headline
    names = {series["id"]: series["name"] for series in home.page()["series"]}
    assert [names[one.series] for one in verdict.series if one.standing is Standing.MOVED] == ["relax_opt mlp rate"]


def test_it_is_called_what_its_author_calls_it_and_is_on_the_pages_with_its_unit(tmp_path: Path) -> None:
    home = with_rates(tmp_path, 0.8, {**RATE, "name": "decoding <fast>"})
    site, job = Site(home.home), slack_homes.job("relax_opt")
    for night in range(STEP, NIGHTS):
        verdict = judged(home, night, job)
    site.publish_here(verdict.night)
    assert "mlp decoding <fast>" in site.page(f"nights/{verdict.night}.html").words
    (page,) = (home.home.output("website") / "experiments").glob("relax-opt-*.html")
    words = site.page(f"experiments/{page.name}").words
    assert "mlp decoding <fast>" in words
    assert "tokens/s" in words
