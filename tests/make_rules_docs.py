"""Print docs/reference/rules.md: `python3 tests/make_rules_docs.py > docs/reference/rules.md`."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator

from tvmdash.judge.rules import RULES


def page() -> str:
    """The whole page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# The judge's numbers"
    yield ""
    yield "Made by `tests/make_rules_docs.py` from `tvmdash.judge.RULES`; a test keeps it true. Sizes and standard"
    yield "deviations are natural logarithms (0.01 is 1 %), odds are those of a step against none."
    yield "[How it decides](../explanation/verdict.md)."
    yield ""
    yield "| rule | value | why |"
    yield "|---|---|---|"
    for field in dataclasses.fields(RULES):
        value = getattr(RULES, field.name)
        shown = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
        yield f"| `{field.name}` | {shown} | {field.metadata['why']} |"


if __name__ == "__main__":
    sys.stdout.write(page())
