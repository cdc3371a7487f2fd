"""Sentences on the metrics that an experiment declares itself, and on those it did not measure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tvmdash.records import NightData
from tvmdash.records.metrics import Declared
from tvmdash.text import elide, format_list

_NAMED, _LONGEST_NAME = 8, 80


def describe_own(experiment: str, declared: Mapping[str, Declared], data: NightData | None) -> Iterator[str]:
    """A line for what is declared, and where a night's data are known, one for what does not match it."""
    declared = {**declared, **(data.declared if data else {})}
    if declared:
        yield f"{experiment} declares {_format_names([f'{name} ({own})' for name, own in declared.items()])}."
    if data is None:
        return
    yield from filter(None, [describe_unmeasured(data)])
    if data.undeclared:
        names = _format_names(data.undeclared)
        lacking = "are no series" if data.records else "have neither a unit nor a better direction"
        yield f"{experiment}: numbers that nothing declares, so that they {lacking}: {names}."


def describe_unmeasured(data: NightData) -> str:
    """A sentence about what is declared of the night's numbers though none has come; empty where all have."""
    if not data.unmeasured:
        return ""
    place = "of that name in additional_info (by details, check, after or derive)" if data.records else "there"
    return (
        f"{data.experiment} declares {_format_names(data.unmeasured)}, but measured no such number. Leave a "
        f"number {place}, or remove the declaration from metrics."
    )


def _format_names(names: Sequence[str]) -> str:
    return format_list([elide(name, _LONGEST_NAME) if at < _NAMED else name for at, name in enumerate(names)], _NAMED)
