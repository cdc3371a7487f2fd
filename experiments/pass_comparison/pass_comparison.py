"""What each named pass brings: the zero pipeline with passes switched off or added, against the pipeline as it is."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from tvmdash import relax_workload
from tvmdash.errors import DashboardError
from tvmdash.exp_templates import Axis, EngineFacts, Experiment, Point, Prepared
from tvmdash.relax_util import CompileOptions

UNCHANGED = "unchanged"


class PassComparison(Experiment):
    """Every network with every change.

    Each change has processes of its own: TVM without a pass that it needs may die of a signal.
    """

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

    def engine_facts(self) -> EngineFacts:
        return relax_workload.engine_facts()


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
