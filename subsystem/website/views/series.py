"""Each series as the tables show it: its state tonight, its last nights as a small line, how much of it is noise."""

from __future__ import annotations

import itertools
import json
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markup.sparks import Band, sparkline
from markupsafe import Markup

from tvmdash import common
from tvmdash.dashboard_info import Home, host_of
from tvmdash.incidents.events import Moved
from tvmdash.incidents.headline import format_size
from tvmdash.incidents.ledger import Incident
from tvmdash.judge import Pairs
from tvmdash.records import Build
from tvmdash.records.metrics import BETTER, CHANGED, RATIOS, RUN_TIME, WAYS, WORSE, Direction
from tvmdash.series import naming, store
from tvmdash.series.store import Outline, Series, Store
from tvmdash.text import format_percent, format_quantity
from tvmdash.verdict import Standing
from tvmdash.verdict.page import SeriesBeside, SeriesVerdict
from views.alerts import Alerts

NIGHTS = 30
"""As many nights are in a small line; a series without a value for so long has ended."""
SUSPECT, MISSING = "suspect", "missing"
YOUNG, UNJUDGED, BLIND, STEADY, GONE = "young", "unjudged", "blind", "steady", "gone"
STATES = (WORSE, SUSPECT, MISSING, BETTER, CHANGED, YOUNG, UNJUDGED, BLIND, STEADY, GONE)
"""In the order of their need for attention."""
_STATE_OF = {Standing.SUSPECT: SUSPECT, Standing.YOUNG: YOUNG, Standing.BLIND: BLIND}
EXACT_KIND = "exact"
_SIGMAS = 2
_FEWEST_FOR_SCATTER = 10
_MAD_TO_SD = 1.4826

SERIES_WORDS = {
    WORSE: "worse",
    SUSPECT: "suspect",
    BETTER: "better",
    CHANGED: "changed",
    STEADY: "steady",
    MISSING: "missing",
    BLIND: "too noisy",
    YOUNG: "too young",
    UNJUDGED: "not judged",
    GONE: "no longer measured",
}


@dataclass(frozen=True)
class SeriesView:
    """A row of a table of series. change: from the level before, as a fraction; exact_change: in its unit.

    noise: of one night, as a fraction, of what is judged (its ratio where it is measured beside a reference); scatter:
    of the values themselves. visible: the least that is told. short_name: its name where the experiment is told
    already. beside: how it stands to the reference tonight. title: what its experiment calls it, if anything.
    """

    id: str
    experiment: str
    page: str
    name: str
    metric: str
    unit: str
    direction: Direction
    labels: Mapping[str, Any]
    state: str
    reason: str
    values: tuple[float | None, ...]
    last: float
    last_stamp: str
    low: float | None
    high: float | None
    change: float | None
    grade: str
    noise: float | None
    scatter: float | None
    visible: float | None
    incident: str | None
    spark: Markup
    exact_change: str = ""
    short_name: str = ""
    beside: SeriesBeside | None = None
    title: str = ""

    @property
    def place(self) -> int:
        """Where its state stands in the order of the need for attention."""
        return STATES.index(self.state)

    @property
    def format_value(self) -> str:
        return format_quantity(self.last, self.unit)

    @property
    def format_change(self) -> str:
        if self.exact_change:
            return self.exact_change
        if self.change is None or self.state in (MISSING, GONE):
            return ""
        return format_percent(self.change)


@dataclass(frozen=True)
class Measured:
    """The store's content: the series, what needs attention first, and the machines of each night, oldest first.

    own_machines: without the other hosts. facts: what each experiment's data says of its machine, by night.
    """

    series: list[SeriesView]
    machines: Mapping[str, tuple[str, ...]]
    own_machines: Mapping[str, tuple[str, ...]]
    facts: Mapping[str, Mapping[str, Mapping[str, Any]]]


Levels = Mapping[str, float]
"""By night, the logarithm of what the night's build takes over what the last one does; of nights that are joined."""


def match_ratios(outlines: Iterable[Outline]) -> dict[int, Outline]:
    """Find by the number of a series that was measured in turn the series of its ratios."""
    every = list(outlines)
    ratios = {_identity(RATIOS[outline.metric], outline): outline for outline in every if outline.metric in RATIOS}
    named = ((outline.number, _identity(outline.metric, outline)) for outline in every)
    return {number: ratios[identity] for number, identity in named if identity in ratios}


def _identity(metric: str, outline: Outline) -> str:
    return json.dumps([metric, outline.labels], sort_keys=True)


