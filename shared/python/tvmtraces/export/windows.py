"""Windows over many rows, so that no more than those of one are held at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tvmtraces.connection import Traces

ROWS = 1 << 18
"""Most rows of a window, unless they all begin at one moment."""
_BINS = 1 << 12


def cut_into_windows(traces: Traces, rows: str, column: str = '"start"', most: int = ROWS) -> Iterator[range]:
    """Yield rising ranges of a column of whole numbers, which together hold every row of the relation `rows` once."""
    query = f"SELECT min({column}), max({column}), count(*) FROM {rows}"  # noqa: S608 - our own words
    first, last, count = traces.execute(query).fetchall()[0]
    if count:
        yield from _cut(traces, rows, column, range(first, last + 1), count, most)


def _cut(traces: Traces, rows: str, column: str, span: range, count: int, most: int) -> Iterator[range]:
    """Cut into bins of one width; join neighbours as far as they may be, cut those with too many rows again."""
    if count <= most or len(span) == 1:
        yield span
        return
    width = -(-len(span) // _BINS)
    query = f"""SELECT ({column} - {span.start}) // {width} AS bin, count(*) FROM
        {rows} WHERE {column} BETWEEN {span.start} AND {span.stop - 1} GROUP BY bin ORDER BY bin"""  # noqa: S608 - our own words
    begin, waiting = span.start, 0
    for number, held in traces.execute(query).fetchall():
        low, high = span.start + number * width, min(span.start + (number + 1) * width, span.stop)
        if waiting and waiting + held > most:
            yield range(begin, low)
            begin, waiting = low, 0
        if held > most:
            yield from _cut(traces, rows, column, range(low, high), held, most)
            begin = high
        else:
            waiting += held
    if waiting:
        yield range(begin, span.stop)
