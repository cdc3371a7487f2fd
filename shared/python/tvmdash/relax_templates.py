"""The interface for authors of experiments on Relax: a program for each point."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvmdash import config_util
from tvmdash.config_util import Config
from tvmdash.exp_templates import Experiment, Point, Prepared
from tvmdash.experiment import per_operator
from tvmdash.networks.ops import Array
from tvmdash.relax_util import CompileOptions, lowering, workloads
from tvmdash.relax_util.workloads import Program

__all__ = ["CompileOptions", "Program", "RelaxExperiment", "make_program"]


def make_program(body: Callable[..., Any], inputs: Sequence[Array], expected: Array | None = None) -> Program:
    """Return the Relax function of `body`, which gets a variable for each input and returns an expression of them."""
    return Program(lowering.lower_function(body, inputs), tuple(inputs), expected)


class RelaxExperiment(Experiment[Config]):
    """An experiment whose points are Relax programs, compiled by TVM for this machine's processor."""

    engines = (workloads.TVM,)
    compiles_ahead = True

    def program(self, point: Point, config: Config, seed: int) -> Program:
        """Return the program to compile and time: by default the `tvmdash.networks` network that the workload names."""
        return workloads.network_program(point.name, {**config_util.values_of(config), **point.values}["batch"], seed)

    def options(self, point: Point, config: Config) -> CompileOptions:
        """Return the options to compile it with: by default the point's target and the zero pipeline."""
        return CompileOptions(json.loads(point.target))

    def target(self, point: Point, config: Config) -> Mapping[str, Any]:
        """Return the LLVM target for the point's threads, and the config's `mcpu` if fields.json includes `target`."""
        given = {"mcpu": "", **config_util.values_of(config), **point.values}
        return workloads.make_target(given["threads"], given["mcpu"])

    def prepare(self, point: Point, config: Config, seed: int) -> Prepared:
        """Compile and load the program; the check compares its answer where the program has an expected one."""
        options = self.options(point, config)
        given = {"profile_repeats": 0, **config_util.values_of(config), **point.values}
        watched = max(given["profile_repeats"], per_operator.RUNS if per_operator.is_asked(config) else 0)
        return workloads.prepare_program(
            lambda: self.program(point, config, seed),
            options,
            threads=given["threads"],
            profile_repeats=watched,
            device=point.device,
        )
