"""What the author of an experiment on Relax writes against: a program for each point; the rest is done from here."""

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
    """The Relax function that `body` writes: it is given a variable for each input and gives an expression of them."""
    return Program(lowering.lower_function(body, inputs), tuple(inputs), expected)


class RelaxExperiment(Experiment[Config]):
    """An experiment whose points are Relax programs, compiled by TVM for this machine's processor."""

    engines = (workloads.TVM,)
    compiles_ahead = True

    def program(self, point: Point, config: Config, seed: int) -> Program:
        """What is compiled and timed: by default the network of `tvmdash.networks` that the workload names."""
        return workloads.network_program(point.name, {**config_util.values_of(config), **point.values}["batch"], seed)

    def options(self, point: Point, config: Config) -> CompileOptions:
        """How it is compiled: by default for the point's target through the zero pipeline."""
        return CompileOptions(json.loads(point.target))

    def target(self, point: Point, config: Config) -> Mapping[str, Any]:
        """LLVM for as many threads as the point has; for the config's `mcpu` where fields.json includes `target`."""
        given = {"mcpu": "", **config_util.values_of(config), **point.values}
        return workloads.make_target(given["threads"], given["mcpu"])

    def prepare(self, point: Point, config: Config, seed: int) -> Prepared:
        """The program compiled and loaded; its answer is checked where the program has one."""
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
