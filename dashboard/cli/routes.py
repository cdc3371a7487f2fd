"""`routes`: show the routes, test them, and send held messages."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from dashboard.cli.arguments import Verbs, add_passed_on_verb


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    """Add it to the command line."""
    add_passed_on_verb(verbs, "routes", _routes, "show, test and run the routes that deliver incident messages")


def _routes(rest: Sequence[str]) -> int:
    from tvmdash.notify import command  # the detector's imports cost the other verbs a third of a second

    return command.main(rest)
