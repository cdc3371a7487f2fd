"""`serve`: serve the home's website."""

from __future__ import annotations

import argparse

from dashboard.cli.arguments import OK_CODE, Verbs, add_home_verb, find_home


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    """Add it to the command line."""
    serve = add_home_verb(verbs, "serve", _serve, "serve the home's website to a browser", code=False)
    serve.add_argument("--port", type=int, default=0, help="port (default: 0, any free port)")
    serve.add_argument(
        "--bind", default="127.0.0.1", metavar="ADDRESS", help="address to listen on (default: this machine only)"
    )
    serve.add_argument(
        "--name", action="append", default=[], help="additional host name that browsers use for this server"
    )


def _serve(arguments: argparse.Namespace) -> int:
    from dashboard.report import site_server

    site_server.serve(find_home(arguments), arguments.bind, arguments.port, arguments.name)
    return OK_CODE
