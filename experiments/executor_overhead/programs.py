"""The programs: small ones that are nearly all calls, and an MLP as the ordinary case."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvmdash import networks
from tvmdash.networks.ops import Array
from tvmdash.relax_util import lowering

ELEMENTS = 16
FACTOR, SUMMAND = 0.998, 0.01
"""One step is `x * FACTOR + SUMMAND`. So slow a map tells 2,000 steps from 1,999 by more than the tolerance."""


@dataclass(frozen=True)
class OverheadProgram:
    """`build` gives the IRModule whose `main` takes `inputs` and gives `expected`; it goes through `pipeline`."""

    build: Callable[[], Any]
    inputs: tuple[Array, ...]
    expected: Array
    pipeline: str = "default"


RECURSION = """
@I.ir_module
class Recursion:
    @R.function
    def main(n: R.Tensor((), "int64"), x: R.Tensor(({elements},), "float32")) -> R.Tensor(({elements},), "float32"):
        done = R.equal(n, R.const(0, "int64"))
        if done:
            out = x
        else:
            left = R.subtract(n, R.const(1, "int64"))
            y = R.add(R.multiply(x, R.const({factor}, "float32")), R.const({summand}, "float32"))
            out = Recursion.main(left, y)
        return out
"""
FIBONACCI = """
@I.ir_module
class Fibonacci:
    @R.function
    def main(n: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        small = R.less(n, R.const(2, "int64"))
        if small:
            out = n
        else:
            one = Fibonacci.main(R.subtract(n, R.const(1, "int64")))
            two = Fibonacci.main(R.subtract(n, R.const(2, "int64")))
            out = R.add(one, two)
        return out
"""


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Sizes of the programs."""

    steps: int
    arguments: int
    fibonacci: int


def arguments(name: str, sizes: Sizes) -> dict[str, int]:
    """Return a program's size, as its record names it: with the calls of Relax functions, or operators, of a run."""
    steps, n = sizes.steps, sizes.fibonacci
    named: dict[str, dict[str, int]] = {
        "recursion": {"calls": steps},
        "fibonacci": {"n": n, "calls": fibonacci_calls(n)},
        "calls": {"calls": steps},
        "arguments": {"calls": steps, "arguments": sizes.arguments},
        "operators": {"operators": 2 * steps},
        "mlp": {"batch": 1},
    }
    return named[name]


def program(name: str, size: Mapping[str, int], seed: int) -> OverheadProgram:
    return MAKERS[name](size, np.random.default_rng([seed, 2]))


def fibonacci_calls(n: int) -> int:
    """Count the calls that the recursion makes below the first one."""
    return 0 if n < 2 else 2 + fibonacci_calls(n - 1) + fibonacci_calls(n - 2)


def _after(x: Array, steps: int, summand: Array | float = SUMMAND) -> Array:
    """Apply the steps in float64."""
    y = x.astype(np.float64)
    for _ in range(steps):
        y = y * FACTOR + summand
    return y


def _vector(rng: np.random.Generator) -> Array:
    return rng.random(ELEMENTS).astype(np.float32)


def _recursion(size: Mapping[str, int], rng: np.random.Generator) -> OverheadProgram:
    source = RECURSION.format(elements=ELEMENTS, factor=FACTOR, summand=SUMMAND)
    x, depth = _vector(rng), size["calls"]
    return OverheadProgram(lambda: _parsed(source), (np.array(depth), x), _after(x, depth))


def _fibonacci(size: Mapping[str, int], _rng: np.random.Generator) -> OverheadProgram:
    current, following = 0, 1
    for _ in range(size["n"]):
        current, following = following, current + following
    return OverheadProgram(lambda: _parsed(FIBONACCI), (np.array(size["n"]),), np.array(current))


def _calls(size: Mapping[str, int], rng: np.random.Generator) -> OverheadProgram:
    x = _vector(rng)
    return OverheadProgram(lambda: _chain(size["calls"], arguments=1), (x,), _after(x, size["calls"]))


def _arguments(size: Mapping[str, int], rng: np.random.Generator) -> OverheadProgram:
    inputs = tuple(_vector(rng) for _ in range(size["arguments"]))
    expected = _after(inputs[0], size["calls"], inputs[-1].astype(np.float64))
    return OverheadProgram(lambda: _chain(size["calls"], arguments=len(inputs)), inputs, expected)


def _operators(size: Mapping[str, int], rng: np.random.Generator) -> OverheadProgram:
    x, steps = _vector(rng), size["operators"] // 2
    return OverheadProgram(lambda: _straight(steps), (x,), _after(x, steps))


def _mlp(size: Mapping[str, int], rng: np.random.Generator) -> OverheadProgram:
    network, seed = networks.mlp(), int(rng.integers(1 << 31))
    weights, x = networks.make_weights(network, seed), networks.make_input(network, seed, size["batch"])
    expected = networks.reference(network, weights, x)
    return OverheadProgram(lambda: lowering.lower(network, weights, size["batch"]), (x,), expected, "zero")


MAKERS: Mapping[str, Callable[[Mapping[str, int], np.random.Generator], OverheadProgram]] = {
    "recursion": _recursion,
    "fibonacci": _fibonacci,
    "calls": _calls,
    "arguments": _arguments,
    "operators": _operators,
    "mlp": _mlp,
}


def _parsed(source: str) -> Any:
    import tvm.script
    from tvm.script import ir, relax

    return tvm.script.from_source(source, {"I": ir, "R": relax})


def _variables(count: int) -> list[Any]:
    from tvm import relax

    tensor = getattr(relax, "TensorStructInfo", None) or relax.TensorType  # the name up to 0.25, and since
    return [relax.Var(f"x{index}", tensor((ELEMENTS,), "float32")) for index in range(count)]


def _step(x: Any, summand: Any) -> Any:
    from tvm import relax

    return relax.op.add(relax.op.multiply(x, relax.const(FACTOR, "float32")), summand)


def _chain(calls: int, arguments: int) -> Any:
    """Make a `main` that calls a Relax function again and again, with all of its own arguments but the first."""
    from tvm import relax

    builder = relax.BlockBuilder()
    inside, outside = _variables(arguments), _variables(arguments)
    with builder.function("step", inside, private=True):
        summand = inside[-1] if arguments > 1 else relax.const(SUMMAND, "float32")
        builder.emit_func_output(builder.emit(_step(inside[0], summand)))
    step = builder.get().get_global_var("step")
    return _main(builder, outside, [lambda value: relax.Call(step, [value, *outside[1:]])] * calls)


def _straight(steps: int) -> Any:
    """Make a `main` of one operator after the other."""
    from tvm import relax

    builder = relax.BlockBuilder()
    return _main(builder, _variables(1), [lambda value: _step(value, relax.const(SUMMAND, "float32"))] * steps)


def _main(builder: Any, variables: Sequence[Any], steps: Sequence[Callable[[Any], Any]]) -> Any:
    value = variables[0]
    with builder.function("main", list(variables)):
        for step in steps:
            value = builder.emit(step(value))
        builder.emit_func_output(value)
    return builder.finalize()
