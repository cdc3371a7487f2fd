"""One night, from the lock to the last word: artifacts, setup, run, then each experiment's tail, then subsystems."""

from __future__ import annotations

import contextlib
import datetime
import logging
import os
import shutil
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from dashboard.archive import archive
from dashboard.artifacts import artifact_store, returned
from dashboard.artifacts.artifact import Artifact, ArtifactError, ArtifactSpec
from dashboard.artifacts.git import since
from dashboard.artifacts.provide import Provided, provide
from dashboard.artifacts.spec import WHEEL
from dashboard.night import engine, folders, publish, raw_data, recovery, repository
from dashboard.night.beside.measured import count_measured
from dashboard.night.context import Context
from dashboard.night.environment import write_reference
from dashboard.night.journal import Journal
from dashboard.night.lock import night_lock
from dashboard.night.progress import Progress
from dashboard.plan import home_machine
from dashboard.plan.job import REPOSITORY, Job
from dashboard.plan.night_plan import Plan, wanted_by
from dashboard.plan.reference import NIGHTS_BACK, TvmsTonight, list_paired
from dashboard.process import orphans, process, watchdog
from tvmdash.common import stamp_of, utc_now
from tvmdash.dashboard_info import (
    BLOCKED,
    COMPLETE,
    FAILED,
    INTERRUPTED,
    OK,
    RUNNING,
    MissingBackup,
    Night,
    StepReason,
    StepResult,
)
from tvmdash.errors import DashboardError
from tvmdash.machine.identity import format_change
from tvmdash.stages import PRECHECK, Stage, pipeline
from tvmdash.text import format_list

_log = logging.getLogger("night")
_SETUP, _RUN = "setup", "run"


def run_night(plan: Plan, *, rebuild: bool) -> Night:
    """Run the plan and return its record, complete or interrupted; one job's failure is in it, not raised.

    It waits for the end of a run of `try`. HeldError where another night holds the home, DashboardError where the night
    cannot begin.
    """
    with night_lock(plan.home, waits=True):
        orphans.become_subreaper()
        folders.make_room(plan)
        moment = utc_now()
        machine, changes = home_machine.keep(plan.home, plan.config.env_name, moment)
        saved = recovery.recover(plan)
        context = _begin(plan, moment)
        process.begin_night(context.mark)
        notes = (*map(format_change, changes), *saved, *filter(None, [os.environ.get("TVMDASH_NOTE")]))
        journal = Journal(
            plan.home,
            Night(
                context.stamp, RUNNING, seed=plan.seed, repository=context.repository, notes=notes, machine=machine,
                machine_changes=changes,
            ),
        )  # fmt: skip
        with watchdog.watch(context.mark), contextlib.ExitStack() as leases:
            try:
                _Phases(context, journal, rebuild, leases).perform()
            except (KeyboardInterrupt, process.Cancelled):
                return journal.close(INTERRUPTED)
        folders.remove(context.folder)
        return journal.night


def _begin(plan: Plan, moment: datetime.datetime) -> Context:
    """Choose a stamp that no night of this home has, of that moment or soon after it, and make the night's folder."""
    while plan.home.night_file(stamp_of(moment)).exists() or not folders.claim(
        plan.config.tmp_data / stamp_of(moment), plan.home
    ):
        moment += datetime.timedelta(seconds=1)
    folder = plan.config.tmp_data / stamp_of(moment)
    return Context(plan.home, plan, stamp_of(moment), folder, repository.describe(REPOSITORY), {})


