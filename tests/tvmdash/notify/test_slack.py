"""Speaking to Slack, and to a Slack that is down, slow, hostile or lies."""

from __future__ import annotations

import itertools
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slack import server
from tests.slack.server import CHANNEL, HOOK_PATH, TOKEN, Fault, State
from tvmdash.common import http_util
from tvmdash.errors import DashboardError
from tvmdash.notify.errors import Budget, BusyError, DeliveryError, RefusedError, UncertainError
from tvmdash.notify.message import Occasion, Outgoing
from tvmdash.notify.payloads import Part, Payload, build
from tvmdash.notify.senders import slack as slack_module
from tvmdash.notify.senders.slack import Slack, SlackSender
from tvmdash.notify.token import Secrets

KEY = "0123456789abcdef"
HELLO = build("✅ All 3 experiments ok", "Night", [Part("one"), Part("two")])
SHARED = Path(__file__).resolve().parents[3] / "shared" / "python"


@pytest.fixture
def state() -> Iterator[State]:
    with server.slack_server() as started:
        yield started
    assert not started.violations
    assert not started.strays


@pytest.fixture(autouse=True)
def _slack_shows_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slack_module, "_SETTLE_S", 0.0)


def by_token(state: State, seconds: float = 20.0, token: str = TOKEN, channel: str = CHANNEL) -> Slack:
    return Slack(Secrets(bot_token=token), channel, seconds, api_url=state.url)


def by_hook(state: State, seconds: float = 20.0) -> Slack:
    return Slack(Secrets(webhook_url=state.hook), "", seconds, api_url=state.url)


def post(slack: Slack, payload: Payload = HELLO, key: str = KEY) -> str:
    """The ts of a message that is sent as a route sends it: asked again while that may help."""
    sender, tries = SlackSender(slack), itertools.count()
    message = Outgoing(key, Occasion.NIGHT, "20261121T031500Z", payload.text, (), payload=payload)
    sent = Budget(slack.seconds).spend(
        lambda limit_s: sender.send(message, limit_s, "", again=next(tries) > 0), again=sender.safe_twice
    )
    return sent.rpartition(" ")[2]


def soon() -> float:
    return time.monotonic() + 20


def test_a_message_is_posted_edited_and_replied_to(state: State) -> None:
    slack = by_token(state)
    ts = post(slack)
    slack.edit(ts, build("❌ One failed", "", [Part("three")]), KEY, soon())
    slack.post(HELLO, "other", soon(), thread=ts)
    (message,) = state.channel()
    assert (message.ts, message.edits, message.markup()) == (ts, 1, "❌ One failed\nthree")
    assert [reply.thread_ts for reply in state.thread()] == [ts]


def test_a_webhook_posts_and_cannot_edit(state: State) -> None:
    slack = by_hook(state)
    assert post(slack) == ""
    assert not slack.can_edit
    assert len(state.channel()) == 1
    with pytest.raises(RefusedError, match="only post"):
        slack.edit("1.000001", HELLO, KEY, soon())


def test_a_file_is_uploaded_in_three_steps_in_their_order(state: State) -> None:
    slack = by_token(state)
    ts = post(slack)
    slack.upload(ts, "a.png", "A graph", b"\x89PNG", soon())
    assert state.calls[2:] == ["files.getUploadURLExternal", "upload", "files.completeUploadExternal"]
    (known,) = state.files.values()
    assert (known["content"], known["in"], known["title"]) == (b"\x89PNG", ts, "A graph")


@pytest.mark.parametrize("retry_after", ["0", "1"])
def test_a_429_is_waited_for_as_long_as_it_says(state: State, retry_after: str) -> None:
    state.fail("chat.postMessage", Fault("status", status=429, retry_after=retry_after))
    begun = time.monotonic()
    post(by_token(state))
    assert time.monotonic() - begun >= float(retry_after)
    assert len(state.channel()) == 1


