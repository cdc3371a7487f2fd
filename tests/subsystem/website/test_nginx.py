"""The nginx of docs/how-to/serve.md, run."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dashboard.site_client import FILES, Client, publish
from tests.site_nginx import NGINX, begun
from tvmdash.dashboard_info import Home

pytestmark = pytest.mark.skipif(not NGINX, reason="nginx is not installed (Debian, Ubuntu: apt install nginx-light)")


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
    process.communicate(timeout=120)


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
