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
)
from dashboard.cli.investigate.options import parse_percent
from dashboard.report import signoff_page
from tvmdash import common, structured
from tvmdash.contracts.signoff import SCHEMA_VERSION, SignoffVerdict
from tvmdash.errors import DashboardError
from tvmdash.verdict import MATTERS

if TYPE_CHECKING:
    from pathlib import Path

    from tvmdash.contracts.signoff import Signoff
    from tvmdash.dashboard_info import Home

_NAMES = "a version, commit or artifact's key, a night's stamp or date, or a release that was annotated"
_CODES = {
    SignoffVerdict.REGRESSION: TVM_WORSE,
    SignoffVerdict.UNCLEAR: CANNOT_TELL,
    SignoffVerdict.CLEAR: OK_CODE,
}


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    """Add it to the command line."""
    about = "say what changed from one TVM to another, by what the home measured; what stands, what is waived"
    signoff = add_home_verb(verbs, "signoff", _sign_off, about, code=False)
    signoff.add_argument("a", metavar="A", help=f"the TVM to compare with: {_NAMES}")
    signoff.add_argument("b", metavar="B", help="the other one, as the release to be")
    signoff.add_argument(
        "--matters", type=parse_percent, default=MATTERS, metavar="PERCENT",
        help="a change for the worse that must be excluded of every series; 5%%",
    )  # fmt: skip
    for option, what in (("--waive", "answer for what is so named"), ("--unwaive", "take a waiver back")):
        signoff.add_argument(
            option, action="append", default=[], metavar="NAME",
            help=f"{what}: a series' name or ID, or an incident's ID, with * and ?",
        )  # fmt: skip
    signoff.add_argument("--reason", default="", metavar="WORDS", help="why, for those who read it later")
    signoff.add_argument("--by", metavar="WHO", help="who answers for it; by default the user who runs this")
    signoff.add_argument("--markdown", type=make_absolute, metavar="FILE", help="write the table there as well")
    signoff.add_argument("--json", type=make_absolute, metavar="FILE", help="write every value there as well")


def _sign_off(arguments: argparse.Namespace) -> int:
    from tvmdash.signoff import text  # the detector's imports cost the other verbs a third of a second

    home = find_home(arguments)
    done = _make(home, arguments)
    print(text.format_table(done))
    if arguments.markdown:
        _write(arguments.markdown, signoff_page.format_page(done))
    if arguments.json:
        _write(arguments.json, common.dump_json({"schema_version": SCHEMA_VERSION, **structured.to_json(done)}))
    return _CODES[done.verdict]


def _write(path: Path, text: str) -> None:
    try:
        common.write_text(path, text)
    except OSError as error:
        raise DashboardError(f"{path}: {error.strerror}. Name a file in a folder that is there.") from error


def _make(home: Home, arguments: argparse.Namespace) -> Signoff:
    """The signoff with the waivers that are given or taken back now."""
    from tvmdash.incidents.annotations import name_user
    from tvmdash.signoff import waivers
    from tvmdash.signoff.signoff import sign_off

    names = (arguments.a, arguments.b)
    done = sign_off(home, names, matters=arguments.matters)
    if not arguments.waive and not arguments.unwaive:
        if arguments.reason or arguments.by:
            raise DashboardError("--reason and --by belong to --waive NAME or --unwaive NAME. Give one of these.")
        return done
    said = {"who": arguments.by or name_user(), "reason": arguments.reason}
    events = [*waivers.take_back(done, arguments.unwaive, **said), *waivers.waive(done, arguments.waive, **said)]
    waivers.append(home, events)
    return sign_off(home, names, matters=arguments.matters)
