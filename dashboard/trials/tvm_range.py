"""The TVMs between two: the commits between two builds of one remote, or the releases between two wheels."""

from __future__ import annotations

from dataclasses import replace

from dashboard.artifacts.artifact import Artifact, ArtifactSpec
from dashboard.artifacts.build_context import BuildContext
from dashboard.artifacts.git import git_provider
from dashboard.artifacts.git.mirror import Mirror
from dashboard.artifacts.locks import LockDeadline
from dashboard.artifacts.provide import list_here
from dashboard.artifacts.spec import GIT, LATEST, WHEEL, provider_of
from dashboard.artifacts.wheel import wheel_provider
from dashboard.artifacts.wheel.source import PYPI
from dashboard.plan.artifact_names import ArtifactFinder, spec_of
from dashboard.trials.candidate import Candidate
from tvmdash.errors import DashboardError

_INDEX_TIMEOUT_S = 300.0
_MOST = 100_000


def list_between(good: Artifact, bad: Artifact, finder: ArtifactFinder) -> list[Candidate]:
    """From `good` to `bad`, both included, in their order; DashboardError where no way leads from one to the other."""
    if good.provider != bad.provider:
        raise DashboardError(
            f"{good.key} is a {good.provider} but {bad.key} is a {bad.provider}. Give two TVMs of the same kind."
        )
    if good.provider == GIT:
        for fact in ("remote", "options"):
            if good.facts[fact] != bad.facts[fact]:
                raise DashboardError(f"--good and --bad differ in their {fact}: {good.facts[fact]}, {bad.facts[fact]}.")
        remote, options = good.facts["remote"], git_provider.read_options(good)
        ends = [ArtifactSpec.of(remote, str(artifact.commit), options) for artifact in (good, bad)]
        candidates = _list_commits(ends[0], ends[1], finder)
    else:
        sources = [str(artifact.facts.get("source", "")) for artifact in (good, bad)]
        if sources[0] != sources[1]:
            raise DashboardError(
                f"--good is from {sources[0] or PYPI} but --bad from {sources[1] or PYPI}. Give two of one source."
            )
        ends = [finder.spec_of_wheel(artifact.version, sources[0]) for artifact in (good, bad)]
        candidates = _list_versions(ends[0], ends[1], finder)
    if len(candidates) < 2:
        raise DashboardError(f"There is nothing between {good.version} and {bad.version}; they are the same build.")
    return candidates


def list_range(text: str, finder: ArtifactFinder) -> list[Candidate]:
    """What `pypi:0.25.0..0.27.0`, `git:A..B` or `REMOTE@A..B` names, both ends included, oldest first."""
    left, dots, right = text.rpartition("..")
    if not dots or not left or not right:
        raise DashboardError(
            f"--artifacts {text}: not a range (use e.g. pypi:0.25.0..0.27.0, wheel:0.26.dev201..0.26.dev207 or "
            "git:v0.26.0..main)."
        )
    at = max(left.rfind(":"), left.rfind("@")) + 1
    ends = [spec_of(name, finder.config) for name in (left, left[:at] + right)]
    if ends[0] is None or ends[1] is None:
        raise DashboardError(f"--artifacts {text}: a range takes two versions or two revisions, not artifact keys.")
    first, last = (finder.resolve(end) for end in ends if end)
    return _list_versions(first, last, finder) if provider_of(first) == WHEEL else _list_commits(first, last, finder)


def _list_commits(first: ArtifactSpec, last: ArtifactSpec, finder: ArtifactFinder) -> list[Candidate]:
    """Along the first parents of `last`: a merge is one commit, as it was when it came."""
    mirror, old, new = Mirror.of(finder.config.artifacts, first.remote), first.branch, last.branch
    if not mirror.contains(new, old):
        swapped = " Are they in the wrong order?" if mirror.contains(old, new) else ""
        raise DashboardError(f"{old[:12]} is not an ancestor of {new[:12]} in {first.remote}.{swapped}")
    commits = [mirror.commit(old), *reversed(mirror.commits(old, new, most=_MOST))]
    return [
        Candidate(replace(first, branch=commit.sha), commit.sha, commit.title, commit.author, commit.committed)
        for commit in commits
    ]


def _list_versions(first: ArtifactSpec, last: ArtifactSpec, finder: ArtifactFinder) -> list[Candidate]:
    from packaging.version import Version

    low, high = Version(first.branch), Version(last.branch)
    if low > high:
        raise DashboardError(f"{first.branch} is newer than {last.branch}. Are they in the wrong order?")
    inside = {Version(text): text for text in _known(first, finder) if low < Version(text) < high}
    ordered = [first.branch, *(inside[version] for version in sorted(inside)), last.branch]
    return [Candidate(replace(first, branch=text), text) for text in dict.fromkeys(ordered)]


def _known(spec: ArtifactSpec, finder: ArtifactFinder) -> list[str]:
    """Versions that the source of `spec` offers, where something may be built, and those at hand.

    A page of nightly wheels drops the old ones.
    """
    any_version = replace(spec, branch=LATEST)
    versions = [artifact.version for artifact in list_here(any_version, finder.config.artifacts)]
    if finder.rebuild:
        finder.logs.mkdir(parents=True, exist_ok=True)
        context = BuildContext(finder.config.artifacts, finder.logs, LockDeadline(_INDEX_TIMEOUT_S))
        versions += wheel_provider.list_offered(any_version, context)
    return versions
