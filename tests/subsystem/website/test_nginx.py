"""The nginx of docs/serving.md, run with exactly that snippet but for its port and folder."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dashboard.site_client import FILES, Client, publish
from tvmdash.dashboard_info import Home

REPO = Path(__file__).resolve().parents[3]
NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
pytestmark = pytest.mark.skipif(not NGINX, reason="nginx is not installed (Debian, Ubuntu: apt install nginx-light)")


def snippet(site: Path, port: int) -> str:
    found = re.search(r"```nginx\n(.*?)```", (REPO / "docs" / "serving.md").read_text(encoding="utf-8"), re.DOTALL)
    assert found
    text, roots = re.subn(r"root /\S+;", f'root "{site}";', found[1])
    text, ports = re.subn(r"listen 80;", f"listen 127.0.0.1:{port};", text)
    assert (roots, ports) == (1, 1)
    return text


def configuration(folder: Path, site: Path, port: int) -> str:
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = "\n".join(f'{kind}_temp_path "{folder / kind}";' for kind in kinds)
    user = "user root;\n" if os.getuid() == 0 else ""  # the tests' folder is nobody else's
    return (
        f'{user}daemon off;\npid "{folder / "pid"}";\nerror_log stderr;\nevents {{}}\n'
        f"http {{\naccess_log off;\n{places}\n{snippet(site, port)}}}\n"
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def begun(folder: Path, site: Path) -> tuple[subprocess.Popen[str], int]:
    """An nginx that answers, and its port; another port where somebody else was quicker."""
    for _ in range(5):
        port = free_port()
        (folder / "nginx.conf").write_text(configuration(folder, site, port), encoding="utf-8")
        argv = [str(NGINX), "-e", "stderr", "-p", str(folder), "-c", str(folder / "nginx.conf")]
        process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
        while process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=5).close()
            except ConnectionRefusedError:
                continue
            return process, port
        said = process.communicate()[1]
        assert "Address already in use" in said, said
    raise AssertionError("no port was free for nginx")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home")
    publish(made)
    return made


@pytest.fixture
def client(home: Home, tmp_path: Path) -> Iterator[Client]:
    (tmp_path / "nginx").mkdir()
    process, port = begun(tmp_path / "nginx", home.output("website"))
    yield Client(port)
    process.terminate()
    process.communicate(timeout=20)


def test_nginx_serves_the_site_with_types_policies_and_compression(client: Client, home: Home) -> None:
    first = client.ask("/")
    assert (first.status, first.body) == (200, FILES["index.html"].encode())
    assert first.headers["Content-Type"] == "text/html; charset=utf-8"
    assert first.headers["Cache-Control"] == "no-cache"
    assert first.headers["X-Content-Type-Options"] == "nosniff"
    assert first.headers["Content-Security-Policy"].startswith("default-src 'self'; base-uri 'none'")
    assert client.ask("/js/app.js").headers["Content-Type"] == "text/javascript; charset=utf-8"
    assert client.ask("/index.json").headers["Content-Type"] == "application/json"
    assert client.ask("/receipts/n/e.perfetto-trace").headers["Content-Type"] == "application/octet-stream"
    graph = client.ask("/graphs/a/tonight.svg").headers
    assert "sandbox" in graph["Content-Security-Policy"]
    assert graph.get_all("Content-Security-Policy") == [graph["Content-Security-Policy"]]
    zipped = client.ask("/index.html", Accept_Encoding="gzip")
    assert zipped.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(zipped.body) == first.body
    assert client.ask("/index.html", If_None_Match=first.headers["ETag"]).status == 304


def test_nginx_follows_the_swap_and_gives_out_nothing_else(client: Client, home: Home, tmp_path: Path) -> None:
    site = publish(home, {"index.html": "the next night", "js/app.js": "1"})
    assert client.ask("/").body == b"the next night"
    (tmp_path / "secret.txt").write_text("secret", encoding="ascii")
    (site / "link.txt").symlink_to(tmp_path / "secret.txt")
    for target in ("/../secret.txt", "/%2e%2e/secret.txt", "/link.txt", "/js/", "/nights/"):
        answer = client.ask(target)
        assert answer.status in {400, 403, 404}
        assert b"secret" not in answer.body
