"""From a home and two names to what changed between the two, what is open and what is waived."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tvmdash.dashboard_info import Home, experiment_of
from tvmdash.errors import DashboardError
from tvmdash.records.metrics import is_worse
from tvmdash.signoff import waivers
from tvmdash.signoff.between import ToldBetween, read_told
from tvmdash.signoff.judging import judge_series
from tvmdash.signoff.measured import MeasuredSeries, TwoTvms, read_series
from tvmdash.signoff.sources import Sources, read_sources
from tvmdash.signoff.tvms import HomeTvm, HomeTvms
from tvmdash.trials.signoff import Signoff, SignoffDoubt, SignoffSeries, SignoffState, SignoffTvm
from tvmdash.trials.trial import Trial, TrialChange, TrialKind, TrialNumber, TrialSeries, TrialState, TrialTvm
from tvmdash.verdict import TELL


def sign_off(home: Home, names: tuple[str, str], *, matters: float) -> Signoff:
    """Every change from the first TVM to the second; matters: a change for the worse that must be excluded.

    DashboardError where the home knows one of them not, or both are the same.
    """
    found = read_sources(home)
    a, b = (found.tvms.find(name, home.root) for name in names)
    if a.id == b.id:
        raise DashboardError(f"{names[0]} and {names[1]} are the same TVM, {a.id}. Give two different TVMs.")
    both = TwoTvms(a.id, b.id)
    measured, told = read_series(found, both), read_told(found, a, b)
    of_key = {each.key: each for each in measured}
    judged = judge_series(found, measured, both, told, matters)
    series = [_add_known(item, of_key[item.id], told, found, b) for item in judged]
    events, faults = waivers.read(home)
    done = Signoff(
        _describe(a, names[0]),
        _describe(b, names[1]),
        matters,
        waivers.apply_waivers(series, waivers.list_standing(events, a.id)),
        tuple(told.list_incidents(series)),
        tuple(told.list_bisections(series)),
        tuple(event for event in events if event.waiver.base == a.id),
        tuple(dict.fromkeys((*found.faults, *faults))),
    )
    return replace(done, commands=tuple(list_commands(home, done, found.tvms, measured)))


def make_trial(done: Signoff) -> Trial:
    """As commands that measure leave it: each series with its change, or with its two exact numbers."""
    a, b = (TrialTvm(tvm.asked, next(iter(tvm.artifacts), ""), tvm.version, tvm.commit) for tvm in (done.a, done.b))
    series, numbers = [], []
    for item in done.series:
        facts = (item.id, item.experiment, item.metric, item.labels)
        if item.before is not None and item.after is not None:
            both = (item.before, item.after)
            numbers.append(TrialNumber(*facts, *both, item.unit, item.direction, name=item.name))
            continue
        change = None
        if item.effect is not None and item.low is not None and item.high is not None:
            within, visible = (1 + item.high) / (1 + item.effect) - 1, item.visible or 0.0
            change = TrialChange(item.effect, item.low, item.high, within, visible, item.pairs, item.has_moved)
        series.append(TrialSeries(*facts, item.direction, name=item.name, change=change, unit=item.unit))
    return Trial(
        "", TrialState.DONE, b, a, 0.0, "", {}, series=tuple(series), numbers=tuple(numbers), kind=TrialKind.SIGNOFF,
        signoff=done,
    )  # fmt: skip


def _describe(tvm: HomeTvm, asked: str) -> SignoffTvm:
    facts = (tvm.id, tvm.version, tvm.commit, tvm.spec, tvm.artifacts)
    return SignoffTvm(asked, *facts, own=len(tvm.own), beside=len(tvm.beside))


def _add_known(
    item: SignoffSeries, measured: MeasuredSeries, told: ToldBetween, found: Sources, b: HomeTvm
) -> SignoffSeries:
    """The series with its incident; one that is lost, with why it could not be measured."""
    if item.has_moved:
        incident = told.find_incident(item, measured)
        return replace(item, incident=incident.id if incident else None)
    if item.state is SignoffState.LOST:
        return replace(item, error=_find_error(found, item, b))
    return item


def _find_error(found: Sources, item: SignoffSeries, b: HomeTvm) -> str:
    """Why the point failed on the last night that measured B."""
    nights = [each for each in found.experiments if each.name == item.experiment]
    stamp = max((stamp for each in nights for stamp in each.versions if stamp in b.own), default="")
    failures = found.read_data(item.experiment, stamp).failures if stamp else ()
    return next((each.error for each in failures if each.workload == item.labels.get("workload")), "")


_MOST_BISECTIONS = 3


def list_commands(home: Home, done: Signoff, tvms: HomeTvms, measured: Sequence[MeasuredSeries]) -> Iterator[str]:
    """Yield the commands to run next: `try` and `compare` for doubts, `bisect` for open regressions.

    A series can be measured in turn where others of its kind have pairs; `compare` measures the others.
    """
    having = {(each.experiment, each.outline.metric) for each in measured if each.pairs}
    unclear = [item for item in done.series if item.state is SignoffState.UNCLEAR and item.is_open]
    lucky = [item for item in unclear if item.doubt is SignoffDoubt.LUCK]
    unclear = [item for item in unclear if item not in lucky]
    in_turn = [item for item in unclear if (item.experiment, item.metric) in having]
    if in_turn or not done.series:
        yield _format(home, "try", done.b.spec, "--against", done.a.spec, *_format_experiments(in_turn))
    others = [item for item in unclear if item not in in_turn]
    if others:
        yield _format(home, "compare", done.a.spec, done.b.spec, *_format_experiments(others))
    yield from _list_bisections(home, done, tvms, lucky)


def _list_bisections(home: Home, done: Signoff, tvms: HomeTvms, lucky: Sequence[SignoffSeries]) -> Iterator[str]:
    """Of the largest in each incident, and of each experiment without one; lucky: may be worse by luck alone."""
    worse = [item for item in done.series if item.state is SignoffState.WORSE and item.is_open]
    worse += [
        item for item in lucky if abs(item.effect or 0.0) >= TELL and is_worse(item.effect or 0.0, item.direction)
    ]
    answered = {found.series for found in done.bisections}
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
    versions = next((each.versions for each in done.incidents if each.id == item.incident), ())
    known = [tvms.tvms[name].spec for version in versions if (name := tvms.find_id(version))]
    return (known[0], known[1]) if len(known) == 2 else (done.a.spec, done.b.spec)


def _format_experiments(series: Iterable[SignoffSeries]) -> list[str]:
    names = sorted({experiment_of(item.experiment) for item in series})
    return ["--experiments", *names] if names else []


def _format(home: Home, verb: str, *words: str) -> str:
    return f"python3 -m dashboard {verb} {shlex.join([str(home.root), *words])}"
