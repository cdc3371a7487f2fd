"""The documented workflow, run step by step: a comment asks for a try, and one comment answers."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from dashboard.artifacts.artifact import LAST_USED, Artifact, library_sizes, python_tag, write_manifest
from dashboard.process import sandbox
from tests.dashboard import homes, standin
from tests.dashboard.homes import REPO, HomeForTests
from tests.github import server
from tests.github.server import ME, PULL, REPOSITORY, TOKEN, State
from tests.github.workflow import Runner, read_yaml

WORKFLOW = read_yaml((REPO / "docs" / "github-try.yml").read_text(encoding="utf-8"))
JOB = WORKFLOW["jobs"]["try"]
RUN = f"""{homes.BEGIN}
factor=$(cat "${{PYTHONPATH##*:}}/libtvm.so")
printf '{{"mlp": %s, "<b>@everyone": 1.0}}' "$factor" > "$2/raw.json"
{homes.says("run")}
"""
SPEED = {"beside_reference": "runs", "metrics": {"*": {"kind": "time", "unit": "ms", "direction": "lower"}}}


@pytest.fixture
def tmp_path(on_disk: Path) -> Path:
    return on_disk


@pytest.fixture
def github() -> Iterator[State]:
    with server.serve() as state:
        state.is_app = True
        yield state
        assert not state.violations


@pytest.fixture
def lab(tmp_path: Path) -> HomeForTests:
    """A home whose TVM is that of a GitHub on this disk, with both builds of its pull request at hand."""
    tvm = tmp_path / "github" / REPOSITORY
    tvm.mkdir(parents=True)
    standin.git(tvm, "init", "--quiet")
    commits = []
    for day, title in ((1, "Main"), (2, "Proposed")):
        standin.git(tvm, "commit", "--quiet", "--allow-empty", "-m", title, day=day)
        commits.append(standin.git(tvm, "rev-parse", "HEAD"))
    standin.git(tvm, "update-ref", f"refs/pull/{PULL}/head", commits[1])
    standin.git(tvm, "reset", "--quiet", "--hard", commits[0])
    remote = f"file://{tmp_path}/github/{REPOSITORY}"
    home = homes.make_home(
        tmp_path / "lab", Path("../shelf"), telemetry_rate=0, tvm_remote=remote, tvm_branch="main",
        github_may_ask=["Ada"], github_login=ME, env_name="epyc2", website_url="https://dash.example.org/",
    )  # fmt: skip
    folder = home.experiment("speed", run=RUN, config={"pairs": 5})
    homes.write(folder / "fields.json", SPEED)
    for commit, factor in zip(commits, ("1.0", "1.2"), strict=True):
        put_build(tmp_path / "lab" / "shelf", remote, commit, factor)
    return home


def put_build(shelf: Path, remote: str, commit: str, content: str) -> None:
    """An artifact that counts as a build of that commit; its library holds `content`."""
    folder = shelf / f"git-{commit[:12]}"
    site = folder / "site"
    site.mkdir(parents=True)
    (site / "libtvm.so").write_text(content)
    facts = {"remote": remote, "options": "{}", "python": python_tag(), "machine": platform.machine(), "tvm_ffi": "1"}
    facts |= {"committed_utc": "20260801T120000Z"}
    sizes = library_sizes(folder, (site,))
    write_manifest(Artifact(folder.name, "git", "0.1", commit, folder, (site,), (site,), facts, {}, sizes))
    (folder / LAST_USED).touch()


def ask(lab: HomeForTests, github: State, comment: str, *, login: str = "ada") -> Runner:
    """What the workflow does about that comment, in a repository of which nothing is checked out."""
    temp = lab.root / "runner"
    temp.mkdir(exist_ok=True)
    for path in temp.iterdir():
        path.unlink()  # as GitHub does before each job
    context = {
        "github.event.issue.number": str(PULL),
        "github.event.comment.user.login": login,
        "github.event.comment.body": comment,
        "github.server_url": "https://github.com",
        "github.repository": REPOSITORY,
        "github.run_id": "99",
        "github.token": TOKEN,
    }
    environment = {
        **{name: value for name, value in homes.environment().items() if name in ("PYTHONPATH", "HOME", "LANG")},
        "DASHBOARD_HOME": str(lab.path),
        "RUNNER_TEMP": str(temp),
        "GITHUB_REPOSITORY": REPOSITORY,
        "GITHUB_API_URL": github.url,
        "GITHUB_SERVER_URL": f"file://{lab.root.parent}/github",
    }
    runner = Runner(JOB, temp, context, environment)
    runner.run()
    return runner


def write_code_option(lab: HomeForTests) -> None:
    """The lab's own experiment is named by its config, as the workflow names no folders."""
    lab.configure(experiment_dirs=[str(lab.code / "experiments")])


