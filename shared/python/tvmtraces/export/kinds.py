"""Kinds of rows that become slices and counters of other tools, as data: one row for each kind.

A source is a relation with `guid`, `process`, `start` and `duration`, and the columns in `told`, which say what a row
is: few values of those stand for many rows, so that their texts are made once.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """Rows that become slices: `name`, `category` and `lane` are SQL over the columns `told`."""

    source: str
    told: str
    name: str
    category: str
    lane: str
    runs: bool = False
    """True where a row may be the first of a trial's profiled run, to which a flow leads."""
    arrow: int = 0
    """1 where arrows begin at rows (the call that launched something), -1 where they end; `stack_id` joins the two."""


def _timed(columns: str, view: str, *, start: str = '"start"', duration: str = "coalesce(duration, 0)") -> str:
    return (
        f'(SELECT guid, process, {columns}, {start} AS "start", {duration} AS duration FROM {view} '  # noqa: S608
        f"WHERE {start} IS NOT NULL)"
    )


_LAID_END_TO_END = """(SELECT guid, process, name, CAST("timestamp" + coalesce(sum(duration) OVER (
    PARTITION BY guid, process, trial ORDER BY position ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS BIGINT)
    AS "start",
    coalesce(duration, 0) AS duration FROM passes WHERE "timestamp" IS NOT NULL)"""
_TIMED = """(SELECT guid, process, name, CAST("timestamp" + coalesce(sum(elapsed_ns) OVER (
    PARTITION BY guid, process, trial, "timestamp" ORDER BY position
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS BIGINT) AS "start", elapsed_ns AS duration
    FROM samples WHERE elapsed_ns IS NOT NULL AND "timestamp" IS NOT NULL)"""
_QUEUE = "coalesce(queue, '') || ' ' || coalesce(stream, '')"
_ON_THREAD = "CASE WHEN tid IS NULL THEN '' ELSE ' of ' || tid END"

SLICES = (
    Kind(_LAID_END_TO_END, "name", "name", "'pass'", "'passes, laid end to end'"),
    Kind(_TIMED, "name", "name", "'sample'", "'samples'"),
    Kind(
        _timed("name, category, tid, stack_id", "regions"),
        "name, category, tid",
        "name",
        "coalesce(category, 'region')",
        f"'regions' || {_ON_THREAD}",
        arrow=1,
    ),
    Kind(
        _timed("name, category, tid", "samples", start='"timestamp"', duration="CAST(0 AS BIGINT)").replace(
            "WHERE", "WHERE elapsed_ns IS NULL AND"
        ),
        "name, category, tid",
        "name",
        "coalesce(category, 'instant')",
        f"'instants' || {_ON_THREAD}",
    ),
    Kind(_timed("name, stack_id", "memory_copies"), "name", "name", "'memory copy'", "'memory copies'", arrow=-1),
    Kind(
        _timed("type, level", "memory_allocations"),
        "type, level",
        "concat_ws(' ', type, level)",
        "'memory allocation'",
        "'memory allocations'",
    ),
    Kind(_timed("name", "graph_launches"), "name", "name", "'graph launch'", "'graph launches'"),
    Kind(
        _timed("name, category, queue, stream, agent_type, agent_abs_index, trial, repetition, stack_id", "kernels"),
        "name, category, queue, stream, agent_type, agent_abs_index",
        "name",
        "category",
        f"CASE WHEN queue IS NULL AND stream IS NULL THEN 'operators' WHEN agent_type IS NULL THEN {_QUEUE} "
        f"ELSE agent_type || ' ' || coalesce(agent_abs_index, 0) || ' ' || {_QUEUE} END",
        runs=True,
        arrow=-1,
    ),
)


def format_counted(chosen: str, events: str) -> str:
    """Return SQL for the values of some performance counters: of a kernel at its begin, its instances summed up.

    `chosen` is the condition on the counters' rows, `events` a condition on `event_id` that holds of all their events.
    """
    of_events = " ".join(
        f"""LEFT JOIN (SELECT guid, event_id, any_value(process) AS process, min({moment}) AS begun, any_value({agent})
            AS agent FROM base_{table} WHERE {events} GROUP BY guid, event_id) AS {alias}
            ON {alias}.guid = C.guid AND {alias}.event_id = C.event_id"""  # noqa: S608 - our own words
        for table, alias, moment, agent in (
            ("dispatch", "D", '"start"', "agent_type || ' ' || agent_abs_index"),
            ("instant", "I", '"timestamp"', "CAST(NULL AS VARCHAR)"),
        )
    )
    return f"""(SELECT guid, process, name, unit, "start", sum(value) AS value, count(*) AS count FROM (
        WITH C AS (SELECT * FROM base_counter WHERE {chosen} AND value IS NOT NULL AND counter_name IS NOT NULL)
        SELECT C.guid, coalesce(S.process, D.process, I.process) AS process, coalesce(N.units, '') AS unit, C.value,
            C.counter_name || coalesce(' of ' || D.agent, '') AS name,
            CASE WHEN C.sample_id IS NULL THEN coalesce(D.begun, I.begun) ELSE S."timestamp" END AS "start"
        FROM C LEFT JOIN base_pmc N ON N.guid = C.guid AND N.id = C.counter_id {of_events}
        LEFT JOIN (SELECT guid, id, process, "timestamp" FROM base_instant
            WHERE id BETWEEN (SELECT min(sample_id) FROM C) AND (SELECT max(sample_id) FROM C)) AS S
            ON S.guid = C.guid AND S.id = C.sample_id
    ) WHERE "start" IS NOT NULL GROUP BY ALL)"""  # noqa: S608 - our own words
