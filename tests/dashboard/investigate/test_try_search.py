"""The commit behind a try's regression, searched for when nothing else is to be measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dashboard.artifacts.artifact import Artifact, library_sizes, write_manifest
from dashboard.artifacts.build_context import BuildContext
from dashboard.artifacts.git.mirror import Mirror
from dashboard.artifacts.locks import Deadline
from dashboard.cli.main import main
from dashboard.investigate.tries.idle import plan_search
from dashboard.plan.home_config import read_home_config
from tests.dashboard import homes, standin
from tests.dashboard import remeasure_homes as labs
from tests.dashboard.remeasure_homes import NAME, Lab
from tvmdash import structured
from tvmdash.contracts.bisection import Suspect
from tvmdash.contracts.tries import CommitSearch, SearchState, TriedSeries, TriedTvm, Try, TryRequest, TryState
from tvmdash.dashboard_info import Home
from tvmdash.stats.pooled import Change
from tvmdash.tries import files, text


def put_build(lab: Lab, remote: Path, commit: str) -> Artifact:
    """A build of that commit, as far as the store is concerned."""
    wheel = labs.put_artifact(lab.home.root / "shelf", f"0.28.dev{int(commit[:6], 16)}")
    key = f"git-{commit[:12]}"
    path = wheel.path.rename(wheel.path.with_name(key))
    places = (path / "site",)
    facts = {**wheel.facts, "remote": str(remote), "options": "{}", "committed_utc": "20260801T120000Z"}
    sizes = library_sizes(path, places)
    made = Artifact(key, "git", wheel.version, commit, path, places, places, facts, {}, sizes)
    write_manifest(made)
    return made


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """A lab with builds of two commits, the second of which is 10 % slower (`new` and `old` in its state)."""
    remotes = standin.make(tmp_path / "remotes")
    commits = [standin.git(remotes.tvm, "rev-parse", "HEAD"), remotes.commit("Spin")]
    made = labs.make_lab_for_tries(tmp_path / "lab", pairs=10)
    made.home.configure(tvm_remote=str(remotes.tvm), tvm_branch="main", bisect_when_idle=True)
    old, new = (put_build(made, remotes.tvm, commit) for commit in commits)
    made.change(slow={new.key: {"mlp": 1.1}}, new=new.key, old=old.key)
    config = read_home_config(made.home.home)
    Mirror.of(config.artifacts, str(remotes.tvm)).fetch(BuildContext(config.artifacts, tmp_path, Deadline(60)))
    return made


def read_search(lab: Lab) -> CommitSearch:
    """That of the only try."""
    (item,) = files.read_all(lab.home.home)
    assert item.result is not None
    assert item.result.search is not None
    return item.result.search


def test_the_commit_is_searched_for_in_idle_time_and_gives_way_to_tries_and_nights(lab: Lab) -> None:
    home = lab.home.home
    request = TryRequest(lab.state["new"], "ada", "20261121T031500Z", lab.state["old"], until=0.02, rebuild=False)
    files.add(home, request)
    process = lab.home.start("work", verb="tries")
    with homes.killed_at_end(process):
        homes.wait_for(lambda: any((home.root / "results").glob("bisections/*.jsonl")), "the search")
        absent = files.add(home, replace(request, candidate="pypi:0.29.0"))
        homes.wait_for(lambda: all(item.request and item.request.failed for item in files.list_requests(home)), absent)
        assert read_search(lab).state is SearchState.WAITING
        night = lab.home.run()
        assert night.code == 0, night.output
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 1, output
    search = read_search(lab)
    assert (search.state, [suspect.title for suspect in search.suspects]) == (SearchState.ANSWERED, ["Spin"])
    assert (home.root / search.file).is_file()
    (done,) = files.read_all(home)
    assert done.result is not None
    told = text.format_table(done.result)
    assert "speed $.mlp became worse with " in told
    assert '"Spin" by Ada, 2026-08-01 (99.9 % sure; results/bisections/speed-' in told


# Pure parts

SLOWER = Change(0.1, 0.09, 0.11, 0.01, 0.02, 16, real=True)
CLEARER = Change(0.05, 0.049, 0.051, 0.001, 0.002, 16, real=True)
FASTER = Change(-0.5, -0.51, -0.49, 0.001, 0.02, 16, real=True)
SIDES = (TriedTvm("git:pull/7", "git-new", "0.28"), TriedTvm("git:main", "git-old", "0.28"))


def build_of(**facts: str) -> Artifact:
    return Artifact("git-x", "git", "0.28", "a" * 40, Path(), (), (), {"remote": "r", "options": "{}", **facts}, {}, {})


def try_of(*changes: Change, state: TryState = TryState.DONE) -> Try:
    series = tuple(
        TriedSeries(str(at), NAME, "run_time", {}, change=change, name=f"s{at}") for at, change in enumerate(changes)
    )
    return Try("20261121T000000Z", state, *SIDES, 0.01, "vm (AMD)", {NAME: "f"}, series=series)


def test_the_clearest_regression_is_searched_for_and_only_where_commits_lie_between() -> None:
    done, build = try_of(SLOWER, CLEARER, FASTER), build_of()
    assert plan_search(done, build, build) == CommitSearch(NAME, "1")
    assert plan_search(try_of(FASTER, replace(SLOWER, real=False)), build, build) is None
    assert plan_search(try_of(SLOWER, state=TryState.INTERRUPTED), build, build) is None
    assert plan_search(done, build, build_of(remote="fork")) is None
    assert plan_search(done, build, replace(build, provider="wheel")) is None


def test_what_is_known_of_the_commit_is_told() -> None:
    two = (Suspect("a" * 40, "One", "Ada", "2026-08-01"), Suspect("b" * 40, "Two", "Ada", "2026-08-02"))
    for search, told, short in (
        ({"state": SearchState.WAITING}, "The commit that made s0 worse will be bisected when", "; to be bisected"),
        ({"state": SearchState.FAILED, "error": "gone"}, "cannot be bisected: gone", ""),
        ({"state": SearchState.NO_STEP}, "Bisecting found no step in s0.", ""),
        (
            {"state": SearchState.ANSWERED, "suspects": two, "probability": 0.96, "file": "x.json"},
            f"s0 became worse with one of 2: {two[0].text} and {two[1].text} (96 % sure; x.json).",
            "; it was one of 2 commits",
        ),
    ):
        done = replace(try_of(SLOWER), search=CommitSearch(NAME, "0", **search))
        assert told in text.format_table(done)
        assert text.summarize(done) == f"1 of 1 changed: s0 +10.0 % slower{short}"


def test_a_search_can_be_cancelled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = replace(try_of(SLOWER), search=CommitSearch(NAME, "0"))
    home = Home(tmp_path)
    home.nights.mkdir(parents=True)
    homes.write(home.tries / f"{done.stamp}.json", structured.to_json(done))
    assert main(["tries", str(tmp_path), "cancel", done.stamp]) == 0
    assert "will not be bisected" in capsys.readouterr().out
    assert [item.result for item in files.read_all(home)] == [replace(done, search=None)]
