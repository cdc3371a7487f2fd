"""The inputs of a night's decisions, kept so that they can be made again: decisions/<stamp>.json."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from tvmdash import common
from tvmdash.common import structured
from tvmdash.errors import DashboardError
from tvmdash.incidents.ledger import Incident
from tvmdash.incidents.reason_text import format_odds, format_reason
from tvmdash.incidents.text import describe
from tvmdash.judge import RULES, Evidence, KnownStep, Pairs
from tvmdash.judge.history.again import replay
from tvmdash.judge.history.change_points import observe
from tvmdash.judge.history.fleet.common import Deviation, find_common_shift
from tvmdash.judge.history.series import Decision, History, Measured, SeriesState, Settings
from tvmdash.judge.home import interval
from tvmdash.judge.model import FoundStep, SeriesModel
from tvmdash.judge.noise import HomeNoise, SeriesNoise
from tvmdash.text import format_exact, format_percent, format_signed

FOLDER = "decisions"
_TOLD = ("kind", "cut", "after", "effect", "effect_low", "effect_high", "z", "nights", "threshold", "scale")


def keep_inputs(history: History, state: SeriesState, settings: Settings, decision: Decision) -> dict[str, Any]:
    """One series' inputs and the decision, as JSON. `state` is as it was given to the detector."""
    values = [float(value) if math.isfinite(value) else None for value in history.values]
    optional = {name: _list_column(getattr(history, name)) for name in ("std", "repeats")}
    return {
        "values": values,
        **optional,
        "offset": history.offset,
        "state": state.to_json(),
        "settings": asdict(settings),
        "decision": {
            **{name: getattr(decision, name) for name in _TOLD},
            "reason": format_reason(decision),
            "why": decision.reason.to_json(),
        },
        "reruns": [[rerun.night, rerun.value] for rerun in decision.reruns],
    }


def _list_column(array: Any) -> list[float | None] | None:
    return None if array is None else [float(value) if math.isfinite(value) else None for value in array]


def replay_decision(value: Mapping[str, Any]) -> Decision:
    """The decision made again from what `keep_inputs` kept."""

    def column(name: str) -> Any:
        stored = value[name]
        return None if stored is None else np.array([math.nan if value is None else value for value in stored], float)

    history = History(column("values"), column("std"), column("repeats"), value["offset"])
    reruns = [Measured(int(night), float(again)) for night, again in value.get("reruns", ())]
    state, known = SeriesState.from_json(value["state"]), {each.name for each in fields(Settings)}
    # An older dashboard's settings may have names that are gone.
    settings = Settings(**{name: given for name, given in value["settings"].items() if name in known})
    return observe(history, state, settings=settings, rerun=replay(reruns) if reruns else None)


def keep_fleet(table: Mapping[str, Deviation], controls: Sequence[str], night: int) -> dict[str, Any]:
    """Return the inputs of the judgement of a whole machine, as JSON."""
    rows = {name: asdict(row) for name, row in table.items()}
    return {"deviations": rows, "controls": list(controls), "night": night}


def explain(output: Path, incident: Incident) -> str:
    """Explain why the incident was told, making the decision again; DashboardError without its inputs."""
    own = {moved.name for moved in incident.moved}
    origin = incident.origin or incident.id
    parts = {moved.part: moved.joined or incident.found for moved in incident.moved if moved.part}
    lines = [describe(incident), ""]
    for told, night in {origin: incident.found, **parts}.items():
        path = output / FOLDER / f"{night}.json"
        inputs = common.object_in(common.read_json(path), "incidents").get(told)
        if inputs is not None:
            lines += _explain_inputs(inputs, own, path)
        elif told == origin:
            raise DashboardError(f"{path}: does not contain {incident.id}; no inputs are stored for slow drift.")
    lines += ["", *(f"{change.at} {change.who}: {change.state}. {change.words}" for change in incident.changes)]
    return "\n".join(lines).rstrip() + "\n"


