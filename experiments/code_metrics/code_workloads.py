"""The sources of generated code: networks, single operators and the transformer, each as a Relax module."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvmdash import networks
from tvmdash.errors import DashboardError
from tvmdash.networks import transformer
from tvmdash.networks.ops import Array
from tvmdash.relax_util import lowering
from tvmdash.relax_util import transformer as relax_transformer
from tvmdash.relax_util.operators import programs, table
from tvmdash.relax_util.operators.kinds import Operator

ARGUMENTS = ("batch", "shape", "other", "stride", "padding", "axes", "dtype", "phase", "length")
"""The arguments that tell workloads of one name from each other."""
MODELS: Mapping[str, transformer.Model] = {
    "attention": transformer.Model(layers=1, width=256, heads=4, vocabulary=0, positions=129),
    "decoder": transformer.Model(layers=2, width=256, heads=4, vocabulary=2048, positions=129),
}
"""Attention and decoder as the experiment transformer measures them, the decoder with fewer layers: they are alike."""
ANY = "any"
"""The length of a module whose number of tokens is a symbol."""


@dataclass(frozen=True)
class Workload:
    """name: `domain.name`, as in records. make: the module for a seed, and inputs where its main can be called."""

    name: str
    args: Mapping[str, int | str]
    make: Callable[[int], tuple[Any, Sequence[Array]]]


def of_networks(names: Sequence[str]) -> Iterator[Workload]:
    """Yield networks of tvmdash, one image in a batch."""
    for name in names:
        yield Workload(f"code.{name}", {"batch": 1}, functools.partial(_network, name))


def of_operators(kinds: Sequence[str], shapes: int, dtypes: Sequence[str]) -> Iterator[Workload]:
    """Yield operators of these kinds, `shapes` of each (0: all), the least arithmetic first."""
    for operator in table.chosen(kinds, shapes):
        for dtype in dtypes:
            args = {**operator.args, "dtype": dtype}
            yield Workload(f"code.{operator.kind}", args, functools.partial(_operator, operator, dtype))


def of_transformer(names: Sequence[str], phases: Sequence[str], lengths: Sequence[int]) -> Iterator[Workload]:
    """Yield the transformer's models; length 0 is a module for any length."""
    for name in names:
        for phase in phases:
            for length in lengths:
                yield Workload(
                    f"code.{name}",
                    {"phase": phase, "length": length or ANY},
                    functools.partial(_transformer, name, phase, length),
                )


def find(name: str, args: Mapping[str, Any]) -> Workload:
    """Find the workload that a point names; DashboardError where there is none."""
    bare, phase = name.partition(".")[2], args.get("phase")
    if phase is not None:
        length = args["length"]
        found = of_transformer([bare], [phase], [0 if length == ANY else length])
    elif bare in networks.NETWORKS:
        found = of_networks([bare])
    else:
        found = of_operators([bare], 0, [args["dtype"]])
    for workload in found:
        if workload.args == args:
            return workload
    raise DashboardError(f"unknown workload {name} with {dict(args)}.")


def _network(name: str, seed: int) -> tuple[Any, Sequence[Array]]:
    network = networks.NETWORKS[name]()
    weights = networks.make_weights(network, seed)
    return lowering.lower(network, weights, 1), (networks.make_input(network, seed, 1),)


def _operator(operator: Operator, dtype: str, seed: int) -> tuple[Any, Sequence[Array]]:
    inputs, weights = programs.make_arrays(operator, dtype, seed)
    return programs.relax_module(operator, dtype, weights), inputs


def _transformer(name: str, phase: str, length: int, seed: int) -> tuple[Any, Sequence[Array]]:
    model = MODELS[name]
    weights = transformer.make_weights(model, seed)
    module = relax_transformer.lower(model, weights, phase, length or None)
    step = transformer.make_step(model, weights, phase, length or 16, seed)
    return module, (*step.inputs, *step.cache)
