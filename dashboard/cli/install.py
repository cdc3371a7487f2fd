"""`install`: schedule nights with cron or systemd; shows the changes and writes them after confirmation."""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from dashboard.cli.arguments import OK_CODE, Verbs, add_home_verb, find_home, make_absolute
from dashboard.plan.job import REPOSITORY
from dashboard.schedule import starters
from dashboard.schedule.schedule import find_started
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError

_TIME = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    parser = add_home_verb(verbs, "install", _install, "schedule nights with cron or systemd", code=False)
    parser.add_argument(
        "--at", type=_parse_time, default=(3, 0), metavar="HH:MM", help="daily start time (default: 03:00)"
    )
    parser.add_argument(
        "--with",
        dest="starter",
        choices=["cron", "systemd"],
        help="scheduler to use (default: cron if it is installed)",
    )
    parser.add_argument(
        "--settings",
        type=make_absolute,
        metavar="FILE",
        help="settings file of dashboard_job.sh, which updates the dashboard before each night",
    )
    parser.add_argument("--remove", action="store_true", help="remove what `install` wrote")
    parser.add_argument(
        "--yes", action="store_true", help="write without asking for confirmation; the changes are always shown"
    )


def _parse_time(text: str) -> tuple[int, int]:
    match = _TIME.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"invalid time of day {text!r} (use HH:MM, e.g. 03:00)")
    return int(match[1]), int(match[2])


def _install(arguments: argparse.Namespace) -> int:
    home = find_home(arguments)
    if arguments.remove:
        return _remove(home, is_sure=arguments.yes)
    starter = _make_starter(home, arguments)
    with_cron = (arguments.starter or _choose()) == "cron"
    _refuse_second(home, with_cron=with_cron)
    if with_cron:
        before = starters.read_crontab()
        own = starter.make_cron_lines()
        after = starters.replace_in_crontab(before, home.root, own)
        _show(
            _describe_change(before, after, home),
            own,
        )
        if after != before and _is_wanted(is_sure=arguments.yes):
            starters.write_crontab(after)
            print("Crontab updated. `crontab -l` lists it; cron mails you the output of nights that fail.")
            if not starters.can_mail():
                print(
                    "But no mail program (sendmail) is installed, so cron drops that output: install one, or set up a "
                    "route (docs/how-to/routes.md)."
                )
    else:
        units = starter.make_units()
        for name, text in units.items():
            _show(f"{Path(starters.UNITS) / name}", text.splitlines())
        if _is_wanted(is_sure=arguments.yes):
            starters.write_units(units)
            print("Units written and started. `systemctl --user list-timers` shows when the next night starts.")
            if not starters.does_linger():
                print("User timers run only while you are logged in; `loginctl enable-linger` keeps them running.")
    return OK_CODE


def _describe_change(before: list[str], after: list[str], home: Home) -> str:
    if after == before:
        return "Your crontab already has these lines"
    if starters.make_marks(home.root)[0] in before:
        return "These lines will replace those of this home in your crontab"
    return "These lines will be added to your crontab"


def _make_starter(home: Home, arguments: argparse.Namespace) -> starters.Starter:
    script = str(REPOSITORY / "run_dashboard.sh")
    if not Path(script).is_file():
        raise DashboardError(
            f"{script} not found: this dashboard was not installed from a git checkout. Run `install` in a checkout."
        )
    run = [script, str(home.root)]
    if arguments.settings is not None:
        if not arguments.settings.is_file():
            raise DashboardError(
                f"{arguments.settings}: no such file. --settings takes a settings file of dashboard_job.sh."
            )
        run = [str(REPOSITORY / "dashboard_job.sh"), "--settings", str(arguments.settings)]
    return starters.Starter(home.root, run, [script, "--command", "watch", str(home.root)], *arguments.at)


def _choose() -> str:
    if shutil.which("crontab"):
        return "cron"
    if starters.has_user_systemd():
        return "systemd"
    raise DashboardError(
        "Neither cron nor a systemd user session is available. Install cron (apt install cron), or have your own "
        "scheduler run run_dashboard.sh HOME."
    )


def _refuse_second(home: Home, *, with_cron: bool) -> None:
    """Refuse if something else already starts nights for this home, because each night would start twice."""
    own = set() if with_cron else {str(path) for path in starters.list_units(home.root)}
    own_lines = int(with_cron and starters.make_marks(home.root)[0] in starters.read_crontab())
    for started in find_started(home):
        if started.origin.startswith("crontab of ") and own_lines:
            own_lines -= 1
        elif started.origin not in own:
            raise DashboardError(
                f"{started.origin} already starts nights for {home.root} ({started.times.text}). Remove that first "
                "(`install --remove` removes what `install` wrote)."
            )


def _remove(home: Home, *, is_sure: bool) -> int:
    lines = starters.read_crontab() if shutil.which("crontab") else []
    left = starters.replace_in_crontab(lines, home.root, [])
    own_lines = lines if starters.make_marks(home.root)[0] in lines else []
    units = starters.list_units(home.root)
    if not own_lines and not units:
        print(f"`install` has written nothing for {home.root}; there is nothing to remove.")
        return OK_CODE
    if own_lines:
        _show("These lines will be removed from your crontab", [line for line in lines if line not in left])
    if units:
        _show("These units will be stopped and removed", list(map(str, units)))
    if _is_wanted(is_sure=is_sure):
        if own_lines:
            starters.write_crontab(left)
        if units:
            starters.remove_units(home.root)
        print("Removed.")
    return OK_CODE


def _show(title: str, lines: Sequence[str]) -> None:
    print(f"{title}:\n")
    print("".join(f"    {line}".rstrip() + "\n" for line in lines))


def _is_wanted(*, is_sure: bool) -> bool:
    if is_sure:
        return True
    if not sys.stdin.isatty():
        print("Nothing was changed. Pass --yes to apply the changes.")
        return False
    if input("Apply these changes? [y/N] ").strip().lower() in {"y", "yes"}:
        return True
    print("Nothing was changed.")
    return False