@pytest.mark.parametrize("retry_after", ["3600", "1e300", "999999999999999999999"])
def test_a_429_beyond_the_budget_is_not_waited_for(state: State, retry_after: str) -> None:
    state.fail("chat.postMessage", Fault("status", status=429, retry_after=retry_after))
    begun = time.monotonic()
    with pytest.raises(BusyError, match="rate limit reached"):
        post(by_token(state))
    assert time.monotonic() - begun < 3
    assert not state.channel()


@pytest.mark.parametrize("retry_after", ["soon", "-5", "nan", "", "Wed, 21 Oct 2026 07:28:00 GMT"])
def test_a_retry_after_that_makes_no_sense_costs_a_few_seconds_at_most(state: State, retry_after: str) -> None:
    state.fail("chat.postMessage", Fault("status", status=429, retry_after=retry_after))
    with pytest.raises(BusyError):
        post(by_token(state, seconds=3.0))


UNCERTAIN = [
    Fault("status", status=500),
    Fault("status", status=502),
    Fault("reset"),
    Fault("garbage", body=b"<html>"),
    Fault("garbage", body=b"[1]"),
    Fault("garbage", body=b"null"),
    Fault("garbage", body=b"\xff\xfe"),
    Fault("garbage", body=b'{"ok": true}'),
    Fault("garbage", body=b'{"ok": true, "ts": ["1"]}'),
    Fault("garbage", body=b'{"ok": true, "ts": "1 OR 1"}'),
    Fault("garbage", body=b'{"ok": "yes", "ts": "1.000001"}'),
    Fault("garbage", body=b"[" * 100000),
    Fault("error", code="internal_error"),
    Fault("error", code="fatal_error"),
]


@pytest.mark.parametrize("taken", [False, True], ids=["not taken", "taken"])
@pytest.mark.parametrize(
    "fault", UNCERTAIN, ids=lambda fault: f"{fault.kind} {fault.status} {fault.code}{fault.body[:12]!r}"
)
def test_a_post_of_uncertain_outcome_is_looked_up_and_stands_there_once(
    state: State, fault: Fault, taken: bool
) -> None:
    state.fail("chat.postMessage", Fault(fault.kind, fault.code, fault.status, fault.retry_after, fault.body, taken))
    ts = post(by_token(state))
    assert [message.ts for message in state.channel()] == [ts]


@pytest.mark.parametrize("taken", [False, True])
@pytest.mark.parametrize("kind", ["hang", "drip_head", "drip_body", "endless"])
def test_a_slack_that_does_not_end_its_answer_costs_no_more_than_the_budget(
    state: State, kind: str, taken: bool
) -> None:
    state.fail("*", *[Fault(kind, taken=taken)] * 9)
    begun = time.monotonic()
    with pytest.raises(DeliveryError):
        post(by_token(state, seconds=1.0))
    assert time.monotonic() - begun < 2.5
    assert len(state.channel()) <= 1


def test_an_answer_without_end_is_not_read_to_the_time_limit(state: State) -> None:
    state.fail("chat.postMessage", Fault("endless", taken=True))
    begun = time.monotonic()
    post(by_token(state))
    assert time.monotonic() - begun < 8
    assert len(state.channel()) == 1


def test_a_message_is_found_on_a_later_page_of_a_busy_channel(state: State) -> None:
    slack = by_token(state)
    ts = slack.post(HELLO, "mine", soon())
    for number in range(7):
        slack.post(HELLO, f"other {number}", soon())
    state.page = 3
    assert slack.find("mine", soon()) == ts
    assert slack.find("nobody's", soon()) is None


def test_where_history_may_not_be_read_an_uncertain_post_is_not_repeated(state: State) -> None:
    state.scopes = "chat:write"
    state.fail("chat.postMessage", Fault("reset", taken=True))
    with pytest.raises(UncertainError, match="missing_scope"):
        post(by_token(state))
    assert len(state.channel()) == 1


