"""Locks: one night at a time in a home, and one measurement at a time on a machine, whatever home and user it is for.

The machine's locks lie where all its users can reach them, and say who holds them. They are named by the machine's
node: `TVMDASH_NODE`, Slurm's name of the node, or the host name. What measures on the processor holds the machine
alone. What measures on cards only holds each of its cards alone and shares the machine. Who waits for a lock stands at
its gate, which everybody else has to pass as well: whoever comes later, comes later.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import socket
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tvmdash.common import stamp_of, utc_now
from tvmdash.common.files import lock
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError

NODE = "TVMDASH_NODE"
_SLURM_NODE = "SLURMD_NODENAME"
PATIENCE_S = 6 * 3600.0
"""The longest wait of a night for another home's."""
_FOLDERS = ("/run/lock", "/tmp")  # noqa: S108 - it holds no secret and every user must find it
_GLANCE_S = 0.2
"""`is_held` of another process holds the lock for an instant."""
_MACHINE = ""
"""The name of the whole machine among those of cards."""
_ASK_AGAIN_S = 1.0
"""Interval at which a waiting night asks whether the holder still lets nights pass."""
_log = logging.getLogger("night")


class HeldError(DashboardError):
    """Another night holds the home, or another home's the machine."""


@contextlib.contextmanager
def night_lock(
    home: Home,
    *,
    waits: bool = False,
    patience_s: float = PATIENCE_S,
    measures: bool = True,
    cards: Sequence[str] = (),
) -> Iterator[None]:
    """Hold the home and its machine, or raise HeldError. The system lets go of both when this process ends.

    cards: those of the machine that are measured on, where nothing else is. What `measures` nothing that anybody
    compares needs no quiet machine and holds the home alone.

    It raises at once, or with `waits` only where the home's holder does not let nights pass (`take_turn`), or another
    home's measurement has the machine for `patience_s`.
    """
    with _naming(home.lock_file):
        held = _wait_for_turn(home) if waits else _take(home, _GLANCE_S)
    if held is None:
        holder = lock.read_holder(home.lock_file) or "an unknown process"
        raise HeldError(f"{home.root}: another night is using this home: {holder}. Wait for it, or stop it.")
    with (
        held,
        _hold_machine_or_raise(home, patience_s if waits else 0.0, cards) if measures else contextlib.nullcontext(),
    ):
        yield