def _explain_inputs(inputs: Mapping[str, Any], names: Collection[str], path: Path) -> list[str]:
    """Explain one opening that the file `path` holds: the series with these names, and the machine."""
    paired = functools.partial(_explain_paired, path=path)
    lines: list[str] = []
    try:
        for kind, explain_one in (("exact", _explain_exact), ("paired", paired), ("series", _explain_series)):
            for name, value in inputs.get(kind, {}).items():
                lines += explain_one(name, value) if name in names else ()
        if "fleet" in inputs:
            lines += _explain_fleet(inputs["fleet"])
    except (KeyError, TypeError, ValueError) as error:
        raise DashboardError(f"{path}: damaged: {error!r}. Restore it from the backup.") from error
    return lines


def _explain_exact(name: str, value: Mapping[str, Any]) -> Iterator[str]:
    yield f"{name}:"
    for stamp, number, alike in list(zip(value["stamps"], value["values"], value["alike"], strict=True))[-3:]:
        agreed = f"{alike} processes agree" if alike > 1 else "declared exact" if alike == 1 else "one process"
        yield f"  {common.format_day(stamp)}: {format_exact(number, '')} ({agreed})."
    rests_on = list(zip(value["values"], value.get("functions", [0] * len(value["values"])), strict=True))
    same = len(rests_on) > 1 and rests_on[-1] == rests_on[-2]
    yield f"  Exact numbers have no noise, so any change is reported: {'NOT ' * same}the same decision."


@dataclass(frozen=True)
class KeptPairs:
    """The inputs of a decision by pairs, and the step that it found. factors: by night, as noise.factors.

    is_shared: many series decided it together.
    """

    pairs: tuple[Pairs, ...]
    again: tuple[Pairs, ...]
    places: Mapping[str, int]
    tonight: str
    code: Mapping[str, int]
    steps: tuple[KnownStep, ...]
    noise: SeriesNoise
    factors: Mapping[str, float]
    redrawn: float
    prior: float
    begin: int
    shift: float
    error: float
    odds: float
    is_shared: bool

    def model(self) -> SeriesModel:
        """Rebuild the model of the series as it was judged."""
        evidence = Evidence("", self.pairs, self.places, self.tonight, self.code, steps=self.steps)
        factors = {int(night): factor for night, factor in self.factors.items()}
        return SeriesModel("", evidence, HomeNoise({"": self.noise}, factors, self.redrawn), self.again)


def keep_pairs(model: SeriesModel, found: FoundStep, prior: float) -> dict[str, Any]:
    """Return the inputs of a decision by pairs, and the step that it found, as JSON."""
    each, noise = model.evidence, model.noise
    steps = tuple(step for step in each.steps if step.begin != found.begin)
    measured = tuple(each.pairs[-RULES.window :])
    factors = {str(pairs.night): noise.factors.get(pairs.night, 1.0) for pairs in (*measured, *model.again)}
    kept = KeptPairs(
        measured, model.again, dict(each.places), each.tonight, dict(each.code), steps, noise.series[model.name],
        factors, noise.redrawn, prior, found.begin, found.shift, found.error, min(found.odds, RULES.most_odds),
        is_shared=len(steps) < len(each.steps),
    )  # fmt: skip
    return structured.to_json(kept)


def _explain_paired(name: str, value: Mapping[str, Any], path: Path) -> Iterator[str]:
    if "evidence" in value:
        yield f"{name}: decided by an older dashboard, from evidence that this one weighs in another way."
        return
    kept = structured.from_json(KeptPairs, value, path, remedy="Restore it from the backup.")
    model = kept.model()
    again, best = model.shift(kept.begin), model.best(kept.prior)
    if again is None or best is None:
        yield f"{name}: replayed: nothing joins the builds. NOT the same decision."
        return
    same = best.begin == kept.begin and math.isclose(min(best.odds, RULES.most_odds), kept.odds, rel_tol=1e-6)
    low, high = interval(again)
    noise = kept.noise
    yield f"{name}:"
    if not kept.is_shared:
        yield f"  Replayed from the stored inputs: {'the' if same else 'NOT the'} same decision."
    yield (
        f"  The builds from the step on differ from those before by {format_percent(math.expm1(again.log))}, 95 %: "
        f"{format_percent(low)} to {format_percent(high)}, by {model.count_pairs(kept.begin)} pairs of processes."
    )
    yield (
        f"  A pair of processes scatters by {100 * math.sqrt(noise.pair):.2g} %; builds differ without any change by "
        f"{100 * math.sqrt(noise.code):.2g} % where their generated code lies elsewhere, by "
        f"{100 * math.sqrt(noise.library):.2g} % where TVM's libraries do."
    )
    if kept.is_shared:
        yield (
            f"  Many series moved together at that build: with them it is {format_percent(math.expm1(kept.shift))}, "
            f"and the odds for a step are {format_odds(math.exp(min(kept.odds, 50.0)))}."
        )
    else:
        odds = format_odds(math.exp(min(best.odds, 50.0)))
        yield f"  The odds for a step are {odds}; {RULES.told:g} to 1 are needed."


