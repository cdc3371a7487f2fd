"""The one comment that answers in a pull request: written once, found again by a hidden mark, edited in place."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass

from tvmdash import common
from tvmdash.common.github_api import Comment, GitHub, GitHubBusyError, GitHubRefusedError, PullRequest
from tvmdash.text import cut_lines, escape_markdown
from tvmdash.trials.text import format_markdown
from tvmdash.trials.trial import Trial

MOST_CHARS = 60_000
"""The limit of a comment. GitHub takes 65,536."""
_ATTEMPTS, _FIRST_PAUSE_S, _MOST_PAUSE_S = 5, 1.0, 120.0
_GONE = 404


@dataclass(frozen=True)
class Answered:
    """The comment as it stands now, and whether it is a new one."""

    comment: Comment
    is_new: bool


def make_mark(machine: str) -> str:
    """Return the beginning of this machine's comment, which GitHub does not show."""
    return f"<!-- tvm-dashboard try on {re.sub(r'[^A-Za-z0-9._]+', '-', machine).strip('-') or 'a machine'} -->"


def answer(github: GitHub, pull: PullRequest, machine: str, text: str, *, login: str = "") -> Answered:
    """Write the answer of this machine, or put `text` in the place of the one that it wrote earlier.

    Its own is what begins with its mark and was written by `login`, by default the token's owner: anybody can write
    the mark. While GitHub is busy, it is asked again. What is there is looked up before each attempt, so that nothing
    is said twice after a failure whose outcome is not known. GitHubError where it fails for good.
    """
    mark = make_mark(machine)
    body = f"{mark}\n{cut_lines(text, MOST_CHARS - len(mark) - 1)}"
    pause_s = _FIRST_PAUSE_S
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            login = login or github.get_login()
            return _write(github, pull, _find_own(github, pull, mark, login), body)
        except GitHubBusyError as error:
            wait_s = max(pause_s, error.wait_s)
            if attempt == _ATTEMPTS or wait_s > _MOST_PAUSE_S:
                raise
        time.sleep(wait_s)
        pause_s *= 2
    raise AssertionError


def _find_own(github: GitHub, pull: PullRequest, mark: str, login: str) -> Comment | None:
    for comment in github.list_comments(pull):
        if comment.body.startswith(mark) and comment.author.casefold() == login.casefold():
            return comment
    return None


def _write(github: GitHub, pull: PullRequest, own: Comment | None, body: str) -> Answered:
    if own is None:
        return Answered(github.add_comment(pull, body), is_new=True)
    try:
        return Answered(github.edit_comment(pull, own, body), is_new=False)
    except GitHubRefusedError as error:
        if error.status != _GONE:
            raise
    return Answered(github.add_comment(pull, body), is_new=True)  # somebody removed it meanwhile


@dataclass(frozen=True)
class Circumstances:
    """The machine of a try, and who asked for it; the addresses are empty where there are none."""

    machine: str
    asked_by: str = ""
    run_url: str = ""
    site_url: str = ""


def format_begun(where: Circumstances) -> str:
    text = f"Building TVM with this pull request and measuring it on {escape_markdown(where.machine)}."
    return _join(where, f"{text} This comment will be updated with the result.")


def format_result(done: Trial, where: Circumstances) -> str:
    text = f"On {escape_markdown(where.machine)}:\n\n{format_markdown(done).strip()}"
    page = f"tries/{done.stamp}.html" if common.is_stamp(done.stamp) else ""
    return _join(where, text, page)


def format_nothing(where: Circumstances) -> str:
    text = f"No result from {escape_markdown(where.machine)}: TVM could not be built or measured."
    return _join(where, f"{text} See the log of the run for the reason." if where.run_url else text)


def _join(where: Circumstances, text: str, page: str = "") -> str:
    ends = " · ".join(_list_ends(where, page))
    return f"{text}\n\n{ends}\n" if ends else f"{text}\n"


def _list_ends(where: Circumstances, page: str) -> Iterator[str]:
    """page: where the website has the result once it is published again."""
    site = where.site_url.rstrip("/")
    if site and page:
        yield f"[all numbers]({site}/{page}) (once the website is published again)"
    elif site:
        yield f"[dashboard]({site}/)"
    if where.run_url:
        yield f"[log of this run]({where.run_url})"
    if where.asked_by:
        yield f"requested by {escape_markdown(where.asked_by)}"
