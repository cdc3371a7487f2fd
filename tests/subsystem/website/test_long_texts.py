"""What pages show of texts, numbers and lines beyond their limits, and just inside them."""

from __future__ import annotations

import datetime
import itertools
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.subsystem import scripts
from tests.subsystem.website.sites import STAMP, Site, job, record
from tests.subsystem.website.test_code_changes import POINT
from tvmdash import common
from tvmdash.dashboard_info import Home
from tvmdash.records.code_changes import ChangedFunction, FunctionSide

scripts.load("website")
CHART, VIEWS, CODE, SPARKS, INCIDENT, EXPERIMENTS, NIGHT = (
    sys.modules[name]
    for name in (
        "markup.night_chart",
        "views.series",
        "data.code_changes",
        "markup.sparks",
        "incident.page",
        "pages.experiments",
        "views.night_facts",
    )
)


@pytest.mark.parametrize(("characters", "whole"), [(3900, True), (9000, False)])
def test_a_summary_is_shown_up_to_a_page_and_kept_up_to_a_paragraph(
    tmp_path: Path, characters: int, *, whole: bool
) -> None:
    site = Site(Home(tmp_path / "home"))
    site.night(job("generated"))
    site.data("generated", [record("mlp", 1.0)])
    site.results("generated", value="x" * characters)
    site.publish_here()
    text = site.experiment("generated").text
    assert ("x" * characters in text) is whole
    assert "x" * 3900 in text
    assert "x" * 5000 not in text
    (year,) = site.folder.rglob("2026.json")
    assert "x" * 500 in year.read_text()
    assert "x" * 1000 not in year.read_text()


@pytest.mark.parametrize(("characters", "whole"), [(390, True), (1500, False)])
def test_a_line_of_code_is_shown_up_to_a_screens_width(characters: int, *, whole: bool) -> None:
    sides = [FunctionSide(name, {}, name * characters, "") for name in "ab"]
    changed = ChangedFunction("kernel", *sides)
    (function,) = CODE.describe("generated", STAMP, [replace(POINT, functions=(changed,))]).points[0].functions
    line = function.code.lines[-1]
    assert (line == "+" + "b" * characters) is whole
    assert len(line) < 600


@pytest.mark.parametrize(("change", "shown"), [(0.00004, "0 %"), (-0.00004, "0 %"), (0.00006, "+0.01 %")])
def test_a_change_that_rounds_to_nothing_has_no_sign(change: float, shown: str) -> None:
    fields = dict.fromkeys(VIEWS.SeriesView.__dataclass_fields__)
    assert VIEWS.SeriesView(**{**fields, "change": change, "state": "worse", "exact_change": ""}).format_change == shown


@pytest.mark.parametrize("level", [0.0, 1e-300, 5.0])
def test_a_line_that_never_moves_is_in_the_middle(level: float) -> None:
    drawn = str(SPARKS.sparkline([level] * 3, "still"))
    assert f'cy="{SPARKS.HEIGHT / 2:g}' in drawn


@pytest.mark.parametrize("change", [0.004, 0.03, 0.1, 0.37, 2.0, 9.5])
def test_a_chart_names_a_few_round_changes_whatever_its_reach(change: float) -> None:
    curve = CHART.Curve("all", (0.0, change, -change / 3))
    drawn = str(CHART.NightChart(("a", "b", "c"), ("", "", ""), (curve,), ()).draw("grew"))
    assert 3 <= drawn.count('<text class="end"') / drawn.count("<svg") <= 7


@pytest.mark.parametrize("width", range(24, 120, 3))
def test_a_name_in_a_box_of_the_icicle_ends_within_the_box(width: int) -> None:
    shown = re.findall(r'<text x="([0-9.]+)"[^>]*>([^<]*)<', INCIDENT._box(10.0, width, 0, "same", f"{'w' * 40}, 3 ms"))
    assert all(float(x) + len(name) * INCIDENT._LETTER <= 10 + width for x, name in shown)
    assert shown or width < 40


@pytest.mark.parametrize(("nights", "least", "most"), [(3, 0.15, 0.3), (10, 0.5, 0.8), (40, 0.95, 1.0)])
def test_columns_of_a_few_nights_are_neither_wide_bars_nor_crammed_into_a_corner(
    nights: int, least: float, most: float
) -> None:
    history = [EXPERIMENTS.HistoryNight(STAMP, "ok", job("cnn"))] * nights
    right = max(
        float(x) + float(width)
        for x, width in re.findall(
            r'<rect[^>]* x="([0-9.]+)"[^>]* width="([0-9.]+)"', str(EXPERIMENTS.durations(history))
        )
    )
    assert least < right / EXPERIMENTS._WIDTH <= most


@pytest.mark.parametrize(("weekly", "hours"), [(6, 168), (4, 24)])
def test_when_nights_usually_start_follows_the_last_ten(weekly: int, hours: int) -> None:
    gaps = [24] * 40 + [168] * weekly + [24] * (10 - weekly)
    starts = itertools.accumulate(gaps, initial=0)
    stamps = [common.stamp_of(common.parse_stamp(STAMP) + datetime.timedelta(hours=start)) for start in starts]
    expected = common.parse_stamp(NIGHT.next_run(stamps).expected) - common.parse_stamp(stamps[-1])
    assert expected == datetime.timedelta(hours=hours)
