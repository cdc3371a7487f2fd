"""Paths of a home as methods, and the records of its nights as values."""

from __future__ import annotations

import contextlib
import enum
import functools
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tvmdash import common, config_util
from tvmdash.common import structured
from tvmdash.dashboard_info import stages
from tvmdash.errors import DashboardError
from tvmdash.machine import identity
from tvmdash.machine.identity import MachineChange, MachineIdentity
from tvmdash.redaction import HIDDEN, redact_json

OK, FAILED, BLOCKED, SKIPPED = "ok", "failed", "blocked", "skipped"
"""States of a finished step. Blocked: something that it needs is missing. Skipped: it was not needed."""
RUNNING, COMPLETE, INTERRUPTED = "running", "complete", "interrupted"
_log = logging.getLogger("home")
_NO_RECORD = "It is not a night's record. Move it away; it is told as missing."
VARIANT_SIGN = "@"
"""Separates an experiment's name from the name of the additional TVM that it is measured on."""
DEPENDENCIES = {"tvm_ffi": "tvm-ffi", "llvm_version": "LLVM"}
"""Build and runtime dependencies of a TVM among the facts of its artifact, with their display names."""
HOST_SIGN = "~"
"""Separates an experiment's name from the name of the remote host that measures it."""
WEBSITE = "website"
"""The subsystem that makes the home's website."""
OF_REFERENCE = "reference"
"""Name under which traces hold the processes of the reference, like those of a variant."""


def experiment_of(name: str) -> str:
    """Return the experiment whose code and config the job of this name has: `cnn` for `cnn~desk@release`."""
    return name.partition(VARIANT_SIGN)[0].partition(HOST_SIGN)[0]


def variant_of(name: str) -> str:
    """Return the name of the TVM that this job is measured on; empty for the home's own."""
    return name.partition(VARIANT_SIGN)[2]


def host_of(name: str) -> str:
    """Return the host that measures this job; empty for the home's own machine."""
    return name.partition(VARIANT_SIGN)[0].partition(HOST_SIGN)[2]


def make_title(name: str, title: str) -> str:
    """Return the title of job `name`, whose config says `title`: host and TVM first, because lists cut an end off."""
    return ": ".join((*filter(None, (host_of(name), variant_of(name))), title))


class StepReason(enum.StrEnum):
    """Reasons for a step that was not run; the result's `subject` is the night, stage, TVM or host."""

    KEPT = "kept"
    """Its output of the night `subject` is still valid."""
    PRECHECK_FAILED = "precheck_failed"
    STAGE_FAILED = "stage_failed"
    """The job's stage `subject` failed or was blocked."""
    NO_TVM = "no_tvm"
    """The TVM `subject` is not available."""
    HOST_AWAY = "host_away"
    """The host `subject` did not measure it, or its results did not arrive."""


@dataclass(frozen=True)
class StepResult:
    """Result of one stage of one job on one night; `log_tail` is the end of its output where it failed.

    failed_points: points that could not be measured or gave a wrong answer; the stage is ok, the night is not.
    in_log: its output ends with the message, as the script itself said.
    reason: a StepReason; empty where the stage ran, where its own script asked for something, and in old records.
    """

    stage: str
    state: str
    message: str
    stamp: str
    elapsed_s: float = 0.0
    log_tail: str = ""
    failed_points: int = 0
    started_ns: int | None = None
    reason: str = ""
    subject: str = ""
    in_log: bool = False

    @property
    def log_adds(self) -> bool:
        """Return True where the end of its output says more than its message."""
        tail = self.log_tail.strip()
        return bool(tail) and ("\n" in tail or not (self.in_log or tail in self.message))

    @property
    def cause(self) -> tuple[str, str]:
        """Return a key that is equal for steps stopped by one thing: reason and subject, or the message alone."""
        return (self.reason, self.subject) if self.reason else ("", self.message)

    @property
    def success(self) -> bool:
        return self.state in {OK, SKIPPED}

    def to_json(self) -> dict[str, Any]:
        """Return the content of status/NAME/STAGE.json."""
        return {"success": self.success, **structured.to_json(self)}


