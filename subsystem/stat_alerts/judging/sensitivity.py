"""The night's sensitivity to known steps, put into copies of series that are judged by their ratios.

The analogue of false_positive_rate, which tests the detector of times. Each night of a series is counted once.
"""

from __future__ import annotations

import enum
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from judging.false_positive_rate import Rate
from judging.judge import Judged
from judging.table import Table
from tvmdash import common
from tvmdash.common import structured
from tvmdash.common.structured import Stamp
from tvmdash.errors import DashboardError
from tvmdash.judge import RULES
from tvmdash.judge.chance import NO_NULLS, Nulls, chance_of, chance_of_step, find_nulls
from tvmdash.judge.home import Decision, decide
from tvmdash.judge.model import FoundStep, SeriesModel
from tvmdash.verdict import ByChance, PlantedStep, Sensitivity

SENSITIVITY_FILE = "sensitivity.json"
VERSION = 1
STEPS = (0.03, 0.05)
KEPT_NIGHTS = 90


@dataclass(frozen=True)
class _PlantedNight:
    """One night's copies. same, other: nulls of series whose TVM was measured before, and was not."""

    steps: tuple[PlantedStep, ...]
    unchanged: int
    false: int
    same: Nulls = NO_NULLS
    other: Nulls = NO_NULLS


@dataclass(frozen=True)
class _Kept:
    """The file, by night."""

    version: int
    nights: Mapping[Stamp, _PlantedNight]


@dataclass(frozen=True)
class Seen:
    """The judge's own quality, from this and earlier nights."""

    sensitivity: Sensitivity | None
    by_chance: ByChance | None


@dataclass(frozen=True)
class _Copy:
    """One series' copies: whether something would be told without a step, and what by step.

    is_short: it was measured with one pair as nothing had changed. After a step it would have been in full.
    """

    is_told: bool
    stepped: tuple[_Stepped, ...]
    unchanged: bool
    is_short: bool = False


class _Stepped(enum.Enum):
    """The fate of a copy with a step."""

    TOLD = enum.auto()
    AGAIN = enum.auto()
    UNSEEN = enum.auto()


def measured(output: Path, table: Table, judged: Judged) -> Seen:
    """Sum up tonight's copies and those of the last nights: nothing where no series has two ratios yet."""
    path = output / SENSITIVITY_FILE
    stamp = table.stamps[judged.night]
    nights = {night: kept for night, kept in sorted(_read(path).items()) if night < stamp}
    still = [said.model for said in judged.beside.values() if said.said in {None, Decision.SUSPECTED}]
    same, other = find_nulls(still, judged.night)
    tonight = replace(_count(list(_copies(judged))), same=same, other=other)
    if any(step.series for step in tonight.steps) or tonight.unchanged or same.count or other.count:
        nights[stamp] = tonight
    nights = dict(list(nights.items())[-KEPT_NIGHTS:])
    every = list(nights.values())
    if nights:
        common.write_json(path, structured.to_json(_Kept(VERSION, nights)))
    return Seen(_find_sensitivity(tonight, every) if nights else None, _find_chance(judged, every))


def _find_sensitivity(tonight: _PlantedNight, every: Sequence[_PlantedNight]) -> Sensitivity:
    false = Rate(sum(night.unchanged for night in every), sum(night.false for night in every))
    lately = tuple(_add([night.steps[at] for night in every]) for at in range(len(STEPS)))
    return Sensitivity(tonight.steps, lately, len(every), false.nights, false.alerts, false.at_most)


