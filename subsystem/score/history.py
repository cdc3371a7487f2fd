"""The scores of all nights, in scores.json; every point can be computed again from the data files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from definitions import Definition
from scoring import ExperimentNight, ScorePoint, score

from tvmdash import common, config_util, records, structured
from tvmdash.check_prerequisites import needs_experiment, unmet
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.pages import SCHEMA_VERSION, SCORES_FILE, ScoredNight, ScoreHistory, Scores

_NIGHTS_BETWEEN_WRITES = 100


@dataclass(frozen=True)
class Scored:
    """A score tonight, and its nights up to then, oldest first."""

    definition: Definition
    points: tuple[ScoredNight, ...]
    tonight: ScorePoint

    @property
    def before(self) -> ScoredNight | None:
        """The newest night before that tonight may be compared with."""
        earlier = (item for item in reversed(self.points) if item.stamp < self.tonight.stamp)
        return next(filter(self.tonight.is_comparable, earlier), None)


class ScoreNights:
    """Which nights a home has, and what experiments left on them; of one night at a time, to keep memory small."""

    def __init__(self, home: Home, experiments: Iterable[str]) -> None:
        self._home = home
        self._nights = home.night_stamps()
        self._data = {name: set(home.data_stamps(name)) for name in experiments}
        self._stamp = ""
        self._known: dict[str, ExperimentNight] = {}

    def of(self, experiment: str, stamp: str) -> ExperimentNight:
        """What `experiment` left on the night `stamp`; read once as long as no other night is asked for."""
        if stamp != self._stamp:
            self._stamp, self._known = stamp, {}
        if experiment not in self._known:
            self._known[experiment] = _read_night(self._home, experiment, stamp)
        return self._known[experiment]

    def stamps(self, definition: Definition, tonight: str) -> set[str]:
        """Tonight, and every night before since the first data of these experiments."""
        data = set().union(*(self._data[name] for name in definition.experiments))
        first = min(data, default=tonight)
        nights = {stamp for stamp in self._nights if stamp >= first}
        return {stamp for stamp in {*data, *nights, tonight} if stamp <= tonight}

    def has_data(self, definition: Definition, stamp: str) -> bool:
        """Whether one of its experiments left a data file on that night."""
        return any(stamp in self._data[name] for name in definition.experiments)


def _read_night(home: Home, experiment: str, stamp: str) -> ExperimentNight:
    path = home.data_file(experiment, stamp)
    if not path.is_file():
        return ExperimentNight(experiment, lacking=_why_no_data(home, experiment, stamp))
    try:
        data = records.read_data(path, experiment)
        config = common.read_json(path).get("night", {}).get("config", {})
    except (DashboardError, AttributeError) as error:
        return ExperimentNight(experiment, lacking=f"its data cannot be read: {error}")
    if data.leaves or not (data.records or data.failures):
        return ExperimentNight(
            experiment, lacking=f"experiment {experiment} writes no records, but a score needs them."
        )
    measured = tuple(record.only_identity() for record in data.records)
    return ExperimentNight(experiment, measured, data.failures, data.tvm_hash, _digest(config))


def _why_no_data(home: Home, experiment: str, stamp: str) -> str:
    try:
        reasons = unmet([needs_experiment(experiment)], home, home.read_night(stamp))
    except DashboardError:
        reasons = ()
    return " ".join(reasons) or f"experiment {experiment} wrote no data for this night."


def _digest(config: Any) -> str:
    """Names the experiment's own fields: what it measures, not when it runs or whom it pings."""
    fields = config if isinstance(config, dict) else {}
    own = {name: value for name, value in fields.items() if name not in config_util.EXPERIMENT_FIELDS}
    return hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()[:12]


class _Series:
    """One score's points while they are brought up to date."""

    def __init__(self, definition: Definition, known: Sequence[ScoredNight], nights: ScoreNights, tonight: str) -> None:
        self.definition = definition
        self._nights = nights
        self._points = {point.stamp: point for point in known if point.stamp <= tonight}
        self._tonight = tonight
        self._order = sorted({*self._points, *nights.stamps(definition, tonight)})
        self._place = {stamp: index for index, stamp in enumerate(self._order)}
        self.pending = [stamp for stamp in self._order if stamp == tonight or self._is_open(stamp)]

    def _is_open(self, stamp: str) -> bool:
        point = self._points.get(stamp)
        return point is None or (not point.has_data and self._nights.has_data(self.definition, stamp))

    def add(self, stamp: str) -> None:
        """Score that night; what is pending before it has been."""
        index = self._place[stamp]
        earlier = self._points.get(self._order[index - 1]) if index else None
        of_night = {name: self._nights.of(name, stamp) for name in self.definition.experiments}
        self._points[stamp] = score(self.definition, of_night, stamp, earlier)

    @property
    def points(self) -> tuple[ScoredNight, ...]:
        """What there is so far, oldest first."""
        return tuple(self._points[stamp] for stamp in self._order if stamp in self._points)

    def scored(self) -> Scored:
        """The score, once tonight is scored."""
        tonight = self._points[self._tonight]
        assert isinstance(tonight, ScorePoint)
        return Scored(self.definition, self.points, tonight)


def bring_up_to_date(definitions: Sequence[Definition], home: Home, output: Path, tonight: str) -> list[Scored]:
    """Score tonight and whatever earlier night is not scored yet; leave all in scores.json.

    A point that has data never changes. A new definition, or one that means something else now, is scored over all
    nights; a damaged or deleted scores.json is made anew. What is done is kept now and then: killed, the next goes on.
    """
    known = read(output / SCORES_FILE)
    nights = ScoreNights(home, {name for definition in definitions for name in definition.experiments})
    series = [_Series(item, known[item.id].points if item.id in known else (), nights, tonight) for item in definitions]
    pending: dict[str, list[_Series]] = {}
    for scored_series in series:
        for stamp in scored_series.pending:
            pending.setdefault(stamp, []).append(scored_series)
    for count, stamp in enumerate(sorted(pending), start=1):
        for scored_series in pending[stamp]:
            scored_series.add(stamp)
        if count % _NIGHTS_BETWEEN_WRITES == 0:
            _write(output / SCORES_FILE, series, known)
    _write(output / SCORES_FILE, series, known)
    return [item.scored() for item in series]


def read(path: Path) -> dict[str, ScoreHistory]:
    """What scores.json holds: each score with its nights, by ID; empty where it cannot be read."""
    try:
        value = common.read_json(path)
        if value["schema_version"] != SCHEMA_VERSION:
            return {}
        stored = structured.from_json(Scores, value, path)
    except (DashboardError, KeyError, TypeError):
        return {}
    return {item.id: item for item in stored.scores}


def _write(path: Path, series: Sequence[_Series], known: Mapping[str, ScoreHistory]) -> None:
    """The scores of now, then those that the config once defined: they are kept."""
    now = [_history(item.definition, item.points) for item in series]
    ids = {item.id for item in now}
    kept = [item for name, item in known.items() if name not in ids]
    value = {"schema_version": SCHEMA_VERSION, **structured.to_json(Scores((*now, *kept)))}
    common.write_text(path, json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n")


def _history(definition: Definition, points: tuple[ScoredNight, ...]) -> ScoreHistory:
    return ScoreHistory(
        definition.id,
        definition.title,
        definition.unit,
        points,
        definition.lower_is_better,
        asdict(definition),
    )
