"""A session of measuring: in which order, on which artifacts, that one that fails is not tried again."""

from __future__ import annotations

import math
import os
import signal
from pathlib import Path

import pytest

from dashboard.artifacts import artifact_store
from dashboard.artifacts.artifact import Artifact, ArtifactSpec
from dashboard.cli.arguments import interrupt
from dashboard.plan.job import CodeFolders
from dashboard.plan.plan import make_plan
from dashboard.trials.rounds import MeasuringError, MeasuringRequest, Round, RoundState, TvmOfNight
from dashboard.trials.session import MeasuringSession
from dashboard.trials.workspace import MeasuringWorkspace, open_workspace
from tests.dashboard.remeasure_homes import NAME, Lab, make_lab, past, point, put_artifact
from tvmdash.common.files import trees

OLD, NEW = ArtifactSpec("pypi", "0.27.0"), ArtifactSpec("pypi", "0.28.0")


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """A lab with 0.27.0 and 0.28.0."""
    made = make_lab(tmp_path / "lab")
    for version in ("0.27.0", "0.28.0"):
        put_artifact(made.home.root / "shelf", version)
    return made


def session_of(lab: Lab, budget_s: float = math.inf) -> MeasuringSession:
    home = lab.home.home
    code = CodeFolders(lab.home.code / "experiments", lab.home.code / "subsystem")
    folder = lab.home.root / "scratch"
    folder.mkdir()
    workspace = MeasuringWorkspace(home, "20261122T031500Z", make_plan(home, code, seed=1), folder, None)
    return MeasuringSession(workspace, MeasuringRequest(budget_s=budget_s, rebuild=False))


def versions(lab: Lab) -> list[str]:
    """What was measured on, run by run."""
    return [run["build"].split("-")[1] for run in lab.runs()]


def break_tvm(lab: Lab, version: str) -> None:
    lab.change(broken=[path.name for path in (lab.home.root / "shelf").glob(f"wheel-{version}*")])


def test_the_order_alternates_and_the_answers_keep_that_of_the_request(lab: Lab) -> None:
    with session_of(lab) as session:
        outcomes = [session.measure(Round(NAME, (OLD, NEW), (point("mlp"),), number)) for number in range(2)]
    assert versions(lab) == ["0.27.0", "0.28.0", "0.28.0", "0.27.0"]
    assert [[run.artifact.version for run in outcome.runs] for outcome in outcomes] == [["0.27.0", "0.28.0"]] * 2
    assert all(len(run.values) == 1 for outcome in outcomes for run in outcome.runs), "only the point asked for"


def test_an_experiment_is_given_fewer_minutes_than_the_budget_has_left(lab: Lab) -> None:
    with session_of(lab, budget_s=300) as session:
        session.measure(Round(NAME, (OLD,)))
    (run,) = lab.runs()
    assert 4 < run["minutes"] < 5


def test_an_experiment_that_failed_on_a_tvm_is_not_run_on_it_again(lab: Lab) -> None:
    break_tvm(lab, "0.28.0")
    with session_of(lab) as session:
        artifact = session.lease(session.finder.find("pypi:0.28.0")).artifact
        outcomes = [session.measure(Round(NAME, (artifact,))) for _ in range(2)]
        assert session.measure(Round(NAME, (OLD,))).is_measured
    assert versions(lab) == ["0.28.0", "0.27.0"]
    assert [outcome.state for outcome in outcomes] == [RoundState.FAILED] * 2
    assert outcomes[1].error == outcomes[0].error
    with pytest.raises(MeasuringError, match="run: "):
        outcomes[1].raise_error()


def test_the_outcome_names_the_tvm_that_failed(lab: Lab) -> None:
    break_tvm(lab, "0.28.0")
    with session_of(lab) as session:
        outcome = session.measure(Round(NAME, (OLD, NEW)))
        unknown = session.measure(Round(NAME, (OLD, ArtifactSpec("pypi", "0.30.0"))))
    assert (outcome.state, outcome.at, outcome.runs) == (RoundState.FAILED, 1, ())
    assert str(outcome.artifact).startswith("wheel-0.28.0")
    assert (unknown.state, unknown.at, unknown.artifact) == (RoundState.UNBUILT, 1, None)
    assert "no tested TVM" in unknown.error


def test_a_tvm_is_kept_from_removal_until_a_round_asks_for_another(lab: Lab) -> None:
    shelf = lab.home.root / "shelf"
    with session_of(lab) as session:
        first = session.measure(Round(NAME, (OLD,)))
        assert first.artifact not in artifact_store.prune(shelf, 0, [key_of(shelf, "0.28.0")]).removed
        assert session.measure(Round(NAME, (NEW,))).is_measured
        assert artifact_store.prune(shelf, 0, ()).removed == (first.artifact,)
    assert artifact_store.prune(shelf, 0, ()).removed, "nothing is kept after the session"


def key_of(shelf: Path, version: str) -> str:
    return next(path.name for path in shelf.glob(f"wheel-{version}*"))


def test_two_experiments_of_a_night_on_two_tvms_are_each_measured_on_their_own(lab: Lab) -> None:
    other = "speed2"
    lab.home.experiment(other, run=(lab.home.code / "experiments" / NAME / "run.sh").read_text())
    artifacts: list[Artifact] = [*artifact_store.artifacts_in(lab.home.root / "shelf")]
    for name, artifact in zip((NAME, other), sorted(artifacts, key=lambda artifact: artifact.version), strict=True):
        past(lab, 1, artifact, name=name)
    (stamp,) = lab.home.home.data_stamps(NAME)
    with session_of(lab) as session:
        rounds = [Round(name, (TvmOfNight(stamp),), needs_values=False) for name in (NAME, other)]
        keys = [session.measure(asked).artifact for asked in rounds]
    assert keys == sorted(artifact.key for artifact in artifacts)


def test_a_signal_while_a_workspace_is_removed_is_not_lost(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    gone: list[Path] = []

    def remove(folder: Path) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        gone.append(folder)

    code = CodeFolders(lab.home.code / "experiments", lab.home.code / "subsystem")
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt), open_workspace(lab.home.home, code, seed=1):
            monkeypatch.setattr(trees, "remove", remove)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert len(gone) == 1, "it is removed all the same"
