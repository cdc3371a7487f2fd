"""The right answers, made once by numpy for all engines, and how an engine's are held against them.

A trace is a prompt and the tokens that follow it when each is the likeliest. An engine is given these tokens, so that
one near tie does not spoil what comes after, and has to give the reference's logits after each. A token has to be the
same wherever the reference's margin exceeds the tolerance. Then all prompts, which are of unequal lengths, go on
together, and have to give what each gives alone.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import network
import numpy as np
from network import FLOATS, Llama, NumpyDecoder

from tvmdash.errors import DashboardError
from tvmdash.networks import accuracy
from tvmdash.networks.ops import Array

LENGTHS, STEPS = (14, 19), 8
"""Lengths of prompts, around a page of the cache, and tokens that follow; the first crosses into a new page."""
LONGEST = max(LENGTHS) + STEPS
START = 7
"""The token that is decoded at a depth, by the row that it is in: this one, the next one and so on."""


class Sequences(Protocol):
    """An engine with the network and a cache. Sequences are rows, counted from 0."""

    def start(self, rows: int) -> None:
        """Empty the cache and start so many rows."""

    def tokens(self, rows: Any) -> Any:
        """Tokens, a row for each sequence, where the network runs."""

    def fill(self, past: Array, row: int = 0) -> None:
        """Put what `network.make_past` gives into the cache."""

    def prefill(self, prompt: Any, row: int = 0) -> Any:
        """Compute the logits after a prompt of one row."""

    def decode(self, tokens: Any, rows: Sequence[int]) -> Any:
        """Compute the logits after one more token of each of the rows."""

    def go_back(self, count: int, rows: Sequence[int]) -> None:
        """Forget the last tokens of the rows."""

    def read(self, logits: Any) -> Array:
        """The logits as an array (rows, vocabulary)."""


@dataclass(frozen=True)
class Trace:
    """A prompt, the tokens that follow it, and the logits (tokens, vocabulary) that they are the largest of."""

    prompt: list[int]
    tokens: list[int]
    logits: Array

    @property
    def margins(self) -> Array:
        """The lead of the likeliest token over the next one."""
        best = np.sort(self.logits, axis=1)[:, -2:]
        led: Array = best[:, 1] - best[:, 0]
        return led


@dataclass(frozen=True)
class Answers:
    """Of one network in one dtype; prompts: logits by length; depths: (rows, vocabulary) by depth."""

    traces: tuple[Trace, ...]
    prompts: dict[int, Array]
    depths: dict[int, Array]

    @classmethod
    def read(cls, file: Path) -> Answers:
        """Read what `make` left."""
        with np.load(file) as kept:
            traces = tuple(
                Trace(kept[f"prompt_{at}"].tolist(), kept[f"tokens_{at}"].tolist(), kept[f"logits_{at}"])
                for at in range(len(LENGTHS))
            )
            parts = {name: kept[name] for name in kept.files}
        found = [
            {int(name.partition("_of_")[2]): part for name, part in parts.items() if name.startswith(f"{phase}_of_")}
            for phase in ("prefill", "decode")
        ]
        return cls(traces, *found)

    def of_point(self, values: Mapping[str, Any]) -> Array:
        """Return the logits (rows, vocabulary) that the point's call has to give."""
        if values["phase"] == "prefill":
            return self.prompts[values["prompt"]][None]
        return self.depths[values["depth"]][: values["batch"]]


def file_of(folder: Path, name: str, dtype: str) -> Path:
    return folder / f"{name}.{dtype}.npz"


def make(
    model: Llama, dtype: str, prompts: Sequence[int], depths: Sequence[int], rows: int, seed: int
) -> dict[str, Array]:
    """Compute the answers as arrays by name, for `Answers.read`."""
    reference = NumpyDecoder(model, network.make_weights(model, dtype, seed))
    made: dict[str, Array] = {}
    for at, length in enumerate(LENGTHS):
        trace = _follow(reference, network.make_tokens(model, length, seed, at))
        made |= {f"prompt_{at}": np.array(trace.prompt), f"tokens_{at}": np.array(trace.tokens)}
        made[f"logits_{at}"] = trace.logits
    for length in prompts:
        made[f"prefill_of_{length}"] = reference.forward(network.make_tokens(model, length, seed))[0]
    for depth in depths:
        pasts = [network.make_past(model, depth, dtype, seed, row) for row in range(rows)]
        made[f"decode_of_{depth}"] = np.stack(
            [
                reference.forward([token_of(model, row)], [network.split_past(model, past)] * model.layers)[0]
                for row, past in enumerate(pasts)
            ]
        )
    return made


