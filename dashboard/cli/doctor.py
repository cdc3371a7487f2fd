"""`doctor`: what is wrong with a home or its machine, each with its remedy; `rebuild`: its indexes made anew."""

from __future__ import annotations

import argparse
import datetime
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from dashboard.cli.arguments import OK_CODE, SOME_FAILED, Verbs, add_home_verb, find_code, find_home
from dashboard.cli.check import find_faults
from dashboard.cli.devices import survey_devices
from dashboard.night.lock import night_lock
from dashboard.plan.home_config import read_home_config
from dashboard.plan.job import CodeFolders
from dashboard.plan.plan import make_plan
from dashboard.plan.settings import HomeConfig
from dashboard.schedule.schedule import find_schedule
from dashboard.schedule.watch import watch
from dashboard.upkeep import disk, drill, indexes, steadiness, strays
from dashboard.upkeep.finding import Finding, Severity, make_fault, make_good, make_warning
from dashboard.upkeep.strays import Stray
from tvmdash import common
from tvmdash.contracts.routes import format_fault, read_states
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.text import format_duration, format_list

_TOOLS = {
    "flock": "apt install util-linux",
    "git": "apt install git",
    "bash": "apt install bash",
}
_NAMED = 3


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    """Add them to the command line."""
    doctor = add_home_verb(
        verbs, "doctor", _doctor, "find what is wrong with a home and its machine; --fix what is safe"
    )
    doctor.add_argument("--fix", action="store_true", help="do what is safe: set strays aside, make indexes anew")
    doctor.add_argument(
        "--clock-is-right", action="store_true", help="nights dated ahead of it are strays, however many they are"
    )
    doctor.add_argument("--no-drill", action="store_true", help="do not try to restore the newest archive")
    add_home_verb(verbs, "rebuild", _rebuild, "make every index of a home anew from its files", code=False)


def _doctor(arguments: argparse.Namespace) -> int:
    home = find_home(arguments)
    found = list(_examine(home, find_code(arguments), arguments))
    print("\n".join(map(str, found)))
    left = [finding for finding in found if finding.severity is Severity.FAULT]
    if arguments.fix:
        fixable = [finding for finding in found if finding.fix]
        with night_lock(home):
            for finding in fixable:
                print(f"fixed    {finding.subject}: {finding.fix() if finding.fix else ''}")
        left = [finding for finding in left if not finding.fix]
    elif fixable := [finding for finding in found if finding.fix]:
        print(f"\n{len(fixable)} of these can be mended by --fix.")
    return SOME_FAILED if left else OK_CODE


def _examine(home: Home, code: CodeFolders, arguments: argparse.Namespace) -> Iterator[Finding]:
    """Everything, the home's own files first."""
    now = common.utc_now()
    yield from _find_in_config(home, code)
    yield from _find_in_history(home, now, is_clock_right=arguments.clock_is_right)
    yield from _find_in_indexes(home)
    yield from _find_in_schedule(home, now)
    yield from _find_tools()
    yield from _find_in_routes(home)
    try:
        config = read_home_config(home)
    except DashboardError:
        return  # told as the config's fault
    yield from _find_in_archives(home, config, now, drills=not arguments.no_drill)
    yield from disk.examine(home, config.folders, config.min_free_bytes)
    yield from _find_permissions(home, config)
    yield from steadiness.examine()


def _find_in_config(home: Home, code: CodeFolders) -> Iterator[Finding]:
    """What `check` finds: configs, scripts, folders, hosts, devices."""
    faults = find_faults(home, code)
    remedy = f"python3 -m dashboard check {home.root} says the same, and is quicker."
    yield from (make_fault("config", fault, remedy if fault is faults[-1] else "") for fault in faults)
    if not faults:
        yield make_good("config", "no faults (`check`).")
        for line in survey_devices(make_plan(home, code)):
            remedy = f"python3 -m dashboard devices {home.root}"
            yield make_fault("drivers", line.text, remedy) if line.is_fault else make_good("drivers", line.text)


def _find_in_history(home: Home, now: datetime.datetime, *, is_clock_right: bool) -> Iterator[Finding]:
    ahead = strays.list_ahead(home, now)
    if strays.are_too_many(ahead) and not is_clock_right:
        text = f"it says {now:%Y-%m-%d %H:%M} UTC, and {len(ahead)} nights are dated after that ({ahead[-1]} the last)."
        remedy = (
            "If it is wrong: sudo timedatectl set-ntp true. If it was ahead in those nights: --clock-is-right --fix."
        )
        yield make_fault("clock", text, remedy)
    found = list(strays.find_strays(home, now, is_clock_right=is_clock_right))
    for stray in found:
        text = f"{stray.path.relative_to(home.root)}: {stray.why}."
        yield make_fault("history", text, "--fix sets it aside, and loses nothing.", _make_fix(home, stray, now))
    if not found:
        nights = len(home.night_stamps())
        yield make_good("history", f"{nights} night{'s' * (nights != 1)}, every file is what its name says.")


