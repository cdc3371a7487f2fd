"""Gives a wheel what it lacks for a device, proved, kept with it.

KEY/devices/opencl/{libtvm_runtime_opencl.so, runtime.json}   built from the source of its release
KEY/devices/cuda/{nvidia/, cuda/, runtime.json}               packages of the index

The wheel itself stays as it was. TVM finds the library as the folder stands on the loader's path; see
`Artifact.loader_path`.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from dashboard.artifacts import artifact_store
from dashboard.artifacts.artifact import RUNTIME_MANIFEST, RUNTIMES, Artifact, ArtifactError
from dashboard.artifacts.build_context import BuildContext
from dashboard.artifacts.git.cmake import find_first_error
from dashboard.artifacts.git.mirror import ask_git, run_git
from dashboard.artifacts.locks import LockDeadline
from dashboard.artifacts.runtimes.abilities import DRIVERS, find_abilities, list_driver_devices
from dashboard.artifacts.runtimes.recipes import PACKAGES, RECIPES, Recipe, install_packages
from dashboard.artifacts.spec import WHEEL
from dashboard.process import process
from tvmdash import common
from tvmdash.errors import DashboardError

_STANDARD = "c++20"


def library_name(kind: str) -> str:
    return f"libtvm_runtime_{kind}.so"


def tag_of(version: str) -> str:
    """Return the git ref that a release was made from."""
    return f"refs/tags/v{version}"


@dataclass(frozen=True)
class Making:
    """One runtime being made for `artifact` in the empty folder `place`, from the source at the git remote `remote`."""

    artifact: Artifact
    kind: str
    remote: str
    place: Path
    context: BuildContext

    @property
    def recipe(self) -> Recipe:
        return RECIPES[self.kind]

    @property
    def source(self) -> Path:
        return self.place / "source"

    @property
    def folder(self) -> Path:
        """The folder that is kept."""
        return self.place / self.kind

    @property
    def library(self) -> Path:
        return self.folder / library_name(self.kind)

    def fetch(self) -> str:
        """Fetch the wheel's tag, and nothing before it; its commit, which must be the wheel's own."""
        tag = tag_of(self.artifact.version)
        self.source.mkdir()
        self._git("init", "--quiet", ".")
        self._git("fetch", "--quiet", "--depth=1", "--no-tags", "--", self.remote, tag)
        commit = (ask_git(["rev-parse", "FETCH_HEAD^{commit}"], cwd=self.source) or "").strip()
        own = self.artifact.commit
        # A wheel may state the first digits of its commit only.
        if own is None or not commit.startswith(own):
            raise ArtifactError(
                f"{self.remote}: {tag} is commit {commit[:12]}, but the wheel was built from "
                f"{own or 'an unknown one'}. Set tvm_source to the remote that the wheel was built from."
            )
        self._git("checkout", "--quiet", commit, "--", *self.recipe.folders)
        return commit

    def compile(self) -> str:
        """Compile and link against the wheel's own libraries; the compiler's first words."""
        compiler = shutil.which("c++") or shutil.which("g++")
        if compiler is None:
            raise ArtifactError(f"no C++ compiler found (Debian, Ubuntu: {self.recipe.install}).")
        self.folder.mkdir()
        headers = [f"-I{self.source / name}" for name in self.recipe.folders]
        headers += [f"-I{folder / 'tvm_ffi' / 'include'}" for folder in self.artifact.pythonpath]
        options = [f"-std={_STANDARD}", "-O2", "-fPIC", *(f"-D{name}" for name in self.recipe.defines), *headers]
        objects = []
        for number, name in enumerate(self.recipe.files):
            objects.append(str(self.place / f"{number}.o"))
            self._run(f"compile-{number}", [compiler, *options, "-c", name, "-o", objects[-1]])
        folders = [f"-L{folder}" for folder in self.artifact.library_path]
        libraries = [f"-l{name}" for name in ("tvm_runtime", "tvm_ffi", *self.recipe.libraries)]
        self._run("link", [compiler, "-shared", "-o", str(self.library), *objects, *folders, *libraries])
        self._run("version", [compiler, "--version"])
        return self._log("version").read_text(encoding="utf-8", errors="replace").partition("\n")[0]

    def _log(self, step: str) -> Path:
        return self.context.log_folder / f"runtime-{self.kind}-{self.artifact.version}-{step}.log"

    def _git(self, *arguments: str) -> None:
        run_git(list(arguments), cwd=self.source, log=self._log(f"git-{arguments[0]}"), deadline=self.context.deadline)

    def _run(self, step: str, argv: Sequence[str]) -> None:
        environment = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", "TMPDIR": str(self.place)}
        log = self._log(step)
        left_s = self.context.deadline.left_s()
        outcome = process.run(argv, cwd=self.source, env=environment, timeout_s=left_s, log=log)
        if outcome.exit_code != 0 or outcome.timed_out:
            said = "timed out" if outcome.timed_out else find_first_error(log) or outcome.tail[-300:]
            raise ArtifactError(
                f"{step}: {said} (log: {log}). Required packages (Debian, Ubuntu): {self.recipe.install}."
            )


TIMEOUT_S = 900.0
"""It took 40 s on two busy cores; fetching the source may take longer."""


@dataclass(frozen=True)
class Runtime:
    """The record of a runtime beside its files: of a compiled one, or of packages by name and version.

    source_sha256: by file, of the source it was compiled from.
    """

    kind: str
    tvm_version: str
    seconds: Mapping[str, float]
    packages: Mapping[str, str] = field(default_factory=dict)
    remote: str = ""
    commit: str = ""
    compiler: str = ""
    source_sha256: Mapping[str, str] = field(default_factory=dict)
    library_sha256: str = ""
    schema_version: int = 1


@dataclass(frozen=True)
class RuntimeRequest:
    """The kinds of devices that are wanted, and the git remote that has the source of TVM's releases."""

    kinds: tuple[str, ...]
    source: str
    log_folder: Path


