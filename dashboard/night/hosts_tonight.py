"""The hosts of a night: each measures on its own while this machine does, and what they measured comes home after."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from dashboard.hosts import bundle, launcher, parcels
from dashboard.hosts.bundle import BundledCode, Copies, Tvms
from dashboard.hosts.launcher import find_clock_faults
from dashboard.hosts.messages import Begin
from dashboard.hosts.parcels import AskedOfHost, Parcel
from dashboard.hosts.session import Session
from dashboard.night.context import Context
from dashboard.night.journal import Journal
from dashboard.plan.job import Job, Plan
from dashboard.plan.settings import Host
from tvmdash.common.files import trees
from tvmdash.dashboard_info import HostNight, HostState, StepResult, host_of
from tvmdash.errors import DashboardError
from tvmdash.text import elide

_log = logging.getLogger("night")
_READY_S = 60.0
_COPYING_S = 900.0
_FULL_BYTES = 64 << 20
_END_S = 60.0
_REFUSED_BYTES = 2 << 30
"""Limit for the archives of one host that were refused; the oldest make room."""
_MOST_NOTES, _LONGEST_NOTE = 20, 1000
"""The limits for notes of a host's own night."""
_LONGEST_NAME = 200
JobAtHome = tuple[Job, Sequence[StepResult], str]
"""A job, its steps on its host, and why the others are missing, where they are."""


@dataclass
class _Visit:
    """The night's conversation with one host.

    record: what is known of it so far; parcel: tonight's, where it came home; told: by night, the notes of its own.
    """

    host: Host
    jobs: Sequence[Job]
    session: Session
    record: HostNight
    thread: threading.Thread | None = None
    is_ready: threading.Event = field(default_factory=threading.Event)
    parcel: Parcel | None = None
    notes: list[str] = field(default_factory=list)
    told: dict[str, Sequence[str]] = field(default_factory=dict)
    begun: float = field(default_factory=time.monotonic)

    def stop_clock(self) -> None:
        """Note the time that the host took; a second call changes nothing."""
        elapsed_s = self.record.elapsed_s or round(time.monotonic() - self.begun, 3)
        self.record = replace(self.record, elapsed_s=elapsed_s)


def list_remedies(plan: Plan) -> list[list[str]]:
    """Commands that end on hosts what a killed night may leave there, beyond what ends with its connections."""
    hosts = (plan.config.hosts.get(name) for name in dict.fromkeys(job.host for job in plan.away))
    return [argv for host in hosts if host and (argv := launcher.make_clearing(host, plan.home.root))]


