"""Sorting numbers: Python's own sort beside numpy's."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tvmdash import analysis_util, common
from tvmdash.dashboard_info import Home
from tvmdash.exp_templates import (
    Axis,
    Engine,
    EngineFacts,
    Experiment,
    ExperimentConfig,
    History,
    OperatorSpan,
    Point,
    Prepared,
    Record,
)
from tvmdash.plot_util import (
    Bar,
    BarValue,
    Distribution,
    Estimate,
    GroupedBar,
    HeatMap,
    Line,
    Longitudinal,
    Mark,
    alt_text,
    draw,
)
from tvmdash.summary_util import (
    Section,
    SectionKind,
    Summary,
    format_bytes,
    format_duration,
    format_list,
    format_percent_change,
    format_quantity,
    format_ratio,
    geometric_mean_ratio,
    parse_summary,
)
from tvmdash.trial_util import python_timer

PYTHON, NUMPY = "python", "numpy"


def python_facts() -> EngineFacts:
    return EngineFacts(version=platform.python_version())


def numpy_facts() -> EngineFacts:
    return EngineFacts(version=np.__version__, facts={"python": platform.python_version()})


@dataclass(frozen=True, kw_only=True)
class SortingConfig(ExperimentConfig):
    lengths: tuple[int, ...]
    orders: tuple[str, ...]
    threads: int


class Sorting(Experiment[SortingConfig]):
    engines = (Engine(PYTHON, facts=python_facts), Engine(NUMPY, facts=numpy_facts))

    def target(self, point: Point, config: SortingConfig) -> str:
        return platform.machine()

    def environment(self, point: Point, config: SortingConfig) -> dict[str, str]:
        return {**super().environment(point, config), "SORTING_BESIDE": config.title}

    def make_inputs(self, config: SortingConfig, folder: Path, seed: int) -> None:
        numbers = np.random.default_rng(seed).integers(0, 1 << 30, max(config.lengths))
        np.save(folder / "numbers.npy", numbers)

    def prepare(self, point: Point, config: SortingConfig, seed: int) -> Prepared:
        numbers = np.load(self.inputs / "numbers.npy")[: point.values["length"]]
        expected = np.sort(numbers)
        given = expected if point.name == "ascending" else numbers
        if point.engine == NUMPY:
            return self._prepared(lambda: np.sort(given), given, expected)
        plain = given.tolist()
        return self._prepared(lambda: sorted(plain), given, expected)

    def _prepared(self, work: Any, given: Any, expected: Any) -> Prepared:
        def check() -> Mapping[str, Any]:
            error = float(np.abs(np.asarray(work()) - expected).max())
            if error:
                raise ValueError(f"the answer is {error} off")
            return {"max_error": error, "tolerance": 0.0}

        def profile() -> Sequence[OperatorSpan]:
            return [OperatorSpan(0, "sort", 0, 1000)]

        return Prepared(
            timer=python_timer(work),
            check=check,
            profile=profile,
            memory_bytes=int(given.nbytes),
            inputs=(given,),
            layout="N",
            details={"sorts": 1},
            after=lambda: {"leftovers": 0},
        )

    def derive(self, records: Sequence[Record]) -> Sequence[Mapping[str, Any]]:
        return [
            {"numbers_per_ms": record.workload_args["length"] / record.execution_elapsed_ms_mean} for record in records
        ]

    def plots(self, history: History) -> Mapping[str, Any]:
        assert self.axes[0] == Axis("length", "workload_args")
        assert history.axes == self.axes
        names, lengths = self._of(history, "workload"), self._of(history, "length")
        times = [series for series in history.series if series.metric == "run_time"]
        by_key = {(v["workload"], v["length"], v["engine"]): s for s in times for v in [history.values(s)]}
        own = {
            "slowest": Bar(
                "Sorting",
                "ms",
                tuple(BarValue(series.id[:12], series.values[-1], series.low[-1], series.high[-1]) for series in times),
                lower_is_better=True,
            ),
            "engines": GroupedBar(
                "Engines",
                "ms",
                tuple(f"{name} {length}" for name in names for length in lengths),
                (PYTHON, NUMPY),
                tuple(
                    tuple(Estimate(by_key[name, length, engine].values[-1]) for engine in (PYTHON, NUMPY))
                    for name in names
                    for length in lengths
                ),
                lower_is_better=True,
            ),
            "nights": Longitudinal(
                "Nights",
                "ms",
                tuple(Line(series.id[:12], tuple(series.stamps), tuple(series.values)) for series in times),
                window="two_weeks",
                marks=(Mark(history.stamps[-1], "tonight"),),
                lower_is_better=True,
            ),
            "spread": Distribution(
                "Spread", "ms", (PYTHON, NUMPY), tuple(tuple(self._all(history, times, e)) for e in (PYTHON, NUMPY))
            ),
            "map": HeatMap(
                "Map",
                "ms",
                tuple(names),
                tuple(str(length) for length in lengths),
                tuple(tuple(by_key[name, length, NUMPY].values[-1] for length in lengths) for name in names),
                lower_is_better=True,
            ),
        }
        return {**super().plots(history), **own}

    def _of(self, history: History, name: str) -> list[Any]:
        return sorted({history.values(series)[name] for series in history.series})

    def _all(self, history: History, times: Sequence[Any], engine: str) -> list[float]:
        return [value for series in times if history.values(series)["engine"] == engine for value in series.values]

    def summary(self, history: History) -> Summary:
        times = [series for series in history.series if series.metric == "run_time"]
        pairs = [(series.values[-1] * 2, series.values[-1]) for series in times]
        ratio = geometric_mean_ratio(pairs)
        lines = [
            f"- a ratio: {format_ratio(ratio)}",
            f"- the largest: {format_quantity(max(series.values[-1] for series in times), 'ms')}",
            f"- a change: {format_percent_change(10.0, 11.24, 'ms', lower_is_better=True)}",
            f"- {format_bytes(36_000)} in {format_duration(312)}: {format_list(['a', 'b', 'c', 'd', 'e'], 2)}",
        ]
        told = super().summary(history).without(SectionKind.EXTREMES)
        told = told.with_lines(lines, before=SectionKind.CHANGES)
        assert any(isinstance(section, Section) for section in told.sections)
        return parse_summary(told.to_json(), "sorting")

    def leave_files(self, data: Path, destination: Path) -> None:
        home = Home.of_data_dir(data)
        assert home is not None
        newest = home.data_file(self.name, home.data_stamps(self.name)[-1])
        records = common.read_json(newest)["records"]
        plot = Bar("Records", "", (BarValue("tonight", len(records)),))
        draw(plot, destination / "records.png")
        common.write_text(destination / "records.txt", alt_text(plot) + "\n")
        common.write_json(
            destination / "records.json", {"records": len(records), "version": analysis_util.SCHEMA_VERSION}
        )


if __name__ == "__main__":
    raise SystemExit(Sorting().main())
