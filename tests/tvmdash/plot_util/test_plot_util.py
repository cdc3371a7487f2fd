from __future__ import annotations

import datetime
import itertools
import math
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from tvmdash import plot_util
from tvmdash import text as words
from tvmdash.common import stamp_of
from tvmdash.errors import DashboardError
from tvmdash.plot_util import layout
from tvmdash.plot_util.specs import Bar, BarValue, Estimate, GroupedBar, Line, Longitudinal, Mark, Plot

LAST = datetime.datetime(2026, 11, 21, 3, 15, tzinfo=datetime.UTC)
SVG = "{http://www.w3.org/2000/svg}"


def nights(count: int) -> tuple[str, ...]:
    return tuple(stamp_of(LAST - datetime.timedelta(days=count - 1 - index)) for index in range(count))


def over_nights(*values: float | None, label: str = "mlp") -> Longitudinal:
    return Longitudinal("Time", "ms", (Line(label, nights(len(values)), values),), lower_is_better=True)


def bars(*values: float | None, low: float | None = None) -> Bar:
    return Bar("Time", "ms", tuple(BarValue(f"bar {i}", value, low, value) for i, value in enumerate(values)), True)


def texts(plot: Plot) -> list[str]:
    root = ElementTree.fromstring(plot_util.render(plot))
    return ["".join(element.itertext()) for element in root.iter(f"{SVG}text")]


def drawn_lines(plot: Plot) -> list[str]:
    """The path data of the coloured series lines."""
    root = ElementTree.fromstring(plot_util.render(plot))
    paths = (path for path in root.iter(f"{SVG}path") if "clip-path" in path.attrib)
    return [path.attrib["d"] for path in paths if "stroke-width: 1.3" in path.attrib.get("style", "")]


def markers(plot: Plot) -> int:
    root = ElementTree.fromstring(plot_util.render(plot))
    groups = (group for group in root.iter(f"{SVG}g") if "clip-path" in group.attrib)
    return sum(1 for group in groups for _ in group.iter(f"{SVG}use"))


def test_a_series_of_one_point_is_a_visible_dot() -> None:
    assert markers(over_nights(0.105)) >= 1
    assert "mlp  0.105" in texts(over_nights(0.105))


@pytest.mark.parametrize("middle", [(None,), (math.nan,), (math.inf,)])
def test_a_gap_interrupts_the_line(middle: tuple[float | None, ...]) -> None:
    (whole,) = drawn_lines(over_nights(1.0, 2.0, 1.5, 2.0, 1.0))
    (broken,) = drawn_lines(over_nights(1.0, 2.0, *middle, 2.0, 1.0))
    assert whole.count("M") == 1
    assert broken.count("M") == 2


def test_missing_nights_interrupt_the_line() -> None:
    stamps = nights(60)
    plot = Longitudinal("Time", "ms", (Line("mlp", stamps[:20] + stamps[40:], (1.0, 2.0) * 20),))
    assert drawn_lines(plot)[0].count("M") == 2


@pytest.mark.parametrize("measured", [390, 1500])
def test_of_a_long_line_not_every_night_is_drawn(measured: int) -> None:
    (line,) = drawn_lines(over_nights(*(1.0 + night % 2 for night in range(measured))))
    assert 350 <= len(line.split()) // 2 <= 400


def test_a_point_alone_between_gaps_is_a_dot_in_a_long_line() -> None:
    values: list[float | None] = [1.0 + i % 3 for i in range(300)]
    dots = markers(over_nights(*values))
    values[99] = values[101] = None
    assert markers(over_nights(*values)) == dots + 1


@pytest.mark.parametrize("plot", [Longitudinal("T", "ms", ()), Bar("T", "ms", ()), bars(None), over_nights(None, None)])
def test_an_empty_plot_says_no_data(plot: Plot) -> None:
    picture = ElementTree.fromstring(plot_util.render(plot))
    (text,) = [element for element in picture.iter(f"{SVG}text") if element.text == "no data"]
    width, height = map(float, picture.attrib["viewBox"].split()[2:])
    assert 0 < float(text.attrib["x"]) < width
    assert 0 < float(text.attrib["y"]) < height
    assert "no data" in plot_util.alt_text(plot)


