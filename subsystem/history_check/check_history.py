"""What came of each night's check, in history.json: one entry a night, kept for ever."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tvmdash import common, structured
from tvmdash.contracts.reproduction import ReproducedSeries, ReproductionResult
from tvmdash.errors import DashboardError
from tvmdash.stats.comparison import CANNOT_TELL, DOES_NOT_HOLD, HOLDS
from tvmdash.text import elide, format_duration, format_percent, format_quantity

HISTORY_FILE = "history.json"
SCHEMA_VERSION = 1
VERDICTS = (HOLDS, DOES_NOT_HOLD, CANNOT_TELL)
_TITLES = {
    HOLDS: "History holds",
    DOES_NOT_HOLD: "History does NOT hold",
    CANNOT_TELL: "Inconclusive whether history holds",
}
_FIRST = {HOLDS: "Holds", DOES_NOT_HOLD: "Does NOT hold", CANNOT_TELL: "Cannot be told"}
"""The same in the first line: in Slack the config's title stands where this title would."""
_SHOWN = 8


@dataclass(frozen=True)
class Series:
    """One old number, and what it is tonight; low and high bound where the old one may lie by noise alone."""

    name: str
    unit: str
    old: float
    verdict: str
    why: str = ""
    new: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def words(self) -> str:
        """As in "cnn mlp run time: 1.00 ms then, 1.30 ms now (+30.0 %), by noise 1.28 ms to 1.32 ms: does not hold"."""
        then = f"{elide(self.name, 80)}: {format_quantity(self.old, self.unit)} then"
        verdict = self.verdict + (f": {self.why}" if self.why else "")
        if self.new is None or self.low is None or self.high is None:
            return f"{then}; {verdict}"
        bounds = f"{format_quantity(self.low, self.unit)} to {format_quantity(self.high, self.unit)}"
        change = f"({format_percent(self.new / self.old - 1)})"
        return f"{then}, {format_quantity(self.new, self.unit)} now {change}, by noise {bounds}: {verdict}"


@dataclass(frozen=True)
class Check:
    """One night's check. `why`: words where nothing was measured. `night`: the old one; `differs`: facts that did."""

    stamp: str
    verdict: str
    why: str = ""
    experiment: str = ""
    night: str = ""
    tvm: str = ""
    seed: int | None = None
    candidates: int = 0
    chance: float = 0.0
    rounds: int = 0
    elapsed_s: float = 0.0
    differs: tuple[str, ...] = ()
    series: tuple[Series, ...] = ()


def parse(value: common.Json, stamp: str) -> Check:
    """What `dashboard reproduce --result` left; DashboardError where it is something else."""
    parsed = structured.from_json(ReproductionResult, value, "the result of dashboard reproduce")
    drawn = parsed.drawn
    check = Check(
        stamp,
        parsed.verdict,
        why=parsed.why or parsed.ended,
        tvm=str(parsed.artifact.get("version", "")),
        rounds=parsed.rounds,
        elapsed_s=parsed.elapsed_s,
        differs=tuple(f"{name}: {then} then, {now} now" for name, then, now in parsed.differs),
        series=tuple(map(_series, parsed.lines)),
    )
    if drawn is None:
        return check
    return replace(check, seed=drawn.seed, candidates=drawn.candidates, chance=drawn.chance,
                   experiment=drawn.experiment, night=drawn.night)  # fmt: skip


def _series(line: ReproducedSeries) -> Series:
    bounds = (line.found.new, line.found.low, line.found.high) if line.found else ()
    return Series(line.name, line.unit, line.old, line.verdict, line.why, *bounds)


def add(folder: Path, check: Check) -> tuple[list[Check], str]:
    """All checks, oldest first, with this one in place of an earlier one of its night; a sentence on damage, or ""."""
    path, damage = folder / HISTORY_FILE, ""
    try:
        earlier = _read(path)
    except DashboardError as error:  # an old file's damage must not end tonight's check
        aside = folder / f"history.damaged-{check.stamp}.json"
        os.replace(path, aside)
        earlier, damage = (
            [],
            (f"The history file could not be read and was moved to {aside.name}; a new one was started: {error}"),
        )
    checks = sorted([*(other for other in earlier if other.stamp != check.stamp), check], key=lambda other: other.stamp)
    common.write_json(path, {"schema_version": SCHEMA_VERSION, "checks": [asdict(other) for other in checks]})
    return checks, damage


def _read(path: Path) -> list[Check]:
    if not path.exists():
        return []
    value: Any = common.read_json(path)
    try:
        return [_restored(entry) for entry in value["checks"]]
    except (AttributeError, KeyError, TypeError) as error:
        raise DashboardError(f"{path}: not a history file: {error!r}.") from error


def _restored(value: Mapping[str, Any]) -> Check:
    series = tuple(Series(**entry) for entry in value["series"])
    return Check(**{**value, "differs": tuple(value["differs"]), "series": series})


def title(check: Check) -> str:
    """The verdict as a headline."""
    return _TITLES[check.verdict]


def describe(checks: list[Check], check: Check) -> str:
    """Tonight's check and, in a last line, how the checks so far went."""
    return "\n".join([*_lines(check), _tally(checks)])


def _lines(check: Check) -> Iterator[str]:
    what = f"{check.experiment} of the night {check.night}"
    if not check.series:
        yield f"{_FIRST[check.verdict]}: {f'{what}: ' if check.experiment else ''}{check.why}"
        return
    times = f"{check.rounds} {'time' if check.rounds == 1 else 'times'} in {format_duration(check.elapsed_s)}"
    yield (
        f"{_FIRST[check.verdict]}: {what}, TVM {check.tvm}, drawn from {check.candidates} candidates, remeasured "
        f"{times}."
    )
    first = sorted(check.series, key=lambda series: (series.verdict == HOLDS, series.verdict == CANNOT_TELL))
    yield from (series.words for series in first[:_SHOWN])
    if len(first) > _SHOWN:
        yield f"... and {len(first) - _SHOWN} more."
    if check.why:
        yield f"Stopped early: {check.why}"
    if check.verdict != HOLDS:
        yield from (elide(fact, 160) for fact in check.differs[:_SHOWN])


def _tally(checks: list[Check]) -> str:
    count = Counter(series.verdict for series in checks)
    first = f" since {common.parse_stamp(checks[0].stamp):%Y-%m-%d}" if len(checks) > 1 else ""
    sentence = f"{count[HOLDS]} held, {count[DOES_NOT_HOLD]} did not, {count[CANNOT_TELL]} inconclusive"
    return f"{len(checks)} {'check' if len(checks) == 1 else 'checks'}{first}: {sentence}."
