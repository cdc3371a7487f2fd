"""A time-out for every test: one that hangs fails, and says where each of its threads was.

The alarm comes again and again, so that a clean-up which waits as well does not hang in its turn. Where code outside
Python holds the main thread, no alarm can end the test: pytest's own faulthandler_timeout (pyproject.toml), which is
longer, then prints all stacks and ends the process.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import traceback
from collections.abc import Generator, Iterator
from types import FrameType

import pytest

LIMIT_S, SLOW_LIMIT_S = 600.0, 3600.0
"""Ten times and more what any takes on a busy machine; those marked slow have the second."""
LIMIT_VARIABLE = "TVMDASH_TEST_LIMIT_S"
"""Environment variable with another limit, for a machine that is slower still."""
_AGAIN_SHARE = 0.1


_inside: list[str] = []
"""The phases of the test that run now: between them pytest writes its report, and must not be stopped."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Run the test, with its set-up and its clean-up, within the limit."""
    limit_s = float(os.environ.get(LIMIT_VARIABLE) or (SLOW_LIMIT_S if item.get_closest_marker("slow") else LIMIT_S))

    def give_up(_number: int, _frame: FrameType | None) -> None:
        if _inside:
            pytest.fail(f"{item.nodeid} did not end within {limit_s:g} s. Its threads were here:\n{_stacks()}")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, limit_s, _AGAIN_SHARE * limit_s)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, object, object]:
    """Fixtures are made within the limit."""
    with _phase("setup"):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """So runs the test itself."""
    with _phase("call"):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Generator[None, object, object]:
    """So are fixtures ended."""
    with _phase("teardown"):
        return (yield)


@contextlib.contextmanager
def _phase(name: str) -> Iterator[None]:
    _inside.append(name)
    try:
        yield
    finally:
        _inside.clear()


def _stacks() -> str:
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    return "\n".join(
        f"{names.get(ident, ident)}:\n{''.join(traceback.format_stack(frame))}"
        for ident, frame in sys._current_frames().items()
    )
