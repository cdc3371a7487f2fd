"""The package index, as this machine's pip sees it: its configuration names the index, and nobody else does."""

from __future__ import annotations

import os
import platform
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from dashboard.artifacts.artifact import ArtifactError
from dashboard.artifacts.locks import Deadline
from dashboard.artifacts.spec import VERSION
from dashboard.process import process
from tvmdash.text import format_list

_SHOWN_VERSIONS = 4
_NO_SUCH_VERSION = re.compile(
    r"^ERROR: Could not find a version that satisfies the requirement (\S+)==(\S+) \(from versions: (.*\d.*)\)$",
    re.MULTILINE,
)
_NOT_FOR_PIP = frozenset(("PYTHONPATH", "PYTHONHOME", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_REPORT"))


def list_versions(name: str, *, log: Path, deadline: Deadline) -> list[str]:
    """The releases of `name` that have a wheel for this Python and machine, newest first; pre-releases left out."""
    # The text form: --json came with pip 25, and Debian 12 brings pip 23.
    arguments = ["index", "versions", "--only-binary=:all:", name]
    with tempfile.TemporaryDirectory() as scratch:
        _run_pip(arguments, scratch=Path(scratch), log=log, deadline=deadline)
    line = re.search(r"^Available versions: (.+)$", log.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
    listed = [version.strip() for version in line[1].split(",")] if line else []
    usable = [version for version in listed if VERSION.fullmatch(version)]
    if not usable:
        raise ArtifactError(
            f"pip index versions {name}: pip listed no version (log: {log}). Update pip in {sys.prefix}."
        )
    return usable


def check_offered(name: str, version: str, *, log: Path, deadline: Deadline) -> None:
    """ArtifactError where the index has no such release of `name` for this Python and machine."""
    versions = list_versions(name, log=log, deadline=deadline)
    if version not in versions:
        raise ArtifactError(_format_no_such_version(name, version, versions))


def install(name: str, version: str, target: Path, *, scratch: Path, log: Path, deadline: Deadline) -> None:
    """Install exactly that wheel, and nothing that it depends on, into the folder `target`."""
    install_all({name: version}, target, scratch=scratch, log=log, deadline=deadline)


def install_all(wanted: Mapping[str, str], target: Path, *, scratch: Path, log: Path, deadline: Deadline) -> None:
    """Install exactly these wheels, versions by name, and nothing that they depend on, into the folder `target`.

    By one run of pip: a second one into the same folder leaves out the programs in `bin`.
    """
    for name, version in wanted.items():
        if not VERSION.fullmatch(version):
            raise ArtifactError(f"{name}: {version!r} is not a version (expected e.g. 0.27.0.post1).")
    arguments = ["install", "--no-deps", "--only-binary=:all:", "--progress-bar=off", "--target", str(target)]
    pins = [f"{name}=={version}" for name, version in wanted.items()]
    _run_pip([*arguments, *pins], scratch=scratch, log=log, deadline=deadline)


def _run_pip(arguments: list[str], *, scratch: Path, log: Path, deadline: Deadline) -> None:
    """Run pip in `scratch`, where it also unpacks: /tmp may be small."""
    scratch.mkdir(exist_ok=True)
    outcome = process.run(
        [sys.executable, "-m", "pip", "--no-input", *arguments],
        cwd=scratch,
        env=_environment(scratch),
        timeout_s=deadline.left_s(),
        log=log,
    )
    what = f"pip {arguments[0]} {arguments[-1]}"
    if outcome.timed_out:
        raise ArtifactError(f"{what}: timed out after {outcome.elapsed_s:.0f} s (log: {log}). Allow more time.")
    if outcome.exit_code != 0:
        missing = _NO_SUCH_VERSION.search(log.read_text(encoding="utf-8", errors="replace"))
        if missing:
            name, version, others = missing.groups()
            raise ArtifactError(_format_no_such_version(name, version, others.split(", ")[::-1]))
        raise ArtifactError(
            f"{what}: {_find_last_error(outcome)} (log: {log}). Check that this machine can reach its package index."
        )


def _format_no_such_version(name: str, version: str, others: Sequence[str]) -> str:
    """Pip has reached the index, which has other versions, newest first, for this Python."""
    where = f"Python {sys.version_info.major}.{sys.version_info.minor} on {platform.machine()}"
    newest = format_list(others[:_SHOWN_VERSIONS], _SHOWN_VERSIONS)
    return f"{name} {version} is not available for {where}. The newest versions are {newest}."


def _environment(scratch: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in _NOT_FOR_PIP}
    return {**kept, "TMPDIR": str(scratch), "PIP_USER": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "LANG": "C.UTF-8"}


def _find_last_error(outcome: process.Outcome) -> str:
    errors = re.findall(r"^ERROR: (.+)$", outcome.tail, re.MULTILINE) or outcome.tail.split("\n")
    status = f"exit status {outcome.exit_code}" if outcome.signal is None else f"signal {outcome.signal}"
    return f"{errors[-1].strip()[:300] or 'no output'} ({status})"
