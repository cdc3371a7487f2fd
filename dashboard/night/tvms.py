"""The TVMs of a night and what each is measured against: got, leased while the night runs, the oldest removed after."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
from collections.abc import Mapping, Sequence

from dashboard.artifacts import artifact_store
from dashboard.artifacts.artifact import Artifact, ArtifactError, ArtifactSpec
from dashboard.artifacts.git import since
from dashboard.artifacts.provide import Provided, provide
from dashboard.artifacts.runtimes.runtimes import RuntimeRequest, find_lacking, provide_runtimes
from dashboard.night.context import Context, write_reference
from dashboard.night.journal import Journal
from dashboard.night.progress import Progress
from dashboard.plan.devices import list_kinds
from dashboard.plan.job import Job, wanted_by
from dashboard.plan.reference import NIGHTS_BACK, TvmsTonight, list_paired
from tvmdash import common
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.incidents.file import find_open_regression
from tvmdash.records import data_stamps
from tvmdash.records.metrics import ENOUGH_RATIOS, FEWEST_ALONE
from tvmdash.series import store

_log = logging.getLogger("night")


class TvmSupply:
    """Gets the TVMs; nobody removes one before `leases` are released. `rebuild`: else only what is at hand counts."""

    def __init__(self, context: Context, journal: Journal, leases: contextlib.ExitStack, *, rebuild: bool) -> None:
        self._context, self._journal, self._leases, self.rebuild = context, journal, leases, rebuild
        self._config = context.plan.config
        self._logs = self._config.tmp_data / "logs" / context.stamp
        self.references: Mapping[ArtifactSpec, Artifact] = {}
        """The reference of each TVM."""

    def provide(self, jobs: Sequence[Job], progress: Progress) -> Mapping[ArtifactSpec, str]:
        """Get each TVM that the jobs want, and its reference; why each that is missing cannot be had."""
        for key in artifact_store.take_in(self._context.home.references, self._config.artifacts):
            self._journal.note(f"The TVM {key} was recovered from the restored home.")
        have: dict[ArtifactSpec, Artifact] = {}
        lack: dict[ArtifactSpec, str] = {}
        for spec in wanted_by(jobs):
            progress.report(f"getting TVM {spec.branch} from {spec.shown}")
            try:
                provided = self._provide_one(spec)
            except ArtifactError as error:
                lack[spec] = str(error)
                self._journal.note(f"Could not obtain TVM {spec.branch} from {spec.shown}: {error}", told=True)
                continue
            self._leases.callback(provided.lease.release)
            have[spec] = provided.artifact
            if provided.note:
                self._journal.note(provided.note)
        self._context.artifacts.update(have)
        for job in jobs:
            if job.tvm in have:
                with contextlib.suppress(OSError):  # only a recovery reads it; a full disk speaks up elsewhere
                    self._context.workspace(job).artifact.write_text(have[job.tvm].key, encoding="utf-8")
        nights = self._context.home.last_nights(NIGHTS_BACK, jobs=False)
        earlier = [night for night in nights if night.stamp < self._context.stamp]
        self._journal.change(artifacts=since.describe_artifacts(have, earlier, self._config.artifacts))
        progress.report("getting the reference")
        bad_since = find_open_regression(self._context.home)
        tonight = TvmsTonight(self._config, have, lack, earlier, self._logs, self.rebuild, bad_since=bad_since)
        self._provide_references(jobs, tonight)
        # Before the references are named: their loader paths hold the runtimes.
        self._provide_runtimes(jobs, progress)
        self._name_references(jobs)
        progress.report("")
        return lack

    def _provide_runtimes(self, jobs: Sequence[Job], progress: Progress) -> None:
        """Give each TVM the runtimes of the devices that are measured on it; what cannot be had costs their points."""
        if not self.rebuild:
            return
        for spec in wanted_by(jobs):
            kinds = list_kinds([job for job in jobs if job.tvm == spec], self._config)
            request = RuntimeRequest(kinds, self._config.tvm_source, self._logs)
            for artifact in filter(None, (self._context.artifacts.get(spec), self.references.get(spec))):
                if find_lacking(artifact, kinds):
                    progress.report(f"building the runtime of {', '.join(kinds)} for TVM {artifact.version}")
                for note in provide_runtimes(artifact, request):
                    self._journal.note(note)

    def _provide_references(self, jobs: Sequence[Job], tonight: TvmsTonight) -> None:
        """Get what each TVM is measured against; what cannot be had costs nothing else."""
        references = tonight.provide_references(list_paired(jobs, self._config), self._leases)
        for note in references.notes:
            self._journal.note(note)
        self._journal.change(references=references.records)
        self.references = references.artifacts
        for record in references.records:
            _log.info("measuring %s against %s", record.artifact, record.key)

    def _name_references(self, jobs: Sequence[Job]) -> None:
        """Tell each job's `run` stage what its TVM is measured against."""
        for job in jobs:
            reference = self.references.get(job.tvm) if job.tvm and job.alone is None else None
            if reference:
                with contextlib.suppress(OSError):  # its run is then measured alone
                    measured = count_measured(self._context.home, job.name, reference)
                    write_reference(self._context.workspace(job).reference, reference, measured)

    def _provide_one(self, spec: ArtifactSpec) -> Provided:
        config = self._config
        where = spec.shown if self.rebuild else f"what is in {config.artifacts}"
        _log.info("getting TVM %s from %s", spec.branch, where)
        timeout_s = config.getting_s(spec)
        provided = provide(
            spec,
            config.artifacts,
            rebuild=self.rebuild,
            log_folder=self._logs,
            timeout_s=timeout_s,
            fallback=config.fallback,
        )
        _log.info("TVM %s (%s) is ready", provided.artifact.version, provided.artifact.commit or "no commit known")
        return provided

    def prune(self) -> None:
        """Remove what was not used for longest, beyond the limit."""
        used = (*self._context.artifacts.values(), *self.references.values())
        keep = {artifact.key for artifact in used}
        try:
            removed = artifact_store.prune(self._config.artifacts, self._config.max_artifacts_bytes, keep).removed
        except OSError as error:
            self._journal.note(f"Removing old artifacts from {self._config.artifacts} failed: {error}")
            return
        for key in removed:
            _log.info("removed the least recently used artifact %s", key)