def test_a_comment_gets_one_answer_that_is_edited_by_the_next_and_shows_no_token(
    lab: HomeForTests, github: State
) -> None:
    if sandbox.find_obstacle():
        pytest.skip(sandbox.find_obstacle())
    write_code_option(lab)
    github.add("<!-- tvm-dashboard try on epyc2 -->\nmine", login="mallory")
    first = ask(lab, github, "/tvm-try --until 2%\nand thanks")
    assert not any(first.codes.values()), first.logs
    (answer,) = github.of(ME)
    assert github.edits == 1, "what said that it begins was edited"
    assert "1 of 2 series changed." in answer
    assert re.search(r"\| speed \$\.mlp \| \+20(\.0)? % \|", answer), answer
    assert "requested by ada" in answer
    assert "[log of this run](https://github.com/apache/tvm/actions/runs/99)" in answer
    assert re.search(r"\[all numbers\]\(https://dash\.example\.org/tries/\d{8}T\d{6}Z\.html\)", answer)
    assert "@everyone" not in answer, "nobody is called by the name of a series"
    second = ask(lab, github, "/tvm-try --until 2%")
    assert not any(second.codes.values()), second.logs
    assert len(github.of(ME)) == 1
    assert github.of("mallory") == ["<!-- tvm-dashboard try on epyc2 -->\nmine"]
    written = [path.read_text(errors="replace") for path in lab.root.rglob("*") if path.is_file()]
    assert not [text for text in (*first.logs.values(), *second.logs.values(), *written) if TOKEN in text]


def test_who_is_not_on_the_list_is_refused_before_anything_is_done(lab: HomeForTests, github: State) -> None:
    refused = ask(lab, github, "/tvm-try", login="mallory")
    assert refused.codes == {"check who asks, and for what": 77}
    assert "'mallory' is not allowed to request a try" in refused.logs["check who asks, and for what"]
    assert not github.calls


def test_what_is_no_request_starts_nothing_and_is_no_command(lab: HomeForTests, github: State) -> None:
    for comment in ('/tvm-try $(touch "$DASHBOARD_HOME/hacked")', '/tvm-try "; touch hacked; "'):
        done = ask(lab, github, comment)
        assert done.codes == {"check who asks, and for what": 2}
        assert "/tvm-try [COMMIT]" in done.logs["check who asks, and for what"]
    assert not list(lab.root.rglob("*hacked*"))
    assert not github.calls


def test_where_nothing_could_be_measured_the_answer_says_so(lab: HomeForTests, github: State) -> None:
    done = ask(lab, github, "/tvm-try --experiments unknown")
    assert done.codes["build and measure"] == 2
    assert done.codes["answer"] == 0
    (answer,) = github.of(ME)
    assert "No result from epyc2" in answer


def test_the_workflow_has_no_more_leave_than_it_needs_and_no_expression_in_a_command() -> None:
    assert WORKFLOW["permissions"] == {}
    assert JOB["permissions"] == {"pull-requests": "write"}
    assert WORKFLOW["on"] == {"issue_comment": {"types": ["created"]}}
    assert JOB["concurrency"]["group"] == "tvm-try-${{ github.event.issue.number }}"
    assert "self-hosted" in JOB["runs-on"]
    scripts = [step["run"] for step in JOB["steps"]]
    assert not [script for script in scripts if "${{" in script]
    assert not [step for step in JOB["steps"] if "uses" in step], "nothing of a pull request is checked out"
    assert JOB["steps"][2]["run"].startswith('echo "::stop-commands::'), "what a candidate prints is no command"
    with_token = [step["name"] for step in JOB["steps"] if "GITHUB_TOKEN" in step.get("env", {})]
    assert with_token == ["say that it begins", "answer"], "what builds and measures has no token"
    assert "GITHUB_TOKEN" not in JOB["env"]
