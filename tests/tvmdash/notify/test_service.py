"""All routes of a home told together: one run at a time."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from tests.dashboard.homes import release_after
from tests.tvmdash.notify.route_homes import RouteHome
from tvmdash.common.files import lock
from tvmdash.errors import DashboardError
from tvmdash.notify.state import SUBSYSTEM


@pytest.mark.parametrize(("held_s", "is_told"), [(8.0, True), (60.0, False)])
def test_a_run_waits_for_another_that_ends_soon_and_says_so_where_it_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held_s: float, *, is_told: bool
) -> None:
    home = RouteHome(tmp_path)
    output = home.home.output(SUBSYSTEM)
    output.mkdir(parents=True)
    other = lock.take(output / ".routes.lock")
    assert other is not None
    release_after(monkeypatch, other, held_s)
    refused = pytest.raises(DashboardError, match="another run is sending messages")
    with other, contextlib.nullcontext() if is_told else refused:
        home.tell_all(0)
