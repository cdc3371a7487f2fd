"""One night, from the lock to the last word: artifacts, setup, run, then each experiment's tail, then subsystems."""

from __future__ import annotations

import contextlib
import datetime
import logging
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dashboard.night import engine, folders, recovery, repository
from dashboard.night.context import Context
from dashboard.night.hosts_tonight import list_remedies
from dashboard.night.journal import Journal
from dashboard.night.lock import PATIENCE_S, list_gaps, night_lock
from dashboard.night.phases import Phases
from dashboard.plan import home_machine
from dashboard.plan.devices import list_cards
from dashboard.plan.job import REPOSITORY, Job, Plan
from dashboard.process import orphans, process
from dashboard.upkeep import strays
from dashboard.upkeep.indexes import update_index
from tvmdash.common import parse_stamp, stamp_of, utc_now
from tvmdash.common.files import trees
from tvmdash.dashboard_info import INTERRUPTED, RUNNING, WEBSITE, Home, Night, StepResult
from tvmdash.dashboard_info.stages import SUBSYSTEM
from tvmdash.errors import DashboardError
from tvmdash.machine.identity import format_change

_log = logging.getLogger("night")


@dataclass(frozen=True)
class NightOrder:
    """A night on a host, as its home orders it: its stamp, of which `repository` its code is, how long it may wait.

    get_ready: called once the machine is this night's, before it gets its TVMs; returns notes for its record. Such a
    night ends once its measurements are analyzed: all that follows is done at home, as are archives.
    """

    stamp: str
    repository: Mapping[str, Any]
    patience_s: float
    get_ready: Callable[[], Sequence[str]]


def run_night(
    plan: Plan,
    *,
    rebuild: bool,
    order: NightOrder | None = None,
    on_begin: Callable[[str], None] | None = None,
    measures: bool = True,
) -> Night:
    """Run the plan and return its record, complete or interrupted; one job's failure is in it, not raised.

    It waits for the end of a run of `try`, and for what measures for another home on this machine or the same cards.
    HeldError where another night holds the home, DashboardError where the night cannot begin. order: from the home that
    this host measures for. on_begin: is given the night's stamp. measures: whether its times are measurements, as
    night_lock says.
    """
    patience_s = order.patience_s if order else PATIENCE_S
    cards = list_cards(plan.experiments, plan.config)
    with night_lock(plan.home, waits=True, patience_s=patience_s, measures=measures, cards=cards):
        orphans.become_subreaper()
        folders.make_room(plan)
        moment = utc_now()
        machine, changes = home_machine.keep(plan.home, plan.config.env_name, moment)
        saved = recovery.recover(plan)
        # Before the night has its stamp, which a night that returns may have. A host goes by the clock of its home.
        saved += _tidy_history(plan.home, parse_stamp(order.stamp) if order else moment)
        context = _begin(plan, moment, order)
        process.begin_night(context.mark)
        notes = (
            *plan.config.warnings,
            *map(format_change, changes),
            *(list_gaps() if measures else ()),
            *saved,
            *filter(None, [os.environ.get("TVMDASH_NOTE")]),
        )
        journal = Journal(
            plan.home,
            Night(
                context.stamp, RUNNING, seed=plan.seed, repository=context.repository, notes=notes, machine=machine,
                machine_changes=changes,
            ),
        )  # fmt: skip
        if on_begin is not None:
            on_begin(context.stamp)
        remedies = list_remedies(plan)
        with orphans.watch(context.mark, remedies), contextlib.ExitStack() as opened:
            try:
                for note in order.get_ready() if order else ():
                    journal.note(note)
                Phases(context, journal, opened, rebuild=rebuild, is_ordered=order is not None).perform()
            except (KeyboardInterrupt, process.Cancelled):
                return journal.close(INTERRUPTED)
        for words in folders.remove(context.folder):
            journal.note(words)
        return journal.night


def _tidy_history(home: Home, moment: datetime.datetime) -> list[str]:
    """Set aside what came since the last night and does not belong there, and put back what does by now.

    Sentences for the night's readers.
    """
    try:
        found = strays.put_back(home, strays.find_returning(home, moment))
        found += strays.set_aside(home, list(strays.find_strays(home, moment, only_new=True)), moment)
    except OSError as error:
        found = [f"{error.filename}: could not be moved into or out of {strays.FOLDER}: {error.strerror}."]
    ahead = strays.list_ahead(home, moment)
    if strays.are_too_many(ahead):
        clock = f"{moment:%Y-%m-%d %H:%M} UTC"
        found.append(
            f"The clock says {clock}, but {len(ahead)} nights are dated later. If the clock is wrong, set it; if it "
            "is right and was ahead on those nights, run `doctor --clock-is-right --fix` to move them aside."
        )
    return found


def _begin(plan: Plan, moment: datetime.datetime, order: NightOrder | None) -> Context:
    """Choose a stamp that no night of this home has, of that moment or soon after it, and make the night's folder."""
    if order is not None:
        return _begin_ordered(plan, order)
    while plan.home.night_file(stamp_of(moment)).exists() or not folders.claim(
        plan.config.tmp_data / stamp_of(moment), plan.home
    ):
        moment += datetime.timedelta(seconds=1)
    folder = plan.config.tmp_data / stamp_of(moment)
    return Context(plan.home, plan, stamp_of(moment), folder, repository.describe(REPOSITORY), {})


def _begin_ordered(plan: Plan, order: NightOrder) -> Context:
    folder = plan.config.tmp_data / order.stamp
    if plan.home.night_file(order.stamp).exists() or not folders.claim(folder, plan.home):
        raise DashboardError(f"{plan.home.root}: the night {order.stamp} was already measured here.")
    return Context(plan.home, plan, order.stamp, folder, order.repository, {})


_FOLDER = "publish"
_ACTIVATE = 'Write {"active": true} there.'


def make_website(plan: Plan) -> StepResult:
    """Make the website of the newest night; DashboardError where there is no night, or no such subsystem.

    It measures nothing and tells nobody: no other subsystem runs.
    """
    home = plan.home
    job = _find_website(plan)
    orphans.become_subreaper()
    with night_lock(home, measures=False):
        stamps = home.night_stamps()
        if not stamps:
            raise DashboardError("no night has run yet.", place=home.root, remedy="Run one; it makes the website too.")
        name = re.sub(r"[^A-Za-z0-9]+", "-", str(home.root)).strip("-")[-80:]  # homes may share a tmp_data_dir
        folder = plan.config.tmp_data / f"{_FOLDER}-{name}"
        context = Context(home, plan, stamps[-1], folder, repository.describe(REPOSITORY))
        process.begin_night(context.mark)
        try:
            engine.take_copy(context, job)
            update_index(home)
            return engine.perform(context, job, job.stages[0])
        finally:
            trees.remove(folder)


def _find_website(plan: Plan) -> Job:
    kind = SUBSYSTEM.kind
    for job in (*plan.subsystems, *plan.rejected):
        if (job.kind, job.name) == (kind, WEBSITE):
            if job.faults:
                raise DashboardError("; ".join(job.faults))
            return job
    place = plan.home.config(kind, WEBSITE) / "config.json"
    raise DashboardError(f"{WEBSITE} is not an active subsystem of this home.", place=place, remedy=_ACTIVATE)
