"""Which TVM is the reference where nobody names one, with and without a package index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from dashboard.artifacts import artifact_store, reference
from dashboard.artifacts.artifact import Artifact, ArtifactError, ArtifactSpec
from dashboard.artifacts.provide import Provided, take
from dashboard.artifacts.reference import TonightsBuild
from dashboard.artifacts.wheel import wheel_provider
from tests.dashboard import remeasure_homes as labs
from tests.dashboard.package_index import HEALTHY, NOWHERE, make_index
from tvmdash.dashboard_info import COMPLETE, Night, Reference, ReferenceChoice

LATEST = ArtifactSpec("pypi", "latest")
REMOTE = "/somewhere/tvm"
BUILT = {"remote": REMOTE, "options": "{}", "toolchain": "gcc 12", "python": "cp311", "machine": "x86_64"}

# Releases


@pytest.mark.parametrize(
    ("version", "before"),
    [
        ("0.27.0", ["0.26.0", "0.25.0.post1", "0.25.0"]),
        ("0.27.0.post1", ["0.26.0", "0.25.0.post1", "0.25.0"]),
        ("0.28.0rc1", ["0.27.0.post1", "0.27.0", "0.26.0", "0.25.0.post1", "0.25.0"]),
        ("0.26", ["0.25.0.post1", "0.25.0"]),
        ("0.25.0", []),
    ],
)
def test_a_post_release_is_no_release_of_its_own(version: str, before: list[str]) -> None:
    listed = ["0.27.0", "0.25.0.post1", "0.26.0", "0.25.0", "0.27.0.post1"]
    assert wheel_provider.list_before(version, listed) == before


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    """A folder with 0.27.0 and 0.26.0 in it."""
    for version in ("0.27.0", "0.26.0"):
        labs.put_artifact(tmp_path / "shelf", version)
    return tmp_path / "shelf"


def tonight(shelf: Path, version: str = "0.27.0", nights: Sequence[Night] = ()) -> TonightsBuild:
    """A night on this release, which is at hand; the network may be used."""
    artifact = next(found for found in artifact_store.artifacts_in(shelf) if found.version == version)
    logs = shelf.parent / "logs"
    logs.mkdir(exist_ok=True)
    return TonightsBuild(artifact, LATEST, [], nights, shelf, logs, rebuild=True, timeout_s=300.0)


def use(monkeypatch: pytest.MonkeyPatch, variables: Mapping[str, str]) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


def test_of_releases_that_are_not_healthy_the_one_before_is_taken_and_that_is_said(
    shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    releases = {"0.9.0": "", "0.8.0": "raise OSError('undefined symbol: _ZN3tvm')", "0.7.0": HEALTHY}
    monkeypatch.setattr(wheel_provider, "KNOWN_GOOD_FFI", dict.fromkeys(releases, ("0.1.14",)))
    use(monkeypatch, make_index(shelf.parent / "index", releases))
    labs.put_artifact(shelf, "0.9.0")
    found = reference.find(tonight(shelf, "0.9.0"))
    assert found.provided
    with found.provided as provided:
        assert (provided.artifact.version, provided.is_new) == ("0.7.0", True)
    (note,) = found.notes
    assert note.startswith(
        "Could not obtain the reference TVM 0.8.0, so TVM 0.7.0 is used instead: apache-tvm 0.8.0: no"
    )
    assert "undefined symbol" in note
    assert list((shelf.parent / "logs").glob("health-0.7.0-*"))


@pytest.mark.parametrize(("sick", "tried", "taken"), [(2, 3, "0.6.0"), (3, 3, None)])
def test_of_sick_releases_three_are_tried(
    shelf: Path, monkeypatch: pytest.MonkeyPatch, sick: int, tried: int, taken: str | None
) -> None:
    releases = ["0.9.0", "0.8.0", "0.7.0", "0.6.0", "0.5.0", "0.4.0"]
    monkeypatch.setattr(wheel_provider, "KNOWN_GOOD_FFI", dict.fromkeys(releases, ("0.1.14",)))
    use(monkeypatch, make_index(shelf.parent / "index", dict.fromkeys(releases, "")))
    labs.put_artifact(shelf, "0.9.0")
    asked: list[str] = []

    def provide(spec: ArtifactSpec, *_of: object, **_with: object) -> Provided:
        asked.append(str(spec.branch))
        if len(asked) <= sick:
            raise ArtifactError("sick")
        return take(labs.put_artifact(shelf, asked[-1]).path)

    monkeypatch.setattr(reference, "provide", provide)
    found = reference.find(tonight(shelf, "0.9.0"))
    assert asked == releases[1 : 1 + tried]
    assert (found.provided and found.provided.artifact.version) == taken
    assert found.notes


def test_a_release_that_was_chosen_asks_no_index(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, NOWHERE)
    now = tonight(shelf).artifact
    kept = Reference(now.key, "wheel-0.26.0", "wheel", "0.26.0", None, ReferenceChoice.AUTO)
    asked = tonight(
        shelf, nights=[Night("20260101T000000Z", COMPLETE, artifacts=(now.identity(),), references=(kept,))]
    )
    found = reference.find(asked)
    assert found.provided
    with found.provided as provided:
        assert (provided.artifact.version, found.notes) == ("0.26.0", ())
    assert list(asked.log_folder.iterdir()) == []


def test_without_an_index_the_newest_release_at_hand_is_the_reference_and_that_is_said(
    shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, NOWHERE)
    found = reference.find(tonight(shelf))
    assert found.provided
    with found.provided as provided:
        assert provided.artifact.version == "0.26.0"
    (note,) = found.notes
    assert note.startswith(
        "Could not determine the release before TVM 0.27.0, so the newest older release on this "
        "machine is the reference: pip "
    )
    (alone,) = reference.find(tonight(shelf, "0.26.0")).notes
    assert alone.startswith(
        "Could not determine the release before TVM 0.26.0, so TVM is measured without a reference: pip index"
    )


def test_a_release_that_was_measured_since_a_regression_is_open_is_taken_last(
    shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, NOWHERE)
    labs.put_artifact(shelf, "0.28.0")
    before, since = (
        Night(stamp, COMPLETE, artifacts=({"provider": "wheel", "version": version},))
        for stamp, version in (("20260101T000000Z", "0.26.0"), ("20260102T000000Z", "0.27.0"))
    )
    for bad_since, expected in (("", "0.27.0"), (since.stamp, "0.26.0")):
        found = reference.find(replace(tonight(shelf, "0.28.0", [since, before]), bad_since=bad_since))
        assert found.provided
        with found.provided as provided:
            assert provided.artifact.version == expected


# Builds from source


def spec(branch: str) -> ArtifactSpec:
    return ArtifactSpec(REMOTE, branch)


def build(digit: str, **facts: str) -> Artifact:
    return Artifact(f"git-{digit}", "git", digit, digit * 40, Path(), (), (), {**BUILT, **facts}, {}, {})


def night_on(*taken: tuple[Artifact, str], references: Sequence[Reference] = ()) -> Night:
    """A night that took these builds, each for a branch."""
    entries = [{**artifact.identity(), "asked": [{"remote": REMOTE, "branch": branch}]} for artifact, branch in taken]
    return Night("20260101T000000Z", COMPLETE, artifacts=tuple(entries), references=tuple(references))


def test_a_build_of_another_branch_that_is_measured_as_well_is_no_build_before() -> None:
    nights = [night_on((build("2"), "main"), (build("9"), "next")), night_on((build("1"), "main"))]
    assert list(reference.list_builds_before(build("3"), spec("main"), [spec("next")], nights)) == ["git-2", "git-1"]
    assert list(reference.list_builds_before(build("8"), spec("next"), [spec("main")], nights)) == ["git-9"]
    assert list(reference.list_builds_before(build("8"), spec("new"), [spec("main"), spec("next")], nights)) == []


def test_the_last_build_before_an_open_regression_stays_the_reference(shelf: Path) -> None:
    good, bad, worse = build("1"), build("2"), build("3")
    nights = [replace(night_on((bad, "main")), stamp="20260102T000000Z"), night_on((good, "main"))]
    found = replace(tonight(shelf, nights=nights), artifact=worse, spec=spec("main"))
    for bad_since, expected in (("", [bad.key, good.key]), ("20260102T000000Z", [good.key, bad.key])):
        asked = replace(found, bad_since=bad_since)
        assert list(reference.list_builds_before(worse, asked.spec, [], asked.good_first)) == expected


@pytest.mark.parametrize("fact", ["remote", "options", "toolchain", "python", "machine"])
def test_a_build_that_was_made_otherwise_is_no_reference(fact: str) -> None:
    nights = [night_on((build("1", **{fact: "other"}), "main"))]
    assert list(reference.list_builds_before(build("2"), spec("main"), [], nights)) == []


def test_a_reference_outlasts_the_nights_that_are_looked_at() -> None:
    kept = Reference("git-2", "git-1", "git", "1", None, ReferenceChoice.AUTO)
    nights = [night_on((build("2"), "main"), references=[kept])]
    assert list(reference.list_builds_before(build("2"), spec("main"), [], nights)) == ["git-1"]
