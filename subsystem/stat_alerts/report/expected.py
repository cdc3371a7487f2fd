"""Series that should have a value tonight, as the nights before or people say; those that are new, or gone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from judging.table import Table

from report.standings import EXPECTED_NIGHTS
from tvmdash import common, config_util
from tvmdash.dashboard_info import Home, Night, experiment_of, variant_of
from tvmdash.errors import DashboardError
from tvmdash.incidents.annotations import EXPECTED, RETIRED, Annotation
from tvmdash.verdict import SeriesOf

_NIGHTS_BACK, _NAMED = 30, 3


@dataclass(frozen=True)
class Expected:
    """The rows that should have a value tonight. appeared: series that are new; vanished: not expected any more.

    retired: how many have none that somebody took out.
    """

    rows: frozenset[int]
    retired: int = 0
    appeared: tuple[SeriesOf, ...] = ()
    vanished: tuple[SeriesOf, ...] = ()


def find_expected(home: Home, tonight: Night, table: Table, night: int, annotations: Sequence[Annotation]) -> Expected:
    """Find the rows that should have a value tonight.

    Expected is a series that had a value on one of the last EXPECTED_NIGHTS nights of its experiment, which has data
    tonight, or should have. What somebody retired is not; what somebody declared expected is for as long
    as its experiment runs.
    """
    stop = night + 1 - table.offset
    measured = np.isfinite(table.values[:, :stop])
    taking_part = _taking_part(home, tonight, table, night)
    said = _said_of_rows(table, night, annotations)
    rows: set[int] = set()
    vanished: set[int] = set()
    for experiment, members in _by_experiment(table).items():
        nights = np.asarray(measured[members].any(axis=0))
        has_data = bool(nights[-1])
        is_there = has_data or taking_part.get(experiment, False)
        known = nights.nonzero()[0]
        for row in members if is_there else _declared(home, experiment, members, said):
            is_recent = measured[row, known[-EXPECTED_NIGHTS - 1 :]].any()
            was_recent = has_data and measured[row, known[-EXPECTED_NIGHTS - 2 : -1]].any()
            if said.get(row) == EXPECTED or (is_recent and (said.get(row) != RETIRED or measured[row, -1])):
                rows.add(row)
            elif was_recent and said.get(row) != RETIRED:
                vanished.add(row)
    first = measured[:, -1] & (measured.sum(axis=1) == 1) & (night > 0)
    retired = sum(series == RETIRED and not measured[row, -1] for row, series in said.items())
    appeared = _count(table, first.nonzero()[0].tolist())
    return Expected(frozenset(rows), retired, appeared, _count(table, sorted(vanished)))


def find_retired(table: Table, night: int, annotations: Sequence[Annotation]) -> frozenset[str]:
    """Return the keys of the series that are retired on that night, whether they have a value or not."""
    said = _said_of_rows(table, night, annotations)
    return frozenset(table.rows[row].key for row, series in said.items() if series == RETIRED)


def _declared(home: Home, experiment: str, rows: Sequence[int], said: Mapping[int, str]) -> list[int]:
    """Return those that are expected although their experiment has not run for long."""
    declared = [row for row in rows if said.get(row) == EXPECTED]
    return declared if declared and _is_wanted(home, experiment) else []


def _by_experiment(table: Table) -> dict[str, list[int]]:
    rows: dict[str, list[int]] = {}
    for row, series in enumerate(table.rows):
        rows.setdefault(series.experiment, []).append(row)
    return rows


def _count(table: Table, rows: Iterable[int]) -> tuple[SeriesOf, ...]:
    """Count the rows by experiment, and name the first of each."""
    names: dict[str, list[str]] = {}
    for row in rows:
        names.setdefault(table.rows[row].experiment, []).append(table.rows[row].name)
    return tuple(SeriesOf(name, len(of_it), tuple(of_it[:_NAMED])) for name, of_it in names.items())


def _said_of_rows(table: Table, night: int, annotations: Sequence[Annotation]) -> Mapping[int, str]:
    """Return by row the last that people said of whether it is expected, as of tonight."""
    said: dict[int, str] = {}
    for annotation in (one for one in annotations if one.series):
        for row, series in enumerate(table.rows):
            holds = _has_come(annotation, table, series.experiment, night)
            if holds and annotation.covers(series.experiment, series.name):
                said[row] = annotation.series
    return said


def _has_come(annotation: Annotation, table: Table, experiment: str, night: int) -> bool:
    if annotation.kind != "commit":
        return annotation.place <= table.stamps[night]
    stamp = annotation.night(table.versions.get(experiment, {}))
    return stamp is not None and stamp <= table.stamps[night]


def _taking_part(home: Home, tonight: Night, table: Table, night: int) -> dict[str, bool]:
    """Tell of each experiment without data tonight whether it took part, or should have.

    It should have where a night of the last month had it and nobody has switched it off since.
    """
    with_data = {name for name, versions in table.versions.items() if table.stamps[night] in versions}
    without = {row.experiment for row in table.rows} - with_data
    now = {job.name for job in tonight.experiments}
    if without <= now:
        return dict.fromkeys(without, True)
    lately = {job.name for past in home.last_nights(_NIGHTS_BACK) for job in past.experiments}
    return {name: name in now or (name in lately and _is_wanted(home, name)) for name in without}


def _is_wanted(home: Home, experiment: str) -> bool:
    """Return False where the home's config switches it off, and for a variant, whose TVM may be named no more."""
    if variant_of(experiment):
        return False
    try:
        config = common.read_json(home.config("experiment", experiment_of(experiment)) / config_util.CONFIG_FILE)
    except DashboardError:
        return True
    return not (isinstance(config, dict) and config.get("active") is False)
