"""The command that reaches a host, by ssh or srun; and a check of each before a night, reached in the same way."""

from __future__ import annotations

import getpass
import hashlib
import math
import os
import re
import shlex
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from dashboard.plan.settings import Host, Launcher
from dashboard.process import process
from tvmdash.errors import DashboardError

_BOOTSTRAP = Path(__file__).with_name("bootstrap.sh")
_SSH = (
    "ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=20", "-o", "ServerAliveInterval=15",
    "-o", "ServerAliveCountMax=4",
)  # fmt: skip


def make_command(host: Host, code: str, home: Path) -> list[str]:
    """Make the command that starts the worker of this code, a content hash, on the host for that home."""
    script = ["sh", "-c", _BOOTSTRAP.read_text(encoding="utf-8"), "bootstrap", host.folder, code, host.node]
    return [*_make_srun(host, home), *script] if host.launcher is Launcher.SLURM else _make_ssh(host, script)


def make_probe(host: Host, words: Sequence[str]) -> list[str]:
    """Make the command that runs these words on the host, at once or not at all."""
    return [*_make_srun(host), *words] if host.launcher is Launcher.SLURM else _make_ssh(host, words)


def _make_ssh(host: Host, words: Sequence[str]) -> list[str]:
    return [*_SSH, host.address, shlex.join(words)]


def make_remedy(host: Host) -> str:
    if host.launcher is Launcher.SLURM:
        return f"Look at: sinfo -N -l{f' -n {host.node}' if host.node else ''}"
    return f"Try: ssh {host.address} true"


def make_clearing(host: Host, home: Path) -> list[str]:
    """Make the command that ends a job left by an earlier night of the home; empty where there can be none."""
    is_slurm = host.launcher is Launcher.SLURM
    return ["scancel", "--quiet", f"--user={getpass.getuser()}", f"--name={_name_job(host, home)}"] if is_slurm else []


def _name_job(host: Host, home: Path) -> str:
    return f"tvm-dashboard-{hashlib.sha256(os.fsencode(home)).hexdigest()[:10]}-{host.name}"


def _make_srun(host: Host, home: Path | None = None) -> list[str]:
    """Begin the command for the worker of a home's night, or without a home for something short, at once or never."""
    at_once = home is None
    minutes = math.ceil(host.time_limit_s / 60)
    options = {
        "immediate": 20 if at_once else math.ceil(host.patience_s),
        "time": 5 if at_once else minutes,
        "nodelist": host.node,
        "partition": host.partition,
        "constraint": host.constraint,
        "account": host.account,
        "job-name": _name_job(host, home) if home else "tvm-dashboard-check",
    }
    given = [f"--{name}={value}" for name, value in options.items() if value]
    # Of the variables here only those that any login has: as through ssh, and no secret of the operator's goes along.
    return ["srun", "--quiet", "--unbuffered", "--nodes=1", "--ntasks=1", "--exclusive", "--kill-on-bad-exit=1",
            "--export=PATH,HOME,USER", *given]  # fmt: skip


_SCRIPT = Path(__file__).with_name("probe.sh")
_MARK = "tvm-dashboard "
_LIMIT_S = 60.0
_LEAST_FREE_BYTES = 2_000_000_000
_MOST_OFFSET_S = 60.0
_PYTHONS = ("3.11", "3.12", "3.13", "3.14")
_COUNT = re.compile(r"[0-9]{1,15}")
_TOOLS = ("bash", "flock", "tar", "head")


def find_faults(host: Host) -> list[str]:
    """Find the obstacles to a night there, a sentence with the remedy for each."""
    begun = time.time()
    try:
        said = _ask(host)
        return [f"Host {host.name}: {fault}" for fault in _judge(host, said, begun)]
    except DashboardError as error:
        return [str(error)]


def find_clock_faults(ahead_s: float) -> Iterator[str]:
    """Yield a sentence where a host's clock is too far ahead of the one here, or behind."""
    if abs(ahead_s) > _MOST_OFFSET_S:
        which = "ahead" if ahead_s > 0 else "behind"
        yield (
            f"its clock is {abs(ahead_s):.0f} s {which}. Synchronize it with a time server (chrony, systemd-timesyncd)."
        )


def _ask(host: Host) -> list[list[str]]:
    """Ask the host; return the words of each line. DashboardError where it cannot be reached."""
    argv = make_probe(host, ["sh", "-c", _SCRIPT.read_text(encoding="utf-8"), "probe", host.folder])
    with tempfile.TemporaryDirectory() as folder:
        outcome = process.run(argv, cwd=Path("/"), env=os.environ, timeout_s=_LIMIT_S, log=Path(folder, "log"))
        lines = Path(folder, "log").read_text(encoding="utf-8", errors="replace").splitlines()
    said = [line.removeprefix(_MARK).split() for line in lines if line.startswith(_MARK)]
    if said:
        return said
    why = f"no answer within {_LIMIT_S:.0f} s" if outcome.timed_out else " ".join(lines[-2:]) or "no output"
    raise DashboardError(f"Host {host.name}: cannot be reached: {why}. {make_remedy(host)}")


def _judge(host: Host, said: Sequence[Sequence[str]], begun: float) -> Iterator[str]:
    facts = {words[0]: words[1] for words in said if len(words) == 2}
    if "folder" not in facts:
        yield (
            f"{host.folder} cannot be created or written. Change its owner, or set $.hosts.{host.name}.folder to "
            "another folder."
        )
    free = _read_count(host, facts, "free_kb") * 1024
    if free < _LEAST_FREE_BYTES:
        yield f"{host.folder}: only {free / 1e9:.1f} GB free; a night needs about 2 GB. Free some space."
    # It read its clock at some moment between the two.
    yield from find_clock_faults(_read_count(host, facts, "clock") - (begun + time.time()) / 2)
    tools = {words[1] for words in said if words[0] == "has"}
    yield from (f"{name} is not installed. Install it." for name in _TOOLS if name not in tools)
    pythons = {words[1] for words in said if words[0] == "python"}
    if not pythons & set(_PYTHONS):
        there = f"only {', '.join(sorted(pythons))}" if pythons else "none that can create virtual environments"
        yield (
            f"Python {_PYTHONS[0]} to {_PYTHONS[-1]} is required; found {there}. Install it (Debian, Ubuntu:"
            " apt install python3 python3-venv)."
        )


def _read_count(host: Host, facts: Mapping[str, str], name: str) -> int:
    text = facts.get(name, "0")
    if not _COUNT.fullmatch(text):
        raise DashboardError(f"Host {host.name}: answered {text!r:.40} for {name}, not a number. {make_remedy(host)}")
    return int(text)
