"""What a point's compiling process leaves for the processes that measure it: libraries, data, and facts of them.

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
"""In a run's folder, all that is prebuilt, by side; it is gone when the run has ended."""
LAYOUT = "TVMDASH_LAYOUT"
"""The variable that says in which layout libraries are linked, from 1 on; as they come where it is not set."""
MOST_LAYOUTS = 255
"""Of one page of 4,096 bytes, in steps of 16."""
Value = TypeVar("Value")


@dataclass
class Prebuilt:
    """Of one point; as a context, what is asked for inside is this point's.

    builds: this process makes what others find; asked: so many libraries.
    """

    folder: Path
    builds: bool
    asked: int = 0

    @classmethod
    def of(cls, raw: Path, side: str, point: str, *, builds: bool) -> Prebuilt:
        """Of the point with this key, in the run that leaves its measurements in `raw`."""
        return cls(raw / FOLDER / side / hashlib.sha256(point.encode()).hexdigest()[:16], builds)

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._token = _current.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)

    def next_stem(self, shared: str = "") -> Path:
        """The path, without its ending, of the library that is asked for next: points ask in the same order always.

        One that several points share, by the name `shared`, lies beside their folders.
        """
        self.asked += 1
        common_stem = self.folder.with_name(f"shared_{hashlib.sha256(shared.encode()).hexdigest()[:16]}")
        return common_stem if shared else self.folder / f"library_{self.asked}"

    @property
    def layout(self) -> int:
        """The number of the layout in which its libraries are linked."""
        return int(os.environ.get(LAYOUT) or 0)

    def write_facts(self, facts: Any) -> None:
        """Say what the compiling process knows of the point."""
        common.write_json(self.folder / "facts.json", facts, durable=False)

    def read_facts(self) -> dict[str, Any]:
        """What it said."""
        return cast("dict[str, Any]", common.read_json(self.folder / "facts.json"))


_current: ContextVar[Prebuilt | None] = ContextVar("prebuilt", default=None)
current = _current.get
"""That of the point that is being prepared; None where nothing is kept of it."""


def keep(name: str, make: Callable[[], Value]) -> Value:
    """What `make` gives, such as inputs and the answer to them, or what it gave in the point's compiling process."""
    prebuilt = current()
    if prebuilt is None:
        return make()
    path = prebuilt.folder / f"{name}.pickle"
    if not prebuilt.builds:
        return cast("Value", pickle.loads(path.read_bytes()))  # noqa: S301 - this run's own process wrote it
    value = make()
    path.write_bytes(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))
    return value