@dataclass(frozen=True)
class JobResult:
    """Result of one job on one night."""

    kind: str
    name: str
    title: str
    description: str
    steps: tuple[StepResult, ...]

    @property
    def state(self) -> str:
        """Return the worst state of its steps: failed, blocked or ok."""
        states = {step.state for step in self.steps}
        return next((state for state in (FAILED, BLOCKED) if state in states), OK)

    @property
    def first_failure(self) -> StepResult | None:
        """Return the first step that failed or was blocked."""
        return next((step for step in self.steps if not step.success), None)

    @property
    def failed_points(self) -> int:
        return sum(step.failed_points for step in self.steps)

    @property
    def well(self) -> bool:
        """Return True where every stage is ok and no point failed."""
        return self.state == OK and not self.failed_points

    @property
    def elapsed_s(self) -> float:
        return sum(step.elapsed_s for step in self.steps)

    def to_json(self) -> dict[str, Any]:
        """Return the job as a line of the night's journal holds it."""
        return structured.to_json(self)

    @classmethod
    def from_json(cls, value: common.Json, where: Path) -> JobResult:
        """Parse what `to_json` wrote to `where`; hide secrets in it, which an older dashboard let through."""
        return structured.from_json(cls, redact_json(value), where)


@dataclass(frozen=True)
class MissingBackup:
    """An archive of the home, `before` or `after` the night, that could not be made; `error` says why."""

    moment: str
    error: str


@dataclass(frozen=True)
class PartialData:
    """Data of a run that was ended in the middle: `measured` of the `planned` points of an experiment."""

    experiment: str
    measured: int
    planned: int


class HostState(enum.StrEnum):
    """State of a host on one night."""

    MEASURED = "measured"
    """Records and raw data of its night arrived."""
    AWAY = "away"
    """It was unreachable, or its worker did not start."""
    REFUSED = "refused"
    """Its worker could not begin the night."""
    LOST = "lost"
    """Contact was lost during measurement or transfer; what it has measured arrives with its next night."""
    DAMAGED = "damaged"
    """Its results could not be imported and were set aside."""


@dataclass(frozen=True)
class HostNight:
    """One host on one night; `why` explains to people why it has no results of the night, and is empty where it has.

    clock_offset_s: lead of its clock. elapsed_s: until it had measured; the results may arrive later.
    late: stamps of earlier nights whose results arrived tonight.
    """

    name: str
    state: HostState
    why: str
    node: str = ""
    hw_model: str = ""
    clock_offset_s: float = 0.0
    elapsed_s: float = 0.0
    late: tuple[str, ...] = ()


def name_wheel(version: str, source: object = "") -> str:
    """Return a wheel's name in commands: `pypi:0.27.0`; of another `source`, `wheel:mlc-ai-nightly-cpu@0.26.dev203`.

    A source whose address holds a secret is nameable only as the home's own.
    """
    if not source:
        return f"pypi:{version}"
    return f"wheel:{version}" if HIDDEN in str(source) else f"{source}@{version}"


class ReferenceChoice(enum.StrEnum):
    """The chooser of a night's reference."""

    AUTO = "auto"
    """The dashboard: the previous release or build."""
    NAMED = "named"
    """The home's config names it."""


@dataclass(frozen=True)
class Reference:
    """The TVM that tonight's, the artifact with the key `artifact`, was measured against.

    Where the two keys are the same, TVM was measured against itself: an A/A test.
    """

    artifact: str
    key: str
    provider: str
    version: str
    commit: str | None
    choice: ReferenceChoice

    def __str__(self) -> str:
        if self.key == self.artifact:
            return "itself (an A/A test)"
        return f"TVM {self.version}"