def test_a_missing_value_is_said_in_words() -> None:
    plot = GroupedBar("T", "ms", ("mlp",), ("zero", "tuned"), ((Estimate(1.0, 0.9, 1.1), None),))
    assert "no value" in texts(plot)
    assert "1.00 (0.900 to 1.10)" in texts(plot)
    assert "no value for mlp, tuned" in plot_util.alt_text(plot)


def test_bars_turn_into_dots_on_a_named_log_scale_where_values_span_more_than_fifty_times() -> None:
    assert "ms, lower is better" in texts(bars(1.0, 49.0))
    assert markers(bars(1.0, 49.0)) == 0
    assert "ms, lower is better, log scale" in texts(bars(1.0, 51.0))
    assert markers(bars(1.0, 51.0)) == 2


def test_zeros_and_negative_values_are_drawn_and_the_axis_says_how() -> None:
    zero = bars(0.0, 1.0, 100.0)
    assert markers(zero) == 3
    assert any("linear below 1.00 to show zeros" in text for text in texts(zero))
    assert any("linear scale: some values are negative" in text for text in texts(bars(-1.0, 1.0, 100.0)))


def test_an_interval_that_reaches_below_zero_forbids_the_log_scale() -> None:
    assert any("linear scale" in text for text in texts(bars(1.0, 100.0, low=-0.5)))


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ([], "linear"),
        ([0], "linear"),
        ([-1, -100], "linear"),
        ([1, 50], "linear"),
        ([1, 51], "log"),
        ([0, 1, 51], "symlog"),
    ],
)
def test_the_scale_follows_from_the_values(values: list[float], scale: str) -> None:
    assert layout.choose_scale(values)[0] == scale


def test_equal_specs_give_equal_bytes_in_another_process(tmp_path: Path) -> None:
    script = "import sys, pathlib; from tvmdash.plot_util import *\n"
    script += "plot = Bar('T', 'ms', (BarValue('a', 1.0), BarValue('b', 99.0)))\n"
    script += "for name in sys.argv[1:]: draw(plot, pathlib.Path(name))"
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        names = [str(tmp_path / folder / name) for name in ("a.svg", "a.png")]
        subprocess.run([sys.executable, "-c", script, *names], check=True, env=_environment(), timeout=120)
    for name in ("a.svg", "a.png"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_importing_plot_util_imports_no_plotting_library() -> None:
    script = "import sys, tvmdash.plot_util; print({'matplotlib', 'seaborn', 'numpy'} & set(sys.modules))"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, check=True, env=_environment(), capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "set()"


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(plot_util.__file__).parents[2])}


def test_drawing_leaves_the_settings_of_matplotlib_alone() -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    plot_util.render(bars(1.0))
    assert dict(matplotlib.rcParams) == before


def test_the_svg_carries_its_words_for_screen_readers() -> None:
    root = ElementTree.fromstring(plot_util.render(over_nights(1.0, 1.5)))
    assert root.attrib["role"] == "img"
    assert root.findtext(f"{SVG}title") == "Time"
    described = root.findtext(f"{SVG}desc") or ""
    assert "first 1.00, last 1.50, +50.0 % (2 points)" in described
    assert "2026-11-20 to 2026-11-21 UTC" in described


STRANGE = [
    "$x^2$ \\frac{",
    "数据库" * 50,
    "a\x00b\ud800c",
    "<script>&amp;]]>",
    "",
    "x" * 5000,
    "😀 عربى\nnew line",
    'd="M 1.23456"',
]


