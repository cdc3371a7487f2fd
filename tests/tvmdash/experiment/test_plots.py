"""The pictures that follow from an experiment's series alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tvmdash.experiment.info import History
from tvmdash.experiment.plots import default_plots, default_summary, make_map, spread_plot
from tvmdash.plot_util import Distribution, Estimate, GroupedBar, HeatMap, alt_text
from tvmdash.series.store import Series

WORKLOADS, ENGINES = ("mlp", "vgg", "lstm"), ("tvm", "torch", "onnx")


def stamps(count: int) -> tuple[str, ...]:
    return tuple(f"202611{day + 1:02}T031500Z" for day in range(count))


def series(workload: str, engine: str, *values: float) -> Series:
    labels = {"workload": f"network.{workload}", "engine": engine}
    nothing = (None,) * len(values)
    when = stamps(len(values))
    return Series(workload + engine, "e", "run_time", "ms", "lower", labels, when, values, nothing, nothing, nothing)


def history(*found: Series) -> History:
    return History("e", (), found, max((one.stamps for one in found), key=len), ())


def test_a_summary_of_tonights_numbers_does_not_say_that_they_got_worse() -> None:
    """After a busy night it said "up 169 % (worse)" beside a verdict in which nothing had moved."""
    ratio = replace(series("mlp", "tvm", 2.0, 1.0), metric="run_time_ratio", unit="")
    assert default_summary(history(series("mlp", "tvm", 8.0, 21.5), ratio)).value == "1 point measured."


def bars(*rows: tuple[float | None, ...], lower_is_better: bool | None = True) -> GroupedBar:
    values = tuple(tuple(None if value is None else Estimate(value) for value in row) for row in rows)
    return GroupedBar("T", "ms", WORKLOADS[: len(rows)], ENGINES[: len(rows[0])], values, lower_is_better)


def test_a_map_tells_each_value_as_a_multiple_of_its_rows_fastest() -> None:
    drawn = make_map(bars((2.0, 1.0, 4.0), (30.0, None, 20.0), (None, None, None)))  # 5 of 9
    assert drawn is not None
    assert drawn.values == ((2.0, 1.0, 4.0), (1.5, None, 1.0), (None, None, None))
    assert (drawn.rows, drawn.columns) == (WORKLOADS, ENGINES)


def test_workloads_that_have_a_configuration_each_have_no_map() -> None:
    assert make_map(bars((1.0, None, None), (None, 2.0, None), (None, None, 3.0))) is None


def test_few_values_zeros_and_what_is_no_time_have_no_map() -> None:
    assert make_map(bars((1.0, 2.0, 3.0), (1.0, 2.0, 3.0))) is None
    assert make_map(bars((1.0, 2.0), (1.0, 2.0), (1.0, 2.0))) is None
    assert make_map(bars((0.0, 1.0, 2.0), (1.0, 1.0, 2.0), (1.0, 1.0, 2.0))) is None
    assert make_map(bars((1.0, 1.0, 2.0), (1.0, 1.0, 2.0), (1.0, 1.0, 2.0), lower_is_better=None)) is None


def test_the_spread_is_of_each_series_against_its_own_median_the_widest_first() -> None:
    calm = series("mlp", "tvm", *[100.0] * 9, 101.0)
    wild = series("mlp", "torch", *[10.0] * 9, 15.0)
    drawn = spread_plot(history(calm, wild), (calm, wild))
    assert drawn is not None
    assert drawn.groups == ("torch", "tvm")
    assert [max(values) for values in drawn.values] == pytest.approx([50.0, 1.0])


def test_the_middle_of_a_spread_is_zero_and_not_what_rounding_left_of_it() -> None:
    even = series("mlp", "tvm", *[0.1, 0.3, 0.7, 1.1, 1.3, 1.9, 2.3, 2.9, 3.1, 3.7])
    drawn = spread_plot(history(even), (even,))
    assert drawn is not None
    assert "mlp 0 (" in alt_text(drawn)


def test_a_few_nights_have_no_spread() -> None:
    young = series("mlp", "tvm", *[1.0] * 9)
    assert spread_plot(history(young), (young,)) is None


def test_many_series_are_counted_in_the_title_of_the_spread() -> None:
    many = [series(f"net{number}", "tvm", *[10.0] * 9, 10.0 + number) for number in range(20)]
    drawn = spread_plot(history(*many), many)
    assert drawn is not None
    assert drawn.groups[0] == "net19"
    assert (len(drawn.groups), drawn.title) == (12, "e: the last 10 nights, the 12 of 20 series that vary most")


def test_an_experiment_of_several_workloads_and_configurations_gets_map_and_spread() -> None:
    found = [series(name, engine, *[1.0] * 10) for name in WORKLOADS for engine in ENGINES]
    plots = default_plots(history(*found))
    assert isinstance(plots["tonight_map"], HeatMap)
    assert isinstance(plots["spread"], Distribution)
    assert {"tonight", "mlp_all_time"} <= set(plots)


def test_one_night_of_one_workload_has_neither() -> None:
    assert set(default_plots(history(series("mlp", "tvm", 1.0)))) == {"tonight", "mlp_all_time"}