@pytest.mark.parametrize(
    "fault", [Fault("status", status=500), Fault("reset"), Fault("hang"), Fault("garbage", body=b"?")]
)
@pytest.mark.parametrize("taken", [False, True])
def test_a_webhook_does_not_repeat_a_post_of_uncertain_outcome(state: State, fault: Fault, taken: bool) -> None:
    state.fail("webhook", Fault(fault.kind, fault.code, fault.status, body=fault.body, taken=taken))
    with pytest.raises(UncertainError):
        post(by_hook(state, seconds=1.0))
    assert state.calls == ["webhook"]


def test_a_webhook_waits_where_slack_certainly_did_not_take_the_post(state: State) -> None:
    state.fail("webhook", Fault("status", status=429, retry_after="0"), Fault("status", status=503))
    post(by_hook(state))
    assert len(state.channel()) == 1


def test_no_connection_is_tried_again_and_then_told(state: State) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/api/"
        with pytest.raises(BusyError, match="Slack could not be reached"):
            post(Slack(Secrets(bot_token=TOKEN), CHANNEL, 1.2, api_url=url))


@pytest.mark.parametrize("code", ["invalid_auth", "channel_not_found", "is_archived", "msg_too_long", "some_new_word"])
def test_what_slack_refuses_is_asked_once_and_told_with_its_remedy(state: State, code: str) -> None:
    state.fail("chat.postMessage", *[Fault("error", code=code)] * 5)
    with pytest.raises(RefusedError, match=code) as caught:
        post(by_token(state))
    assert state.calls == ["conversations.history", "chat.postMessage"]
    assert caught.value.code == code
    assert len(str(caught.value).split(". ")) >= 2, "a remedy"


@pytest.mark.parametrize("code", ["no_service", "invalid_token", "channel_is_archived"])
def test_what_a_webhook_refuses_is_told_with_its_remedy(state: State, code: str) -> None:
    state.fail("webhook", Fault("error", code=code, status=403))
    with pytest.raises(RefusedError, match=code):
        post(by_hook(state))
    assert state.calls == ["webhook"]


def test_the_token_is_not_taken_along_to_where_a_redirection_points(state: State) -> None:
    state.fail("chat.postMessage", Fault("redirect"))
    with pytest.raises(RefusedError, match="302"):
        post(by_token(state))


def leak_words(state: State) -> list[str]:
    return [TOKEN, HOOK_PATH, TOKEN.split("-")[-1]]


@pytest.mark.parametrize(
    "fault",
    [
        Fault("error", code=f"invalid_auth {TOKEN}"),
        Fault("error", code=TOKEN),
        Fault("status", status=400, body=TOKEN.encode()),
        Fault("status", status=500, body=HOOK_PATH.encode()),
        Fault("garbage", body=TOKEN.encode()),
        Fault("reset"),
        Fault("error", code="invalid_auth"),
        Fault("redirect"),
    ],
)
@pytest.mark.parametrize("way", [by_token, by_hook])
def test_no_error_shows_a_secret_even_where_slack_says_it(
    state: State, way: type, fault: Fault, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level("DEBUG")
    state.fail("*", *[fault] * 9)
    slack = way(state, 2.0)
    with pytest.raises(DeliveryError) as caught:
        post(slack)
    told = [str(caught.value), repr(caught.value), repr(slack.__dict__), caplog.text, *capfd.readouterr()]
    assert caught.value.__cause__ is None
    assert not [word for word in leak_words(state) for text in told if word in text]


def test_an_upload_address_of_another_scheme_is_not_used(state: State) -> None:
    slack = by_token(state)
    ts = post(slack)
    answer = json.dumps({"ok": True, "upload_url": "file:///etc/passwd", "file_id": "F1"}).encode()
    state.fail("files.getUploadURLExternal", Fault("garbage", body=answer))
    with pytest.raises(UncertainError, match="no upload URL"):
        slack.upload(ts, "a.png", "A", b"x", soon())


def test_nothing_is_sent_after_the_time_for_it() -> None:
    with pytest.raises(TimeoutError):
        http_util._Body(b"{}", time.monotonic() - 0.001).read(16384)


def test_a_request_that_broke_off_while_it_was_sent_was_certainly_not_taken() -> None:
    def cut_off() -> None:
        taken, _ = listening.accept()
        with taken:
            taken.recv(1000)
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=cut_off)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/upload"
        with pytest.raises(BusyError, match="Slack could not be reached"):
            slack_module._post(url, bytes(50_000_000), {}, soon())
        thread.join()


