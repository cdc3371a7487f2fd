"""The machine of a home's numbers: fixed in its first night and kept in results/machine.json.

The night writes the file (dashboard/plan/home_machine.py); everyone else reads it. docs/decisions/0060 says why.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tvmdash import common
from tvmdash.common import structured
from tvmdash.errors import DashboardError

FILE = "machine.json"
SCHEMA_VERSION = 1
_REMEDY = "Restore it from an archive, or run a night, which recreates it."
UNNAMED = "default"
"""Name of the machine in records from before homes kept one."""
ENV_NAME, PATH, WORKLOAD = "env_name", "path", "workload"
"""Labels of a series that name its machine, the path of a foreign number, and its workload."""


class RenameKind(enum.StrEnum):
    """Kinds of renamed things."""

    EXPERIMENT = "experiment"
    WORKLOAD = "workload"


@dataclass(frozen=True)
class Rename:
    """A name that changed from `before` to `now`, at `at` (ISO 8601 UTC), decided by `who`, and why."""

    kind: RenameKind
    before: str
    now: str
    at: str
    who: str
    why: str = ""


@dataclass(frozen=True)
class MachineIdentity:
    """`name` is what records say in `env_name`, since the moment `since`. machine_id (hashed), hw_model: last seen.

    formerly: what the home's records said before it kept a name; None in a home that always had one. The IDs of all
    series of this machine are made with that name, so that they are what they were. renames: of the home's experiments
    and workloads, oldest first; the IDs are made with the first names likewise.
    """

    name: str
    since: str
    machine_id: str | None
    hw_model: str
    formerly: str | None = None
    renames: tuple[Rename, ...] = ()

    def name_now(self, env_name: str) -> str:
        """Return the current name of a record's `env_name`."""
        return self.name if env_name == self.formerly else env_name

    def for_imported(self) -> MachineIdentity:
        """Return the part that holds for imported nights: the renames. Their machines have names of their own."""
        return replace(self, name="", formerly=None)

    def workload_now(self, workload: str) -> str:
        """Return the current name of a record's workload."""
        for rename in self.renames:
            workload = rename.now if (rename.kind, rename.before) == (RenameKind.WORKLOAD, workload) else workload
        return workload

    def experiment_now(self, experiment: str, stamp: str) -> str:
        """Return the current name of an experiment (with host and TVM), by its name in a night of that stamp."""
        name, rest = _split_name(experiment)
        for rename in self.renames:
            is_of_it = (rename.kind, rename.before) == (RenameKind.EXPERIMENT, name)
            name = rename.now if is_of_it and stamp < rename.at.replace("-", "").replace(":", "") else name
        return name + rest

    def experiment_of_id(self, experiment: str) -> str:
        """Return the experiment (with host and TVM, as in cnn~desk@release) that the IDs of its series are made of."""
        name, rest = _split_name(experiment)
        return self._find_first(RenameKind.EXPERIMENT, name) + rest

    def _find_first(self, kind: RenameKind, name: str) -> str:
        for rename in reversed(self.renames):
            name = rename.before if (rename.kind, rename.now) == (kind, name) else name
        return name

    def labels_of_id(self, labels: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the labels that the ID of the series with these `labels` is made of."""
        labels = self._name_machine_of_id(labels)
        workload = labels.get(WORKLOAD)
        first = self._find_first(RenameKind.WORKLOAD, workload) if isinstance(workload, str) else workload
        return labels if first == workload else {**labels, WORKLOAD: first}

    def _name_machine_of_id(self, labels: Mapping[str, Any]) -> Mapping[str, Any]:
        if self.formerly is None or labels.get(ENV_NAME) != self.name:
            return labels
        if PATH in labels:  # the foreign numbers of such a home said nothing of a machine
            return {name: item for name, item in labels.items() if name != ENV_NAME}
        return {**labels, ENV_NAME: self.formerly}


def _split_name(experiment: str) -> tuple[str, str]:
    """Split a job's name into the experiment's own name and its host and TVM."""
    end = min((at for sign in "~@" if (at := experiment.find(sign)) > 0), default=len(experiment))
    return experiment[:end], experiment[end:]


def write(path: Path, identity: MachineIdentity) -> None:
    common.write_json(path, {"schema_version": SCHEMA_VERSION, **structured.to_json(identity)})


@dataclass(frozen=True)
class MachineChange:
    """A fact (machine_id, hw_model or env_name) that differs tonight from the one that the home keeps."""

    fact: str
    before: str
    now: str


def read(path: Path) -> MachineIdentity | None:
    """Read a machine.json; None where there is none. DashboardError names the fault."""
    if not path.is_file():
        return None
    try:
        value = common.read_json(path)
    except DashboardError as error:
        raise error.at(path, remedy=_REMEDY) from error
    structured.check_version(value, SCHEMA_VERSION, path, remedy=_REMEDY)
    return structured.from_json(MachineIdentity, value, path, remedy=_REMEDY)


def of_folder(folder: Path) -> MachineIdentity | None:
    """Return the machine of the home whose experiment's data folder is `folder`; None for other folders."""
    whole = folder.resolve()
    # HOME/results/experiments/data/NAME
    if len(whole.parents) < 3 or (whole.parents[1].name, whole.parents[2].name) != ("experiments", "results"):
        return None
    return read(whole.parents[2] / FILE)


def format_change(change: MachineChange) -> str:
    """Describe a change for people."""
    if change.fact == "machine_id":
        return f"This is a different machine: the machine-id changed from {change.before} to {change.now}."
    if change.fact == "hw_model":
        return f"The processor changed from {change.before} to {change.now}."
    return f"env_name {change.now!r} in the config differs from this home's machine name, {change.before!r}."
