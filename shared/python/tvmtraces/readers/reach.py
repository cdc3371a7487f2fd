"""Sealed runs that may hold rows within the filters, by their catalogues: files of the others stay shut."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tvmtraces.filters import Filters, TimeSpan, format_host_of_job, format_literal, format_patterns
from tvmtraces.sealed import Catalogue
from tvmtraces.tables import TABLES

BOUNDED = ("trial", "operator", "timing", "telemetry", "region", "instant", "dispatch", "copy")
"""Tables that the bounds of a catalogue cover."""
_OF_MACHINE = "telemetry"
"""The table with rows of no process: readings of the machine's sensors while processes ran."""
Ask = Callable[[str], Iterable[tuple[str, ...]]]
"""Returns the rows of a query."""


@dataclass(frozen=True)
class ReachNames:
    """Names in the catalogues that the filters leave; None where they leave all.

    jobs: the experiments on hosts whose name in the config the filters ask for.
    """

    hosts: frozenset[str] | None = None
    jobs: frozenset[str] = frozenset()
    nights: frozenset[str] | None = None
    experiments: frozenset[str] | None = None

    @classmethod
    def of(cls, filters: Filters, catalogues: Sequence[Catalogue], ask: Ask) -> ReachNames:
        """Match the catalogues' names with the patterns of the filters, as DuckDB understands them."""

        def match(name: str, patterns: Sequence[str], value: str = "name") -> frozenset[str] | None:
            if not patterns:
                return None
            known = {item for catalogue in catalogues for item in getattr(catalogue, name)}
            return _match(known, format_patterns(value, patterns), ask)

        hosts = match("hosts", filters.hosts)
        jobs = match("experiments", filters.hosts, format_host_of_job("name")) or frozenset()
        return cls(hosts, jobs, match("nights", filters.nights), match("experiments", filters.experiments))


def _match(names: Iterable[str], condition: str, ask: Ask) -> frozenset[str]:
    """Return the names that meet the condition; those that no query can contain might."""
    odd = frozenset(name for name in names if "\0" in name)
    listed = ", ".join(f"({format_literal(name)})" for name in sorted(set(names) - odd))
    if not listed:
        return odd
    query = f"SELECT name FROM (VALUES {listed}) AS known(name) WHERE {condition}"  # noqa: S608 - escaped
    return odd | {row[0] for row in ask(query)}


@dataclass(frozen=True)
class Reach:
    """The reach of the filters. guids: of the chosen processes, which ran in `ran_ns`; None where all are chosen."""

    names: ReachNames = ReachNames()
    guids: frozenset[str] | None = None
    ran_ns: tuple[int, int] | None = None
    span: TimeSpan | None = None

    def may_hold(self, table: str, run: Catalogue) -> bool:
        """Return True where the run may have rows of the table that the filters leave."""
        if self.span is not None and table in BOUNDED and not _overlaps(run, self.span.begin_ns, self.span.end_ns):
            return False
        columns = TABLES[table].columns
        if "guid" in columns:
            return self._may_hold_chosen(run) or (table == _OF_MACHINE and self._ran_meanwhile(run))
        of_night = "night" not in columns or table == "stage" or _any_of(run.nights, self.names.nights)
        return of_night and ("experiment" not in columns or _any_of(run.experiments, self.names.experiments))

    def _may_hold_chosen(self, run: Catalogue) -> bool:
        """Return True where a process that is or may be chosen has rows in the run."""
        if not run.guids:
            return True
        if self.guids is not None:
            return _any_of(run.guids, self.guids)
        names = self.names
        on_host = _any_of(run.hosts, names.hosts) or _any_of(run.experiments, names.jobs)
        return on_host and _any_of(run.nights, names.nights) and _any_of(run.experiments, names.experiments)

    def _ran_meanwhile(self, run: Catalogue) -> bool:
        return self.ran_ns is not None and _overlaps(run, self.ran_ns[0], self.ran_ns[1] + 1)


EVERYTHING = Reach()
"""The reach without filters."""


def _any_of(names: Iterable[str], chosen: frozenset[str] | None) -> bool:
    return chosen is None or not chosen.isdisjoint(names)


def _overlaps(run: Catalogue, begin_ns: int, end_ns: int) -> bool:
    """Return True where anything timed in the run may lie between these moments."""
    if run.start_ns is None or run.end_ns is None:
        return False
    return run.start_ns < end_ns and run.end_ns >= begin_ns
