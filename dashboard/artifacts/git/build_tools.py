"""The tools that a source build needs: what the machine has, what is missing by package name, what pip brings."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dashboard.artifacts import locks
from dashboard.artifacts.artifact import ArtifactError
from dashboard.artifacts.build_context import BuildContext
from dashboard.artifacts.wheel import package_index
from tvmdash import common
from tvmdash.common.files import trees

FROM_PIP: Mapping[str, str] = {
    "cmake": "4.4.4",
    "ninja": "1.13.2",
    "scikit-build-core": "0.11.6",
    "cython": "3.3.1",
    "setuptools-scm": "9.2.2",
    "setuptools": "80.10.2",
    "packaging": "26.2",
    "pathspec": "0.12.1",
}
"""Debian's CMake is older than TVM asks for. The others build the Python side of tvm-ffi."""
LEAST_LLVM = 15
_LONGEST_SHEBANG = 1000
_LLVM_CONFIGS = ("llvm-config", *(f"llvm-config-{version}" for version in range(30, LEAST_LLVM - 1, -1)))


@dataclass(frozen=True)
class Toolchain:
    """The tools for a build as full paths, empty where there is none; `words` tell two toolchains apart."""

    compiler: str
    ccache: str
    linker: str
    llvm_config: str
    words: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.words.encode()).hexdigest()[:8]


def toolchain() -> Toolchain:
    """Find the tools that this machine compiles with."""
    compiler, ccache, linker = (shutil.which(name) or "" for name in ("c++", "ccache", "mold"))
    llvm = newest_llvm_config()
    versions = [_read_first_line([tool, "--version"]) for tool in (compiler, linker, llvm) if tool]
    return Toolchain(compiler, ccache, linker, llvm, "; ".join((*versions, f"cmake {FROM_PIP['cmake']}")))


def newest_llvm_config() -> str:
    """The path of the newest llvm-config of LEAST_LLVM or above; empty where there is none."""
    names = {shutil.which(name): name for name in _LLVM_CONFIGS}
    versions = {path: _parse_major(_read_first_line([path, "--version"])) for path in names if path}
    good = {path: version for path, version in versions.items() if version >= LEAST_LLVM}
    return max(good, key=good.__getitem__, default="")


def find_missing(options: Mapping[str, str]) -> list[str]:
    """List the tools missing for a build with these CMake options: a sentence each, naming the packages."""
    wanted = {
        "git": "git is not installed (Debian, Ubuntu: apt install git)",
        "c++": "no C++ compiler found (Debian, Ubuntu: apt install g++)",
        "make": "make is not installed; libbacktrace needs it (Debian, Ubuntu: apt install make)",
    }
    faults = [fault for tool, fault in wanted.items() if shutil.which(tool) is None]
    llvm = options.get("USE_LLVM", "ON")
    program = llvm.split()[0] if llvm else ""
    if program.upper() in {"ON", "1", "TRUE", "YES"} and not newest_llvm_config():
        faults.append(f"LLVM {LEAST_LLVM} or newer not found (Debian, Ubuntu: apt install llvm-{LEAST_LLVM}-dev)")
    elif "llvm-config" in program and shutil.which(program) is None:
        faults.append(f"USE_LLVM: {program} not found (Debian, Ubuntu: apt install llvm-NUMBER-dev)")
    if options.get("USE_CUDA", "OFF").upper() not in {"OFF", "0", "FALSE", "NO", ""} and shutil.which("nvcc") is None:
        faults.append("USE_CUDA: nvcc not found (install NVIDIA's CUDA toolkit)")
    return faults


def check(options: Mapping[str, str]) -> None:
    """ArtifactError with everything that is missing, before a build starts."""
    faults = find_missing(options)
    if faults:
        raise ArtifactError("TVM cannot be built from source on this machine: " + "; ".join(faults) + ".")


def install(context: BuildContext) -> Path:
    """The folder with the tools from pip, installed where they are not there yet; `bin` in it belongs on PATH."""
    # Python is part of the key: compiled packages fit one minor version.
    digest = hashlib.sha256(repr((sorted(FROM_PIP.items()), sys.version_info[:2])).encode()).hexdigest()[:12]
    folder = context.folder / ".tools" / digest
    with locks.exclusive(folder.with_suffix(".lock"), "installing build tools", context.deadline):
        if not folder.is_dir():
            with common.folder_beside(folder) as new:
                log, scratch = context.log_folder / "pip-build-tools.log", new / "scratch"
                package_index.install_all(FROM_PIP, new, scratch=scratch, log=log, deadline=context.deadline)
                trees.remove(new / "scratch")
    return folder


def list_interpreters(folder: Path) -> list[Path]:
    """The environments whose Python runs the tools of `folder`: those of the processes that installed them."""
    tools = [path for path in (folder / "bin").glob("*") if path.is_file()]
    first_lines = set(map(_read_shebang, tools))
    pythons = {Path(os.fsdecode(line[2:].strip())) for line in first_lines if line.startswith(b"#!/")}
    return sorted({python.parent.parent for python in (*pythons, *(python.resolve() for python in pythons))})


def _read_shebang(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.readline(_LONGEST_SHEBANG)


def _read_first_line(argv: list[str]) -> str:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (done.stdout or "").strip().split("\n")[0]


def _parse_major(version: str) -> int:
    match = re.match(r"\d+", version)
    return int(match[0]) if match else 0