@dataclass(frozen=True)
class Night:
    """The record of one night: results/nights/<stamp>.json."""

    stamp: str
    state: str
    ended: str | None = None
    elapsed_s: float = 0.0
    seed: int | None = None
    repository: Mapping[str, Any] = field(default_factory=dict)
    artifacts: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    machine: MachineIdentity | None = None
    machine_changes: tuple[MachineChange, ...] = ()
    jobs: tuple[JobResult, ...] = ()
    missing_backups: tuple[MissingBackup, ...] = ()
    partial: tuple[PartialData, ...] = ()
    told_notes: tuple[int, ...] = ()
    """Indexes of notes that the failures of jobs repeat."""
    references: tuple[Reference, ...] = ()
    hosts: tuple[HostNight, ...] = ()
    """The remote hosts that were to measure."""
    pairs: int = 0
    """Pairs of fresh processes, of its points and their reference, in total."""
    paired_s: float = 0.0
    """Elapsed seconds of the experiments with such pairs."""
    timed_s: float = 0.0
    """Seconds within these pairs' samples; whole runs measured in turn count in full."""

    @property
    def pairs_a_minute(self) -> float:
        """Return the pairs of processes per minute; 0 without any."""
        return 60 * self.pairs / self.paired_s if self.paired_s else 0.0

    @property
    def most_pairs_a_minute(self) -> float:
        """Return the rate if nothing but samples took time, an upper bound; 0 where unknown."""
        return 60 * self.pairs / self.timed_s if self.timed_s else 0.0

    @property
    def speed_of_pairs(self) -> str:
        """Return both rates as text."""
        most = f", at most {self.most_pairs_a_minute:.3g} by what was timed" if self.timed_s else ""
        return f"{self.pairs_a_minute:.3g} a minute{most}"

    @property
    def untold_notes(self) -> tuple[str, ...]:
        """Return the notes that no job's failure repeats."""
        return tuple(note for index, note in enumerate(self.notes) if index not in self.told_notes)

    def with_note(self, words: str, *, told: bool = False) -> Night:
        """Return the night with one more note, unless it has it; told: jobs' failures repeat it."""
        if words in self.notes:
            return self
        places = (*self.told_notes, len(self.notes)) if told else self.told_notes
        return replace(self, notes=(*self.notes, words), told_notes=places)

    def has_run_on(self, host: str) -> bool:
        """Return True where some experiment's run succeeded on that host."""
        jobs = [job for job in self.experiments if host_of(job.name) == host]
        return any(step.stage == "run" and step.success for job in jobs for step in job.steps)

    def list_taken(self, remote: str, branch: str) -> list[Mapping[str, Any]]:
        """Return its artifacts that were resolved from this remote and branch, as far as the record says so."""
        asked = {"remote": remote, "branch": branch}
        return [artifact for artifact in self.artifacts if asked in (artifact.get("asked") or ())]

    def describe_references(self, artifact: Mapping[str, Any]) -> str:
        """Return "against TVM 0.26.0" or the like for one of its artifacts; empty where it was measured alone."""
        against = [str(reference) for reference in self.references if reference.artifact == artifact.get("key")]
        return f"against {' and '.join(against)}" if against else ""

    @property
    def experiments(self) -> tuple[JobResult, ...]:
        """Return its experiments in the order in which they ran."""
        return tuple(job for job in self.jobs if job.kind == stages.EXPERIMENT.kind)

    @property
    def subsystems(self) -> tuple[JobResult, ...]:
        """Return its subsystems in the order in which they ran."""
        return tuple(job for job in self.jobs if job.kind == stages.SUBSYSTEM.kind)

    @property
    def well(self) -> bool:
        """Return True where, so far, every job is well and no archive of the home is missing."""
        return all(job.well for job in self.jobs) and not self.missing_backups

    def to_json(self) -> dict[str, Any]:
        return structured.to_json(self)

    @classmethod
    def from_json(cls, value: common.Json, path: Path) -> Night:
        """Parse what `to_json` wrote to `path`; hide secrets in it, which an older dashboard let through."""
        return structured.from_json(cls, redact_json(value), path, remedy=_NO_RECORD)


