"""The levels of a series night by night, free of what the machine did: by its ratios to the reference."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Mapping

from tvmdash.judge import Pairs
from tvmdash.records import Build
from tvmdash.records.metrics import RATIOS
from tvmdash.series.store import Outline, Store

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
