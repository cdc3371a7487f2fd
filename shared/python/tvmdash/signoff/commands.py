"""The commands that get the evidence that is missing, with everything filled in."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Sequence

from tvmdash.contracts.signoff import Signoff, SignoffDoubt, SignoffSeries, SignoffState
from tvmdash.dashboard_info import Home, experiment_of
from tvmdash.records.metrics import is_worse
from tvmdash.signoff.tvms import HomeTvms
from tvmdash.verdict import TELL

_MOST_BISECTIONS = 3


def list_commands(home: Home, done: Signoff, tvms: HomeTvms, pairable: Collection[str]) -> Iterator[str]:
    """What to call: `try` and `compare` for what cannot be said, `bisect` for regressions that are open.

    pairable: the keys of the series that can be measured in turn; `compare` measures the others.
    """
    unclear = [item for item in done.series if item.state is SignoffState.UNCLEAR and _is_open(item)]
    lucky = [item for item in unclear if item.doubt is SignoffDoubt.LUCK]
    unclear = [item for item in unclear if item not in lucky]
    in_turn = [item for item in unclear if item.id in pairable]
    ends = [done.b.spec, "--against", done.a.spec]
    if in_turn or not done.series:
        yield _format(home, "try", *ends, *_format_experiments(in_turn))
    others = [item for item in unclear if item.id not in pairable]
    if others:
        yield _format(home, "compare", done.a.spec, done.b.spec, *_format_experiments(others))
    answered = {found.series for found in done.bisections}
    worse = [item for item in done.series if item.state is SignoffState.WORSE and _is_open(item)]
    worse += [
        item for item in lucky if abs(item.effect or 0.0) >= TELL and is_worse(item.effect or 0.0, item.direction)
    ]
    first: dict[str, SignoffSeries] = {}
    for item in sorted(worse, key=lambda item: -abs(item.effect or 0.0)):
        if item.id not in answered and item.before is None:
            first.setdefault(item.incident or item.experiment, item)
    for item in list(first.values())[:_MOST_BISECTIONS]:
        good, bad = _find_range(done, item, tvms)
        if good.partition(":")[0] == bad.partition(":")[0]:
            incident = ["--incident", item.incident] if item.incident else []
            yield _format(home, "bisect", item.experiment, item.id, "--good", good, "--bad", bad, *incident)


def _find_range(done: Signoff, item: SignoffSeries, tvms: HomeTvms) -> tuple[str, str]:
    """The TVMs that its incident lies between, as commands take them, else A and B."""
    incident = next((each for each in done.incidents if each.id == item.incident), None)
    ids = [tvms.find_id(version) for version in incident.versions] if incident is not None else []
    known = [tvms.tvms[name].spec for name in ids if name]
    return (known[0], known[1]) if len(known) == 2 else (done.a.spec, done.b.spec)


def _is_open(item: SignoffSeries) -> bool:
    return item.is_in_the_way and item.waiver is None


def _format_experiments(series: Sequence[SignoffSeries]) -> list[str]:
    names = sorted({experiment_of(item.experiment) for item in series})
    return ["--experiments", *names] if names else []


def _format(home: Home, verb: str, *words: str) -> str:
    return f"python3 -m dashboard {verb} {shlex.join([str(home.root), *words])}"
