"""The recurrences on PyTorch, eager: its own layers and cells, whose gate order is the one of the weights here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from recurrence import Problem

from tvmdash.networks.ops import Array


def prepare(problem: Problem, threads: int) -> tuple[Callable[[], object], Callable[[], tuple[Array, ...]]]:
    """A call on tensors that are there already, and a call that gives the problem's answers."""
    import torch

    torch.set_num_threads(threads)
    case, layer = problem.case, problem.case.form == "layer"
    module = _module(problem)
    x = torch.from_numpy(problem.x if layer else problem.x[0])
    parts = [torch.from_numpy(part[None] if layer else part) for part in problem.state]
    state = tuple(parts) if case.kind == "lstm" else parts[0]

    def answers() -> tuple[Array, ...]:
        given = module(x, state)
        outputs, last = ([given[0].numpy()], given[1]) if layer else ([], given)
        states = [last] if case.kind != "lstm" else list(last)
        return (*outputs, *(part.numpy()[0] if layer else part.numpy() for part in states))

    return lambda: module(x, state), answers


def _module(problem: Problem) -> Any:
    """The torch.nn.Module with the problem's weights; it wants no gradients."""
    import torch

    case = problem.case
    names = {"rnn": "RNN", "lstm": "LSTM", "gru": "GRU"}
    suffix, ending = ("", "_l0") if case.form == "layer" else ("Cell", "")
    module = getattr(torch.nn, names[case.kind] + suffix)(case.hidden, case.hidden)
    held = {"w_ih": "weight_ih", "w_hh": "weight_hh", "b_ih": "bias_ih", "b_hh": "bias_hh"}
    weights = {held[name] + ending: torch.from_numpy(array) for name, array in problem.weights.items()}
    module.load_state_dict(weights)
    return module.requires_grad_(requires_grad=False).eval()
