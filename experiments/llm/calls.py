"""The timed call of a point, a prompt into an empty cache or a token more at a depth, and the limits of the machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import answers
import network
import numpy as np
from answers import Answers, Sequences
from network import Llama

from tvmdash.errors import DashboardError
from tvmdash.networks.ops import Array

PREFILL, DECODE = "prefill", "decode"
P99_FROM = 100
"""With fewer tokens the 99th percentile is the slowest of them."""


@dataclass(frozen=True)
class DecoderSession:
    """A decoder that all points of a process share. checked, facts: of its answers, and what it took to get here.

    digest: a hash of the weights, as an array. count_kernels: of a call, where the engine can tell. describe_device: of
    repeated calls on another device than this machine's processor, whose limits then are not those of the calls.
    """

    decoder: Sequences
    weight_bytes: int
    digest: Array
    checked: Mapping[str, float]
    facts: Mapping[str, float]
    count_kernels: Callable[[Callable[[], object]], int] | None = None
    describe_device: Callable[[Callable[[], object]], Mapping[str, Any]] | None = None


@dataclass(frozen=True)
class PointCall:
    """The call of one point, with the point's values."""

    model: Llama
    values: Mapping[str, Any]
    session: DecoderSession
    tokens: Array
    seed: int

    @property
    def decoder(self) -> Sequences:
        return self.session.decoder

    @property
    def _is_prefill(self) -> bool:
        return bool(self.values["phase"] == PREFILL)

    @property
    def _rows(self) -> range:
        return range(self.values["batch"])

    @cached_property
    def _tokens(self) -> Any:
        return self.decoder.tokens(self.tokens)

    def begin(self) -> None:
        """Bring the cache to where the call starts."""
        self.decoder.start(len(self._rows))
        for row in () if self._is_prefill else self._rows:
            past = network.make_past(self.model, self.values["depth"], self.values["dtype"], self.seed, row)
            self.decoder.fill(past, row)

    def step(self) -> Any:
        """Compute; the logits where the engine leaves them."""
        return self.decoder.prefill(self._tokens) if self._is_prefill else self.decoder.decode(self._tokens, self._rows)

    def go_back(self) -> None:
        """Forget what `step` put into the cache."""
        if self._is_prefill:
            self.decoder.start(1)
        else:
            self.decoder.go_back(1, self._rows)

    def time(self, number: int, repeat: int) -> list[int]:
        """Time calls that all start from the same cache: going back is outside the clock."""
        elapsed = []
        for _ in range(repeat):
            elapsed_ns = 0
            for _ in range(number):
                begun = time.perf_counter_ns()
                self.step()
                elapsed_ns += time.perf_counter_ns() - begun
                self.go_back()
            elapsed.append(elapsed_ns)
        return elapsed

    def check(self, known: Answers, max_call_s: float) -> dict[str, float]:
        """Return facts of the answers; DashboardError where one is wrong, and where the first call takes too long."""
        self.begin()
        begun = time.process_time()
        logits = self.step()
        taken_s = (time.process_time() - begun) / self.values["threads"]  # a busy machine leaves out nothing
        if taken_s > max_call_s:
            raise DashboardError(
                f"left out: the first call took {taken_s:.1f} s of CPU time a thread. Set $.max_call_s, now "
                f"{max_call_s:g}, higher to measure it."
            )
        expected = known.of_point(self.values)
        facts = answers.check_logits(self.decoder.read(logits), expected, self.values["dtype"], "the timed call")
        self.go_back()
        reset_peak_memory()
        return facts

    def find_facts(self, tokens: int) -> dict[str, Any]:
        """Measure beside the time: the peak of memory, a stream of tokens, and shares of the machine's limits."""
        found: dict[str, Any] = {"peak_memory": read_peak_memory(), "kv_memory": self._find_kv_bytes()}
        if self.session.count_kernels:
            found["kernels"] = self.session.count_kernels(self.step)
            self.go_back()
        if not self._is_prefill:
            taken_ms = []
            for _ in range(tokens):
                begun = time.perf_counter_ns()
                self.step()
                taken_ms.append((time.perf_counter_ns() - begun) / 1e6)
            self.decoder.go_back(tokens, self._rows)
            wanted = (50, 95, 99) if tokens >= P99_FROM else (50, 95)
            found |= {f"token_p{part}": float(np.percentile(taken_ms, part)) for part in wanted}
        if self.session.describe_device:
            return {**found, **self.session.describe_device(lambda: self.time(1, 1))}
        if self._is_prefill:
            flops = 2 * self.model.parameters * self.values["prompt"]
            share = flops / (self.time(1, 1)[0] / 1e9) / find_flop_rate()
            return {**found, "flops_percent": share * 100}
        read_per_s = self.session.weight_bytes / (found["token_p50"] / 1e3)
        return {**found, "bandwidth_percent": read_per_s / find_copy_rate(self.session.weight_bytes) * 100}

    def _find_kv_bytes(self) -> int:
        """Return the bytes of the tokens that the call leaves in the cache."""
        count = self.values["prompt"] if self._is_prefill else self.values["depth"] + 1
        return len(self._rows) * self.model.kv_bytes(count, self.values["dtype"])


def make_tokens(model: Llama, values: Mapping[str, Any], seed: int) -> Array:
    """Make the call's tokens, a row for each sequence."""
    if values["phase"] == PREFILL:
        return np.array([network.make_tokens(model, values["prompt"], seed)], np.int32)
    return np.array([[answers.token_of(model, row)] for row in range(values["batch"])], np.int32)


TRIES = 5
"""Tries of a limit, of which the best counts: a busy machine lowers it little."""
SIDE = 512
"""Rows of the square float32 product of numpy's BLAS that stands for the peak arithmetic."""


def find_copy_rate(size_bytes: int) -> float:
    """Measure bytes read and written in a second by a copy of as many bytes as the weights have."""
    source = np.ones(size_bytes, np.uint8)
    target = np.empty_like(source)
    return 2 * size_bytes / _best_s(lambda: np.copyto(target, source))


def find_flop_rate() -> float:
    """Measure floating-point operations in a second."""
    side = np.ones((SIDE, SIDE), np.float32)
    out = np.empty_like(side)
    return 2 * SIDE**3 / _best_s(lambda: np.matmul(side, side, out=out))


def _best_s(work: Callable[[], object]) -> float:
    taken = []
    for _ in range(TRIES):
        begun = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begun)
    return min(taken)


def reset_peak_memory() -> None:
    """Let the kernel count the peak from here on, where it can."""
    Path("/proc/self/clear_refs").write_text("5")


def read_peak_memory() -> int:
    """Return the most bytes that this process had resident since."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
