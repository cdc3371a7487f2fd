"""Files of one value a line that only ever grow: ledgers, annotations, waivers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tvmdash.common.files.lock import wait_for_descriptor


def append(path: Path, values: Iterable[Mapping[str, Any]]) -> None:
    """Write the values behind what is there, in one write, under a lock; they survive a power cut.

    A line that was cut, as by a process that was killed while it wrote, costs itself only.
    """
    text = "".join(
        json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n" for value in values
    )
    with path.open("a+b") as file:
        wait_for_descriptor(file.fileno())
        if file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            text = text if file.read(1) == b"\n" else f"\n{text}"
        file.write(text.encode("utf-8", errors="replace"))
        file.flush()
        os.fsync(file.fileno())
