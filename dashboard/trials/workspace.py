"""Where measuring outside a night happens: within the night that called it, or, called by a person, like a night.

Nothing here is published: the stages write into a home of their own in the workspace, which is removed.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dashboard.artifacts.artifact import ArtifactSpec
from dashboard.night import folders, lock
from dashboard.night.context import Context, Workspace, night_mark
from dashboard.plan.devices import list_cards
from dashboard.plan.home_config import read_home_config
from dashboard.plan.job import CodeFolders, Job, Plan
from dashboard.plan.plan import make_plan
from dashboard.process import orphans, process
from tvmdash import common
from tvmdash.common.files import trees
from tvmdash.dashboard_info import Home, variant_of
from tvmdash.errors import DashboardError


@dataclass(frozen=True)
class ScratchContext(Context):
    """A context whose home is a scratch one, so that what stages leave reaches nobody; the mark is the real night's."""

    night_mark: str = ""

    @property
    def mark(self) -> str:
        """The mark by which the end of the night ends these processes as well."""
        return self.night_mark


@dataclass(frozen=True)
class MeasuringWorkspace:
    """The real home, tonight's stamp, and a folder for everything that is made. `night`: the running night's folder."""

    home: Home
    stamp: str
    plan: Plan
    folder: Path
    night: Path | None

    def scratch_context(self) -> ScratchContext:
        """Make the context for the engine. The telemetry of tonight's own runs is left as it is."""
        config = replace(self.plan.config, telemetry_rate=0.0)
        numbers = itertools.count(os.getpid() * 1000)  # the night counts its own from 0
        scratch = Home(self.folder / "home")
        plan = replace(self.plan, config=config, home=scratch)
        mark = night_mark(self.home, self.stamp)
        return ScratchContext(scratch, plan, self.stamp, self.folder, {}, {}, numbers, night_mark=mark)

    def find_job(self, name: str) -> Job | None:
        """The experiment as tonight runs it; None where it does not."""
        if self.night is None:
            return next((job for job in self.plan.experiments if job.name == name), None)
        kept = Workspace(self.night / f"experiment-{name}")
        data = self._read_tonight(name)
        if data is None or not kept.fingerprint.is_file():
            return None
        config = data["night"]["config"]
        return Job("experiment", name, kept.code, kept.config, config, ArtifactSpec(folders.REMEASURE, ""))

    def _read_tonight(self, name: str) -> Mapping[str, Any] | None:
        """Read the data that the experiment published tonight; None where it has not."""
        with contextlib.suppress(DashboardError):
            value = common.read_json(self.home.data_file(name, self.stamp))
            if isinstance(value, dict) and isinstance(value.get("night"), dict):
                return value
        return None

    def read_fingerprint(self, name: str) -> str | None:
        """Read that of the code as the running night copied it, under which its setup is kept."""
        return Workspace(self.night / f"experiment-{name}").fingerprint.read_text("ascii") if self.night else None


def select_experiments(plan: Plan, asked: Sequence[str]) -> list[str]:
    """The experiments that take part, in the order of a night; DashboardError where one asked for does not run.

    Each counts once: what the home measures on a TVM beside its own takes part only where it is asked for.
    """
    there, home = [job.name for job in plan.experiments], plan.home.root
    for name in asked:
        if name not in there:
            rejected = {job.name: "; ".join(job.faults) for job in plan.rejected}
            why = rejected.get(name, f"Active experiments: {', '.join(there) or 'none'}.")
            raise DashboardError(f"--experiments: {name} is not an active experiment of {home}. {why}")
    selected = [name for name in there if (name in asked if asked else not variant_of(name))]
    if not selected:
        raise DashboardError(f"{home}: no experiment is active.")
    return selected


@contextlib.contextmanager
def open_workspace(home: Home, code: CodeFolders, *, seed: int | None) -> Iterator[MeasuringWorkspace]:
    """The workspace, made and removed again; HeldError where a night that this is no part of holds the home."""
    orphans.become_subreaper()
    stamp = find_calling_night(home)
    with contextlib.ExitStack() as stack:
        if stamp is None:
            plan = make_plan(home, code, seed=seed)
            stack.enter_context(lock.night_lock(home, cards=list_cards(plan.experiments, plan.config)))
            stamp = common.stamp_of(common.utc_now())
            mark = night_mark(home, stamp)
            process.begin_night(mark)
            stack.enter_context(orphans.watch(mark))
            parent, night = plan.config.tmp_data / f"{folders.REMEASURE}-{_folder_name(home)}", None
        else:
            plan = _plan_of_night(home, stamp)
            process.begin_night(night_mark(home, stamp))
            night = plan.config.tmp_data / stamp
            parent = night / folders.REMEASURE
        trees.remove(parent)  # of one that was killed: the home is held, so nobody else is at work there
        stack.callback(_remove, parent)
        parent.mkdir(parents=True)
        yield MeasuringWorkspace(home, stamp, plan, parent, night)


_ENDING = (signal.SIGTERM, signal.SIGINT)


def _remove(folder: Path) -> None:
    """Remove the folder whole; a signal that comes meanwhile counts when that is done."""
    came: list[int] = []
    # Not a mask: other threads would take the signal, and the main one then handle it at once.
    before = {each: signal.signal(each, lambda number, _: came.append(number)) for each in _ENDING}
    try:
        trees.remove(folder)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
        if came:
            signal.raise_signal(came[0])


def _folder_name(home: Home) -> str:
    """Name the folder after the home: homes may share a tmp_data_dir."""
    return re.sub(r"[^A-Za-z0-9]+", "-", str(home.root)).strip("-")[-80:]


def _plan_of_night(home: Home, stamp: str) -> Plan:
    """Make the part of the running night's plan that is needed: its config and its seed."""
    seed = home.read_night(stamp).seed
    return Plan(home, read_home_config(home), seed or 0, (), (), (), ())


def find_calling_night(home: Home) -> str | None:
    """The stamp of the home's running night that this process is a part of; None where it is part of none.

    It is part of one where its environment says so and an ancestor of it holds the home's lock.
    """
    stamp, named = os.environ.get("TVMDASH_NIGHT", ""), os.environ.get("TVMDASH_HOME", "")
    if not common.is_stamp(stamp) or not named or Path(named).resolve() != home.root.resolve():
        return None
    holder = lock.read_holder_pid(home) if lock.is_held(home) else None
    return stamp if holder is not None and holder in _list_ancestors() else None


def _list_ancestors() -> Iterator[int]:
    pid = os.getppid()
    while pid > 1:
        yield pid
        try:
            status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return
        pid = int(status.rpartition(")")[2].split()[1])
    yield pid
