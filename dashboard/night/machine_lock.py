"""Who measures on a machine, whatever home and user it is for: the processor alone, cards beside one another.

The locks lie where all users of the machine can reach them, and say who holds them. They are named by the machine's
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

NODE = "TVMDASH_NODE"
_SLURM_NODE = "SLURMD_NODENAME"
PATIENCE_S = 6 * 3600.0
"""The longest wait of a night for another home's."""
_FOLDERS = ("/run/lock", "/tmp")  # noqa: S108 - it holds no secret and every user must find it
_GLANCE_S = 0.2
_MACHINE = ""
"""The name of the whole machine among those of cards."""
_log = logging.getLogger("night")


def node() -> str:
    """Return the name under which this machine is locked."""
    return os.environ.get(NODE) or _find_own_name()


def _find_own_name() -> str:
    return os.environ.get(_SLURM_NODE) or socket.gethostname() or "machine"


def hold(home: Home, patience_s: float, cards: Sequence[str] = ()) -> contextlib.AbstractContextManager[object] | None:
    """The machine, or these cards of it, for whatever measures for `home`; None where others have it for `patience_s`.

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
    """The lock, once whoever came before has it or has given up; None where that is not so before `end`."""
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


def is_waited_for(cards: Sequence[str] = ()) -> bool:
    """Return True where a night of some home waits for this machine, or for one of these cards."""
    return any(lock.is_held(_file(what, "waiting")) for what in (*cards, _MACHINE))


def describe_holders(cards: Sequence[str] = ()) -> str:
    """Who measures on this machine now, or is about to, and since when, as a sentence; of cards only on these."""
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
    """Who holds it alone now; empty where nobody does."""
    return (lock.read_holder(path) or "an unknown process") if lock.is_held(path) else ""


def list_gaps() -> Iterator[str]:
    """A sentence for each reason why somebody else may have measured here at the same time and not know of this one."""
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
    """Where the lock of the machine, or of a card, lies: in the first folder where this user can use or make it."""
    name = f"{_name(f'@{what}' if what else '')}.{suffix}"
    usable = (Path(folder, name) for folder in _FOLDERS if _can_use(Path(folder, name)))
    return next(usable, Path(_FOLDERS[-1], name))


def _can_use(path: Path) -> bool:
    return os.access(path, os.R_OK | os.W_OK) or (not path.exists() and os.access(path.parent, os.W_OK | os.X_OK))


def _name(rest: str) -> str:
    return f"tvm-dashboard.{re.sub(r'[^A-Za-z0-9._-]', '_', node())}{rest}"