@pytest.mark.parametrize("label", STRANGE)
@pytest.mark.parametrize("kind", ["svg", "png"])
def test_any_text_can_be_a_label_and_is_not_read_as_mathematics(label: str, kind: str) -> None:
    line = Line(label, nights(3), (1.0, 2.0, 3.0))
    plots: tuple[Plot, ...] = (
        Bar(label, label, (BarValue(label, 1.0), BarValue("other", None))),
        GroupedBar(label, label, (label,), (label,), ((Estimate(1.0),),)),
        Longitudinal(label, label, (line,), marks=(Mark(nights(2)[0], label),)),
    )
    for plot in plots:
        content = plot_util.render(plot, kind)
        if kind == "svg":
            shown = words.elide(label, 34)
            assert any(shown in "".join(text.itertext()) for text in ElementTree.fromstring(content).iter(f"{SVG}text"))


@pytest.mark.parametrize(
    "values", [(0.0, 0.0), (1e-300, 1.0), (5e-324, 1e300), (-1e300, 1e300), (1e15, 1e15 + 1), (-3.0,)]
)
def test_extreme_values_draw(values: tuple[float, ...]) -> None:
    for plot in (bars(*values), over_nights(*values)):
        assert "no data" not in texts(plot)


def test_two_weeks_end_at_the_newest_stamp_of_any_line() -> None:
    stamps = nights(100)
    old, new = Line("old", stamps[:50], (1.0,) * 50), Line("new", stamps[50:], (1.0,) * 50)
    said = texts(Longitudinal("T", "ms", (old, new), "two_weeks"))
    assert "two weeks to 2026-11-21; 1 of 2 lines have no data in these weeks" in said
    assert not any(text.startswith("old") for text in said)


def test_the_order_of_the_stamps_does_not_matter() -> None:
    line = over_nights(1.0, 2.0, 3.0).lines[0]
    turned = Line(line.label, line.stamps[::-1], line.values[::-1])
    assert plot_util.render(Longitudinal("T", "ms", (turned,))) == plot_util.render(Longitudinal("T", "ms", (line,)))


def test_twenty_four_lines_over_ten_years_are_all_named_and_stay_small() -> None:
    stamps, chance = nights(3650), random.Random(1)
    lines = tuple(
        Line(f"line {i}", stamps, tuple(1.4**i * chance.uniform(0.98, 1.02) for _ in stamps)) for i in range(24)
    )
    plot = Longitudinal("T", "ms", lines)
    assert {text.rsplit("  ", 1)[0] for text in texts(plot)} >= {line.label for line in lines}
    assert len(plot_util.render(plot)) < 100_000


def test_what_is_not_drawn_is_said() -> None:
    many = tuple(Line(f"line {i}", nights(2), (1.0, 2.0)) for i in range(100))
    assert "4 more lines are not drawn" in texts(Longitudinal("T", "ms", many))
    assert "10 more rows are not drawn" in texts(bars(*range(1, 411)))


def test_marks_in_the_window_are_named() -> None:
    plot = over_nights(*range(1, 30))
    marks = (Mark(nights(10)[0], "c7ba0735a"), Mark(nights(400)[0], "long ago"))
    said = texts(Longitudinal("T", "ms", plot.lines, marks=marks))
    assert "c7ba0735a" in said
    assert "long ago" not in said


