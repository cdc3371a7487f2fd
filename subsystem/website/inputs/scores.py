"""What the score subsystem left: tonight's scores, and their points over all nights."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from inputs import parsing
from tvmdash import structured
from tvmdash.contracts import scores as contracts
from tvmdash.contracts.scores import LeftOut, ScoredNight, ScoreHistory, ScoreTonight
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError

SUBSYSTEM = "score"
_Kind = TypeVar("_Kind")


@dataclass(frozen=True)
class Scores:
    """All of them; `stamp` is the night that they are of ("" where there are none).

    `told` are the faults of the config that the subsystem told, `faults` what of its files cannot be read.
    history: every score that ever was.
    """

    stamp: str = ""
    scores: tuple[ScoreTonight, ...] = ()
    told: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    faults: tuple[str, ...] = ()
    history: tuple[ScoreHistory, ...] = ()

    def points(self, score: str) -> tuple[ScoredNight, ...]:
        """The nights of the score with this ID."""
        return next((history.points for history in self.history if history.id == score), ())


def read_scores(home: Home) -> Scores:
    """What stands there; a file that is missing or damaged costs its own part only."""
    folder = home.output(SUBSYSTEM)
    faults: list[str] = []
    stored = _guarded(contracts.Scores, folder / contracts.SCORES_FILE, faults)
    history = stored.scores if stored else ()
    page = _guarded(contracts.ScorePage, folder / contracts.PAGE_FILE, faults)
    if page is None:
        return Scores(faults=tuple(faults), history=history)
    return Scores(page.stamp, page.scores, page.faults, page.left_out, tuple(faults), history)


def _guarded(kind: type[_Kind], path: Path, faults: list[str]) -> _Kind | None:
    """What the file holds, None where there is none or where it is damaged, which `faults` tells."""
    try:
        return structured.read(kind, path)
    except DashboardError as error:
        faults.append(parsing.fault_of(path, error))
        return None
