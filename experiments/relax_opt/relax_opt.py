"""What Relax pipelines and LLVM's optimisation levels bring, on whole networks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tvmdash.exp_templates import Point
from tvmdash.relax_templates import CompileOptions, RelaxExperiment

FAST_MATH = "_fast_math"
"""What follows the pipeline's name in the variant that has LLVM's fast-math."""


class RelaxOpt(RelaxExperiment):
    """Every network with every variant at every level; a process for each network."""

    def target(self, point: Point, config: Mapping[str, Any]) -> Mapping[str, Any]:
        level, variant = point.values["opt_level"], point.values["variant"]
        return {**super().target(point, config), "opt-level": level, "fast-math": variant.endswith(FAST_MATH)}

    def options(self, point: Point, config: Mapping[str, Any]) -> CompileOptions:
        return CompileOptions(json.loads(point.target), point.values["variant"].removesuffix(FAST_MATH))


if __name__ == "__main__":
    raise SystemExit(RelaxOpt().main())
