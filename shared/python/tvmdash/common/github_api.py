"""GitHub's REST API for issues and for comments of pull requests; no error holds the token."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tvmdash.common import Json, http_util
from tvmdash.common.http_util import Answer, NoAnswerError
from tvmdash.common.secret_file import SecretFile
from tvmdash.errors import DashboardError
from tvmdash.text import elide

TOKEN_VARIABLE, URL_VARIABLE = "GITHUB_TOKEN", "GITHUB_API_URL"
DEFAULT_URL = "https://api.github.com"
DEFAULT_FILE = "~/.config/tvmdash/github_token"
_REPOSITORY = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}/[A-Za-z0-9_.-]{1,100}", re.ASCII)
_TOKEN = re.compile(r"[\x21-\x7e]{8,1024}")
_PAGE, _MOST_PAGES = 50, 200
_REQUEST_S = 20.0
_MAX_BYTES = 32 << 20
"""Limit of one answer: a page of comments of the greatest length."""
_REMEDIES = {
    401: "The token is no longer valid; create a new one.",
    403: 'The token has no write permission there (in a workflow, add "permissions: pull-requests: write", or issues: '
    "write).",
    404: "The repository, pull request or issue does not exist, or the token has no access to it.",
    410: "It was deleted, or issues are disabled in the repository.",
}


class GitHubError(DashboardError):
    """GitHub did not answer, or refused."""


class GitHubBusyError(GitHubError):
    """A later attempt may succeed, after `wait_s` seconds where GitHub says how long."""

    def __init__(self, text: str, wait_s: float = 0.0) -> None:
        super().__init__(text)
        self.wait_s = wait_s


class GitHubRefusedError(GitHubError):
    """A later attempt will not succeed; `status` is that of the answer."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


def is_repository(text: str) -> bool:
    """Return True where `text` is a well-formed OWNER/NAME."""
    return _REPOSITORY.fullmatch(text) is not None and ".." not in text


@dataclass(frozen=True)
class Comment:
    """A comment of a pull request."""

    id: int
    author: str
    body: str
    url: str


@dataclass(frozen=True)
class Issue:
    """An issue of a repository."""

    number: int
    body: str
    is_open: bool
    url: str


@dataclass(frozen=True)
class PullRequest:
    """A pull request, or an issue, of the repository `OWNER/NAME`."""

    repository: str
    number: int

    def __post_init__(self) -> None:
        if not is_repository(self.repository):
            raise DashboardError(
                f"--repository: {self.repository[:100]!r} is not of the form OWNER/NAME, e.g. apache/tvm."
            )

    @property
    def path(self) -> str:
        """Return the API's path of its comments; a pull request is an issue there."""
        return f"/repos/{self.repository}/issues/{self.number}/comments"


@dataclass(frozen=True)
class GitHub:
    """The API at `url`, authenticated by a token."""

    url: str
    token: str = field(repr=False)

    def get_login(self) -> str:
        """Return the login of the token's account."""
        try:
            value = self._call("GET", "/user")
        except GitHubRefusedError as error:
            if error.status != 403:
                raise
            text = "GitHub did not return the account of this token; it never does for a workflow's own token."
            raise GitHubRefusedError(f'{text} Set "github_login": "github-actions[bot]" in the config.', 403) from None
        return str(_get(value, "login"))

    def list_comments(self, pull: PullRequest) -> Iterator[Comment]:
        """Yield all comments of the pull request, oldest first."""
        for page in range(1, _MOST_PAGES + 1):
            values = self._call("GET", f"{pull.path}?per_page={_PAGE}&page={page}")
            if not isinstance(values, list):
                raise GitHubError("GitHub's list of comments is not a list.")
            yield from map(_parse_comment, values)
            if len(values) < _PAGE:
                return

    def add_comment(self, pull: PullRequest, body: str) -> Comment:
        return _parse_comment(self._call("POST", pull.path, {"body": body}))

    def edit_comment(self, pull: PullRequest, comment: Comment, body: str) -> Comment:
        """Replace the text of a comment and return it."""
        path = f"/repos/{pull.repository}/issues/comments/{comment.id}"
        return _parse_comment(self._call("PATCH", path, {"body": body}))

    def list_issues(self, repository: str, since: str) -> Iterator[Issue]:
        """Yield the issues and pull requests changed since that moment (ISO 8601), the newest ones first."""
        path = f"/repos/{repository}/issues?state=all&sort=created&direction=desc&since={quote(since)}"
        for page in range(1, _MOST_PAGES + 1):
            values = self._call("GET", f"{path}&per_page={_PAGE}&page={page}")
            if not isinstance(values, list):
                raise GitHubError("GitHub's list of issues is not a list.")
            yield from map(_parse_issue, values)
            if len(values) < _PAGE:
                return

    def open_issue(self, repository: str, title: str, body: str, labels: Sequence[str]) -> Issue:
        value = {"title": title, "body": body, **({"labels": list(labels)} if labels else {})}
        return _parse_issue(self._call("POST", f"/repos/{repository}/issues", value))

    def edit_issue(self, repository: str, number: int, **changes: str) -> Issue:
        """Change fields of an issue: `title`, `body`, `state` (open or closed), `state_reason`."""
        return _parse_issue(self._call("PATCH", f"/repos/{repository}/issues/{number}", changes))

    def _call(self, method: str, path: str, body: Json = None) -> Json:
        headers = {
            "Authorization": f"Bearer {self.token}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
            "User-Agent": "tvm-dashboard",
            **({} if body is None else {"Content-Type": "application/json"}),
        }
        content = b"" if body is None else json.dumps(body).encode()
        try:
            answer = http_util.send(method, f"{self.url}{path}", content, headers, _REQUEST_S, max_bytes=_MAX_BYTES)
        except NoAnswerError as error:
            raise GitHubBusyError(f"GitHub did not answer ({error.cause}).") from None
        if 200 <= answer.status < 300:
            return answer.parsed()
        raise _make_refusal(answer, f"{method} {path.partition('?')[0]}")