def _explain_series(name: str, value: Mapping[str, Any]) -> Iterator[str]:
    stored, again = value["decision"], replay_decision(value)
    yield f"{name}:"
    if again.kind == "quiet" or again.z is None or again.nights is None:
        yield (
            f"  Replayed: {again.kind}, {format_reason(again)}. It was reported as {stored['kind']}, "
            f"{stored['reason']}."
        )
        return
    same = again.kind in (stored["kind"], "alert") and again.cut == stored["cut"] and again.effect == stored["effect"]
    which = "the same decision" if same else "NOT the same decision"
    yield f"  Replayed from the stored inputs: {which}, {stored['kind'] if same else again.kind}."
    noise = 100 * (again.scale or 0.0)
    nights = "night" if again.nights == 1 else f"{again.nights} nights"
    yield (
        f"  One night of this series scatters by {noise:.2g} % (robust standard deviation of the level before it). "
        f"The {nights} since then lie{'s' * (again.nights == 1)} {abs(again.z):.1f} standard errors away "
        f"(z {format_signed(again.z, '.2f')}, k {again.nights}); "
        f"{value['settings']['threshold']:g} are needed to tell it from chance."
    )
    if again.reruns:
        yield from _explain_again(again, value["settings"])
    if again.effect is not None and again.effect_low is not None and again.effect_high is not None:
        least = value["settings"]["least_effect"]
        yield (
            f"  The shift is {format_percent(again.effect)}, 95 %: {format_percent(again.effect_low)} to "
            f"{format_percent(again.effect_high)}; shifts of at least {100 * least:g} % are reported."
        )
    if not again.reruns:
        why = "it is beyond any run that the level before shows by itself, and no drift"
        yield f"  {format_reason(again).capitalize()}: {why}."


def _explain_again(decision: Decision, settings: Mapping[str, Any]) -> Iterator[str]:
    """Describe the remeasurements and the rule that decides by them."""
    cut = decision.cut if decision.cut is not None else decision.night
    new = [rerun.value for rerun in decision.reruns if rerun.night >= cut]
    old = [rerun.value for rerun in decision.reruns if rerun.night < cut]
    yield (
        f"  Measured again the same night, artifacts in turn: those since the cut {len(new)} times (median "
        f"{_median(new)}), those before it {len(old)} times (median {_median(old)}). What counts is the difference "
        f"between them, both measured that night; {settings['reproduced']:g} of its standard errors are needed."
    )


def _median(values: Sequence[float]) -> str:
    return f"{float(np.median(values)):.6g}" if values else "none"


def _explain_fleet(value: Mapping[str, Any]) -> Iterator[str]:
    table = {name: Deviation(**row) for name, row in value["deviations"].items()}
    again = find_common_shift(table, frozenset(value["controls"]), value["night"])
    if again is None:
        yield "Replayed: no common shift. NOT the same decision."
        return
    yield (
        f"The whole machine, replayed: a common shift of {format_percent(again.shift)} (standard error "
        f"{again.error:.2%}), {again.share:.0%} of {again.series} series the same way, for the third night in a row."
    )
    cause = again.cause
    if cause.controls_shift is None:
        yield "No control can show whether this is the machine or all of TVM."
    else:
        yield f"The {cause.controls} controls moved by {format_percent(cause.controls_shift)}: {cause.blame}."


def inputs_of(series: Mapping[str, Mapping[str, Any]], fleet: Mapping[str, Any] | None) -> dict[str, Any]:
    return {"series": dict(series), **({"fleet": fleet} if fleet else {})}
