"""What a night's record says is new in its TVM."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dashboard.artifacts.artifact import Artifact, ArtifactSpec
from dashboard.artifacts.build_context import BuildContext
from dashboard.artifacts.git import since
from dashboard.artifacts.git.mirror import Mirror
from dashboard.artifacts.locks import LockDeadline
from tests.dashboard import standin
from tests.dashboard.remeasure_homes import make_lab, put_artifact
from tvmdash.dashboard_info import COMPLETE, Night


def build(remote: Path, commit: str) -> Artifact:
    return Artifact(f"git-{commit}", "git", "0.27.0", commit, remote, (), (), {"remote": str(remote)}, {}, {})


def night(day: int, *artifacts: dict[str, Any]) -> Night:
    return Night(f"202608{day:02d}T031500Z", COMPLETE, artifacts=artifacts)


@pytest.fixture
def remotes(tmp_path: Path) -> standin.Remotes:
    return standin.make(tmp_path / "remotes")


def fetched(remotes: standin.Remotes) -> Path:
    """A folder of artifacts whose mirror is up to date."""
    folder = remotes.folder / "shelf"
    Mirror.of(folder, str(remotes.tvm)).fetch(BuildContext(folder, remotes.folder, LockDeadline(60)))
    return folder


def test_the_commits_since_the_last_night_of_the_same_branch_are_told(remotes: standin.Remotes) -> None:
    first = standin.git(remotes.tvm, "rev-parse", "HEAD")
    second = remotes.commit("One", {"src/relax/a.cc": "1", "docs/b.md": "1"}, day=2)
    third = remotes.commit("Two", {"setup.py": "1"}, day=3)
    folder, main = fetched(remotes), ArtifactSpec(str(remotes.tvm), "main")
    (before,) = since.describe_artifacts({main: build(remotes.tvm, first)}, [], folder)
    assert before["since"] is None, "the first night has nothing to compare with"
    other = {**build(remotes.tvm, second).identity(), "asked": [{"remote": str(remotes.tvm), "branch": "theirs"}]}
    nights = [night(3), night(2, other), night(1, before)]
    (now,) = since.describe_artifacts({main: build(remotes.tvm, third)}, nights, folder)
    told = now["since"]
    assert (told["stamp"], told["commit"], told["more"]) == ("20260801T031500Z", first, 0)
    assert [sorted(one.pop("folders")) for one in told["commits"]] == [["setup.py"], ["docs", "src/relax"]]
    assert [{**one, "date": one["date"][:19]} for one in told["commits"]] == [
        {"sha": third, "author": "Ada", "date": "2026-08-03T12:00:00", "title": "Two"},
        {"sha": second, "author": "Ada", "date": "2026-08-02T12:00:00", "title": "One"},
    ]
    assert now["asked"] == [{"remote": str(remotes.tvm), "branch": "main"}]


def test_a_long_list_is_bounded_and_the_rest_counted(remotes: standin.Remotes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(since, "MOST_COMMITS", 2)
    first = standin.git(remotes.tvm, "rev-parse", "HEAD")
    commits = [remotes.commit(f"Change {number}") for number in range(5)]
    old = night(1, build(remotes.tvm, first).identity())
    (now,) = since.describe_artifacts(
        {ArtifactSpec(str(remotes.tvm), "main"): build(remotes.tvm, commits[-1])}, [old], fetched(remotes)
    )
    assert [one["sha"] for one in now["since"]["commits"]] == commits[:2:-1]
    assert now["since"]["more"] == 3


def test_commits_that_a_rewritten_branch_has_lost_are_told(
    remotes: standin.Remotes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(since, "MOST_COMMITS", 1)
    kept = standin.git(remotes.tvm, "rev-parse", "HEAD")
    lost = [remotes.commit("Lost", {"a.cc": "1"}), remotes.commit("Lost too", {"a.cc": "2"})]
    folder, main = fetched(remotes), ArtifactSpec(str(remotes.tvm), "main")
    standin.git(remotes.tvm, "reset", "--quiet", "--hard", kept)
    new = remotes.commit("Instead", {"a.cc": "3"})
    fetched(remotes)
    old = night(1, build(remotes.tvm, lost[-1]).identity())
    (now,) = since.describe_artifacts({main: build(remotes.tvm, new)}, [old], folder)
    assert [one["title"] for one in now["since"]["commits"]] == ["Instead"]
    assert [(one["sha"], one["title"]) for one in now["since"]["gone"]] == [(lost[1], "Lost too")]
    assert now["since"]["more_gone"] == 1


def test_a_commit_that_the_mirror_lacks_costs_the_list_only(remotes: standin.Remotes) -> None:
    commit = standin.git(remotes.tvm, "rev-parse", "HEAD")
    old = night(1, build(remotes.tvm, "0" * 40).identity())
    (now,) = since.describe_artifacts(
        {ArtifactSpec(str(remotes.tvm), "main"): build(remotes.tvm, commit)}, [old], fetched(remotes)
    )
    assert (now["since"]["commit"], now["since"]["commits"]) == ("0" * 40, [])


def test_a_night_on_a_newer_wheel_says_which_one_was_before(tmp_path: Path) -> None:
    lab = make_lab(tmp_path / "lab")
    older = put_artifact(lab.home.root / "shelf", "0.27.0")
    assert lab.home.night()["artifacts"][0]["since"] is None
    newer = put_artifact(lab.home.root / "shelf", "0.28.0")
    (told,) = lab.home.night()["artifacts"]
    assert told["key"] == newer.key
    first = lab.home.stamps()[0]
    assert told["since"] == {"stamp": first, "key": older.key, "version": "0.27.0", "commit": None}
