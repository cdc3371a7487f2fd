"""The views of a connection as data: names and columns of RocPD where the thing is the same, ours where it is ours.

Each is DuckDB's SQL over `base_<table>` (see tables). Beyond RocPD's columns stand ours: kernels and samples know their
trial. A view that RocPD has too leaves out the rows that RocPD's leaves out: those with a reference, of those that its
joins follow, that leads nowhere; `unresolved` counts them. Times are nanoseconds; `top` gives microseconds, as RocPD's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from tvmtraces.readers.rocpd_queries import WORDS
from tvmtraces.rocpd_schema import TABLES as ROCPD_TABLES
from tvmtraces.tables import TABLES
from tvmtraces.views.rocpd import make_rocpd_views
from tvmtraces.views.view import DuckWords, RocpdWords, View


def _count_unresolved() -> str:
    """A query that reads each table once; with one for each table and bit, planning took longer than reading."""
    tables = [name for name, spec in TABLES.items() if "missing" in spec.columns]
    rows = (f"SELECT guid, '{table}' AS kind, missing FROM base_{table} WHERE missing <> 0" for table in tables)  # noqa: S608
    bits = (f"SELECT {int(bit)} AS bit, '{word}' AS refers_to" for bit, word in WORDS.items())
    found, words = " UNION ALL ".join(rows), " UNION ALL ".join(bits)
    chosen = f"SELECT M.guid, M.kind, B.refers_to, count(*) AS rows FROM ({found}) AS M JOIN ({words}) AS B"  # noqa: S608
    return f"{chosen} ON (M.missing & B.bit) <> 0 GROUP BY M.guid, M.kind, B.refers_to"


OUR_VIEWS: Mapping[str, View] = {
    "nodes": View(
        "a machine",
        """
    SELECT id, guid, hash, machine_id, system_name, hostname, release, version, hardware_name, domain_name
    FROM base_node""",
    ),
    "agents": View(
        "a device",
        """
    SELECT id, guid, nid, pid, type, absolute_index, logical_index, type_index, uuid, name, model_name, vendor_name,
        product_name, user_name, extdata, process FROM base_agent""",
    ),
    "trials": View(
        "a point measured once: workload, point, times, error, its samples in short",
        """
    SELECT T.id, T.guid, T.nid, T.pid, T.tid, P.night, P.experiment, P.hostname, T.workload, T.point, T.engine,
        P.tvm_hash, T.target, T."start", T."start" + T.duration AS "end", T.duration, T.error, S.samples, S.ms_mean,
        S.ms_min, S.ms_max, T.facts, T.identity, T.process
    FROM base_trial T JOIN base_process P ON P.guid = T.guid AND P.process = T.process
        LEFT JOIN (SELECT guid, process, trial, count(*) AS samples, avg(elapsed_ns / 1e6 / number) AS ms_mean,
            min(elapsed_ns / 1e6 / number) AS ms_min, max(elapsed_ns / 1e6 / number) AS ms_max
            FROM base_timing GROUP BY guid, process, trial) AS S
            ON S.guid = T.guid AND S.process = T.process AND S.trial = T.id""",
    ),
    "passes": View(
        "one pass of one compilation",
        """
    SELECT X.guid, X.nid, X.pid, X.trial, T.workload, T.point, X.position, X.name, X."timestamp", X.duration,
        X.process
    FROM base_pass X LEFT JOIN base_trial T ON T.guid = X.guid AND T.process = X.process AND T.id = X.trial""",
    ),
    "telemetry": View(
        "what a sensor said",
        'SELECT guid, nid, pid, "timestamp", name, unit, value, process FROM base_telemetry',
    ),
    "records": View(
        "a record of a night, in the columns of apache/tvm#4304",
        f"SELECT {', '.join(TABLES['record'].columns)} FROM base_record",  # noqa: S608 - our own words
    ),
    "nights": View(
        "a night",
        """
    SELECT night, state, "start", "start" + duration AS "end", duration, seed, "commit", tvm, notes, source
    FROM base_night UNION ALL
    SELECT night, CAST(NULL AS VARCHAR), min("start"), max("end"), max("end") - min("start"), CAST(NULL AS BIGINT),
        CAST(NULL AS VARCHAR), min(tvm_hash), CAST(NULL AS VARCHAR), CAST(NULL AS VARCHAR)
    FROM base_process WHERE night IS NOT NULL AND night NOT IN (SELECT night FROM base_night) GROUP BY night""",
    ),
    "stages": View(
        "a stage of a job of a night",
        """
    SELECT night, kind, job, stage, state, message, "start", "start" + duration AS "end", duration FROM base_stage""",
    ),
    "unresolved": View(
        "how many rows of a kind refer to what is not there, which RocPD's views then leave out",
        _count_unresolved(),
    ),
}


ALL_VIEWS: Mapping[str, View] = {**make_rocpd_views(DuckWords()), **OUR_VIEWS}
SQLITE_VIEWS: Mapping[str, str] = {name: view.sql for name, view in make_rocpd_views(RocpdWords()).items()}
"""RocPD's, over RocPD's own tables."""
VIEWS: Mapping[str, str] = {name: view.sql for name, view in ALL_VIEWS.items()}
"""The SQL of each."""
_WORD = re.compile(r"\w+")
VIEW_TABLES: Mapping[str, frozenset[str]] = {
    name: frozenset(table for table in TABLES if f"base_{table}" in _WORD.findall(sql)) for name, sql in VIEWS.items()
}
"""The tables under each view."""
_ASKS_WHAT_THERE_IS = frozenset(
    {"query", "query_table", "show", "describe", "information_schema", "duckdb_tables", "duckdb_views"}
)


def find_tables(sql: str) -> frozenset[str]:
    """The tables that a query needs: those whose names, or views' names, stand in it anywhere.

    All of them where it asks what there is, or gives a name as a text.
    """
    identifiers = {word.lower() for word in _WORD.findall(sql)}
    if identifiers & _ASKS_WHAT_THERE_IS:
        return frozenset(TABLES)
    tables = {table for word in identifiers for table in VIEW_TABLES.get(word, ())}
    return frozenset(tables | {table for table in TABLES if {f"base_{table}", f"all_{table}"} & identifiers})


def make_views(suffixes: Sequence[str]) -> Iterator[str]:
    """Yield the statements for a view of each table, over those of all writers, and for the views for people."""
    for table in ROCPD_TABLES:
        parts = " UNION ALL ".join(f'SELECT * FROM "rocpd_{table}{suffix}"' for suffix in suffixes)  # noqa: S608 - ours
        yield f"CREATE VIEW rocpd_{table} AS {parts}"
    for name, sql in SQLITE_VIEWS.items():
        yield f"CREATE VIEW {name} AS {sql}"
