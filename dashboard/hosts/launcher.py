"""The command that reaches a host: ssh, or srun; what it runs there speaks over its standard input and output."""

from __future__ import annotations

import getpass
import hashlib
import math
import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from dashboard.plan.hosts import Host, Launcher

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
    """For the worker of a home's night; without one for something short that is done at once or not at all."""
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
