"""The commands about incidents and the messages on them; each passes its arguments on to the library."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from dashboard.cli.arguments import Verbs, add_home_verb, add_passed_on_verb


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    notify = add_home_verb(verbs, "notify", _notify, "try Slack", code=False)
    notify.add_argument(
        "--check", action="store_true", required=True, help="send a test message to Slack and report what is wrong"
    )
    add_passed_on_verb(verbs, "routes", _routes, "show, test and run the routes that deliver incident messages")
    add_passed_on_verb(verbs, "incidents", _incidents, "list, show, acknowledge, close or silence incidents")
    add_passed_on_verb(verbs, "annotate", _annotate, "annotate nights and commits; mark known breaks")
    explain = add_home_verb(
        verbs, "explain", _explain, "replay the decision behind an incident and explain it", code=False
    )
    explain.add_argument("incident", metavar="INCIDENT", help="incident ID or a prefix of it")


def _incidents(rest: Sequence[str]) -> int:
    from tvmdash.incidents import command  # the detector's imports cost the other verbs a third of a second

    return command.main(rest)


def _annotate(rest: Sequence[str]) -> int:
    from tvmdash.incidents import annotations

    return annotations.main(rest)


def _explain(arguments: argparse.Namespace) -> int:
    return _incidents([str(arguments.home), "explain", arguments.incident])


def _notify(arguments: argparse.Namespace) -> int:
    from tvmdash.notify import channel  # only this verb of the dashboard knows Slack

    return channel.main(["check", str(arguments.home)])


def _routes(rest: Sequence[str]) -> int:
    from tvmdash.notify import command  # the detector's imports cost the other verbs a third of a second

    return command.main(rest)
