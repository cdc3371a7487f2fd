"""Run git: a list of arguments, no terminal, no hooks, a deadline."""

from __future__ import annotations

import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from dashboard.artifacts.artifact import ArtifactError
from dashboard.artifacts.locks import LockDeadline
from dashboard.process import process
from tvmdash.errors import DashboardError

_ALWAYS = (
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "protocol.ext.allow=never",
    "-c",
    "gc.auto=0",
    "-c",
    "maintenance.auto=false",
    "-c",
    "advice.detachedHead=false",
    "-c",
    "safe.directory=*",
)
"""safe.directory: mirrors may belong to another account than the one that runs tonight; no code of theirs is run."""
_NOT_FOR_GIT = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
)
_ANONYMOUS = ("-c", "credential.helper=", "-c", "http.extraHeader=", "-c", "http.cookieFile=")
_NOBODY = {"HOME": "/nonexistent", "XDG_CONFIG_HOME": "/nonexistent", "GIT_SSH_COMMAND": "false"}
"""Without ~/.netrc, ~/.gitconfig and ssh."""
_QUERY_TIMEOUT_S = 120.0


@dataclass(frozen=True)
class Caution:
    """Settings for asking an untrusted remote: it receives no password or key of this user.

    Where a stranger named whom to ask, that is asked by `protocol` alone, at these `addresses` (`HOST:PORT:ADDRESS`;
    git before 2.37 looks the host up again), and may send git nowhere else.
    """

    addresses: tuple[str, ...] = ()
    protocol: str = ""

    @property
    def options(self) -> tuple[str, ...]:
        pinned = [word for address in self.addresses for word in ("-c", f"http.curloptResolve={address}")]
        return (*_ANONYMOUS, *pinned, *(("-c", "http.followRedirects=false") if self.protocol else ()))

    @property
    def environment(self) -> dict[str, str]:
        return {**_NOBODY, **({"GIT_ALLOW_PROTOCOL": self.protocol} if self.protocol else {})}


def work(
    arguments: list[str], *, cwd: Path, log: Path | None, deadline: LockDeadline, caution: Caution | None = None
) -> None:
    """Run a git command that takes long or reaches out; ArtifactError says what it said last.

    log: None where nobody will look at one.
    """
    words = ["git", *_ALWAYS, *(caution.options if caution else ()), *arguments]
    environment = {**_environment(), **(caution.environment if caution else {})}
    with tempfile.TemporaryDirectory() as scratch:
        written = log or Path(scratch) / "git.log"
        try:
            outcome = process.run(words, cwd=cwd, env=environment, timeout_s=deadline.left_s(), log=written)
        except DashboardError as error:
            raise ArtifactError(f"{error} Install git.") from error
    what, kept = f"git {arguments[0]}", f"log: {log}" if log else ""
    if outcome.timed_out:
        kept = f" ({kept})" if kept else ""
        raise ArtifactError(f"{what}: timed out after {outcome.elapsed_s:.0f} s{kept}. Allow more time.")
    if outcome.exit_code != 0:
        errors = [line for line in outcome.tail.split("\n") if line.startswith(("fatal:", "error:", "ssh:"))]
        last = (errors or outcome.tail.split("\n"))[-1].strip()[:300] or "no output"
        how = f"exit status {outcome.exit_code}" if outcome.signal is None else f"signal {outcome.signal}"
        raise ArtifactError(f"{what}: {last} ({'; '.join(filter(None, (how, kept)))}).")


def ask(arguments: list[str], *, cwd: Path, borrowed: Path | None = None) -> str | None:
    """Run a git command on a repository of this disk and return its output; None where it fails.

    borrowed: a bare repository whose commits it sees as well.
    """
    objects = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": str(borrowed / "objects")} if borrowed else {}
    try:
        done = subprocess.run(
            ["git", *_ALWAYS, *arguments],
            cwd=cwd,
            env={**_environment(), **objects},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_QUERY_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError as error:
        raise ArtifactError("git: could not be started. Install git.") from error
    except subprocess.TimeoutExpired as error:
        raise ArtifactError(f"{cwd}: git {arguments[0]} did not finish within {_QUERY_TIMEOUT_S:.0f} s.") from error
    return done.stdout.decode("utf-8", errors="replace") if done.returncode == 0 else None


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in _NOT_FOR_GIT}
    return {**kept, "GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true", "SSH_ASKPASS": "true", "LC_ALL": "C.UTF-8"}
