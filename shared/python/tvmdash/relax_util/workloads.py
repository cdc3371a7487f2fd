"""A network on Relax as an experiment's workload: target, compile, check, time, profile."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

from tvmdash import networks
from tvmdash.experiment.engines import Engine, EngineFacts
from tvmdash.experiment.info import Prepared
from tvmdash.machine import hardware
from tvmdash.machine.devices import CPU
from tvmdash.measure import prebuilt
from tvmdash.measure.capture import OperatorSpan
from tvmdash.networks import Network, accuracy
from tvmdash.networks.ops import Array
from tvmdash.relax_util import build, loading, lowering, targets
from tvmdash.relax_util.build import Compiled, CompileOptions
from tvmdash.relax_util.loading import Loaded
from tvmdash.trial_util import Timer

PASSES_TOLD = 10
"""Number of the longest passes in a record; the raw data has all."""


class TargetConfig(Protocol):
    """The target's fields in a config; an empty `mcpu` is a level that this machine has."""

    @property
    def threads(self) -> int:
        """Return the runtime's threads."""

    @property
    def mcpu(self) -> str:
        """Return LLVM's name of the processor."""


def make_target(threads: int, mcpu: str) -> dict[str, Any]:
    """Return the LLVM target for so many threads; an empty `mcpu` is a level that this machine has."""
    made = targets.default_target(threads, hardware.facts()["cpu_flags"])
    return {**made, "mcpu": mcpu} if mcpu else made


def target(config: TargetConfig | Mapping[str, Any]) -> dict[str, Any]:
    """Return the LLVM target that the config asks for."""
    if isinstance(config, Mapping):
        return make_target(config["threads"], config["mcpu"])
    return make_target(config.threads, config.mcpu)


def target_text(config: TargetConfig | Mapping[str, Any]) -> str:
    """Return that target as a point and its record hold it."""
    return json.dumps(target(config), sort_keys=True)


def make_prepared(
    compiled: Compiled,
    timer: Timer,
    check: Callable[[], Mapping[str, Any]] | None,
    *,
    layout: str | None = None,
    details: Mapping[str, Any] | None = None,
    inputs: Sequence[Array] | None = None,
    on: Loaded | None = None,
) -> Prepared:
    """Return a compiled module ready to be timed, with its compilation's cost; `details` join the record.

    inputs: all that it is called with, where nothing but this process and these decide how long that takes. on: where
    it is loaded, where that can be another device than this machine's processor.
    """
    is_elsewhere = on is not None and on.device != CPU
    return Prepared(
        timer=timer,
        check=check,
        compile_ms=compiled.compile_ms,
        compile_cpu_ms=compiled.compile_cpu_ms,
        code_size_bytes=compiled.code_size_bytes,
        memory_bytes=compiled.planned_memory_bytes,
        passes_ms=compiled.pass_times_ms,
        operators=compiled.operators,
        inputs=tuple(inputs or ()),
        build=compiled.options.describe(),
        layout=layout,
        details={"module_hash": compiled.module_hash, **(details or {})},
        program=None
        if inputs is None or is_elsewhere  # what a driver makes of the code is not seen from here
        else functools.partial(build.hash_program, compiled, tuple(inputs)),
        after=functools.partial(on.device_facts, *(inputs or ())) if on is not None and is_elsewhere else None,
    )


def list_longest_passes(compiled: Compiled) -> dict[str, float]:
    """Return the milliseconds of the longest passes by name."""
    return {name: round(ms, 3) for name, ms in compiled.pass_times_ms[:PASSES_TOLD]}


@dataclass(frozen=True)
class Program:
    """A Relax module, the arguments of its `main`, and the right answer, where it is known.

    `inputs` are arrays in the order of main's parameters, weights included; `expected` has the shape of its output. An
    answer that is further off than the tolerance of its dtype raises DashboardError, as does a module that TVM cannot
    compile. It can be profiled operator by operator where `main` has one input. `layout` is as in NCHW.
    """

    module: Any
    inputs: tuple[Array, ...]
    expected: Array | None = None
    layout: str | None = None


def prepare(network: str, options: CompileOptions, config: Mapping[str, Any], seed: int) -> Prepared:
    """Compile and load a network of `networks.NETWORKS`, ready to be timed on one seeded input.

    `config` gives `batch`, `threads` and `profile_repeats`; `check` compares with the numpy reference.
    """
    return prepare_program(
        lambda: network_program(network, config["batch"], seed),
        options,
        threads=config["threads"],
        profile_repeats=config.get("profile_repeats", 0),
    )


def network_program(network: str, batch: int, seed: int) -> Program:
    """Return a network of `networks.NETWORKS` with seeded weights and input, and numpy's answer."""
    graph, weights, x, expected = _problem(network, batch, seed)
    return Program(lowering.lower(graph, weights, batch), (x,), expected, layout="NCHW")


def prepare_program(
    make: Program | Callable[[], Program],
    options: CompileOptions,
    *,
    threads: int,
    profile_repeats: int = 0,
    device: str = CPU,
) -> Prepared:
    """Compile and load a program, ready to be timed on a device with `threads` threads, and profiled.

    Where a function makes it, that is called by the processes that compile, not by those that load what they made.
    """
    if isinstance(make, Program):
        program, compiled = make, build.compile_module(make.module, options)
    else:
        # asked for the program and for its module, and made once
        made = functools.cache(make)
        program = prebuilt.keep("program", lambda: replace(made(), module=None))
        compiled = build.compile_module(lambda: made().module, options)
    loaded, inputs, expected = loading.load(compiled, threads, device), program.inputs, program.expected
    repeats = profile_repeats if len(inputs) == 1 else 0
    ready = make_prepared(
        compiled,
        loaded.timer(*inputs),
        None if expected is None else lambda: accuracy.check_answer(loaded.run(*inputs), expected),
        layout=program.layout,
        details={"passes_ms": list_longest_passes(compiled)},
        inputs=inputs,
        on=loaded,
    )
    return replace(ready, profile=functools.partial(_profile, loaded, inputs[0], repeats) if inputs else None)


def engine_facts() -> EngineFacts:
    """Return the imported TVM's facts; where a build carries no commit, its version stands for it."""
    facts = build.tvm_facts()
    return EngineFacts(
        version=facts.version,
        tvm_hash=facts.commit or facts.version,
        facts=asdict(facts),
        config=build.describe_build(facts),
    )


TVM = Engine("tvm", facts=engine_facts, pairable=True)
"""TVM as an engine of an experiment's points."""


@functools.lru_cache(maxsize=2)
def _problem(name: str, batch: int, seed: int) -> tuple[Network, dict[str, Array], Array, Array]:
    """Return network, weights, input and reference output, cached: all points of a network share them."""
    graph = networks.NETWORKS[name]()
    weights, x = networks.make_weights(graph, seed), networks.make_input(graph, seed, batch)
    return graph, weights, x, networks.reference(graph, weights, x)


def _profile(loaded: Loaded, x: Array, repeats: int) -> Sequence[OperatorSpan]:
    return loaded.profile(x, repeats) if repeats else ()
