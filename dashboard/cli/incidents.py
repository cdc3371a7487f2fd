"""`incidents`, `annotate`, `explain`: what people do with incidents, nights and commits."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from dashboard.cli.arguments import Verbs, home_verb, passed_on


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    """Add them to the command line."""
    passed_on(verbs, "incidents", _incidents, "list, show, acknowledge, close, silence incidents of a home")
    passed_on(verbs, "annotate", _annotate, "words for nights and commits of a home; known breaks")
    explain = home_verb(verbs, "explain", _explain, "make an incident's decision again and say why", code=False)
    explain.add_argument("incident", metavar="INCIDENT", help="its ID, or the beginning of it")


def _incidents(rest: Sequence[str]) -> int:
    from tvmdash.incidents import command  # the detector's imports cost the other verbs a third of a second

    return command.main(rest)


def _annotate(rest: Sequence[str]) -> int:
    from tvmdash.incidents import annotations

    return annotations.main(rest)


def _explain(arguments: argparse.Namespace) -> int:
    return _incidents([str(arguments.home), "explain", arguments.incident])
