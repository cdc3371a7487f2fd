"""The raw measurements of one experiment in one night: samples, operators and passes of each point, and a trace."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tvmdash import common
from tvmdash.dashboard_info import OF_REFERENCE, VARIANT_SIGN
from tvmdash.errors import DashboardError
from tvmdash.text import format_bytes
from tvmdash.trials.receipt import ReceiptRecord

MOST_TRACE_ROWS = 1_000_000
MOST_TRACE_BYTES = 32 << 20
CATALOGUE = "catalogue.json"
_COLUMNS = ("workload_args", "engine_config", "build_config", "runtime_config")


@dataclass
class Measured:
    """One point, as a receipt holds it, while it is read."""

    samples_ms: list[float] = field(default_factory=list)
    runs: int = 0
    operators: list[tuple[str, int, int]] = field(default_factory=list)
    passes: list[tuple[str, int]] = field(default_factory=list)
    profiled: dict[tuple[str, int], dict[int, dict[str, float]]] = field(default_factory=dict)
    known: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def of_record(self, series: Mapping[str, str | None], record: Mapping[str, Any]) -> ReceiptRecord:
        from tvmtraces.operators import sum_up

        times = sum_up([list(runs.values()) for runs in self.profiled.values()])
        operator_ms = {name: tuple(float(f"{ms:.7g}") for ms in of_processes) for name, of_processes in times.items()}
        lists = (tuple(self.operators), tuple(self.passes), operator_ms, self.known)
        return ReceiptRecord(series, record, tuple(self.samples_ms), self.runs, *lists)


def identity_of(workload: str, engine: str, target: str, columns: Mapping[str, Any]) -> str:
    """Return the identity that a record shares with the trial it was made of."""
    return json.dumps([workload, engine, target, [columns.get(name) for name in _COLUMNS]], sort_keys=True)


def read_measured(raw: Path) -> tuple[dict[str, Measured], str]:
    """Read the points by `identity_of`; say why there are none, or nothing."""
    if not (raw / CATALOGUE).is_file():
        return {}, "The raw measurements of this night were not kept as a sealed run."
    from tvmtraces.connection import open_traces  # reading traces costs imports that most publishes do without

    try:
        with open_traces([raw]) as traces:
            return _measured(traces), ""
    except DashboardError as error:
        return {}, f"The raw measurements could not be read: {error}"


def _measured(traces: Any) -> dict[str, Measured]:
    from tvmtraces.operators import name_operator, read_known

    measured_of: dict[str, Measured] = {}
    of_trial: dict[tuple[str, int], Measured] = {}
    reference = f"%{VARIANT_SIGN}{OF_REFERENCE}"  # in the statement: a parameter would make DuckDB import pandas
    for guid, trial, identity, facts in traces.execute(
        "SELECT T.guid, T.id, T.identity, T.facts FROM trials T"  # noqa: S608
        " JOIN processes P ON P.guid = T.guid AND P.process = T.process"
        f" WHERE T.error IS NULL AND coalesce(P.experiment, '') NOT LIKE '{reference}' ORDER BY T.id"
    ):
        key = _key(identity)
        if key:
            of_trial[guid, trial] = measured_of.setdefault(key, Measured())
            of_trial[guid, trial].known = read_known(facts)
    nothing = Measured()
    for guid, trial, elapsed_ns, number in traces.execute(
        "SELECT guid, trial, elapsed_ns, number FROM samples WHERE elapsed_ns IS NOT NULL"
        " ORDER BY timestamp, trial, position"
    ):
        of_trial.get((guid, trial), nothing).samples_ms.append(float(f"{elapsed_ns / number / 1e6:.7g}"))
    for guid, trial, name, calls, total in traces.execute(
        "SELECT guid, trial, name, count(*), sum(duration) FROM kernels GROUP BY guid, trial, name"
        " ORDER BY 5 DESC, name"
    ):
        of_trial.get((guid, trial), nothing).operators.append((name, int(calls), int(total)))
    for guid, trial, repetition, name, elapsed_ms in traces.execute(
        "SELECT guid, trial, repetition, name, sum(duration) / 1e6 FROM kernels WHERE trial IS NOT NULL"
        " GROUP BY guid, trial, repetition, name ORDER BY ALL"
    ):
        run = of_trial.get((guid, trial), nothing).profiled.setdefault((guid, trial), {}).setdefault(repetition, {})
        run[name_operator(name)] = run.get(name_operator(name), 0.0) + elapsed_ms
    for guid, trial, runs in traces.execute(
        "SELECT guid, trial, count(DISTINCT repetition) FROM kernels GROUP BY guid, trial"
    ):
        of_trial.get((guid, trial), nothing).runs += int(runs)
    for guid, trial, name, total, _ in traces.execute(
        "SELECT guid, trial, name, sum(duration), min(position) FROM passes GROUP BY guid, trial, name ORDER BY 5, name"
    ):
        of_trial.get((guid, trial), nothing).passes.append((name, int(total)))
    return measured_of


def _key(identity: str | None) -> str:
    try:
        point = common.parse_json((identity or "").encode(errors="replace"), "identity")
        return identity_of(point["workload"], point["engine"], point["target"], point["columns"])
    except (DashboardError, ValueError, KeyError, TypeError, AttributeError):
        return ""  # of a program that measures in its own way: its samples belong to no record that is known


def write_trace(raw: Path, target: Path) -> str:
    """Write a trace for ui.perfetto.dev; say why there is none, or nothing."""
    if not (raw / CATALOGUE).is_file():
        return "No traces were recorded on this night."
    from tvmtraces.connection import open_traces
    from tvmtraces.convert import write_perfetto
    from tvmtraces.export.events import trace_events

    try:
        rows = sum(int(table["rows"]) for table in common.read_json(raw / CATALOGUE)["tables"].values())
        if rows > MOST_TRACE_ROWS:
            return f"The trace is omitted because it has {rows} rows; the limit is {MOST_TRACE_ROWS}."
        with open_traces([raw]) as traces:
            events = trace_events(traces)
            write_perfetto(target, events.events, flows=events.flows)
    except (DashboardError, KeyError, TypeError, ValueError, AttributeError) as error:
        target.unlink(missing_ok=True)
        return f"Writing the trace failed: {error}"
    size = target.stat().st_size
    if size > MOST_TRACE_BYTES:
        target.unlink()
        return (
            f"The trace is omitted because it is {format_bytes(size)}; the limit is {format_bytes(MOST_TRACE_BYTES)}."
        )
    return ""
