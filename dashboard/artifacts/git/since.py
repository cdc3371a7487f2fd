"""Commits in tonight's artifacts since the last night's artifact of the same TVM."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dashboard.artifacts.artifact import Artifact, ArtifactError, ArtifactSpec
from dashboard.artifacts.git.mirror import Commit, Mirror
from dashboard.artifacts.spec import GIT
from tvmdash.dashboard_info import Night

MOST_COMMITS = 50
_COUNTED = 1000
_MOST_FOLDERS = 12
_log = logging.getLogger("night")


def describe_artifacts(
    have: Mapping[ArtifactSpec, Artifact], nights: Sequence[Night], folder: Path
) -> tuple[dict[str, Any], ...]:
    """Describe each artifact once for the night's record: its identity, who `asked` for it, and what is new `since`.

    `nights` are earlier ones, newest first. `since` is None where none of them took an artifact for the same remote and
    branch. Of a wheel it names version and commit before; of a git build also the commits that came, newest first, at
    most MOST_COMMITS, each with the folders that it changed, and how many `more`; and where the branch was rewritten
    those that are `gone` from it, likewise, and how many `more_gone`.
    """
    entries: dict[str, dict[str, Any]] = {}
    for spec, artifact in have.items():
        entry = entries.setdefault(
            artifact.key, {**artifact.identity(), "asked": [], "since": _describe_since(spec, artifact, nights, folder)}
        )
        entry["asked"].append({"remote": spec.shown, "branch": spec.branch})
    return tuple(entries.values())


def _describe_since(
    spec: ArtifactSpec, artifact: Artifact, nights: Sequence[Night], folder: Path
) -> dict[str, Any] | None:
    for night in nights:
        for before in night.artifacts:
            if _is_same_tvm(before, spec, artifact):
                which = {name: before.get(name) for name in ("key", "version", "commit")}
                return {
                    "stamp": night.stamp,
                    **which,
                    **dict(_describe_commits(artifact, before.get("commit"), folder)),
                }
    return None


def _is_same_tvm(before: Mapping[str, Any], spec: ArtifactSpec, artifact: Artifact) -> bool:
    """Return True where it was taken for this remote and branch; older nights do not say and count for any branch."""
    asked = before.get("asked")
    if isinstance(asked, list):
        return {"remote": spec.shown, "branch": spec.branch} in asked
    facts = before.get("facts")
    remote = facts.get("remote") if isinstance(facts, dict) else None
    return before.get("provider") == artifact.provider and remote == artifact.facts.get("remote")


def _describe_commits(artifact: Artifact, old: object, folder: Path) -> Iterator[tuple[str, object]]:
    if artifact.provider != GIT or not isinstance(old, str) or artifact.commit is None:
        return
    mirror = Mirror.of(folder, artifact.facts["remote"])
    try:
        commits = mirror.commits(old, artifact.commit, most=_COUNTED)
        gone = mirror.commits(artifact.commit, old, most=_COUNTED)
        folders = mirror.folders(old, artifact.commit, most=MOST_COMMITS)
    except ArtifactError as error:
        _log.warning("commits since %s: %s", old, error)
        return
    yield (
        "commits",
        [
            _describe_commit(commit) | {"folders": list(folders.get(commit.sha, ()))[:_MOST_FOLDERS]}
            for commit in commits[:MOST_COMMITS]
        ],
    )
    yield "more", max(0, len(commits) - MOST_COMMITS)
    if gone:
        yield "gone", [_describe_commit(commit) for commit in gone[:MOST_COMMITS]]
        yield "more_gone", max(0, len(gone) - MOST_COMMITS)


def _describe_commit(commit: Commit) -> dict[str, object]:
    named = {"committed": "date"}
    return {named.get(name, name): value for name, value in asdict(commit).items()}
