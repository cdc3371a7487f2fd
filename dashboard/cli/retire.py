"""`retire`, `mute`, `rename` and their inverses: manage what is gone on purpose, too noisy or renamed."""

from __future__ import annotations

import argparse
import datetime
import fnmatch
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from dashboard.cli.arguments import OK_CODE, Verbs, add_home_verb, find_home
from dashboard.night.lock import night_lock
from dashboard.upkeep.rename import rename
from tvmdash import common
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.machine.identity import Rename, RenameKind

if TYPE_CHECKING:
    from tvmdash.incidents.decisions import By

_DAYS = 14


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    retire = add_home_verb(
        verbs,
        "retire",
        _retire,
        "mark an experiment or series as gone on purpose, so that it is not reported as missing",
        code=False,
    )
    retire.add_argument("pattern", metavar="WHAT", nargs="?", help=f"{_WHAT}; if omitted, list what is retired")
    retire.add_argument("why", metavar="WHY", nargs="?", default="", help="reason, for later readers")
    mute = add_home_verb(
        verbs, "mute", _mute, "mute noisy series: still judged, but not reported until a given day", code=False
    )
    mute.add_argument("pattern", metavar="WHAT", nargs="?", help=f"{_WHAT}; if omitted, list what is muted")
    mute.add_argument("why", metavar="WHY", nargs="?", default="", help="reason, for later readers")
    end = mute.add_mutually_exclusive_group()
    end.add_argument("--until", type=_parse_day, metavar="DATE", help="last day of the mute (UTC), e.g. 2026-12-24")
    end.add_argument("--days", type=float, default=_DAYS, help=f"duration of the mute (default: {_DAYS})")
    unretire = add_home_verb(verbs, "unretire", _unretire, "expect a retired experiment or series again", code=False)
    unmute = add_home_verb(verbs, "unmute", _unmute, "report a muted series again", code=False)
    for parser in (unretire, unmute):
        parser.add_argument("pattern", metavar="WHAT", help="the pattern as it was given")
        parser.add_argument("why", metavar="WHY", nargs="?", default="", help="reason, for later readers")
    renaming = add_home_verb(verbs, "rename", _rename, "rename an experiment or workload", code=False)
    renaming.add_argument("kind", choices=[str(kind) for kind in RenameKind], metavar="KIND", help="what to rename")
    renaming.add_argument(
        "before",
        metavar="OLD",
        help="current name, e.g. cnn_comp, or for a workload its name in records, e.g. network.resnet18",
    )
    renaming.add_argument("now", metavar="NEW", help="new name; the series keep their history, IDs and incidents")
    renaming.add_argument("why", metavar="WHY", nargs="?", default="", help="reason, for later readers")
    for parser in (retire, mute, unretire, unmute, renaming):
        parser.add_argument("--who", metavar="NAME", help="who decided it (default: the current user)")


_WHAT = "an experiment (cnn_comp), or series by name; * and ? are wildcards (cnn_comp resnet18*)"


def _parse_day(text: str) -> datetime.datetime:
    """Return the end of that day."""
    try:
        day = datetime.datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=datetime.UTC)
    except ValueError:
        raise argparse.ArgumentTypeError(f"invalid date {text!r} (use YYYY-MM-DD, e.g. 2026-12-24)") from None
    return day + datetime.timedelta(days=1, seconds=-1)


def _retire(arguments: argparse.Namespace) -> int:
    from tvmdash.incidents import decisions  # the detector's imports cost the other verbs a third of a second

    home = find_home(arguments)
    if arguments.pattern is None:
        return _list([decisions.describe_retired(each) for each in decisions.list_retired(home)], "retired")
    if not arguments.why.strip():
        remedy = f'retire {home.root} "{arguments.pattern}" "it was merged into ..."'
        raise DashboardError("WHY is missing.", remedy=remedy)
    matched = decisions.retire(home, arguments.pattern, _decide(arguments))
    print(
        f"Retired: {matched}. From the next night on it is not reported as missing; a retired experiment no longer "
        "runs."
    )
    return OK_CODE


def _rename(arguments: argparse.Namespace) -> int:
    home, by = find_home(arguments), _decide(arguments)
    change = Rename(RenameKind(arguments.kind), arguments.before, arguments.now, by.at, by.who, by.why)
    with night_lock(home):
        print("\n".join(rename(home, change)))
    for line in _list_left_behind(home, change):
        print(line)
    return OK_CODE


def _list_left_behind(home: Home, change: Rename) -> Iterator[str]:
    """Yield a line for each pattern of owners, mutes and retired series that still has the old name only."""
    from tvmdash.incidents import decisions
    from tvmdash.notify.config import read_what_is_good

    for at, owner in enumerate(read_what_is_good(home).owners):
        for name, pattern in (("experiment", owner.experiment), ("series", owner.series)):
            if _is_left_behind(pattern, change):
                place = f"{home.config_file}: $.owners[{at}].{name}"
                yield f"{place}: {pattern!r} still refers to {change.before}. Change it to {change.now}."
    retired, muted = decisions.list_retired(home), decisions.list_muted(home, change.at)
    kept = [*(("unretire", each.scope) for each in retired), *(("unmute", each.pattern) for each in muted)]
    for verb, pattern in kept:
        if _is_left_behind(pattern, change):
            yield f"{pattern!r} names only {change.before}. Run {verb} for it, then repeat it with {change.now}."


def _is_left_behind(pattern: str, change: Rename) -> bool:
    return change.before in pattern.split() or (
        fnmatch.fnmatchcase(change.before, pattern) and not fnmatch.fnmatchcase(change.now, pattern)
    )


def _mute(arguments: argparse.Namespace) -> int:
    from tvmdash.incidents import decisions

    home, by = find_home(arguments), _decide(arguments)
    if arguments.pattern is None:
        return _list([decisions.describe_muted(each) for each in decisions.list_muted(home, by.at)], "muted")
    until = arguments.until or common.utc_now() + datetime.timedelta(days=arguments.days)
    matched = decisions.mute(home, arguments.pattern, until, by)
    print(f"Muted until {until:%Y-%m-%d %H:%M} UTC: {matched}. It is still judged.")
    return OK_CODE


def _list(lines: Sequence[str], what: str) -> int:
    print("\n".join(lines) or f"Nothing is {what}.")
    return OK_CODE


def _unretire(arguments: argparse.Namespace) -> int:
    from tvmdash.incidents import decisions

    return _take_back(arguments, decisions.unretire, "will be expected again from the next night on")


def _unmute(arguments: argparse.Namespace) -> int:
    from tvmdash.incidents import decisions

    return _take_back(arguments, decisions.unmute, "will be reported again from the next night on")


def _take_back(arguments: argparse.Namespace, undo: Callable[[Home, str, By], None], effect: str) -> int:
    undo(find_home(arguments), arguments.pattern, _decide(arguments))
    print(f"{arguments.pattern} {effect}.")
    return OK_CODE


def _decide(arguments: argparse.Namespace) -> By:
    from tvmdash.incidents import decisions
    from tvmdash.incidents.annotations import name_user

    at = f"{common.utc_now():%Y-%m-%dT%H:%M:%SZ}"
    return decisions.By(arguments.who or name_user(), at, arguments.why)
