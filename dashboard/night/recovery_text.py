"""What was saved of a killed night, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvmdash.dashboard_info import PartialData
from tvmdash.text import format_list

_NAMED = 20


@dataclass(frozen=True)
class Saved:
    """An experiment of the night that had measured something; not `published` where its run was ended in the middle."""

    name: str
    published: bool
    partial: PartialData | None = None


def describe_night(stamp: str, saved: Sequence[Saved]) -> str:
    """What the night's record and the next night say of it."""
    whole = [experiment.name for experiment in saved if experiment.published and not experiment.partial]
    halves = [f"{experiment.name} ({_count(experiment.partial)})" for experiment in saved if experiment.partial]
    lost = [experiment.name for experiment in saved if not experiment.published]
    parts = [f"saved its measurements of {format_list(whole, _NAMED)}"] if whole else []
    parts += [f"saved partial measurements of {format_list(halves, _NAMED)}"] if halves else []
    parts += [f"published nothing of {format_list(lost, _NAMED)}, interrupted during the run"] if lost else []
    return f"Night {stamp} was interrupted; {'; '.join(parts) or 'nothing new was measured'}."


def _count(partial: PartialData) -> str:
    return f"{partial.measured} of {partial.planned} points"


def describe_not_saved(stamp: str, error: Exception) -> str:
    """What the next night says where saving failed."""
    return f"Night {stamp} was interrupted, and its measurements are not saved yet: {error} The next night tries again."