@dataclass(frozen=True)
class Home:
    """A home directory; nothing is read before a method is called."""

    root: Path

    @classmethod
    def of_data_dir(cls, data_dir: Path) -> Home | None:
        """Return the home in which `data_dir` is an experiment's data folder, or None."""
        parents = data_dir.resolve().parents
        # HOME/results/experiments/data/NAME
        home = cls(parents[3]) if len(parents) > 3 else None
        return home if home is not None and home.data(data_dir.name) == data_dir.resolve() else None

    @property
    def config_file(self) -> Path:
        """The top-level config."""
        return self.root / "config" / config_util.CONFIG_FILE

    def configs(self, kind: str) -> Path:
        """The folder with one folder for each job of this kind."""
        return self.root / "config" / stages.pipeline(kind).folder

    def config(self, kind: str, name: str) -> Path:
        """The job's config folder; an experiment has one for all TVMs."""
        return self.configs(kind) / (experiment_of(name) if stages.pipeline(kind).measures else name)

    def _result(self, kind: str, what: str, name: str) -> Path:
        return self.root / "results" / stages.pipeline(kind).folder / what / name

    def status(self, kind: str, name: str) -> Path:
        """The folder of the job's STAGE.json and STAGE.log files."""
        return self._result(kind, "status", name)

    def data(self, experiment: str) -> Path:
        """The folder of the experiment's data_<stamp>.json files."""
        return self._result("experiment", "data", experiment)

    def experiments_with_data(self) -> list[str]:
        """The names of the experiments that ever left data, sorted; those measured on another TVM have their own."""
        return sorted(path.name for path in self.data("x").parent.glob("*") if path.is_dir())

    def data_file(self, experiment: str, stamp: str) -> Path:
        """One night's data of an experiment."""
        return self.data(experiment) / f"data_{stamp}.json"

    def backfill(self, experiment: str) -> Path:
        """The folder of the experiment's data_<stamp>.json files that `backfill` measured on other TVMs."""
        return self._result("experiment", "backfill", experiment)

    @property
    def backfills(self) -> Path:
        """The folder of one <stamp>.json for each call of `backfill`."""
        return self.root / "results" / "backfills"

    @property
    def tries(self) -> Path:
        """The folder of one <stamp>.json for each `try`, with its queue."""
        return self.root / "results" / "tries"

    def summary(self, experiment: str) -> Path:
        """The folder of the latest summary."""
        return self._result("experiment", "summary", experiment)

    def graph(self, experiment: str) -> Path:
        """The folder of the latest graphs."""
        return self._result("experiment", "graph", experiment)

    def output(self, subsystem: str) -> Path:
        """The subsystem's own folder, never cleaned."""
        return self._result("subsystem", "output", subsystem)

    @functools.cached_property
    def nights(self) -> Path:
        """The folder of one <stamp>.json for each night."""
        return self.root / "results" / "nights"

    def night_file(self, stamp: str) -> Path:
        """The record of one night."""
        return self.nights / f"{stamp}.json"

    def night_journal(self, stamp: str) -> Path:
        """Return the journal of a night: a line for each change since its record was last written whole."""
        return self.nights / f"{stamp}.jsonl"

    @property
    def hosts(self) -> Path:
        """The folder of one folder for each host that ever handed something in: machine.json, nights/<stamp>.json."""
        return self.root / "results" / "hosts"

    @property
    def references(self) -> Path:
        """Return the folder of the reference's artifacts in a restored home; its next night moves them to the store."""
        return self.root / "references"

    @property
    def machine_file(self) -> Path:
        """Return the file that identifies the machine of the home's numbers."""
        return self.root / "results" / identity.FILE

    def machine(self) -> MachineIdentity | None:
        """Read the machine of the home's numbers; None before its first night. DashboardError: a damaged file."""
        return identity.read(self.machine_file)

    @property
    def store_file(self) -> Path:
        """The index over all data files; it can be deleted."""
        return self.root / "results" / "store.sqlite"

    @property
    def lock_file(self) -> Path:
        """Return the lock that a running night holds."""
        return self.root / ".lock"

    @property
    def turn_file(self) -> Path:
        """Return the lock that brief users of the home hold, who let nights pass."""
        return self.root / ".turn.lock"

    @property
    def waiting_file(self) -> Path:
        """Return the lock that a night holds while it waits for its turn."""
        return self.root / ".waiting.lock"

    def page(self) -> Path | None:
        """Return the website's first page, or None."""
        path = self.output(WEBSITE) / "index.html"
        return path if path.is_file() else None

    def night_stamps(self) -> list[str]:
        """The stamps of all nights, oldest first."""
        if not self.nights.is_dir():
            return []
        names = (path.name.removesuffix(".json") for path in self.nights.glob("*.json"))
        return sorted(name for name in names if common.is_stamp(name))

    def read_night(self, stamp: str) -> Night:
        """The record of one night, of a running one up to now; DashboardError where it is not readable."""
        path = self.night_file(stamp)
        night = Night.from_json(common.read_json(path), path)
        return night if night.state != RUNNING else _with_journal(night, self.night_journal(stamp))

    def last_nights(self, count: int, *, jobs: bool = True) -> Iterator[Night]:
        """Yield the newest readable nights, newest first; `jobs=False` skips their jobs, most of the parsing."""
        for stamp in self.night_stamps()[: -count - 1 : -1]:
            with contextlib.suppress(DashboardError, OSError):  # one broken file must not hide the other nights
                yield self.read_night(stamp) if jobs else self._read_without_jobs(stamp)

    def _read_without_jobs(self, stamp: str) -> Night:
        path = self.night_file(stamp)
        status = path.stat()
        return _read_without_jobs(path, (status.st_ino, status.st_mtime_ns, status.st_size))

    def data_stamps(self, experiment: str) -> list[str]:
        """The stamps of the experiment's data files, oldest first."""
        return common.data_stamps(self.data(experiment))

    def read_summary(self, experiment: str) -> tuple[str, str] | None:
        """Read title and value of the latest summary, or None."""
        return _read_text(self.summary(experiment) / "summary.json")

    def read_report(self, subsystem: str) -> tuple[str, str] | None:
        """Read title and value of the subsystem's report, or None."""
        return _read_text(self.output(subsystem) / "report.json")

    def stamp_of(self, folder: Path) -> str | None:
        """Return the night that a graph or summary folder is from, or None where it has no valid stamp."""
        path = folder / STAMP_FILE
        stamp = path.read_text(encoding="ascii", errors="replace").strip() if path.is_file() else ""
        return stamp if common.is_stamp(stamp) else None


