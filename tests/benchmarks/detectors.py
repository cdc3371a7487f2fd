"""What the detectors of Apache Otava and asv find in the demo's nights, each night given what was known by then.

    run_dashboard.sh --demo DIR
    python3 -m venv VENV && VENV/bin/pip install apache-otava==0.8.0 asv==0.6.6
    VENV/bin/python tests/benchmarks/detectors.py DIR

A line for each series: by the night on which a change lies, the night that found it first and its size in percent.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from asv import step_detect
from otava.series import AnalysisOptions, Metric, Series

FIRST = 20
"""So many nights are known before anything is asked."""
LEAST_PERCENT = 0.5
"""What the dashboard's detector tells at all."""
Detector = Callable[[Sequence[float]], Iterator[tuple[int, float]]]


def find_by_otava(values: Sequence[float]) -> Iterator[tuple[int, float]]:
    series = Series("demo", "", list(range(len(values))), {"it": Metric(1, 1.0)}, {"it": values}, {})
    for change in series.analyze(AnalysisOptions()).change_points["it"]:
        yield change.index, float(change.forward_change_percent())


def find_by_asv(values: Sequence[float]) -> Iterator[tuple[int, float]]:
    steps = step_detect.detect_steps(values, [None] * len(values))
    for before, after in itertools.pairwise(steps):
        yield after[0], 100 * (after[2] / before[2] - 1)


def read(home: Path) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, float]]]:
    """By workload and stamp: times, and ratios to the reference where there are some."""
    times: dict[str, dict[str, float]] = defaultdict(dict)
    ratios: dict[str, dict[str, float]] = defaultdict(dict)
    for file in (home / "results" / "experiments" / "data").glob("*/data_*.json"):
        for record in json.loads(file.read_text())["records"]:
            stamp, name = file.stem.partition("_")[2], record["workload"]
            times[name][stamp] = record["execution_elapsed_ms_mean"]
            if paired := record["additional_info"].get("paired"):
                ratios[name][stamp] = paired["ratios"]["run_time"]["ratio"]
    return times, ratios


def find_all(values: dict[str, float], nights: list[str], detect: Detector) -> dict[int, tuple[int, float]]:
    """By the night of a change: the night that found it first, and its size in percent."""
    found: dict[int, tuple[int, float]] = {}
    stamps = sorted(values)
    for count in range(FIRST, len(stamps) + 1):
        for at, percent in detect([values[stamp] for stamp in stamps[:count]]):
            if abs(percent) >= LEAST_PERCENT:
                found.setdefault(nights.index(stamps[at]), (nights.index(stamps[count - 1]), round(percent, 1)))
    return dict(sorted(found.items()))


def main() -> None:
    times, ratios = read(Path(sys.argv[1]))
    nights = sorted({stamp for values in times.values() for stamp in values})
    for kind, series in (("times", times), ("ratios", ratios)):
        for detect in (find_by_otava, find_by_asv):
            began = time.process_time()
            lines = [f"  {name}: {find_all(values, nights, detect)}" for name, values in sorted(series.items())]
            print(f"{kind}, {detect.__name__}: {time.process_time() - began:.1f} CPU s", *lines, sep="\n")


if __name__ == "__main__":
    main()
