"""What took how long: one row for each domain and name, over all files at once, with true percentiles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tvmdash.errors import DashboardError
from tvmdash.traces.connection import Connection

GROUPS = {"process": ("guid", "CAST(P.pid AS VARCHAR)"), "host": ("guid", "P.hostname")}
"""By what a summary can be told apart: how rows are joined to processes, and what is shown."""

_SPANS = """
    SELECT coalesce(category, 'kernel') AS domain, name, duration, guid FROM kernels
    UNION ALL SELECT coalesce(category, 'memory copy'), name, duration, guid FROM memory_copies
    UNION ALL SELECT coalesce(category, 'region'), name, duration, guid FROM regions
    UNION ALL SELECT 'pass', name, duration, guid FROM passes"""


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


def summary(traces: Connection, *, by: str | None = None) -> Iterator[SummaryRow]:
    """The rows, the longest total first; `by` is None, "process" or "host"."""
    if by is not None and by not in GROUPS:
        raise DashboardError(f"{by!r:.40} is not what a summary can be told apart by. Use {' or '.join(GROUPS)}.")
    shown = f"{GROUPS[by][1]}" if by else "CAST(NULL AS VARCHAR)"
    join = "LEFT JOIN processes P ON P.guid = S.guid" if by else ""
    query = f"""
        SELECT domain, name, grp, count(*), CAST(sum(duration) AS BIGINT), sum(duration) * 1.0 / count(*),
            sum(duration) * 100.0 / nullif(sum(sum(duration)) OVER (PARTITION BY domain, grp), 0),
            min(duration), median(duration), quantile_disc(duration, 0.95), max(duration), stddev_samp(duration)
        FROM (SELECT S.domain, S.name, S.duration, {shown} AS grp FROM ({_SPANS}) AS S {join}) AS U
        WHERE duration IS NOT NULL GROUP BY domain, name, grp ORDER BY 5 DESC, domain, name, grp"""  # noqa: S608
    for row in traces.execute(query):
        yield SummaryRow(*row)
