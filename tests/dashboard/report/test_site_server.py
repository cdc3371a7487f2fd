"""`python3 -m dashboard serve HOME`: only the site's own files, of the site that is there at the moment."""

from __future__ import annotations

import contextlib
import gzip
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from dashboard.report import site_server
from tests.dashboard.site_client import FILES, Client, publish
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError

REPO = Path(__file__).resolve().parents[3]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "a home, ÄÖ")
    publish(made)
    return made


@pytest.fixture
def client(home: Home) -> Iterator[Client]:
    with site_server.make_server(home, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield Client(server.server_address[1])
        server.shutdown()
        thread.join()


def test_files_have_their_types_and_are_asked_for_again_each_time(client: Client) -> None:
    kinds = {name: client.ask("/" + name).headers["Content-Type"] for name in ("index.html", "index.json", "js/app.js")}
    assert kinds == {
        "index.html": "text/html; charset=utf-8",
        "index.json": "application/json",
        "js/app.js": "text/javascript; charset=utf-8",
    }
    assert client.ask("/receipts/n/e.perfetto-trace").headers["Content-Type"] == "application/octet-stream"
    first = client.ask("/")
    assert (first.status, first.body) == (200, FILES["index.html"].encode())
    assert first.headers["Cache-Control"] == "no-cache"
    assert first.headers["X-Content-Type-Options"] == "nosniff"
    assert first.headers["Content-Security-Policy"].startswith("default-src 'self'")
    assert "sandbox" in client.ask("/graphs/a/tonight.svg").headers["Content-Security-Policy"]
    assert client.ask("/nights/2026%20%C3%A4.html").body == b"one"
    assert client.ask("/index.html?night=1").status == 200


def test_text_is_compressed_where_the_reader_takes_it(client: Client) -> None:
    plain = client.ask("/index.html", Accept_Encoding="br")
    zipped = client.ask("/index.html", Accept_Encoding="br, gzip;q=0.5")
    assert zipped.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(zipped.body) == plain.body
    assert len(zipped.body) < len(plain.body) / 10
    assert zipped.headers["Vary"] == "Accept-Encoding"
    assert plain.headers["ETag"] != zipped.headers["ETag"]
    assert "Content-Encoding" not in client.ask("/index.html", Accept_Encoding="gzip;q=0").headers
    assert "Content-Encoding" not in client.ask("/receipts/n/e.perfetto-trace", Accept_Encoding="gzip").headers


def test_what_the_reader_has_is_not_sent_again(client: Client, home: Home) -> None:
    tag = client.ask("/index.json").headers["ETag"]
    again = client.ask("/index.json", If_None_Match=f'"other", W/{tag}')
    assert (again.status, again.body) == (304, b"")
    publish(home)
    assert client.ask("/index.json", If_None_Match=tag).status == 200, "another publish, another file"


def test_the_swap_of_the_site_is_followed(client: Client, home: Home) -> None:
    publish(home, {"index.html": "the next night", "js/new.js": "1"})
    assert client.ask("/").body == b"the next night"
    assert client.ask("/js/new.js").status == 200
    assert client.ask("/js/app.js").status == 404


@pytest.mark.parametrize(
    "target",
    [
        "/../report.json",
        "/%2e%2e/report.json",
        "/nights/../../report.json",
        "/..%2freport.json",
        "//etc/passwd",
        "/%2fetc/passwd",
        "/nights//index.html",
        "/index.html%00.js",
        "/index.html/",
        "/%ff",
        "/link.html",
        "/linked/secret.txt",
        "/pipe",
        "/js",
        "/js/",
    ],
)
def test_nothing_else_is_given_out(client: Client, home: Home, tmp_path: Path, target: str) -> None:
    site = home.output("website")
    (site.parent / "report.json").write_text("secret", encoding="ascii")
    (tmp_path / "secret.txt").write_text("secret", encoding="ascii")
    (site / "link.html").symlink_to(tmp_path / "secret.txt")
    (site / "linked").symlink_to(tmp_path)
    os.mkfifo(site / "pipe")
    answer = client.ask(target)
    assert answer.status in {400, 404}
    assert b"secret" not in answer.body
    assert b"app.js" not in answer.body, "no list of a folder"


def test_a_folder_leads_to_its_page(client: Client) -> None:
    answer = client.ask("/nights")
    assert (answer.status, answer.headers["Location"]) == (301, "/nights/")
    assert client.ask("/nights/").body == b"all nights"


def test_only_reading_is_answered(client: Client) -> None:
    assert client.ask("/index.html", "POST", Content_Length="0").status == 501
    head = client.ask("/index.html", "HEAD")
    assert (head.status, head.body) == (200, b"")
    assert head.headers["Content-Length"] == str(len(FILES["index.html"]))


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1", 200),
        ("127.0.0.1:8000", 200),
        ("[::1]:8000", 200),
        ("192.0.2.7", 200),
        ("LocalHost:8000", 200),
        (socket.gethostname(), 200),
        ("bench.example.org", 200),
        ("evil.example", 421),
        ("localhost.evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("[::1", 421),
        ("", 421),
    ],
)
def test_only_who_asks_for_this_machine_is_answered(home: Home, host: str, status: int) -> None:
    with site_server.make_server(home, "127.0.0.1", 0, ["Bench.example.org."]) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        with contextlib.closing(socket.create_connection(server.server_address[:2], timeout=120)) as connection:
            connection.sendall(f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))
        server.shutdown()
        thread.join()
    assert int(answer.split()[1]) == status
    assert (FILES["index.html"].encode() in answer) == (status == 200)


