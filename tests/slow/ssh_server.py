"""A real OpenSSH server on this machine, with keys, port and settings of its own."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.dashboard import homes, host_homes
from tests.dashboard.homes import HomeForTests

_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
PROGRAMS = ("sshd", "ssh", "ssh-keygen")
_SERVER = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {root}/host_key
PidFile {root}/sshd.pid
AuthorizedKeysFile {root}/key.pub
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
SetEnv PATH={path}
"""
_CLIENT = """\
Host *
  HostName 127.0.0.1
  Port {port}
  User {user}
  IdentityFile {root}/key
  IdentitiesOnly yes
  StrictHostKeyChecking no
  UserKnownHostsFile {root}/known_hosts
  LogLevel ERROR
"""


def find_missing() -> list[str]:
    """The programs of OpenSSH that are not here."""
    return [name for name in PROGRAMS if shutil.which(name, path=_PATH) is None]


@dataclass
class Server:
    """The running server; any name of a host leads to it."""

    root: Path
    process: subprocess.Popen[bytes]

    def add_hosts(self, home: HomeForTests, *names: str) -> dict[str, str]:
        """Give the home hosts that are reached through this server; the environment of a night on it."""
        env = host_homes.add_hosts(home, *names)
        homes.script(home.root / "bin" / "ssh", f'#!/bin/sh\nexec /usr/bin/ssh -F "{self.root}/client" "$@"\n')
        hosts = homes.read(home.home.config_file)["hosts"]
        nodes = {name: f"{os.environ['SLURMD_NODENAME']}-{name}" for name in names}
        home.configure(hosts={name: {**host, "node": nodes[name]} for name, host in hosts.items()})
        return env


@contextlib.contextmanager
def started(root: Path) -> Iterator[Server]:
    """The server, which takes logins, until the block ends."""
    root.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(OSError):
        Path("/run/sshd").mkdir(exist_ok=True)  # where a server of root's separates privileges
    for name in ("host_key", "key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(root / name)], check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (root / "server").write_text(_SERVER.format(root=root, port=port, path=os.environ["PATH"]))
    (root / "client").write_text(_CLIENT.format(root=root, port=port, user=getpass.getuser()))
    program = shutil.which("sshd", path=_PATH)
    assert program is not None
    with (root / "log").open("wb") as log:
        process = subprocess.Popen([program, "-D", "-e", "-f", str(root / "server")], stderr=log)
    try:
        homes.wait_for(lambda: _answers(port), "the server answers")
        yield Server(root, process)
    finally:
        process.kill()
        process.wait()


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False
