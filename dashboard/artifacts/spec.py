"""Names of TVMs as people write them, checked offline: `pypi:0.26.0`, `git:main`, `REMOTE@REVISION`.

A remote is git's, or a source of wheels: `wheel:mlc-ai-nightly-cpu@0.26.dev203`.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from types import MappingProxyType

from dashboard.artifacts.artifact import ArtifactError, ArtifactSpec
from dashboard.artifacts.git.names import check_options, check_remote, check_revision
from dashboard.artifacts.wheel.source import PYPI, WHEEL_SIGN, WheelSource, is_wheel, parse_source
from tvmdash.errors import DashboardError
from tvmdash.redaction import redact

LATEST = "latest"
"""The newest version of a source of wheels."""
WHEEL, GIT = "wheel", "git"
"""The providers: a wheel, a build of a git remote."""
VERSION = re.compile(r"\d{1,6}(\.\d{1,6}){0,4}((a|b|rc)\d{1,6})?(\.post\d{1,6})?(\.dev\d{1,10})?", re.ASCII)
"""A version of a wheel."""
TIMEOUT_S: Mapping[str, int] = MappingProxyType({WHEEL: 3600, GIT: 21600})
"""The default time limit of each provider.

A whole TVM took 7200 CPU s: one core, or two that others use, need twice that and more. It is to end what hangs.
"""


class Fallback(enum.StrEnum):
    """The rule for measuring the newest TVM at hand instead of one that cannot be had."""

    UNREACHABLE = "unreachable"
    """Only where the source cannot be asked."""
    ALWAYS = "always"
    """Also where it cannot be built and proved."""
    NEVER = "never"


def provider_of(spec: ArtifactSpec) -> str:
    return WHEEL if is_wheel(spec.remote) else GIT


def check_spec(spec: ArtifactSpec) -> None:
    """Raise ArtifactError where `spec` can name neither a version nor what git could have, or options that are none."""
    if provider_of(spec) == GIT:
        check_remote(spec.remote)
        check_revision(spec.branch)
        check_options(dict(spec.options))
        return
    package = source_of(spec).package
    if spec.branch != LATEST and not VERSION.fullmatch(spec.branch):
        raise ArtifactError(
            f'tvm_branch: {spec.branch!r} is neither "{LATEST}" nor a version of {package}. Use e.g. "0.27.0.post1".'
        )


def source_of(spec: ArtifactSpec) -> WheelSource:
    return parse_source(spec.remote)


def parse(name: str, own: ArtifactSpec) -> ArtifactSpec | None:
    """Return the TVM that `name` means in a home whose own TVM is `own`; None where it has none of the forms.

    A git revision is built with the options of `own`; `git:` and `wheel:VERSION` mean its remote. DashboardError where
    it cannot be meant.
    """
    try:
        spec = _parse(name, own)
        if spec is not None:
            check_spec(spec)
    except ArtifactError as error:
        raise DashboardError(f"{redact(name)}: {error}") from error
    return spec


def _parse(name: str, own: ArtifactSpec) -> ArtifactSpec | None:
    kind, colon, rest = name.partition(":")
    if colon and kind.partition("+")[0] == PYPI:
        return _make_wheel(kind, rest)
    if colon and kind == GIT and not rest.startswith("//"):
        if provider_of(own) == WHEEL:
            raise DashboardError(
                f"{redact(name)}: the home's tvm_remote is {own.shown}, not a git remote. Use REMOTE@REVISION."
            )
        return ArtifactSpec(own.remote, rest, own.options)
    remote, at, revision = name.rpartition("@")
    if name.startswith(WHEEL_SIGN):
        return _parse_wheel(name, rest, own)
    if not at or not remote:
        return None
    return ArtifactSpec(remote, revision, own.options if provider_of(own) == GIT else ())


def _parse_wheel(name: str, rest: str, own: ArtifactSpec) -> ArtifactSpec:
    """Parse `wheel:VERSION` of the home's own source, `wheel:PACKAGE@VERSION`, or `wheel:PACKAGE` for its newest."""
    if rest != LATEST and not VERSION.fullmatch(rest):
        remote, at, version = name.rpartition("@")
        has_version = at and (version == LATEST or VERSION.fullmatch(version))
        return _make_wheel(remote, version) if has_version else _make_wheel(name, LATEST)
    if provider_of(own) == GIT:
        raise DashboardError(
            f"{redact(name)}: the home's tvm_remote is a git remote. Use e.g. wheel:mlc-ai-nightly-cpu@{rest}."
        )
    return ArtifactSpec(own.remote, rest)


def _make_wheel(remote: str, version: str) -> ArtifactSpec:
    """Spell the remote as everywhere, so that two who ask for the same get the same."""
    return ArtifactSpec(str(parse_source(remote)), version)
