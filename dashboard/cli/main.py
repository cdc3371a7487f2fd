"""The command line: verbs, exit codes, and the one place where errors become them."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import io
import logging
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from dashboard.cli import backup, check, investigate, new, night_summary, results, smoke
from dashboard.cli.parts import (
    BUG,
    HELD,
    OK_CODE,
    SOME_FAILED,
    STOPPED,
    USAGE,
    code_of,
    existing_home,
    exit_code,
    home_verb,
    interrupt,
    passed_on,
)
from dashboard.investigate.backfill import folder
from dashboard.night import lock
from dashboard.plan.job import REPOSITORY
from dashboard.plan.plan import make_plan
from tvmdash import __version__
from tvmdash.dashboard_info import COMPLETE, INTERRUPTED, RUNNING, Home
from tvmdash.errors import DashboardError


def _run(arguments: argparse.Namespace) -> int:
    from dashboard.night import heartbeat, night  # the night's machinery; the other verbs start without it

    home = Home(arguments.home)
    signal.signal(signal.SIGTERM, interrupt)
    plan = make_plan(home, code_of(arguments), seed=arguments.seed)
    done = night.run_night(plan, rebuild=not arguments.no_rebuild_tvm)
    print(night_summary.night_in_words(home, done))
    code = exit_code(done)
    if code != STOPPED:
        heartbeat.beat(plan.config.heartbeat_url, success=code == OK_CODE)
    return code


def _plan(arguments: argparse.Namespace) -> int:
    plan = make_plan(Home(arguments.home), code_of(arguments), seed=arguments.seed)
    print(night_summary.plan_in_words(plan))
    return SOME_FAILED if plan.rejected else OK_CODE


def _check(arguments: argparse.Namespace) -> int:
    faults = check.faults_of(Home(arguments.home), code_of(arguments))
    print("\n".join(faults) if faults else f"{arguments.home}: no faults found.")
    return USAGE if faults else OK_CODE


def _status(arguments: argparse.Namespace) -> int:
    home = existing_home(arguments)
    stamps = home.night_stamps()
    if not stamps:
        print(f"{home.root}: no night has run yet. Run one: ./run_dashboard.sh {home.root}")
        return OK_CODE
    night = home.read_night(stamps[-1])
    if night.state == RUNNING and not lock.is_held(home):
        night = dataclasses.replace(night, state=INTERRUPTED)
    print("\n".join(filter(None, (night_summary.status_in_words(home, night), folder.in_words(home)))))
    return OK_CODE if night.state in {COMPLETE, RUNNING} and night.well else SOME_FAILED


def _notify(arguments: argparse.Namespace) -> int:
    """A test message to Slack, by a program of its own: the dashboard itself knows no Slack."""
    library = str(REPOSITORY / "shared" / "python")
    argv = [sys.executable, "-m", "tvmdash.slack_util", "check", str(arguments.home)]
    return subprocess.run(argv, check=False, env={**os.environ, "PYTHONPATH": library}).returncode


def _traces(arguments: argparse.Namespace) -> int:
    return passed_on("traces", *arguments.rest)


def _records(arguments: argparse.Namespace) -> int:
    return passed_on("records_exchange", *arguments.rest)


def _incidents(arguments: argparse.Namespace) -> int:
    return passed_on("incidents", *arguments.rest)


def _annotate(arguments: argparse.Namespace) -> int:
    return passed_on("incidents.annotations", *arguments.rest)


def _explain(arguments: argparse.Namespace) -> int:
    return passed_on("incidents", str(arguments.home), "explain", arguments.incident)


def _import(arguments: argparse.Namespace) -> int:
    from dashboard.cli import importing

    return SOME_FAILED if importing.run(arguments.home, arguments, print).any_broken else OK_CODE


def _serve(arguments: argparse.Namespace) -> int:
    from dashboard.cli import serve

    serve.serve(existing_home(arguments), arguments.bind, arguments.port)
    return OK_CODE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python3 -m dashboard",
        description="The nightly TVM benchmark dashboard.",
        epilog="Exit codes: 0 all well; 1 some job or backup failed; 2 usage or top-level config; 3 a bug of ours; "
        "4 it cannot be told (reproduce); 75 another night holds this home; 130 interrupted.",
    )
    parser.add_argument("--version", action="version", version=f"tvm-dashboard {__version__}")
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    run = home_verb(verbs, "run", _run, "run a night")
    run.add_argument("--no-rebuild-tvm", action="store_true", help="use the TVM artifacts that are there; no network")
    home_verb(verbs, "plan", _plan, "print what a night would do; runs nothing")
    home_verb(verbs, "check", _check, "find every fault of a home at once")
    home_verb(verbs, "status", _status, "print how the last night went", code=False)
    notify = home_verb(verbs, "notify", _notify, "try Slack", code=False)
    notify.add_argument("--check", action="store_true", required=True, help="send a test message; say what is wrong")
    for name, verb, words in (
        ("incidents", _incidents, "list, show, acknowledge, close, silence incidents of a home"),
        ("annotate", _annotate, "words for nights and commits of a home; known breaks"),
        ("traces", _traces, "what was measured, asked in SQL: query, summary, diff, seal, convert, ..."),
        ("records", _records, "export and import records of the workload record format"),
    ):
        whole = verbs.add_parser(name, help=words, add_help=False, prefix_chars="\0")  # options are passed on as well
        whole.add_argument("rest", nargs=argparse.REMAINDER)
        whole.set_defaults(verb=verb)
    explain = home_verb(verbs, "explain", _explain, "make an incident's decision again and say why", code=False)
    explain.add_argument("incident", metavar="INCIDENT", help="its ID, or the beginning of it")
    take = home_verb(
        verbs, "import", _import, "take in what relay-bench, asv, pyperf, Google Benchmark wrote", code=False
    )
    take.add_argument("source", type=Path, metavar="SOURCE", help="a file, a folder or a tar archive; never changed")
    take.add_argument("--experiment", metavar="NAME", help="whose nights they become; by default what the source says")
    take.add_argument("--timezone", metavar="ZONE", default="UTC", help="of stamps that name none, as Europe/Berlin")
    take.add_argument("--dry-run", action="store_true", help="say what would be taken; write nothing")
    investigate.add_verbs(verbs)
    new.add_verbs(verbs)
    smoke.add_verbs(verbs)
    results.add_verbs(verbs)
    serve = home_verb(verbs, "serve", _serve, "show the home's website in a browser of this machine", code=False)
    serve.add_argument("--port", type=int, default=0, help="0, the default, takes a free one")
    serve.add_argument("--bind", default="127.0.0.1", metavar="ADDRESS", help="by default only this machine")
    backup.add_verbs(verbs)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    if isinstance(sys.stdout, io.TextIOWrapper):  # names of files are bytes; not each of them is a text
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        parsed = _parser().parse_args(arguments)
        verb: Callable[[argparse.Namespace], int] = parsed.verb
        return _flushed(verb(parsed))
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK_CODE
    except lock.HeldError as error:
        print(error, file=sys.stderr)
        return HELD
    except DashboardError as error:
        print(error, file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        return STOPPED
    except Exception:  # noqa: BLE001 - the edge of the program: whatever else comes here is a bug of ours, and its log is kept
        print(f"This is a bug of the dashboard. Its log: {_keep_bug()}", file=sys.stderr)
        return BUG


def _flushed(code: int) -> int:
    sys.stdout.flush()  # here, where a reader that has gone is understood
    return code


def _keep_bug() -> str:
    traceback.print_exc()
    with (
        contextlib.suppress(OSError),
        tempfile.NamedTemporaryFile(
            "w", prefix="dashboard-bug-", suffix=".log", delete=False, encoding="utf-8"
        ) as file,
    ):
        file.write(traceback.format_exc())
        return file.name
    return "above; it could not be written to a file"
