"""`publish`: make the home's website again, without a night."""

from __future__ import annotations

import argparse
import signal

from dashboard.cli.arguments import OK_CODE, SOME_FAILED, Verbs, add_home_verb, find_code, find_home, interrupt


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    """Add it to the command line."""
    add_home_verb(verbs, "publish", _publish, "make the home's website again, e.g. after a restore; measures nothing")


def _publish(arguments: argparse.Namespace) -> int:
    from dashboard.night import website  # the night's machinery; the other verbs start without it
    from dashboard.plan.plan import make_plan

    signal.signal(signal.SIGTERM, interrupt)
    home = find_home(arguments)
    done = website.make_website(make_plan(home, find_code(arguments), seed=arguments.seed))
    print(done.message)
    if not done.success:
        print(done.log_tail)
        return SOME_FAILED
    page = home.page()
    if page is not None:
        print(f"Page: {page.as_uri()}")
    return OK_CODE
