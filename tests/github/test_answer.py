"""The one comment that answers in a pull request: whose it is, what becomes of failures, what stands in it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dashboard.artifacts.artifact import ArtifactSpec
from dashboard.github import answer, request
from dashboard.github.answer import make_mark
from tests.dashboard import homes
from tests.github import server
from tests.github.server import ME, PULL, REPOSITORY, TOKEN, Fault, State
from tvmdash.common.github_api import GitHub, GitHubBusyError, GitHubError, GitHubRefusedError, PullRequest, open_github
from tvmdash.errors import DashboardError
from tvmdash.text import escape_markdown

HERE = PullRequest(REPOSITORY, PULL)
MARK = make_mark("epyc2")


@pytest.fixture
def state() -> Iterator[State]:
    with server.serve() as made:
        yield made
        assert not made.violations


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer, "_FIRST_PAUSE_S", 0.01)


def put(state: State, text: str = "1 of 2 changed.", *, login: str = "") -> answer.Answered:
    return answer.answer(GitHub(state.url, TOKEN), HERE, "epyc2", text, login=login)


def test_the_first_answer_is_a_comment_and_the_second_takes_its_place(state: State) -> None:
    assert put(state).is_new
    assert not put(state, "None of 2 changed.").is_new
    assert state.of(ME) == [f"{MARK}\nNone of 2 changed."]


def test_each_machine_has_an_answer_of_its_own(state: State) -> None:
    put(state)
    answer.answer(GitHub(state.url, TOKEN), HERE, "a--> b", "Mine.")
    assert [text.splitlines()[0] for text in state.of(ME)] == [MARK, "<!-- tvm-dashboard try on a-b -->"]


@pytest.mark.parametrize("number", [-5, 0, True, 1.5, "7", None])
def test_a_comment_whose_number_is_none_is_refused(state: State, number: object) -> None:
    state.add("text")["id"] = number
    with pytest.raises(GitHubError, match="for id, which is not a positive number"):
        list(GitHub(state.url, TOKEN).list_comments(HERE))


def test_a_comment_of_somebody_elses_with_the_same_mark_is_left_alone(state: State) -> None:
    state.add(f"{MARK}\nforged", login="mallory")
    state.add(f"> {MARK}\nquoted by another workflow of the same account")
    assert put(state).is_new
    assert state.of("mallory") == [f"{MARK}\nforged"]
    assert state.edits == 0


def test_an_own_comment_is_found_behind_many_others(state: State) -> None:
    for number in range(60):
        state.add(f"{number}", login="grace")
    put(state)
    for number in range(60):
        state.add(f"{number}", login="grace")
    assert not put(state, "Again.").is_new
    assert state.of(ME) == [f"{MARK}\nAgain."]


@pytest.mark.parametrize(
    "fault",
    [
        Fault(500),
        Fault(502, taken=True),
        Fault(503),
        Fault(429, {"Retry-After": "0"}),
        Fault(403, {"Retry-After": "0"}, message="You have exceeded a secondary rate limit."),
        Fault(403, {"X-RateLimit-Remaining": "0"}, message="API rate limit exceeded"),
        Fault(0),
        Fault(0, taken=True),
    ],
    ids=str,
)
@pytest.mark.parametrize("at", [0, 1, 2])
def test_what_passes_is_tried_again_and_nothing_is_said_twice(state: State, fault: Fault, at: int) -> None:
    state.faults = [*([None] * at), fault]
    put(state)
    assert state.of(ME) == [f"{MARK}\n1 of 2 changed."]


@pytest.mark.parametrize(
    ("status", "remedy"),
    [(401, "create a new one"), (403, "pull-requests: write"), (404, "has no access to it"), (422, "told to fail")],
)
def test_a_refusal_is_told_with_its_remedy_and_not_repeated(state: State, status: int, remedy: str) -> None:
    state.faults = [Fault(status)]
    with pytest.raises(GitHubRefusedError, match=remedy):
        put(state, login=ME)
    assert len(state.calls) == 1


def test_it_gives_up_where_github_stays_busy_or_asks_for_more_patience_than_there_is(state: State) -> None:
    state.faults = [Fault(503)] * 9
    with pytest.raises(GitHubBusyError, match="503"):
        put(state)
    assert len(state.calls) == 5
    state.faults, state.calls = [Fault(429, {"Retry-After": "3600"})], []
    with pytest.raises(GitHubBusyError):
        put(state)
    assert len(state.calls) == 1


def test_a_workflows_own_token_cannot_say_whose_it_is_so_the_config_does(state: State) -> None:
    state.is_app = True
    with pytest.raises(GitHubRefusedError, match=r'"github_login": "github-actions\[bot\]"'):
        put(state)
    put(state, login=ME)
    assert not put(state, "Again.", login=ME.upper()).is_new


def test_a_comment_that_was_removed_between_the_look_and_the_edit_is_written_anew(state: State) -> None:
    put(state)
    state.faults = [None, None, Fault(404)]
    assert put(state, "Again.").is_new


def test_what_is_too_long_for_a_comment_loses_its_end_and_says_so(state: State) -> None:
    put(state, "head\n" + "| a row of the table |\n" * 9000)
    (text,) = state.of(ME)
    assert len(text) <= answer.MOST_CHARS
    assert text.startswith(f"{MARK}\nhead\n| a row")
    assert text.endswith("(Truncated: the text is too long.)\n")


@pytest.mark.parametrize("name", ["tvm", "a/b/c", "../x", "a/..", "a b/c", "-/x y"])
def test_what_is_no_repository_is_refused(name: str) -> None:
    with pytest.raises(DashboardError, match="OWNER/NAME"):
        PullRequest(name, 1)


def test_the_token_is_read_from_a_file_that_others_cannot_read_and_never_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)
    path = tmp_path / "token"
    with pytest.raises(DashboardError, match="No GitHub token found"):
        open_github(str(path), tmp_path / "home")
    path.write_text(f"{TOKEN}\n")
    path.chmod(0o644)
    with pytest.raises(DashboardError, match=r"other users can read the GitHub token \(mode 644\)") as caught:
        open_github(str(path), tmp_path / "home")
    path.chmod(0o600)
    opened = open_github(str(path), tmp_path / "home")
    assert opened.token == TOKEN
    assert TOKEN not in f"{opened} {caught.value}"
    with pytest.raises(DashboardError, match="is inside the home"):
        open_github(str(path), tmp_path)
    monkeypatch.setenv("GITHUB_API_URL", "http://example.org")
    with pytest.raises(DashboardError, match="https://"):
        open_github(str(path), tmp_path / "home")


def test_a_name_is_text_in_markdown_and_neither_link_mention_nor_markup() -> None:
    hostile = "<img src=x> [a](https://evil.example) @tvm-bot merge #123 `x` a|b\n# h &lt; www.evil.example"
    shown = escape_markdown(hostile)
    assert "\n" not in shown
    for active in ("<img", "[a]", "](", "https://", "@tvm", "#123", " `x", "a|b", " &lt;", "www.evil"):
        assert active not in shown.replace("\\<", "").replace("\\[", "").replace("\\]", "").replace("\\`", ""), active
    assert "\\<img src=x\\>" in shown


def test_a_command_that_cannot_reach_github_says_so_and_ends_with_1(tmp_path: Path, state: State) -> None:
    home = homes.make_home(tmp_path / "lab", Path("../shelf"))
    argv = [sys.executable, "-m", "dashboard", "try-comment", str(home.path), "--begun", "--pull", str(PULL)]
    environment = {**homes.environment(), "GITHUB_TOKEN": TOKEN, "GITHUB_API_URL": state.url}
    run = [*argv, "--repository", "nobody/nothing"]
    done = subprocess.run(run, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 1
    assert "GitHub answered 404 (Not Found)" in done.stderr
    assert TOKEN not in done.stdout + done.stderr
    refused = subprocess.run(
        [*run, "--run-url", "javascript:x"], env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert refused.returncode == 2


@pytest.mark.parametrize(
    ("comment", "words"),
    [
        ("/tvm-try", ["git:pull/7"]),
        (" /tvm-try\r\nplease", ["git:pull/7"]),
        ("/tvm-try 0123456789abcdef --fresh", ["git:0123456789abcdef", "--fresh"]),
        ("/tvm-try --against v0.20.0 --until 0.5%", ["git:pull/7", "--against", "git:v0.20.0", "--until", "0.5%"]),
        ("/tvm-try --experiments a b --budget 1h", ["git:pull/7", "--budget", "1h", "--experiments", "a", "b"]),
        ("/tvm-try --against pypi:0.26.0", ["git:pull/7", "--against", "pypi:0.26.0"]),
    ],
)
def test_the_words_of_a_comment_become_arguments(comment: str, words: list[str]) -> None:
    own = ArtifactSpec("https://github.com/Apache/TVM.git", "main")
    assert request.parse_comment(comment, HERE, own) == words
    other = ArtifactSpec("pypi", "latest")
    expected = [words[0].replace("git:", "https://github.com/apache/tvm@"), *words[1:]]
    assert request.parse_comment(comment, HERE, other) == expected


@pytest.mark.parametrize(
    "comment",
    [
        "",
        "try",
        "/tvm-try `touch hacked`",
        "/tvm-try ; touch hacked",
        "/tvm-try --against /srv/secret@main",
        "/tvm-try --against https://example.org/x@main",
        "/tvm-try --json /etc/passwd",
        "/tvm-try --experiments-dir /tmp",
        "/tvm-tryharder",
        "/tvm-try main",
        "/tvm-try --help",
    ],
)
def test_what_is_no_request_is_answered_with_what_could_be_written(comment: str) -> None:
    with pytest.raises(request.NotUnderstoodError, match=r"Usage: /tvm-try \[COMMIT\]"):
        request.parse_comment(comment, HERE, ArtifactSpec("pypi", "latest"))


def test_nobody_may_ask_by_default_and_else_who_is_on_the_list_however_it_is_written() -> None:
    request.check_asker("Ada", ["grace", "ada"], "config.json")
    for login in ("mallory", "ada-", "", "ada\nada", "ad"):
        with pytest.raises(request.NotAllowedError, match=r"\$\.github_may_ask in config\.json lists who is"):
            request.check_asker(login, ["ada"], "config.json")
    with pytest.raises(request.NotAllowedError, match=r"\$\.github_may_ask in config\.json is empty"):
        request.check_asker("ada", [], "config.json")
