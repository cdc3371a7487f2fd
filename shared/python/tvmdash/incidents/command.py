"""The command `python3 -m tvmdash.incidents HOME list|show|ack|...`.

Every change is one more line in the ledger, with who made it and when. The next night reads them.
"""

from __future__ import annotations

import argparse
import datetime
import fnmatch
import itertools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tvmdash import common
from tvmdash.common.http_util import is_link
from tvmdash.dashboard_info import WEBSITE, Home
from tvmdash.errors import DashboardError
from tvmdash.incidents import file as incident_file
from tvmdash.incidents import ledger as ledgers
from tvmdash.incidents.annotations import name_user
from tvmdash.incidents.differences import describe_why
from tvmdash.incidents.events import BisectionAnswer, Merged, Noted, Separated, Silenced, Unsilenced
from tvmdash.incidents.headline import format_headline
from tvmdash.incidents.ledger import Event, Incident, Ledger
from tvmdash.incidents.replay import explain
from tvmdash.incidents.text import describe, format_bisection
from tvmdash.text import plain_output
from tvmdash.trials import files as trial_files

_DAYS = 14
_SHOWN = 5


def output_of(home: Path) -> Path:
    return Home(home).output(ledgers.SUBSYSTEM)


def ledger_of(home: Path) -> Ledger:
    return incident_file.read_ledger(Home(home))


def _format_row(incident: Incident) -> str:
    begin = common.format_day(incident.begin)
    return f"{incident.id}  {incident.state:<12}  since {begin}  {format_headline(incident)}"


def _list(parsed: argparse.Namespace, ledger: Ledger) -> str:
    chosen = ledger.incidents.values() if parsed.all else ledger.open()
    rows = [_format_row(incident) for incident in chosen]
    silences = ledger.silences_at(_format_now())
    rows += [
        f"silence of {silence.pattern} until {silence.until} ({silence.who}): {silence.words}" for silence in silences
    ]
    empty = "No incident is open." if not parsed.all else "No incidents yet."
    return "\n".join(rows or [empty]) + "\n"


def _show(parsed: argparse.Namespace, ledger: Ledger) -> str:
    incident = ledger.find(parsed.incident)
    said = ((one, f"{one.state}. {one.words}".rstrip() if one.state else f"{one.words}.") for one in incident.history)
    history = (f"{one.at} {one.who}: {words}" for one, words in said)
    end = [f"Ended on the night of {common.format_day(incident.end)}."] if incident.end else []
    return "\n".join([describe(incident), f"State: {incident.state}.", *end, *history]) + "\n"


def _explain(parsed: argparse.Namespace, ledger: Ledger) -> str:
    incident = ledger.find(parsed.incident)
    why = describe_why(Home(parsed.home).output(WEBSITE), incident)
    return (f"What changed: {why}.\n\n" if why else "") + explain(output_of(parsed.home), incident)


def _find_told(ledger: Ledger, name: str) -> Incident:
    """The incident, which people act on; DashboardError where it is told as part of another one."""
    incident = ledger.find(name)
    if incident.into:
        raise DashboardError(f"{incident.id} is joined to {incident.into}. Name that one.")
    return incident


def _settle(state: str) -> Callable[[argparse.Namespace, Ledger], str]:
    def settle(parsed: argparse.Namespace, ledger: Ledger) -> str:
        incident = _find_told(ledger, parsed.incident)
        wanted = str(getattr(parsed, "as_state", None) or state)
        end = None if wanted in ledgers.OPEN_STATES else common.stamp_of(common.utc_now())
        event = ledgers.changed(
            incident.id, wanted, at=_format_now(), who=_name_user(parsed), words=parsed.words, end=end
        )
        incident_file.append(incident_file.file_of(Home(parsed.home)), [event])
        return f"{incident.id} is {wanted.replace('_', ' ')}: {format_headline(incident)}\n"

    return settle


def _note(parsed: argparse.Namespace, ledger: Ledger) -> str:
    incident = _find_told(ledger, parsed.incident)
    if not (parsed.words or parsed.owner or parsed.issue):
        raise DashboardError("nothing to note. Give WORDS, --owner or --issue.")
    if parsed.issue and not is_link(parsed.issue):
        raise DashboardError(f"--issue {parsed.issue!r:.100}: not an https:// address.")
    noted = Noted(parsed.words, parsed.owner, parsed.issue)
    event = Event.of(_format_now(), _name_user(parsed), ledgers.NOTED, incident.id, noted)
    incident_file.append(incident_file.file_of(Home(parsed.home)), [event])
    return f"{incident.id} is noted: {format_headline(incident)}\n"


