"""A check of hosts before a night: each is reached as a night reaches it, and asked for its tools and space."""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from dashboard.hosts.launcher import make_probe, make_remedy
from dashboard.plan.hosts import Host
from dashboard.process import process
from tvmdash.errors import DashboardError

_SCRIPT = Path(__file__).with_name("probe.sh")
_MARK = "tvm-dashboard "
_LIMIT_S = 60.0
_LEAST_FREE_BYTES = 2_000_000_000
_MOST_OFFSET_S = 60.0
_PYTHONS = ("3.11", "3.12", "3.13", "3.14")
_COUNT = re.compile(r"[0-9]{1,15}")
_TOOLS = ("bash", "flock", "tar", "head")


def find_faults(host: Host) -> list[str]:
    """A sentence with the remedy for each thing in the way of a night there."""
    begun = time.time()
    try:
        said = _ask(host)
        return [f"Host {host.name}: {fault}" for fault in _judge(host, said, begun)]
    except DashboardError as error:
        return [str(error)]


def find_clock_faults(ahead_s: float) -> Iterator[str]:
    """A sentence with the remedy where a host's clock is too far ahead of the one here, or behind."""
    if abs(ahead_s) > _MOST_OFFSET_S:
        which = "ahead" if ahead_s > 0 else "behind"
        yield (
            f"its clock is {abs(ahead_s):.0f} s {which}. Synchronize it with a time server (chrony, systemd-timesyncd)."
        )


def _ask(host: Host) -> list[list[str]]:
    """The words of each line that the host said; DashboardError where it cannot be reached."""
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
