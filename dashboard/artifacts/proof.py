"""Proves a TVM build healthy, by `health.py` in a process of its own, before anything is measured with it."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dashboard.artifacts import health
from dashboard.artifacts.artifact import ArtifactError
from dashboard.artifacts.locks import LockDeadline
from dashboard.process import process
from dashboard.process.sandbox import Guest
from tvmdash import common
from tvmdash.errors import DashboardError

HEALTH_TIMEOUT_S = 300.0
"""The check takes a second; importing TVM on a loaded machine was seen to take sixteen."""

_MAX_REASON = 300


@dataclass(frozen=True)
class Health:
    """The facts that a healthy build reported. `commit`, `llvm_version` are None where it does not know."""

    tvm_version: str
    tvm_ffi_version: str
    commit: str | None
    numpy_version: str
    llvm_version: str | None = None

    @property
    def facts(self) -> dict[str, str]:
        """The part of these that an artifact's facts keep."""
        llvm = {"llvm_version": self.llvm_version} if self.llvm_version else {}
        return {"tvm_ffi": self.tvm_ffi_version, **llvm, "proved_with_numpy": self.numpy_version}


def prove(
    pythonpath: Sequence[Path],
    library_path: Sequence[Path],
    *,
    scratch: Path,
    log: Path,
    deadline: LockDeadline,
    guest: Guest | None = None,
) -> Health:
    """Prove the build at `pythonpath`; ArtifactError says at which step and how it failed.

    guest: how it is run where its code is not trusted.
    """
    argv, check = [str(health.__file__)], Check(pythonpath, library_path, scratch, log, deadline)
    return parse_health(check.run(argv, guest), pythonpath, log)


@dataclass(frozen=True)
class Check:
    """A check of the build at `pythonpath` in a process of its own, which prints `step: NAME` as it goes."""

    pythonpath: Sequence[Path]
    library_path: Sequence[Path]
    scratch: Path
    log: Path
    deadline: LockDeadline
    variables: Mapping[str, str] = field(default_factory=dict)

    def run(self, argv: Sequence[str], guest: Guest | None = None) -> str:
        """Run the script `argv`; return the end of its output. ArtifactError says at which step it failed, and how."""
        self.scratch.mkdir(exist_ok=True)
        visible = (Path(argv[0]), *self.pythonpath, *self.library_path)
        outcome = process.run(
            [sys.executable, *argv],
            cwd=self.scratch,
            env={**_environment(self.pythonpath, self.library_path, home=self.scratch), **self.variables},
            timeout_s=min(HEALTH_TIMEOUT_S, self.deadline.left_s()),
            log=self.log,
            sandbox=guest.make_sandbox(visible, (self.scratch,)) if guest else None,
        )
        if outcome.exit_code != 0 or outcome.timed_out:
            raise ArtifactError(_format_reason(outcome, self.log))
        return outcome.tail


def _environment(pythonpath: Sequence[Path], library_path: Sequence[Path], home: Path) -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PYTHONPATH": os.pathsep.join(map(str, pythonpath)),
        "LD_LIBRARY_PATH": os.pathsep.join(map(str, library_path)),
    }


def _format_reason(outcome: process.ProcessOutcome, log: Path) -> str:
    steps = re.findall(r"^step: (\w+)$", log.read_text(encoding="utf-8", errors="replace"), flags=re.MULTILINE)
    where = f"in step {steps[-1]}" if steps else "before its first step"
    if outcome.timed_out:
        return f"{where}: timed out after {outcome.elapsed_s:.0f} s (log: {log})"
    if outcome.signal is not None:
        return f"{where}: killed by {signal.Signals(outcome.signal).name} (log: {log})"
    last_line = outcome.tail.rsplit("\n", 1)[-1].strip()
    return f"{where}: exit status {outcome.exit_code}: {last_line[:_MAX_REASON]} (log: {log})"


def parse_health(tail: str, pythonpath: Sequence[Path], log: Path) -> Health:
    """Parse the check's output; ArtifactError unless it is of a TVM in `pythonpath`."""
    try:
        value = read_answer(tail, log)
        file = Path(value["tvm_file"])
        names = ("tvm_version", "tvm_ffi_version", "commit", "numpy_version")
        health = replace(Health(*(value[name] for name in names)), llvm_version=value.get("llvm_version"))
    except (DashboardError, KeyError, TypeError) as error:
        raise ArtifactError(f"the check succeeded but wrote no readable result: {error} (log: {log})") from error
    if not any(folder in file.parents for folder in pythonpath):
        raise ArtifactError(f"it imported another TVM, {file}. Uninstall apache-tvm from {sys.executable}.")
    return replace(health, commit=_strip_commit(health.commit))


def read_answer(tail: str, log: Path) -> Any:
    """Parse the last line of a check's output that is a JSON object; DashboardError where none is."""
    line = next((line for line in reversed(tail.split("\n")) if line.startswith("{")), "")
    return common.parse_json(line.encode(), str(log))


def _strip_commit(commit: str | None) -> str | None:
    """Remove the g that git describe puts before a commit."""
    return re.sub(r"^g(?=[0-9a-f]{7,40}$)", "", commit) if commit else None
