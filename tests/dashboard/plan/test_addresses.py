"""Addresses and folders that a home's config names for later: what is wrong with them is told before the need."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.dashboard.homes import REPO, HomeForTests, make_home, write
from tests.webhook.server import SECRET
from tvmdash.common.http_util import find_url_fault, is_link, is_safe


@pytest.fixture
def home(tmp_path: Path) -> HomeForTests:
    made = make_home(tmp_path, tmp_path / "artifacts")
    made.experiment()
    made.subsystem()
    return made


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("htps://hc-ping.com/abc", "does not start with https:// or http://"),
        ("file:///etc/passwd", "does not start with https:// or http://"),
        ("hc-ping.com/abc", "does not start with https:// or http://"),
        ("https:/hc-ping.com/abc", "has an invalid host or port"),
        ("https:///abc", "has an invalid host or port"),
        ("https://hc-ping.com:99999/abc", "has an invalid host or port"),
        ("https://hc-ping.com:0/abc", "has an invalid host or port"),
        ("https://hc-ping..com/abc", "has an invalid host or port"),
        ("https://-hc.com/abc", "has an invalid host or port"),
        ("http://[::1/abc", "has an invalid host or port"),
        ("https://hc-ping.com/a bc", "contains a space, or a character that a URL must escape"),
        ("https://hc-ping.com/abc\n", "contains a space, or a character that a URL must escape"),
    ],
)
def test_what_keeps_a_url_from_being_asked_is_said_without_the_url(url: str, fault: str) -> None:
    assert find_url_fault(url) == fault


@pytest.mark.parametrize("url", ["htps://hc-ping.com/abc", "file:///etc/abc", "https://hc-ping.com:99999/abc"])
def test_a_heartbeat_that_nobody_could_hear_is_told_by_every_command_and_the_night(tmp_path: Path, url: str) -> None:
    home = make_home(tmp_path, tmp_path / "artifacts", heartbeat_url=url)
    home.subsystem()
    shown = f"$.heartbeat_url: the URL {find_url_fault(url)}, so nobody would hear that nights stopped."
    for verb, code in (("check", 2), ("doctor", 1), ("plan", 0), ("run", 0)):
        done = home.run(*["--no-drill"] * (verb == "doctor"), verb=verb)
        assert shown in done.output, verb
        assert "abc" not in done.output.replace(str(home.root), ""), "it is as good as a password"
        assert done.code == code, done.output
    assert any(shown in note for note in home.last()["notes"])


@pytest.mark.parametrize(
    "url",
    [
        "https://hc-ping.com/abc", "http://127.0.0.1:8000/ping/x", "http://monitor/x?y=1", "http://[::1]:8000/x",
        "https://user:word@hc.example.org/x", "https://my_switch.example.org./x",
    ],
)  # fmt: skip
def test_an_address_that_can_be_asked_is_no_fault(home: HomeForTests, url: str) -> None:
    assert not find_url_fault(url)
    home.configure(heartbeat_url=url)
    assert home.run(verb="check").code == 0


def test_a_port_that_is_none_is_neither_safe_nor_a_link() -> None:
    assert is_safe("https://a.example.org:443/x")
    assert not is_safe("https://a.example.org:70000/x")
    assert not is_link("https://a.example.org:70000/x")


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"website_url": "bench.example.org/tvm"}, "$.website_url: 'bench.example.org/tvm' does not start with https://"),
        ({"website_url": "https://a.org/(x)"}, "$.website_url: 'https://a.org/(x)' contains a character that no link"),
        ({"schedule": "61 3 * * *"}, "$.schedule: "),
        ({"prometheus_file": "nowhere/x.prom"}, "/home/nowhere/x.prom cannot be written. Create "),
        ({"prometheus_file": "config"}, "/home/config cannot be written."),
        ({"candidates_may_read": ["/usr", "/opt/no-such"]}, "$.candidates_may_read[1]: /opt/no-such does not exist."),
        ({"github_may_ask": ["ada"], "github_token_file": "/no/token"}, "$.github_token_file: /no/token does not "),
        ({"env": {"https_proxy": "htp://u:secret@proxy:3128"}}, "$.env.https_proxy: the URL does not start with http://"),
        ({"env": {"HTTP_PROXY": "proxy:port"}}, "$.env.HTTP_PROXY: the URL has an invalid host or port."),
        ({"env": {"PIP_INDEX_URL": "pypi.example.org/simple"}}, "$.env.PIP_INDEX_URL: the URL does not start with"),
        ({"backup_dir": "file/below"}, "/home/file is not a folder. Move it away"),
        (
            {"routes": {"mail": {"kind": "webhook", "url": "https://a.org/x", "secret_file": "/no/key"}}},
            "$.routes.mail: /no/key: must contain exactly one signing key.",
        ),
    ],
)  # fmt: skip
def test_check_judges_what_is_needed_late(home: HomeForTests, fields: dict[str, Any], fault: str) -> None:
    (home.path / "file").touch(mode=0o755)
    home.configure(**fields)
    done = home.run(verb="check")
    assert fault in done.output
    assert "secret@" not in done.output
    assert done.code == 2


def test_addresses_in_the_environment_are_judged_as_well(home: HomeForTests) -> None:
    wrong = {"https_proxy": "htp://proxy", "GITHUB_API_URL": "api.example.org", "AWS_ENDPOINT_URL": "127.0.0.1:9000"}
    done = home.run_with(wrong, verb="check")
    assert done.code == 2
    assert [line.partition(":")[0] for line in done.output.splitlines() if "the URL" in line] == [
        f"environment variable {name}" for name in wrong
    ]
    good = {"https_proxy": "proxy:3128", "http_proxy": "socks5h://10.0.0.1:1080", "PIP_INDEX_URL": "file:///srv/simple"}
    assert home.run_with(good, verb="check").code == 0


@pytest.mark.parametrize("name", ["exp_reports", "subsys_reporter", "stat_alerts", "deadline"])
def test_a_subsystem_that_posts_in_slack_judges_its_token_and_channel(tmp_path: Path, name: str) -> None:
    made = make_home(tmp_path, tmp_path / "artifacts")
    made.experiment()
    (made.code / "subsystem").mkdir(exist_ok=True)
    (made.code / "subsystem" / name).symlink_to(REPO / "subsystem" / name)
    token = tmp_path / "token"
    token.touch(mode=0o600)
    token.write_text(SECRET)
    config = {"active": True, "channel": "#general", "token_file": str(token)}
    write(made.home.config("subsystem", name) / "config.json", config)
    assert "is neither a token (xoxb-...) nor a webhook (https://...)." in made.run(verb="check").output
    token.write_text("xoxb-1234567890-abcdefghijkl")
    assert "$.channel: '#general' is not a channel ID." in made.run(verb="check").output


def test_the_website_judges_its_addresses_of_commits(home: HomeForTests) -> None:
    shutil.rmtree(home.code / "subsystem" / "website")
    (home.code / "subsystem" / "website").symlink_to(REPO / "subsystem" / "website")
    urls = {"commit_url": "git.example.org/{commit}", "compare_url": "https://git.example.org/x"}
    write(home.home.config("subsystem", "website") / "config.json", {"active": True, **urls})
    done = home.run(verb="check")
    assert "$.commit_url: 'git.example.org/{commit}' is no address with {commit}." in done.output
    assert "$.compare_url: 'https://git.example.org/x' is no address with {before} and {after}." in done.output
