"""The `wheel` provider: TVM from any source of wheels, with a tvm-ffi that it is proved to work with.

Wheels of TVM declare only a floor for tvm-ffi, and the newest tvm-ffi above it may crash them
(docs/explanation/artifacts.md).
"""

from __future__ import annotations

import datetime
import hashlib
import platform
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from dashboard.artifacts.artifact import Artifact, ArtifactError, ArtifactSpec, library_sizes, python_tag, runs_here
from dashboard.artifacts.build_context import BuildContext
from dashboard.artifacts.locks import LockDeadline
from dashboard.artifacts.proof import Health, prove
from dashboard.artifacts.spec import LATEST, VERSION, WHEEL, source_of
from dashboard.artifacts.wheel import package_index
from dashboard.artifacts.wheel.source import PYPI, TVM, WheelSource
from tvmdash.common.files import trees

if TYPE_CHECKING:
    from importlib.metadata import Distribution

    from packaging.requirements import Requirement
    from packaging.specifiers import SpecifierSet

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

_NO_YEAR = 1980
_OF_DEVICES = ("nvidia-", "cuda-")
"""Packages that `artifacts.runtimes` brings where a home has such a device; without one, nothing loads them."""


@dataclass(frozen=True)
class _Build:
    """One build going on in `place`: TVM lies in `site`, the tvm-ffi that is tried in `ffi`."""

    source: WheelSource
    version: str
    place: Path
    log_folder: Path
    deadline: LockDeadline
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

    def install_tvm(self) -> dict[str, str]:
        """Install the wheel; return its file's hash and when it was packed."""
        log = self.log_folder / f"pip-{self.source.package}-{self.version}.log"
        scratch, wheels = self.scratch, self.place / "wheels"
        wheel = package_index.download(
            self.source, self.version, wheels, scratch=scratch, log=log, deadline=self.deadline
        )
        log = log.with_suffix(".install.log")
        package_index.install_file(wheel, self.site, scratch=scratch, log=log, deadline=self.deadline)
        facts = _describe_file(wheel)
        trees.remove(wheels)
        return facts

    def install_ffi(self, version: str) -> None:
        """Install that tvm-ffi, from where pip looks by itself."""
        log = self.log_folder / f"pip-{FFI}-{version}.log"
        package_index.install(FFI, version, self.ffi, scratch=self.scratch, log=log, deadline=self.deadline)


def satisfies(artifact: Artifact, spec: ArtifactSpec) -> bool:
    """Return True for an artifact that `spec` asks for and this Python on this machine can import."""
    from packaging.version import Version

    facts = artifact.facts
    readable = all(VERSION.fullmatch(version) for version in (artifact.version, facts.get("tvm_ffi", "")))
    source = source_of(spec)
    # Only artifacts of other sources name theirs.
    if artifact.provider != WHEEL or not readable or not runs_here(artifact) or facts.get("source", PYPI) != source.id:
        return False
    if spec.branch == LATEST:
        return source.pre or not Version(artifact.version).is_prerelease
    return Version(artifact.version) == Version(spec.branch)


def rank(artifact: Artifact) -> object:
    from packaging.version import Version

    return Version(artifact.version), Version(artifact.facts["tvm_ffi"])


def is_exact(spec: ArtifactSpec) -> bool:
    return spec.branch != LATEST


def resolve(spec: ArtifactSpec, context: BuildContext) -> ArtifactSpec:
    """Make the version exact; only "latest" needs the index."""
    return spec if spec.branch != LATEST else replace(spec, branch=list_offered(spec, context)[0])


def list_offered(spec: ArtifactSpec, context: BuildContext) -> list[str]:
    """List the versions that the source of `spec` offers now, newest first."""
    source = source_of(spec)
    log = context.log_folder / f"pip-index-{source.package}.log"
    return package_index.list_versions(source, log=log, deadline=context.deadline)


def list_before(version: str, versions: Iterable[str], *, nightly: bool = False) -> list[str]:
    """List those of `versions` that are of a release before `version`'s, newest first; of nightlies, all before it.

    0.27.0 and 0.27.0.post1 are one release: a post-release mends how it was packed.
    """
    from packaging.version import Version

    def order(text: str) -> Version:
        return Version(text) if nightly else Version(Version(text).base_version)

    before = [other for other in versions if order(other) < order(version)]
    return sorted(before, key=Version, reverse=True)


def base_of(exact: ArtifactSpec) -> str:
    """Return the part of the artifact's key that is known before it is built."""
    from packaging.utils import canonicalize_version

    return f"{_begin_key(source_of(exact))}-{canonicalize_version(exact.branch)}-{python_tag()}-{platform.machine()}"


def _begin_key(source: WheelSource) -> str:
    """Begin the key with the package of a source other than PyPI, and a digest where that does not say all."""
    if source.id == PYPI:
        return WHEEL
    digest = hashlib.sha256(source.id.encode()).hexdigest()[:8] if "," in source.id else ""
    return "-".join(filter(None, (WHEEL, source.package, digest)))


def build(exact: ArtifactSpec, folder: Path, context: BuildContext) -> Artifact:
    """Install and prove `exact` in the empty `folder`; ArtifactError lists each pair tried and why it failed."""
    source = source_of(exact)
    this = _Build(source, exact.branch, folder, context.log_folder, context.deadline)
    of_file = this.install_tvm()
    wheel = read_distribution(this.site, source.package)
    check(wheel, provided=frozenset((FFI,)))
    for ffi_version in _list_ffi_candidates(this, wheel):
        healthy = _try_pair(this, ffi_version)
        if healthy is not None:
            trees.remove(this.scratch)
            return _artifact(this, wheel.version, healthy, of_file)
    tried = "\n".join(f"  {pair}: {why}" for pair, why in this.refused.items())
    raise ArtifactError(
        f"{source.package} {wheel.version}: no {FFI} works with it. "
        f"Pin another version with tvm_branch. Tried:\n{tried}"
    )


