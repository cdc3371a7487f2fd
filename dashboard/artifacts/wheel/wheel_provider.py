"""The `wheel` provider: apache-tvm from the package index, with a tvm-ffi that it is proved to work with.

Wheels of TVM declare only a floor for tvm-ffi, and the newest tvm-ffi above it may crash them
(docs/explanation/artifacts.md).
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from dashboard.artifacts.artifact import Artifact, ArtifactError, ArtifactSpec, library_sizes, python_tag, runs_here
from dashboard.artifacts.build_context import BuildContext
from dashboard.artifacts.locks import Deadline
from dashboard.artifacts.proof import Health, prove
from dashboard.artifacts.spec import LATEST, VERSION, WHEEL
from dashboard.artifacts.wheel import needs, package_index
from tvmdash.files import trees

if TYPE_CHECKING:
    from importlib.metadata import Distribution

TVM = "apache-tvm"
FFI = "apache-tvm-ffi"

KNOWN_GOOD_FFI: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "0.25.0": ("0.1.12",),
        "0.25.0.post1": ("0.1.12",),
        "0.26.0": ("0.1.14.post1", "0.1.13.post3", "0.1.13.post2"),
        "0.27.0": ("0.1.14.post1", "0.1.14.post0"),
        "0.27.0.post1": ("0.1.14.post1", "0.1.14.post0"),
    }
)
"""tvm-ffi versions to try first. Source: measured in November 2026 by health.py on Linux x86-64, CPython 3.11."""


@dataclass(frozen=True)
class _Build:
    """One build going on in `place`: TVM lies in `site`, the tvm-ffi that is tried in `ffi`."""

    version: str
    place: Path
    log_folder: Path
    deadline: Deadline
    refused: dict[str, str] = field(default_factory=dict)

    @property
    def site(self) -> Path:
        return self.place / "site"

    @property
    def ffi(self) -> Path:
        return self.place / "ffi"

    @property
    def scratch(self) -> Path:
        return self.place / "scratch"

    def install(self, name: str, version: str, target: Path) -> None:
        log = self.log_folder / f"pip-{name}-{version}.log"
        package_index.install(name, version, target, scratch=self.scratch, log=log, deadline=self.deadline)


def satisfies(artifact: Artifact, spec: ArtifactSpec) -> bool:
    """Whether `artifact` is what `spec` asks for and this Python on this machine can import it."""
    from packaging.version import Version

    facts = artifact.facts
    readable = all(VERSION.fullmatch(version) for version in (artifact.version, facts.get("tvm_ffi", "")))
    if artifact.provider != WHEEL or not readable or not runs_here(artifact):
        return False
    return spec.branch == LATEST or Version(artifact.version) == Version(spec.branch)


def rank(artifact: Artifact) -> object:
    """Sorts artifacts from the oldest release to the newest."""
    from packaging.version import Version

    return Version(artifact.version), Version(artifact.facts["tvm_ffi"])


def is_exact(spec: ArtifactSpec) -> bool:
    """Whether `spec` names a version."""
    return spec.branch != LATEST


def resolve(spec: ArtifactSpec, context: BuildContext) -> ArtifactSpec:
    """`spec` with an exact version; only "latest" needs the index."""
    if spec.branch != LATEST:
        return spec
    log = context.log_folder / f"pip-index-{TVM}.log"
    return replace(spec, branch=package_index.list_versions(TVM, log=log, deadline=context.deadline)[0])


def list_before(version: str, versions: Iterable[str]) -> list[str]:
    """Those of `versions` that belong to a release before that of `version`, newest first.

    0.27.0 and 0.27.0.post1 are one release: a post-release mends how it was packed.
    """
    from packaging.version import Version

    release = Version(Version(version).base_version)
    before = [other for other in versions if Version(Version(other).base_version) < release]
    return sorted(before, key=Version, reverse=True)


def base_of(exact: ArtifactSpec) -> str:
    """The part of the artifact's key that is known before it is built."""
    from packaging.utils import canonicalize_version

    return f"{WHEEL}-{canonicalize_version(exact.branch)}-{python_tag()}-{platform.machine()}"


def build(exact: ArtifactSpec, folder: Path, context: BuildContext) -> Artifact:
    """Install and prove `exact` in the empty folder `place`; ArtifactError lists each pair tried and why it failed."""
    this = _Build(exact.branch, folder, context.log_folder, context.deadline)
    this.install(TVM, this.version, this.site)
    wheel = needs.read_distribution(this.site, TVM)
    needs.check(wheel, provided=frozenset((FFI,)))
    for ffi_version in _list_ffi_candidates(this, wheel):
        healthy = _try_pair(this, ffi_version)
        if healthy is not None:
            trees.remove(this.scratch)
            return _artifact(this, wheel.version, healthy)
    tried = "\n".join(f"  {pair}: {why}" for pair, why in this.refused.items())
    raise ArtifactError(
        f"{TVM} {wheel.version}: no {FFI} works with it. Pin another version with tvm_branch. Tried:\n{tried}"
    )


def _try_pair(this: _Build, ffi_version: str) -> Health | None:
    """The pair's health, or None where it is refused; only tvm-ffi is exchanged, TVM's 100 MB stay."""
    trees.remove(this.ffi)
    try:
        this.install(FFI, ffi_version, this.ffi)
        needs.check(needs.read_distribution(this.ffi, FFI), provided=frozenset())
        log = this.log_folder / f"health-{this.version}-ffi-{ffi_version}.log"
        pythonpath, library_path = (this.site, this.ffi), _library_path(this)
        return prove(pythonpath, library_path, scratch=this.scratch, log=log, deadline=this.deadline)
    except ArtifactError as error:
        this.refused[f"{FFI} {ffi_version}"] = str(error)
        return None


def _list_ffi_candidates(this: _Build, wheel: Distribution) -> Iterator[str]:
    """Known pairs, then every release that the wheel allows, newest first; ends when the time is over."""
    from packaging.utils import canonicalize_name

    known = KNOWN_GOOD_FFI.get(wheel.version, ())
    yield from known
    log = this.log_folder / f"pip-index-{FFI}.log"
    try:
        versions = package_index.list_versions(FFI, log=log, deadline=this.deadline)
    except ArtifactError as error:
        this.refused[f"other versions of {FFI}"] = str(error)
        return
    allowed = next(
        (need.specifier for need in needs.read_requirements(wheel) if canonicalize_name(need.name) == FFI), None
    )
    for version in versions:
        if version in known or (allowed is not None and not allowed.contains(version)):
            continue
        if not this.deadline.left_s():
            this.refused[f"{FFI} {version} and older"] = (
                f"not tried: the {this.deadline.timeout_s:.0f} s time limit was reached"
            )
            return
        yield version


def _artifact(this: _Build, version: str, healthy: Health) -> Artifact:
    pair = f"{version}-ffi-{healthy.tvm_ffi_version}"
    return Artifact(
        key=f"{WHEEL}-{pair}-{python_tag()}-{platform.machine()}",
        provider=WHEEL,
        version=version,
        commit=healthy.commit,
        path=this.place,
        pythonpath=(this.site, this.ffi),
        library_path=_library_path(this),
        facts={
            "tvm_ffi": healthy.tvm_ffi_version,
            "python": python_tag(),
            "machine": platform.machine(),
            "proved_with_numpy": healthy.numpy_version,
        },
        refused=this.refused,
        sizes_bytes=library_sizes(this.place, (this.site, this.ffi)),
    )


def _library_path(this: _Build) -> tuple[Path, ...]:
    return this.site / "tvm" / "lib", this.ffi / "tvm_ffi" / "lib"
