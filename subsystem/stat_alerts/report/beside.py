"""How tonight's TVM stands to the reference: what was measured in turn, and exact numbers of both."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

from judging.judge import Judged
from judging.table import Table

from tvmdash import records
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.records import PointValue
from tvmdash.records.metrics import is_worse, judge_exact_change
from tvmdash.series import naming
from tvmdash.text import format_list
from tvmdash.verdict import BesideReference, Difference, ExactDifference


def exact_on_both(home: Home, table: Table, night: int) -> dict[int, float]:
    """By row, what the reference gave of each exact number of which tonight's processes agree."""
    rows = {(naming.id_of(row.key), row.unit): at for at, row in enumerate(table.rows)}
    beside = [name for name in {row.experiment for row in table.rows} if table.build(name, night).reference]
    points = (point for name in sorted(beside) for point in _points(home, name, table.stamps[night]))
    found = {rows.get((point.key.id, point.unit)): point.reference for point in points if point.alike}
    return {row: value for row, value in found.items() if row is not None and value is not None}


def compare(table: Table, judged: Judged, exact: Mapping[int, float]) -> BesideReference | None:
    """How tonight's TVM stands to the reference, in all experiments; None where nothing was measured beside one.

    exact: what the reference gave of exact numbers, by row.
    """
    known = {row: said.reference for row, said in judged.beside.items() if said.reference is not None}
    if not known and not exact:
        return None
    differences = []
    for row, stand in known.items():
        if stand.differs:
            series = table.rows[row]
            worse = is_worse(stand.effect, series.direction)
            differences.append(Difference(series.key, series.name, stand.effect, stand.low, stand.high, worse))
    differences.sort(key=lambda difference: (not difference.worse, -abs(difference.effect)))
    experiments = sorted({table.rows[row].experiment for row in (*known, *exact)})
    names = {table.build(experiment, judged.night).reference_version or "" for experiment in experiments}
    first = not any(_was_beside(table, experiment, judged.night) for experiment in experiments)
    itself = all(_is_itself(table, experiment, judged.night) for experiment in experiments)
    others = [] if itself else list(_exact(table, judged.night, exact))
    others.sort(key=lambda difference: (not difference.worse, -abs(difference.value - difference.reference)))
    return BesideReference(
        format_list(sorted(names), 2), len(known), tuple(differences), first, tuple(others), itself, len(exact)
    )


def _is_itself(table: Table, experiment: str, night: int) -> bool:
    """Whether the experiment was measured with one artifact on both sides, not with two that ran the same code."""
    build = table.build(experiment, night)
    return build.artifact is not None and build.artifact == build.reference


def _was_beside(table: Table, experiment: str, night: int) -> bool:
    """Whether the experiment was measured beside tonight's reference before.

    Or tonight's reference is what it measured last: the step since that night says the same.
    """
    reference = table.build(experiment, night).reference
    builds = [table.build(experiment, earlier) for earlier in range(table.offset, night)]
    measured = [build for build in builds if build.artifact is not None]
    last = [build.artifact for build in measured[-1:]]
    return last == [reference] or any(build.reference == reference for build in measured)


def _exact(table: Table, night: int, on_reference: Mapping[int, float]) -> Iterator[ExactDifference]:
    """Those that are others on the reference."""
    for row, reference in on_reference.items():
        series, value = table.rows[row], float(table.values[row, night - table.offset])
        if value != reference:
            worse = judge_exact_change(series, reference, value)
            yield ExactDifference(series.key, series.name, series.unit, reference, value, worse)


def _points(home: Home, experiment: str, stamp: str) -> Iterator[PointValue]:
    with contextlib.suppress(DashboardError):  # told where it was read for the index
        yield from records.read_data(home.data_file(experiment, stamp), experiment).values()
