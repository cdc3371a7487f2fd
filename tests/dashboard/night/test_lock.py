"""Who holds a home: one at a time, and what lets nights pass is waited for."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path

import pytest

from dashboard.night import lock
from tests.dashboard import homes
from tvmdash.common.files import lock as file_lock
from tvmdash.dashboard_info import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_a_night_fails_at_once_where_the_holder_lets_no_night_pass(home: Home) -> None:
    with (
        lock.night_lock(home),
        pytest.raises(lock.HeldError, match="another night is using"),
        lock.night_lock(home, waits=True),
    ):
        pass


def test_a_night_waits_for_the_end_of_a_turn(home: Home) -> None:
    begun = threading.Event()

    def run_night() -> None:
        with lock.night_lock(home, waits=True):
            begun.set()

    night = threading.Thread(target=run_night)
    with lock.take_turn(home), lock.night_lock(home):
        night.start()
        homes.wait_for(lambda: file_lock.is_held(home.waiting_file), "the night's wait")
        assert not begun.is_set()
    night.join(timeout=300)
    assert begun.is_set()


def test_no_turn_begins_while_a_night_waits(home: Home) -> None:
    waiting = file_lock.take(home.waiting_file)
    assert waiting is not None
    with waiting, pytest.raises(lock.HeldError, match="a night is waiting"), lock.take_turn(home):
        pass
    with lock.take_turn(home), lock.night_lock(home):
        pass


def test_two_commands_do_not_take_their_turns_at_once(home: Home) -> None:
    with lock.take_turn(home), pytest.raises(lock.HeldError, match="another command"), lock.take_turn(home):
        pass


@pytest.mark.parametrize(("held_s", "is_taken"), [(0.15, True), (5.0, False)])
def test_a_night_outlasts_who_only_asks_whether_the_home_is_held_and_nobody_else(
    home: Home, monkeypatch: pytest.MonkeyPatch, held_s: float, *, is_taken: bool
) -> None:
    holder = file_lock.take(home.lock_file)
    assert holder is not None
    homes.release_after(monkeypatch, holder, held_s)
    with holder, contextlib.nullcontext() if is_taken else pytest.raises(lock.HeldError), lock.night_lock(home):
        pass
