"""Homes and stage scripts for tests, and nights run on them as cron would."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

import pytest

from dashboard.cli.main import COMMANDS
from tests.dashboard import warm_tools
from tests.warm import Order, Warm
from tvmdash.common.files import lock as file_lock
from tvmdash.dashboard_info import Home

REPO = Path(__file__).resolve().parent.parent.parent
BEGIN = "#!/bin/sh\nset -eu\n"
STAGES = ("run", "analyze", "visualize", "summarize")
DESTINATION = {"setup": "$2", "run": "$2", "analyze": "$3", "visualize": "$3", "summarize": "$3", "subsystem": "$2"}
WORK = {
    "setup": 'echo built > "$2/built"',
    "run": """echo '{"value": 1.5}' > "$2/raw.json\"""",
    "analyze": 'cp "$2/raw.json" "$3/data.json"',
    "visualize": 'echo "graph of $TVMDASH_NIGHT" > "$3/graph.svg"',
    "summarize": """printf '{"title": "Sum", "value": "of %s"}' "$TVMDASH_NIGHT" > "$3/summary.json\"""",
    "subsystem": 'echo "page of $TVMDASH_NIGHT" > "$2/.new"; mv "$2/.new" "$2/index.html"',
}
DEADLINE_S = 180.0
_GET_TVM = frozenset(("check", "doctor", "plan", "run"))
_AT_CLOCK = Path(__file__).parent / "at_clock.py"
_WARM_TOOLS = Path(warm_tools.__file__)
_WITHOUT_CODE = frozenset(("mute", "rebuild", "rename", "retire", "status", "unmute", "unretire", "watch"))
_MODULES = [
    "cattrs",
    "jsonschema_rs",
    "dashboard.archive.archive",
    "dashboard.authoring.smoke",
    "dashboard.cli.main",
    "dashboard.trials.bisect",
    "dashboard.trials.remeasure",
    "dashboard.trials.reproduce",
    "dashboard.trials.tries",
    "dashboard.night.heartbeat",
    "dashboard.night.night",
    "packaging.utils",
    "pynvml",
    *COMMANDS,
    "tests.dashboard.rehearsed",
]
_PATH = [REPO, REPO / "shared" / "python"]
_WARM = Warm(_MODULES, _PATH)
_WARM_ONLINE = Warm([*_MODULES, *warm_tools.MODULES, "tests.dashboard.warm_tools"], _PATH)


def says(stage: str, message: str = "done", *, success: bool = True) -> str:
    """The line of a script that leaves the status."""
    status = json.dumps({"success": success, "message": message})
    return f"printf '%s' '{status}' > \"{DESTINATION[stage]}/status.json\""


def good(stage: str, extra: str = "") -> str:
    """A stage script that does what it must, after the lines `extra`."""
    return f"{BEGIN}{extra}\n{WORK[stage]}\n{says(stage, stage + ' went well')}\n"


@dataclass(frozen=True)
class Finished:
    """A night that has ended."""

    code: int
    output: str
    seconds: float


