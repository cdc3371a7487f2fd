"""The phases of one night in their order: TVMs, setup, run, then each experiment's tail, then subsystems."""

from __future__ import annotations

import contextlib
import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from dashboard.archive import archive, remote
from dashboard.archive.remote import describe_mended
from dashboard.artifacts.artifact import MANIFEST
from dashboard.artifacts.spec import WHEEL
from dashboard.hosts.bundle import Tvms
from dashboard.night import engine, publish, raw_data
from dashboard.night.context import Context
from dashboard.night.hosts_tonight import HostsTonight
from dashboard.night.journal import Journal
from dashboard.night.progress import Progress
from dashboard.night.tvms import TvmSupply
from dashboard.plan.job import Job
from dashboard.plan.reference import NIGHTS_BACK
from dashboard.process import process
from dashboard.upkeep import disk, drill
from dashboard.upkeep.indexes import update_index
from tvmdash.common import utc_now
from tvmdash.dashboard_info import BLOCKED, COMPLETE, FAILED, OK, MissingBackup, StepReason, StepResult
from tvmdash.dashboard_info.stages import PRECHECK, Stage, pipeline
from tvmdash.errors import DashboardError
from tvmdash.text import format_list

_log = logging.getLogger("night")
_SETUP, _RUN, _ANALYZE = "setup", "run", "analyze"


