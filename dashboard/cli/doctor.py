"""`doctor`: diagnose a home and its machine and suggest remedies; `rebuild`: rebuild its indexes."""

from __future__ import annotations

import argparse
import datetime
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from dashboard.cli.arguments import OK_CODE, SOME_FAILED, Verbs, add_home_verb, find_code, find_home
from dashboard.cli.check import find_faults, judge_last_start
from dashboard.cli.devices import survey_devices
from dashboard.cli.plan import add_no_look_up, survey_tvms
from dashboard.cli.watch import read_grace
from dashboard.night import folders
from dashboard.night.lock import is_held, night_lock
from dashboard.plan.home_config import read_home_config
from dashboard.plan.job import CodeFolders
from dashboard.plan.plan import make_plan
from dashboard.plan.settings import HomeConfig
from dashboard.schedule import starters
from dashboard.schedule.schedule import find_schedule
from dashboard.schedule.watch import watch
from dashboard.upkeep import disk, drill, indexes, steadiness, strays
from dashboard.upkeep.finding import HomeFinding, Severity, make_fault, make_good, make_warning
from dashboard.upkeep.strays import Returning, Stray
from tvmdash import common
from tvmdash.common.files import mounts
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.notify.state import format_fault, read_states
from tvmdash.text import format_duration, format_list

_TOOLS = {
    "flock": "apt install util-linux",
    "git": "apt install git",
    "bash": "apt install bash",
}
_NAMED = 3


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    doctor = add_home_verb(
        verbs, "doctor", _doctor, "diagnose a home and its machine; --fix repairs what is safe to repair"
    )
    doctor.add_argument(
        "--fix", action="store_true", help="make the safe repairs: move stray files aside, rebuild indexes"
    )
    doctor.add_argument(
        "--clock-is-right",
        action="store_true",
        help="trust the clock: treat nights dated in the future as strays, however many there are",
    )
    add_no_look_up(doctor)
    doctor.add_argument("--no-drill", action="store_true", help="do not test-restore the newest archive")
    add_home_verb(verbs, "rebuild", _rebuild, "rebuild every index of a home from its files", code=False)


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
        print(f"\n--fix can repair {len(fixable)} of these.")
    return SOME_FAILED if left else OK_CODE


def _examine(home: Home, code: CodeFolders, arguments: argparse.Namespace) -> Iterator[HomeFinding]:
    """Examine everything, the home's own files first."""
    now = common.utc_now()
    yield from _find_in_config(home, code, rebuild=not arguments.no_rebuild_tvm)
    yield from _find_in_history(home, now, is_clock_right=arguments.clock_is_right)
    yield from _find_in_indexes(home)
    start = judge_last_start(home)
    # `check` only warns, as the cause may have been removed since; here it is a fault until a night begins.
    yield from [] if start is None else [replace(start, severity=Severity.FAULT)]
    yield from _find_in_schedule(home, now)
    yield from _find_tools()
    yield from _find_in_routes(home)
    try:
        config = read_home_config(home)
    except DashboardError:
        text = "archives, disk, permissions and machine were not examined, because the config has errors."
        yield make_warning("doctor", text, "Fix the config first, then run `doctor` again.")
        return
    yield from _find_in_archives(home, config, now, drills=not arguments.no_drill)
    yield from _find_set_aside(config)
    yield from disk.examine(home, config.folders, config.min_free_bytes)
    yield from _find_permissions(home, config)
    yield from steadiness.examine()


def _find_in_config(home: Home, code: CodeFolders, *, rebuild: bool) -> Iterator[HomeFinding]:
    """Yield the findings of `check`: configs, scripts, folders, hosts, TVMs, devices."""
    faults = find_faults(home, code)
    remedy = f"python3 -m dashboard check {home.root} runs only these checks and is faster."
    yield from (make_fault("config", fault, remedy if fault is faults[-1] else "") for fault in faults)
    if not faults:
        yield make_good("config", "no faults (`check`).")
        plan = make_plan(home, code)
        for line in survey_tvms(plan, rebuild=rebuild):
            text = line.text.removeprefix("TVM: ")
            yield make_fault("TVM", text, "The next night asks again.") if line.is_fault else make_good("TVM", text)
        for line in survey_devices(plan):
            remedy = f"python3 -m dashboard devices {home.root}"
            yield make_fault("drivers", line.text, remedy) if line.is_fault else make_good("drivers", line.text)


