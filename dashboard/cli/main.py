"""The command line: verbs, exit codes, and the one place where errors become them."""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence

from dashboard.cli.arguments import BUG, HELD, OK_CODE, STOPPED, USAGE, describe_disk_error, keep_bug
from dashboard.night import lock
from tvmdash import __version__
from tvmdash.errors import DashboardError
from tvmdash.text import plain_output

COMMANDS: Mapping[str, Sequence[str]] = {
    "dashboard.cli.run": ("run", "publish"),
    "dashboard.cli.plan": ("plan",),
    "dashboard.cli.check": ("check",),
    "dashboard.cli.install": ("install",),
    "dashboard.cli.doctor": ("doctor", "rebuild"),
    "dashboard.cli.devices": ("devices",),
    "dashboard.cli.status": ("status",),
    "dashboard.cli.watch": ("watch",),
    "dashboard.cli.incidents": ("notify", "routes", "incidents", "annotate", "explain"),
    "dashboard.cli.retire": ("retire", "mute", "unretire", "unmute", "rename"),
    "dashboard.cli.importing": ("import",),
    "dashboard.cli.trials.measuring": ("remeasure", "try", "compare", "bisect", "backfill", "reproduce"),
    "dashboard.cli.trials.tries": ("tries",),
    "dashboard.cli.pull_request": ("try-request", "try-comment"),
    "dashboard.cli.trials.signoff": ("signoff",),
    "dashboard.cli.authoring": ("new", "smoke"),
    "dashboard.cli.results": ("results", "traces", "records"),
    "dashboard.cli.serve": ("serve", "submit"),
    "dashboard.cli.backup": ("restore", "verify"),
    "dashboard.cli.work": ("work",),
}
"""The modules in the order of `--help`, each with its verbs: its `add_verbs` adds them, with their help and action."""


def _make_parser(first: str = "") -> argparse.ArgumentParser:
    """Make the parser of the verb `first`, or of all verbs where there is none of this name."""
    parser = argparse.ArgumentParser(
        prog="python3 -m dashboard",
        description="Nightly benchmark dashboard for the TVM compiler.",
        epilog="Exit codes: 0 success; 1 a job or backup failed; 2 usage or config error; 3 internal error (a bug); 4 "
        "inconclusive (reproduce, try, signoff, --fail-on); 5 TVM is worse (--fail-on, --fail-over, signoff); "
        "75 another night is using this home; 77 not allowed (try-request); 130 interrupted.",
    )
    parser.add_argument("--version", action="version", version=f"tvm-dashboard {__version__}")
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    for command in [name for name, of_it in COMMANDS.items() if first in of_it] or COMMANDS:
        importlib.import_module(command).add_verbs(verbs)  # one of thirty: all of them take half a second to import
    return parser


def _run(arguments: Sequence[str] | None) -> int:
    words = sys.argv[1:] if arguments is None else arguments
    parsed = _make_parser(words[0] if words else "").parse_args(words)
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
