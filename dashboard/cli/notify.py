"""`notify --check`: a test message to Slack."""

from __future__ import annotations

import argparse

from dashboard.cli.arguments import Verbs, add_home_verb


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    """Add it to the command line."""
    notify = add_home_verb(verbs, "notify", _notify, "try Slack", code=False)
    notify.add_argument(
        "--check", action="store_true", required=True, help="send a test message to Slack and report what is wrong"
    )


def _notify(arguments: argparse.Namespace) -> int:
    from tvmdash.notify import channel  # only this verb of the dashboard knows Slack

    return channel.main(["check", str(arguments.home)])
