"""What each named pass brings: the zero pipeline with passes switched off or added, against the pipeline as it is."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from typing import Any

from tvmdash import relax_workload, series_plots
from tvmdash.errors import DashboardError
from tvmdash.exp_templates import Axis, Experiment, History, Point, Prepared
from tvmdash.relax_util import CompileOptions
from tvmdash.store import Series
from tvmdash.summary_util import Summary
from tvmdash.words import list_in_words

UNCHANGED = "unchanged"
LEAST_EFFECT = 0.05
"""Smaller differences are not told, even where the intervals are apart: no pass is chosen for them."""


class PassComparison(Experiment):
    """Every network with every change.

    Each change has processes of its own: TVM without a pass that it needs may die of a signal.
    """

    engines = (relax_workload.TVM,)
    axes = (
        Axis("passes", "build_config"),
        Axis("batch", "workload_args"),
        Axis("threads", "runtime_config"),
    )

    def points(self, config: Mapping[str, Any]) -> list[Point]:
        target = json.dumps(relax_workload.target(config), sort_keys=True)
        shared = {"batch": config["batch"], "threads": config["threads"]}
        return [
            Point(f"network.{network}", {"passes": passes, **shared}, group=passes, target=target)
            for passes in dict.fromkeys([UNCHANGED, *map(normal, config["changes"])])
            for network in config["networks"]
        ]

    def prepare(self, point: Point, config: Mapping[str, Any], seed: int) -> Prepared:
        added, disabled = (names_after(sign, point.values["passes"]) for sign in "+-")
        options = CompileOptions(json.loads(point.target), "zero", added, disabled)
        return relax_workload.prepare(point.workload.partition(".")[2], options, config, seed)

    def summary(self, history: History) -> Summary:
        """The default words, but each change against the pipeline as it is, where their intervals are apart."""
        usual = super().summary(history)
        kept = [line for line in usual.value.split("\n") if ": fastest " not in line]
        head = "Against the unchanged pipeline, by tonight's samples alone:"
        return Summary(usual.title, "\n".join([*kept, head, *told(history)]))


def told(history: History) -> list[str]:
    """A line for each network: which changes made it slower or faster than both intervals explain."""
    tonight = series_plots.measured_tonight(history, {"run_time"})
    values = {(item.labels["workload"], item.labels["build_config"]["passes"]): item for item in tonight}
    lines = []
    for workload in dict.fromkeys(workload for workload, _ in values):
        base = values.get((workload, UNCHANGED))
        if base is None:
            lines.append(
                f"- {workload.partition('.')[2]}: the unchanged pipeline was not measured; nothing to compare with"
            )
            continue
        ratios = {
            passes: item.values[-1] / base.values[-1]
            for (name, passes), item in values.items()
            if name == workload
            and apart(item, base)
            and abs(math.log(item.values[-1] / base.values[-1])) > LEAST_EFFECT
        }
        worst_first = sorted(ratios, key=lambda passes: -abs(math.log(ratios[passes])))
        words = [f"{passes} {ratio_in_words(ratios[passes])}" for passes in worst_first]
        same = f"no change of {sum(name == workload for name, _ in values) - 1} is told from noise"
        lines.append(f"- {workload.partition('.')[2]}: {list_in_words(words, 4) or same}")
    return lines


def apart(one: Series, other: Series) -> bool:
    """Whether the newest 95 % intervals of two series do not touch; without intervals nothing is told apart."""
    low, high, other_low, other_high = one.low[-1], one.high[-1], other.low[-1], other.high[-1]
    if low is None or high is None or other_low is None or other_high is None:
        return False
    return low > other_high or high < other_low


def ratio_in_words(ratio: float) -> str:
    """As in `1.52x slower`."""
    return f"{ratio:.2f}x slower" if ratio > 1 else f"{1 / ratio:.2f}x faster"


def normal(change: str) -> str:
    """The change with one space between its passes; DashboardError where one has no sign."""
    words = change.split()
    wrong = next((word for word in words if word[0] not in "+-" or len(word) == 1), None)
    if wrong or not words:
        raise DashboardError(f"$.changes: {change!r}: write +Name to add a pass before, -Name to switch one off.")
    return " ".join(words)


def names_after(sign: str, change: str) -> tuple[str, ...]:
    """The passes that `change` names with this sign."""
    return tuple(word[1:] for word in change.split() if word[0] == sign)


if __name__ == "__main__":
    sys.exit(PassComparison().main())
