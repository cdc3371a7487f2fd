"""Tables of what was measured on a card."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.card.points import POINTS


def write_tables(path: Path) -> None:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for lines in (_about_points(rows), _about_levels(rows), _about_costs(rows), _about_compiling(rows)):
        print(*lines, "", sep="\n")
    print(*_about_pairs(rows), "", *_about_places(rows), "", *_about_clocks(rows), sep="\n")


def _about_points(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield "point: kernels, wmma in the source, tensor core instructions, library bytes"
    for row in rows:
        if row["stage"] == "point":
            code = {word: row[word] for word in ("HMMA", "HGMMA", "FFMA", "HFMA2") if word in row}
            yield f"{row['point']:16} {row['kernels']:3} {row['wmma']!s:5} {code} {row['bytes']}"


def _about_levels(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for row in rows:
        if row["stage"] == "levels" and "rows" in row:
            graph = f"{row['graph'] / 1e3:.2f}" if "graph" in row else row.get("graph_error", "no CUDA")
            yield f"levels of {row['point']}, us a call: in a graph {graph}; off by {row['loaded']['off']:.1e}"
            yield f"  empty: wall {row['empty_wall'] / 1e3:.2f} event {row.get('empty_event', 0) / 1e3:.2f}"
            for one in row["rows"]:
                cells = [f"{key} {one[key] / 1e3:8.2f}" for key in ("wall", "event", "issue", "evaluator") if one[key]]
                yield f"  {one['number']:5} {'  '.join(cells)}"
        elif row["stage"] == "levels":
            yield f"levels of {row['point']}: {row}"


def _steps(begun: int, marks: Mapping[str, int]) -> Iterator[tuple[str, float]]:
    for name, at in marks.items():
        if name != "begun":
            yield name, (at - begun) / 1e9
        begun = at


def _medians(of: Sequence[Sequence[tuple[str, float]]]) -> str:
    names = [name for name, _ in of[0]]
    columns = zip(*([value for _, value in one] for one in of), strict=True)
    return "  ".join(f"{name} {statistics.median(column):.3f}" for name, column in zip(names, columns, strict=True))


def _about_costs(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    costs = [row for row in rows if row["stage"] == "costs"]
    for name, scheme in dict.fromkeys((row["point"], row["scheme"]) for row in costs):
        own = [row for row in costs if (row["point"], row["scheme"]) == (name, scheme)]
        whole = sorted(row["whole_ns"] / 1e9 for row in own)
        yield f"costs of a pair, {name} {scheme}: {statistics.median(whole):.2f} s ({whole[0]:.2f} to {whole[-1]:.2f})"
        yield "  start " + _medians(
            [list(_steps(at, m)) for row in own for at, m in zip(row["spawned"], row["marks"], strict=True)]
        )
        yield "  load  " + _medians(
            [list(_steps(one["marks"]["begun"], one["marks"])) for row in own for one in row["loaded"]]
        )
        rest = [[("warm", row["warm_s"]), ("timing", row["timing_s"]), ("end", row["end_ns"] / 1e9)] for row in own]
        yield "  then  " + _medians(rest)


def _about_compiling(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for row in rows:
        if row["stage"] == "compiling":
            yield f"compiling {row['point']}: start {_medians([list(_steps(row['spawned'], row['hello']))])}"
            if "marks" in row:
                steps = _medians([list(_steps(row["marks"]["begun"], row["marks"]))])
                yield f"  then {steps}; of build, nvcc or NVRTC {row['cuda_compile_s']:.2f}; off by {row['off']:.1e}"
            else:
                yield f"  {row['error']}"


def _about_pairs(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    pairs = [row for row in rows if row["stage"] == "pairs"]
    yield "point, scheme, mode, clock: pairs, median us, sd of a pair's log ratio in %, largest, sd within a side, mean"
    for name, scheme, mode in dict.fromkeys(
        (row["point"], row["scheme"], row["mode"]) for row in sorted(pairs, key=_place)
    ):
        own = [row for row in pairs if (row["point"], row["scheme"], row["mode"]) == (name, scheme, mode)]
        errors = [row["error"] for row in own if "error" in row]
        if errors:
            yield f"{name:14} {scheme:9} {mode:6} failed {len(errors)} times: {errors[0][:300]}"
        for clock, index in (("wall", 0), ("event", 1)):
            values = [_ratio(row, index) for row in own if "error" not in row and row["taken"][0][0][index] is not None]
            if len(values) > 1:
                ratios, level = [ratio for ratio, _, _ in values], statistics.median(level for _, level, _ in values)
                within = statistics.median(one for _, _, one in values)
                yield (
                    f"{name:14} {scheme:9} {mode:6} {clock:5} {len(values):3} {level / 1e3:10.2f} "
                    f"{100 * statistics.stdev(ratios):7.2f} {100 * max(map(abs, ratios)):7.2f} {100 * within:7.2f} "
                    f"{100 * statistics.fmean(ratios):+7.2f}"
                )


def _about_places(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """By events: does a level belong to the process or to the place in memory?"""
    places = [row for row in rows if row["stage"] == "places"]
    yield "places of memory; point, scheme: pairs, sd in % between places of a process, between means of processes "
    yield "(and what places alone make of it), of a pair's log ratio by one place and by all; seconds a place"
    for name, scheme in dict.fromkeys((row["point"], row["scheme"]) for row in places):
        own = [row for row in places if (row["point"], row["scheme"]) == (name, scheme)]
        for error in (row["error"] for row in own if "error" in row):
            yield f"{name} {scheme}: {error[:200]}"
        levels = [
            [
                [math.log(statistics.median(sample[1] or sample[0] for sample in place)) for place in side]
                for side in row["places"]
            ]
            for row in own
            if "error" not in row
        ]
        if len(levels) > 1:
            sides = [side for pair in levels for side in pair]
            within = math.sqrt(statistics.fmean(statistics.variance(side) for side in sides))
            between = statistics.stdev(statistics.fmean(side) for side in sides)
            count = len(sides[0])
            one = statistics.stdev(a - b for pair in levels for a, b in zip(*pair, strict=True))
            of_all = statistics.stdev(statistics.fmean(a) - statistics.fmean(b) for a, b in levels)
            numbers = (within, between, within / math.sqrt(count), one, of_all)
            cells = "  ".join(f"{100 * value:6.2f}" for value in numbers)
            seconds = statistics.median(row["place_s"] for row in own)
            yield f"{name:14} {scheme:6} {len(levels):3}  {cells}  {seconds:.3f}"


def _place(row: Mapping[str, Any]) -> tuple[int, int, str]:
    return POINTS.index(row["point"]), row["scheme"], row["mode"]


def _ratio(row: Mapping[str, Any], index: int) -> tuple[float, float, float]:
    number = row["number"] * (row["in_graph"] if row["scheme"] == "graph" else 1)
    sides = [[sample[index] / number for sample in side] for side in row["taken"]]
    middles = [statistics.median(side) for side in sides]
    within = statistics.fmean(statistics.stdev(side) / middle for side, middle in zip(sides, middles, strict=True))
    return math.log(middles[0] / middles[1]), statistics.fmean(middles), within


def _about_clocks(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    readings = next((row["readings"] for row in rows if row["stage"] == "clocks"), [])
    if not readings:
        yield "no clocks"
        return
    spans = [row["span"] for row in rows if row["stage"] == "pairs"]
    inside = [one for one in readings if any(begun <= one[0] <= end for begun, end in spans)]
    for name, some in (("all", readings), ("while samples were taken", inside)):
        if some:
            counted = {mhz: sum(1 for one in some if one[1] == mhz) for mhz in sorted({one[1] for one in some})}
            why = {hex(bits): sum(1 for one in some if one[5] == bits) for bits in {one[5] for one in some}}
            watts = max(one[3] for one in some)
            yield f"{name}: {len(some)} readings, SM MHz {counted}, up to {watts:.0f} W, reasons {why}"
    for stage in ("pairs", "costs"):
        warmed = [row["warm_s"] for row in rows if row["stage"] == stage and row.get("warm_s")]
        if warmed:
            yield f"seconds until steady, {stage}: median {statistics.median(warmed):.2f}, longest {max(warmed):.2f}"
