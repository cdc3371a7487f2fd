"""Results of a point's compiling process for the processes that measure it: libraries, data, facts.

Whoever prepares a point asks here, in both kinds of process alike: the first kind makes a thing and keeps it, the
second finds it. In a process that is neither, it is made and not kept.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar, cast

from tvmdash import common

FOLDER = "prebuilt"
"""Folder in the run's folder for all that is prebuilt, by side; removed at the run's end."""
LAYOUT = "TVMDASH_LAYOUT"
"""Variable with the layout in which libraries are linked, from 1 on; unset, the default one."""
MOST_LAYOUTS = 255
"""Layouts of one page of 4,096 bytes, in steps of 16."""
Value = TypeVar("Value")


@dataclass
class Prebuilt:
    """The prebuilt parts of one point; as a context manager, it is `current`.

    builds: this process makes what others find; asked: so many libraries.
    """

    folder: Path
    builds: bool
    asked: int = 0

    @classmethod
    def of(cls, raw: Path, side: str, point: str, *, builds: bool) -> Prebuilt:
        """Return that of the point with this key, in the run that leaves its measurements in `raw`."""
        return cls(raw / FOLDER / side / hashlib.sha256(point.encode()).hexdigest()[:16], builds)

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._token = _current.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)

    def next_stem(self, shared: str = "") -> Path:
        """Return the path, without its ending, of the next library; points always ask in the same order.

        One that several points share, by the name `shared`, lies beside their folders.
        """
        self.asked += 1
        common_stem = self.folder.with_name(f"shared_{hashlib.sha256(shared.encode()).hexdigest()[:16]}")
        return common_stem if shared else self.folder / f"library_{self.asked}"

    @property
    def layout(self) -> int:
        """Return the number of the layout in which its libraries are linked."""
        return int(os.environ.get(LAYOUT) or 0)

    def write_facts(self, facts: Any) -> None:
        """Write the compiling process's facts about the point."""
        common.write_json(self.folder / "facts.json", facts, durable=False)

    def read_facts(self) -> dict[str, Any]:
        return cast("dict[str, Any]", common.read_json(self.folder / "facts.json"))


_current: ContextVar[Prebuilt | None] = ContextVar("prebuilt", default=None)
current = _current.get
"""Return that of the point being prepared; None where nothing is kept of it."""


def keep(name: str, make: Callable[[], Value]) -> Value:
    """Return what `make` returns, such as inputs and their answer, or what it returned in the compiling process."""
    prebuilt = current()
    if prebuilt is None:
        return make()
    path = prebuilt.folder / f"{name}.pickle"
    if not prebuilt.builds:
        return cast("Value", pickle.loads(path.read_bytes()))  # noqa: S301 - this run's own process wrote it
    value = make()
    path.write_bytes(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))
    return value
