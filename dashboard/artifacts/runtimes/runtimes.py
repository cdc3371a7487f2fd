"""Gives a wheel the runtime of a device that it lacks: built from the source of its release, proved, kept with it.

KEY/devices/KIND/{libtvm_runtime_KIND.so, runtime.json}

The wheel itself stays as it was. TVM finds the library as the folder stands on the loader's path; see
`Artifact.loader_path`.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from dashboard.artifacts import artifact_store
from dashboard.artifacts.artifact import RUNTIME_MANIFEST, RUNTIMES, Artifact, ArtifactError
from dashboard.artifacts.build_context import BuildContext
from dashboard.artifacts.locks import Deadline
from dashboard.artifacts.runtimes.abilities import find_abilities
from dashboard.artifacts.runtimes.making import Making, library_name
from dashboard.artifacts.runtimes.recipes import RECIPES
from dashboard.artifacts.spec import WHEEL
from tvmdash import common
from tvmdash.errors import DashboardError

TIMEOUT_S = 900.0
"""It took 40 s on two busy cores; fetching the source may take longer."""


@dataclass(frozen=True)
class Runtime:
    """What is kept of a runtime beside its library. source_sha256: by file, of the source it was compiled from."""

    kind: str
    tvm_version: str
    remote: str
    commit: str
    compiler: str
    source_sha256: Mapping[str, str]
    library_sha256: str
    seconds: Mapping[str, float]
    schema_version: int = 1


@dataclass(frozen=True)
class RuntimeRequest:
    """The kinds of devices that are wanted, and the git remote that has the source of TVM's releases."""

    kinds: tuple[str, ...]
    source: str
    log_folder: Path


def find_lacking(artifact: Artifact, kinds: Collection[str]) -> list[str]:
    """Those of `kinds` whose runtime the artifact lacks and that is built beside a wheel."""
    if artifact.provider != WHEEL:
        return []
    there = {Path(name).name for name in artifact.sizes_bytes} | {folder.name for folder in artifact.runtimes}
    return [kind for kind in kinds if kind in RECIPES and not {kind, library_name(kind)} & there]


def provide_runtimes(artifact: Artifact, request: RuntimeRequest) -> Iterator[str]:
    """Build what the artifact lacks; a sentence for each device that cannot be had, and what to do about it."""
    for kind in find_lacking(artifact, request.kinds):
        deadline = Deadline(TIMEOUT_S)
        context = BuildContext(artifact.path.parent, request.log_folder.absolute(), deadline)
        request.log_folder.mkdir(parents=True, exist_ok=True)
        base = f"{artifact.key}-{kind}"
        try:
            with artifact_store.claim(context.folder, base, deadline):
                if find_lacking(artifact, [kind]):
                    with artifact_store.workplace(context.folder, base) as place:
                        _build(artifact, kind, request.source, place, context)
        except (DashboardError, OSError) as error:
            yield f"TVM {artifact.version} drives no {kind}, as its runtime cannot be had: {error}"


def _build(artifact: Artifact, kind: str, remote: str, place: Path, context: BuildContext) -> None:
    making, moments = Making(artifact, kind, remote, place, context), [time.monotonic()]
    commit = making.fetch()
    moments.append(time.monotonic())
    compiler = making.compile()
    moments.append(time.monotonic())
    can = find_abilities(artifact, kind, 0, making.folder, context, place / "scratch")
    if not can.drives:
        raise ArtifactError(f"TVM does not load {making.library.name} (logs: {context.log_folder}).")
    moments.append(time.monotonic())
    steps = zip(("fetch", "compile", "health"), moments, moments[1:], strict=False)
    made = Runtime(
        kind,
        artifact.version,
        remote,
        commit,
        compiler,
        {name: _hash(making.source / name) for name in making.recipe.files},
        _hash(making.library),
        {step: round(end - begun, 1) for step, begun, end in steps},
    )
    common.write_json(making.folder / RUNTIME_MANIFEST, asdict(made))
    target = artifact.path / RUNTIMES / kind
    target.parent.mkdir(exist_ok=True)
    common.swap_in(making.folder, target)


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