class Phases:
    """The phases of one night.

    is_ordered: it is a host's, and ends once its measurements are analyzed. opened: what ends with the night.
    """

    def __init__(
        self, context: Context, journal: Journal, opened: contextlib.ExitStack, *, rebuild: bool, is_ordered: bool
    ) -> None:
        self._context, self._journal, self._plan = context, journal, context.plan
        self._is_ordered = is_ordered
        self._tvms = TvmSupply(context, journal, opened, rebuild=rebuild)
        self._hosts = HostsTonight(context, journal)
        opened.callback(self._hosts.close)

    def perform(self) -> None:
        self._archive(BEFORE)
        away = [] if self._is_ordered else self._plan.away
        jobs = (*self._plan.experiments, *away, *self._plan.subsystems)
        total = sum(1 + len(job.stages) for job in (*jobs, *self._plan.rejected))
        with Progress(total, self._context.home, self._context.stamp) as self._progress:
            going = self._precheck(jobs)
            measured = self._provide([job for job in going if job.measures])
            experiments = [job for job in measured if job not in away]
            have = Tvms(self._context.artifacts, self._tvms.references, self._tvms.rebuild)
            # Before this machine's setup: hosts measure while it does.
            self._hosts.begin([job for job in measured if job in away], have)
            self._hosts.wait_until_ready()
            experiments = self._each(experiments, _SETUP)
            experiments = self._each(experiments, _RUN)
            self._publish(self._side_by_side(experiments, self._analyze))
            self._publish(self._take_home([job for job in measured if job in away]))
            # Subsystems read the record, and know no journal.
            self._journal.write_whole()
            self._each([job for job in going if not job.measures], _RUN)
        self._tvms.prune()
        with self._noting_faults():
            raw_data.prune(self._context)
        # Closed first: the archive holds the whole record, and a folder half removed is not taken for a killed night's.
        self._journal.close(COMPLETE)
        if not self._is_ordered:
            with self._noting_faults():
                update_index(self._context.home)
        self._look_after(is_copied=self._archive(AFTER))

    def _archive(self, moment: str) -> bool:
        """Archive the home and return True where the copy is complete; a host's night is archived at home."""
        return not self._is_ordered and make_archive(self._context, self._journal, moment)

    def _look_after(self, *, is_copied: bool) -> None:
        """Note what the night left free, and once a week try to restore; neither costs the night anything."""
        config = self._plan.config
        if self._is_ordered:
            return
        try:
            disk.note_free(self._context.home, config.folders, self._context.stamp)
            if drill.is_due(self._context.home, utc_now()):
                done = drill.run_drill(self._context.home, config.backup, config.tmp_data, utc_now())
                if done.fault:
                    self._journal.note(f"The test restore of the newest archive failed: {done.fault}")
            if is_copied and drill.is_due(self._context.home, utc_now(), drill.OF_COPY):
                done = drill.run_copy_drill(
                    self._context.home, config.backup_copy, config.backup, config.tmp_data, utc_now()
                )
                if done.fault:
                    self._journal.note(f"The test restore from {config.backup_copy} failed: {done.fault}")
                elif done.mended:
                    self._journal.note(describe_mended(config.backup_copy, done.mended))
        except OSError as error:
            _log.warning("%s: %s", error.filename, error.strerror)

    def _precheck(self, jobs: Iterable[Job]) -> list[Job]:
        """Record the verdict of the plan on each job and copy the code of those that go on."""
        for job in self._plan.rejected:
            self._end(job, StepResult(PRECHECK, FAILED, "\n".join(job.faults), self._context.stamp))
            self._block(job, "its precheck failed", StepReason.PRECHECK_FAILED)
        going = []
        for job in jobs:
            try:
                engine.take_copy(self._context, job)
                result = StepResult(PRECHECK, OK, "config and scripts are valid", self._context.stamp)
                going.append(job)
            except (DashboardError, OSError) as error:
                result = StepResult(
                    PRECHECK, FAILED, f"{job.folder}: could not be copied: {error}", self._context.stamp
                )
            self._end(job, result)
            if not result.success:
                self._block(job, "its precheck failed", StepReason.PRECHECK_FAILED)
        return going

    def _provide(self, jobs: list[Job]) -> list[Job]:
        """Get each TVM that is wanted; the experiments whose TVM is there."""
        lack = self._tvms.provide(jobs, self._progress)
        for job in jobs:
            if job.needs_tvm and job.tvm and job.tvm in lack:
                subject = f"{job.tvm.branch} from {job.tvm.shown}"
                self._block(job, f"no TVM to measure: {lack[job.tvm]}", StepReason.NO_TVM, subject)
        return [job for job in jobs if not job.needs_tvm or job.tvm not in lack]

    def _each(self, jobs: Sequence[Job], name: str) -> list[Job]:
        """Run one stage of each job, one after the other; the jobs that go on."""
        return [job for job in jobs if self._step(job, name)]

    def _step(self, job: Job, name: str) -> bool:
        stage = next((stage for stage in job.stages if stage.name == name), None)
        if stage is None:
            return True
        result = self._perform(job, stage)
        if not result.success:
            self._block(job, f"{name} failed", StepReason.STAGE_FAILED, name, after=name)
            if job.measures:
                self._keep_raw(job)
        return result.success

    def _perform(self, job: Job, stage: Stage) -> StepResult:
        left_in = self._context.workspace(job).of(stage.name)
        self._progress.begin(job, stage, left_in, self._context.find_deadline(job, stage).usual_s)
        result = engine.perform(self._context, job, stage)
        self._end(job, result)
        return result

    def _end(self, job: Job, result: StepResult) -> None:
        log = self._context.workspace(job).log(result.stage)
        self._journal.record(job, result, log)
        self._progress.end(job, result)

    def _block(self, job: Job, message: str, reason: StepReason, subject: str = "", *, after: str = "") -> None:
        names = [stage.name for stage in job.stages]
        for name in names[names.index(after) + 1 :] if after else names:
            result = StepResult(name, BLOCKED, message, self._context.stamp, reason=reason, subject=subject)
            self._end(job, result)

    def _take_home(self, jobs: Sequence[Job]) -> list[Job]:
        """Take the measurements of the hosts into the home; return the experiments that go on."""
        going = []
        for job, steps, why in self._hosts.collect(jobs):
            for result in steps:
                self._end(job, result)
            if why:
                self._block(job, why, StepReason.HOST_AWAY, job.host, after=steps[-1].stage if steps else "")
            elif all(result.success for result in steps):
                going.append(job)
            else:
                last = steps[-1].stage
                self._block(job, f"{last} failed", StepReason.STAGE_FAILED, last, after=last)
        return going

    def _publish(self, jobs: Sequence[Job]) -> None:
        """Index what was analyzed, all of it at once; then draw and sum up each."""
        with self._noting_faults():
            update_index(self._context.home)
        for job in jobs:
            with self._noting_faults():
                self._note(publish.describe_unmeasured(self._context, job))
                self._count_pairs(job)
        if not self._is_ordered:
            self._side_by_side(jobs, self._tail)

    def _count_pairs(self, job: Job) -> None:
        night, (pairs, timed_s) = self._journal.night, publish.count_pairs(self._context, job)
        steps = [step for done in night.jobs if done.name == job.name for step in done.steps if step.stage == _RUN]
        if pairs and steps:
            took_s = steps[0].elapsed_s
            self._journal.change(
                pairs=night.pairs + pairs,
                paired_s=round(night.paired_s + took_s, 3),
                timed_s=round(night.timed_s + (timed_s or took_s), 3),
            )

    def _side_by_side(self, jobs: Sequence[Job], work: Callable[[Job], bool]) -> list[Job]:
        """Jobs at once, because nothing is timed any more; those that went well."""
        with ThreadPoolExecutor(self._plan.config.parallel_stages, thread_name_prefix="tail") as pool:
            futures = [pool.submit(work, job) for job in jobs]
            try:
                return [job for job, future in zip(jobs, futures, strict=True) if future.result()]
            except BaseException:
                process.cancel_all()
                pool.shutdown(wait=True, cancel_futures=True)
                # Canceled futures do not start, but the running ones wait for their programs: those are ended first.
                raise

    def _analyze(self, job: Job) -> bool:
        if not self._step(job, _ANALYZE):
            return False
        self._keep_raw(job)
        return True

    def _tail(self, job: Job) -> bool:
        names = [stage.name for stage in pipeline(job.kind).stages]
        return all(self._step(job, name) for name in names[names.index(_ANALYZE) + 1 :])

    @contextlib.contextmanager
    def _noting_faults(self) -> Iterator[None]:
        try:
            yield
        except DashboardError as error:
            self._note(str(error))

    def _note(self, words: str) -> None:
        if words:
            _log.warning("%s", words)
            self._journal.note(words)

    def _keep_raw(self, job: Job) -> None:
        raw = self._context.workspace(job).of(_RUN)
        try:
            left_out = raw_data.keep_raw(self._context, job, raw)
        except (DashboardError, OSError) as error:
            _log.warning("%s", error)
            self._journal.note(f"Compressing the raw measurements of {job.name} failed: {error}")
            return
        if left_out:
            self._journal.note(raw_data.describe_left_out(job.name, left_out))


