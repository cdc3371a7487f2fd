"""The fastest is told for each size, and an axis is named only where it tells points apart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tvmdash.experiment import configuration_text
from tvmdash.experiment.info import Axis, History
from tvmdash.experiment.on_devices import AXIS
from tvmdash.series.store import Series
from tvmdash.summary_util import Section, SectionKind, Summary

STAMP = "20261121T000000Z"
AXES = (Axis("size", "workload_args"), Axis("how", "build_config"), Axis("threads", "runtime_config"))


def series(workload: str, engine: str, ms: float, **args: Any) -> Series:
    how = {"how": args.pop("how")} if "how" in args else {}
    labels = {
        "workload": f"w.{workload}",
        "engine": engine,
        "workload_args": args,
        "build_config": how,
        "runtime_config": {"threads": 1},
    }
    name = f"{workload}{engine}{how}{args}"
    return Series(name, "e", "run_time", "ms", True, labels, (STAMP,), (ms,), (ms / 2,), (ms * 2,), (0.1,))


def history(*found: Series) -> History:
    return History("e", AXES, found, (STAMP,), ())


TWO_SIZES = history(
    series("net", "tvm", 4.0, size=1, how="x"),
    series("net", "torch", 1.0, size=1),
    series("net", "tvm", 5.0, size=2, how="x"),
    series("net", "torch", 10.0, size=2),
)


def test_each_size_has_its_own_fastest() -> None:
    assert configuration_text.format_fastest(TWO_SIZES) == [
        "Fastest: torch in 1 of 2 and tvm in 1 of 2.",
        "- net, size 1: fastest torch (1.00 ms), then tvm 4.00x",
        "- net, size 2: fastest tvm (5.00 ms), then torch 2.00x",
    ]


def test_ways_are_told_apart_where_one_engine_has_several() -> None:
    told = configuration_text.format_fastest(
        history(series("net", "tvm", 4.0, how="x"), series("net", "tvm", 2.0, how="y"), series("net", "torch", 1.0))
    )
    assert told == ["- net: fastest torch (1.00 ms), then tvm, y 2.00x and tvm, x 4.00x"]


def test_what_only_one_did_is_compared_with_nothing() -> None:
    alone = history(series("net", "tvm", 4.0, size=1))
    assert configuration_text.format_fastest(alone) == []
    assert configuration_text.group_cases(alone).keys() == {"net"}


def test_many_cases_are_cut_and_counted() -> None:
    many = [series("net", engine, 1.0, size=size) for size in range(30) for engine in ("tvm", "torch")]
    told = configuration_text.format_fastest(history(*many))
    assert len(told) == configuration_text.LISTED + 2
    assert told[-1] == "- and 10 more"


def test_the_picture_has_a_group_for_each_size_and_a_gap_for_what_is_missing() -> None:
    plot = configuration_text.plot(history(*TWO_SIZES.series[:3]))
    assert (plot.groups, plot.series) == (("net, size 1", "net, size 2"), ("tvm", "torch"))
    assert [[bar and (bar.value, bar.low) for bar in row] for row in plot.values] == [
        [(4, 2), (1, 0.5)],
        [(5, 2.5), None],
    ]


def test_the_workloads_own_extremes_give_way_to_those_of_its_sizes() -> None:
    parts = ((SectionKind.MEASURED, "4 points measured."), (SectionKind.EXTREMES, "- net: the quickest is torch"))
    usual = Summary.of_sections("t", [Section(kind, (line,)) for kind, line in parts])
    told = configuration_text.summary(usual, TWO_SIZES)
    assert told.value.split("\n") == ["4 points measured.", *configuration_text.format_fastest(TWO_SIZES)]


def test_to_run_on_a_device_is_another_way_to_do_the_same() -> None:
    here = series("net", "tvm", 4.0)
    there = replace(here, id="there", labels={**here.labels, "runtime_config": {"threads": 1, "device": "opencl"}})
    found = replace(history(here, replace(there, values=(2.0,))), axes=(*AXES, AXIS))
    assert configuration_text.format_fastest(found) == ["- net: fastest tvm on opencl (2.00 ms), then tvm 2.00x"]
