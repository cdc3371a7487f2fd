"""Receipts: an experiment's points of one night on the website, which `reproduce` measures again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tvmdash import common
from tvmdash.common.structured import Stamp

SCHEMA_VERSION = 1
FOLDER = "receipts"


def place_of(experiment: str, stamp: str) -> str:
    """Return its place on the site, without its ending."""
    return f"{FOLDER}/{stamp}/{common.safe_name(experiment)}"


@dataclass(frozen=True)
class ReceiptRecord:
    """A point: its record as in the data file, or `path` and `value` of a foreign number; its series' ID by metric.

    samples_ms: in their order. operators: name, calls and ns of all calls over `runs` profiled runs, the longest first;
    operator_ms: by name the median run of each process, known_operators: what they are.
    passes: name and ns, in the order in which the compiler ran them first.
    """

    series: Mapping[str, str | None]
    record: Mapping[str, Any]
    samples_ms: tuple[float, ...] = ()
    runs: int = 0
    operators: tuple[tuple[str, int, int], ...] = ()
    passes: tuple[tuple[str, int], ...] = ()
    operator_ms: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    known_operators: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Receipt:
    """One experiment of the night `stamp`; `night`, `environment` and `failures` are those of its data file.

    repeat: the command that measures it again, "" where the night does not pin what that needs. trace: a file beside
    it. samples_words, trace_words: why there are none of these.
    """

    stamp: Stamp
    experiment: str
    night: Mapping[str, Any]
    data_file: str
    records: tuple[ReceiptRecord, ...]
    tvm_hash: str | None = None
    environment: Mapping[str, Any] = field(default_factory=dict)
    failures: tuple[Mapping[str, Any], ...] = ()
    repeat: str = ""
    samples_words: str = ""
    trace: str | None = None
    trace_words: str = ""


@dataclass(frozen=True)
class Pins:
    """The part of the `night` in a data file or receipt that pins its experiment for measuring it again."""

    config: Mapping[str, Any]
    seed: int
    artifact: Mapping[str, Any]
    fingerprint: str
    repository: Mapping[str, Any] = field(default_factory=dict)
    experiment: str = ""
    stamp: str = ""
    reference: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def lacking(night: Mapping[str, Any]) -> list[str]:
        """The names of what the night does not say: it was imported, added by hand, or measured without TVM."""
        return [name for name in ("config", "seed", "artifact", "fingerprint") if night.get(name) is None]
