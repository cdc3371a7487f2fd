"""Homes with a night on record, and a subsystem's script run on them as a night runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvmdash import common
from tvmdash.dashboard_info import BLOCKED, FAILED, OK, Home, JobResult, Night, StepResult
from tvmdash.stages import pipeline

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
        """Run the subsystem's own run.sh; `slack` is where Slack is."""
        if not self.home.config_file.exists():
            self.configure()
        write(self.home.night_file(tonight.stamp), tonight.to_json())
        folder = self.home.config("subsystem", subsystem)
        write(folder / "config.json", {"active": True, **config})
        output = self.home.output(subsystem)
        output.mkdir(parents=True, exist_ok=True)
        code = REPO / "subsystem" / subsystem
        done = subprocess.run(
            [str(code / "run.sh"), str(folder), str(output), str(self.home.root)],
            cwd=code,
            env=self._environment(tonight.stamp, slack),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        status = json.loads((output / "status.json").read_text(encoding="utf-8"))
        return Done(done.returncode, status["message"], status["success"], output, done.stdout)

    def _environment(self, stamp: str, slack: str) -> dict[str, str]:
        return {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(self.root),
            "PYTHONPATH": str(REPO / "shared" / "python"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "TVMDASH_NIGHT": stamp,
            "LANG": "C.UTF-8",
            **({"SLACK_API_URL": slack} if slack else {}),
        }


__all__ = ["BLOCKED", "FAILED", "OK", "PNG", "STAMP", "Done", "SlackHome", "job", "night", "write"]