def count_measured(home: Home, experiment: str, reference: Artifact) -> dict[str, int]:
    """Count the pairs of the experiment's last night beside this reference, by the hash of all that a point ran.

    With those of the nights before that ran the same. What that night measured as its own TVM is now the reference
    itself, which needs no other reference. Nothing is told where times are still judged: they need all their processes.
    """
    stamps = data_stamps(home.data(experiment))
    try:
        value = common.read_json(home.data_file(experiment, stamps[-1])) if stamps else {}
        if stamps and _is_judged_by_times(home, experiment):
            return {}
    except (DashboardError, sqlite3.Error):  # whoever reads that night's data, or the index, says so
        return {}
    night = common.object_in(value, "night")
    keys = {common.object_in(night, name).get("key") for name in ("artifact", "reference")}
    records = value.get("records") if isinstance(value, dict) and reference.key in keys else None
    counts: dict[str, int] = {}
    for record in records if isinstance(records, list) else ():
        content = common.object_in(common.object_in(record, "additional_info"), "content")
        name, pairs = content.get("hash"), content.get("pairs")
        if isinstance(name, str) and isinstance(pairs, int):
            counts[name] = pairs
    return counts


def _is_judged_by_times(home: Home, experiment: str) -> bool:
    """Return True while too few nights beside a reference exist to replace the nights before them."""
    with store.open_for_reading(home.store_file, home.data(experiment), experiment) as index:
        beside = [build.reference is not None for build in index.builds(experiment).values()]
    return beside.count(False) >= FEWEST_ALONE and beside.count(True) < ENOUGH_RATIOS
