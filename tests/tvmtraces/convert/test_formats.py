"""Whatever the format, a broken source leaves nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tvmdash.errors import DashboardError
from tvmtraces.convert import (
    Counter,
    Event,
    Slice,
    Written,
    write_perfetto,
    write_rocpd,
)

MOMENT = 1_795_000_000_123_456_789
EVENTS: list[Event] = [
    Slice("night", "night", "a night", "night", MOMENT, 100_000, 1, {"tvm": "0.27"}),
    Slice("p", "trials", 'x "quoted", with a comma\nand a line', "trial", MOMENT + 1, 90_000, 2),
    Slice("p", "trials", "overlaps", "trial", MOMENT + 2, 95_000),
    Counter("p", "load", "cores", MOMENT + 3, 0.5),
    Counter("p", "load", "cores", MOMENT + 4, float("nan")),
]
WRITERS = [write_perfetto, write_rocpd]


@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__)
def test_a_source_that_breaks_leaves_nothing(write: Callable[[Path, Iterator[Event]], Written], tmp_path: Path) -> None:
    def failing() -> Iterator[Event]:
        yield from EVENTS
        raise DashboardError("the source broke")

    with pytest.raises(DashboardError, match="the source broke"):
        write(tmp_path / "x.out", failing())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__)
def test_a_folder_that_is_missing_is_said(write: Callable[[Path, list[Event]], Written], tmp_path: Path) -> None:
    with pytest.raises(DashboardError, match="no such folder"):
        write(tmp_path / "no" / "x.out", EVENTS)
