"""Total time by domain and name, over all files at once, with true percentiles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tvmdash.errors import DashboardError
from tvmtraces.connection import Traces

GROUPS = {
    "process": "CASE WHEN count(*) OVER (PARTITION BY pid) = 1 THEN CAST(pid AS VARCHAR) "
    "ELSE pid || ' (' || guid || '/' || process || ')' END",
    "host": "hostname",
}
"""Columns of processes to group by; a process id that several share gets its key added."""

_SPANS = """
    SELECT coalesce(category, 'kernel') AS domain, name, duration, guid, process FROM kernels
    UNION ALL SELECT coalesce(category, 'memory copy'), name, duration, guid, process FROM memory_copies
    UNION ALL SELECT coalesce(category, 'region'), name, duration, guid, process FROM regions
    UNION ALL SELECT 'pass', name, duration, guid, process FROM passes"""


@dataclass(frozen=True)
class SummaryRow:
    """All calls of one name in one domain (and one process or host); times in ns, `percent` of its domain's total.

    `median_ns` lies between the middle two where they are two; `p95_ns` is the smallest duration that 95 % of the calls
    do not exceed; `std_ns` is the sample's, None for one call.
    """

    domain: str
    name: str | None
    group: str | None
    calls: int
    total_ns: int
    mean_ns: float
    percent: float | None
    min_ns: int
    median_ns: float
    p95_ns: int
    max_ns: int
    std_ns: float | None


def summary(traces: Traces, *, by: str | None = None) -> Iterator[SummaryRow]:
    """Yield the rows, the longest total first; `by` is None, "process" or "host"."""
    if by is not None and by not in GROUPS:
        raise DashboardError(f"cannot group a summary by {by!r:.40}. Use {' or '.join(GROUPS)}.")
    shown, join = "CAST(NULL AS VARCHAR)", ""
    if by:
        groups = f"SELECT guid, process, {GROUPS[by]} AS grp FROM processes"  # noqa: S608 - our own words
        shown, join = "P.grp", f"LEFT JOIN ({groups}) AS P ON P.guid = S.guid AND P.process = S.process"
    query = f"""
        SELECT domain, name, grp, count(*), CAST(sum(duration) AS BIGINT), sum(duration) * 1.0 / count(*),
            sum(duration) * 100.0 / nullif(sum(sum(duration)) OVER (PARTITION BY domain, grp), 0),
            min(duration), median(duration), quantile_disc(duration, 0.95), max(duration), stddev_samp(duration)
        FROM (SELECT S.domain, S.name, S.duration, {shown} AS grp FROM ({_SPANS}) AS S {join}) AS U
        WHERE duration IS NOT NULL GROUP BY domain, name, grp ORDER BY 5 DESC, domain, name, grp"""  # noqa: S608
    for row in traces.execute(query):
        yield SummaryRow(*row)
