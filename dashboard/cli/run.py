"""`run`: run a night."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

from dashboard.cli import night_summary
from dashboard.cli.arguments import OK_CODE, Verbs, add_home_verb, choose_exit_code, find_code, interrupt
from dashboard.cli.fail_on import add_fail_on, judge_exit_code
from dashboard.night.lock import HeldError
from dashboard.plan.plan import make_plan
from dashboard.report import prometheus
from dashboard.schedule import refusal
from tvmdash import last_config
from tvmdash.dashboard_info import Home, Night
from tvmdash.errors import DashboardError
from tvmdash.verdict import read_verdict


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    """Add it to the command line."""
    run = add_home_verb(verbs, "run", _run, "run a night")
    run.add_argument(
        "--no-rebuild-tvm",
        action="store_true",
        help="use only TVM artifacts already on this machine; no network access",
    )
    run.add_argument(
        "--quick", action="store_true", help="first create HOME as a small home; its night takes a minute or two"
    )
    add_fail_on(run)


def _run(arguments: argparse.Namespace) -> int:
    from dashboard.night import heartbeat, night  # the night's machinery; the other verbs start without it

    home = Home(arguments.home)
    if arguments.quick:
        from dashboard.authoring import quick_home

        quick_home.make_quick_home(home.root)
    signal.signal(signal.SIGTERM, interrupt)
    beat = heartbeat.open_heartbeat(home)

    def begin(stamp: str) -> None:
        refusal.clear(home)
        _keep_config(home)
        beat.start(stamp)

    def fail(why: str) -> None:
        if not beat.run_id and not sys.stderr.isatty():  # who starts a night by hand reads why it cannot begin
            refusal.keep(home, why)
        beat.fail(why)

    with _telling_why(fail):
        plan = make_plan(home, find_code(arguments), seed=arguments.seed)
        done = night.run_night(plan, rebuild=not arguments.no_rebuild_tvm, on_begin=begin)
    summary = night_summary.summarize_night(home, done)
    print(summary)
    if arguments.quick:
        print(quick_home.format_next_steps(home.root))
    code = choose_exit_code(done)
    if code == OK_CODE:
        beat.succeed()
    else:
        beat.fail(heartbeat.format_failure(summary, done))
    if plan.config.prometheus_file is not None:
        _leave_metrics(plan.config.prometheus_file, home, done)
    return judge_exit_code(home, done, code, arguments.fail_on)


def _keep_config(home: Home) -> None:
    try:
        last_config.keep(home)
    except OSError as error:
        print(f"{error.filename}: the config could not be copied: {error.strerror}.")


@contextlib.contextmanager
def _telling_why(fail: Callable[[str], None]) -> Iterator[None]:
    """Tell of a night that does not come to its end by itself; one that waits for another is none."""
    try:
        yield
    except HeldError:
        raise
    except DashboardError as error:
        fail(str(error))
        raise
    except Exception:
        fail(f"Internal error: this is a bug in the dashboard.\n{traceback.format_exc()}")
        raise


def _leave_metrics(path: Path, home: Home, done: Night) -> None:
    """What a file of figures cannot be written for is told, and costs the night nothing."""
    try:
        prometheus.write_metrics(path, home.root, done, read_verdict(home, done.stamp))
    except (DashboardError, OSError) as error:
        print(f"prometheus_file: could not write {path}: {error}")