def open_github(token_file: str, home: Path) -> GitHub:
    """Return the API with the token of the environment, else of the file; DashboardError where there is no good one."""
    url = _find_url()
    # the token goes to this address
    if not http_util.is_safe(url):
        raise DashboardError(f"{URL_VARIABLE}: not an https:// URL. Unset it, or set it to the URL of the API.")
    path = home / Path(token_file).expanduser()
    token, origin = os.environ.get(TOKEN_VARIABLE, "").strip(), TOKEN_VARIABLE
    if not token:
        lines = SecretFile(path, "GitHub token", DEFAULT_FILE).read_lines(home) or []
        token, origin = next((line.strip() for line in lines if line.strip()), ""), str(path)
    if not token:
        raise DashboardError(f"No GitHub token found in {TOKEN_VARIABLE} or in {path} (github_token_file).")
    if not _TOKEN.fullmatch(token):
        raise DashboardError(f"{origin}: not a GitHub token. Copy the complete token again.")
    return GitHub(url, token)


def _make_refusal(answer: Answer, asked: str) -> GitHubError:
    value = answer.parsed()
    said = value.get("message") if isinstance(value, dict) else None
    text = f"{asked}: GitHub answered {answer.status}{f' ({elide(said, 200)})' if isinstance(said, str) else ''}."
    if answer.status >= 500 or answer.status == 429 or (answer.status == 403 and _is_limit(answer)):
        return GitHubBusyError(text, _parse_wait(answer.headers.get("retry-after", "")))
    return GitHubRefusedError(" ".join(filter(None, (text, _REMEDIES.get(answer.status)))), answer.status)


def _is_limit(answer: Answer) -> bool:
    # GitHub answers 403 to a client over its rate limit as well, told apart by these headers
    return "retry-after" in answer.headers or answer.headers.get("x-ratelimit-remaining") == "0"


def _parse_wait(text: str) -> float:
    return float(text) if text.isascii() and text.isdecimal() and len(text) < 6 else 0.0


def _parse_comment(value: Json) -> Comment:
    number, body = _get_number(value, "id"), _get(value, "body")
    user, url = _get(value, "user"), _get(value, "html_url")
    author = _get(user, "login") if user else "ghost"  # of an account that was deleted
    return Comment(number, str(author), str(body or ""), str(url))


def _parse_issue(value: Json) -> Issue:
    number, state = _get_number(value, "number"), _get(value, "state")
    return Issue(number, str(_get(value, "body") or ""), state == "open", str(_get(value, "html_url")))


def _get(value: Any, name: str) -> Any:
    if not isinstance(value, dict) or name not in value:
        raise GitHubError(f"GitHub's answer has no {name}. Does {URL_VARIABLE} point to its API?")
    return value[name]


def _get_number(value: Any, name: str) -> int:
    number = _get(value, name)
    if type(number) is not int or number <= 0:
        raise GitHubError(f"GitHub's answer has {number!r:.40} for {name}, which is not a positive number.")
    return number


def _find_url() -> str:
    return (os.environ.get(URL_VARIABLE) or DEFAULT_URL).rstrip("/")


def find_site() -> str:
    """Return the address for people: GitHub's, or that of an Enterprise server, whose API is below /api/v3."""
    url = _find_url()
    return "https://github.com" if url == DEFAULT_URL else url.removesuffix("/api/v3")
