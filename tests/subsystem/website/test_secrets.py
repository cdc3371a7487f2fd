"""A secret that stands in a config, a status, a log, a note or data is in no file of the site."""

from __future__ import annotations

import dataclasses
import html
import json
from pathlib import Path

import pytest

from tests.subsystem import scripts
from tests.subsystem.website.sites import STAMP, Site, failure, job, record, stamp
from tvmdash import common
from tvmdash.dashboard_info import COMPLETE, Home

TOKEN = "xoxb-123456789012-abcdefABCDEF"
WEBHOOK = "T012345/B012345/AbCdEfGhIjKl"
URL = f"https://hooks.slack.com/services/{WEBHOOK}"
HUGGING = "hf_" + "aB3" * 12
PASSWORD = "hunter2&co"
NAMED = 'correct"horse<battery'
KEY = "MIIEpAIBAAKCAQEA7" + "x" * 40
SECRETS = (TOKEN, WEBHOOK, HUGGING, PASSWORD, NAMED, KEY, "correct&#34;horse", 'correct\\"horse')
TEXT = f"{TOKEN} {URL} {HUGGING} https://me:{PASSWORD}@host/x {NAMED} -----BEGIN PRIVATE KEY-----\n{KEY}\n"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(Home(tmp_path / "home"))


def put_everywhere(site: Site, text: str) -> None:
    """The text in everything that the site tells of a night."""
    config = {"active": True, "title": text[:80], "description": text, "api_token": NAMED, "remote": [text], "x": text}
    site.home.config("experiment", "cnn").mkdir(parents=True)
    common.write_json(site.home.config("experiment", "cnn") / "config.json", config)
    bad = dataclasses.replace(job("cnn", run=failure(text, text)), title=text, description=text)
    site.results("cnn", value=text, graphs={"a.svg": html.escape(text)})
    one = record("mlp", 1.5)
    site.data("cnn", [{**one, "workload_args": {"note": text}}], host=text, distribution=text)
    site.night(bad, notes=(text,), facts={"remote": text}, version=text)
    night = json.loads(site.home.night_file(STAMP).read_text())
    assert TOKEN not in text or TOKEN in json.dumps(night), "as an older dashboard left it"
    site.output("score", "report.json", {"title": "A report", "value": text})


def test_a_secret_is_in_no_file_of_the_site(site: Site) -> None:
    put_everywhere(site, TEXT)
    site.published()
    files = [path for path in site.folder.rglob("*") if path.is_file()]
    assert len(files) > 20
    shown = {path: path.read_bytes().decode("utf-8", errors="replace") for path in files}
    leaks = [(path.name, secret) for path, text in shown.items() for secret in SECRETS if secret in text]
    assert leaks == []
    assert any("[hidden]" in text for text in shown.values())


def test_a_secret_by_any_name_of_its_field_is_in_no_file_of_the_site(site: Site) -> None:
    secrets = {"auth": "Bearer zq81xx", "pw": "tig9er", "pass_phrase": "open s3same", "source": "hf_a1b2c3"}
    site.home.config("experiment", "cnn").mkdir(parents=True)
    common.write_json(site.home.config("experiment", "cnn") / "config.json", {"active": True, **secrets})
    site.night(job("cnn", run=failure("It said " + " and ".join(secrets.values()), "tig9er")))
    site.published()
    files = [path for path in site.folder.rglob("*") if path.is_file()]
    shown = {path: path.read_bytes().decode("utf-8", errors="replace") for path in files}
    words = ("zq81xx", "tig9er", "s3same", "hf_a1b2c3")
    assert [(path.name, word) for path, text in shown.items() for word in words if word in text] == []


def test_what_is_no_secret_is_published_as_it_is(site: Site) -> None:
    site.night(job("cnn", run=failure("7b5acb32b of me@example.org in /home/me/x_token at 20261121T031500Z failed.")))
    page = site.published()
    assert "7b5acb32b of me@example.org in /home/me/x_token at 20261121T031500Z failed." in page.words


def test_hiding_leaves_the_file_of_the_old_site_alone(site: Site, tmp_path: Path) -> None:
    hide_secrets = scripts.load("website").publishing.hide_secrets
    old, new = tmp_path / "old.json", tmp_path / "new"
    old.write_text(json.dumps({"token": TOKEN}))
    new.mkdir()
    (new / "a.json").hardlink_to(old)
    (new / "trace.pftrace").write_bytes(b"\x0a\x1e" + TOKEN.encode() + b"\xff")
    assert hide_secrets(site.home, tmp_path / "none", new) == 2
    assert TOKEN in old.read_text()
    assert json.loads((new / "a.json").read_text()) == {"token": "[hidden]"}
    assert (new / "trace.pftrace").read_bytes() == b"\x0a\x1e" + b"*" * len(TOKEN) + b"\xff"


def test_what_a_config_calls_a_secret_later_is_hidden_in_pages_that_are_carried_over(site: Site) -> None:
    site.night(job("cnn", stamp(1), title=PASSWORD), at=stamp(1), state=COMPLETE)
    site.night(job("cnn"))
    site.publish_here()
    old_night = site.folder / "nights" / f"{stamp(1)}.html"
    assert html.escape(PASSWORD) in old_night.read_text()
    inode = old_night.stat().st_ino
    site.publish_here()
    assert old_night.stat().st_ino == inode, "it is carried over"
    site.home.config("experiment", "cnn").mkdir(parents=True)
    common.write_json(site.home.config("experiment", "cnn") / "config.json", {"active": True, "api_token": PASSWORD})
    site.publish_here()
    assert html.escape(PASSWORD) not in old_night.read_text()


def test_pages_that_are_carried_over_are_not_read_again(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for ago in range(5, -1, -1):
        site.night(job("cnn", stamp(ago)), at=stamp(ago), state=COMPLETE)
    site.publish_here()
    read: list[str] = []
    whole = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read.append(path.name) or whole(path))
    site.publish_here()
    assert "index.html" in read
    assert not {f"{stamp(ago)}.html" for ago in range(1, 6)} & set(read)
