"""The machine of a home: decided at its first night, kept in results/machine.json, compared at every night.

docs/decisions/0060 says why it is the host's name of that night, and why older homes keep the IDs of their series.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import hashlib
import logging
import os
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path

from tvmdash import common, records
from tvmdash.common.files import broken
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.machine import hardware, identity
from tvmdash.machine.identity import UNNAMED, MachineChange, MachineIdentity

_MACHINE_ID = Path("/etc/machine-id")
_NIGHTS_BACK = 60
_log = logging.getLogger("night")


def name_of(home: Home) -> str:
    """Return the machine's name in records where the config gives none: the kept name, else the host's."""
    kept = _read_kept(home)
    return kept.name if kept else socket.gethostname() or UNNAMED


def keep(home: Home, env_name: str, moment: datetime.datetime) -> tuple[MachineIdentity, tuple[MachineChange, ...]]:
    """Decide and write who measures where the home does not know it yet; what is another tonight than what was kept.

    env_name: what tonight's records say; moment: when the night begins. What was seen tonight is kept, so that a
    change is told once. The caller holds the home's lock and has read none of the home's data yet.
    """
    machine_id, hw_model = _read_machine_id(), hardware.hw_model()
    kept = _read_kept(home)
    if kept is None:
        _set_aside(home.machine_file)  # a damaged one: whoever reads data would stumble over it
        former = _find_former_name(home, env_name)
        kept = MachineIdentity(env_name, common.stamp_of(moment), machine_id, hw_model, former)
    changes = tuple(_find_changes(kept, env_name, machine_id, hw_model))
    # The name stays as it was first, and with it the series.
    now = dataclasses.replace(kept, machine_id=machine_id or kept.machine_id, hw_model=hw_model)
    home.machine_file.parent.mkdir(parents=True, exist_ok=True)
    if not home.machine_file.is_file():
        _set_aside(home.machine_file)
    identity.write(home.machine_file, now)
    return now, changes


def _set_aside(path: Path) -> None:
    if os.path.lexists(path):
        _log.warning("%s: was set aside as %s.", path, broken.set_aside(path).name)


def _read_kept(home: Home) -> MachineIdentity | None:
    """Read machine.json; where it is missing or damaged, the machine in the newest night's record that has one."""
    try:
        kept = home.machine()
    except DashboardError as error:
        _log.warning("%s", error)
        kept = None
    return kept or next((night.machine for night in home.last_nights(_NIGHTS_BACK, jobs=False) if night.machine), None)


def _find_changes(
    kept: MachineIdentity, env_name: str, machine_id: str | None, hw_model: str
) -> Iterator[MachineChange]:
    if kept.machine_id and machine_id and kept.machine_id != machine_id:
        yield MachineChange("machine_id", kept.machine_id, machine_id)
    if kept.hw_model != hw_model:
        yield MachineChange("hw_model", kept.hw_model, hw_model)
    if kept.name != env_name:
        yield MachineChange("env_name", kept.name, env_name)


def _read_machine_id() -> str | None:
    """Read the machine-id, hashed, as others must not learn it (machine-id(5)); None without one."""
    with contextlib.suppress(OSError):
        text = _MACHINE_ID.read_text(encoding="ascii", errors="replace").strip()
        return hashlib.sha256(f"tvmdash {text}".encode()).hexdigest()[:16] if text else None
    return None


def _find_former_name(home: Home, name: str) -> str | None:
    """Find this machine's name in the home's own data; None where it has none."""
    newest = max(
        (machine for folder in _list_data_folders(home) if (machine := _find_newest_own(folder))), default=None
    )
    if newest is None:
        return None
    return UNNAMED if UNNAMED in newest[1] else name


def _list_data_folders(home: Home) -> Iterator[Path]:
    for parent in (home.data("x").parent, home.backfill("x").parent):
        yield from (path for path in parent.glob("*") if path.is_dir())


def _find_newest_own(folder: Path) -> tuple[str, Sequence[str]] | None:
    """Find the newest night in a data folder that was not imported: its stamp and its env_names."""
    for stamp in reversed(records.data_stamps(folder)):
        with contextlib.suppress(DashboardError):  # a night that cannot be read is passed over
            night = records.read_data(folder / f"data_{stamp}.json", folder.name)
            if not night.is_imported:
                return stamp, sorted({record.env_name for record in night.records})
    return None
