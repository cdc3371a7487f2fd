"""The scores of all nights, in scores.json; every point can be computed again from the data files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from definitions import Definition
from scoring import ExperimentNight, ScorePoint, score

from tvmdash import common, config_util, records
from tvmdash.check_prerequisites import needs_experiment, unmet
from tvmdash.common import structured
from tvmdash.dashboard_info import Home
from tvmdash.dashboard_info.pages import SCHEMA_VERSION, SCORES_FILE, ScoredNight, ScoreHistory, Scores
from tvmdash.errors import DashboardError

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


def _read_night(home: Home, experiment: str, stamp: str) -> ExperimentNight:
    path = home.data_file(experiment, stamp)
    if not path.is_file():
        return ExperimentNight(experiment, lacking=_say_why_no_data(home, experiment, stamp))
    try:
        data = records.read_data(path, experiment)
        config = common.read_json(path).get("night", {}).get("config", {})
        # its own fields: what it measures, not when it runs or whom it pings
        own = {name: value for name, value in config.items() if name not in config_util.EXPERIMENT_FIELDS}
    except (DashboardError, AttributeError) as error:
        return ExperimentNight(experiment, lacking=f"its data cannot be read: {error}")
    if data.leaves or not (data.records or data.failures):
        return ExperimentNight(
            experiment, lacking=f"experiment {experiment} writes no records, but a score needs them."
        )
    measured = tuple(record.only_identity() for record in data.records)
    digest = hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()[:12]
    return ExperimentNight(experiment, measured, data.failures, data.tvm_hash, digest)


def _say_why_no_data(home: Home, experiment: str, stamp: str) -> str:
    try:
        reasons = unmet([needs_experiment(experiment)], home, home.read_night(stamp))
    except DashboardError:
        reasons = ()
    return " ".join(reasons) or f"experiment {experiment} wrote no data for this night."


def bring_up_to_date(definitions: Sequence[Definition], home: Home, output: Path, tonight: str) -> list[Scored]:
    """Score tonight and whatever earlier night is not scored yet; leave all in scores.json.

    A point that has data never changes. A new definition, or one that means something else now, is scored over all
    nights; a damaged or deleted scores.json is made anew. What is done is kept now and then: killed, the next goes on.
    """
    known, nights = read(output / SCORES_FILE), home.night_stamps()
    points: dict[str, dict[str, ScoredNight]] = {}
    pending: dict[str, list[tuple[Definition, str]]] = {}
    of_tonight: dict[str, ScorePoint] = {}
    for item in definitions:
        of = {point.stamp: point for point in (known[item.id].points if item.id in known else ())}
        points[item.id] = of = {stamp: point for stamp, point in of.items() if stamp <= tonight}
        data = {stamp for name in item.experiments for stamp in home.data_stamps(name)}
        since = [stamp for stamp in nights if stamp >= min(data, default=tonight)]
        order = sorted(stamp for stamp in {*of, *data, *since, tonight} if stamp <= tonight)
        for earlier, stamp in zip(["", *order], order, strict=False):
            if stamp == tonight or stamp not in of or (not of[stamp].has_data and stamp in data):
                pending.setdefault(stamp, []).append((item, earlier))
    for count, stamp in enumerate(sorted(pending), start=1):
        names = dict.fromkeys(name for item, _ in pending[stamp] for name in item.experiments)
        left = {name: _read_night(home, name, stamp) for name in names}  # of one night at a time, to keep memory small
        for item, earlier in pending[stamp]:
            made = points[item.id][stamp] = score(item, left, stamp, points[item.id].get(earlier))
            of_tonight[item.id] = made  # tonight comes last
        if count % _NIGHTS_BETWEEN_WRITES == 0 or count == len(pending):
            _write(output / SCORES_FILE, definitions, points, known)
    return [Scored(item, _in_order(points[item.id]), of_tonight[item.id]) for item in definitions]


def _in_order(points: Mapping[str, ScoredNight]) -> tuple[ScoredNight, ...]:
    return tuple(points[stamp] for stamp in sorted(points))


def read(path: Path) -> dict[str, ScoreHistory]:
    """Read each score with its nights, by ID; empty where the file cannot be read."""
    try:
        value = common.read_json(path)
        if value["schema_version"] != SCHEMA_VERSION:
            return {}
        stored = structured.from_json(Scores, value, path)
    except (DashboardError, KeyError, TypeError):
        return {}
    return {item.id: item for item in stored.scores}


def _write(
    path: Path,
    definitions: Sequence[Definition],
    points: Mapping[str, Mapping[str, ScoredNight]],
    known: Mapping[str, ScoreHistory],
) -> None:
    """Write the scores of now, then those that the config once defined: they are kept."""
    now = [
        ScoreHistory(item.id, item.title, item.unit, _in_order(points[item.id]), item.lower_is_better, asdict(item))
        for item in definitions
    ]
    kept = [item for name, item in known.items() if name not in points]
    value = {"schema_version": SCHEMA_VERSION, **structured.to_json(Scores((*now, *kept)))}
    common.write_text(path, json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n")