def read_levels(opened: Store, ratio: Outline, builds: Mapping[str, Build], since: str) -> Levels:
    """Read the levels of the series that these are the ratios of, since a night. builds: of its experiment."""
    series = opened.points_of(ratio, since=since)
    pairs: dict[str, Pairs] = {}
    for at, (stamp, value, count) in enumerate(zip(series.stamps, series.values, series.samples, strict=True)):
        if value is not None and value > 0:
            build = builds.get(stamp, Build())
            names = build.artifact or f"of {stamp}", build.reference or f"beside {stamp}"
            pairs[stamp] = Pairs(at, *names, math.log(value), 0.0, count or 1)
    if not pairs:
        return {}
    from tvmdash.judge.model import locate  # NumPy, which a publish without ratios does without

    levels = locate(list(pairs.values()), pairs[max(pairs)].build)
    return {stamp: levels[each.build] for stamp, each in pairs.items() if each.build in levels}


def free_of_machine(values: Mapping[str, float], levels: Levels) -> Mapping[str, float]:
    """Replace the values of nights that have levels: where the build lies, by what the last takes on a median night."""
    joined = {stamp: math.exp(levels[stamp]) for stamp in values if stamp in levels}
    if not joined:
        return values
    usual = statistics.median(values[stamp] / level for stamp, level in joined.items())
    return {stamp: usual * level for stamp, level in joined.items()}


def read_measured(home: Home, stamps: Sequence[str], alerts: Alerts) -> Measured:
    """Read the series of all experiments with a value on one of the last of `stamps`, and all machines.

    The last stamp is tonight's; nights whose machine is unknown are left out.
    """
    moves = alerts.open_moves()
    nights = SeriesNights(tuple(stamps[-NIGHTS:]), alerts)
    views: list[SeriesView] = []
    machines: dict[str, set[str]] = {}
    own: dict[str, set[str]] = {}
    facts = {}
    for name in home.experiments_with_data():
        with store.open_for_reading(home.store_file, home.data(name), name) as opened:
            # a query each: for so few nights that is less work than importing what takes whole nights apart
            every = opened.outlines(name)
            outlines = [outline for outline in every if outline.metric not in RATIOS]
            series = [opened.points_of(outline, since=nights.stamps[0]) for outline in outlines]
            measured_by, builds, ratios = opened.machines(name), opened.builds(name), match_ratios(every)
            facts[name] = opened.machine_facts(name)
            levels = {
                outline.id: read_levels(opened, ratios[outline.number], builds, nights.stamps[0])
                for outline in outlines
                if outline.number in ratios
            }
        for stamp, machine in measured_by.items():
            for known in (machines,) if host_of(name) else (machines, own):
                known.setdefault(stamp, set()).update({machine} - {""})
        names = naming.short_names(series)
        for item, key, short_name in zip(series, naming.keys(series), names, strict=True):
            if item.stamps and item.stamps[0] <= nights.tonight:
                views.append(nights.view(item, key, short_name, moves.get(key), levels.get(item.id, {})))
    return Measured(sorted(views, key=_need), _in_order(machines), _in_order(own), facts)


def _in_order(machines: Mapping[str, set[str]]) -> Mapping[str, tuple[str, ...]]:
    return {stamp: tuple(sorted(names)) for stamp, names in sorted(machines.items()) if names}


def _need(view: SeriesView) -> tuple[int, float, bool, str]:
    size = abs(view.change or 0.0) if view.state in (*WAYS, SUSPECT) else 0.0
    return STATES.index(view.state), -size, view.metric != RUN_TIME, view.name


def some_of_each(views: Sequence[SeriesView], most: int) -> list[SeriesView]:
    """Pick at most `most`, run times first, each experiment's first before any experiment's second."""
    turns: dict[tuple[str, bool], int] = {}
    ranked = []
    for view in views:
        group = (view.experiment, view.metric == RUN_TIME)
        turns[group] = turns.get(group, 0) + 1
        ranked.append((view.metric != RUN_TIME, turns[group], view.experiment, view))
    return [view for *_, view in sorted(ranked, key=lambda entry: entry[:3])[:most]]


