"""What is not as it was when a receipt was measured: of the TVM, this repository, the machine, the engines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dashboard.artifacts.artifact import Artifact
from dashboard.night import repository
from dashboard.plan.job import REPOSITORY
from dashboard.trials.receipt import Receipt
from dashboard.trials.reproduce.source_code import Code
from tvmdash.machine import hardware

_PLACES = frozenset(("library_path",))
"""Facts of an engine that differ from home to home."""
Fact = tuple[str, str, str]
"""Its name, how it was then, how it is now."""
_MACHINE = ("host", "hw_model")
_FACTS = ("cpu_microcode", "governor", "memory_bytes", "affinity", "system", "distribution", "libc", "python")


def is_same_machine(receipt: Receipt) -> bool | None:
    """Whether this is the machine of the receipt; None where it does not say which that was."""
    then, now = _machine_of(receipt), hardware.facts()
    return all(then[name] == now[name] for name in _MACHINE) if all(then.get(name) for name in _MACHINE) else None


def find_differing(receipt: Receipt, artifact: Artifact, code: Code, note: str) -> Iterator[Fact]:
    """What differs of the TVM (with a `note` on how it was got), of this repository, of the machine."""
    was = {**dict(receipt.artifact.get("facts") or {}), "key": receipt.artifact.get("key")}
    has = {**artifact.facts, "key": artifact.key}
    for name in sorted(was.keys() | has.keys()):
        if str(was.get(name)) != str(has.get(name)) and name != "build_s":
            yield f"TVM's {name}", str(was.get(name)), str(has.get(name))
    if note:
        yield "TVM", str(receipt.artifact.get("version")), note
    commit = str(receipt.repository.get("commit") or "unknown")
    current = str(repository.describe(REPOSITORY).get("commit") or "unknown")
    if code.shared is None and commit != current:
        yield "commit of this repository", commit[:12], current[:12]
    then, now = _machine_of(receipt), hardware.facts()
    for name in (*_MACHINE, *_FACTS):
        if then and then.get(name) != now.get(name):
            yield name, _known(then.get(name)), _known(now.get(name))


def compare_engines(receipt: Receipt, nights: Sequence[Mapping[str, Any]]) -> Iterator[Fact]:
    """Versions of what runs beside TVM that differ, as the data itself names them."""
    was = receipt.environment.get("engine")
    has = (nights[0].get("environment") or {}).get("engine") if nights else None
    if isinstance(was, dict) and isinstance(has, dict):
        was, has = _flatten(was), _flatten(has)
        for name in sorted(was.keys() & has.keys() - _PLACES):
            if was[name] != has[name]:
                yield f"engine's {name}", str(was[name])[:200], str(has[name])[:200]


def _flatten(engine: Mapping[str, Any]) -> dict[str, Any]:
    """What an engine says of itself, its facts one by one."""
    facts = engine.get("facts")
    return {**{name: value for name, value in engine.items() if name != "facts"}, **dict(facts or {})}


def _machine_of(receipt: Receipt) -> dict[str, Any]:
    then = receipt.environment.get("machine")
    return dict(then) if isinstance(then, dict) else {}


def _known(value: object) -> str:
    return "unknown" if value is None else str(value)
