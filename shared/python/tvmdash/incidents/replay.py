"""What a night's decision was made of, kept so that it can be made again: decisions/<stamp>.json."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from tvmdash import common, structured
from tvmdash.detect.beside.decisions import RatioDecision, decide_by
from tvmdash.detect.change_points import observe
from tvmdash.detect.fleet.common import Deviation, RerunBudget, find_common_shift
from tvmdash.detect.locate import replay
from tvmdash.detect.series import Decision, History, Measured, SeriesState, Settings
from tvmdash.errors import DashboardError
from tvmdash.incidents.ledger import Incident
from tvmdash.incidents.reason_text import format_reason
from tvmdash.incidents.text import describe, format_night
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
    state, settings = SeriesState.from_json(value["state"]), Settings(**value["settings"])
    return observe(history, state, settings=settings, rerun=replay(reruns) if reruns else None)


def keep_fleet(table: Mapping[str, Deviation], controls: Sequence[str], night: int) -> dict[str, Any]:
    """What the judgement of a whole machine was made of."""
    rows = {name: asdict(row) for name, row in table.items()}
    return {"deviations": rows, "controls": list(controls), "night": night}


def explain(output: Path, incident: Incident) -> str:
    """Why the incident was told, in words, the decision being made again; DashboardError without its inputs."""
    path = output / FOLDER / f"{incident.found}.json"
    try:
        inputs = common.read_json(path)["incidents"][incident.id]
    except KeyError:
        raise DashboardError(f"{path}: does not contain {incident.id}; no inputs are stored for slow drift.") from None
    lines = [describe(incident), ""]
    try:
        for name, value in inputs.get("exact", {}).items():
            lines += _explain_exact(name, value)
        for name, value in inputs.get("paired", {}).items():
            lines += _explain_paired(name, value, path)
        for name, value in inputs.get("series", {}).items():
            lines += _explain_series(name, value)
        if "fleet" in inputs:
            lines += _explain_fleet(inputs["fleet"])
    except (KeyError, TypeError, ValueError) as error:
        raise DashboardError(f"{path}: damaged: {error!r}. Restore it from the backup.") from error
    lines += ["", *(f"{change.at} {change.who}: {change.state}. {change.words}" for change in incident.changes)]
    return "\n".join(lines).rstrip() + "\n"


def _explain_exact(name: str, value: Mapping[str, Any]) -> Iterator[str]:
    """The last nights of an exact number up to the one that told it."""
    yield f"{name}:"
    for stamp, number, alike in list(zip(value["stamps"], value["values"], value["alike"], strict=True))[-3:]:
        agreed = f"{alike} processes agree" if alike > 1 else "declared exact" if alike == 1 else "one process"
        yield f"  {format_night(stamp)}: {format_exact(number, '')} ({agreed})."
    rests_on = list(zip(value["values"], value.get("functions", [0] * len(value["values"])), strict=True))
    same = len(rests_on) > 1 and rests_on[-1] == rests_on[-2]
    yield f"  Exact numbers have no noise, so any change is reported: {'NOT ' * same}the same decision."


def keep_ratios(decision: RatioDecision) -> dict[str, Any]:
    """What a decision by ratios was made of, and the decision."""
    return structured.to_json(decision)


def _explain_paired(name: str, value: Mapping[str, Any], path: Path) -> Iterator[str]:
    stored = structured.from_json(RatioDecision, value, path, remedy="Restore it from the backup.")
    again = decide_by(stored.evidence)
    same = "the same decision" if again == stored else "NOT the same decision"
    evidence = stored.evidence
    best = next(contrast for contrast in evidence.contrasts if contrast.builds == stored.builds)
    luck = 100 * evidence.luck(best).sd
    builds = "The newest build differs" if again.builds == 1 else f"The newest {again.builds} builds differ"
    yield f"{name}:"
    yield f"  Replayed from the stored inputs: {same}."
    yield (
        f"  {builds} from those before by {format_percent(again.effect)}, 95 %: {format_percent(again.low)} to "
        f"{format_percent(again.high)}, going by ratios to references, measured in turn."
    )
    yield (
        f"  A pair of processes scatters by {100 * evidence.pair.sd:.2g} %, builds by {luck:.2g} % without any change."
        f" So the difference is as rare as {abs(again.z):.1f} standard errors; {again.needed:.1f} are needed."
    )


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
    """What was measured again, in the order in which it was; what rests on it."""
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
    nothing = {name: History(np.array([math.nan])) for name in table}
    states = {name: SeriesState() for name in table}
    again = find_common_shift(
        table, frozenset(value["controls"]), value["night"], nothing, states, RerunBudget(None, 0)
    )
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
    """One incident's inputs, as `explain` reads them."""
    return {"series": dict(series), **({"fleet": fleet} if fleet else {})}