def _try_pair(this: _Build, ffi_version: str) -> Health | None:
    """Prove the pair, or note why it is refused; only tvm-ffi is exchanged, TVM's 100 MB stay."""
    trees.remove(this.ffi)
    try:
        this.install_ffi(ffi_version)
        check(read_distribution(this.ffi, FFI), provided=frozenset())
        log = this.log_folder / f"health-{this.version}-ffi-{ffi_version}.log"
        pythonpath, library_path = (this.site, this.ffi), _library_path(this)
        return prove(pythonpath, library_path, scratch=this.scratch, log=log, deadline=this.deadline)
    except ArtifactError as error:
        this.refused[f"{FFI} {ffi_version}"] = str(error)
        return None


def _list_ffi_candidates(this: _Build, wheel: Distribution) -> Iterator[str]:
    """Known pairs, then every release that the wheel allows, newest first; ends when the time is over."""
    from packaging.utils import canonicalize_name

    known = KNOWN_GOOD_FFI.get(wheel.version, ()) if this.source.package == TVM else ()
    yield from known
    log = this.log_folder / f"pip-index-{FFI}.log"
    try:
        ffi = WheelSource(FFI, pre=this.source.pre)
        versions = package_index.list_versions(ffi, log=log, deadline=this.deadline)
    except ArtifactError as error:
        this.refused[f"other versions of {FFI}"] = str(error)
        return
    allowed = next((need.specifier for need in read_requirements(wheel) if canonicalize_name(need.name) == FFI), None)
    for version in versions:
        if version in known or (allowed is not None and not _allows(allowed, version)):
            continue
        if not this.deadline.left_s():
            this.refused[f"{FFI} {version} and older"] = (
                f"not tried: the {this.deadline.timeout_s:.0f} s time limit was reached"
            )
            return
        yield version


def _allows(allowed: SpecifierSet, version: str) -> bool:
    """Return True where it or its release is allowed: a nightly asks for `>=0.1.13` before there is one."""
    from packaging.version import Version

    return allowed.contains(version, prereleases=True) or allowed.contains(Version(version).base_version)


def _describe_file(wheel: Path) -> dict[str, str]:
    """Return a wheel file's hash and date; tools that pack reproducibly state 1980, which is no date."""
    with wheel.open("rb") as file:
        facts = {"wheel_sha256": hashlib.file_digest(file, "sha256").hexdigest()}
    with zipfile.ZipFile(wheel) as packed:
        moments = [entry.date_time for entry in packed.infolist() if entry.filename.endswith(".dist-info/METADATA")]
    if moments and moments[0][0] > _NO_YEAR:
        facts["packed"] = datetime.datetime(*moments[0], tzinfo=datetime.UTC).date().isoformat()
    return facts


def _artifact(this: _Build, version: str, healthy: Health, of_file: Mapping[str, str]) -> Artifact:
    source, of_source, bytes_ = this.source.id, {}, ""
    if source != PYPI:  # whose files never change under their name
        of_source, bytes_ = {"source": source}, f"-{of_file['wheel_sha256'][:8]}"
    pair = f"{version}{bytes_}-ffi-{healthy.tvm_ffi_version}"
    return Artifact(
        key=f"{_begin_key(this.source)}-{pair}-{python_tag()}-{platform.machine()}",
        provider=WHEEL,
        version=version,
        commit=healthy.commit,
        path=this.place,
        pythonpath=(this.site, this.ffi),
        library_path=_library_path(this),
        facts={**of_source, **healthy.facts, "python": python_tag(), "machine": platform.machine(), **of_file},
        refused=this.refused,
        sizes_bytes=library_sizes(this.place, (this.site, this.ffi)),
    )


def _library_path(this: _Build) -> tuple[Path, ...]:
    return this.site / "tvm" / "lib", this.ffi / "tvm_ffi" / "lib"


def read_distribution(folder: Path, name: str) -> Distribution:
    import importlib.metadata  # in each function that needs it: a tenth of what the command line takes to start

    distributions = list(importlib.metadata.distributions(name=name, path=[str(folder)]))
    if len(distributions) != 1:
        raise ArtifactError(
            f"{folder}: contains {len(distributions)} installations of {name}, expected one. Delete the folder."
        )
    return distributions[0]


def read_requirements(wheel: Distribution) -> list[Requirement]:
    """List the requirements of `wheel` for this Python and machine, without those of extras."""
    from packaging.requirements import Requirement

    needs = [Requirement(text) for text in wheel.requires or ()]
    return [need for need in needs if need.marker is None or need.marker.evaluate({"extra": ""})]


def check(wheel: Distribution, *, provided: frozenset[str]) -> None:
    """Raise ArtifactError where a requirement, other than those `provided`, is not met by the running Python."""
    from packaging.utils import canonicalize_name

    needs = [
        need
        for need in read_requirements(wheel)
        if (name := canonicalize_name(need.name)) not in provided and not name.startswith(_OF_DEVICES)
    ]
    lacking = [f"{need}: {fault}" for need in needs if (fault := _find_lack(need))]
    if lacking:
        raise ArtifactError(
            f"{wheel.metadata['Name']} {wheel.version} needs {'; '.join(lacking)}. "
            f"Add it to requirements.txt, or run {sys.executable} -m pip install it."
        )


def _find_lack(need: Requirement) -> str | None:
    import importlib.metadata

    try:
        version = importlib.metadata.version(need.name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
    return None if need.specifier.contains(version, prereleases=True) else f"{version} is installed"
