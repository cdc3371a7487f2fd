"""A program that tries to get out of the sandbox that it runs in, and prints as JSON which ways are open.

Its arguments: a port on this machine on which somebody listens, a file that is not shown, a folder that is the
program's own, and the limits of processes and bytes. It may import nothing of this repository, which is not there.
"""

import json
import os
import resource
import socket
import sys

MOST_SEEN = 4
SETTINGS = ("sys/kernel/hostname", "sys/kernel/core_pattern", "sys/vm/overcommit_memory", "sysrq-trigger")


def can_open(path: str, mode: str) -> bool:
    try:
        with open(path, mode):
            return True
    except OSError:
        return False


def can_connect(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 5).close()
    except OSError:
        return False
    return True


def has_privileges() -> bool:
    """Return True where the process has capabilities, or could gain them by running a program that carries some."""
    with open("/proc/self/status") as file:
        facts = {name: value.strip() for name, _, value in (line.partition(":") for line in file)}
    return int(facts["CapEff"], 16) != 0 or int(facts["CapPrm"], 16) != 0 or facts["NoNewPrivs"] != "1"


def main(port: str, hidden: str, own: str, processes: str, size_bytes: str) -> list[str]:
    """Return the ways out, by their names in `sandbox.Hole`."""
    with open(os.path.join(own, "written"), "w"):
        pass  # without it nothing could be measured: an error, which is told; whose it is shows who this is outside
    limits = {resource.RLIMIT_NPROC: int(processes), resource.RLIMIT_FSIZE: int(size_bytes)}
    return [
        way
        for way, is_open in {
            "FILE": can_open(hidden, "r"),
            "FOLDER": any(os.access(path, os.W_OK) for path in ("/usr", "/sys", sys.prefix)),
            "KERNEL": any(can_open(f"/proc/{name}", "a") for name in SETTINGS),
            "NETWORK": can_connect(int(port)),
            "PROCESS": sum(name.isdigit() for name in os.listdir("/proc")) > MOST_SEEN,
            "PRIVILEGE": has_privileges(),
            "LIMIT": any(resource.getrlimit(kind) != (limit, limit) for kind, limit in limits.items()),
        }.items()
        if is_open
    ]


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(*sys.argv[1:])))
