"""A compiled decoder with its weights and its cache: prompts, tokens, and the way back to a depth."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvmdash.networks.ops import Array
from tvmdash.relax_util import Loaded

PAGE = 16
"""Tokens of a page of the cache, as MLC-LLM has it."""
_OF_CACHE = "vm.builtin.attention_kv_cache"


class Decoder:
    """A network on TVM. Sequences are rows, counted from 0; a row is started before tokens go into it.

    parameters: the weights in the order of the compiled module.
    """

    def __init__(self, loaded: Loaded, parameters: Sequence[Array], rows: int, longest: int) -> None:
        import tvm_ffi

        self._loaded, self._shape = loaded, tvm_ffi.Shape
        self._parameters = tvm_ffi.convert([loaded.tensor(array) for array in parameters])
        state = functools.partial(_find_state, tvm_ffi.get_global_func)
        self._add, self._begin, self._end = state("add_sequence"), state("begin_forward"), state("end_forward")
        self._popn, self._clear = state("popn"), state("clear")
        sizes = [rows, rows * (longest + PAGE), longest, PAGE]
        self._cache = loaded.machine["create_cache"](*(self._shape([size]) for size in sizes))
        self._use(loaded.machine)

    def _use(self, machine: Any) -> None:
        self._functions = {name: machine[name] for name in ("prefill", "decode", "batch_decode", "fill")}

    def start(self, rows: int) -> None:
        """Empty the cache and start so many rows."""
        self._clear(self._cache)
        for row in range(rows):
            self._add(self._cache, row)

    def tokens(self, rows: Any) -> Any:
        """Put the tokens where the network runs."""
        return self._loaded.tensor(np.asarray(rows, np.int32))

    def fill(self, past: Array, row: int = 0) -> None:
        """Put what `network.make_past` gives into the cache."""
        qkv = self._loaded.tensor(past)
        self._begin(self._cache, self._shape([row]), self._shape([past.shape[1]]))
        self._functions["fill"](qkv, self._cache)
        self._finish()

    def prefill(self, prompt: Any, row: int = 0) -> Any:
        """Return the logits after a prompt of one row, when the device has them."""
        self._begin(self._cache, self._shape([row]), self._shape([int(prompt.shape[1])]))
        logits = self._functions["prefill"](prompt, self._cache, self._parameters)[0]
        self._finish()
        return logits

    def decode(self, tokens: Any, rows: Sequence[int]) -> Any:
        """Return the logits after one more token of each of the rows, when the device has them."""
        self._begin(self._cache, self._shape(rows), self._shape([1] * len(rows)))
        name = "decode" if len(rows) == 1 else "batch_decode"
        logits = self._functions[name](tokens, self._cache, self._parameters)[0]
        self._finish()
        return logits

    def _finish(self) -> None:
        self._end(self._cache)
        self._loaded.wait()

    def go_back(self, count: int, rows: Sequence[int]) -> None:
        """Forget the last tokens of the rows."""
        for row in rows:
            self._popn(self._cache, row, count)

    def read(self, logits: Any) -> Array:
        """Return the logits as an array (rows, vocabulary)."""
        values = self._loaded.read(logits)
        return values.reshape(-1, values.shape[-1])

    def count_kernels(self, call: Callable[[], object]) -> int:
        """Count the kernels that the virtual machine launches in a call; attention, run by the cache, counts once."""
        names, machine = list[str](), self._loaded.make_machine()

        def watch(_function: Any, symbol: str, before: object, *_: Any) -> int:
            if before and (not symbol.startswith("vm.builtin.") or symbol.startswith(_OF_CACHE)):
                names.append(symbol)
            return 0

        machine.set_instrument(watch)
        self._use(machine)
        try:
            call()
        finally:
            self._use(self._loaded.machine)
        return len(names)


def _find_state(find: Callable[[str], Any], name: str) -> Any:
    return find(f"vm.builtin.kv_state_{name}")