def _find_chance(judged: Judged, every: Sequence[_PlantedNight]) -> ByChance | None:
    """Estimate false alarms of series judged by their ratios: by the nulls, or by the rules where these are few."""
    ratios = [said for said in judged.beside.values() if not said.is_young]
    if not ratios:
        return None
    both = [sum((getattr(night, kind) for night in every), NO_NULLS) for kind in ("same", "other")]
    count, widths = sum(nulls.count for nulls in both), [nulls.width for nulls in both if nulls.width is not None]
    if not widths:
        rule = RULES.chance_of_point(len(ratios)), RULES.chance_of_points + RULES.chance_of_groups
        return ByChance(len(ratios), *rule, count)
    width = max(widths)
    chances = [chance_of(said.model, said.prior, width) for said in ratios]
    own = [(said.model, said.found) for said in ratios if said.is_told and not said.is_shared]
    told = [chance_of_step(model, found, width) for model, found in own if found is not None]
    of_any = -math.expm1(sum(math.log1p(-each) for each in chances)) + RULES.chance_of_groups
    return ByChance(len(ratios), sum(chances) / len(ratios), of_any, count, width, max(told, default=None))


def _read(path: Path) -> Mapping[str, _PlantedNight]:
    """Read the counts of earlier nights; none where there is no usable file."""
    try:
        kept = structured.read(_Kept, path)
    except DashboardError:
        return {}
    return kept.nights if kept is not None and kept.version == VERSION else {}


def _add(steps: Sequence[PlantedStep]) -> PlantedStep:
    return PlantedStep(
        steps[0].step,
        sum(step.series for step in steps),
        sum(step.told for step in steps),
        sum(step.again for step in steps),
    )


def _copies(judged: Judged) -> Iterator[_Copy]:
    """Copy each series that has pairs tonight and had some before, and of which nothing was told."""
    for said in judged.beside.values():
        evidence = said.model.evidence
        before = [pairs for pairs in evidence.pairs if pairs.night < judged.night]
        tonight = [pairs for pairs in evidence.pairs if pairs.night == judged.night]
        if said.is_told or not before or not tonight:
            continue
        unchanged = any(pairs.build == evidence.tonight for pairs in before)
        copy = _as_new_build(said.model, judged.night)
        steps = [copy.tell(math.log1p(step), said.prior) for step in (0.0, *STEPS)]
        plain, *stepped = (_judge_step(found, copy) for found in steps)
        short = unchanged and sum(pairs.count for pairs in tonight) == 1
        yield _Copy(plain is _Stepped.TOLD, tuple(stepped), unchanged, short)


def _as_new_build(model: SeriesModel, night: int) -> SeriesModel:
    """Pretend that tonight's artifact had never been measured; the code of one that does not exist is unknown."""
    each = model.evidence
    tonight = each.tonight
    if all(pairs.night == night or tonight not in {pairs.build, pairs.base} for pairs in each.pairs):
        return model
    pairs = [
        replace(one, build=_COPY if one.build == tonight else one.build) if one.night == night else one
        for one in each.pairs
    ]
    places = {**each.places, _COPY: max(each.places.values()) + 1}
    return SeriesModel(model.name, replace(each, pairs=pairs, places=places, tonight=_COPY), model.noise)


_COPY = "a copy of tonight's"


def _judge_step(found: FoundStep | None, model: SeriesModel) -> _Stepped:
    if found is None or abs(found.effect) < RULES.least:
        return _Stepped.UNSEEN
    if decide(found, model.evidence.sign, model.count_pairs(found.begin)) in {Decision.TOLD, Decision.BETTER}:
        return _Stepped.TOLD
    return _Stepped.AGAIN if found.odds >= RULES.log("worth_measuring") else _Stepped.UNSEEN


def _count(copies: Sequence[_Copy]) -> _PlantedNight:
    """Count what is told of tonight without a step: a false alarm where TVM is unchanged, else perhaps true."""
    told = [copy for copy in copies if copy.unchanged and copy.is_told]
    others = [copy for copy in copies if not copy.is_short and not copy.is_told]
    steps = []
    for at, step in enumerate(STEPS):
        found = Counter(copy.stepped[at] for copy in others)
        steps.append(PlantedStep(step, len(others), found[_Stepped.TOLD], found[_Stepped.AGAIN]))
    return _PlantedNight(tuple(steps), sum(copy.unchanged for copy in copies), len(told))
