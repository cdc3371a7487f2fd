"""What is asked of a machine's drivers."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from dashboard.artifacts.runtimes.drivers import _list_handles


@pytest.mark.parametrize(("code", "count", "handles"), [(0, 2, [11, 12]), (0, 0, []), (-1001, 0, []), (-5, 2, [])])
def test_handles_are_those_of_a_driver_that_answers_without_an_error(code: int, count: int, handles: list[int]) -> None:
    def ask(room: int, places: Any, counted: Any) -> int:
        if counted is not None:
            ctypes.cast(counted, ctypes.POINTER(ctypes.c_uint))[0] = count
        for at in range(room):
            places[at] = 11 + at
        return code

    assert _list_handles(ask) == handles
