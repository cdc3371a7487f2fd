"""The record of a running night: statuses by stage, and results/nights/<stamp>.json with its journal."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dashboard.plan.job import Job
from tvmdash import common
from tvmdash.common.files import trees
from tvmdash.dashboard_info import RUNNING, Home, JobResult, Night, StepResult
from tvmdash.dashboard_info.home_secrets import find_secrets_of_home
from tvmdash.redaction import redact, redact_json

_BALLAST_BYTES = 4 << 20
_MOST_LOG_BYTES = 1 << 20
"""A stage's log, as BoundedLog writes it, is a quarter of that."""
_FULL = frozenset((errno.ENOSPC, errno.EDQUOT))
_log = logging.getLogger("night")


class Journal:
    """The record of the night so far; safe to be called from several threads.

    What happens is added to the night's journal, a line for each step or note. The record is written whole when the
    night begins, ends and passes from its experiments to its subsystems, so that it writes a small multiple of what its
    record holds in the end, however many jobs it has.
    """

    def __init__(self, home: Home, night: Night) -> None:
        self._home = home
        self._night = night
        self._secrets = find_secrets_of_home(home)
        self._jobs = {(job.kind, job.name): job for job in night.jobs}
        self._begun = time.monotonic()
        # `record` notes what it cannot write while it holds the lock.
        self._lock = threading.RLock()
        self._ballast = home.nights.parent / ".ballast.keep.tmp"
        home.nights.mkdir(parents=True, exist_ok=True)
        # Taken now, because the end of a night must be recorded even on a disk that the night has filled.
        _make_ballast(self._ballast)
        self.write_whole()

    @property
    def night(self) -> Night:
        with self._lock:
            return dataclasses.replace(self._night, jobs=tuple(self._jobs.values()))

    def change(self, **changes: Any) -> None:
        with self._lock:
            self._night = dataclasses.replace(self._night, **changes)
            self.write_whole()

    def note(self, words: str, *, told: bool = False) -> None:
        """Add a sentence that the night's readers should see; told: jobs' failures tell it as well."""
        with self._lock:
            self._night = self._night.with_note(words, told=told)
            self._add({"note": words, "told": told})

    def record(self, job: Job, result: StepResult, log: Path | None = None) -> None:
        """Keep how a step went: in the job's status folder, with its log, and in the night's record.

        Secrets are hidden in all of them.
        """
        texts = (result.message, result.log_tail, result.subject)
        message, log_tail, subject = (redact(text, self._secrets) for text in texts)
        result = dataclasses.replace(result, message=message, log_tail=log_tail, subject=subject)
        with self._lock:
            new = JobResult(job.kind, job.name, job.title, job.description, ())
            before = self._jobs.get((job.kind, job.name), new)
            self._jobs[job.kind, job.name] = dataclasses.replace(before, steps=(*before.steps, result))
            try:
                self._write_status(job, result, log)
            except OSError as error:  # something lies where it should; the night's record knows the status as well
                where = error.filename2 or error.filename or self._home.status(job.kind, job.name)
                self.note(f"{where}: cannot be written: {error.strerror}. Move away what lies there.")
            self._add({"job": dataclasses.replace(before, steps=(result,)).to_json()})

    def _add(self, entry: dict[str, Any]) -> None:
        """Add a line to the journal; once the night has ended, whose journal nobody reads, write the whole record."""
        if self._night.state != RUNNING:
            self.write_whole()
            return
        text = json.dumps(redact_json(entry, self._secrets), allow_nan=False, ensure_ascii=False)
        line = f"\n{text}".encode(errors="replace")  # a line that a full disk cut ends where the next one begins
        self._write_despite_full_disk(lambda: _append(self._home.night_journal(self._night.stamp), line))

    def write_whole(self) -> None:
        """Write the whole record, for readers who know no journal; the journal is empty then."""
        with self._lock:
            self._write_despite_full_disk(self._write_record)

    def _write_record(self) -> None:
        shown = redact_json(self.night.to_json(), self._secrets)
        raw = common.dump_json(shown).encode("utf-8", errors="replace")
        common.write_bytes(self._home.night_file(self._night.stamp), raw)
        self._home.night_journal(self._night.stamp).unlink(missing_ok=True)

    def close(self, state: str) -> Night:
        elapsed = time.monotonic() - self._begun
        self.change(state=state, ended=common.stamp_of(common.utc_now()), elapsed_s=round(elapsed, 3))
        self._ballast.unlink(missing_ok=True)
        return self.night

    def _write_status(self, job: Job, result: StepResult, log: Path | None) -> None:
        folder = self._home.status(job.kind, job.name)
        self._write_despite_full_disk(lambda: _write_beside(folder / f"{result.stage}.json", result.to_json()))
        kept = folder / f"{result.stage}.log"
        text = _read_log(log) if log else None
        if text is None:
            kept.unlink(missing_ok=True)
            return
        with contextlib.suppress(OSError):  # the status holds the log's tail; a full disk costs the rest of it
            common.write_text(kept, redact(text, self._secrets))

    def _write_despite_full_disk(self, write: Callable[[], None]) -> None:
        """Write; on a full disk give up the ballast, which was kept for just that, and write again.

        Where even that is used up, the night goes on without: what it measured is worth more than its record.
        """
        try:
            write()
        except OSError as error:
            if error.errno not in _FULL:
                raise
            self._ballast.unlink(missing_ok=True)
            note = f"The disk with {self._home.root} is full. Free some space before the next night."
            self._night = self._night.with_note(note)
            try:
                write()
            except OSError as again:
                if again.errno not in _FULL:
                    raise
                _log.warning("%s: the disk is full; the outcome of this step was not recorded.", self._home.root)


def _read_log(log: Path) -> str | None:
    """Read the stage's output; None where it has no log, or put something else in its place."""
    with contextlib.suppress(OSError), trees.open_file(log.parent, log.name) as file:
        return file.read(_MOST_LOG_BYTES).decode("utf-8", errors="surrogateescape")
    return None


def _append(path: Path, line: bytes) -> None:
    with path.open("ab", buffering=0) as file:
        if file.write(line) < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        os.fsync(file.fileno())


def _write_beside(path: Path, value: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    common.write_json(path, value)


def _make_ballast(path: Path) -> None:
    try:
        with path.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, _BALLAST_BYTES)
    except OSError as error:
        path.unlink(missing_ok=True)
        _log.warning("%s: could not reserve space for the case that the disk fills up: %s.", path, error.strerror)