def token_of(model: Llama, row: int) -> int:
    """Choose the token that is decoded in the row."""
    return (START + row) % model.vocabulary


def _follow(reference: NumpyDecoder, prompt: list[int]) -> Trace:
    logits, cache = reference.forward(prompt)
    rows, tokens = [logits], [int(logits.argmax())]
    for _ in range(STEPS - 1):
        logits, cache = reference.forward(tokens[-1:], cache)
        rows.append(logits)
        tokens.append(int(logits.argmax()))
    return Trace(prompt, tokens, np.stack(rows))


def time_first_call(decoder: Sequences, known: Answers) -> float:
    """Time a process's first prompt, which finds nothing in a cache, in milliseconds."""
    decoder.start(1)
    prompt = decoder.tokens([known.traces[0].prompt])
    begun = time.perf_counter()
    decoder.prefill(prompt)
    return (time.perf_counter() - begun) * 1e3


def check_alone(decoder: Sequences, traces: Sequence[Trace], dtype: str) -> dict[str, float]:
    """Return facts for the record; DashboardError where the logits or a token of a sequence are not the reference's."""
    found = []
    for trace in traces:
        decoder.start(1)
        rows = [decoder.read(decoder.prefill(decoder.tokens([trace.prompt])))]
        rows += [decoder.read(decoder.decode(decoder.tokens([[token]]), range(1))) for token in trace.tokens[:-1]]
        found.append(check_trace(np.concatenate(rows), trace, dtype))
    same = sum(facts["same_tokens"] for facts in found)
    return {
        "trace_error": max(facts["max_error"] for facts in found),
        "same_tokens": same,
        "validation_accuracy": same / sum(len(trace.tokens) for trace in traces),
        "distinct_tokens": len({token for trace in traces for token in trace.tokens}),
        "smallest_margin": float(min(trace.margins.min() for trace in traces)),
    }


def check_together(decoder: Sequences, traces: Sequence[Trace], dtype: str) -> None:
    """Raise DashboardError where sequences of unequal lengths going on together give other logits than each alone."""
    rows = range(len(traces))
    decoder.start(len(traces))
    for row, trace in enumerate(traces):
        decoder.prefill(decoder.tokens([trace.prompt]), row)
    for step in range(STEPS - 1):
        logits = decoder.read(decoder.decode(decoder.tokens([[trace.tokens[step]] for trace in traces]), rows))
        expected = np.stack([trace.logits[step + 1] for trace in traces])
        check_logits(logits, expected, dtype, f"token {step + 2} of {len(traces)} sequences together")


def check_trace(logits: Array, trace: Trace, dtype: str) -> dict[str, float]:
    """Return the error, and how many tokens are the reference's."""
    facts = check_logits(logits, trace.logits, dtype, f"the {len(trace.tokens)} tokens after {len(trace.prompt)}")
    same = logits.argmax(axis=1) == trace.tokens
    near = facts["tolerance"] * np.abs(trace.logits).max()
    wrong = np.flatnonzero(~same & (trace.margins > near))
    if len(wrong):
        step = int(wrong[0])
        raise DashboardError(
            f"wrong answer: token {step + 1} after a prompt of {len(trace.prompt)} is {int(logits[step].argmax())}, "
            f"the reference's {trace.tokens[step]}, by a margin of {trace.margins[step]:.2g}."
        )
    return {**facts, "same_tokens": int(same.sum())}


def check_logits(logits: Array, expected: Array, dtype: str, what: str) -> dict[str, float]:
    """Return the error and its tolerance; DashboardError that says what is wrong."""
    try:
        return accuracy.check_answer(logits, expected, FLOATS[dtype])
    except DashboardError as error:
        raise DashboardError(f"{what}: {error}") from error
