"""What Relax pipelines and LLVM's optimisation levels bring, on whole networks."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from tvmdash.exp_templates import Axis, Experiment, Point, Prepared
from tvmdash.relax_util import CompileOptions, workloads

VARIANTS: Mapping[str, tuple[str, bool]] = {
    "default": ("default", False),
    "zero": ("zero", False),
    "zero_fold_bn": ("zero_fold_bn", False),
    "zero_fast_math": ("zero", True),
}
"""The pipeline and LLVM's fast-math."""


class RelaxOpt(Experiment):
    """Every network with every variant at every level; a process for each network."""

    engines = (workloads.TVM,)
    axes = (
        Axis("variant", "build_config"),
        Axis("opt_level", "build_config"),
        Axis("batch", "workload_args"),
        Axis("threads", "runtime_config"),
    )

    def points(self, config: Mapping[str, Any]) -> list[Point]:
        return [
            self._point(network, variant, opt_level, config)
            for network in config["networks"]
            for variant in config["variants"]
            for opt_level in config["opt_levels"]
        ]

    def _point(self, network: str, variant: str, opt_level: int, config: Mapping[str, Any]) -> Point:
        values = {"variant": variant, "opt_level": opt_level, "batch": config["batch"], "threads": config["threads"]}
        target = {**workloads.target(config), "opt-level": opt_level, "fast-math": VARIANTS[variant][1]}
        return Point(f"network.{network}", values, group=network, target=json.dumps(target, sort_keys=True))

    def prepare(self, point: Point, config: Mapping[str, Any], seed: int) -> Prepared:
        options = CompileOptions(json.loads(point.target), VARIANTS[point.values["variant"]][0])
        return workloads.prepare(point.group, options, config, seed)


if __name__ == "__main__":
    sys.exit(RelaxOpt().main())
