"""What an experiment declares of its own numbers, and what came of that, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tvmdash.records import NightData
from tvmdash.records.metrics import Declared
from tvmdash.text import format_list

_NAMED = 8


def describe_own(experiment: str, declared: Mapping[str, Declared], data: NightData | None) -> Iterator[str]:
    """A line for what is declared, and where a night's data are known, one for what does not match it."""
    declared = {**declared, **(data.declared if data else {})}
    if declared:
        yield f"{experiment} declares {format_list([f'{name} ({own})' for name, own in declared.items()], _NAMED)}."
    if data is None:
        return
    yield from filter(None, [describe_unmeasured(data)])
    if data.undeclared:
        names = format_list(data.undeclared, _NAMED)
        lacking = "are no series" if data.records else "have neither a unit nor a better direction"
        yield f"{experiment}: numbers that nothing declares, so that they {lacking}: {names}."


def describe_unmeasured(data: NightData) -> str:
    """A sentence about what is declared of the night's numbers though none has come; empty where all have."""
    if not data.unmeasured:
        return ""
    place = "of that name in additional_info (by details, check, after or derive)" if data.records else "there"
    return (
        f"{data.experiment} declares {format_list(data.unmeasured, _NAMED)}, but measured no such number. Leave a "
        f"number {place}, or remove the declaration from metrics."
    )