def find_lacking(artifact: Artifact, kinds: Collection[str]) -> list[str]:
    """List those of `kinds` that can be made beside a wheel and that the artifact lacks."""
    if artifact.provider != WHEEL:
        return []
    shipped = {Path(name).name for name in artifact.sizes_bytes}
    there = {folder.name for folder in artifact.runtimes}
    there |= {kind for kind in RECIPES if library_name(kind) in shipped}
    return [kind for kind in kinds if kind in {*RECIPES, *PACKAGES} and kind not in there]


def provide_runtimes(artifact: Artifact, request: RuntimeRequest) -> Iterator[str]:
    """Build what the artifact lacks; a sentence for each device that cannot be had, and what to do about it."""
    for kind in find_lacking(artifact, request.kinds):
        deadline = LockDeadline(TIMEOUT_S)
        context = BuildContext(artifact.path.parent, request.log_folder.absolute(), deadline)
        request.log_folder.mkdir(parents=True, exist_ok=True)
        base = f"{artifact.key}-{kind}"
        try:
            with artifact_store.claim(context.folder, base, deadline):
                # Another night may have made it while this one waited for the claim.
                if find_lacking(artifact, [kind]):
                    with artifact_store.workplace(context.folder, base) as place:
                        _provide(artifact, kind, request.source, place, context)
        except (DashboardError, OSError) as error:
            yield f"TVM {artifact.version} cannot use {kind} because its runtime could not be obtained: {error}"


def _provide(artifact: Artifact, kind: str, remote: str, place: Path, context: BuildContext) -> None:
    make = _install if kind in PACKAGES else _build
    made = make(artifact, kind, remote, place, context)
    folder, begun = place / kind, time.monotonic()
    can = find_abilities(replace(artifact, unproved=(folder,)), kind, 0, context, place / "scratch")
    if not can.drives:
        raise ArtifactError(f"TVM could not load {library_name(kind)} (logs: {context.log_folder}).")
    kept = replace(made, seconds={**made.seconds, "health": round(time.monotonic() - begun, 1)})
    common.write_json(folder / RUNTIME_MANIFEST, asdict(kept))
    target = artifact.path / RUNTIMES / kind
    target.parent.mkdir(exist_ok=True)
    common.swap_in(folder, target)


def _install(artifact: Artifact, kind: str, _: str, place: Path, context: BuildContext) -> Runtime:
    if not list_driver_devices(kind):
        raise ArtifactError(f"no driver reports a device ({DRIVERS[kind]}).")
    begun, log = time.monotonic(), context.log_folder / f"runtime-{kind}-{artifact.version}-pip.log"
    install_packages(kind, place / kind, log, context)
    return Runtime(
        kind, artifact.version, {"install": round(time.monotonic() - begun, 1)}, packages=dict(PACKAGES[kind])
    )


def _build(artifact: Artifact, kind: str, remote: str, place: Path, context: BuildContext) -> Runtime:
    making, moments = Making(artifact, kind, remote, place, context), [time.monotonic()]
    commit = making.fetch()
    moments.append(time.monotonic())
    compiler = making.compile()
    moments.append(time.monotonic())
    steps = zip(("fetch", "compile"), moments, moments[1:], strict=False)
    return Runtime(
        kind,
        artifact.version,
        {step: round(end - begun, 1) for step, begun, end in steps},
        remote=remote,
        commit=commit,
        compiler=compiler,
        source_sha256={name: _hash(making.source / name) for name in making.recipe.files},
        library_sha256=_hash(making.library),
    )


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
