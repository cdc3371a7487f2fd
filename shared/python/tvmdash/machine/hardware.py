"""Facts about the measuring machine and process that let somebody else repeat the measurement."""

from __future__ import annotations

import json
import logging
import os
import platform
import re
import socket
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_VARIABLES = ("TVM_", "OMP_", "MKL_", "OPENBLAS_", "KMP_", "LD_LIBRARY_PATH", "LD_PRELOAD", "MALLOC_", "PYTHONHASHSEED")
STATE = ("governor", "boost", "smt", "transparent_hugepages", "aslr", "cpu_quota")
"""Facts that an administrator may change on the same machine."""


def hw_model() -> str:
    """Return the processor and the cores that this process may use, as in `AMD EPYC 9654 x 2`."""
    return f"{_read_cpuinfo().get('model name', platform.machine())} x {len(os.sched_getaffinity(0))}"


def env_name() -> str:
    """Return the home's name of this machine; outside of a night the host name."""
    return os.environ.get("TVMDASH_ENV_NAME") or socket.gethostname()


def facts() -> dict[str, Any]:
    """Return the facts that stay while the process lives: host, processor, memory, system, relevant variables."""
    cpu, container = _read_cpuinfo(), find_container(os.environ)
    return {
        "host": socket.gethostname(),
        "hw_model": hw_model(),
        "cpu_model": cpu.get("model name", ""),
        "cpu_flags": cpu.get("flags", "").split(),
        "cpu_microcode": cpu.get("microcode"),
        "cores": os.cpu_count(),
        "affinity": sorted(os.sched_getaffinity(0)),
        **read_state(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.system()} {platform.release()}",
        "distribution": _read_distribution(),
        "libc": "-".join(platform.libc_ver()),
        "python": sys.version.split()[0],
        "virtual_machine": "hypervisor" in cpu.get("flags", ""),
        **read_nvidia_cards(),
        "container": container.kind if container else None,
        "docker_tag": container.tag if container else None,
        "docker_hash": container.image_hash if container else None,
        "environment": {name: value for name, value in sorted(os.environ.items()) if name.startswith(_VARIABLES)},
    }


def describe_system(machine: Mapping[str, Any]) -> dict[str, Any]:
    """Return the system's entries in a record's runtime_config, from these facts."""
    names = {
        "os": "distribution",
        "kernel": "system",
        "libc": "libc",
        "python": "python",
        "container": "container",
        "driver": "gpu_driver",
    }
    return {name: machine.get(fact) for name, fact in names.items()}


def read_nvidia_cards(proc: Path = Path("/proc")) -> dict[str, Any]:
    """Return the models of NVIDIA's cards and the driver's version, from /proc; empty without the driver."""
    driver = proc / "driver" / "nvidia"
    version = re.search(r"Kernel Module.*?  (\d[\d.]+)  ", _read_first_line(driver / "version") or "")
    lines = [line for path in sorted(driver.glob("gpus/*/information")) for line in _read_lines(path)]
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("Model:")]
    return {"gpus": models, "gpu_driver": version[1] if version else ""} if models else {}


def load() -> dict[str, Any]:
    """Return momentary facts: load averages, available memory, clock of the first core where readable."""
    return {
        "load_1_min": os.getloadavg()[0],
        "load_5_min": os.getloadavg()[1],
        "memory_available_bytes": _read_available_memory(),
        "cpu_mhz": _parse_number(_read_cpuinfo().get("cpu MHz")),
    }


def read_state(root: Path = Path("/")) -> dict[str, Any]:
    """Return the machine's settings; None where the system does not say, as in a virtual machine.

    boost, smt: whether it is on; cpu_quota: so many cores' time the control group may use, None without a limit.
    """
    cpu, kernel = root / "sys/devices/system/cpu", root / "proc/sys/kernel"
    no_turbo, boost = (_read_switch(cpu / name) for name in ("intel_pstate/no_turbo", "cpufreq/boost"))
    pages = _read_first_line(root / "sys/kernel/mm/transparent_hugepage/enabled") or ""
    chosen = re.search(r"\[(\w+)\]", pages)
    return {
        "governor": _read_first_line(cpu / "cpu0/cpufreq/scaling_governor"),
        "boost": boost if no_turbo is None else not no_turbo,
        "smt": _read_switch(cpu / "smt/active"),
        "caches": dict(_read_caches(cpu / "cpu0/cache")),
        "numa_nodes": _read_first_line(root / "sys/devices/system/node/online"),
        "numa_balancing": _read_switch(kernel / "numa_balancing"),
        "transparent_hugepages": chosen[1] if chosen else None,
        "aslr": _parse_number(_read_first_line(kernel / "randomize_va_space")),
        "cpu_quota": min(_read_quotas(root), default=None),
    }


