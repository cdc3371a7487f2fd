"""`work`: the worker of a host. It is started by a night on another machine (dashboard/hosts/bootstrap.sh)."""

from __future__ import annotations

import argparse

from dashboard.cli.arguments import OK_CODE, Verbs, make_absolute


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    work = verbs.add_parser(
        "work", help="measure on this host for a home on another machine (started by that home's night, not by hand)"
    )
    work.add_argument("folder", type=make_absolute, metavar="FOLDER")
    work.set_defaults(verb=_work)


def _work(arguments: argparse.Namespace) -> int:
    from dashboard.worker import worker  # the night's machinery; the other verbs start without it

    worker.work(arguments.folder)
    return OK_CODE
