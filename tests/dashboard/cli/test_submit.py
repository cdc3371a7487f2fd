"""`submit` and the `serve` that it sends to: the same checks as `import`, whoever sends what, how often, and when."""

from __future__ import annotations

import gzip
import http.client
import json
import lzma
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from dashboard.cli import main as cli
from dashboard.cli import serve
from dashboard.cli.arguments import OK_CODE, SOME_FAILED, USAGE
from dashboard.night import lock
from dashboard.report import site_server
from tests.dashboard.importing.test_formats import gb, gb_row
from tvmdash import records
from tvmdash.dashboard_info import Home

TOKEN = "f" * 32
GOOD = gb([gb_row("BM_x", 1.0)]).encode()
MOST = 1 << 20


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "home" / "config").mkdir(parents=True)
    return Home(tmp_path / "home")


@pytest.fixture
def port(home: Home) -> Iterator[int]:
    desk = site_server.Desk(TOKEN, MOST, lambda submission: serve.accept(home, submission))
    with site_server.make_server(home, "127.0.0.1", 0, desk=desk) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def post(port: int, path: str, body: bytes = GOOD, **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    sent = {"Authorization": f"Bearer {TOKEN}", **{name.replace("_", "-"): text for name, text in headers.items()}}
    connection.request("POST", path, body, sent)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def kept(home: Home) -> dict[str, list[str]]:
    return {name: home.data_stamps(name) for name in home.experiments_with_data()}


def waiting(home: Home) -> list[Path]:
    return sorted((home.root / "results" / "inbox").glob("*"))


def test_a_submission_is_imported_once_however_often_it_comes(home: Home, port: int) -> None:
    status, text = post(port, "/submit/night.json?machine=runner&tvm=abc123")
    assert (status, kept(home)) == (200, {"bm": ["20261021T030000Z"]}), text
    night = records.read_data(home.data_file("bm", "20261021T030000Z"), "bm")
    assert (night.tvm_hash, night.records[0].env_name) == ("abc123", "runner")
    for body, name in ((GOOD, "night.json"), (gzip.compress(GOOD), "other.json.gz")):
        status, text = post(port, f"/submit/{name}", body)
        assert (status, "already imported" in text) == (200, True)
    assert kept(home) == {"bm": ["20261021T030000Z"]}
    assert waiting(home) == []


@pytest.mark.parametrize("given", ["", "Bearer ", f"Bearer {TOKEN}x", TOKEN, f"Basic {TOKEN}", "Bearer \xff"])
def test_who_has_no_token_is_refused(given: str, home: Home, port: int) -> None:
    assert post(port, "/submit/night.json", Authorization=given)[0] == 401
    assert kept(home) == {}


@pytest.mark.parametrize(
    ("path", "body", "headers", "status"),
    [
        ("/submit/../x.json", GOOD, {}, 404),
        ("/submit/%2e%2e%2fx.json", GOOD, {}, 404),
        ("/submit/.hidden", GOOD, {}, 404),
        ("/submit/", GOOD, {}, 404),
        ("/other/x.json", GOOD, {}, 404),
        ("/submit/x.json", GOOD, {"Host": "evil.example.org"}, 421),
        ("/submit/x.json", GOOD, {"Content_Length": "-1"}, 411),
        ("/submit/x.json", GOOD, {"Content_Length": "9" * 30}, 411),
        ("/submit/x.json", GOOD, {"Content_Length": str(MOST + 1)}, 413),
        ("/submit/x.json", GOOD, {"Transfer_Encoding": "chunked"}, 411),
        ("/submit/x.json", b"not JSON", {}, 422),
        ("/submit/x.json", b"", {}, 422),
        ("/submit/x.json", b"[" * 100_000, {}, 422),
        ("/submit/x.json.xz", lzma.compress(bytes(65 << 20)), {}, 422),
        ("/submit/x.tar.gz", b"not a tar", {}, 422),
        ("/submit/x.json", gb([], "yesterday").encode(), {}, 422),
        ("/submit/x.json?experiment=../../up", GOOD, {}, 422),
        ("/submit/x.json?timezone=../../etc/passwd", GOOD, {}, 422),
        ("/submit/x.json?machine=%0a", GOOD, {}, 422),
    ],
)
def test_what_is_hostile_costs_itself(
    path: str, body: bytes, headers: dict[str, str], status: int, home: Home, port: int
) -> None:
    assert post(port, path, body, **headers)[0] == status
    assert (kept(home), waiting(home)) == ({}, [])
    assert post(port, "/submit/good.json")[0] == 200


def test_a_body_that_is_cut_off_leaves_nothing(home: Home, port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=120) as connection:
        head = f"POST /submit/x.json HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
        connection.sendall(head.encode() + b"Content-Length: 1000\r\n\r\n" + GOOD[:100])
        connection.shutdown(socket.SHUT_WR)
        assert b" 408 " in connection.recv(1000)
    assert (kept(home), waiting(home)) == ({}, [])


def test_what_comes_while_a_night_runs_is_kept_for_the_next(home: Home, port: int) -> None:
    with lock.night_lock(home):
        assert [post(port, "/submit/night.json")[0] for _ in range(2)] == [202, 202]
    assert (kept(home), len(waiting(home))) == ({}, 1)
    assert any("1 nights taken" in line for line in serve.take_inbox(home))
    assert (kept(home), waiting(home)) == ({"bm": ["20261021T030000Z"]}, [])


def test_a_kill_before_the_import_loses_nothing(home: Home, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(serve, "take_inbox", lambda _: 1 / 0)  # as if it had ended there
        with pytest.raises((http.client.HTTPException, OSError)):
            post(port, "/submit/night.json")
    assert len(waiting(home)) == 1
    assert post(port, "/submit/night.json")[0] == 200
    assert (kept(home), waiting(home)) == ({"bm": ["20261021T030000Z"]}, [])


@pytest.mark.parametrize(
    "damaged", [b"", b"[]\n", b"{}\nx", b'{"name": "x.json", "tvm"', b'{"name": "x.json"}\nno JSON']
)
def test_what_cannot_be_imported_after_all_is_kept_and_costs_itself_alone(
    damaged: bytes, home: Home, port: int
) -> None:
    with lock.night_lock(home):
        assert post(port, "/submit/night.json")[0] == 202
    (home.root / "results" / "inbox" / "0.submission").write_bytes(damaged)
    told = list(serve.take_inbox(home))
    assert kept(home) == {"bm": ["20261021T030000Z"]}
    (refused,) = waiting(home)
    assert (refused.name, refused.read_bytes()) == ("0.refused", damaged)
    assert any(str(refused) in line for line in told)
    assert list(serve.take_inbox(home)) == []


def test_a_full_disk_leaves_a_submission_for_the_next_night(
    home: Home, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with lock.night_lock(home):
        assert post(port, "/submit/night.json")[0] == 202
    with monkeypatch.context() as patch:
        patch.setattr(serve, "_import", lambda *_, **__: open("/dev/full/x"))  # noqa: SIM115 - it opens nothing
        (line,) = serve.take_inbox(home)
    assert str(waiting(home)[0]) in line
    assert any("1 nights taken" in line for line in serve.take_inbox(home))


def test_without_a_token_file_nothing_is_taken(home: Home) -> None:
    with site_server.make_server(home, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        assert post(server.server_address[1], "/submit/night.json")[0] == 501
        server.shutdown()
        thread.join()


def test_the_command_sends_files_and_tells_what_became_of_them(
    home: Home, port: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secret, good, bad = tmp_path / "token", tmp_path / "good.json", tmp_path / "bad.json"
    secret.write_text(TOKEN)
    secret.chmod(0o600)
    good.write_bytes(GOOD)
    bad.write_text("{")
    address, given = f"http://127.0.0.1:{port}", ["--token-file", str(secret)]
    assert cli.main(["submit", address, str(good), *given, "--experiment", "mine"]) == OK_CODE
    assert "1 nights taken" in capsys.readouterr().out
    assert kept(home) == {"mine": ["20261021T030000Z"]}
    assert cli.main(["submit", address, str(good), str(bad), *given]) == SOME_FAILED
    for url in ("http://example.org", f"http://127.0.0.1:{port}@example.org", "ftp://127.0.0.1"):
        assert cli.main(["submit", url, str(good), *given]) == USAGE
    secret.chmod(0o644)
    assert cli.main(["submit", address, str(good), *given]) == USAGE


def test_a_token_is_not_taken_in_the_clear(home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home.config_file.write_text(json.dumps({}))
    words = ["serve", str(home.root), "--token-file", str(tmp_path / "token"), "--bind", "0.0.0.0"]
    assert cli.main(words) == USAGE
    assert "--bind 0.0.0.0" in capsys.readouterr().err
