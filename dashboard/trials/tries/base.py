"""What a TVM is tried against: what is named, where it left the home's branch, or what the last night measured."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from dashboard.artifacts.artifact import MANIFEST, Artifact
from dashboard.artifacts.git.mirror import Mirror
from dashboard.artifacts.provide import Provided
from dashboard.artifacts.spec import GIT, provider_of
from dashboard.plan.artifact_names import ArtifactFinder
from dashboard.plan.reference import NIGHTS_BACK
from tvmdash.contracts.tries import TriedTvm
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError

_NAME_IT = "Use --against to give the TVM to compare with."


@dataclass(frozen=True)
class Found:
    """A TVM that was got, and how it is told. Nobody removes it until its lease is released."""

    provided: Provided
    tvm: TriedTvm

    @property
    def artifact(self) -> Artifact:
        """What is measured."""
        return self.provided.artifact


def name_again(tvm: TriedTvm, store: Path) -> str:
    """What names the same build, or, where that is in the store no more, one of the same commit or version."""
    return tvm.key if (store / tvm.key / MANIFEST).is_file() else tvm.exact_name


def find_named(name: str, finder: ArtifactFinder) -> Found:
    """The TVM of that name; DashboardError where it cannot be had."""
    return _describe(finder.find(name), name)


def find_base(home: Home, candidate: Artifact, finder: ArtifactFinder) -> Found:
    """What to measure the candidate against where nobody says; DashboardError where there is nothing."""
    if candidate.provider == GIT and provider_of(finder.config.tvm) == GIT:
        commit, why = find_base_commit(candidate.facts["remote"], str(candidate.commit), finder)
        provided = finder.provide(replace(finder.config.tvm, branch=commit))
        return _describe(provided, f"git:{commit}", why)
    return _find_last_night(home, finder)


def find_base_commit(remote: str, commit: str, finder: ArtifactFinder) -> tuple[str, str]:
    """The commit at which that commit of the remote left the home's branch, or, of one on it, the commit before.

    And why it was taken, in words. DashboardError where there is none.
    """
    own = finder.config.tvm
    main = finder.resolve(own).branch
    mirror, theirs = (Mirror.of(finder.config.artifacts, address) for address in (own.remote, remote))
    base = mirror.find_merge_base(main, commit, theirs)
    if base is None:
        text = f"{commit[:12]} of {theirs.remote} and {own.branch} of {own.remote} have no common ancestor."
        raise DashboardError(f"{text} {_NAME_IT}")
    note = f"its merge base with {own.branch}"
    if base == commit:
        base, note = mirror.commit_of(f"{commit}^"), "the commit before it"
    if base is None:
        raise DashboardError(f"{commit[:12]}: this commit has no parent. {_NAME_IT}")
    return base, note


def _find_last_night(home: Home, finder: ArtifactFinder) -> Found:
    own = finder.config.tvm
    for night in home.last_nights(NIGHTS_BACK):
        for entry in night.list_taken(own.shown, own.branch):
            return _describe(_take(str(entry.get("key")), finder), str(entry.get("key")), f"the TVM of {night.stamp}")
    raise DashboardError(f"{home.root}: no night has measured {own.branch} from {own.shown} yet. {_NAME_IT}")


def _take(key: str, finder: ArtifactFinder) -> Provided:
    try:
        return finder.take(key)
    except DashboardError as error:
        raise DashboardError(f"The TVM of the last night, {key}, no longer exists: {error} {_NAME_IT}") from error


def _describe(provided: Provided, asked: str, why: str = "") -> Found:
    artifact = provided.artifact
    note = ". ".join(filter(None, (why, provided.note)))
    return Found(provided, TriedTvm(asked, artifact.key, artifact.version, artifact.commit, note))
