"""The route of kind `github`: an issue for each incident, brought up to date in place and closed with it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from tvmdash.common import github_api
from tvmdash.common.github_api import GitHub, Issue, PullRequest, open_github
from tvmdash.incidents.ledger import FALSE_ALARM, SETTLED, Incident, iso_of
from tvmdash.notify import text
from tvmdash.notify.config import Route
from tvmdash.notify.errors import BusyError, IncompleteError, RefusedError
from tvmdash.notify.message import Message, Occasion
from tvmdash.notify.senders import Sender
from tvmdash.text import cut_lines, elide

_MOST_CHARS, _TITLE = 60_000, 250
"""Of a body, of which GitHub takes 65,536, and of a title, of which it takes 256."""
_GONE = frozenset({301, 404, 410})
"""Statuses of an issue that was deleted or moved."""


@dataclass(frozen=True)
class GitHubSender(Sender):
    """A repository's issues. What was asked twice is there once: each issue and comment is looked for by its mark."""

    github: GitHub
    route: Route

    def send(self, message: Message, limit_s: float, remote: str, *, again: bool = False) -> str:
        """Open the incident's issue, or bring the issue of number `remote` up to date; its number."""
        try:
            return self._send(message, remote)
        except github_api.GitHubBusyError as error:
            raise BusyError(str(error), wait_s=error.wait_s) from None
        except github_api.GitHubError as error:
            raise RefusedError(str(error)) from None

    def _send(self, message: Message, remote: str) -> str:
        if message.event is Occasion.TEST:
            number = self._find_or_open(message).number
            self.github.edit_issue(self.route.repository, number, state="closed", state_reason="not_planned")
            return str(number)
        if message.event in (Occasion.OPENED, Occasion.QUIET):
            return str(self._find_or_open(message).number)
        if remote:
            self._update(message, int(remote))
        return remote

    def _find_or_open(self, message: Message) -> Issue:
        repository, mark = self.route.repository, make_mark(message.id)
        for issue in self.github.list_issues(repository, iso_of(message.night)):
            if issue.body.startswith(mark):
                return issue
        return self.github.open_issue(repository, _title(message), make_body(message), self.route.labels)

    def _update(self, message: Message, number: int) -> None:
        """Edit it, which nobody is told of; what somebody should know is a comment as well."""
        repository, incident = self.route.repository, message.incident
        try:
            if message.people or not message.is_minor:
                self._comment(message, PullRequest(repository, number))
            if incident is None:
                self.github.edit_issue(repository, number, state="closed", state_reason="completed")
                return
            state = make_state(message, incident)
            self.github.edit_issue(repository, number, title=_title(message), body=make_body(message), **state)
        except github_api.GitHubRefusedError as error:
            if error.status not in _GONE:
                raise
            subject = incident.id if incident else message.title
            raise IncompleteError(
                f"issue {number} of {repository} no longer exists; {subject} is not reported there"
            ) from None

    def _comment(self, message: Message, issue: PullRequest) -> None:
        mark = make_mark(message.id)
        if not any(comment.body.startswith(mark) for comment in self.github.list_comments(issue)):
            news = text.format_markdown(message.items, cc=message.people)
            self.github.add_comment(issue, f"{mark}\n{cut_lines(news, _MOST_CHARS)}")


def open_issues(route: Route, home: Path) -> GitHubSender:
    """The repository, with the token; DashboardError where there is no good one."""
    return GitHubSender(open_github(route.secret_file, home), route)


def format_address(route: Route, number: str) -> str:
    return f"{github_api.find_site()}/{route.repository}/issues/{number}"


def make_mark(identity: str) -> str:
    """Return the first line of an issue or comment, by which it is found again; GitHub does not show it."""
    return f"<!-- tvm-dashboard {identity} -->"


def make_body(message: Message) -> str:
    """An issue's text: the incident as it is now. An edit pings nobody, whatever stands in it."""
    items = message.items
    if message.incident is not None and message.first:
        now = text.describe_new(message.incident, "", message.home)
        items = (replace(now, address=message.items[0].address),)
    body = text.format_markdown(items, cc=message.people, end=text.list_end(message))
    return f"{make_mark(message.first or message.id)}\n{cut_lines(body, _MOST_CHARS)}"


def make_state(message: Message, incident: Incident) -> dict[str, str]:
    """Return the fields that open or close the issue; none where people decide that."""
    if incident.state in SETTLED:
        return {"state": "closed", "state_reason": "not_planned" if incident.state == FALSE_ALARM else "completed"}
    is_again = len(incident.changes) > 1 and incident.changes[-2].state in SETTLED and not message.is_minor
    return {"state": "open"} if is_again else {}


def _title(message: Message) -> str:
    return elide(message.title, _TITLE)
