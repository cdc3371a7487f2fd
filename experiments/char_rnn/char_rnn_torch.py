"""The generator on PyTorch, eager, as its tutorial has it: three linear layers and a loop in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from generator import END, LETTERS, Task, spelled


def make(task: Task, threads: int) -> Callable[[], list[str]]:
    """A call that gives the names. The weights and all that a name starts from are tensors already."""
    import torch

    torch.set_num_threads(threads)
    cell, zeros, steps = _cell(task), torch.zeros(1, task.size.hidden), range(task.size.longest)

    def name(first: int, category: Any, letter: Any) -> str:
        letters, hidden = [first], zeros
        for _ in steps:
            letter, hidden = cell(category, letter, hidden)
            index = int(letter)
            if index == END:
                break
            letters.append(index)
        return spelled(letters)

    starts = [(start.letter, torch.from_numpy(start.category), torch.tensor([start.letter])) for start in task.starts]
    return lambda: [name(*start) for start in starts]


def _cell(task: Task) -> Callable[[Any, Any, Any], tuple[Any, Any]]:
    """One step: the next letter's index (1,), and the hidden state (1, hidden)."""
    import torch
    from torch.nn import functional

    layers = {name: _linear(task, name) for name in ("hidden", "output", "letter")}

    def cell(category: Any, letter: Any, hidden: Any) -> tuple[Any, Any]:
        both = torch.cat((category, functional.one_hot(letter, LETTERS).float(), hidden), 1)
        after = layers["hidden"](both)
        scores = layers["letter"](torch.cat((after, layers["output"](both)), 1))
        return functional.log_softmax(scores, dim=1).argmax(1), after

    return cell


def _linear(task: Task, name: str) -> Any:
    import torch

    weight = torch.from_numpy(task.weights[f"{name}_w"].T.copy())
    layer = torch.nn.Linear(weight.shape[1], weight.shape[0])
    layer.load_state_dict({"weight": weight, "bias": torch.from_numpy(task.weights[f"{name}_b"])})
    return layer.requires_grad_(requires_grad=False)