@pytest.mark.parametrize("count", [9, 401, 3650, 5000])
@pytest.mark.parametrize("gaps", [False, True])
def test_thinning_keeps_every_spike_both_ends_and_the_limit(count: int, gaps: bool) -> None:
    chance = np.random.default_rng(count)
    values = chance.normal(10, 0.1, count)
    values[count // 3], values[count // 2] = 99.0, -99.0
    if gaps:
        values[count // 2 + 1 : count // 2 + 1 + count // 5] = np.nan
    kept = layout.select_points(values, 400)
    assert len(kept) <= 400
    assert (np.diff(kept) > 0).all()
    assert {0, count // 3, count // 2, count - 1} <= set(kept)
    if gaps:
        assert np.isnan(values[kept]).any()


def test_short_series_are_not_thinned() -> None:
    assert layout.select_points(np.zeros(400), 400).size == 400


@pytest.mark.parametrize("span", [0.1, 1, 5, 14, 40, 100, 365, 1000, 3650, 20000])
def test_date_ticks_are_few_and_inside(span: float) -> None:
    ticks = layout.choose_date_ticks(20000.4, 20000.4 + max(1.0, span))
    assert 1 <= len(ticks) <= 8
    assert all(20000.4 <= day <= 20000.4 + max(1.0, span) for day, _ in ticks)
    assert all(re.fullmatch(r"\d{4}(-\d\d){0,2}", label) for _, label in ticks)


def test_labels_are_spread_without_overlap_and_without_leaving_the_axes() -> None:
    places = layout.spread([0.5, 0.5, 0.5, 0.99, 1.0], 0.1)
    ordered = sorted(places)
    assert all(later - earlier >= 0.1 - 1e-9 for earlier, later in itertools.pairwise(ordered))
    assert ordered[0] >= 0
    assert ordered[-1] <= 1


def test_limits_do_not_make_mountains_of_noise() -> None:
    low, high = layout.choose_linear_limits(100.0, 100.1)
    assert high - low >= 10.0


def test_columns_of_different_lengths_are_refused_with_their_place() -> None:
    with pytest.raises(DashboardError, match=r"plot 'mlp': values has 1 entries, stamps has 2"):
        Line("mlp", nights(2), (1.0,))
    with pytest.raises(DashboardError, match=r"the values of group 'g' has 1 entries, series has 2"):
        GroupedBar("T", "ms", ("g",), ("a", "b"), ((None,),))


def test_another_kind_of_picture_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DashboardError, match=r"Use \.svg or \.png"):
        plot_util.draw(bars(1.0), tmp_path / "a.pdf")


def test_a_png_is_as_wide_as_a_page(tmp_path: Path) -> None:
    plot_util.draw(bars(1.0, 2.0), tmp_path / "a.png")
    content = (tmp_path / "a.png").read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(content[16:20], "big") == 990


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.105, "0.105"),
        (12.1, "12.1"),
        (1743.0, "1740"),
        (0.9999, "1.00"),
        (0, "0"),
        (-2.5, "-2.50"),
        (2.5e9, "2.5e+09"),
    ],
)
def test_numbers_have_three_digits(value: float, text: str) -> None:
    assert words.three_digits(value) == text


@pytest.mark.parametrize(
    ("effect", "text"),
    [
        (0.0, "0 %"),
        (-1e-16, "0 %"),
        (0.0025, "+0.25 %"),
        (-0.031, "−3.1 %"),
        (1.04, "+104 %"),
        (0.9949, "+99.5 %"),
        (-0.9973, "−99.7 %"),
        (-0.99999, "−99.9 %"),
        (-1.0, "−100 %"),
    ],
)
def test_a_change_has_fewer_digits_the_larger_it_is(effect: float, text: str) -> None:
    assert words.format_percent(effect) == text


def test_long_text_keeps_its_beginning_and_its_end() -> None:
    assert words.elide("abcdefghij", 5) == "ab…ij"
    assert words.elide("abc", 5) == "abc"
    assert words.width_of(words.elide("数据库" * 9, 11)) <= 11


@pytest.mark.parametrize(("count", "bands"), [(1, 1), (3, 3), (4, 0)])
def test_a_few_lines_have_bands_and_of_more_none_hides_another(count: int, bands: int) -> None:
    values = (1.0, 2.0, 1.5)
    lines = tuple(Line(f"line {at}", nights(3), values, (0.9, 1.9, 1.4), (1.1, 2.1, 1.6)) for at in range(count))
    root = ElementTree.fromstring(plot_util.render(Longitudinal("Time", "ms", lines, lower_is_better=True)))
    drawn = [group for group in root.iter(f"{SVG}g") if group.attrib.get("id", "").startswith("FillBetween")]
    assert len(drawn) == bands
