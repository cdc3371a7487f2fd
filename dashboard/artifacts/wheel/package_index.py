"""Package indexes and pages of links, as this machine's pip sees them.

Where a source of wheels names an address, only that is asked for its package; else pip's own configuration decides.
Addresses reach pip as variables, which no list of processes shows.
"""

from __future__ import annotations

import os
import platform
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from dashboard.artifacts.artifact import ArtifactError
from dashboard.artifacts.locks import LockDeadline
from dashboard.artifacts.spec import VERSION
from dashboard.artifacts.wheel.source import WheelSource
from dashboard.process import process
from tvmdash.redaction import redact
from tvmdash.text import format_list

_LIST_S = 600.0
"""pip itself gives up a server that says nothing after 90 s; this ends one that sends a byte a second."""
_SHOWN_VERSIONS = 4
_UNREAD = re.compile(r"^\s*(?:WARNING: )?((?:Could not fetch URL|Location) .+)$", re.MULTILINE)
"""Pip's messages about an address that it could not read."""
_NO_SUCH_VERSION = re.compile(
    r"^ERROR: Could not find a version that satisfies the requirement (\S+)==(\S+) \(from versions: (.*\d.*)\)$",
    re.MULTILINE,
)
PIPS_OWN = WheelSource()
_NOT_FOR_PIP = frozenset(("PYTHONPATH", "PYTHONHOME", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_REPORT"))


def list_versions(source: WheelSource, *, log: Path | None, deadline: LockDeadline) -> list[str]:
    """List the versions with a wheel for this Python and machine, newest first; pre-releases where they count.

    log: None where nobody will look at one.
    """
    # The text form: --json came with pip 25, and Debian 12 brings pip 23. Only -vv names an address that answers 404.
    pre = ["--pre"] if source.pre else []
    name = source.package
    arguments = ["-vv", "index", "versions", "--only-binary=:all:", *pre, name]
    with tempfile.TemporaryDirectory() as scratch:
        within = LockDeadline(min(_LIST_S, deadline.left_s()))
        text = _run_pip(arguments, source, scratch=Path(scratch), log=log, deadline=within)
    line = re.search(r"^Available versions: (.+)$", text, re.MULTILINE)
    listed = [version.strip() for version in line[1].split(",")] if line else []
    usable = [version for version in listed if VERSION.fullmatch(version)]
    if not usable:
        raise ArtifactError(
            f"pip index versions {name}: pip listed no version{_name_log(log)}. Update pip in {sys.prefix}."
        )
    return usable


def check_offered(source: WheelSource, version: str, *, deadline: LockDeadline) -> None:
    """Raise ArtifactError where the source has no such version for this Python and machine."""
    versions = list_versions(replace(source, pre=source.pre or _is_prerelease(version)), log=None, deadline=deadline)
    if version not in versions:
        raise ArtifactError(_format_no_such_version(source.package, version, versions))


def _is_prerelease(version: str) -> bool:
    from packaging.version import Version

    return Version(version).is_prerelease


def download(
    source: WheelSource, version: str, target: Path, *, scratch: Path, log: Path, deadline: LockDeadline
) -> Path:
    """Fetch exactly that wheel, and nothing that it depends on; its file, in the folder `target`."""
    arguments = ["download", "--no-deps", "--only-binary=:all:", "--progress-bar=off", "--dest", str(target)]
    _run_pip([*arguments, f"{source.package}=={version}"], source, scratch=scratch, log=log, deadline=deadline)
    return next(target.glob("*.whl"))


def install_file(wheel: Path, target: Path, *, scratch: Path, log: Path, deadline: LockDeadline) -> None:
    """Install the wheel of that file, and nothing that it depends on, into the folder `target`."""
    arguments = ["install", "--no-deps", "--no-index", "--progress-bar=off", "--target", str(target), str(wheel)]
    _run_pip(arguments, scratch=scratch, log=log, deadline=deadline)


def install(name: str, version: str, target: Path, *, scratch: Path, log: Path, deadline: LockDeadline) -> None:
    """Install exactly that wheel, and nothing that it depends on, into the folder `target`."""
    install_all({name: version}, target, scratch=scratch, log=log, deadline=deadline)


def install_all(wanted: Mapping[str, str], target: Path, *, scratch: Path, log: Path, deadline: LockDeadline) -> None:
    """Install exactly these wheels, versions by name, and nothing that they depend on, into the folder `target`.

    By one run of pip: a second one into the same folder leaves out the programs in `bin`.
    """
    for name, version in wanted.items():
        if not VERSION.fullmatch(version):
            raise ArtifactError(f"{name}: {version!r} is not a version (expected e.g. 0.27.0.post1).")
    arguments = ["install", "--no-deps", "--only-binary=:all:", "--progress-bar=off", "--target", str(target)]
    pins = [f"{name}=={version}" for name, version in wanted.items()]
    _run_pip([*arguments, *pins], scratch=scratch, log=log, deadline=deadline)


def _run_pip(
    arguments: list[str], source: WheelSource = PIPS_OWN, *, scratch: Path, log: Path | None, deadline: LockDeadline
) -> str:
    """Run pip in `scratch`, where it also unpacks: /tmp may be small. What it wrote, which `log` keeps.

    Pip hides the password of an address, and not its token, so what it writes is no log before that is hidden.
    """
    scratch.mkdir(exist_ok=True)
    is_secret = redact(str(source)) != str(source)
    written = scratch / "pip.log" if log is None or is_secret else log
    outcome = process.run(
        [sys.executable, "-m", "pip", "--no-input", *arguments],
        cwd=scratch,
        env=_environment(scratch) | _lead_to(source),
        timeout_s=deadline.left_s(),
        log=written,
    )
    text = written.read_text(encoding="utf-8", errors="replace")
    if is_secret:
        text = redact(text)
        written.unlink()
        if log is not None:
            log.write_text(text, encoding="utf-8")
    if outcome.timed_out or outcome.exit_code != 0:
        verb = next(word for word in arguments if not word.startswith("-"))
        what = f"pip {verb} {arguments[-1].rpartition('/')[2]}"
        raise ArtifactError(_describe_failure(what, source, outcome, text, log))
    return text


def _describe_failure(
    what: str, source: WheelSource, outcome: process.ProcessOutcome, text: str, log: Path | None
) -> str:
    address = source.find_links or source.index
    where = f"{redact(address)} and that it has wheels for this Python" if address else "its package index"
    reach = f"Check that this machine can reach {where}"
    if outcome.timed_out:
        limit = f"{outcome.elapsed_s:.0f} s{_name_log(log)}"
        return f"{what}: did not end within {limit}. {reach}, or allow more time (artifact_timeout_s)."
    missing = _NO_SUCH_VERSION.search(text)
    if missing:
        name, version, others = missing.groups()
        # pip lists them oldest first.
        return _format_no_such_version(name, version, others.split(", ")[::-1])
    return f"{what}: {_find_last_error(outcome, text)}{_name_log(log)}. {reach}."


def _name_log(log: Path | None) -> str:
    return f" (log: {log})" if log is not None else ""


def _format_no_such_version(name: str, version: str, others: Sequence[str]) -> str:
    """Pip has reached the index, which has other versions, newest first, for this Python."""
    where = f"Python {sys.version_info.major}.{sys.version_info.minor} on {platform.machine()}"
    newest = format_list(others[:_SHOWN_VERSIONS], _SHOWN_VERSIONS)
    return f"{name} {version} is not available for {where}. The newest versions are {newest}."


def _environment(scratch: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in _NOT_FOR_PIP}
    return {**kept, "TMPDIR": str(scratch), "PIP_USER": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "LANG": "C.UTF-8"}


def _lead_to(source: WheelSource) -> dict[str, str]:
    """Variables that lead pip to the source's address alone: a package of that name elsewhere is somebody else's."""
    if source.find_links:
        return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": source.find_links}
    if source.index:
        return {"PIP_INDEX_URL": source.index, "PIP_EXTRA_INDEX_URL": "", "PIP_FIND_LINKS": "", "PIP_NO_INDEX": "0"}
    return {}


def _find_last_error(outcome: process.ProcessOutcome, text: str) -> str:
    """Return pip's last error, after the reason why an address gave nothing, which pip does not count as an error."""
    errors = re.findall(r"^\s*ERROR: (.+)$", outcome.tail, re.MULTILINE) or outcome.tail.split("\n")
    unread = [reason for reason in _UNREAD.findall(text) if reason]
    status = f"exit status {outcome.exit_code}" if outcome.signal is None else f"signal {outcome.signal}"
    said = "; ".join(dict.fromkeys(redact(line.strip())[:300] for line in (*unread[-1:], errors[-1]) if line.strip()))
    return f"{said or 'no output'} ({status})"