def _find_in_history(home: Home, now: datetime.datetime, *, is_clock_right: bool) -> Iterator[HomeFinding]:
    ahead = strays.list_ahead(home, now)
    if strays.are_too_many(ahead) and not is_clock_right:
        text = (
            f"the clock says {now:%Y-%m-%d %H:%M} UTC, but {len(ahead)} nights are dated later (the last one "
            f"{ahead[-1]})."
        )
        remedy = (
            "If the clock is wrong now: sudo timedatectl set-ntp true. If it was ahead on those nights: "
            "--clock-is-right --fix."
        )
        yield make_fault("clock", text, remedy)
    found = list(strays.find_strays(home, now, is_clock_right=is_clock_right))
    for stray in found:
        text = f"{stray.path.relative_to(home.root)}: {stray.why}."
        fix = _make_fix(home, stray, now, is_clock_right=is_clock_right)
        yield make_fault("history", text, "--fix moves it aside; nothing is deleted.", fix)
    for item in (returning := strays.find_returning(home, now)):
        text = f"{item.path.relative_to(home.root)}: set aside while the clock was behind; the clock has passed it."
        yield make_warning("history", text, "--fix, or the next night, moves it back.", _make_return(home, item))
    if not found and not returning:
        nights = len(home.night_stamps())
        yield make_good("history", f"{nights} night{'s' * (nights != 1)}, all files match their names.")
    if last := next((night for night in home.last_nights(1) if night.pairs), None):
        yield make_good("pairs", f"the last night measured {last.pairs} in turn, {last.speed_of_pairs}.")


def _make_fix(home: Home, stray: Stray, now: datetime.datetime, *, is_clock_right: bool) -> Callable[[], str]:
    return lambda: " ".join(strays.set_aside(home, [stray], now, is_clock_right=is_clock_right))


def _make_return(home: Home, item: Returning) -> Callable[[], str]:
    return lambda: " ".join(strays.put_back(home, [item]))


def _find_in_indexes(home: Home) -> Iterator[HomeFinding]:
    differences = list(indexes.find_differences(home))
    if differences:
        text = f"the index does not match the data files: {format_list(differences, _NAMED)}."
        remedy = f"python3 -m dashboard rebuild {home.root}"
        yield make_warning("index", text, remedy, lambda: format_list(indexes.rebuild(home), 20))
    elif network := mounts.find_network_type(home.root):
        text = (
            f"the home lies on {network}: the index is written without a log beside it, and readers wait for a night."
        )
        yield make_warning("index", text, "A local disk is faster; the backup can stay on the network.")
    else:
        yield make_good("index", "the index covers every night that has data files.")


def _find_in_schedule(home: Home, now: datetime.datetime) -> Iterator[HomeFinding]:
    try:
        schedule = find_schedule(home)
    except DashboardError as error:
        yield make_fault("schedule", str(error), "Fix it; until then `watch` cannot tell whether nights run.")
        return
    if schedule is None:
        text = "neither this user's crontab nor a systemd timer starts nights for this home."
        remedy = 'Run `install`. If something else starts them, say when by "schedule" in the config.'
        yield make_warning("schedule", text, remedy)
        return
    if not schedule.is_enabled:
        yield make_fault(
            "schedule",
            f"{schedule.origin} is not enabled.",
            f"systemctl --user enable --now {Path(schedule.origin).name}",
        )
    watched = watch(home, schedule, now, read_grace(home), is_running=is_held(home))
    if watched.is_overdue:
        last = watched.last.stamp if watched.last else "none so far"
        text = (
            f"the schedule is {schedule}, but no night has completed since the last one was due (last complete "
            f"night: {last})."
        )
        yield make_fault("schedule", text, "Check cron's mail or journalctl --user -u dashboard, and `status`.")
    elif watched.last is None:
        yield make_good("schedule", f"no night was due yet: {schedule}.")
    else:
        yield make_good("schedule", f"nights run on schedule: {schedule}.")


def _find_in_archives(home: Home, config: HomeConfig, now: datetime.datetime, *, drills: bool) -> Iterator[HomeFinding]:
    if config.backup_copy:
        yield _judge_copy(config, drill.read_drill(home, drill.OF_COPY))
    if not home.night_stamps():
        yield make_good("archives", "no archive yet.")
        return
    if drill.is_empty(config.backup):
        text = f"{config.backup} contains no archive. It is so after a restore; the next night makes one."
        remedy = (
            "If nights of this home were archived there, find out what removed them: this disk holds the only copy."
        )
        yield make_warning("archives", text, remedy)
        return
    last = drill.run_drill(home, config.backup, config.tmp_data, now) if drills else drill.read_drill(home)
    if last is None:
        yield make_warning(
            "archives", "restoring an archive has never been tested.", f"python3 -m dashboard doctor {home.root}"
        )
    elif last.fault:
        remedy = f"python3 -m dashboard verify {config.backup} lists everything that is damaged."
        yield make_fault("archives", f"the newest archive could not be restored: {last.fault}", remedy)
    else:
        tried = f"test restore of {last.archive} succeeded: {last.files} files in {format_duration(last.elapsed_s)}"
        yield make_good("archives", f"{tried}; the copy was deleted ({last.at[:8]}).")


