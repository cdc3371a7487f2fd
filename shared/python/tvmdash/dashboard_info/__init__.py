"""Every path of a home as a method, and what the nights left there as values."""

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
"""How a step ended. Blocked: something that it needs is missing. Skipped: it was not needed."""
RUNNING, COMPLETE, INTERRUPTED = "running", "complete", "interrupted"
_log = logging.getLogger("home")
_NO_RECORD = "It is not a night's record. Move it away; it is told as missing."
VARIANT_SIGN = "@"
"""Between an experiment's name and the name of the TVM, of those beside the home's own, that it is measured on."""
DEPENDENCIES = {"tvm_ffi": "tvm-ffi", "llvm_version": "LLVM"}
"""Facts of an artifact that say what its TVM is built with and runs beside, and what people call them."""
HOST_SIGN = "~"
"""Between an experiment's name and the name of the host, beside the home's own machine, that measures it."""
WEBSITE = "website"
"""The subsystem that makes the home's website."""
OF_REFERENCE = "reference"
"""In traces the processes of the reference are those of the experiment's variant of this name."""


def experiment_of(name: str) -> str:
    """The experiment whose code and config the job of this name has: that of `cnn~desk@release` is `cnn`."""
    return name.partition(VARIANT_SIGN)[0].partition(HOST_SIGN)[0]


def variant_of(name: str) -> str:
    """The name of the TVM that this job is measured on; empty for the home's own."""
    return name.partition(VARIANT_SIGN)[2]


def host_of(name: str) -> str:
    """The host that measures this job; empty for the home's own machine."""
    return name.partition(VARIANT_SIGN)[0].partition(HOST_SIGN)[2]


def make_title(name: str, title: str) -> str:
    """The title of the job `name`, whose config says `title`: host and TVM first, because lists cut an end off."""
    return ": ".join((*filter(None, (host_of(name), variant_of(name))), title))


class StepReason(enum.StrEnum):
    """Why a step was not run; what it is about is the result's `subject`."""

    KEPT = "kept"
    """What it would make is kept of the night `subject`."""
    PRECHECK_FAILED = "precheck_failed"
    STAGE_FAILED = "stage_failed"
    """The job's stage `subject` did not go well."""
    NO_TVM = "no_tvm"
    """The TVM `subject` cannot be had."""
    HOST_AWAY = "host_away"
    """The host `subject` did not measure it, or what it measured did not come home."""


@dataclass(frozen=True)
class StepResult:
    """How one stage of one job went on one night; `log_tail` holds the end of its output where it failed.

    `failed_points` of the data it left could not be measured or gave a wrong answer: the stage is ok, the night is not.
    in_log: its output ends with the message, as the script itself said.
    `reason` is a StepReason; empty where the stage ran, where its own script asked for something, and in old records.
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
        """Whether the end of its output is more than its message once more."""
        tail = self.log_tail.strip()
        return bool(tail) and ("\n" in tail or not (self.in_log or tail in self.message))

    @property
    def cause(self) -> tuple[str, str]:
        """The same for steps that the same thing stopped: its reason, or, where none is known, all that it says."""
        return (self.reason, self.subject) if self.reason else ("", self.message)

    @property
    def success(self) -> bool:
        """Whether what comes after it can go on."""
        return self.state in {OK, SKIPPED}

    def to_json(self) -> dict[str, Any]:
        """As status/NAME/STAGE.json holds it."""
        return {"success": self.success, **structured.to_json(self)}


@dataclass(frozen=True)
class JobResult:
    """How one job went on one night."""

    kind: str
    name: str
    title: str
    description: str
    steps: tuple[StepResult, ...]

    @property
    def state(self) -> str:
        """The worst of its steps: failed, blocked or ok."""
        states = {step.state for step in self.steps}
        return next((state for state in (FAILED, BLOCKED) if state in states), OK)

    @property
    def first_failure(self) -> StepResult | None:
        """The step that the rest of the job fell over."""
        return next((step for step in self.steps if not step.success), None)

    @property
    def failed_points(self) -> int:
        """How many points could not be measured or gave a wrong answer."""
        return sum(step.failed_points for step in self.steps)

    @property
    def well(self) -> bool:
        """Whether every stage and every point was good."""
        return self.state == OK and not self.failed_points

    @property
    def elapsed_s(self) -> float:
        """The seconds of all its steps together."""
        return sum(step.elapsed_s for step in self.steps)

    def to_json(self) -> dict[str, Any]:
        """As a line of the night's journal holds it."""
        return structured.to_json(self)

    @classmethod
    def from_json(cls, value: common.Json, where: Path) -> JobResult:
        """What `to_json` wrote to `where`; secrets in it, which an older dashboard let through, are hidden."""
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
    """How a night went on a host."""

    MEASURED = "measured"
    """The records of its night, with all that it measured, came home."""
    AWAY = "away"
    """It could not be reached, or its worker did not start."""
    REFUSED = "refused"
    """Its worker could not begin the night."""
    LOST = "lost"
    """It was lost while it measured or handed over; what it has measured comes home with its next night."""
    DAMAGED = "damaged"
    """What it handed in could not be taken in, and was set aside."""


