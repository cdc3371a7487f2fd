"""`tries`: manage the queue of `try` and show its results."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING

from dashboard.cli.arguments import (
    OK_CODE,
    SOME_FAILED,
    STOPPED,
    Verbs,
    add_home_verb,
    find_code,
    find_home,
    interrupt,
    parse_duration_s,
    parse_percent,
)
from tvmdash.errors import DashboardError

if TYPE_CHECKING:
    from dashboard.trials.tries import Worked

_SHOWN = 20


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    tries = add_home_verb(verbs, "tries", _list, "manage the tries of a home: list, show, cancel, resume, work")
    tries.set_defaults(all=False)
    actions = tries.add_subparsers(title="actions", metavar="ACTION", description="default action: list")
    listing = actions.add_parser("list", help=f"list the last {_SHOWN} tries and all unfinished ones")
    listing.add_argument("--all", action="store_true", help="list every try of the home")
    listing.set_defaults(verb=_list)
    _add_action(actions, "show", _show, "print the result of a try")
    _add_action(actions, "cancel", _cancel, "remove a try from the queue, or stop it; its measurements are kept")
    resume = _add_action(
        actions, "resume", _resume, "resume an unfinished try, or continue a finished one with new limits"
    )
    resume.add_argument("--until", type=parse_percent, metavar="PERCENT", help="target half-width of the 95%% interval")
    resume.add_argument("--budget", type=parse_duration_s, metavar="TIME", help="time for measuring, e.g. 90s, 10m, 3h")
    resume.add_argument("--queue", action="store_true", help="queue it for `tries HOME work`")
    work = actions.add_parser("work", help="run the queued tries one after another until the queue is empty")
    work.set_defaults(verb=_work)


def _add_action(
    actions: Verbs[argparse.ArgumentParser], name: str, verb: Callable[[argparse.Namespace], int], help_text: str
) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=help_text)
    parser.add_argument("id", metavar="ID", help="try ID or a prefix of it")
    parser.set_defaults(verb=verb)
    return parser


def _list(arguments: argparse.Namespace) -> int:
    from dashboard.trials import queue

    rows, older = queue.list_tries(find_home(arguments), None if arguments.all else _SHOWN)
    print(queue.format_rows(rows) if rows else "No tries yet.")
    if older:
        print(f"{older} older tries not shown; `list --all` shows them")
    return OK_CODE


def _show(arguments: argparse.Namespace) -> int:
    from dashboard.trials import queue
    from tvmdash.trials import text

    row = queue.find(find_home(arguments), arguments.id)
    print(queue.format_rows([row]))
    if row.request is not None:
        print(queue.format_request(row.request))
    if row.result is not None:
        print(f"\n{text.format_table(row.result)}")
    return OK_CODE


def _cancel(arguments: argparse.Namespace) -> int:
    from dashboard.trials import queue
    from tvmdash.trials import files

    home = find_home(arguments)
    row = queue.find(home, arguments.id)
    if row.has_ended or not files.take_away(home, row.id):
        raise DashboardError(f"{row.id} has already finished; only a queued or running try can be cancelled.")
    is_running = row.standing == queue.RUNNING
    print(
        f"{row.id} " + ("is being stopped; its measurements are kept." if is_running else "was removed from the queue.")
    )
    return OK_CODE


def _resume(arguments: argparse.Namespace) -> int:
    from dashboard.trials import queue, tries
    from tvmdash.trials import files, text

    home = find_home(arguments)
    row = queue.find(home, arguments.id)
    name = queue.ask_again(home, row, until=arguments.until, budget_s=arguments.budget)
    if arguments.queue:
        print(f"{name} is queued.")
        return OK_CODE
    signal.signal(signal.SIGTERM, interrupt)
    done = tries.Worked()
    with queue.take_turn(home):
        tries.perform(home, name, done, code=find_code(arguments))
    if done.interrupted and row.has_ended:
        files.take_away(home, name)  # it did not wait before either
    print(text.format_table(done.results[name]) if name in done.results else done.faults.get(name, ""))
    return _choose_code(done)


def _work(arguments: argparse.Namespace) -> int:
    from dashboard.trials import tries
    from tvmdash.trials import text

    signal.signal(signal.SIGTERM, interrupt)
    done = tries.perform_queue(find_home(arguments), code=find_code(arguments))
    for name, result in done.results.items():
        print(f"{name}: {result.candidate.asked} against {result.base.asked}: {text.summarize(result)}")
    for name, fault in done.faults.items():
        print(f"{name}: {fault}")
    return _choose_code(done)


def _choose_code(done: Worked) -> int:
    if done.interrupted:
        return STOPPED
    return SOME_FAILED if done.faults or any(result.errors for result in done.results.values()) else OK_CODE
