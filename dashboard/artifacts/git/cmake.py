"""The tools of a source build, and a tree configured and compiled with CMake, Ninja and ccache, within bounds."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dashboard.artifacts import locks
from dashboard.artifacts.artifact import ArtifactError
from dashboard.artifacts.build_context import BuildContext
from dashboard.artifacts.git.mirror import MIRRORS
from dashboard.artifacts.wheel import package_index
from dashboard.process import process
from dashboard.process.sandbox import Sandbox
from tvmdash import common
from tvmdash.common.files import trees
from tvmdash.errors import DashboardError

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


def find_toolchain() -> Toolchain:
    compiler, ccache, linker = (shutil.which(name) or "" for name in ("c++", "ccache", "mold"))
    llvm = newest_llvm_config()
    versions = [_read_first_line([tool, "--version"]) for tool in (compiler, linker, llvm) if tool]
    return Toolchain(compiler, ccache, linker, llvm, "; ".join((*versions, f"cmake {FROM_PIP['cmake']}")))


def newest_llvm_config() -> str:
    """Find the newest llvm-config of LEAST_LLVM or above; empty where there is none."""
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


def check_tools(options: Mapping[str, str]) -> None:
    """Raise ArtifactError with everything that is missing, before a build starts."""
    faults = find_missing(options)
    if faults:
        raise ArtifactError("TVM cannot be built from source on this machine: " + "; ".join(faults) + ".")


def install_tools(context: BuildContext) -> Path:
    """Install the tools from pip, if they are missing, and return their folder; `bin` in it belongs on PATH."""
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
    """List the environments whose Python runs the tools of `folder`, as they installed them."""
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


JOB_BYTES = 2 << 30
"""Memory reserved for one compilation: TVM's largest files were seen to need 1.6 GB."""
CACHE_SIZE = "10G"
_DEFAULTS = {"CMAKE_BUILD_TYPE": "Release", "USE_GTEST": "OFF", "USE_Z3": "OFF"}
_ERRORS = re.compile(
    r"^(?:.*\b(?:fatal error|error): .*|CMake Error.*(?:\n.*){0,2}|.*undefined reference to .*|c\+\+: .*Killed.*)$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class CmakeBuild:
    """One build of the sources in `tree`; `pip_tools` as install_tools gives it, `options` are CMake's."""

    tree: Path
    context: BuildContext
    pip_tools: Path
    toolchain: Toolchain
    options: Mapping[str, str] = field(default_factory=dict)
    name: str = "build"

    @property
    def folder(self) -> Path:
        return self.tree / "build"

    def compile(self) -> None:
        """Configure and compile; ArtifactError gives the first error of the compiler and the log."""
        settings = {**cmake_options(self.options, self.toolchain), **self._list_fixed_options()}
        cmake = str(self.pip_tools / "bin" / "cmake")
        self.run(
            "configure", [cmake, "-S", ".", "-B", "build", "-G", "Ninja", *(f"-D{n}={v}" for n, v in settings.items())]
        )
        self.run("compile", [cmake, "--build", "build", "--parallel", str(choose_job_count())])

    def install_python(self, source: Path, target: Path) -> None:
        """Build and install the Python project in `source` into the folder `target`, without what it depends on."""
        pip = [sys.executable, "-m", "pip", "--no-input", "install", "--no-deps", "--no-build-isolation"]
        more = ["--no-index", "--progress-bar=off", "--target", str(target), str(source)]
        target.mkdir(exist_ok=True)
        self.run(f"install-{source.name}", [*pip, *more], target)

    def run(self, step: str, argv: Sequence[str], *written: Path) -> None:
        """Run one step, which writes to these folders beside the tree; its log is named after it."""
        log = self.context.log_folder / f"{self.name}-{step}.log"
        environment, left_s = self._environment(), self.context.deadline.left_s()
        sandbox = self._make_sandbox(written)
        try:
            outcome = process.run(argv, cwd=self.tree, env=environment, timeout_s=left_s, log=log, sandbox=sandbox)
        except DashboardError as error:
            raise ArtifactError(f"{step}: {error}") from error
        if outcome.timed_out:
            raise ArtifactError(
                f"{step}: timed out after {outcome.elapsed_s:.0f} s (log: {log}). Raise artifact_timeout_s."
            )
        if outcome.exit_code != 0:
            hint = " It ran in a sandbox; list other paths that it needs in candidates_may_read." if sandbox else ""
            raise ArtifactError(f"{step} failed: {find_first_error(log) or outcome.tail[-500:]} (log: {log}){hint}")

    def _make_sandbox(self, written: Sequence[Path]) -> Sandbox | None:
        """Sandbox an untrusted tree: it sees the mirrors, which hold its history, the tools and the cache."""
        if self.context.guest is None:
            return None
        shelf = self.context.folder
        cuda = [Path(os.environ["CUDA_HOME"])] if os.environ.get("CUDA_HOME") else []
        visible = (shelf / MIRRORS, self.pip_tools, *list_interpreters(self.pip_tools), self._cache, *cuda)
        return self.context.guest.make_sandbox(visible, (self.tree, self._scratch, *written))

    @property
    def _cache(self) -> Path:
        return self.context.folder / ".ccache"

    @property
    def _scratch(self) -> Path:
        return self.tree.parent / "scratch"

    def _list_fixed_options(self) -> dict[str, str]:
        tools = self.toolchain
        fixed = {"CMAKE_CXX_COMPILER": tools.compiler, "CMAKE_MAKE_PROGRAM": str(self.pip_tools / "bin" / "ninja")}
        fixed["CMAKE_BUILD_RPATH_USE_ORIGIN"] = "ON"  # the libraries are moved, and equal sources give equal bytes
        if tools.ccache:
            fixed |= dict.fromkeys(("CMAKE_C_COMPILER_LAUNCHER", "CMAKE_CXX_COMPILER_LAUNCHER"), tools.ccache)
        if tools.linker:
            flag = f"-fuse-ld={Path(tools.linker).name}"
            fixed |= dict.fromkeys(("CMAKE_SHARED_LINKER_FLAGS", "CMAKE_EXE_LINKER_FLAGS"), flag)
        return fixed

    def _list_compiler_variables(self) -> dict[str, str]:
        """Variables by which no path of this build is in what is compiled, so that equal sources give equal bytes.

        ccache compiles with relative paths; an option with this build's path would make it find nothing.
        """
        if self.toolchain.ccache:
            return {"CMAKE_CXX_COMPILER_LAUNCHER": self.toolchain.ccache}
        return dict.fromkeys(("CFLAGS", "CXXFLAGS"), f"-ffile-prefix-map={self.tree.parent}=.")

    def _environment(self) -> dict[str, str]:
        self._scratch.mkdir(exist_ok=True)
        kept = {name: os.environ[name] for name in ("HOME", "LD_LIBRARY_PATH", "CUDA_HOME") if name in os.environ}
        return {
            **kept,
            **self._list_guest_variables(),
            **self._list_compiler_variables(),
            "PATH": os.pathsep.join((str(self.pip_tools / "bin"), os.environ.get("PATH", os.defpath))),
            "PYTHONPATH": str(self.pip_tools),
            "LANG": "C.UTF-8",
            "TMPDIR": str(self._scratch),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "CCACHE_DIR": str(self._cache),
            "CCACHE_MAXSIZE": CACHE_SIZE,
            "CCACHE_BASEDIR": str(self.tree),  # builds stand in folders of their own and share what they compiled
            "CCACHE_NOHASHDIR": "true",
            "CMAKE_BUILD_PARALLEL_LEVEL": str(choose_job_count()),
        }

    def _list_guest_variables(self) -> dict[str, str]:
        """Give an untrusted tree a home of its own and the cache read-only, as others trust what is in that."""
        if self.context.guest is None:
            return {}
        self._cache.mkdir(exist_ok=True)
        scratch = str(self._scratch)
        return {"HOME": scratch, "CCACHE_READONLY": "1", "CCACHE_TEMPDIR": scratch}


def cmake_options(options: Mapping[str, str], toolchain: Toolchain) -> dict[str, str]:
    """Complete the options of a build with the defaults."""
    llvm = {"USE_LLVM": toolchain.llvm_config} if toolchain.llvm_config else {}
    return {**_DEFAULTS, **llvm, **options}


def choose_job_count() -> int:
    """Return the number of parallel compilations: one for each core, as far as free memory allows."""
    memory = Path("/proc/meminfo").read_text(encoding="ascii")
    match = re.search(r"^MemAvailable:\s+(\d+) kB$", memory, re.MULTILINE)
    free_bytes = int(match[1]) * 1024 if match else JOB_BYTES
    # A container or taskset may allow fewer cores than there are.
    return max(1, min(len(os.sched_getaffinity(0)), free_bytes // JOB_BYTES))


def find_first_error(log: Path) -> str:
    """Find the first error of a compiler, linker or CMake in a log, of at most 400 characters; or ""."""
    match = _ERRORS.search(log.read_text(encoding="utf-8", errors="replace"))
    return " ".join(match[0].split())[:400] if match else ""