@functools.lru_cache(maxsize=64)
def _read_without_jobs(path: Path, state: tuple[int, int, int]) -> Night:
    """Read a night; `state` of the file is part of the cache key, as several callers ask for the same last nights."""
    value = common.read_json(path)
    return Night.from_json({**value, "jobs": []} if isinstance(value, dict) else value, path)


@dataclass(frozen=True)
class _JournalLine:
    """A note, or steps of a job, that a night has added to its record."""

    note: str = ""
    told: bool = False
    job: JobResult | None = None


def _with_journal(night: Night, path: Path) -> Night:
    """Apply the journal to the night; what the record already holds, and a line cut by a kill, add nothing."""
    jobs = {(job.kind, job.name): job for job in night.jobs}
    for line in _read_journal(path):
        if line.note:
            night = night.with_note(line.note, told=line.told)
        if line.job:
            new = line.job
            known = jobs.setdefault((new.kind, new.name), replace(new, steps=()))
            stages_known = {step.stage for step in known.steps}
            added = tuple(step for step in new.steps if step.stage not in stages_known)
            jobs[new.kind, new.name] = replace(known, steps=(*known.steps, *added))
    return replace(night, jobs=tuple(jobs.values()))


def _read_journal(path: Path) -> Iterator[_JournalLine]:
    """Yield the lines of a night's journal; log and skip an invalid one."""
    try:
        lines = path.read_bytes().split(b"\n") if path.is_file() else []
    except OSError:
        return
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        where = f"{path}:{number}"
        try:
            yield structured.from_json(_JournalLine, redact_json(common.parse_json(line, where)), where)
        except DashboardError as error:
            _log.warning("This line of a night's journal is passed over: %s", error)


STAMP_FILE = ".stamp"
"""File beside graphs and summaries that names the night they are from."""


def check_summary(value: common.Json) -> tuple[str, str]:
    """Return title and value of a summary.json or report.json; DashboardError names the place."""
    if not isinstance(value, dict):
        raise DashboardError(f"$: {type(value).__name__} is not an object with title and value.")
    for name in ("title", "value"):
        if not isinstance(value.get(name), str):
            raise DashboardError(f"$.{name}: {value.get(name)!r:.60} is not a string.")
    return value["title"], value["value"]


def _read_text(path: Path) -> tuple[str, str] | None:
    try:
        return check_summary(common.read_json(path, max_bytes=1 << 20))
    except DashboardError:
        return None  # the night's record already says why there is none