@contextlib.contextmanager
def serving(home: Home) -> Iterator[tuple[str, int]]:
    """The address of a server of the home's site."""
    with site_server.make_server(home, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield str(server.server_address[0]), server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def is_closed(connection: socket.socket) -> bool:
    """Whether the server ends the connection; it is waited for."""
    connection.settimeout(20)
    try:
        while connection.recv(1 << 16):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        return True
    return True


def test_who_comes_when_every_place_is_taken_gets_that_of_the_one_idle_for_longest(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site_server.LimitedServer, "most_connections", 2)
    with serving(home) as address, contextlib.ExitStack() as opened:
        idle = [opened.enter_context(socket.create_connection(address, timeout=120)) for _ in range(2)]
        for one in idle:
            one.sendall(b"GET /index.json HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert one.recv(1 << 16).startswith(b"HTTP/1.1 200")
        late = opened.enter_context(socket.create_connection(address, timeout=120))
        late.sendall(b"GET /index.json HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert late.recv(1 << 16).startswith(b"HTTP/1.1 200")
        assert is_closed(idle[0])


@contextlib.contextmanager
def dripping(address: tuple[str, int], count: int) -> Iterator[list[socket.socket]]:
    """So many connections, each of which sends the head of a request byte by byte and never its end."""
    stop = threading.Event()
    with contextlib.ExitStack() as opened:
        connections = [opened.enter_context(socket.create_connection(address, timeout=120)) for _ in range(count)]

        def drip() -> None:
            while not stop.wait(0.1):
                for connection in connections:
                    with contextlib.suppress(OSError):
                        connection.send(b"x", socket.MSG_DONTWAIT)

        for connection in connections:
            connection.sendall(b"GET / HTTP/1.1\r\nX-Slow: ")
        dropping = threading.Thread(target=drip)
        dropping.start()
        try:
            yield connections
        finally:
            stop.set()
            dropping.join()


def test_connections_that_drip_stop_nobody_else(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_server.LimitedServer, "head_s", 1000.0)
    with serving(home) as address, dripping(address, 140) as connections:
        for _ in range(5):
            assert Client(address[1]).ask("/index.json").status == 200
        assert is_closed(connections[0]), "so many would use up the files that a process may open"


def test_a_request_that_drips_is_ended(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_server.LimitedServer, "head_s", 0.5)
    with serving(home) as address, dripping(address, 1) as (connection,):
        assert is_closed(connection)


def test_readers_that_do_not_read_their_answers_stop_nobody_else(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_server.LimitedServer, "most_connections", 3)
    monkeypatch.setattr(site_server.LimitedServer, "answer_s", 0.2)
    monkeypatch.setattr(site_server.Handler, "timeout", 600)
    publish(home, {**FILES, "large.bin": "x" * 30_000_000})
    with serving(home) as address, contextlib.ExitStack() as opened:
        for _ in range(3):
            reader = opened.enter_context(socket.create_connection(address, timeout=120))
            reader.sendall(b"GET /large.bin HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert reader.recv(1000).startswith(b"HTTP/1.1 200")
        assert Client(address[1]).ask("/index.json").status == 200


def test_a_home_without_a_site_says_so_and_shows_it_when_it_comes(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with site_server.make_server(home, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        client = Client(server.server_address[1])
        assert b"There is no site yet" in client.ask("/").body
        publish(home)
        assert client.ask("/").status == 200
        server.shutdown()
        thread.join()


def test_a_taken_port_and_a_missing_home_are_told(home: Home, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(DashboardError, match="Try --port 0"):
            site_server.make_server(home, "127.0.0.1", taken.getsockname()[1])
    with pytest.raises(DashboardError, match="no such folder"):
        site_server.make_server(Home(tmp_path / "nowhere"), "127.0.0.1", 0)


@contextlib.contextmanager
def served(home: Home) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command while it runs, and the line that it begins with."""
    environment = {**os.environ, "PYTHONPATH": f"{REPO}:{REPO / 'shared' / 'python'}"}
    argv = [sys.executable, "-m", "dashboard", "serve", str(home.root)]
    with subprocess.Popen(argv, cwd=REPO, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline()
        finally:
            process.kill()


def test_the_command_says_its_address_and_ends_with_ctrl_c(home: Home) -> None:
    with served(home) as (process, line):
        port = urlsplit(line.split()[0]).port
        assert port
        assert Client(port).ask("/").status == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    assert line.endswith(f"serves the website of {home.root}. Press Ctrl-C to stop.\n")


def test_the_command_does_not_claim_a_website_that_is_not_there(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.config_file.parent.mkdir()
    home.config_file.write_text("{}")
    with served(home) as (_, line):
        begin, _, address = line.partition(" http")
        assert (
            begin == f"{tmp_path} has no website yet. The subsystem `website` writes it during a night; it will then "
            "be served at"
        )
        port = urlsplit(f"http{address}".split()[0]).port
        assert port
        assert b"There is no site yet" in Client(port).ask("/").body
