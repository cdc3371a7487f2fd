"""`traces` and `records`: query the measurements in SQL, and export or import them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from dashboard.cli.arguments import Verbs, add_passed_on_verb


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    """Add them to the command line."""
    add_passed_on_verb(
        verbs, "traces", _traces, "query the measurements in SQL: query, summary, diff, seal, convert, ..."
    )
    add_passed_on_verb(verbs, "records", _records, "export and import records in the workload record format")


def _traces(rest: Sequence[str]) -> int:
    from tvmdash.traces import __main__ as traces  # DuckDB and NumPy

    return traces.main(rest)


def _records(rest: Sequence[str]) -> int:
    from tvmdash.records.exchange import __main__ as records_exchange

    return records_exchange.main(rest)
