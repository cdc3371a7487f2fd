"""`serve` and `submit` as processes: killed before each step, sent the same at once, and sent the worst."""

from __future__ import annotations

import contextlib
import gzip
import http.client
import json
import os
import signal
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dashboard.cli import main as cli
from dashboard.cli import serve
from dashboard.cli.arguments import OK_CODE, SOME_FAILED
from dashboard.report import site_server
from tests.dashboard.cli.test_submit import GOOD, TOKEN, post, waiting
from tests.dashboard.importing.test_formats import gb, gb_row
from tests.dashboard.killed import in_a_child, is_change, kill_at
from tvmdash import common, records
from tvmdash.dashboard_info import Home

STAMP = "20261021T030000Z"
ONE = {"bm": [STAMP]}
MOST_STEPS = 200
LARGE = gb([gb_row(f"BM_{number}", 1.0, label="x" * 100) for number in range(200)]).encode()


def make_home(root: Path) -> Home:
    home = Home(root)
    home.config_file.parent.mkdir(parents=True)
    home.config_file.write_text("{}")
    return home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return make_home(tmp_path / "home")


@pytest.fixture
def token(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.touch(mode=0o600)
    path.write_text(TOKEN)
    return path


@contextlib.contextmanager
def serving(home: Home, token: Path, *, step: int | None = None, body_s: float = 60.0) -> Iterator[tuple[int, int]]:
    """The process of a `serve` and its port. step: it is killed before its so manyeth change below the home."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            site_server._BODY_S, site_server.Handler.timeout = body_s, body_s  # type: ignore[misc,assignment]
            os.dup2(writing, 1)
            if step is not None:
                kill_at(step, partial(is_change, home.root))
            with open(1, "w", closefd=False) as said, contextlib.redirect_stdout(said):
                cli.main(["serve", str(home.root), "--token-file", str(token)])
        os._exit(1)
    os.close(writing)
    with open(reading) as said:
        port = int(said.readline().partition("http://127.0.0.1:")[2].partition("/")[0])
    try:
        yield child, port
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child, 0)


def kept(home: Home) -> dict[str, list[str]]:
    """The nights of each experiment that has any."""
    return {name: stamps for name in home.experiments_with_data() if (stamps := home.data_stamps(name))}


def send(port: int, body: bytes = GOOD) -> int | None:
    """The status of the answer; None where the server went away before it."""
    try:
        return post(port, "/submit/night.json", body)[0]
    except (OSError, http.client.HTTPException):
        return None


def check_whole(home: Home) -> None:
    """All that is kept can be read, and nothing is half."""
    for name, stamps in kept(home).items():
        for stamp in stamps:
            assert len(records.read_data(home.data_file(name, stamp), name).records) == 1


def test_a_receiver_killed_before_any_step_keeps_what_it_acknowledged_and_takes_a_replay_once(
    tmp_path: Path, token: Path
) -> None:
    outcomes: Counter[str] = Counter()
    for step in range(MOST_STEPS):
        home = make_home(tmp_path / f"home-{step}")
        with serving(home, token, step=step) as (_, port):
            status = send(port)
        inbox = [path for path in waiting(home) if path.suffix == ".submission"]
        check_whole(home)
        assert kept(home) in ({}, ONE)
        if inbox and step % 2:
            outcomes["taken by the next night"] += 1
            list(serve.take_inbox(home))
            assert kept(home) == ONE
        with serving(home, token) as (_, port):
            assert send(port) == 200
            assert send(port) == 200
        assert kept(home) == ONE
        common.remove_unfinished(home.root / "results" / "inbox")  # as each night does
        assert waiting(home) == []
        outcomes["answered" if status == 200 else "killed"] += 1
        if status is not None:
            break
    assert (outcomes["answered"], status) == (1, 200)
    assert outcomes["killed"] > 10
    assert outcomes["taken by the next night"] > 3


def submit(port: int, token: Path, *files: Path) -> int:
    return cli.main(["submit", f"http://127.0.0.1:{port}", *map(str, files), "--token-file", str(token)])


def submit_and_die(step: int, port: int, token: Path, file: Path) -> None:
    """Send the file, and be killed before the `step`-th of: reading it, connecting, sending a part."""
    sending = {"socket.connect", "http.client.send"}
    kill_at(step, lambda event, arguments: event in sending or (event == "open" and arguments[0] == str(file)))
    assert submit(port, token, file) == OK_CODE


def test_a_sender_killed_before_any_step_leaves_all_or_nothing_and_its_next_try_is_taken_once(
    tmp_path: Path, token: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "night.json"
    file.write_bytes(LARGE)
    for step in range(MOST_STEPS):
        home = make_home(tmp_path / f"home-{step}")
        with serving(home, token) as (_, port):
            code = in_a_child(partial(submit_and_die, step, port, token, file))
            assert code in (0, -signal.SIGKILL)
            assert kept(home) in ({}, ONE)
            assert submit(port, token, file) == OK_CODE
        assert (kept(home), waiting(home)) == (ONE, [])
        assert len(records.read_data(home.data_file("bm", STAMP), "bm").records) == 200
        if code == 0:
            break
    assert code == 0
    assert step > 3
    capsys.readouterr()


def test_the_same_bytes_from_many_at_once_are_one_night(home: Home, token: Path) -> None:
    answers: list[int | None] = []
    with serving(home, token) as (_, port):
        threads = [threading.Thread(target=lambda: answers.append(send(port))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert answers == [200] * 8
    assert (kept(home), waiting(home)) == (ONE, [])


HOSTILE: dict[str, tuple[bytes, int]] = {
    "bomb.json.gz": (gzip.compress(bytes(65 << 20)), 422),
    "twice.json": (GOOD.replace(b'"benchmarks"', b'"context": {}, "benchmarks"'), 422),
    "deep.json": (b'{"context":' * 10_000, 422),
    "half.json": (GOOD[:-5], 422),
    "surrogate.json": (GOOD.replace(b"BM_x", b"\\ud800"), 422),
    "huge.json": (
        gb([gb_row("BM_x", 1.0)], "2026-10-21T03:00:00+00:00", num_cpus=1).replace("9", "9" * 5000).encode(),
        422,
    ),
    "outside.tar": (b"../../x" + bytes(10_233), 422),
    ".hidden.json": (GOOD, 404),
    "a%2Fb.json": (GOOD, 404),
    "x.exe": (GOOD, 422),
}


def test_the_worst_bodies_cost_themselves_and_the_next_good_one_is_taken(home: Home, token: Path) -> None:
    with serving(home, token) as (_, port):
        told = {name: post(port, f"/submit/{name}", body)[0] for name, (body, _) in HOSTILE.items()}
        assert told == {name: status for name, (_, status) in HOSTILE.items()}
        assert (kept(home), waiting(home)) == ({}, [])
        assert send(port) == 200
    assert kept(home) == ONE


def test_numbers_that_are_none_are_left_out(home: Home, token: Path) -> None:
    rows = [gb_row("BM_x", 1.0), gb_row("BM_nan", float("nan")), gb_row("BM_inf", float("inf"))]
    with serving(home, token) as (_, port):
        assert send(port, gb(rows).encode()) == 200
    check_whole(home)
    assert kept(home) == ONE


def trickle(port: int, pieces: list[bytes], pause: threading.Event) -> bytes:
    """The answer to a body of which only these pieces come, one after each pause."""
    head = f"POST /submit/x.json HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=120) as connection:
        connection.sendall(head.encode() + b"Content-Length: 1000\r\n\r\n")
        with contextlib.suppress(OSError):
            for piece in pieces:
                connection.sendall(piece)
                pause.wait(0.05)
        return connection.recv(1000)


@pytest.mark.parametrize("pieces", [[b"{"], [b"x"] * 900], ids=["stalls", "drips"])
def test_a_slow_sender_is_told_and_leaves_nothing(home: Home, token: Path, pieces: list[bytes]) -> None:
    with serving(home, token, body_s=0.5) as (_, port):
        assert b" 408 " in trickle(port, pieces, threading.Event())
        assert send(port) == 200
    assert kept(home) == ONE


def test_a_wrong_token_is_refused_before_the_body_is_read(home: Home, token: Path) -> None:
    token.write_text("e" * 32)
    with serving(home, token) as (_, port):
        assert send(port) == 401
        assert post(port, "/submit/x.json", b"", Content_Length="60000000")[0] == 401
    assert (kept(home), waiting(home)) == ({}, [])


def test_the_command_tells_of_a_server_that_goes_away(
    home: Home, token: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve.time, "sleep", lambda _: None)
    file = tmp_path / "night.json"
    file.write_bytes(GOOD)
    with serving(home, token, step=3) as (_, port):
        assert submit(port, token, file) not in (OK_CODE, SOME_FAILED)
        said: Any = capsys.readouterr()
        assert f"http://127.0.0.1:{port}" in said.err
    assert json.dumps(kept(home)) == "{}"
