"""A real Slurm cluster on this machine: one controller and several nodes, each a slurmd of its own."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.dashboard import host_homes
from tests.dashboard.homes import HomeForTests

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun")
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
_CONFIG = """\
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={root}/munge.sock
StateSaveLocation={root}/ctld
SlurmdSpoolDir={root}/d-%n
SlurmctldPidFile={root}/ctld.pid
SlurmdPidFile={root}/d-%n.pid
SlurmctldPort={port}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
ReturnToService=2
KillWait=2
NodeName=n[1-{nodes}] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first}-{last}] CPUs=1 RealMemory=1000 State=UNKNOWN
PartitionName=p Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def find_missing() -> list[str]:
    """The programs of Slurm that are not here."""
    return [name for name in PROGRAMS if shutil.which(name, path=_PATH) is None]


@dataclass
class Cluster:
    """The running cluster; its nodes are n1, n2, ..."""

    root: Path
    nodes: int
    daemons: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def env(self) -> Mapping[str, str]:
        """What Slurm's commands need."""
        return {"SLURM_CONF": f"{self.root}/slurm.conf", "PATH": _PATH}

    def start(self, name: str, *argv: str) -> None:
        """Start a daemon, which ends with the cluster."""
        with (self.root / f"{name}.log").open("ab") as log:
            self.daemons[name] = subprocess.Popen(
                argv, env={**os.environ, **self.env}, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def start_controller(self) -> None:
        self.start("slurmctld", "slurmctld", "-D")

    def start_node(self, name: str) -> None:
        self.start(name, "slurmd", "-D", "-N", name)

    def stop(self, name: str) -> None:
        """End a daemon and wait for it."""
        self.daemons[name].kill()
        self.daemons.pop(name).wait()

    def call(self, *argv: str) -> str:
        """What a command of Slurm prints."""
        done = subprocess.run(
            argv, env={**os.environ, **self.env}, capture_output=True, text=True, check=True, timeout=300
        )
        return done.stdout

    def wait_until_idle(self, *names: str) -> None:
        """Wait until these nodes, or all, could take a job."""
        wanted = set(names) or {f"n{number + 1}" for number in range(self.nodes)}
        deadline = time.monotonic() + 60
        while True:
            with contextlib.suppress(subprocess.SubprocessError):
                lines = [line.split() for line in self.call("sinfo", "-h", "-N", "-o", "%N %T").splitlines()]
                if wanted <= {name for name, state in lines if state == "idle"}:
                    return
            assert time.monotonic() < deadline, self.call("squeue") + self.call("sinfo", "-N", "-l")
            time.sleep(0.2)


@contextlib.contextmanager
def started(root: Path, nodes: int) -> Iterator[Cluster]:
    """The cluster, with all nodes idle, until the block ends."""
    cluster = Cluster(root, nodes)
    ports = _find_ports(nodes + 1)
    for folder in ("ctld", *(f"d-n{number + 1}" for number in range(nodes))):
        (root / folder).mkdir(parents=True)
    config = _CONFIG.format(
        host=socket.gethostname().split(".")[0], user=getpass.getuser(), root=root, nodes=nodes,
        port=ports, first=ports + 1, last=ports + nodes,
    )  # fmt: skip
    (root / "slurm.conf").write_text(config)
    key = root / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    try:
        cluster.start(
            "munged", "munged", "--foreground", "--force", f"--key-file={key}", f"--socket={root}/munge.sock",
            f"--pid-file={root}/munged.pid", f"--log-file={root}/munged.log", f"--seed-file={root}/munged.seed",
        )  # fmt: skip
        cluster.start_controller()
        for number in range(nodes):
            cluster.start_node(f"n{number + 1}")
        cluster.wait_until_idle()
        yield cluster
    finally:
        for name in reversed(list(cluster.daemons)):
            cluster.stop(name)


def add_nodes(home: HomeForTests, cluster: Cluster, *names: str, **fields: Any) -> dict[str, str]:
    """Make these nodes hosts of the home; the environment of a night on it. fields: of each host's config."""
    env = host_homes.add_hosts(home)
    (home.root / "bin" / "ssh").unlink()
    hosts = {name: {"launcher": "slurm", "partition": "p", "node": name, **fields} for name in names}
    for name, host in hosts.items():
        host["folder"] = str(host_homes.folder(home, name))
        host_homes.add_environment(host_homes.folder(home, name))
    home.configure(hosts=hosts)
    return {**env, **cluster.env}


def _find_ports(count: int) -> int:
    """The first of so many ports in a row that are free now."""
    for first in range(20000 + os.getpid() % 8000, 32000, count):
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in range(first, first + count):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first
    raise AssertionError("no free ports")


@contextlib.contextmanager
def started_or_skipped(folder: Path, nodes: int) -> Iterator[Cluster]:
    """As `started`; the tests are skipped with a word where there is no Slurm."""
    missing = find_missing()
    if missing:
        pytest.skip(f"there is no Slurm here: {', '.join(missing)} missing (Debian: apt install slurm-wlm munge)")
    with started(folder, nodes) as cluster:
        yield cluster
