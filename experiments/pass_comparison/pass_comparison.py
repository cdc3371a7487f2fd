"""The effect of each named pass: the zero pipeline with passes switched off or added, against the pipeline as it is."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tvmdash.errors import DashboardError
from tvmdash.exp_templates import ExperimentConfig, History, Point
from tvmdash.experiment import plots
from tvmdash.machine.devices import CPU, device_of
from tvmdash.relax_templates import CompileOptions, RelaxExperiment
from tvmdash.series.store import Series
from tvmdash.summary_util import SectionKind, Summary
from tvmdash.text import format_list

UNCHANGED = "unchanged"
LEAST_EFFECT = 0.05
"""Smaller differences of time are not told, even where the intervals are apart: no pass is chosen for them."""
LEAST_SIZE = 0.01
SIZES: Mapping[str, tuple[str, str, str]] = {
    "code_size": ("code", "larger", "smaller"),
    "planned_memory": ("planned memory", "more", "less"),
}
"""Metrics told besides time: the metric, its name, and the words for more and less of it."""


@dataclass(frozen=True, kw_only=True)
class PassComparisonConfig(ExperimentConfig):
    """Made from fields.json by tests/make_config_classes.py."""

    changes: tuple[str, ...]
    networks: tuple[str, ...]
    batch: int
    profile_repeats: int
    threads: int
    mcpu: str
    device: tuple[str, ...]


class PassComparison(RelaxExperiment[PassComparisonConfig]):
    """Every network with every change.

    Each change has processes of its own: TVM without a pass that it needs may die of a signal.
    """

    def points(self, config: PassComparisonConfig) -> list[Point]:
        changes = dict.fromkeys([UNCHANGED, *map(normal, config.changes)])
        points = super().points(replace(config, changes=tuple(changes)))
        return [replace(point, group=point.values["passes"]) for point in points]

    def options(self, point: Point, config: PassComparisonConfig) -> CompileOptions:
        added, disabled = (names_after(sign, point.values["passes"]) for sign in "+-")
        return CompileOptions(json.loads(point.target), "zero", added, disabled)

    def summary(self, history: History) -> Summary:
        """Compare each change with the pipeline as it is, where their intervals are apart."""
        head = "Against the unchanged pipeline, by tonight's samples alone:"
        return super().summary(history).without(SectionKind.EXTREMES).with_lines([head, *summarize_history(history)])


def summarize_history(history: History) -> list[str]:
    """Write a line for each network and device: what each change did to its time, its code and its planned memory."""
    tonight = plots.measured_tonight(history, {"run_time", *SIZES})
    lines = []
    for workload, device in dict.fromkeys(map(_place, tonight)):
        of_workload = [item for item in tonight if _place(item) == (workload, device)]
        values = {
            metric: {item.labels["build_config"]["passes"]: item for item in of_workload if item.metric == metric}
            for metric in ("run_time", *SIZES)
        }
        name = workload.partition(".")[2] + ("" if device == CPU else f" on {device}")
        lines.append(f"- {name}: {'; '.join([times(values['run_time']), *sizes(values)])}")
    return lines


def _place(series: Series) -> tuple[str, str]:
    """Return the workload of a series, and where it ran."""
    return str(series.labels["workload"]), device_of(series.labels)


def times(values: Mapping[str, Series]) -> str:
    """Name the changes that made it slower or faster than both intervals explain."""
    base = values.get(UNCHANGED)
    if base is None:
        return "the unchanged pipeline was not measured; nothing to compare with"
    ratios = {
        passes: item.values[-1] / base.values[-1]
        for passes, item in values.items()
        if apart(item, base) and abs(math.log(item.values[-1] / base.values[-1])) > LEAST_EFFECT
    }
    tried = f"{len(values) - 1} {'change' if len(values) == 2 else 'changes'} tried"
    return format_list(describe(ratios, "slower", "faster"), 4) or f"no effect beyond the noise ({tried})"


def sizes(values: Mapping[str, Mapping[str, Series]]) -> list[str]:
    """Name the changes that made code or memory larger or smaller; these have no noise."""
    lines = []
    for metric, (name, more, less) in SIZES.items():
        base = values[metric].get(UNCHANGED)
        if base is None or not base.values[-1]:
            continue
        ratios = {passes: item.values[-1] / base.values[-1] for passes, item in values[metric].items()}
        real = {passes: ratio for passes, ratio in ratios.items() if ratio and abs(math.log(ratio)) > LEAST_SIZE}
        if real:
            lines.append(f"{name}: {format_list(describe(real, more, less), 4)}")
    return lines


def describe(ratios: Mapping[str, float], more: str, less: str) -> list[str]:
    """Describe effects as in `-FuseOps 1.52x slower`, the largest first."""
    largest_first = sorted(ratios, key=lambda passes: -abs(math.log(ratios[passes])))
    return [f"{passes} {format_ratio(ratios[passes], more, less)}" for passes in largest_first]


def apart(left: Series, right: Series) -> bool:
    """Return True where the newest 95 % intervals of two series do not touch; False without intervals."""
    low, high, other_low, other_high = left.low[-1], left.high[-1], right.low[-1], right.high[-1]
    if low is None or high is None or other_low is None or other_high is None:
        return False
    return low > other_high or high < other_low


def format_ratio(ratio: float, more: str, less: str) -> str:
    """Format a ratio as in `1.52x slower` or `140x more`."""
    size = max(ratio, 1 / ratio)
    return f"{size:{'.2f' if size < 10 else ',.0f'}}x {more if ratio > 1 else less}"


def normal(change: str) -> str:
    """Put one space between the change's passes; DashboardError where one has no sign."""
    passes = change.split()
    wrong = next((word for word in passes if word[0] not in "+-" or len(word) == 1), None)
    if wrong or not passes:
        raise DashboardError(f"$.changes: {change!r}: write +Name to add a pass before, -Name to switch one off.")
    return " ".join(passes)


def names_after(sign: str, change: str) -> tuple[str, ...]:
    """List the passes that `change` names with this sign."""
    return tuple(word[1:] for word in change.split() if word[0] == sign)


if __name__ == "__main__":
    raise SystemExit(PassComparison().main())
