"""Requests in comments of a pull request: who may ask, and the words as arguments of `try`."""

from __future__ import annotations

import argparse
import re
from collections.abc import Collection
from typing import NoReturn

from dashboard.artifacts.artifact import ArtifactSpec
from dashboard.artifacts.git.names import may_be_commit
from dashboard.artifacts.spec import GIT, VERSION
from dashboard.artifacts.wheel.source import PYPI, WHEEL_SIGN
from tvmdash.common.github_api import PullRequest
from tvmdash.errors import DashboardError

COMMAND = "/tvm-try"
SERVER = "https://github.com"
USAGE = f"{COMMAND} [COMMIT] [--against BASE] [--experiments NAME ...] [--until 1%] [--budget 2h] [--fresh]"
_WORD = re.compile(r"-{0,2}[A-Za-z0-9][A-Za-z0-9._:/+%-]{0,99}", re.ASCII)
"""No word can leave its place as an argument, name a file on this disk, or be a remote."""
_MOST_CHARS = 1000


class NotAllowedError(DashboardError):
    """The person who asks is not on the list."""


class NotUnderstoodError(DashboardError):
    """The comment asks for nothing that can be done."""


def check_asker(login: str, allowed: Collection[str], shown: str) -> None:
    """NotAllowedError where `login` is not among those who may ask; shown: the config that names them."""
    if login.casefold() in {name.casefold() for name in allowed}:
        return
    who = repr(login[:100])
    if not allowed:
        raise NotAllowedError(f"{who} is not allowed to request a try: $.github_may_ask in {shown} is empty.")
    raise NotAllowedError(f"{who} is not allowed to request a try; $.github_may_ask in {shown} lists who is.")


def parse_comment(text: str, pull: PullRequest, own: ArtifactSpec, *, server: str = SERVER) -> list[str]:
    """Parse a comment's first line to arguments of `try`; NotUnderstoodError where it makes no sense.

    What is tried is the pull request as it is when it is fetched, or the COMMIT that is named.
    """
    line = text.lstrip().partition("\n")[0].strip()[:_MOST_CHARS]
    words = line.split()
    if not words or words[0] != COMMAND:
        raise NotUnderstoodError(f"The comment does not start with {COMMAND}. Usage: {USAGE}.")
    for word in words[1:]:
        if not _WORD.fullmatch(word):
            raise NotUnderstoodError(f"unexpected argument {word[:100]!r}. Usage: {USAGE}.")
    asked = _Parser(prog=COMMAND, add_help=False, allow_abbrev=False).parse(words[1:])
    return [_name_candidate(asked.commit, pull, own, server), *_list_options(asked)]


class _Parser(argparse.ArgumentParser):
    def parse(self, words: list[str]) -> argparse.Namespace:
        self.add_argument("commit", nargs="?", default="")
        self.add_argument("--against", default="")
        self.add_argument("--experiments", nargs="+", default=[])
        self.add_argument("--until", default="")
        self.add_argument("--budget", default="")
        self.add_argument("--fresh", action="store_true")
        return self.parse_args(words)

    def error(self, message: str) -> NoReturn:
        """Raise where argparse would end the program."""
        raise NotUnderstoodError(f"{message}. Usage: {USAGE}.")


def _name_candidate(commit: str, pull: PullRequest, own: ArtifactSpec, server: str) -> str:
    if commit and not may_be_commit(commit):
        raise NotUnderstoodError(f"{commit[:100]!r} is not a commit ID (7 to 40 hexadecimal digits). Usage: {USAGE}.")
    revision = commit or f"pull/{pull.number}"
    remote = f"{server.rstrip('/')}/{pull.repository}"
    if own.remote.removesuffix(".git").casefold() == remote.casefold():
        return f"{GIT}:{revision}"
    return f"{remote}@{revision}"


def _list_options(asked: argparse.Namespace) -> list[str]:
    against = asked.against
    if against.startswith(WHEEL_SIGN) and not VERSION.fullmatch(against.removeprefix(WHEEL_SIGN)):
        raise NotUnderstoodError(
            f"{against[:100]!r}: only {WHEEL_SIGN}VERSION, of the home's own source, may be asked for."
        )
    if against and not against.startswith((f"{PYPI}:", f"{GIT}:", WHEEL_SIGN)):
        against = f"{GIT}:{against}"
    values = {"--against": against, "--until": asked.until, "--budget": asked.budget}
    words = [word for name, value in values.items() if value for word in (name, value)]
    words += ["--experiments", *asked.experiments] if asked.experiments else []
    return [*words, "--fresh"] if asked.fresh else words