@dataclass(frozen=True)
class HomeForTests:
    """A home below `root`, with the code of its jobs beside it.

    warm_stages: `run` forks stages that are Python from a process that has imported what they import.
    """

    root: Path
    warm_stages: bool = False

    @property
    def path(self) -> Path:
        return self.root / "home"

    @property
    def home(self) -> Home:
        return Home(self.path)

    @property
    def code(self) -> Path:
        return self.root / "code"

    def configure(self, **changes: Any) -> None:
        """Change fields of the top-level config."""
        write(self.home.config_file, {**json.loads(self.home.config_file.read_text()), **changes})

    def experiment(self, name: str = "good", *, config: dict[str, Any] | None = None, **scripts: str) -> Path:
        """Add or replace an experiment: good stages, except where `scripts` has another."""
        folder = self.code / "experiments" / name
        for stage in (*STAGES, *scripts):
            script(folder / f"{stage}.sh", scripts.get(stage) or good(stage))
        write(self.home.config("experiment", name) / "config.json", {"active": True, **(config or {})})
        return folder

    def subsystem(self, name: str = "website", *, config: dict[str, Any] | None = None, run: str = "") -> Path:
        """Add or replace a subsystem."""
        folder = self.code / "subsystem" / name
        script(folder / "run.sh", run or good("subsystem"))
        write(self.home.config("subsystem", name) / "config.json", {"active": True, **(config or {})})
        return folder

    def command(self, verb: str, *options: str) -> list[str]:
        """The command line of a verb on this home."""
        return [sys.executable, "-m", "dashboard", *self._words(verb, *options)]

    def _words(self, verb: str, *options: str) -> list[str]:
        return [verb, str(self.path), *([] if verb in _WITHOUT_CODE else self._folders()), *options]

    def _folders(self) -> list[str]:
        return ["--experiments-dir", f"{self.code}/experiments", "--subsystem-dir", f"{self.code}/subsystem"]

    def smoke(self, *words: str) -> Finished:
        """Try a job; the scratch home is `root`/scratch."""
        return _run(["smoke", *words, "--scratch", str(self.root / "scratch"), *self._folders()])

    def start(self, *options: str, verb: str = "run", env: dict[str, str] | None = None) -> subprocess.Popen[str]:
        """Start a verb (a night), which does not build TVM, in a session of its own."""
        return subprocess.Popen(
            self.command(verb, *_unbuilt(verb), *options),
            cwd="/",
            env={**environment(), **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, *options: str, verb: str = "run") -> Finished:
        """Run a verb (a night, which does not build TVM) to its end."""
        words = self._words(verb, *_unbuilt(verb), *options)
        return _run(words, [str(_WARM_TOOLS)], warm=_WARM_ONLINE) if self.warm_stages else _run(words)

    def run_at(self, clock: Sequence[float], *options: str, verb: str = "run") -> Finished:
        """The same by a clock that is so many seconds wrong: at each look by the next of these, then by the last."""
        return _run(self._words(verb, *_unbuilt(verb), *options), [str(_AT_CLOCK), json.dumps(list(clock))])

    def run_with(self, env: dict[str, str], *options: str, verb: str = "run") -> Finished:
        """The same with these variables as well."""
        return _run(self._words(verb, *_unbuilt(verb), *options), env=env)

    def run_online(self, env: dict[str, str], *options: str, verb: str = "run", warm: bool = True) -> Finished:
        """The same where TVM may be looked up and got; warm: by tools of which /proc shows nothing."""
        program = [str(_WARM_TOOLS)] if warm else ["-m", "dashboard"]
        return _run(self._words(verb, *options), program, env, _WARM_ONLINE if warm else _WARM)

    def run_cold(self, env: dict[str, str], *options: str, verb: str = "run") -> Finished:
        """The same in a Python of its own: for variables that Python or the loader reads when it starts."""
        begun = time.monotonic()
        process = self.start(*options, verb=verb, env=env)
        try:
            output, _ = process.communicate(timeout=DEADLINE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
            raise AssertionError(f"{verb} did not end:\n{output}") from None
        return Finished(process.returncode, output, time.monotonic() - begun)

    def night(self, *options: str) -> dict[str, Any]:
        """Run a night in which all must go well; its record."""
        done = self.run(*options)
        assert done.code == 0, done.output
        return self.last()

    def stamps(self) -> list[str]:
        return self.home.night_stamps()

    def last(self) -> dict[str, Any]:
        """The record of the newest night."""
        return read(self.home.night_file(self.stamps()[-1]))

    def status(self, name: str, stage: str, kind: str = "experiment") -> dict[str, Any]:
        """What the status folder says of a stage."""
        return read(self.home.status(kind, name) / f"{stage}.json")

    def log(self, name: str, stage: str, kind: str = "experiment") -> Path:
        return self.home.status(kind, name) / f"{stage}.log"

    def states(self, name: str) -> dict[str, str]:
        """The state of each stage of an experiment in the newest night."""
        job = next(job for job in self.last()["jobs"] if job["name"] == name)
        return {step["stage"]: step["state"] for step in job["steps"]}

    def processes(self) -> list[int]:
        """The living processes that a stage of this home started."""
        return [pid for pid in pids() if f"TVMDASH_HOME={self.path}".encode() in environment_of(pid)]


def make_home(root: Path, artifacts: Path, **config: Any) -> HomeForTests:
    """A home without jobs whose nights take TVM from `artifacts`."""
    made = HomeForTests(root)
    folders = {"tmp_data_dir": "../tmp", "backup_dir": "../backup", "setup_dir": "../setup"}
    rest = {"artifact_dir": str(artifacts), "min_free_mb": 0, "randomize": False, "parallel_stages": 2}
    write(made.home.config_file, {**folders, **rest, **config})
    return made


def _unbuilt(verb: str) -> list[str]:
    return ["--no-rebuild-tvm"] if verb in _GET_TVM else []


def call(*words: str) -> Finished:
    """Run the dashboard with exactly these words."""
    return _run(list(words))


def _run(
    words: list[str],
    program: Sequence[str] = ("-m", "dashboard"),
    env: Mapping[str, str] = MappingProxyType({}),
    warm: Warm = _WARM,
) -> Finished:
    begun, order = time.monotonic(), Order([*program, *words], {**environment(), **env}, "/")
    with tempfile.TemporaryFile() as file:
        try:
            code = warm.run(order, file, timeout_s=DEADLINE_S)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{words[0]} did not end:\n{_read_again(file)}") from None
        return Finished(code, _read_again(file), time.monotonic() - begun)


def _read_again(file: BinaryIO) -> str:
    file.seek(0)
    return file.read().decode()


def environment() -> dict[str, str]:
    """What `python -m dashboard` needs, and nothing else."""
    path, node = os.environ["PATH"], os.environ["SLURMD_NODENAME"]
    return {"PATH": path, "HOME": "/tmp", "PYTHONPATH": f"{REPO}:{REPO}/shared/python", "SLURMD_NODENAME": node}


def script(path: Path, text: str) -> None:
    """Write an executable script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def environment_of(pid: int) -> list[bytes]:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return []


def wait_for(condition: Callable[[], object], what: str, deadline_s: float = 120.0) -> None:
    """Wait until `condition` holds."""
    end = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end, f"not within {deadline_s} s: {what}"
        time.sleep(0.005)


@contextlib.contextmanager
def killed_at_end(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """A started night that does not outlive the test."""
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
        process.wait()
        if process.stdout:
            process.stdout.close()


def release_after(monkeypatch: pytest.MonkeyPatch, held: file_lock.Lock, seconds: float) -> None:
    """Locks wait by a clock that moves when they sleep; `held` is let go of when it shows so many seconds."""
    now_s = 0.0

    def sleep(length_s: float) -> None:
        nonlocal now_s
        now_s += length_s
        if now_s >= seconds:
            held.release()

    monkeypatch.setattr(file_lock, "time", types.SimpleNamespace(monotonic=lambda: now_s, sleep=sleep))
