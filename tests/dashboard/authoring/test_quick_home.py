"""`run --quick`: a small home for a first look."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboard.authoring.quick_home import make_quick_home
from dashboard.plan.job import CodeFolders
from dashboard.plan.plan import make_plan
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.judge import RULES


def test_its_night_is_small_and_ends_in_a_page(tmp_path: Path) -> None:
    make_quick_home(tmp_path / "home")
    plan = make_plan(Home(tmp_path / "home"), CodeFolders())
    assert not plan.rejected
    assert {job.name for job in plan.experiments} == {"canary", "pass_comparison", "relax_opt"}
    assert {job.config["size"] for job in plan.experiments} == {"smoke"}
    pairs = {job.config["pairs"] for job in plan.experiments if job.name != "canary"}
    assert min(pairs) >= RULES.fewest_pairs, "of fewer the first page says nothing about TVM"
    assert "website" in {job.name for job in plan.subsystems}


def test_a_home_that_is_there_is_left_alone(tmp_path: Path) -> None:
    make_quick_home(tmp_path)
    with pytest.raises(DashboardError, match="already a dashboard home"):
        make_quick_home(tmp_path)


def test_a_folder_with_other_things_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(DashboardError, match="is not empty"):
        make_quick_home(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