@dataclass(frozen=True)
class HostNight:
    """One host on one night. `why` it has no results of the night, for people; empty where they came home.

    clock_offset_s: how far its clock is ahead. elapsed_s: until it had measured; what it measured may come home later.
    late: the stamps of earlier nights that it handed in tonight.
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
    """What commands call a wheel: `pypi:0.27.0`, or `wheel:mlc-ai-nightly-cpu@0.26.dev203` of another `source`.

    A source whose address holds a secret is nameable only as the home's own.
    """
    if not source:
        return f"pypi:{version}"
    return f"wheel:{version}" if HIDDEN in str(source) else f"{source}@{version}"


class ReferenceChoice(enum.StrEnum):
    """Who chose the reference of a night."""

    AUTO = "auto"
    """The dashboard: the release before, or the build before."""
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
    """One night: results/nights/<stamp>.json."""

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
    """Which of the notes, counted from 0, the failures of jobs tell as well."""
    references: tuple[Reference, ...] = ()
    """What its artifacts were measured against."""
    hosts: tuple[HostNight, ...] = ()
    """The other machines that measured, or should have."""
    pairs: int = 0
    """How many pairs of fresh processes its points had beside their reference, all together."""
    paired_s: float = 0.0
    """What the experiments took that have them."""
    timed_s: float = 0.0
    """What the samples of these pairs took alone; of a whole run in turn, all of it."""

    @property
    def pairs_a_minute(self) -> float:
        """How many pairs of processes of a point a minute gave; 0 where there were none."""
        return 60 * self.pairs / self.paired_s if self.paired_s else 0.0

    @property
    def most_pairs_a_minute(self) -> float:
        """How many it would give if nothing but their samples took time; 0 where that is not known."""
        return 60 * self.pairs / self.timed_s if self.timed_s else 0.0

    @property
    def speed_of_pairs(self) -> str:
        """Both in words."""
        most = f", at most {self.most_pairs_a_minute:.3g} by what was timed" if self.timed_s else ""
        return f"{self.pairs_a_minute:.3g} a minute{most}"

    @property
    def untold_notes(self) -> tuple[str, ...]:
        """The notes that no job's failure tells."""
        return tuple(note for index, note in enumerate(self.notes) if index not in self.told_notes)

    def with_note(self, words: str, *, told: bool = False) -> Night:
        """The night with one more note, unless it has it; told: jobs' failures tell it as well."""
        if words in self.notes:
            return self
        places = (*self.told_notes, len(self.notes)) if told else self.told_notes
        return replace(self, notes=(*self.notes, words), told_notes=places)

    def has_run_on(self, host: str) -> bool:
        """Whether the run of some experiment went well on that host."""
        jobs = [job for job in self.experiments if host_of(job.name) == host]
        return any(step.stage == "run" and step.success for job in jobs for step in job.steps)

    def list_taken(self, remote: str, branch: str) -> list[Mapping[str, Any]]:
        """Those of its artifacts that were taken for this remote and branch, as far as the record says so."""
        asked = {"remote": remote, "branch": branch}
        return [artifact for artifact in self.artifacts if asked in (artifact.get("asked") or ())]

    def describe_references(self, artifact: Mapping[str, Any]) -> str:
        """What one of its artifacts was measured against, as in "against TVM 0.26.0"; empty where it was alone."""
        against = [str(reference) for reference in self.references if reference.artifact == artifact.get("key")]
        return f"against {' and '.join(against)}" if against else ""

    @property
    def experiments(self) -> tuple[JobResult, ...]:
        """Those of its jobs that measure, in the order in which they ran."""
        return tuple(job for job in self.jobs if job.kind == stages.EXPERIMENT.kind)

    @property
    def subsystems(self) -> tuple[JobResult, ...]:
        """Its subsystems, in the order in which they ran."""
        return tuple(job for job in self.jobs if job.kind == stages.SUBSYSTEM.kind)

    @property
    def well(self) -> bool:
        """Whether, so far, every job went well and every archive of the home could be made."""
        return all(job.well for job in self.jobs) and not self.missing_backups

    def to_json(self) -> dict[str, Any]:
        """As the file holds it."""
        return structured.to_json(self)

    @classmethod
    def from_json(cls, value: common.Json, path: Path) -> Night:
        """What `to_json` wrote to `path`; secrets in it, which an older dashboard let through, are hidden."""
        return structured.from_json(cls, redact_json(value), path, remedy=_NO_RECORD)


