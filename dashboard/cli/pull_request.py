"""`try-request` and `try-comment`: tries requested in pull requests on GitHub."""

from __future__ import annotations

import argparse
import logging
import os
import sys

from dashboard.cli.arguments import OK_CODE, REFUSED, SOME_FAILED, Verbs, add_home_verb, make_absolute
from dashboard.plan.home_config import read_home_config
from tvmdash.dashboard_info import Home

COMMENT_VARIABLE = "TVMDASH_COMMENT"
"""Holds the comment's text: nothing that somebody writes in a browser may stand in a command."""
_log = logging.getLogger("github")


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    request = add_home_verb(
        verbs, "try-request", _request, "check who requests a try in a pull request; print the arguments", code=False
    )
    request.add_argument("--asked-by", required=True, metavar="LOGIN", help="author of the comment")
    comment = add_home_verb(verbs, "try-comment", _comment, "post the result of a try to a pull request", code=False)
    what = comment.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "result", nargs="?", type=make_absolute, metavar="RESULT",
        help="file written by `try --json`; if it is missing, the comment says that there is no result",
    )  # fmt: skip
    what.add_argument("--begun", action="store_true", help="post that the build and measurement are in progress")
    comment.add_argument("--asked-by", default="", metavar="LOGIN", help="who requested the try")
    comment.add_argument("--run-url", default="", type=_parse_url, metavar="URL", help="URL of the log")
    for verb in (request, comment):
        repository = os.environ.get("GITHUB_REPOSITORY")
        verb.add_argument(
            "--repository", default=repository, required=not repository, metavar="OWNER/NAME",
            help="repository of the pull request (default: $GITHUB_REPOSITORY)",
        )  # fmt: skip
        verb.add_argument(
            "--pull", required=True, type=_parse_number, metavar="NUMBER", help="number of the pull request"
        )


def _parse_number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 0 < len(text) < 10 and int(text)):
        raise argparse.ArgumentTypeError(f"{text[:100]!r} is not a pull request number.")
    return int(text)


def _parse_url(text: str) -> str:
    from tvmdash.common.http_util import is_safe

    if text and (not is_safe(text) or any(sign in text for sign in "()<>[]\\\"'`")):
        raise argparse.ArgumentTypeError(f"{text[:200]!r} is not an https:// URL.")
    return text


def _request(arguments: argparse.Namespace) -> int:
    from dashboard.github import request
    from tvmdash.common.github_api import PullRequest

    home = Home(arguments.home)
    config = read_home_config(home)
    pull = PullRequest(arguments.repository, arguments.pull)
    try:
        request.check_asker(arguments.asked_by, config.github.may_ask, str(home.config_file))
        server = os.environ.get("GITHUB_SERVER_URL") or request.SERVER
        words = request.parse_comment(os.environ.get(COMMENT_VARIABLE, ""), pull, config.tvm, server=server)
    except request.NotAllowedError as error:
        print(error, file=sys.stderr)
        return REFUSED
    print("\n".join(words))
    return OK_CODE


def _comment(arguments: argparse.Namespace) -> int:
    from dashboard.github import answer
    from tvmdash.common.github_api import GitHubError, PullRequest, open_github
    from tvmdash.dashboard_info.home_secrets import find_secrets_of_home
    from tvmdash.redaction import redact

    home = Home(arguments.home)
    config = read_home_config(home)
    pull = PullRequest(arguments.repository, arguments.pull)
    github = open_github(config.github.token_file, home.root)
    known = (github.token, *find_secrets_of_home(home))
    text = redact(_format_text(arguments, config.env_name, config.website_url), known)
    try:
        answered = answer.answer(github, pull, config.env_name, text, login=config.github.login)
    except GitHubError as error:
        print(error, file=sys.stderr)
        return SOME_FAILED
    _log.info("%s %s", "Wrote" if answered.is_new else "Edited", answered.comment.url)
    return OK_CODE


def _format_text(arguments: argparse.Namespace, machine: str, site_url: str) -> str:
    from dashboard.github import answer
    from tvmdash.common import structured
    from tvmdash.trials.trial import Trial

    where = answer.Circumstances(machine, arguments.asked_by, arguments.run_url, site_url)
    if arguments.begun:
        return answer.format_begun(where)
    done = structured.read(Trial, arguments.result)
    return answer.format_result(done, where) if done else answer.format_nothing(where)