def _add_bisection(parsed: argparse.Namespace, ledger: Ledger) -> str:
    incident = _find_told(ledger, parsed.incident)
    found = trial_files.load(parsed.result)
    event = ledgers.bisected_by(incident.id, found, at=_format_now(), who=_name_user(parsed))
    incident_file.append(incident_file.file_of(Home(parsed.home)), [event])
    return f"{incident.id}: {format_bisection(event.read(BisectionAnswer))}\n"


def _join(parsed: argparse.Namespace, ledger: Ledger) -> str:
    one, other = _find_told(ledger, parsed.incident), ledger.find(parsed.other)
    both = f"{one.id} and {other.id}"
    shared = {moved.series for moved in one.moved} & {moved.series for moved in other.moved}
    faults = (
        (one.id == other.id, f"{one.id} is one incident already."),
        (other.into, f"{other.id} is joined to {other.into} already. Split it first."),
        (one.kind != other.kind or not other.moved, f"{both} are not of one kind."),
        ({one.state, other.state} - ledgers.OPEN_STATES, f"{both}: one of them is settled."),
        (
            max(one.after, other.after) >= min(one.begin, other.begin),
            f"{both} cannot have one cause: one began before the last good night of the other.",
        ),
        (shared, f"{both} have series in common, which moved twice: {', '.join(sorted(shared)):.200}."),
    )
    for fault, words in faults:
        if fault:
            raise DashboardError(words)
    event = Event.of(_format_now(), _name_user(parsed), ledgers.MERGED, other.id, Merged(one.id, parsed.words))
    incident_file.append(incident_file.file_of(Home(parsed.home)), [event])
    return f"{other.id} is told as part of {one.id} from now on.\n"


def _split(parsed: argparse.Namespace, ledger: Ledger) -> str:
    incident = ledger.find(parsed.incident)
    source, name = ledger.incidents.get(incident.into, incident), incident.id
    chosen = [moved for moved in source.moved if moved.part == name]
    if not incident.into:
        names = (f"{name}-{number}" for number in itertools.count(2))
        name = next(name for name in names if name not in ledger.incidents)
        chosen = [
            moved
            for moved in source.moved
            if parsed.series and any(fnmatch.fnmatch(text, parsed.series) for text in (moved.series, moved.name))
        ]
    if not chosen or len(chosen) == len(source.moved):
        known = ", ".join(moved.name for moved in source.moved[:_SHOWN])
        problem = f"--series {parsed.series!r:.100} matches {'all' if chosen else 'none'} of its series"
        raise DashboardError(f"{incident.id} is not joined to another one, and {problem}: {known:.500}.")
    event = Event.of(
        _format_now(), _name_user(parsed), ledgers.SEPARATED, name,
        Separated(source.id, tuple(moved.series for moved in chosen), parsed.words),
    )  # fmt: skip
    incident_file.append(incident_file.file_of(Home(parsed.home)), [event])
    return f"{name} has {len(chosen)} of the {len(source.moved)} series of {source.id} from now on.\n"


def _silence(parsed: argparse.Namespace, ledger: Ledger) -> str:
    if not 0 < parsed.days <= 365:
        raise DashboardError(f"--days {parsed.days:g}: a silence must end; use more than 0 and at most 365 days.")
    until = f"{common.utc_now() + datetime.timedelta(days=parsed.days):%Y-%m-%dT%H:%M:%SZ}"
    told = Silenced(parsed.pattern, until, parsed.words)
    event = Event.of(_format_now(), _name_user(parsed), ledgers.SILENCED, "", told)
    incident_file.append(incident_file.file_of(Home(parsed.home)), [event])
    return f"{parsed.pattern} is silenced until {until}. It is still judged.\n"


def _unsilence(parsed: argparse.Namespace, ledger: Ledger) -> str:
    standing = ledger.silences_at(_format_now())
    if all(silence.pattern != parsed.pattern for silence in standing):
        known = ", ".join(dict.fromkeys(silence.pattern for silence in standing)) or "none"
        raise DashboardError(f"no silence has the pattern {parsed.pattern!r}. In force: {known}.")
    event = Event.of(
        _format_now(), _name_user(parsed), ledgers.UNSILENCED, "", Unsilenced(parsed.pattern, parsed.words)
    )
    incident_file.append(incident_file.file_of(Home(parsed.home)), [event])
    return f"{parsed.pattern} is reported again from the next night on.\n"


