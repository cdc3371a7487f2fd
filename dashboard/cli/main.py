"""The command line: verbs, exit codes, and the one place where errors become them."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Callable, Sequence

from dashboard.cli import (
    backup,
    check,
    devices,
    doctor,
    importing,
    incidents,
    install,
    measurements,
    new,
    notify,
    plan,
    publish,
    pull_request,
    results,
    retire,
    routes,
    run,
    serve,
    smoke,
    status,
    watch,
    work,
)
from dashboard.cli.arguments import BUG, HELD, OK_CODE, STOPPED, USAGE
from dashboard.cli.bug import describe_disk_error, keep_bug
from dashboard.cli.investigate import backfill, bisect, compare, remeasure, reproduce, signoff, tries, try_tvm
from dashboard.night import lock
from tvmdash import __version__
from tvmdash.errors import DashboardError
from tvmdash.text import plain_output

COMMANDS = (
    run,
    plan,
    check,
    install,
    doctor,
    devices,
    status,
    watch,
    notify,
    routes,
    incidents,
    retire,
    measurements,
    importing,
    remeasure,
    try_tvm,
    tries,
    pull_request,
    compare,
    bisect,
    backfill,
    reproduce,
    signoff,
    new,
    smoke,
    results,
    publish,
    serve,
    backup,
    work,
)
"""A module each, in the order of `--help`: its `add_verbs` adds what it holds, with the help and the action."""


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python3 -m dashboard",
        description="Nightly benchmark dashboard for the TVM compiler.",
        epilog="Exit codes: 0 success; 1 a job or backup failed; 2 usage or config error; 3 internal error (a bug); 4 "
        "inconclusive (reproduce, try, signoff, --fail-on); 5 TVM is worse (--fail-on, --fail-over, signoff); "
        "75 another night is using this home; 77 not allowed (try-request); 130 interrupted.",
    )
    parser.add_argument("--version", action="version", version=f"tvm-dashboard {__version__}")
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    for command in COMMANDS:
        command.add_verbs(verbs)
    return parser


def _run(arguments: Sequence[str] | None) -> int:
    parsed = _make_parser().parse_args(arguments)
    verb: Callable[[argparse.Namespace], int] = parsed.verb
    try:
        return verb(parsed)
    except lock.HeldError as error:
        print(error, file=sys.stderr)
        return HELD
    except DashboardError as error:
        print(error, file=sys.stderr)
        return USAGE
    except OSError as error:
        text = describe_disk_error(error)
        if not text:
            raise
        print(text, file=sys.stderr)
        return USAGE


@plain_output()
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    try:
        return _flush(_run(arguments))
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK_CODE
    except KeyboardInterrupt:
        return STOPPED
    except Exception as error:  # noqa: BLE001 - the edge of the program: whatever else comes here is a bug of ours, and its log is kept
        print(
            f"Internal error: this is a bug in the dashboard. Please report it with this log: {keep_bug(error)}",
            file=sys.stderr,
        )
        return BUG


def _flush(code: int) -> int:
    sys.stdout.flush()  # here, where a reader that has gone is understood
    return code