class _Phases:
    """The phases of one night, in their order."""

    def __init__(self, context: Context, journal: Journal, rebuild: bool, leases: contextlib.ExitStack) -> None:  # noqa: FBT001
        self._context = context
        self._plan = context.plan
        self._journal = journal
        self._rebuild = rebuild
        self._leases = leases
        self._references: Mapping[ArtifactSpec, Artifact] = {}

    def perform(self) -> None:
        """All of them."""
        self._archive("before")
        jobs = (*self._plan.experiments, *self._plan.subsystems)
        total = sum(1 + len(job.stages) for job in (*jobs, *self._plan.rejected))
        with Progress(total, self._context.home, self._context.stamp) as self._progress:
            going = self._precheck(jobs)
            experiments = [job for job in going if job.measures]
            experiments = self._provide(experiments)
            experiments = self._each(experiments, _SETUP)
            experiments = self._each(experiments, _RUN)
            self._tails(experiments)
            self._journal.write_whole()
            self._each([job for job in going if not job.measures], _RUN)
        self._prune()
        # Closed first: the archive holds the whole record, and a folder half removed is not taken for a killed night's.
        self._journal.close(COMPLETE)
        self._archive("after")

    def _archive(self, moment: str) -> None:
        config = self._plan.config
        try:
            done = archive.archive(
                self._plan.home.root,
                config.backup,
                f"{self._context.stamp}-{moment}",
                exclude=(*config.folders,),
                beside=self._references_to_keep(),
            )
        except DashboardError as error:
            _log.warning("%s", error)
            missing = (*self._journal.night.missing_backups, MissingBackup(moment, str(error)))
            self._journal.change(missing_backups=missing)
            self._journal.note(f"The home could not be archived {moment} the night: {error}")
            return
        if not done.complete:
            self._journal.note(f"The archive {moment} the night is incomplete: {format_list(done.skipped, 3)}")
        _log.info("archived the home %s the night: %d new files, %d bytes", moment, done.new_files, done.new_bytes)
        self._prune_archives()

    def _references_to_keep(self) -> dict[str, Path]:
        """The releases that this night or the last one measured against, which the package index may drop one day."""
        home, config = self._plan.home, self._plan.config
        nights = (self._journal.night, *home.last_nights(NIGHTS_BACK))
        newest = next((night.references for night in nights if night.references), ())
        keys = {reference.key for reference in newest if reference.provider == WHEEL}
        place = home.references.relative_to(home.root)
        return {f"{place}/{key}": config.artifacts / key for key in sorted(keys)}

    def _prune_archives(self) -> None:
        config = self._plan.config
        try:
            archive.prune(config.backup, config.keep_archives)
        except DashboardError as error:
            _log.warning("%s", error)
            self._journal.note(f"Old archives could not be removed: {error}")

    def _precheck(self, jobs: Iterable[Job]) -> list[Job]:
        """Record the verdict of the plan on each job and copy the code of those that go on."""
        for job in self._plan.rejected:
            self._end(job, StepResult(PRECHECK, FAILED, "\n".join(job.faults), self._context.stamp))
            self._block(job, "its precheck failed", StepReason.PRECHECK_FAILED)
        going = []
        for job in jobs:
            try:
                engine.take_copy(self._context, job)
                result = StepResult(PRECHECK, OK, "config and scripts are in order", self._context.stamp)
                going.append(job)
            except (OSError, shutil.Error) as error:
                result = StepResult(PRECHECK, FAILED, f"{job.folder}: cannot be copied: {error}", self._context.stamp)
            self._end(job, result)
            if not result.success:
                self._block(job, "its precheck failed", StepReason.PRECHECK_FAILED)
        return going

    def _provide(self, jobs: list[Job]) -> list[Job]:
        """Get each TVM that is wanted; the experiments whose TVM is there."""
        for key in returned.take_in(self._context.home.references, self._plan.config.artifacts):
            self._journal.note(f"The TVM {key} came back with the restored home.")
        have: dict[ArtifactSpec, Artifact] = {}
        lack: dict[ArtifactSpec, str] = {}
        for spec in wanted_by(jobs):
            self._progress.report(f"getting TVM {spec.branch} from {spec.remote}")
            try:
                provided = self._provide_one(spec)
            except ArtifactError as error:
                lack[spec] = str(error)
                self._journal.note(f"TVM {spec.branch} from {spec.remote} cannot be had: {error}", told=True)
                continue
            self._leases.callback(provided.lease.release)
            have[spec] = provided.artifact
            if provided.note:
                self._journal.note(provided.note)
        self._progress.report("")
        self._context.artifacts.update(have)
        for job in jobs:
            if job.tvm in have:
                with contextlib.suppress(OSError):  # only a recovery reads it; a full disk speaks up elsewhere
                    self._context.workspace(job).artifact.write_text(have[job.tvm].key, encoding="utf-8")
        earlier = [night for night in self._context.home.last_nights(NIGHTS_BACK) if night.stamp < self._context.stamp]
        self._journal.change(artifacts=since.describe_artifacts(have, earlier, self._plan.config.artifacts))
        tonight = TvmsTonight(self._plan.config, have, lack, earlier, self._logs, self._rebuild)
        self._provide_references(jobs, tonight)
        for job in jobs:
            if job.needs_tvm and job.tvm in lack:
                subject = f"{job.tvm.branch} from {job.tvm.remote}"
                self._block(job, f"no TVM to measure: {lack[job.tvm]}", StepReason.NO_TVM, subject)
        return [job for job in jobs if not job.needs_tvm or job.tvm not in lack]

    def _provide_references(self, jobs: list[Job], tonight: TvmsTonight) -> None:
        """Get what each TVM is measured against; what cannot be had costs nothing else."""
        self._progress.report("getting the reference")
        references = tonight.provide_references(list_paired(jobs, self._plan.config), self._leases)
        self._progress.report("")
        for note in references.notes:
            self._journal.note(note)
        self._journal.change(references=references.records)
        self._references = references.artifacts
        for record in references.records:
            _log.info("%s is measured against %s", record.artifact, record.key)
        for job in jobs:
            reference = self._references.get(job.tvm) if job.tvm and job.alone is None else None
            if reference:
                with contextlib.suppress(OSError):  # its run is then measured alone
                    measured = count_measured(self._context.home, job.name, reference)
                    write_reference(self._context.workspace(job).reference, reference, measured)

    @property
    def _logs(self) -> Path:
        return self._plan.config.tmp_data / "logs" / self._context.stamp

    def _provide_one(self, spec: ArtifactSpec) -> Provided:
        config = self._plan.config
        where = spec.remote if self._rebuild else f"what is in {config.artifacts}"
        _log.info("getting TVM %s from %s", spec.branch, where)
        timeout_s = config.getting_s(spec)
        provided = provide(spec, config.artifacts, rebuild=self._rebuild, log_folder=self._logs, timeout_s=timeout_s)
        _log.info("TVM %s (%s) is ready", provided.artifact.version, provided.artifact.commit or "no commit known")
        return provided

    def _each(self, jobs: list[Job], name: str) -> list[Job]:
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
        self._progress.begin(job, stage)
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

    def _tails(self, jobs: list[Job]) -> None:
        """The stages after run; jobs side by side, because nothing is timed any more."""
        with ThreadPoolExecutor(self._plan.config.parallel_stages, thread_name_prefix="tail") as pool:
            futures = [pool.submit(self._tail, job) for job in jobs]
            try:
                for future in futures:
                    future.result()
            except BaseException:
                process.cancel_all()
                pool.shutdown(wait=True, cancel_futures=True)
                raise

    def _tail(self, job: Job) -> None:
        names = [stage.name for stage in pipeline(job.kind).stages]
        for name in names[names.index(_RUN) + 1 :]:
            if not self._step(job, name):
                return
            if name == "analyze":
                self._index(job)
                self._keep_raw(job)

    def _index(self, job: Job) -> None:
        try:
            publish.index(self._context, job)
        except DashboardError as error:
            _log.warning("%s", error)
            self._journal.note(str(error))

    def _keep_raw(self, job: Job) -> None:
        raw = self._context.workspace(job).of(_RUN)
        try:
            raw_data.keep_raw(self._context, job, raw)
        except (DashboardError, OSError) as error:
            _log.warning("%s", error)
            self._journal.note(f"The raw measurements of {job.name} could not be zipped: {error}")

    def _prune(self) -> None:
        config = self._plan.config
        used = (*self._context.artifacts.values(), *self._references.values())
        keep = {artifact.key for artifact in used}
        try:
            removed = artifact_store.prune(config.artifacts, config.max_artifacts_bytes, keep).removed
        except OSError as error:
            self._journal.note(f"Old artifacts in {config.artifacts} could not be removed: {error}")
            return
        for key in removed:
            _log.info("removed the artifact %s: it was not used for longest", key)
