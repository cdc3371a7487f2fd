"""What people ask for as a TVM, checked without looking anywhere: `pypi:0.26.0`, `git:main`, `REMOTE@REVISION`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from dashboard.artifacts.artifact import ArtifactError, ArtifactSpec
from dashboard.artifacts.git.names import check_options, check_remote, check_revision
from tvmdash.errors import DashboardError

PYPI = "pypi"
"""The remote that means the package index."""
LATEST = "latest"
"""The newest version there."""
WHEEL, GIT = "wheel", "git"
"""The providers: a wheel of the package index, a build of a git remote."""
VERSION = re.compile(r"\d{1,6}(\.\d{1,6}){0,4}((a|b|rc)\d{1,6})?(\.post\d{1,6})?(\.dev\d{1,10})?", re.ASCII)
"""A version in the package index."""
TIMEOUT_S: Mapping[str, int] = MappingProxyType({WHEEL: 3600, GIT: 21600})
"""What each provider is allowed where nobody says more.

A whole TVM took 7200 CPU s: one core, or two that others use, need twice that and more. It is to end what hangs.
"""


def provider_of(spec: ArtifactSpec) -> str:
    """The name of the provider for the remote of `spec`."""
    return WHEEL if spec.remote == PYPI else GIT


def check_spec(spec: ArtifactSpec) -> None:
    """Raise ArtifactError where `spec` can name neither a version nor what git could have, or options that are none."""
    if provider_of(spec) == GIT:
        check_remote(spec.remote)
        check_revision(spec.branch)
        check_options(dict(spec.options))
    elif spec.branch != LATEST and not VERSION.fullmatch(spec.branch):
        raise ArtifactError(
            f'tvm_branch: {spec.branch!r} is neither "{LATEST}" nor a version of apache-tvm. Use e.g. "0.27.0.post1".'
        )


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
            raise DashboardError(f"{name}: the home's tvm_remote is pypi, not a git remote. Use REMOTE@REVISION.")
        return ArtifactSpec(own.remote, rest, own.options)
    remote, at, revision = name.rpartition("@")
    if not at or not remote:
        return None
    return ArtifactSpec(remote, revision, own.options if own.remote != PYPI else ())
