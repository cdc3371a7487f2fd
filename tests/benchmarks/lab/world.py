"""A simulated home: what it measures, which TVM each night has, how fast that truly is, and what the machine does.

Every series is a row. `level[row, night]` is how far the TVM that is built on that night stands from that of the first
night: a natural logarithm, or units of a signed number. A night measures the build that is the newest then.
"""

from __future__ import annotations

import enum
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tests.benchmarks.lab.noise import FAMILIES, Array, Family, Generator, student
from tests.benchmarks.lab.rows import HOME, Experiment, Row, make_rows

TVM, MACHINE, EXPERIMENT = "tvm", "machine", "experiment"


class Builds(enum.Enum):
    """A new build each night, or one wheel until the next release."""

    NIGHTLY = 1
    RELEASES = 30


@dataclass(frozen=True)
class Change:
    """What truly changed in a row: by `size` (logarithm, or units of a signed number) from the night `night` on.

    last: the night on which a gradual change is complete. whose: TVM's, the machine's, the experiment's own.
    """

    row: int
    night: int
    size: float
    last: int
    whose: str = TVM


@dataclass(frozen=True)
class Build:
    """One TVM: rows' levels, their luck of the build, and a number for the code of each.

    sources: what it was built from, apart from what made the levels.
    """

    key: str
    version: str
    level: Array
    luck: Array
    code: Array
    sources: str = ""

    def content(self, row: int) -> str:
        """All that the row's point runs."""
        return f"{self.sources or self.key} {self.level[row]:.9f} {row}"


@dataclass(frozen=True)
class Draw:
    """What a world is drawn from; worlds of different names have nothing in common.

    paired: whether nights measure a reference too. release: it is one release for good, as a home's config may have it.
    """

    seed: int
    families: Sequence[Family] = FAMILIES
    paired: bool = True
    name: str = ""
    release: bool = False


@dataclass(frozen=True)
class Luck:
    """How builds differ without reason: `sd` of a share of the series, heavy-tailed below 30 degrees (`tail`).

    sticky: the chance that a build has the luck of the one before it.
    """

    sd: float = 0.003
    tail: float = 30.0
    share: float = 1.0
    sticky: float = 0.0


RELEASE = "release"


@dataclass
class World:
    """A home over so many nights.

    references: from which night on, its name, and how far it stands from the TVM of the first night; None: it is the
    very TVM that the night measures. Without any, each night takes the build before its own, as homes do by default.
    same_sources: every build runs the same bytes, but where a level changed.
    """

    draw: Draw
    nights: int
    experiments: tuple[Experiment, ...] = HOME
    builds: Builds = Builds.NIGHTLY
    luck: Luck = field(default_factory=Luck)
    churn: float = 0.15
    changes: list[Change] = field(default_factory=list)
    references: list[tuple[int, str, Array | None]] = field(default_factory=list)
    kept_artifacts: int = 1000
    same_sources: bool = False

    def __post_init__(self) -> None:
        rng = self.rng(1)
        self.rows = tuple(make_rows(self.experiments, rng, self.draw.families))
        shape = (len(self.rows), self.nights)
        self.level, self.own, self.present = np.zeros(shape), np.zeros(shape), np.ones(shape, bool)
        self.code_changes = rng.random(shape) < self.churn
        self.machine, self.wall, self.cold = np.zeros(self.nights), np.ones(self.nights), np.zeros(self.nights)
        self.paired, self.pairable = np.full(self.nights, self.draw.paired), np.ones(shape, bool)
        self.failing: dict[int, set[str]] = {}
        self.retired, self.least = np.zeros(shape, bool), dict[int, float]()
        self.is_time = np.array([row.noise is not None for row in self.rows])
        self.is_tvms = np.array([not row.experiment.is_fixed for row in self.rows])
        way = np.array([-1.0 if row.kind == "rate" else 1.0 for row in self.rows])
        self.sensitivity = self.is_time * way * rng.uniform(0.7, 1.3, len(self.rows))
        self.weather = np.stack([self._over_nights(row, rng) for row in self.rows])
        self._luck = self._draw_luck(rng)
        if self.draw.release:
            self.references = [(0, RELEASE, np.zeros(len(self.rows)))]

    def rng(self, *salt: int) -> Generator:
        """Random numbers of this world alone, for one purpose."""
        return np.random.default_rng([self.draw.seed, zlib.crc32(self.draw.name.encode()), *salt])

    def _over_nights(self, row: Row, rng: Generator) -> Array:
        return np.zeros(self.nights) if row.noise is None else row.noise.nights(rng, self.nights)

    def _draw_luck(self, rng: Generator) -> Array:
        """By row and build; the last two columns are the references'."""
        luck = np.zeros((len(self.rows), self.nights + 2))
        has = self.is_time & self.is_tvms & (rng.random(len(self.rows)) < self.luck.share)
        for row in has.nonzero()[0]:
            draws = student(rng, self.luck.sd, self.luck.tail, self.nights + 2)
            fresh = rng.random(self.nights + 2) >= self.luck.sticky
            fresh[0] = True
            luck[row] = draws[np.maximum.accumulate(np.where(fresh, np.arange(len(fresh)), 0))]
        return luck

    def pick(self, experiment: str = "", metric: str = "", points: int | None = None) -> list[int]:
        """Rows by experiment and metric (all where empty), the first `points` of them."""
        found = [
            at
            for at, row in enumerate(self.rows)
            if experiment in {"", row.experiment.name} and metric in {"", row.metric}
        ]
        return [at for at in found if self.is_tvms[at] or experiment][:points]

    def built_on(self, night: int) -> int:
        """The night on which the build that this night measures was made."""
        return night - night % self.builds.value

    def build(self, night: int) -> Build:
        """The TVM that the night measures."""
        made = self.built_on(night)
        alike = 0 if self.same_sources else made
        code = self.code_changes[:, range(0, alike + 1, self.builds.value)].sum(axis=1) * self.is_tvms
        sources = "the same" if self.same_sources else ""
        facts = (self.level[:, made], self._luck[:, alike], code, sources)
        return Build(f"build-{made:03}", f"{0xA000000 + made:x}", *facts)

    def reference(self, night: int) -> Build | None:
        """What the night measures beside it; None where it measures its own TVM alone."""
        if not self.paired[night]:
            return None
        return self._named_reference(night) if self.references else self._build_before(night)

    def _named_reference(self, night: int) -> Build:
        number = max(at for at, (first, _, _) in enumerate(self.references) if first <= night)
        first, name, level = self.references[number]
        return self.build(night) if level is None else self._wheel(number, name, level, first)

    def _build_before(self, night: int) -> Build | None:
        """The nightly build or the release before; before the home's first release there was one, too."""
        before = self.built_on(night) - self.builds.value
        if before >= 0:
            return self.build(before)
        return self._wheel(0, RELEASE, np.zeros(len(self.rows)), 0) if self.builds == Builds.RELEASES else None

    def _wheel(self, number: int, name: str, level: Array, night: int) -> Build:
        """A TVM that no night measures by itself, with the code of the night's."""
        luck = self._luck[:, self.nights + number % 2]
        return Build(f"wheel-{name}", name, level, luck, self.build(night).code)

    def kept(self, night: int, tonight: int) -> bool:
        """Whether the artifact of a night still exists."""
        return (self.built_on(tonight) - self.built_on(night)) // self.builds.value < self.kept_artifacts