class HostsTonight:
    """Begin them all, then `collect`; `close` ends what is still under way."""

    def __init__(self, context: Context, journal: Journal) -> None:
        self._context, self._journal = context, journal
        self._visits: list[_Visit] = []
        self._may_come = threading.Event()
        self._taking = threading.Lock()
        self._copies = Copies((), self._folder)

    @property
    def _folder(self) -> Path:
        return self._context.plan.config.tmp_data / "hosts"

    def begin(self, jobs: Sequence[Job], have: Tvms) -> None:
        """Let each host measure its jobs; this returns at once."""
        if not jobs:
            return
        # Packed once for all of them: every host measures with the same code.
        code = bundle.pack_code(jobs, self._folder)
        names = dict.fromkeys(job.host for job in jobs)
        self._visits = [self._make(name, [job for job in jobs if job.host == name]) for name in names]
        self._copies = Copies((*have.have.values(), *have.references.values()), self._folder)
        for visit in self._visits:
            # A daemon: no host keeps the night from ending.
            visit.thread = threading.Thread(
                target=self._attend, args=(visit, code, have), name=f"host-{visit.host.name}", daemon=True
            )
            visit.thread.start()

    def wait_until_ready(self) -> None:
        """Wait a moment until each host has its TVMs: what is copied from here would disturb what is measured here."""
        end = time.monotonic() + _READY_S
        for visit in self._visits:
            visit.is_ready.wait(max(0.0, end - time.monotonic()))
        for visit in self._visits:
            if visit.session.is_copying:
                visit.is_ready.wait(max(0.0, end + _COPYING_S - time.monotonic()))

    def _make(self, name: str, jobs: Sequence[Job]) -> _Visit:
        config = self._context.plan.config
        log = config.tmp_data / "logs" / self._context.stamp / f"host-{name}.log"
        session = Session(config.hosts[name], self._context.home.root, f"{self._context.mark}/host-{name}", log)
        return _Visit(config.hosts[name], jobs, session, HostNight(name, HostState.AWAY, ""))

    def _attend(self, visit: _Visit, code: BundledCode, tvms: Tvms) -> None:
        """Hold the whole conversation with one host; whatever fails is in its record."""
        try:
            self._converse(visit, code, tvms)
        except DashboardError as error:
            _log.warning("%s", error)
            visit.record = replace(visit.record, why=str(error))
        except OSError as error:
            what = f"{error.filename or self._folder}: {error.strerror}"
            why = (
                f"{visit.host.name}: could not store the results from this host: {what}. It sends them again with "
                "the next night."
            )
            visit.record = replace(visit.record, why=why)
        except Exception as error:  # noqa: BLE001 - what a host sends ends its own visit, whatever is wrong with it
            _log.exception("host %s", visit.host.name)
            why = f"{visit.host.name}: its visit ended with an internal error of the dashboard, {error!r:.200}."
            visit.record = replace(visit.record, why=why)
        finally:
            visit.is_ready.set()
            visit.stop_clock()
            visit.session.close()

    def _converse(self, visit: _Visit, code: BundledCode, tvms: Tvms) -> None:
        plan, name = self._context.plan, visit.host.name
        hello = visit.session.open(code)
        offset_s = round(hello.unix_s - time.time(), 1)
        node, hw_model = (elide(text, _LONGEST_NAME) for text in (hello.node, hello.hw_model))
        visit.record = replace(
            visit.record, state=HostState.LOST, node=node, hw_model=hw_model, clock_offset_s=offset_s
        )
        visit.notes += [f"{name}: {fault}" for fault in find_clock_faults(offset_s)]
        _log.info("host %s (%s) starts measuring", name, node)
        offered = self._copies.list_for(tvms.list_keys(visit.jobs), hello.python_tag, hello.machine)
        begin = Begin(
            self._context.stamp, name, plan.seed, visit.host.patience_s, tvms.rebuild, self._context.repository, offered
        )
        config = bundle.pack_config(plan, visit.host, visit.jobs, code, tvms)
        end = visit.session.measure(begin, config, self._copies, visit.is_ready.set)
        visit.stop_clock()
        if end.why:
            state = HostState.LOST if end.interrupted else HostState.REFUSED
            visit.record = replace(visit.record, state=state, why=f"{name}: {elide(end.why, _LONGEST_NOTE)}")
        self._may_come.wait()  # what comes home would disturb what is measured here
        least_free_bytes = plan.config.min_free_bytes
        visit.session.collect(self._folder, least_free_bytes, lambda file, stamp: self._take_in(visit, file, stamp))
        if visit.parcel:
            visit.record = replace(visit.record, state=HostState.MEASURED, why="")
        elif not visit.record.why:
            visit.record = replace(visit.record, why=f"{name}: it handed over nothing of this night.")

    def _take_in(self, visit: _Visit, file: Path, stamp: str) -> None:
        """Take in a parcel; one that cannot be is set aside, so that it does not stand in the way of the next."""
        config = self._context.plan.config
        with self._taking:
            try:
                parcel = parcels.take_in(
                    file, self._find_asked(visit.host.name, stamp), self._context.home, config.tmp_data
                )
            except DashboardError as error:
                if shutil.disk_usage(file.parent).free < _FULL_BYTES:
                    raise
                self._set_aside(visit, file, stamp, error)
            else:
                self._keep(visit, parcel)

    def _find_asked(self, host: str, stamp: str) -> AskedOfHost:
        """Look up what this home asked the host for on that night."""
        night = self._journal.night
        if stamp != night.stamp:
            try:
                night = self._context.home.read_night(stamp)
            except DashboardError:
                return AskedOfHost(host, stamp, ())
        return AskedOfHost(host, stamp, [job.name for job in night.experiments if host_of(job.name) == host])

    def _set_aside(self, visit: _Visit, file: Path, stamp: str, error: DashboardError) -> None:
        aside = file.with_name(f"refused-{visit.host.name}-{file.name}")
        os.replace(file, aside)
        _remove_old_refused(aside.parent, visit.host.name)
        why = f"{error} The archive is kept as {aside}."
        if stamp == self._context.stamp:
            visit.record = replace(visit.record, state=HostState.DAMAGED, why=why)
        else:
            visit.notes.append(why)

    def _keep(self, visit: _Visit, parcel: Parcel) -> None:
        is_late = parcel.night.stamp != self._context.stamp
        visit.told[parcel.night.stamp] = parcel.night.notes if is_late else parcel.night.untold_notes
        if parcel.kept:
            visit.notes.append(
                f"{visit.host.name}: its results for {', '.join(parcel.kept)}, {parcel.night.stamp}, differ from "
                "those already stored and were ignored."
            )
        if not is_late:
            visit.parcel = parcel
            return
        visit.record = replace(visit.record, late=(*visit.record.late, parcel.night.stamp))
        trees.remove(parcel.folder)

    def collect(self, jobs: Sequence[Job]) -> Iterator[JobAtHome]:
        """Wait for every host; each of these jobs with its steps, and why it has no others."""
        self._may_come.set()
        for visit in self._visits:
            assert visit.thread is not None
            visit.thread.join()
            self._keep_record(visit)
        for visit in self._visits:
            for job in jobs:
                if job.host == visit.host.name:
                    yield self._settle(visit, job)
            if visit.parcel:
                trees.remove(visit.parcel.folder)

    def _keep_record(self, visit: _Visit) -> None:
        self._journal.change(hosts=(*self._journal.night.hosts, visit.record))
        for note in (*visit.notes, *self._list_told(visit)):
            self._journal.note(note)
        if visit.record.why:
            self._journal.note(visit.record.why, told=True)
        if visit.record.late:
            self._journal.note(f"{visit.host.name} delivered its measurements of {', '.join(visit.record.late)}.")

    def _list_told(self, visit: _Visit) -> Iterator[str]:
        """Yield the notes of the host's own nights; one that an earlier night has as well is told once."""
        own = visit.told.pop(self._context.stamp, ())
        notes = [f"{visit.host.name}: {note}" for note in own]
        for stamp, late in visit.told.items():
            notes += [f"{visit.host.name}, {stamp}: {note}" for note in late if note not in own]
        yield from (elide(note, _LONGEST_NOTE) for note in notes[:_MOST_NOTES])
        if len(notes) > _MOST_NOTES:
            where = self._context.home.hosts / visit.host.name / "nights"
            yield f"{visit.host.name}: {len(notes) - _MOST_NOTES} more notes are in {where}."

    def _settle(self, visit: _Visit, job: Job) -> JobAtHome:
        jobs = visit.parcel.night.experiments if visit.parcel else ()
        found = next((item for item in jobs if item.name == job.name), None)
        if found is None or visit.parcel is None:
            return job, (), visit.record.why or f"{visit.host.name}: this host did not measure {job.experiment}."
        steps = [step for step in found.steps if step.stage in {stage.name for stage in job.stages}]
        for step in steps:
            log = visit.parcel.log(job.name, step.stage)
            if log.is_file():
                with contextlib.suppress(OSError):  # as at home, a full disk costs the log and not the status
                    shutil.copyfile(log, self._context.workspace(job).log(step.stage))
        return job, [_name_host(visit.host, step) for step in steps], ""

    def close(self) -> None:
        """End every conversation that is still open, and wait for its end."""
        self._may_come.set()
        for visit in self._visits:
            visit.session.close()
        for visit in self._visits:
            if visit.thread is not None:
                visit.thread.join(_END_S)
        self._copies.remove()
        with contextlib.suppress(OSError):
            for path in self._folder.glob("code-*.tar"):
                path.unlink()


def _remove_old_refused(folder: Path, host: str) -> None:
    """Keep a host from filling the disk with what it cannot hand over."""
    total = 0
    archives = folder.glob(f"refused-{host}-{'[0-9a-f]' * 64}.tar")
    for path in sorted(archives, key=lambda path: path.stat().st_mtime_ns, reverse=True):
        total += path.stat().st_size
        if total > _REFUSED_BYTES:
            path.unlink(missing_ok=True)


def _name_host(host: Host, step: StepResult) -> StepResult:
    """Name the host in the message of a step that failed there."""
    return step if step.success else replace(step, message=f"{host.name}: {step.message}")
