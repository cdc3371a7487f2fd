"""The recurrences: weights, inputs and answers in numpy. Every engine is given these, each in its own gate order."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from tvmdash.networks.ops import Array

GATES: Mapping[str, str] = {"rnn": "n", "lstm": "ifgo", "gru": "rzn"}
"""The order of the gates' rows here, which is PyTorch's; n and g are the new values, the others open and close."""
State = tuple[Array, ...]
"""h of (batch, hidden), and of an LSTM c."""


@dataclass(frozen=True)
class Case:
    """One recurrence at one size; a cell is a layer of length 1 with its state taken and given as (batch, hidden)."""

    kind: str
    form: str
    hidden: int
    length: int
    batch: int

    @property
    def states(self) -> int:
        """The number of arrays of its state."""
        return 2 if self.kind == "lstm" else 1


@dataclass(frozen=True)
class RecurrenceProblem:
    """Weights and inputs in float32, and the answers in float64.

    `weights`: w_ih and w_hh (gates * hidden, hidden), b_ih and b_hh (gates * hidden). `x`: (length, batch, hidden).
    `expected`: a layer's outputs (length, batch, hidden) and its last state; a cell's state alone.
    """

    case: Case
    weights: Mapping[str, Array]
    x: Array
    state: State
    expected: tuple[Array, ...]


@functools.lru_cache(maxsize=8)
def problem(case: Case, seed: int) -> RecurrenceProblem:
    """Make the problem of a seed. Weights as PyTorch draws them first: uniform up to one over the root of hidden."""
    rng, rows, reach = np.random.default_rng([seed, 0]), len(GATES[case.kind]) * case.hidden, 1 / math.sqrt(case.hidden)
    shapes = {"w_ih": (rows, case.hidden), "w_hh": (rows, case.hidden), "b_ih": (rows,), "b_hh": (rows,)}
    weights = {name: rng.uniform(-reach, reach, shape).astype(np.float32) for name, shape in shapes.items()}
    x = rng.standard_normal((case.length, case.batch, case.hidden)).astype(np.float32)
    state = tuple(rng.uniform(-1, 1, x.shape[1:]).astype(np.float32) for _ in range(case.states))
    return RecurrenceProblem(case, weights, x, state, reference(case, weights, x, state))


def reference(case: Case, weights: Mapping[str, Array], x: Array, state: State) -> tuple[Array, ...]:
    """Compute the answers in float64, a step after the other."""
    wide = {name: array.astype(np.float64) for name, array in weights.items()}
    now, outputs = tuple(part.astype(np.float64) for part in state), []
    for step in x.astype(np.float64):
        inner = step @ wide["w_ih"].T + wide["b_ih"]
        now = STEPS[case.kind](inner, now[0] @ wide["w_hh"].T + wide["b_hh"], now)
        outputs.append(now[0])
    return now if case.form == "cell" else (np.stack(outputs), *now)


def in_order(array: Array, kind: str, order: str) -> Array:
    """Put a weight's or bias's rows in another order of gates, as in "iofg" for ONNX's LSTM."""
    parts = dict(zip(GATES[kind], np.split(array, len(order)), strict=True))
    return np.concatenate([parts[gate] for gate in order])


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _rnn(inner: Array, outer: Array, _state: State) -> State:
    return (np.tanh(inner + outer),)


def _lstm(inner: Array, outer: Array, state: State) -> State:
    i, f, g, o = np.split(inner + outer, 4, axis=1)
    c = _sigmoid(f) * state[1] + _sigmoid(i) * np.tanh(g)
    return _sigmoid(o) * np.tanh(c), c


def _gru(inner: Array, outer: Array, state: State) -> State:
    """Compute Cho et al. 2014 with the reset gate after the product, as PyTorch and cuDNN have it."""
    (r_in, z_in, n_in), (r_out, z_out, n_out) = np.split(inner, 3, axis=1), np.split(outer, 3, axis=1)
    z = _sigmoid(z_in + z_out)
    n = np.tanh(n_in + _sigmoid(r_in + r_out) * n_out)
    return ((1 - z) * n + z * state[0],)


STEPS: Mapping[str, Callable[[Array, Array, State], State]] = {"rnn": _rnn, "lstm": _lstm, "gru": _gru}
"""One step, from what comes of the input, what comes of h, and the state."""
