"""How tonight's TVM stands to the reference: what was measured in turn, and exact numbers of both."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from judging.exact import judge_change
from judging.judge import Judged
from judging.table import Table

from tvmdash import records
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.records import PointValue
from tvmdash.records.metrics import is_worse
from tvmdash.series import naming
from tvmdash.text import format_list
from tvmdash.verdict import BesideReference, Difference, ExactDifference


def compare(home: Home, table: Table, judged: Judged) -> BesideReference | None:
    """How tonight's TVM stands to the reference, in all experiments; None where nothing was measured beside one."""
    known = {row: said.reference for row, said in judged.beside.items() if said.reference is not None}
    if not known:
        return None
    differences = []
    for row, stand in known.items():
        if stand.differs:
            series = table.rows[row]
            worse = is_worse(stand.effect, series.direction)
            differences.append(Difference(series.key, series.name, stand.effect, stand.low, stand.high, worse))
    differences.sort(key=lambda difference: (not difference.worse, -abs(difference.effect)))
    experiments = sorted({table.rows[row].experiment for row in known})
    names = {table.build(experiment, judged.night).reference_version or "" for experiment in experiments}
    first = not any(_was_beside(table, experiment, judged.night) for experiment in experiments)
    itself = all(stand.is_itself for stand in known.values())
    exact = [found for name in experiments * (not itself) for found in _exact(home, table, judged.night, name)]
    exact.sort(key=lambda difference: (not difference.worse, -abs(difference.value - difference.reference)))
    return BesideReference(format_list(sorted(names), 2), len(known), tuple(differences), first, tuple(exact), itself)


def _was_beside(table: Table, experiment: str, night: int) -> bool:
    """Whether the experiment was measured beside tonight's reference before.

    Or tonight's reference is what it measured last: the step since that night says the same.
    """
    reference = table.build(experiment, night).reference
    builds = [table.build(experiment, earlier) for earlier in range(table.offset, night)]
    measured = [build for build in builds if build.artifact is not None]
    last = [build.artifact for build in measured[-1:]]
    return last == [reference] or any(build.reference == reference for build in measured)


def _exact(home: Home, table: Table, night: int, experiment: str) -> Iterator[ExactDifference]:
    """The exact numbers of an experiment that are others on the reference."""
    rows = {(naming.id_of(row.key), row.unit): row for row in table.rows if row.experiment == experiment}
    for point in _points(home, experiment, table.stamps[night]):
        series = rows.get((point.key.id, point.unit))
        if series is None or point.reference is None or point.alike == 0 or point.value == point.reference:
            continue
        worse = judge_change(series, point.reference, point.value)
        yield ExactDifference(series.key, series.name, series.unit, point.reference, point.value, worse)


def _points(home: Home, experiment: str, stamp: str) -> Iterator[PointValue]:
    with contextlib.suppress(DashboardError):  # told where it was read for the index
        yield from records.read_data(home.data_file(experiment, stamp), experiment).values()
