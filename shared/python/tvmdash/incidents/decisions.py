"""Series that people retired because they are gone, or muted because they are too noisy; and how to undo either.

A retired series stands among the annotations, a muted one as a silence of the ledger: both keep who, when and why.
"""

from __future__ import annotations

import datetime
import difflib
import fnmatch
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass

from tvmdash import common
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.incidents import file as incident_file
from tvmdash.incidents import ledger as ledgers
from tvmdash.incidents.annotations import RETIRED, Annotation, append, make, read
from tvmdash.incidents.events import Silenced, Unsilenced
from tvmdash.incidents.ledger import Event, Silence
from tvmdash.series import naming, store

_MOST_DAYS = 365
_NAMED = 3


@dataclass(frozen=True)
class By:
    """Who decides, when (ISO 8601 UTC) and why."""

    who: str
    at: str
    why: str


def retire(home: Home, pattern: str, by: By) -> str:
    """Expect nothing of what matches from now on, and run no experiment of that name; return what matches, in words.

    DashboardError where nothing does.
    """
    if set(pattern) <= set("*? "):
        raise DashboardError(
            f"{pattern!r} would retire everything.", remedy="Give an experiment, or some of its series."
        )
    matched = _describe_matches(home, pattern)
    night = by.at.replace("-", "").replace(":", "")
    (home.root / "results").mkdir(exist_ok=True)
    made = make("night", night, by.why, who=by.who, at=by.at, scope=pattern, series=RETIRED)
    append(home.root, asdict(made))
    return matched


def unretire(home: Home, pattern: str, by: By) -> None:
    """Expect again the series retired by that pattern; DashboardError where none was."""
    standing = [each for each in list_retired(home) if each.scope == pattern]
    if not standing:
        raise _make_unknown(pattern, "retired", (each.scope for each in list_retired(home)))
    for annotation in standing:
        line = {"remove": annotation.id, "at": by.at, "who": by.who, **({"words": by.why} if by.why else {})}
        append(home.root, line)


def list_retired(home: Home) -> list[Annotation]:
    """List the retired patterns, oldest first."""
    return [each for each in read(home.root) if each.series == RETIRED]


def mute(home: Home, pattern: str, until: datetime.datetime, by: By) -> str:
    """Tell no incidents and suspects of what matches until then; return what matches, in words."""
    now = common.utc_now()
    if not now < until <= now + datetime.timedelta(days=_MOST_DAYS):
        problem = f"{until:%Y-%m-%d} is not within the next {_MOST_DAYS} days."
        raise DashboardError(problem, remedy="A mute must end; use `retire` for what is gone for good.")
    matched = _describe_matches(home, pattern)
    told = Silenced(pattern, f"{until:%Y-%m-%dT%H:%M:%SZ}", by.why)
    incident_file.append(incident_file.file_of(home), [Event.of(by.at, by.who, ledgers.SILENCED, "", told)])
    return matched


def unmute(home: Home, pattern: str, by: By) -> None:
    """End the mutes of that pattern; DashboardError where none stands."""
    standing = list_muted(home, by.at)
    if all(each.pattern != pattern for each in standing):
        raise _make_unknown(pattern, "muted", (each.pattern for each in standing))
    event = Event.of(by.at, by.who, ledgers.UNSILENCED, "", Unsilenced(pattern, by.why))
    incident_file.append(incident_file.file_of(home), [event])


def list_muted(home: Home, now: str) -> list[Silence]:
    """The silences in force at the ISO moment `now`."""
    return incident_file.read_ledger(home).silences_at(now)


def describe_retired(annotation: Annotation) -> str:
    return f"{annotation.scope}: retired on {annotation.at[:10]} by {annotation.who}: {annotation.words}"


def describe_muted(silence: Silence) -> str:
    why = f": {silence.words}" if silence.words else ""
    return f"{silence.pattern}: muted until {silence.until[:10]} by {silence.who}{why}"


def _make_unknown(pattern: str, what: str, known: Iterable[str]) -> DashboardError:
    names = ", ".join(dict.fromkeys(known)) or "nothing"
    return DashboardError(f"{pattern!r} is not {what}. {what.capitalize()} is: {names}.")


def _describe_matches(home: Home, pattern: str) -> str:
    """The experiments and series that match; DashboardError where there are none."""
    experiments = list(dict.fromkeys([*home.experiments_with_data(), *_list_configured(home)]))
    matched = [name for name in experiments if fnmatch.fnmatch(name, pattern)]
    names = list(_list_series(home))
    series = [name for name in names if fnmatch.fnmatch(name, pattern)]
    if not matched and not series:
        near = difflib.get_close_matches(pattern, [*experiments, *names], n=1, cutoff=0.5)
        remedy = "Give an experiment, or series by their name on the site; * and ? are wildcards."
        if near:
            remedy = f"Did you mean {near[0]!r}? With * and ? it may match several."
        raise DashboardError(f"{pattern!r} matches no experiment and no series.", remedy=remedy)
    if matched:
        return f"experiment{'s' * (len(matched) > 1)} {', '.join(matched)}"
    more = f" and {len(series) - _NAMED} more" if len(series) > _NAMED else ""
    return f"{len(series)} series: {', '.join(series[:_NAMED])}{more}"


def _list_configured(home: Home) -> list[str]:
    folder = home.configs("experiment")
    return sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def _list_series(home: Home) -> Iterator[str]:
    """The names of all series that the home ever measured."""
    for experiment in home.experiments_with_data():
        with store.open_for_reading(home.store_file, home.data(experiment), experiment) as index:
            yield from naming.names(index.outlines(experiment))
