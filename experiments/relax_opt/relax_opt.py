"""Relax pipelines and LLVM's optimisation levels, on whole networks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tvmdash.exp_templates import ExperimentConfig, Point
from tvmdash.relax_templates import CompileOptions, RelaxExperiment

FAST_MATH = "_fast_math"
"""Suffix of the pipeline's name in the variant that has LLVM's fast-math."""


@dataclass(frozen=True, kw_only=True)
class RelaxOptConfig(ExperimentConfig):
    """Made from fields.json by tests/make_config_classes.py."""

    networks: tuple[str, ...]
    variants: tuple[str, ...]
    opt_levels: tuple[int, ...]
    batch: int
    profile_repeats: int
    threads: int
    mcpu: str
    per_operator: bool


class RelaxOpt(RelaxExperiment[RelaxOptConfig]):
    """Every network with every variant at every level; a process for each network."""

    def target(self, point: Point, config: RelaxOptConfig) -> Mapping[str, Any]:
        level, variant = point.values["opt_level"], point.values["variant"]
        return {**super().target(point, config), "opt-level": level, "fast-math": variant.endswith(FAST_MATH)}

    def options(self, point: Point, config: RelaxOptConfig) -> CompileOptions:
        return CompileOptions(json.loads(point.target), point.values["variant"].removesuffix(FAST_MATH))


if __name__ == "__main__":
    raise SystemExit(RelaxOpt().main())
