"""Homes with hosts: what stands in for ssh runs the real worker on this machine, in an environment of its own."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import shlex
import subprocess
import sys
from pathlib import Path

from tests.dashboard import homes
from tests.dashboard.homes import HomeForTests

SSH = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do case $1 in -o) shift ;; esac; shift; done
address=$1; shift
[ ! -e "$HOSTS/$address.away" ] || { echo "ssh: connect to host $address port 22: No route to host" >&2; exit 255; }
echo "Welcome to $address."
exec env -i PATH="$PATH" HOME=/tmp SLURMD_NODENAME="$SLURMD_NODENAME-$address" sh -c "$*"
"""
"""As ssh does, it starts the words with a shell there, knows none of the variables here, and prints a banner."""


def add_hosts(home: HomeForTests, *names: str) -> dict[str, str]:
    """Give the home these hosts, reached by ssh; the environment of a night on it."""
    homes.script(home.root / "bin" / "ssh", SSH)
    (home.root / "hosts").mkdir(exist_ok=True)
    hosts = {name: {"launcher": "ssh", "address": name, "folder": str(folder(home, name))} for name in names}
    home.configure(hosts=hosts)
    for name in names:
        add_environment(folder(home, name))
    path = f"{home.root}/bin:{os.environ['PATH']}"
    return {"PATH": path, "HOSTS": f"{home.root}/hosts"}


def add_environment(host: Path) -> None:
    """Give the dashboard's folder on a host the packages that its worker would install: those of the tests."""
    pins = hashlib.sha256((homes.REPO / "requirements.txt").read_bytes()).hexdigest()[:12]
    environment = host / "environments" / f"{platform.python_version()}{sys.abiflags}-{platform.machine()}-{pins}"
    environment.parent.mkdir(parents=True)
    environment.symlink_to(sys.prefix)
    Path(f"{environment}.lock").touch()


CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *now) {
  int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
  int done = real(id, now);
  if (id == CLOCK_REALTIME) now->tv_sec += (AHEAD_S);
  return done;
}
"""


def shift_clock(host: Path, ahead_s: int) -> None:
    """From now on the Python of the dashboard's folder on a host sees a clock that is so far ahead."""
    library, (environment,) = host / "clock.so", [path for path in (host / "environments").iterdir() if path.is_dir()]
    compiler = ["cc", "-shared", "-fPIC", f"-DAHEAD_S={ahead_s}", "-x", "c", "-", "-o", str(library), "-ldl"]
    subprocess.run(compiler, input=CLOCK, text=True, check=True)
    environment.unlink()
    (environment / ".complete").parent.mkdir()
    (environment / ".complete").touch()
    python = f'#!/bin/sh\nLD_PRELOAD={library} exec {shlex.quote(sys.prefix)}/bin/python "$@"\n'
    homes.script(environment / "bin" / "python", python)


def folder(home: HomeForTests, name: str) -> Path:
    """The dashboard's folder on that host."""
    return home.root / "hosts" / name


def find_workers(home: HomeForTests, name: str) -> list[int]:
    """The processes that measure on that host."""
    words = [b"work", os.fsencode(folder(home, name))]
    return [pid for pid in homes.pids() if _read_words(pid)[-2:] == words]


def _read_words(pid: int) -> list[bytes]:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    return []
