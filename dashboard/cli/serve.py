"""`serve`: the home's website in a browser of this machine."""

from __future__ import annotations

import argparse

from dashboard.cli.arguments import OK_CODE, Verbs, add_home_verb, find_home


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    """Add it to the command line."""
    serve = add_home_verb(verbs, "serve", _serve, "show the home's website in a browser of this machine", code=False)
    serve.add_argument("--port", type=int, default=0, help="0, the default, takes a free one")
    serve.add_argument("--bind", default="127.0.0.1", metavar="ADDRESS", help="by default only this machine")
    serve.add_argument("--name", action="append", default=[], help="a name that readers use, beside this machine's own")


def _serve(arguments: argparse.Namespace) -> int:
    from dashboard.report import site_server

    site_server.serve(find_home(arguments), arguments.bind, arguments.port, arguments.name)
    return OK_CODE
