"""What a night hears of one host, from a worker that says what a test lets it say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dashboard.hosts.bundle import BundledCode, Copies
from dashboard.hosts.messages import PROTOCOL, Begin, Hello
from dashboard.hosts.session import Session
from dashboard.plan.settings import Host, Launcher
from tests.dashboard import homes
from tvmdash.common import structured
from tvmdash.errors import DashboardError

HELLO = Hello(PROTOCOL, "box", "", "3.11.7", "cp311", "x86_64", 0.0, 0)


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    """With a host that has a second for all, and whose worker beats for ever."""
    hello = json.dumps({"kind": "Hello", "bytes": 0, **structured.to_json(HELLO)})
    beats = '(while sleep 0.1; do echo \'{"kind": "Beat", "bytes": 0}\'; done) & cat > /dev/null; kill $!'
    homes.script(tmp_path / "ssh", f"#!/bin/sh\necho tvm-dashboard-worker have\necho '{hello}'\n{beats}\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    host = Host("box", Launcher.SSH, address="box", folder="/x", patience_s=0, time_limit_s=1)
    return Session(host, tmp_path, f"{tmp_path}/night/host-box", tmp_path / "log")


def test_a_worker_that_takes_longer_than_its_time_is_ended_with_the_remedy(session: Session, tmp_path: Path) -> None:
    assert session.open(BundledCode("hash", tmp_path / "code.tar", has_own=False)) == HELLO
    try:
        with pytest.raises(DashboardError, match="box: stopped after 0 minutes") as caught:
            session.measure(Begin("", "box", 1, 0.0, rebuild=False), b"", Copies((), tmp_path), lambda: None)
        assert "Raise $.hosts.box.time_limit_minutes if it needs longer." in str(caught.value)
    finally:
        session.close()