def _format_now() -> str:
    return f"{common.utc_now():%Y-%m-%dT%H:%M:%SZ}"


def _name_user(parsed: argparse.Namespace) -> str:
    who = str(parsed.who or name_user())
    if who == ledgers.DETECTOR:
        raise DashboardError(f"--who {who}: this name is reserved for the detector. Give your own name.")
    return who


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python3 -m dashboard incidents", description="Manage the incidents of a home."
    )
    parser.add_argument("home", type=Path, metavar="HOME")
    parser.set_defaults(do=_list, all=False)
    verbs = parser.add_subparsers(metavar="VERB", title="verbs", description="VERB --help says more; without one: list")
    listed = verbs.add_parser("list", help="list open incidents and silences")
    listed.add_argument("--all", action="store_true", help="include settled incidents")
    listed.set_defaults(do=_list)
    for name, do, help_text in (
        ("show", _show, "show one incident with its history"),
        ("explain", _explain, "explain the decision behind an incident by replaying it from the stored inputs"),
    ):
        _add_incident(verbs.add_parser(name, help=help_text)).set_defaults(do=do)
    for name, state, help_text in (
        ("ack", ledgers.ACKNOWLEDGED, "mark an incident as being looked at"),
        ("expect", ledgers.EXPECTED, "accept the change: the new level becomes the baseline"),
        ("close", ledgers.FIXED, "close an incident"),
    ):
        verb = _add_note_argument(_add_incident(verbs.add_parser(name, help=help_text)))
        if name == "close":
            choices = (ledgers.FIXED, ledgers.FALSE_ALARM)
            verb.add_argument("--as", dest="as_state", choices=choices, help="reason: fixed (default) or false_alarm")
        verb.set_defaults(do=_settle(state))
    note = _add_note_argument(_add_incident(verbs.add_parser("note", help="comment, assign or link an incident")))
    note.add_argument("--owner", default="", metavar="NAME", help="who looks after it from now on")
    note.add_argument("--issue", default="", metavar="URL", help="where it is discussed")
    note.set_defaults(do=_note)
    bisected = _add_incident(verbs.add_parser("bisected", help="attach the result of `dashboard bisect`"))
    bisected.add_argument("result", type=Path, metavar="RESULT", help="file written by bisect to results/tries")
    _add_who(bisected).set_defaults(do=_add_bisection)
    joined = _add_incident(verbs.add_parser("join", help="tell two incidents of one cause as one; `split` undoes it"))
    joined.add_argument("other", metavar="OTHER", help="the one that becomes a part of INCIDENT")
    _add_note_argument(joined).set_defaults(do=_join)
    split = _add_incident(
        verbs.add_parser("split", help="tell an incident that was joined, or some series, apart; `join` undoes it")
    )
    split.add_argument("--series", default="", metavar="PATTERN", help="these, with * and ?, become a new incident")
    _add_note_argument(split).set_defaults(do=_split)
    silence = verbs.add_parser("silence", help="do not report incidents if their ID or all of their series match")
    silence.add_argument("pattern", metavar="PATTERN", help="with * and ?")
    silence.add_argument("--days", type=float, default=_DAYS, help=f"duration (default: {_DAYS})")
    _add_note_argument(silence).set_defaults(do=_silence)
    unsilence = verbs.add_parser("unsilence", help="end a silence early")
    unsilence.add_argument(
        "pattern", metavar="PATTERN", help="the pattern as it was given; `list` shows the silences in force"
    )
    _add_note_argument(unsilence).set_defaults(do=_unsilence)
    return parser


def _add_incident(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("incident", metavar="INCIDENT", help="incident ID or a prefix of it")
    return parser


def _add_note_argument(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("words", metavar="WORDS", nargs="?", default="", help="reason, for later readers")
    return _add_who(parser)


def _add_who(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("--who", metavar="NAME", help="who did it (default: the current user)")
    return parser


def act(arguments: Sequence[str]) -> str:
    """Execute a command line and return its output; DashboardError where it cannot be done."""
    parsed = _make_parser().parse_args(arguments)
    if not output_of(parsed.home).is_dir():
        raise DashboardError(
            f"{output_of(parsed.home)}: no such folder. Run a night with the subsystem stat_alerts first."
        )
    do: Callable[[argparse.Namespace, Ledger], str] = parsed.do
    return do(parsed, ledger_of(parsed.home))


@plain_output()
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; 0, or 2 where what was asked for cannot be."""
    try:
        sys.stdout.write(act(sys.argv[1:] if arguments is None else arguments))
    except DashboardError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0
