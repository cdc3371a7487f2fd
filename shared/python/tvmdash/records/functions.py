"""Per-function numbers of generated code in a record, which its totals are sums of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

HASHED = frozenset({"source_size", "host_size"})
"""Metrics for which a function's text counts: other code of the same size is a change of these."""


@dataclass(frozen=True)
class FunctionNumber:
    """A number of one function; code: a hash of its text, in one metric, else empty."""

    value: float
    code: str = ""


def read_functions(info: Mapping[str, Any], name: str) -> dict[str, FunctionNumber]:
    """Return the number `name` of each function, as far as a record's additional_info has it."""
    functions = info.get("functions")
    if not isinstance(functions, dict):
        return {}
    return {
        own: FunctionNumber(float(numbers[name]), str(numbers.get("hash", "")) if name in HASHED else "")
        for own, numbers in functions.items()
        if isinstance(numbers, dict) and isinstance(numbers.get(name), (int, float))
    }


def hash_functions(functions: Mapping[str, FunctionNumber]) -> str | None:
    """Return a hash that is equal where every function has the same number and code; None without functions."""
    if not functions:
        return None
    told = {name: [number.value, number.code] for name, number in functions.items()}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
