"""Heat maps and distributions: what they show, leave out and say in words."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import pytest

from tvmdash import plot_util
from tvmdash.errors import DashboardError
from tvmdash.plot_util import Distribution, HeatMap, Plot, drawing

SVG = "{http://www.w3.org/2000/svg}"
MAP = HeatMap("Ratios", "times", ("mlp", "vgg"), ("a", "b", "c"), ((1.0, 2.5, None), (1.25, math.nan, 1.0)), True)
SPREAD = Distribution("Nights", "%", ("calm", "wild", "gone"), ((0.0, 0.1, -0.1), (-5.0, 0.0, 7.5, 0.5), (None,)))


def texts(plot: Plot) -> list[str]:
    root = ElementTree.fromstring(plot_util.render(plot))
    return ["".join(element.itertext()) for element in root.iter(f"{SVG}text")]


def test_a_heat_map_names_rows_and_columns_and_writes_each_number_into_its_cell() -> None:
    told = texts(MAP)
    assert {"Ratios", "mlp", "vgg", "a", "b", "c", "times, lower is better"} <= set(told)
    assert [told.count(number) for number in ("1.00", "2.50", "1.25")] == [2, 1, 1]
    assert told.count("no value") == 2


def test_a_heat_map_says_its_extremes_and_gaps_in_words() -> None:
    words = "Ratios (times, lower is better): 2 by 3 values, from 1.00 (mlp, a) to 2.50 (mlp, b); no value for mlp, c"
    assert plot_util.alt_text(MAP) == f"{words} and vgg, b."


def test_shades_are_on_a_log_scale_where_numbers_span_more_than_fifty_times() -> None:
    wide = HeatMap("Times", "ms", ("x",), ("a", "b"), ((0.1, 1000.0),))
    assert "ms, log scale" in texts(wide)
    assert "ms, log scale" not in texts(HeatMap("Times", "ms", ("x",), ("a", "b"), ((0.0, 1000.0),)))


def test_a_distribution_has_a_dot_for_each_value_and_its_median_and_ends_in_words() -> None:
    root = ElementTree.fromstring(plot_util.render(SPREAD))
    dots = [use for use in root.iter(f"{SVG}use") if "fill-opacity" in use.attrib.get("style", "")]
    assert len(dots) == 7
    assert {"calm", "wild", "gone", "no value", "0 (-0.100 to 0.100)", "0.250 (-5.00 to 7.50)"} <= set(texts(SPREAD))


def test_the_words_of_a_distribution_begin_with_the_widest_group() -> None:
    words = "wild 0.250 (-5.00 to 7.50); calm 0 (-0.100 to 0.100); no value for gone."
    assert plot_util.alt_text(SPREAD).endswith(f"the widest first: {words}")


def test_values_far_apart_are_spread_on_a_named_log_scale() -> None:
    assert "ms, log scale" in texts(Distribution("Times", "ms", ("a", "b"), ((0.1, 0.2), (1000.0,))))


@pytest.mark.parametrize(
    "plot",
    [
        HeatMap("Empty", "ms", (), (), ()),
        HeatMap("Empty", "ms", ("a",), ("b",), ((math.inf,),)),
        Distribution("Empty", "ms", ("a",), ((),)),
    ],
)
def test_without_values_both_say_no_data(plot: Plot) -> None:
    assert "no data" in texts(plot)
    assert plot_util.alt_text(plot) == "Empty (ms): no data."


def test_what_is_not_drawn_is_counted() -> None:
    names = tuple(f"r{number}" for number in range(drawing.MAX_ROWS + 5))
    columns = names[: drawing.MAX_COLUMNS + 3]
    assert (drawing.MAX_GROUPS, len(names), len(columns)) == (100, 105, 19)
    assert "5 more rows are not drawn" in texts(Distribution("Many", "", names, ((1.0,),) * len(names)))
    told = texts(HeatMap("Many", "", names, columns, ((1.0,) * len(columns),) * len(names)))
    assert "5 more rows are not drawn; 3 more columns are not drawn" in told


@pytest.mark.parametrize("plot", [MAP, SPREAD])
def test_equal_specs_give_equal_bytes(plot: Plot) -> None:
    assert plot_util.render(plot) == plot_util.render(plot)


def test_labels_are_not_read_as_mathematics_and_are_escaped() -> None:
    label = "<b>$\\frac{1}$ & 名前"
    assert label in texts(HeatMap("T", "", (label,), (label,), ((1.0,),)))
    assert label in texts(Distribution("T", "", (label,), ((1.0, 2.0),)))


def test_a_table_that_is_not_rectangular_is_refused_with_its_place() -> None:
    with pytest.raises(DashboardError, match=re.escape("plot 'T': the values of row 'b' has 1 entries, columns has 2")):
        HeatMap("T", "ms", ("a", "b"), ("x", "y"), ((1.0, 2.0), (1.0,)))
