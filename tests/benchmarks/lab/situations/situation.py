"""A situation by name, and small worlds that several situations begin with."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.benchmarks.lab.claims import Case
from tests.benchmarks.lab.world import Draw


@dataclass(frozen=True)
class Situation:
    """make: a world drawn for it, and what is claimed of that."""

    name: str
    words: str
    make: Callable[[Draw], Case]


def situation(make: Callable[..., Case], suffix: object = "", **given: Any) -> Situation:
    """The situation that a function describes, with these arguments; its name is the function's and the suffix."""
    name = make.__name__ + (f"_{suffix}" if suffix != "" else "")
    return Situation(name, (make.__doc__ or "").splitlines()[0], functools.partial(make, **given))