def _read_switch(path: Path) -> bool | None:
    said = _read_first_line(path)
    return None if said is None else said != "0"


def _read_caches(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the sizes of the first core's caches by level and kind, as in `L1 Data`."""
    for index in sorted(folder.glob("index*")):
        level, kind, size = (_read_first_line(index / name) for name in ("level", "type", "size"))
        yield f"L{level} {kind}", size or ""


def _read_quotas(root: Path) -> Iterator[float]:
    """Yield the CPU limit of each control group that this process is in, of version 1 or 2."""
    for line in _read_lines(root / "proc/self/cgroup"):
        _, controllers, path = line.rstrip("\n").split(":", 2)
        group = root / "sys/fs/cgroup" / controllers / path.lstrip("/")
        # a limit of any group above holds as well
        for folder in [group, *group.parents][: path.strip("/").count("/") + 2]:
            # a line of version 2 names no controllers
            names = ("cpu.cfs_quota_us", "cpu.cfs_period_us") if controllers else ("cpu.max",)
            words = " ".join(_read_first_line(folder / name) or "" for name in names).split()
            if len(words) == 2 and words[0].isdecimal():
                yield int(words[0]) / int(words[1])


def _read_cpuinfo() -> Mapping[str, str]:
    """Return the first processor of /proc/cpuinfo."""
    pairs: dict[str, str] = {}
    for line in _read_lines(Path("/proc/cpuinfo")):
        if not line.strip():
            break
        name, _, value = line.partition(":")
        pairs[name.strip()] = value.strip()
    return pairs


def _read_available_memory() -> int | None:
    for line in _read_lines(Path("/proc/meminfo")):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _read_distribution() -> str | None:
    for line in _read_lines(Path("/etc/os-release")):
        if line.startswith("PRETTY_NAME="):
            return line.partition("=")[2].strip().strip('"')
    return None


def _parse_number(text: str | None) -> float | None:
    return float(text) if text else None


def _read_first_line(path: Path) -> str | None:
    return next(_read_lines(path), "").strip() or None


def _read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a system file, none where it is unreadable."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            yield from file
    except OSError:
        return


# The image's tag and hash are those of the variables TVMDASH_DOCKER_TAG and TVMDASH_DOCKER_HASH, of the file
# /etc/tvmdash-image.json, or of what the engine leaves in the container, in this order: an image does not know its own
# hash, so who starts the container says it (docs/how-to/install.md). Nothing is known of most: then they are null.
LABEL_FILE = "etc/tvmdash-image.json"
TAG, HASH = "TVMDASH_DOCKER_TAG", "TVMDASH_DOCKER_HASH"
_MARKS = {
    ".dockerenv": "docker",
    "run/.containerenv": "podman",
    ".singularity.d": "apptainer",
    "var/run/secrets/kubernetes.io": "kubernetes",
}
"""Files by which engines mark their containers."""
_SYSTEMD = "run/systemd/container"
"""File in which systemd notes the kind of container that it runs in."""
_CGROUP = re.compile(r"/(docker|libpod|lxc|kubepods|crio|containerd)\b")
_MOST_BYTES = 1 << 16
_log = logging.getLogger("machine")


@dataclass(frozen=True)
class Container:
    """`kind` as in docker; tag and image_hash where they are known."""

    kind: str
    tag: str | None = None
    image_hash: str | None = None


def find_container(environment: Mapping[str, str], root: Path = Path("/")) -> Container | None:
    """Find the container of the system whose files lie in `root`; None where nothing tells of one."""
    said, left = _read_label(root / LABEL_FILE), _read_left(root / "run/.containerenv")
    tag = environment.get(TAG) or said.get("tag") or left.get("image")
    image_hash = environment.get(HASH) or said.get("hash") or left.get("imageid")
    kind = _find_kind(root) or ("unknown" if tag or image_hash else "")
    return Container(kind, tag or None, image_hash or None) if kind else None


def _find_kind(root: Path) -> str:
    marked = next((kind for mark, kind in _MARKS.items() if (root / mark).exists()), "")
    if marked:
        return marked
    named = _CGROUP.search(_read(root / "proc/1/cgroup"))
    return _read(root / _SYSTEMD).strip() or (named[1] if named else "")


def _read_label(path: Path) -> dict[str, str]:
    try:
        value = json.loads(_read(path) or "{}")
    except ValueError as error:
        _log.warning("%s: not JSON, so the container image is unknown: %s", path, error)
        return {}
    return {name: item for name, item in value.items() if isinstance(item, str)} if isinstance(value, dict) else {}


def _read_left(path: Path) -> dict[str, str]:
    """Read podman's file, lines such as `image="debian:12"`; in some containers it is empty."""
    return dict(re.findall(r'^(\w+)="([^"\n]*)"$', _read(path), re.MULTILINE))


def _read(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(_MOST_BYTES)
    except OSError:
        return ""
