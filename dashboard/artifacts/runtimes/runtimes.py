"""Gives a wheel what it lacks for a device, proved, kept with it.

KEY/devices/opencl/{libtvm_runtime_opencl.so, runtime.json}   built from the source of its release
KEY/devices/cuda/{nvidia/, cuda/, runtime.json}               packages of the index

The wheel itself stays as it was. TVM finds the library as the folder stands on the loader's path; see
`Artifact.loader_path`.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from dashboard.artifacts import artifact_store
from dashboard.artifacts.artifact import RUNTIME_MANIFEST, RUNTIMES, Artifact, ArtifactError
from dashboard.artifacts.build_context import BuildContext
from dashboard.artifacts.locks import LockDeadline
from dashboard.artifacts.runtimes.abilities import find_abilities
from dashboard.artifacts.runtimes.asking import DRIVERS, list_driver_devices
from dashboard.artifacts.runtimes.making import Making, library_name
from dashboard.artifacts.runtimes.packages import PACKAGES, install_packages
from dashboard.artifacts.runtimes.recipes import RECIPES
from dashboard.artifacts.spec import WHEEL
from tvmdash import common
from tvmdash.errors import DashboardError

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
    """Those of `kinds` whose runtime the artifact lacks and that is made beside a wheel."""
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
