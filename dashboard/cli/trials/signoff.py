"""`signoff`: every real change between two TVMs that the home has measured, open or waived."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from dashboard.cli.arguments import (
    CANNOT_TELL,
    OK_CODE,
    TVM_WORSE,
    Verbs,
    add_home_verb,
    find_home,
    make_absolute,
    parse_percent,
)
from tvmdash import common
from tvmdash.errors import DashboardError
from tvmdash.trials.signoff import SignoffVerdict
from tvmdash.verdict import MATTERS

if TYPE_CHECKING:
    from pathlib import Path

    from tvmdash.dashboard_info import Home
    from tvmdash.trials.signoff import Signoff

_NAMES = "a version, commit, artifact key, night stamp, date, or annotated release"
_CODES = {
    SignoffVerdict.REGRESSION: TVM_WORSE,
    SignoffVerdict.UNCLEAR: CANNOT_TELL,
    SignoffVerdict.CLEAR: OK_CODE,
}


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    about = "list every change between two TVMs that the home has measured, open or waived"
    signoff = add_home_verb(verbs, "signoff", _sign_off, about, code=False)
    signoff.add_argument("a", metavar="A", help=f"the TVM to compare with: {_NAMES}")
    signoff.add_argument("b", metavar="B", help="the TVM to sign off, e.g. a release candidate")
    signoff.add_argument(
        "--matters", type=parse_percent, default=MATTERS, metavar="PERCENT",
        help="regression that must be ruled out for every series (default: 5%%)",
    )  # fmt: skip
    for option, what in (("--waive", "waive a known regression"), ("--unwaive", "withdraw a waiver")):
        signoff.add_argument(
            option, action="append", default=[], metavar="NAME",
            help=f"{what}: series name or ID, or incident ID; * and ? are wildcards",
        )  # fmt: skip
    signoff.add_argument("--reason", default="", metavar="WORDS", help="reason for the waiver, for later readers")
    signoff.add_argument("--by", metavar="WHO", help="person responsible for the waiver (default: the current user)")
    signoff.add_argument("--markdown", type=make_absolute, metavar="FILE", help="also write the table to this file")
    signoff.add_argument("--json", type=make_absolute, metavar="FILE", help="also write all values to this file")


def _sign_off(arguments: argparse.Namespace) -> int:
    from tvmdash.signoff import text  # the detector's imports cost the other verbs a third of a second
    from tvmdash.signoff.signoff import make_trial

    home = find_home(arguments)
    done = _make(home, arguments)
    print(text.format_table(done))
    if arguments.markdown:
        _write(arguments.markdown, text.format_markdown(done))
    if arguments.json:
        _write(arguments.json, common.dump_json(make_trial(done).to_json()))
    return _CODES[done.verdict]


def _write(path: Path, text: str) -> None:
    try:
        common.write_text(path, text)
    except OSError as error:
        raise DashboardError(f"{path}: {error.strerror}. Give a file in an existing folder.") from error


def _make(home: Home, arguments: argparse.Namespace) -> Signoff:
    """Make the signoff with the waivers that are given or taken back now."""
    from tvmdash.incidents.annotations import name_user
    from tvmdash.signoff import waivers
    from tvmdash.signoff.signoff import sign_off

    names = (arguments.a, arguments.b)
    done = sign_off(home, names, matters=arguments.matters)
    if not arguments.waive and not arguments.unwaive:
        if arguments.reason or arguments.by:
            raise DashboardError("--reason and --by require --waive NAME or --unwaive NAME.")
        return done
    said = {"who": arguments.by or name_user(), "reason": arguments.reason}
    events = [*waivers.take_back(done, arguments.unwaive, **said), *waivers.waive(done, arguments.waive, **said)]
    waivers.append(home, events)
    return sign_off(home, names, matters=arguments.matters)
