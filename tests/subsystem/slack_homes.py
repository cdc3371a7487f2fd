"""Homes with a night on record, and a subsystem run on them as a night runs it."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.subsystem import scripts
from tvmdash import common
from tvmdash.dashboard_info import BLOCKED, FAILED, OK, Home, JobResult, Night, StepResult
from tvmdash.dashboard_info.stages import pipeline
from tvmdash.subsys_templates import Subsystem

REPO = Path(__file__).resolve().parents[2]
STAMP = "20261121T031500Z"
VERSION = {"provider": "wheel", "version": "0.27.0.post1", "commit": "7b5acb32b"}
PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True)
class Done:
    """What the script left: its exit code and status, its output and log."""

    code: int
    message: str
    success: bool
    output: Path
    log: str

    @property
    def text(self) -> str:
        """The message as people see it."""
        return (self.output / "message.txt").read_text(encoding="utf-8")

    @property
    def report(self) -> str:
        return str(json.loads((self.output / "report.json").read_text(encoding="utf-8"))["value"])


def job(
    name: str, state: str = OK, *, kind: str = "experiment", title: str = "", at: str = "run", **step: Any
) -> JobResult:
    """A job that is ok, or that failed or was blocked at a stage."""
    names = ["precheck", *(stage.name for stage in pipeline(kind).stages if not stage.optional)]
    results = [StepResult(stage, OK, "went well", STAMP, 2.0) for stage in names]
    if state != OK:
        begin = names.index(at)
        results[begin] = StepResult(
            at, state, step.pop("message", "it broke"), STAMP, step.pop("elapsed_s", 62.0), **step
        )
        results[begin + 1 :] = [StepResult(stage, BLOCKED, f"{at} failed", STAMP) for stage in names[begin + 1 :]]
    return JobResult(kind, name, title or name, "", tuple(results))


def night(*jobs: JobResult, **changes: Any) -> Night:
    """Tonight, with its subsystems at work."""
    return Night(**{"stamp": STAMP, "state": "running", "artifacts": (VERSION,), "jobs": jobs, **changes})


def write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    common.write_json(path, value)


@functools.cache
def _subsystem(name: str) -> Subsystem:
    defined = [value for value in vars(scripts.load(name)).values() if isinstance(value, type)]
    (own,) = [kind for kind in defined if issubclass(kind, Subsystem) and kind is not Subsystem]
    return own()


@contextlib.contextmanager
def _hear() -> Iterator[io.StringIO]:
    """What is logged and printed meanwhile, as a night keeps it of a script."""
    heard = io.StringIO()
    handler = logging.StreamHandler(heard)
    root, level = logging.getLogger(), logging.getLogger().level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    try:
        with contextlib.redirect_stdout(heard), contextlib.redirect_stderr(heard):
            yield heard
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


@dataclass(frozen=True)
class SlackHome:
    """A home below `root` and the account of its operator."""

    root: Path

    @property
    def home(self) -> Home:
        return Home(self.root / "home")

    def configure(self, **changes: Any) -> None:
        folders = {"tmp_data_dir": "tmp", "backup_dir": "backup", "setup_dir": "setup"}
        write(self.home.config_file, {**folders, **changes})

    def notify(self, kind: str, name: str, *identities: Any) -> None:
        write(self.home.config(kind, name) / "config.json", {"active": True, "notify": list(identities)})

    def summary(self, name: str, value: str, stamp: str = STAMP) -> None:
        write(self.home.summary(name) / "summary.json", {"title": name, "value": value})
        (self.home.summary(name) / ".stamp").write_text(stamp + "\n")

    def graph(self, name: str, file: str, stamp: str = STAMP, content: bytes = PNG) -> None:
        path = self.home.graph(name) / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        (self.home.graph(name) / ".stamp").write_text(stamp + "\n")

    def token(self, text: str, mode: int = 0o600) -> Path:
        path = self.root / ".config" / "tvmdash" / "slack_token"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path

    def run(self, subsystem: str, tonight: Night, *, slack: str = "", **config: Any) -> Done:
        """Run the subsystem in this process; `slack` is where Slack is."""
        folders = self._begin(subsystem, tonight, config)
        with pytest.MonkeyPatch.context() as patch, _hear() as heard:
            patch.chdir(REPO / "subsystem" / subsystem)
            for name in [name for name in os.environ if name.startswith("SLACK")]:
                patch.delenv(name)
            for name, value in self._environment(tonight.stamp, slack).items():
                patch.setenv(name, value)
            code = _subsystem(subsystem).main([str(folder) for folder in folders])
        return self._done(subsystem, code, heard.getvalue())

    def run_script(self, subsystem: str, tonight: Night, *, slack: str = "", **config: Any) -> Done:
        """Run the subsystem's own run.sh as the engine does; `slack` is where Slack is."""
        code = REPO / "subsystem" / subsystem
        done = subprocess.run(
            [code / "run.sh", *self._begin(subsystem, tonight, config)],
            cwd=code,
            env=self._environment(tonight.stamp, slack),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        return self._done(subsystem, done.returncode, done.stdout)

    def _begin(self, subsystem: str, tonight: Night, config: Mapping[str, Any]) -> tuple[Path, Path, Path]:
        """Leave the record of a night that has come to its subsystems; what the subsystem is called with."""
        if not self.home.config_file.exists():
            self.configure()
        write(self.home.night_file(tonight.stamp), tonight.to_json())
        folder = self.home.config("subsystem", subsystem)
        write(folder / "config.json", {"active": True, **config})
        output = self.home.output(subsystem)
        output.mkdir(parents=True, exist_ok=True)
        return folder, output, self.home.root

    def _done(self, subsystem: str, code: int, log: str) -> Done:
        output = self.home.output(subsystem)
        status = json.loads((output / "status.json").read_text(encoding="utf-8"))
        return Done(code, status["message"], status["success"], output, log)

    def _environment(self, stamp: str, slack: str) -> dict[str, str]:
        return {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(self.root),
            "PYTHONPATH": str(REPO / "shared" / "python"),
            "TVMDASH_NIGHT": stamp,
            "LANG": "C.UTF-8",
            **({"SLACK_API_URL": slack} if slack else {}),
        }


__all__ = ["BLOCKED", "FAILED", "OK", "PNG", "STAMP", "Done", "SlackHome", "job", "night", "write"]