def _judge_copy(config: HomeConfig, last: drill.Drill | None) -> HomeFinding:
    """Judge by the last weekly drill, because fetching all of it takes long."""
    remedy = f"python3 -m dashboard verify {config.backup_copy} fetches and checks all of it."
    if last is None:
        return make_good("archives", f"a restore from {config.backup_copy} is tested once a week; none was due yet.")
    if last.fault:
        text = f"restoring from {config.backup_copy} failed on {last.at[:8]}: {last.fault}"
        return make_fault("archives", text, remedy)
    return make_good("archives", f"test restore of {last.archive} from {config.backup_copy} succeeded ({last.at[:8]}).")


def _find_set_aside(config: HomeConfig) -> Iterator[HomeFinding]:
    paths = folders.list_set_aside(config.tmp_data)
    if paths:
        text = f"nights could not tidy {format_list([*map(str, paths)], _NAMED)} and moved it aside."
        yield make_warning("set aside", text, "The notes of those nights say why. Delete it once nobody needs it.")


def _find_tools() -> Iterator[HomeFinding]:
    lacking = {tool: remedy for tool, remedy in _TOOLS.items() if shutil.which(tool) is None}
    yield from (make_warning("tools", f"{tool} is not installed.", remedy) for tool, remedy in lacking.items())
    if not lacking:
        yield make_good("tools", f"{', '.join(_TOOLS)} are installed.")


def _find_in_routes(home: Home) -> Iterator[HomeFinding]:
    states = list(read_states(home))
    faults = list(filter(None, map(format_fault, states)))
    yield from (make_fault("routes", text, f"python3 -m dashboard routes {home.root} --test") for text in faults)
    if not _is_anybody_told(home):
        mail = "" if starters.can_mail() else ", but no mail program (sendmail) is installed"
        text = f"`watch` has no route on which to tell that nights stopped; it only prints it. Cron mails that{mail}."
        yield make_warning("routes", text, "Set up a route (docs/how-to/routes.md) or Slack (docs/how-to/slack.md).")
    elif not states:
        yield make_good("routes", "no night has sent anything on a route yet.")
    elif not faults:
        yield make_good("routes", f"{len(states)} route{'s' * (len(states) != 1)}, no faults as of the last night.")


def _is_anybody_told(home: Home) -> bool:
    """Return True where `watch` has a route to tell that nights stopped, even one with faults."""
    from tvmdash.notify.config import read_despite_faults  # the detector's imports cost a third of a second
    from tvmdash.notify.spells import list_watching

    try:
        return bool(list_watching(home, read_despite_faults(home)))
    except DashboardError:
        return True  # told as the config's fault


def _find_permissions(home: Home, config: HomeConfig) -> Iterator[HomeFinding]:
    """Folders that nights write to but that belong to another user, e.g. after a night that was run as root."""
    own = os.getuid()
    folders = [home.root, home.nights, *(home.data(name) for name in home.experiments_with_data()), *config.folders]
    # Root may write anywhere.
    foreign = [folder for folder in folders if folder.is_dir() and own and folder.stat().st_uid != own]
    for folder in foreign:
        yield make_fault("permissions", f"{folder} belongs to another user.", f"sudo chown -R {own} {folder}")
    if home.config_file.is_file() and home.config_file.stat().st_mode & 0o002:
        text = f"{home.config_file}: anyone can write to this file and thereby run any command as this user."
        yield make_fault("permissions", text, f"chmod o-w {home.config_file}", lambda: _close(home.config_file))
    if not foreign:
        yield make_good("permissions", "nights can write to every folder they need.")


def _close(path: Path) -> str:
    path.chmod(path.stat().st_mode & ~0o002)
    return f"{path}: now writable by its owner and group only."


def _rebuild(arguments: argparse.Namespace) -> int:
    home = find_home(arguments)
    with night_lock(home):
        print("\n".join(indexes.rebuild(home)) or "There is nothing to index yet.")
    return OK_CODE