def _make_fix(home: Home, stray: Stray, now: datetime.datetime) -> Callable[[], str]:
    return lambda: " ".join(strays.set_aside(home, [stray], now))


def _find_in_indexes(home: Home) -> Iterator[Finding]:
    differences = list(indexes.find_differences(home))
    if differences:
        text = f"the index of series is not what the files say: {format_list(differences, _NAMED)}."
        remedy = f"python3 -m dashboard rebuild {home.root}"
        yield make_warning("index", text, remedy, lambda: format_list(indexes.rebuild(home), 20))
    else:
        yield make_good("index", "it has every night that has files.")


def _find_in_schedule(home: Home, now: datetime.datetime) -> Iterator[Finding]:
    try:
        schedule = find_schedule(home)
    except DashboardError as error:
        yield make_fault("schedule", str(error), "Mend it: `watch` cannot say whether nights run.")
        return
    if schedule is None:
        text = "neither this user's crontab nor a timer of systemd runs nights of this home."
        yield make_warning(
            "schedule", text, 'docs/how-to/nightly.md has the line; or write "schedule" into the config.'
        )
        return
    if not schedule.is_enabled:
        yield make_fault(
            "schedule",
            f"{schedule.origin} is not enabled.",
            f"systemctl --user enable --now {Path(schedule.origin).name}",
        )
    watched = watch(home, schedule, now, None)
    if watched.is_quiet:
        last = watched.last.stamp if watched.last else "none ever was"
        text = f"nights should begin at {schedule}, and none was complete since one was due (the last: {last})."
        yield make_fault("schedule", text, "See what cron mailed, or journalctl --user -u dashboard, and `status`.")
    else:
        yield make_good("schedule", f"nights run as they should: {schedule}.")


def _find_in_archives(home: Home, config: HomeConfig, now: datetime.datetime, *, drills: bool) -> Iterator[Finding]:
    last = drill.read_drill(home)
    if drills and home.night_stamps():
        last = drill.run_drill(home, config.backup, config.tmp_data, now)
    if not home.night_stamps():
        yield make_good("archives", "there is none yet.")
    elif last is None:
        yield make_warning("archives", "no restore was ever tried.", f"python3 -m dashboard doctor {home.root}")
    elif last.fault:
        remedy = f"python3 -m dashboard verify {config.backup} names all that is broken."
        yield make_fault("archives", f"the newest one could not be restored: {last.fault}", remedy)
    else:
        tried = f"{last.archive} was restored with {last.files} files in {format_duration(last.elapsed_s)}"
        yield make_good("archives", f"{tried} and removed again ({last.at[:8]}).")


def _find_tools() -> Iterator[Finding]:
    lacking = {tool: remedy for tool, remedy in _TOOLS.items() if shutil.which(tool) is None}
    yield from (make_warning("tools", f"{tool} is not there.", remedy) for tool, remedy in lacking.items())
    if not lacking:
        yield make_good("tools", f"{', '.join(_TOOLS)} are there.")


def _find_in_routes(home: Home) -> Iterator[Finding]:
    states = list(read_states(home))
    faults = list(filter(None, map(format_fault, states)))
    yield from (make_fault("routes", text, f"python3 -m dashboard routes {home.root} --test") for text in faults)
    if not faults:
        yield make_good("routes", f"{len(states)} route{'s' * (len(states) != 1)}, as after the last night.")


def _find_permissions(home: Home, config: HomeConfig) -> Iterator[Finding]:
    """Files of other users in the folders that nights write to: a night that somebody ran by hand as root."""
    own = os.getuid()
    folders = [home.root, home.nights, *(home.data(name) for name in home.experiments_with_data()), *config.folders]
    foreign = [folder for folder in folders if folder.is_dir() and own and folder.stat().st_uid != own]
    for folder in foreign:
        yield make_fault("permissions", f"{folder} belongs to another user.", f"sudo chown -R {own} {folder}")
    if home.config_file.is_file() and home.config_file.stat().st_mode & 0o002:
        text = f"{home.config_file}: everybody may write it, and with it run what they like as this user."
        yield make_fault("permissions", text, f"chmod o-w {home.config_file}", lambda: _close(home.config_file))
    if not foreign:
        yield make_good("permissions", "nights can write where they must.")


def _close(path: Path) -> str:
    path.chmod(path.stat().st_mode & ~0o002)
    return f"{path}: only its owner and group may write it now."


def _rebuild(arguments: argparse.Namespace) -> int:
    home = find_home(arguments)
    with night_lock(home):
        print("\n".join(indexes.rebuild(home)) or "There is nothing to make an index of yet.")
    return OK_CODE
