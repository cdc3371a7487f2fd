"""What a night that began now would take for a TVM that is asked for: its source is asked, and nothing is got."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dashboard.artifacts.artifact import ArtifactError, ArtifactSpec
from dashboard.artifacts.git.mirror import Mirror
from dashboard.artifacts.locks import LockDeadline
from dashboard.artifacts.provide import PROVIDERS, list_here
from dashboard.artifacts.spec import GIT, LATEST, Fallback, provider_of, source_of
from dashboard.artifacts.wheel import package_index


@dataclass(frozen=True)
class Lookup:
    """The version that would be taken, and whether it is at hand.

    version: empty where there is none; of a git remote the name that is asked for. is_asked: whether the source was
    asked; fault: why it did not say what it has now, or has not got it.
    """

    version: str
    is_at_hand: bool = False
    fault: str = ""
    is_asked: bool = False


def look_up(
    spec: ArtifactSpec,
    folder: Path,
    deadline: LockDeadline,
    *,
    rebuild: bool,
    fallback: Fallback = Fallback.UNREACHABLE,
) -> Lookup:
    """As `provide` would choose: of the artifacts in `folder` and, where `rebuild` allows it, of what is offered."""
    here = [artifact.version for artifact in list_here(spec, folder)]
    newest = here[0] if here else ""
    if newest and (PROVIDERS[provider_of(spec)].is_exact(spec) or not rebuild):
        return Lookup(newest, is_at_hand=True)
    if not rebuild:
        return Lookup("")
    try:
        version = _ask(spec, folder, deadline)
    except ArtifactError as error:
        instead = "" if fallback is Fallback.NEVER else newest
        return Lookup(instead, bool(instead), str(error), is_asked=True)
    return Lookup(version, version in here, is_asked=True)


def _ask(spec: ArtifactSpec, folder: Path, deadline: LockDeadline) -> str:
    """The version that the source has for `spec` now; ArtifactError where it has none, or does not answer."""
    if provider_of(spec) == GIT:
        Mirror.of(folder, spec.remote).check_offered(spec.branch, deadline)
    elif spec.branch == LATEST:
        return package_index.list_versions(source_of(spec), log=None, deadline=deadline)[0]
    else:
        package_index.check_offered(source_of(spec), spec.branch, deadline=deadline)
    return spec.branch