@dataclass(frozen=True)
class Home:
    """A home directory; nothing is read before a method is called."""

    root: Path

    @classmethod
    def of_data_dir(cls, data_dir: Path) -> Home | None:
        """The home in which `data_dir` is an experiment's data folder, or None."""
        parents = data_dir.resolve().parents
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
        """What a running night, or one that was killed, did since its record was last written whole, one line each."""
        return self.nights / f"{stamp}.jsonl"

    @property
    def hosts(self) -> Path:
        """The folder of one folder for each host that ever handed something in: machine.json, nights/<stamp>.json."""
        return self.root / "results" / "hosts"

    @property
    def references(self) -> Path:
        """Where the reference's artifacts lie in a home that was restored; its next night takes them into the store."""
        return self.root / "references"

    @property
    def machine_file(self) -> Path:
        """What the home keeps of the machine that its numbers are of."""
        return self.root / "results" / identity.FILE

    def machine(self) -> MachineIdentity | None:
        """The machine that the home's numbers are of; None before its first night. DashboardError: a damaged file."""
        return identity.read(self.machine_file)

    @property
    def store_file(self) -> Path:
        """The index over all data files; it can be deleted."""
        return self.root / "results" / "store.sqlite"

    @property
    def lock_file(self) -> Path:
        """Held by a running night."""
        return self.root / ".lock"

    @property
    def turn_file(self) -> Path:
        """Held by what holds the home only for a while and lets nights pass."""
        return self.root / ".turn.lock"

    @property
    def waiting_file(self) -> Path:
        """Held by a night that waits for its turn."""
        return self.root / ".waiting.lock"

    def page(self) -> Path | None:
        """The website's first page, where there is one."""
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
        """The newest readable nights, newest first; without their jobs, most of what there is to read, if so asked."""
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
        """Title and value of the latest summary, where there is one."""
        return _read_text(self.summary(experiment) / "summary.json")

    def read_report(self, subsystem: str) -> tuple[str, str] | None:
        """Title and value of the subsystem's report, where there is one."""
        return _read_text(self.output(subsystem) / "report.json")

    def stamp_of(self, folder: Path) -> str | None:
        """The night that a graph or summary folder is from; None where nothing, or no stamp, says so."""
        path = folder / STAMP_FILE
        stamp = path.read_text(encoding="ascii", errors="replace").strip() if path.is_file() else ""
        return stamp if common.is_stamp(stamp) else None


@functools.lru_cache(maxsize=64)
def _read_without_jobs(path: Path, state: tuple[int, int, int]) -> Night:
    """The night in a file in this state; several ask for the same last nights."""
    value = common.read_json(path)
    return Night.from_json({**value, "jobs": []} if isinstance(value, dict) else value, path)


@dataclass(frozen=True)
class _JournalLine:
    """A note, or steps of a job, that a night has added to its record."""

    note: str = ""
    told: bool = False
    job: JobResult | None = None


def _with_journal(night: Night, path: Path) -> Night:
    """The night with what its journal adds; what the record already holds, and a line cut by a kill, add nothing."""
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
    """The lines of a night's journal; one that is no such line is logged and passed over."""
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
"""Beside graphs and summaries: the night they are from."""


def check_summary(value: common.Json) -> tuple[str, str]:
    """Title and value of a summary.json or report.json; DashboardError names the place."""
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
