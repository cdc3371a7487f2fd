"""Hosts that send anything: each ends its own visit with the reason in the night's notes, and nothing else."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.dashboard import homes, hostile_host
from tests.dashboard.homes import HomeForTests
from tests.dashboard.hosts.test_hosts_night import add_experiment

SSH = """#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do case $1 in -o) shift ;; esac; shift; done
exec "{python}" "{sender}" "$1"
"""
REASONS = {
    "infinite": "is not a valid worker message: $.bytes: Infinity is not valid JSON",
    "negative": "is not a valid worker message: -5 is not 0 to ",
    "deep": "is not a valid worker message: nested more than 100 levels deep.",
    "sparse": "it contains an unexpected entry, 'raw/plain~sparse/",
    "unplanned": "it contains an unexpected entry, 'data/e0~unplanned/",
    "old": f"this home did not ask this host for the night {hostile_host.OLD_STAMP}.",
    "telemetry": f"telemetry_{hostile_host.OLD_STAMP}.json'",
    "times": "has an invalid state, time or count.",
    "again": "again: offered the night ",
    "nothing": "nothing: it handed over nothing of this night.",
    "header": "it contains a header of ",
    "nested": "could not import the result archive",
    "clock": "is not a valid worker message: ",
    "flood": "flood: sent more than 20000 lines, which no worker does.",
    "banner": "banner: sent more than 20000 lines, which no worker does.",
    "log": "log: connection closed. Last output: ",
}
HOME_BYTES = 20 << 20


@pytest.fixture
def home(tmp_path: Path) -> HomeForTests:
    return homes.make_home(tmp_path, tmp_path / "artifacts")


def add_hostile(home: HomeForTests, *names: str) -> dict[str, str]:
    """Give the home these hosts, and an experiment that they and the home's own machine measure."""
    add_experiment(home, hosts=("local", *names))
    homes.script(home.root / "bin" / "ssh", SSH.format(python=sys.executable, sender=hostile_host.__file__))
    hosts = {name: {"launcher": "ssh", "address": name, "folder": "/nowhere"} for name in names}
    home.configure(hosts=hosts)
    return {"PATH": f"{home.root}/bin:{os.environ['PATH']}"}


def test_whatever_hosts_send_ends_their_visits_and_nothing_else(home: HomeForTests) -> None:
    assert set(REASONS) == set(hostile_host.SENDERS)
    done = home.run_with(add_hostile(home, *REASONS))
    assert done.code == 1, done.output
    last = home.last()
    assert set(home.states("plain").values()) == {"ok"}
    assert [host["name"] for host in last["hosts"]] == sorted(REASONS)
    told = {
        host["name"]: [host["why"], *(note for note in last["notes"] if host["name"] in note)] for host in last["hosts"]
    }
    assert {name: texts for name, texts in told.items() if not any(REASONS[name] in text for text in texts)} == {}
    stamp = home.stamps()[-1]
    results = home.path / "results"
    allowed = {f"plain/data_{stamp}.json", f"plain~again/data_{stamp}.json"}
    assert {f"{path.parent.name}/{path.name}" for path in results.rglob("data_*.json")} <= allowed
    assert not list(results.rglob(f"*{hostile_host.OLD_STAMP}*"))
    assert count_bytes(home.root / "tmp") < HOME_BYTES
    assert hostile_host.ESCAPES[:2] not in str(last)
    assert home.run_with(add_hostile(home, "infinite")).code == 1, "the next night"


def count_bytes(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())


def test_a_night_ends_when_it_is_told_to_whatever_its_host_does(home: HomeForTests) -> None:
    wait = f'touch "{home.root}/began"; while :; do sleep 0.05; done'
    env = add_hostile(home, "negative")
    add_experiment(home, hosts=("local", "negative"), run=homes.good("run", wait))
    with homes.killed_at_end(home.start(env=env)) as night:
        homes.wait_for((home.root / "began").exists, "the home measures")
        night.send_signal(signal.SIGTERM)
        assert night.wait(homes.DEADLINE_S) in {1, 130}