@dataclass(frozen=True)
class SeriesNights:
    """The nights that the small lines show, oldest first, and what the alerts say of the last one."""

    stamps: tuple[str, ...]
    alerts: Alerts

    @property
    def tonight(self) -> str:
        return self.stamps[-1]

    def view(
        self, series: Series, key: str, short_name: str, move: tuple[Incident, Moved] | None, levels: Levels
    ) -> SeriesView:
        """Make the row of a series that has a value on at least one of the nights."""
        at = {stamp: value for stamp, value in zip(series.stamps, series.values, strict=True) if stamp <= self.tonight}
        verdict = self.alerts.series.get(key)
        shown = free_of_machine(at, levels) if verdict is not None and verdict.beside is not None else at
        values = tuple(shown.get(stamp) for stamp in self.stamps)
        last_stamp = max(at)
        index = series.stamps.index(last_stamp)
        if move and not move[1].worse and (move[1].joined or move[0].found) != self.tonight:
            move = None  # an improvement or change of an earlier night is how things are
        state, reason = self._state(verdict, last_stamp, move)
        name = verdict.name if verdict else f"{series.experiment} {short_name}"
        begin = move[0].begin if move else verdict.since if verdict else ""
        first = sum(stamp < begin for stamp in self.stamps)
        baseline, change = _change(values, first, at[last_stamp], move)
        if state == SUSPECT and verdict is not None:
            change = verdict.effect
        elif verdict is not None and verdict.beside is not None and not move:
            change = None  # of a time that nobody judges: the machine and the hour are in it
        scatter = _scatter(values, series, verdict)
        return SeriesView(
            id=key,
            experiment=series.experiment,
            page=f"experiments/{common.safe_name(series.experiment)}.html",
            name=name,
            metric=series.metric,
            unit=series.unit,
            direction=series.direction,
            labels=series.labels,
            state=state,
            reason=reason,
            values=values,
            last=at[last_stamp],
            last_stamp=last_stamp,
            low=series.low[index],
            high=series.high[index],
            change=change,
            grade=verdict.noise_grade if verdict else "",
            noise=verdict.noise if verdict else None,
            scatter=scatter,
            visible=verdict.smallest_visible_change if verdict else None,
            incident=move[0].id if move else None,
            exact_change=format_size(move[1]) if move and move[1].is_exact else "",
            short_name=short_name,
            beside=verdict.beside if verdict and last_stamp == self.tonight == self.alerts.night else None,
            title=series.title,
            spark=self._spark(values, series.unit, baseline, scatter, (first, move)),
        )

    def _state(
        self, verdict: SeriesVerdict | None, last_stamp: str, move: tuple[Incident, Moved] | None
    ) -> tuple[str, str]:
        if move and move[1].worse:
            return WORSE, f"Part of incident {move[0].id}."
        if last_stamp != self.tonight:
            gone = verdict is not None and verdict.standing == Standing.GONE
            text = f"No value tonight; the last one is from {common.format_day(last_stamp)}."
            return (GONE if gone else MISSING), text
        if move:
            return move[1].way, f"Part of incident {move[0].id}."
        if verdict is None or self.alerts.night != self.tonight:
            return UNJUDGED, "Not judged tonight."
        return _STATE_OF.get(verdict.standing, STEADY), verdict.reason

    def _spark(
        self,
        values: Sequence[float | None],
        unit: str,
        baseline: float | None,
        scatter: float | None,
        level: tuple[int, tuple[Incident, Moved] | None],
    ) -> Markup:
        first, move = level
        known = [value for value in values if value is not None]
        text = f"{len(known)} nights, {format_quantity(min(known), unit)} to {format_quantity(max(known), unit)}"
        band = None
        if baseline is not None and scatter:
            reach = _SIGMAS * scatter * abs(baseline)
            band = Band(baseline - reach, baseline + reach)
        if 0 < first < len(self.stamps):
            text += f", level began {common.format_day(self.stamps[first])}"
        kind = move[1].way if move else ""
        return sparkline(values, text, band=band, break_at=first or None, kind=kind)


def _scatter(values: Sequence[float | None], series: Series, verdict: SeriesVerdict | None) -> float | None:
    """Estimate the scatter of one night, as a fraction; 0 of exact numbers; None where there are too few nights."""
    if verdict is not None and verdict.noise is not None and verdict.beside is None:
        return verdict.noise
    if series.kind == EXACT_KIND or (verdict is not None and verdict.noise_grade == EXACT_KIND):
        return 0.0
    logs = [math.log(value) for value in values if value is not None and value > 0]
    if len(logs) < _FEWEST_FOR_SCATTER:
        return None
    steps = [abs(after - before) for before, after in itertools.pairwise(logs)]
    return _MAD_TO_SD * statistics.median(steps) / math.sqrt(2)


def _change(
    values: Sequence[float | None], first: int, last: float, move: tuple[Incident, Moved] | None
) -> tuple[float | None, float | None]:
    """Return the baseline, and the last value's distance from it as a fraction.

    For a series that moved, the level before and the size that the alerts tell; otherwise the median of the nights
    from index `first` on, where its level begins, without the last one.
    """
    if move:
        return move[1].before, move[1].effect if move[1].relative else None
    before = [value for value in values[first:] if value is not None][:-1]
    if not before:
        return None, None
    baseline = statistics.median(before)
    return baseline, (last / baseline - 1 if baseline > 0 and last > 0 else None)


def counts(views: Iterable[SeriesView]) -> dict[str, int]:
    """Count the series by state; a series is in one."""
    counts_of_states = dict.fromkeys(STATES, 0)
    for view in views:
        counts_of_states[view.state] += 1
    return counts_of_states
