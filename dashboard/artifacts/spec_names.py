"""What people write for a TVM: `pypi:0.26.0`, `git:main`, `REMOTE@REVISION`."""

from __future__ import annotations

from dashboard.artifacts.artifact import ArtifactError, ArtifactSpec
from dashboard.artifacts.provide import check_spec
from tvmdash.errors import DashboardError

PYPI, GIT = "pypi", "git"


def parse(name: str, own: ArtifactSpec) -> ArtifactSpec | None:
    """What `name` asks for in a home whose own TVM is `own`; None where it has none of the forms.

    A git revision is built with the options of `own`; `git:` means its remote. DashboardError where it cannot be meant.
    """
    spec = _parse(name, own)
    if spec is not None:
        try:
            check_spec(spec)
        except ArtifactError as error:
            raise DashboardError(f"{name}: {error}") from error
    return spec


def _parse(name: str, own: ArtifactSpec) -> ArtifactSpec | None:
    kind, colon, rest = name.partition(":")
    if colon and kind == PYPI:
        return ArtifactSpec(PYPI, rest)
    if colon and kind == GIT and not rest.startswith("//"):
        if own.remote == PYPI:
            raise DashboardError(f"{name}: the home's tvm_remote is pypi, not a git remote. Write REMOTE@REVISION.")
        return ArtifactSpec(own.remote, rest, own.options)
    remote, at, revision = name.rpartition("@")
    if not at or not remote:
        return None
    return ArtifactSpec(remote, revision, own.options if own.remote != PYPI else ())
