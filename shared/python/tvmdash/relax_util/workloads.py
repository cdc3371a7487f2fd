"""A network on Relax as an experiment's workload: target, compile, check, time, profile."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from tvmdash import networks
from tvmdash.experiment.engines import Engine, EngineFacts
from tvmdash.experiment.info import Prepared
from tvmdash.machine import hardware
from tvmdash.measure.capture import OperatorSpan
from tvmdash.networks import Network, accuracy
from tvmdash.networks.ops import Array
from tvmdash.relax_util import build, lowering, targets
from tvmdash.relax_util.build import Compiled, CompileOptions, Loaded
from tvmdash.trial_util import Timer

PASSES_TOLD = 10
"""How many of the longest passes stand in a record; the raw data has all."""


def target(config: Mapping[str, Any]) -> dict[str, Any]:
    """The LLVM target that the config's `mcpu` and `threads` ask for; an empty `mcpu` is a level this machine has."""
    made = targets.default_target(config["threads"], hardware.facts()["cpu_flags"])
    return {**made, "mcpu": config["mcpu"]} if config["mcpu"] else made


def target_text(config: Mapping[str, Any]) -> str:
    """That target as a point and its record hold it."""
    return json.dumps(target(config), sort_keys=True)


def make_prepared(
    compiled: Compiled,
    timer: Timer,
    check: Callable[[], Mapping[str, Any]] | None,
    *,
    layout: str | None = None,
    details: Mapping[str, Any] | None = None,
) -> Prepared:
    """A compiled module ready to be timed, with all that its compilation cost."""
    return Prepared(
        timer=timer,
        check=check,
        compile_ms=compiled.compile_ms,
        code_size_bytes=compiled.code_size_bytes,
        memory_bytes=compiled.planned_memory_bytes,
        passes_ms=compiled.pass_times_ms,
        layout=layout,
        details={"module_hash": compiled.module_hash, **(details or {})},
    )


@dataclass(frozen=True)
class Program:
    """A Relax module, what its `main` is called with, and the answer that is right, where one is known.

    It can be profiled operator by operator where `main` has one input.
    """

    module: Any
    inputs: tuple[Array, ...]
    expected: Array | None = None
    layout: str | None = None


def prepare(network: str, options: CompileOptions, config: Mapping[str, Any], seed: int) -> Prepared:
    """A network of `networks.NETWORKS`, compiled, loaded and ready to be timed on one seeded input.

    `config` gives `batch`, `threads` and `profile_repeats`; `check` compares with the numpy reference.
    """
    return prepare_program(network_program(network, config["batch"], seed), options, config)


def network_program(network: str, batch: int, seed: int) -> Program:
    """A network of `networks.NETWORKS` with seeded weights and input, and numpy's answer."""
    graph, weights, x, expected = _problem(network, batch, seed)
    return Program(lowering.lower(graph, weights, batch), (x,), expected, layout="NCHW")


def prepare_program(program: Program, options: CompileOptions, config: Mapping[str, Any]) -> Prepared:
    """The program compiled, loaded and ready to be timed; `config` gives `threads` and perhaps `profile_repeats`."""
    compiled = build.compile_module(program.module, options)
    loaded, inputs, expected = build.load(compiled, config["threads"]), program.inputs, program.expected
    repeats = config.get("profile_repeats", 0) if len(inputs) == 1 else 0
    ready = make_prepared(
        compiled,
        loaded.timer(*inputs),
        None if expected is None else lambda: accuracy.check_answer(loaded.run(*inputs), expected),
        layout=program.layout,
        details={"passes_ms": {name: round(ms, 3) for name, ms in compiled.pass_times_ms[:PASSES_TOLD]}},
    )
    return replace(ready, profile=functools.partial(_profile, loaded, inputs[0], repeats) if inputs else None)


def engine_facts() -> EngineFacts:
    """The imported TVM; where a build carries no commit, its version stands for it."""
    facts = build.tvm_facts()
    return EngineFacts(version=facts.version, tvm_hash=facts.commit or facts.version, facts=asdict(facts))


TVM = Engine("tvm", facts=engine_facts)
"""TVM as an engine of an experiment's points."""


@functools.lru_cache(maxsize=2)
def _problem(name: str, batch: int, seed: int) -> tuple[Network, dict[str, Array], Array, Array]:
    """Network, weights, input and reference output: the same for all points of a network, and seconds to make."""
    graph = networks.NETWORKS[name]()
    weights, x = networks.make_weights(graph, seed), networks.make_input(graph, seed, batch)
    return graph, weights, x, networks.reference(graph, weights, x)


def _profile(loaded: Loaded, x: Array, repeats: int) -> Sequence[OperatorSpan]:
    return loaded.profile(x, repeats) if repeats else ()
