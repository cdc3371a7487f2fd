"""Work split over processes: most files of a site do not depend on each other."""

from __future__ import annotations

import itertools
import os
import pickle
import signal
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, NoReturn, TypeVar

from tvmdash.errors import DashboardError

Item = TypeVar("Item")
Result = TypeVar("Result")
_MOST = 8
_TASKS = "/proc/self/task"


def in_parts(work: Callable[[Sequence[Item]], Result], items: Sequence[Item], *, least: int) -> list[Result]:
    """What `work` gives for each part of `items`, in their order; one part here, the others in forked processes.

    There are as many parts as cores, of at least `least` items. What goes wrong in a part is raised here, once no
    other process is left. `work` sees all that is here, as a copy, and gives back what can be pickled. It must not
    use a database file that is open here.
    """
    count = max(1, min(_processes(), len(items) // least))
    ends = [len(items) * part // count for part in range(count + 1)]
    parts = [items[begin:end] for begin, end in itertools.pairwise(ends)]
    workers: list[_ForkedWorker[Result]] = []
    try:
        for part in parts[1:]:
            workers.append(_begin(work, part))  # noqa: PERF401 - those begun before one that fails are ended
        return [work(parts[0]), *(worker.result() for worker in workers)]
    finally:
        for worker in workers:
            worker.end()


def _processes() -> int:
    """How many to use: one where this process has threads, whose locks a fork would leave locked for ever."""
    return min(_MOST, len(os.sched_getaffinity(0))) if len(os.listdir(_TASKS)) == 1 else 1


@dataclass(frozen=True)
class _Failed:
    """What went wrong in a process, and where."""

    error: BaseException
    where: str


class _ForkedWorker(Generic[Result]):
    """A forked process at work, and the pipe that its result comes through."""

    def __init__(self, pid: int, pipe: int) -> None:
        self._pid, self._pipe = pid, pipe

    def result(self) -> Result:
        """Wait for it; raises what it raised, DashboardError where it was killed."""
        with os.fdopen(os.dup(self._pipe), "rb") as pipe:
            pickled = pipe.read()
        try:
            outcome: Result | _Failed = pickle.loads(pickled)  # noqa: S301 - from a process of our own
        except (EOFError, pickle.UnpicklingError):
            problem = "A process that writes part of the site was killed or failed without an error message."
            raise DashboardError(f"{problem} Is the machine out of memory?") from None
        if isinstance(outcome, _Failed):
            raise outcome.error from RuntimeError(f"in a process that wrote a part of the site:\n{outcome.where}")
        return outcome

    def end(self) -> None:
        """Leave nothing of it behind."""
        os.close(self._pipe)
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)


def _begin(work: Callable[[Sequence[Item]], Result], part: Sequence[Item]) -> _ForkedWorker[Result]:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _work_and_exit(work, part, writing)
    os.close(writing)
    return _ForkedWorker(pid, reading)


def _work_and_exit(work: Callable[[Sequence[Item]], Result], part: Sequence[Item], pipe: int) -> NoReturn:
    """Never returns into what the process was forked from."""
    try:
        try:
            pickled = pickle.dumps(work(part))
        except BaseException as error:  # noqa: BLE001 - raised again in the process that forked this one
            pickled = pickle.dumps(_Failed(error, traceback.format_exc()))
        with os.fdopen(pipe, "wb") as file:
            file.write(pickled)
    finally:
        os._exit(0)
