"""The two files of `remeasure`: what is to be measured again, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from dashboard.investigate.rounds import Round, RoundOutcome, RoundState, TvmOfNight
from tvmdash import common
from tvmdash.errors import DashboardError

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Answer:
    """What came of the round number `round`. values: by the ID of the series; seconds: run and analyze together."""

    experiment: str
    stamp: str
    round: int
    state: RoundState
    artifact: str | None = None
    values: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    error: str = ""

    @property
    def is_measured(self) -> bool:
        """Whether the round gave values."""
        return self.state is RoundState.MEASURED

    @classmethod
    def of(cls, number: int, stamp: str, outcome: RoundOutcome) -> Answer:
        """The answer to a round on the artifact of the night `stamp`."""
        values = {value.key.id: value.value for run in outcome.runs for value in run.values}
        return cls(
            outcome.round.experiment, stamp, number, outcome.state, outcome.artifact, values,
            round(outcome.elapsed_s, 3), outcome.error,
        )  # fmt: skip


def read_rounds(path: Path) -> list[tuple[str, Round]]:
    """The rounds in a request, each with its night's stamp; DashboardError names the place of what is wrong."""
    value = common.read_json(path)
    if not isinstance(value, list):
        raise DashboardError(f"{path}: $: not a list of rounds. Write [{{experiment, stamp, points}}, ...].")
    return [_parse_round(item, f"{path}: $[{number}]") for number, item in enumerate(value)]


def _parse_round(value: common.Json, place: str) -> tuple[str, Round]:
    if not isinstance(value, dict) or set(value) - {"experiment", "stamp", "points"}:
        raise DashboardError(f"{place}: not an object with experiment, stamp and points.")
    experiment, stamp, points = value.get("experiment"), value.get("stamp"), value.get("points", [])
    if not isinstance(experiment, str) or not experiment or "/" in experiment:
        raise DashboardError(f"{place}.experiment: {experiment!r:.80} is not an experiment's name.")
    if not isinstance(stamp, str) or not common.is_stamp(stamp):
        raise DashboardError(f"{place}.stamp: {stamp!r:.80} is not a night's stamp, as 20261121T031500Z.")
    if not isinstance(points, list) or not all(isinstance(point, dict) for point in points):
        raise DashboardError(f"{place}.points: not a list of objects.")
    return stamp, Round(experiment, (TvmOfNight(stamp),), tuple(points))


def write_answers(path: Path, night: str, answers: Sequence[Answer]) -> None:
    """Leave the answers so far; whoever is killed later loses none of them."""
    rounds = [asdict(answer) for answer in answers]
    common.write_json(path, {"schema_version": SCHEMA_VERSION, "night": night, "rounds": rounds}, durable=False)
