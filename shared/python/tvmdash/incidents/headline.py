"""An incident in a few words: what moved, by its workloads, and how far."""

from __future__ import annotations

from collections.abc import Sequence

from tvmdash.incidents.events import Moved
from tvmdash.incidents.ledger import CREEP, MACHINE, NOT_TVMS, Incident
from tvmdash.records.metrics import METRICS
from tvmdash.text import (
    MINUS,
    elide,
    elide_begin,
    format_exact,
    format_list,
    format_percent,
    format_percents,
    format_quantity,
    format_signed,
    is_commit,
)

_METRICS = {metric.name for metric in METRICS}
_NAME_COLUMNS, _WORKLOAD_COLUMNS = 70, 40
_RUN_TIME = "run_time"


def format_headline(incident: Incident) -> str:
    """Sum it up, as in "resnet18 and 2 others 7.1 to 8.1 % slower, softmax 15 % faster"."""
    if incident.kind == MACHINE and incident.size is not None:
        who = "The machine" if incident.blame == "machine" else "Everything on one machine"
        word = ("slower" if incident.size > 0 else "faster") if incident.is_of_times else "different"
        return f"{who} got {word}: {format_percent(incident.size)}"
    if incident.kind == CREEP and incident.size is not None:
        return f"All series crept by {format_percent(incident.size)}"
    moved = _list_by_way(incident)
    if not moved:
        return f"Joined to {incident.into}" if incident.into else "An incident without series"
    kind = {MACHINE: "Not TVM: ", CREEP: "Slow creep: "}.get(incident.kind, "")
    if incident.is_exact and incident.blame in NOT_TVMS:
        kind = "Not TVM: "
    if len(moved) == 1:
        return f"{kind}{elide(moved[0].name, _NAME_COLUMNS)} {format_size(moved[0])}{_format_only_function(moved)}"
    if any(series.is_exact or not series.relative for series in moved):
        return f"{kind}{_format_exact(moved)}{_format_only_function(moved)}"
    ways = dict.fromkeys(series.way for series in moved)
    return kind + ", ".join(_format_way([series for series in moved if series.way == way]) for way in ways)


def _list_by_way(incident: Incident) -> list[Moved]:
    """Sort its series: worse, better, changed, each the farthest first."""
    # None, which is neither, sorts behind False: worse, better, changed.
    return sorted(incident.moved, key=lambda series: (not series.worse, series.worse is None, -abs(series.effect)))


def fit_headline(incident: Incident, most: int) -> str:
    """Format the headline in at most `most` columns, metric and size kept; of several ways, only the gravest."""
    whole = format_headline(incident)
    moved = _list_by_way(incident)
    is_in_percent = len(moved) > 1 and all(series.relative and not series.is_exact for series in moved)
    if len(whole) > most and is_in_percent and incident.kind not in (MACHINE, CREEP):
        whole = _format_way([series for series in moved if series.way == moved[0].way])
        whole = whole.removesuffix(" slower").removesuffix(" faster")
    return elide_begin(whole, most)


def _format_only_function(moved: Sequence[Moved]) -> str:
    """The function of generated code in which all of it happened, where it is one."""
    names = {function.name for series in moved for function in series.functions}
    is_one = len(names) == 1 and all(series.functions for series in moved)
    return f" (function {names.pop()})" if is_one else ""


def _format_way(moved: Sequence[Moved]) -> str:
    """Describe series that all got worse, or all got better, or all changed."""
    effects = [series.effect for series in moved]
    what = _name_workloads(moved)
    if all(series.is_time for series in moved) and len({effect > 0 for effect in effects}) == 1:
        about = "" if _metrics(moved) == {_RUN_TIME} else f"{_format_metrics(moved)} of "
        word = "slower" if effects[0] > 0 else "faster"
        return f"{about}{what} {format_percents([abs(effect) for effect in effects])} {word}"
    return f"{_format_metrics(moved)} of {what} {moved[0].way}, {format_percents(effects, sign=True)}"


def _name_workloads(moved: Sequence[Moved]) -> str:
    """The workload of the first and how many others there are; in an incident from before they were kept, a number."""
    names = list(dict.fromkeys(series.workload for series in moved))
    if not all(names):
        return f"{len(moved)} series"
    first = elide(names[0], _WORKLOAD_COLUMNS)
    if len(names) == 1:
        return first if len(moved) == 1 else f"{first} ({len(moved)} series)"
    return f"{first} and {elide(names[1], _WORKLOAD_COLUMNS) if len(names) == 2 else f'{len(names) - 1} others'}"


def _metrics(moved: Sequence[Moved]) -> set[str]:
    return {series.metric for series in moved}


def _format_metrics(moved: Sequence[Moved]) -> str:
    metrics = sorted(_metrics(moved))
    return format_list([metric.replace("_", " ") for metric in metrics], 2)


def _format_exact(moved: Sequence[Moved]) -> str:
    """Describe numbers in their units: which, and how far the one went that went the furthest."""
    metrics = _metrics(moved)
    named = all(series.is_exact for series in moved) and len(metrics) <= 2 and metrics <= _METRICS
    which = f"{_format_metrics(moved)} of {_name_workloads(moved)}" if named else _name_workloads(moved)
    return f"{which} {_format_ways(moved)}{_format_most(moved)}"


def _format_most(moved: Sequence[Moved]) -> str:
    """Say how far the one moved that went the furthest; nothing where that is in several units."""
    if not all(series.is_exact for series in moved):
        return f", up to {format_size(moved[0])}"
    if len({series.unit for series in moved}) > 1:
        return ""
    return f", by up to {format_size(max(moved, key=lambda series: abs(series.after - series.before)))}"


def _format_ways(moved: Sequence[Moved]) -> str:
    ways = [series.way for series in moved]
    if len(set(ways)) == 1:
        return ways[0]
    worse = ways.count("worse")
    return f"moved, {worse} of them for the worse" if worse else "moved, none of them for the worse"


def format_size(moved: Moved) -> str:
    """Format its change in percent; an exact number, and one of which there is no percent, in its unit."""
    if moved.relative and not moved.is_exact:
        return format_percent(moved.effect)
    change = moved.after - moved.before
    if moved.is_exact:
        return format_exact(change, moved.unit, sign=True)
    return f"{MINUS if change < 0 else '+'}{format_quantity(abs(change), moved.unit)}"


def format_effect(effect: float, *, relative: bool) -> str:
    """Format it in percent, or in units of the series' scatter."""
    return format_percent(effect) if relative else f"{format_signed(effect, '.1f')} of its scatter"


def format_range(versions: tuple[str, str]) -> str:
    """Name the TVMs between which it came, as in "599895c..5a36cd4"; empty where they are one, or not known."""
    before, after = versions
    return f"{shorten(before)}..{shorten(after)}" if before and after and before != after else ""


def shorten(version: str) -> str:
    """Cut a commit to its first digits; keep a version as it is."""
    return version[:9] if is_commit(version) else elide(version, _WORKLOAD_COLUMNS)