def test_a_netrc_file_does_not_take_the_place_of_the_token(
    state: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login somebody password else\ndefault login a password b\n")
    (tmp_path / "netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    post(by_token(state))
    assert len(state.channel()) == 1


def test_a_proxy_of_the_environment_is_not_asked_about_this_machine(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    post(by_token(state))
    assert len(state.channel()) == 1


def test_the_proxy_of_the_environment_is_asked_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{proxy.getsockname()[1]}")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        thread = threading.Thread(target=lambda: asked.append(heard_by(proxy)))
        thread.start()
        with pytest.raises(BusyError, match="Slack could not be reached"):
            slack_module._post("https://slack.invalid/api/auth.test", b"a=1", {"Authorization": "secret"}, soon())
        thread.join()
    assert asked[0].startswith(b"CONNECT slack.invalid:443 ")
    assert b"secret" not in asked[0]


def heard_by(proxy: socket.socket) -> bytes:
    """What the first client of a proxy that refuses says."""
    client, _ = proxy.accept()
    with client:
        told = client.recv(65536)
        client.sendall(b"HTTP/1.1 502 no\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        return told


@pytest.mark.parametrize(
    "url", ["http://slack.com/api/", "ftp://slack.com/", "https://a@b/", "slack.com", "https://", "http://[::1"]
)
def test_a_token_goes_nowhere_without_tls(url: str) -> None:
    with pytest.raises(DashboardError, match="https"):
        Slack(Secrets(bot_token=TOKEN), CHANNEL, api_url=url)


@pytest.mark.parametrize("channel", ["", "#general", "general", "U012ABCDEF"])
def test_a_channel_that_is_not_an_id_is_refused(channel: str) -> None:
    with pytest.raises(DashboardError, match=r"\$\.channel"):
        Slack(Secrets(bot_token=TOKEN), channel)


def check(home: Path, state: State, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tvmdash.slack_util", "check", str(home)],
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(SHARED),
            "HOME": str(home),
            "SLACK_API_URL": state.url,
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def configure(home: Path, name: str, **config: object) -> None:
    folder = home / "config" / "subsystem" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"active": True, **config}))


def test_the_check_sends_one_test_for_each_channel_and_names_lacking_scopes(state: State, tmp_path: Path) -> None:
    for name in ("exp_reports", "subsys_reporter", "deadline"):
        configure(tmp_path, name, channel=CHANNEL)
    configure(tmp_path, "website")
    state.scopes = "chat:write"
    done = check(tmp_path, state, SLACK_BOT_TOKEN=TOKEN)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(state.channel()) == 1
    assert f"posted the test message to the channel {CHANNEL}" in done.stdout
    assert "files:write" in done.stdout
    assert "channels:history" in done.stdout
    assert TOKEN not in done.stdout


def test_the_check_fails_in_words_where_a_token_is_bad_or_there_is_none(state: State, tmp_path: Path) -> None:
    configure(tmp_path, "exp_reports", channel=CHANNEL)
    bad = check(tmp_path, state, SLACK_BOT_TOKEN="xoxb-0000000000-wrong")
    assert bad.returncode == 1
    assert "invalid_auth" in bad.stderr
    assert "wrong" not in bad.stderr + bad.stdout
    none = check(tmp_path, state)
    assert none.returncode == 1
    assert "no active subsystem has a Slack token" in none.stderr
