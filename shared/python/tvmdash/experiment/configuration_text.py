"""The fastest configuration of each case (a workload at one size), by tonight's run times.

For experiments that vary sizes, where the default words and bars, which go by workload alone, would compare sizes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from tvmdash.experiment import plots
from tvmdash.experiment.info import History
from tvmdash.experiment.on_devices import AXIS
from tvmdash.machine.devices import CPU, device_of
from tvmdash.plot_util.specs import GroupedBar
from tvmdash.series.store import Series
from tvmdash.summary_util import SectionKind, Summary
from tvmdash.text import format_list, format_quantity

LISTED = 20
_SIZES = ("workload_args", "runtime_config")
_WAYS = ("engine_config", "build_config")
Cases = Mapping[str, Mapping[str, Series]]
"""Tonight's run times by case, then by way: the engine and its build, as in "tvm, unrolled"."""


def group_cases(history: History) -> Cases:
    """Group tonight's run times. Workload and engine are named always, an axis where two points differ on it.

    So is a device, with the way: to run elsewhere is another way to do the same.
    """
    tonight = plots.measured_tonight(history, {"run_time"})
    sizes, ways = _find_differing(history, tonight, _SIZES), _find_differing(history, tonight, _WAYS)
    series_of: dict[str, dict[str, Series]] = {}
    for series in tonight:
        values = history.values(series)
        case = ", ".join([values["workload"], *(f"{name} {values[name]}" for name in sizes if name in values)])
        way = ", ".join([str(values.get("engine", "")), *(str(values[name]) for name in ways if name in values)])
        device = device_of(series.labels)
        way += "" if device == CPU else f" on {device}"
        series_of.setdefault(case, {})[way] = series
    return series_of


def _find_differing(history: History, tonight: Sequence[Series], columns: Collection[str]) -> list[str]:
    """Return the axes of these columns with two values among the series that have the axis."""
    values = [history.values(series) for series in tonight]
    names = [axis.name for axis in history.axes if axis.column in columns and axis != AXIS]
    return [name for name in names if len({str(value[name]) for value in values if name in value}) > 1]


def plot(history: History) -> GroupedBar:
    """Return a group of bars for each case, a bar for each way."""
    return plots.compare_ways(f"{history.experiment}, night {history.stamps[-1]}", group_cases(history))


def summary(usual: Summary, history: History) -> Summary:
    """Return the default summary with each case's fastest instead of each workload's."""
    return usual.without(SectionKind.EXTREMES).with_lines(format_fastest(history))


def format_fastest(history: History) -> list[str]:
    """Return lines: in how many cases each way was fastest, then each case's fastest and the others' ratios."""
    compared = {name: ways for name, ways in group_cases(history).items() if len(ways) > 1}
    lines = [_format_line(name, ways) for name, ways in list(compared.items())[:LISTED]]
    rest = [f"- and {len(compared) - LISTED} more"] if len(compared) > LISTED else []
    return [*_format_winners(compared), *lines, *rest]


def _format_winners(compared: Cases) -> list[str]:
    winners = Counter(min(ways, key=lambda way: _read_ms(ways[way])) for ways in compared.values())
    counts = [f"{way} in {count} of {len(compared)}" for way, count in winners.most_common()]
    return [f"Fastest: {format_list(counts, 6)}."] if len(compared) > 1 else []


def _format_line(name: str, ways: Mapping[str, Series]) -> str:
    (first, best), *others = sorted(ways.items(), key=lambda item: _read_ms(item[1]))
    ratios = [f"{way} {_read_ms(series) / _read_ms(best):.2f}x" for way, series in others]
    return f"- {name}: fastest {first} ({format_quantity(_read_ms(best), 'ms')}), then {format_list(ratios, 4)}"


def _read_ms(series: Series) -> float:
    return series.values[-1]