BEFORE, AFTER = "before", "after"


def make_archive(context: Context, journal: Journal, moment: str) -> bool:
    """Archive the home before or after the night; whether its copy, where it has one, is up to date now.

    Only after the night something is copied: a storage that is slow keeps nobody from measuring, and the archive made
    before is sent with the one made after.
    """
    config = context.plan.config
    try:
        done = archive.archive(
            context.home.root,
            config.backup,
            f"{context.stamp}-{moment}",
            exclude=(*config.folders,),
            beside=_list_references_to_keep(context, journal),
        )
    except DashboardError as error:
        _log.warning("%s", error)
        missing = (*journal.night.missing_backups, MissingBackup(moment, str(error)))
        journal.change(missing_backups=missing)
        journal.note(f"Archiving the home {moment} the night failed: {error}")
        return False
    if not done.complete:
        journal.note(f"The archive {moment} the night is incomplete: {format_list(done.skipped, 3)}")
    _log.info("archived the home %s the night: %d new files, %d bytes", moment, done.new_files, done.new_bytes)
    _prune(context, journal)
    return moment == AFTER and bool(config.backup_copy) and _push(context, journal)


def _push(context: Context, journal: Journal) -> bool:
    """Send what the object storage lacks; whether it has all now. What cannot be sent is sent by the next night."""
    config = context.plan.config
    try:
        pushed = remote.RemoteBackup(config.backup_copy, remote.LIMIT_S).push(config.backup)
    except DashboardError as error:
        _log.warning("%s", error)
        journal.change(missing_backups=(*journal.night.missing_backups, MissingBackup(AFTER, str(error))))
        journal.note(f"Copying the archives failed: {error}")
        return False
    if pushed.mended:
        journal.note(remote.describe_mended(config.backup_copy, pushed.mended))
    _log.info("copied the archives to %s: %d files, %d bytes", config.backup_copy, pushed.files, pushed.sent_bytes)
    return True


def _list_references_to_keep(context: Context, journal: Journal) -> dict[str, Path]:
    """Find the releases measured against by this night or the last, which the index may drop one day.

    And the wheels that the last nights measured of other sources: a page of nightly wheels drops the old ones.
    """
    home, config = context.home, context.plan.config
    nights = itertools.chain([journal.night], home.last_nights(NIGHTS_BACK, jobs=False))
    newest = next((night.references for night in nights if night.references), ())
    keys = {reference.key for reference in newest if reference.provider == WHEEL}
    keys |= {
        str(entry["key"])
        for night in nights
        for entry in night.artifacts
        if entry.get("provider") == WHEEL
        and (entry.get("facts") or {}).get("source")
        and (config.artifacts / str(entry["key"]) / MANIFEST).is_file()
    }
    place = home.references.relative_to(home.root)
    return {f"{place}/{key}": config.artifacts / key for key in sorted(keys)}


def _prune(context: Context, journal: Journal) -> None:
    config = context.plan.config
    try:
        archive.prune(config.backup, config.keep_archives)
    except DashboardError as error:
        _log.warning("%s", error)
        journal.note(f"Removing old archives failed: {error}")