def _hold_machine_or_raise(
    home: Home, patience_s: float, cards: Sequence[str]
) -> contextlib.AbstractContextManager[object]:
    held = hold_machine(home, patience_s, cards)
    if held is None:
        raise HeldError(f"{describe_holders(cards)} Wait for it, or stop it.")
    return held


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Raise DashboardError with the remedy where the lock `path` cannot be opened."""
    try:
        yield
    except OSError as error:
        raise DashboardError(f"{path}: {error.strerror}. Nights need write permission in their home.") from error


def _take(home: Home, within_s: float) -> lock.Lock | None:
    return lock.take(home.lock_file, f"since {stamp_of(utc_now())}", within_s=within_s)


def _wait_for_turn(home: Home) -> lock.Lock | None:
    """Take the home once what lets nights pass has let go of it; None where something else holds it."""
    held = _take(home, _GLANCE_S)
    if held is not None:
        return held
    with lock.take(home.waiting_file, within_s=_GLANCE_S) or contextlib.nullcontext():
        if lock.is_held(home.turn_file):
            _log.info("%s is busy with another measurement; the night starts when that run ends.", home.root)
        while held is None and lock.is_held(home.turn_file):
            held = _take(home, _ASK_AGAIN_S)
        return held or _take(home, _GLANCE_S)


@contextlib.contextmanager
def take_turn(home: Home) -> Iterator[None]:
    """Let nights that begin while this is held wait for its end; HeldError where one waits, or another has its turn."""
    with _naming(home.turn_file):
        held = lock.take(home.turn_file, within_s=_GLANCE_S)
    if held is None:
        raise HeldError(f"{home.root}: another command is measuring in this home.")
    with held:
        if lock.is_held(home.waiting_file):  # asked after the turn is taken, as the night asks after it waits
            raise HeldError(f"{home.root}: a night is waiting for this home.")
        if is_machine_waited_for():
            raise HeldError(f"{node()}: a night of another home is waiting for this machine.")
        yield


def is_held(home: Home) -> bool:
    return lock.is_held(home.lock_file)


def read_holder_pid(home: Home) -> int | None:
    """Read the ID of the process that last held the home; None where its lock names none."""
    return lock.read_holder_pid(home.lock_file)


def node() -> str:
    return os.environ.get(NODE) or _find_own_name()


def _find_own_name() -> str:
    return os.environ.get(_SLURM_NODE) or socket.gethostname() or "machine"


def hold_machine(
    home: Home, patience_s: float, cards: Sequence[str] = ()
) -> contextlib.AbstractContextManager[object] | None:
    """Hold the machine, or these cards of it, for `home`; None where others have it for `patience_s`.

    While it waits, commands that let nights pass do not begin. OSError where a lock's file cannot be opened.
    """
    purpose = f"for {home.root}, since {stamp_of(utc_now())}"
    end = time.monotonic() + max(patience_s, _GLANCE_S)
    with contextlib.ExitStack() as held:
        for what in (*sorted(cards), _MACHINE):  # in one order for all, the machine last: no two wait for one another
            passed = _pass_gate(what, purpose, end, is_shared=what == _MACHINE and bool(cards))
            if passed is None:
                return None
            held.enter_context(passed)
        return held.pop_all()


def _pass_gate(what: str, purpose: str, end: float, *, is_shared: bool) -> lock.Lock | None:
    """Take the lock after whoever came before; None where that is not so before `end`."""
    taken = _try_gate(what, purpose, min(end, time.monotonic() + _GLANCE_S), is_shared=is_shared)
    if taken is None and time.monotonic() < end:
        _log.info("Waiting: %s", describe_holders([what] if what or is_shared else []))
        taken = _try_gate(what, purpose, end, is_shared=is_shared)
    return taken


def _try_gate(what: str, purpose: str, end: float, *, is_shared: bool) -> lock.Lock | None:
    gate = lock.take(_file(what, "waiting"), purpose, within_s=end - time.monotonic(), everyone=True)
    if gate is None:
        return None
    with gate:
        written = "" if is_shared else purpose  # a shared lock has several holders; their cards' locks name them
        left_s = end - time.monotonic()
        return lock.take(_file(what, "lock"), written, shared=is_shared, within_s=left_s, everyone=True)


def is_machine_waited_for(cards: Sequence[str] = ()) -> bool:
    """Return True where a night of some home waits for this machine, or for one of these cards."""
    return any(lock.is_held(_file(what, "waiting")) for what in (*cards, _MACHINE))


def describe_holders(cards: Sequence[str] = ()) -> str:
    """Describe who measures on this machine now, or is about to, and since when; of cards only on these."""
    where = f"another home is measuring on this machine ({node()})"
    if whole := _read_holder(_file(_MACHINE, "lock")):
        return f"{where}: {whole}."
    files = [_file(card, "lock") for card in cards] or _list_cards_locks()
    held = [f"{path.stem.partition('@')[2]}: {who}" for path in files if (who := _read_holder(path))]
    if held:
        return f"{where}, on the card {'; on the card '.join(held)}."
    waits = next((who for what in (*cards, _MACHINE) if (who := _read_holder(_file(what, "waiting")))), "")
    return f"another home is about to measure on this machine ({node()}): {waits or 'an unknown process'}."


def _list_cards_locks() -> list[Path]:
    return sorted(path for folder in _FOLDERS for path in Path(folder).glob(f"{_name('@')}*.lock"))


def _read_holder(path: Path) -> str:
    """Return who holds it alone now; empty where nobody does."""
    return (lock.read_holder(path) or "an unknown process") if lock.is_held(path) else ""


def list_gaps() -> Iterator[str]:
    """Yield a sentence for each reason why somebody may have measured here at the same time unnoticed."""
    if node() != _find_own_name():
        yield (
            f"{NODE} names this machine {node()} instead of {_find_own_name()}: homes that do not use the same name "
            f"may measure here at the same time. Set the same {NODE} for all of them, or for none."
        )
    path = _file(_MACHINE, "lock")
    if str(path.parent) != _FOLDERS[0] and os.path.isdir(_FOLDERS[0]):
        yield (
            f"{_FOLDERS[0]}: this user may not write there, so the machine is locked in {path.parent}: users who may "
            f"can measure here at the same time. Let one of them measure first; its lock is then used by all."
        )


def _file(what: str, suffix: str) -> Path:
    """Find the first folder where this user can use or make the lock of the machine or card."""
    name = f"{_name(f'@{what}' if what else '')}.{suffix}"
    usable = (Path(folder, name) for folder in _FOLDERS if _can_use(Path(folder, name)))
    return next(usable, Path(_FOLDERS[-1], name))


def _can_use(path: Path) -> bool:
    return os.access(path, os.R_OK | os.W_OK) or (not path.exists() and os.access(path.parent, os.W_OK | os.X_OK))


def _name(rest: str) -> str:
    return f"tvm-dashboard.{re.sub(r'[^A-Za-z0-9._-]', '_', node())}{rest}"
