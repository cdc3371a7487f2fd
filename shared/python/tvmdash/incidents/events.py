"""The data of each kind of event in the ledger, as a line of incidents.jsonl holds its `data`."""

from __future__ import annotations

from dataclasses import dataclass

from tvmdash.common.structured import Stamp
from tvmdash.judge.history.cause import Cause
from tvmdash.records.metrics import Direction, FleetKind, Way, way
from tvmdash.trials.suspect import Suspect


@dataclass(frozen=True)
class MovedFunction:
    """A function of generated code in an exact number that is a sum over functions; None where it was not there."""

    name: str
    before: float | None
    after: float | None


@dataclass(frozen=True)
class Moved:
    """One series of an incident. effect: fraction of the value, `low` to `high` with 95 % confidence.

    For a series that is not positive, effects are in units of its own scatter (`relative` is False).
    worse: None where it is neither worse nor better: changed. kind: of the number, "" in old incidents.
    processes: of an exact number, how many agreed on `after` (1: declared exact, 0: one alone measured it); else None.
    recovered: the stamp of the night since which it is back. joined: that of the night it joined the incident; None
    where the incident began with it. z: standard errors, over so many `nights`.
    again_new, again_old: how often it was measured again the night it was found, with artifacts since and before.
    functions: those that moved in an exact number, the farthest first; more_functions: how many others did.
    workload: what is measured, as people call it, as in resnet18; experiment: whose series it is, with its host and
    TVM as in cnn~desk@release; machine: as the records call it. All "" in old incidents.
    part: the incident in which it was told, where a person joined that one to this.
    """

    series: str
    name: str
    metric: str
    unit: str
    worse: bool | None
    before: float
    after: float
    effect: float
    low: float | None = None
    high: float | None = None
    relative: bool = True
    recovered: str | None = None
    z: float | None = None
    nights: int | None = None
    again_new: int = 0
    again_old: int = 0
    kind: str = ""
    processes: int | None = None
    joined: str | None = None
    workload: str = ""
    functions: tuple[MovedFunction, ...] = ()
    more_functions: int = 0
    experiment: str = ""
    machine: str = ""
    part: str = ""

    @property
    def is_exact(self) -> bool:
        """Return True for an exact number, which has no noise."""
        return self.processes is not None

    @property
    def is_time(self) -> bool:
        """Return True where its number is a time; in an incident from before there were kinds, by its metric."""
        return self.kind == "time" if self.kind else self.metric.endswith("time")

    @property
    def way(self) -> Way:
        return way(self.worse)


@dataclass(frozen=True)
class Opened:
    """A new incident; the fields are those of `Incident`."""

    kind: str
    begin: Stamp
    after: Stamp
    found: Stamp
    versions: tuple[str, str]
    blame: str
    moved: tuple[Moved, ...] = ()
    notes: tuple[str, ...] = ()
    size: float | None = None
    fleet: str = ""
    fleet_name: str = ""
    fleet_kind: FleetKind | None = None
    direction: Direction = "lower"
    cause: Cause | None = None
    machine: str = ""
    artifacts: tuple[str, str] = ("", "")


@dataclass(frozen=True)
class Joined:
    """More series of a known incident."""

    moved: tuple[Moved, ...]


@dataclass(frozen=True)
class Recovered:
    """These series are back since that night or, where it is empty, are not back after all."""

    series: tuple[str, ...]
    since: str


@dataclass(frozen=True)
class StateSet:
    """The incident's state is another; `end` is the night that ended it."""

    state: str
    words: str = ""
    end: str | None = None


@dataclass(frozen=True)
class Noted:
    """Words about the incident, whose it is from now on, and where else it is discussed; "" where that stays."""

    words: str = ""
    owner: str = ""
    issue: str = ""


@dataclass(frozen=True)
class Merged:
    """The incident's series are told as part of the incident `into` from now on: both have one cause."""

    into: str
    words: str = ""


@dataclass(frozen=True)
class Separated:
    """These series of the incident `source` are told in this one from now on: they have another cause."""

    source: str
    series: tuple[str, ...]
    words: str = ""


@dataclass(frozen=True)
class Silenced:
    """Incidents that match `pattern` are not told until `until`."""

    pattern: str
    until: str
    words: str = ""


@dataclass(frozen=True)
class Unsilenced:
    """The silences of this pattern end now."""

    pattern: str
    words: str = ""


@dataclass(frozen=True)
class BisectionAnswer:
    """The answer of `bisect`: the last of `count` suspects."""

    series: str
    name: str
    effect: float
    low: float
    high: float
    probability: float
    suspects: tuple[Suspect, ...]
    builds: int
    measurements: int
    elapsed_s: float
    count: int
