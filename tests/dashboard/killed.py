"""Processes that are killed before a step of their own choosing."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path


def in_a_child(work: Callable[[], None]) -> int:
    """The exit status of a forked process that does `work`; the negative signal where one killed it."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException as error:  # noqa: BLE001 - the child must not go on as a second pytest
            sys.stderr.write(f"{error!r}\n")
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed_at(step: int, folder: Path, work: Callable[[], object]) -> None:
    """Do `work`, and kill this process before its `step`-th change below `folder`."""
    kill_at(step, lambda event, arguments: is_change(folder, event, arguments))
    work()


def is_change(folder: Path, event: str, arguments: tuple[object, ...]) -> bool:
    """Whether an audit event of Python is about a change below `folder`."""
    if event not in ("open", "os.rename", "os.remove", "os.mkdir", "os.chmod"):
        return False
    return str(arguments[0]).startswith(str(folder)) and not (event == "open" and arguments[1] == "r")


def kill_at(step: int, counts: Callable[[str, tuple[object, ...]], bool]) -> None:
    """Kill this process before the `step`-th of Python's audit events that `counts` from now on."""
    left = step

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        if counts(event, arguments):
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
