"""A conversation of a host, damaged anywhere: it ends that visit, and what was taken in is what was asked for."""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import given

from dashboard.hosts import bundle, session
from dashboard.hosts.bundle import BundledCode, Tvms
from dashboard.hosts.messages import MARK, PROTOCOL, Beat, Ended, Hello, Holds, Message, Offer, Ready
from dashboard.hosts.session import Session
from dashboard.night import hosts_tonight
from dashboard.night.context import Context
from dashboard.night.hosts_tonight import HostsTonight
from dashboard.night.journal import Journal
from dashboard.plan.job import CodeFolders, Plan
from dashboard.plan.plan import make_plan
from tests import fuzzing
from tests.dashboard import homes
from tests.dashboard.hosts.test_hosts_night import add_experiment
from tests.dashboard.hosts.test_parcels import damage_headers, pack_unread, write_night
from tests.fuzzing import the_same_each_time
from tvmdash.common import structured
from tvmdash.dashboard_info import OK, RUNNING, Home, HostState, JobResult, Night, StepResult
from tvmdash.errors import DashboardError

STAMP = "20261123T031500Z"
EARLIER = "20261122T031500Z"
STAMPS = (EARLIER, STAMP)
SSH = """#!/bin/sh
cat "{said}"
exec 1>&-
cat > /dev/null
"""
"""All that it says comes at once, and it reads until the home closes."""
JOB = "cnn~box"


@pytest.fixture(scope="module")
def parcels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The parcels of two nights, as a host packs them, in a folder."""
    there = Home(tmp_path_factory.mktemp("there") / "home")
    for stamp in STAMPS:
        write_night(there, stamp, 1.5)
        pack_unread(there, there.root / f"{stamp}.tar", stamp)
    return there.root


def list_said(chance: random.Random, parcels: Path) -> Iterator[tuple[Message, bytes]]:
    """The messages of a good host in their order; the parcels may be damaged under a hash that is right."""
    yield Hello(PROTOCOL, "box", "cpu", "3.11.7", "cp311", "x86_64", 1.8e9, 10**9), b""
    yield Ready(), b""
    yield Beat(), b""
    yield Ended(), b""
    yield Holds(len(STAMPS)), b""
    for stamp in STAMPS:
        parcel = (parcels / f"{stamp}.tar").read_bytes()
        sent = damage_headers(chance, parcel) if chance.random() < 0.3 else parcel
        yield Offer(hashlib.sha256(sent).hexdigest(), stamp), sent


def make_conversation(chance: random.Random, parcels: Path) -> bytes:
    parts = []
    for message, content in list_said(chance, parcels):
        line = {"kind": type(message).__name__, "bytes": len(content), **structured.to_json(message)}
        parts.append(json.dumps(line).encode() + b"\n" + content)
    how = chance.choice(("line", "line", "swap", "gone", "twice", "damage", "nothing"))
    at, other = chance.randrange(len(parts)), chance.randrange(len(parts))
    if how == "line":
        line, _, content = parts[at].partition(b"\n")
        changed = fuzzing.dump(fuzzing.change(chance, json.loads(line))).replace(b"\n", b" ")
        parts[at] = changed + b"\n" + content
    elif how == "swap":
        parts[at], parts[other] = parts[other], parts[at]
    elif how == "gone":
        del parts[at]
    elif how == "twice":
        parts.insert(at, parts[other])
    whole = f"Welcome.\n{MARK} have\n".encode() + b"".join(parts)
    return fuzzing.damage(chance, whole) if how == "damage" else whole


@given(fuzzing.cases(lambda chance: chance))
@the_same_each_time(15, 500)
def test_any_conversation_ends_the_visit_and_leaves_what_was_asked(
    tmp_path_factory: pytest.TempPathFactory, parcels: Path, chance: random.Random
) -> None:
    root = tmp_path_factory.mktemp("any")
    home = make_home(root)
    homes.script(root / "bin" / "ssh", SSH.format(said=root / "said"))
    (root / "said").write_bytes(make_conversation(chance, parcels))
    asked = JobResult("experiment", JOB, JOB, "", (StepResult("precheck", OK, "", EARLIER),))
    homes.write(home.home.night_file(EARLIER), Night(EARLIER, "complete", jobs=(asked,)).to_json())
    with visiting(home, root) as (hosts, plan, journal):
        assert [job.name for job, _, _ in hosts.collect(plan.away)] == [JOB]
    night = journal.night
    (host,) = night.hosts
    assert host.state is HostState.MEASURED or host.why
    assert all(note.isprintable() for note in (*night.notes, host.why))
    left = {path.relative_to(home.path / "results").as_posix() for path in (home.path / "results").rglob("data_*")}
    assert left <= {f"experiments/data/{JOB}/data_{stamp}.json" for stamp in STAMPS}
    assert sum(path.stat().st_size for path in root.rglob("*") if path.is_file()) < 10_000_000
    shutil.rmtree(root)


def test_a_visit_that_no_closing_ends_does_not_keep_the_night_from_ending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck, go = threading.Event(), threading.Event()

    def hang(*_: object) -> NoReturn:
        stuck.set()
        go.wait()
        raise DashboardError("box: it let go.")

    monkeypatch.setattr(Session, "open", hang)
    monkeypatch.setattr(hosts_tonight, "_END_S", 0.1)
    home = make_home(tmp_path)
    with visiting(home, tmp_path) as (hosts, _, _):
        assert stuck.wait(60)
        closing = threading.Thread(target=hosts.close, daemon=True)
        closing.start()
        closing.join(60)
        assert not closing.is_alive()
        assert all(thread.daemon for thread in threading.enumerate() if thread.name == "host-box")
    go.set()


def make_home(root: Path) -> homes.HomeForTests:
    """A home whose one experiment is measured on the host box."""
    home = homes.make_home(root, root / "artifacts")
    add_experiment(home, "cnn", hosts=("box",))
    home.configure(hosts={"box": {"launcher": "ssh", "address": "box", "folder": "/x"}})
    return home


@contextlib.contextmanager
def visiting(home: homes.HomeForTests, root: Path) -> Iterator[tuple[HostsTonight, Plan, Journal]]:
    """The host of a night while it is visited."""
    plan = make_plan(home.home, CodeFolders(home.code / "experiments"))
    context = Context(home.home, plan, STAMP, root / "tmp" / STAMP, {})
    asked = tuple(JobResult("experiment", job.name, job.title, "", ()) for job in plan.away)
    journal = Journal(home.home, Night(STAMP, RUNNING, jobs=asked))
    with pytest.MonkeyPatch.context() as patch, contextlib.ExitStack() as opened:
        patch.setenv("PATH", f"{root}/bin:/usr/bin:/bin")
        patch.setattr(session, "_LAST_WORDS_S", 0.05)
        patch.setattr(bundle, "pack_code", lambda jobs, folder: BundledCode("hash", root / "code.tar", has_own=False))
        hosts = HostsTonight(context, journal)
        opened.callback(hosts.close)
        hosts.begin(plan.away, Tvms(context.artifacts, {}, rebuild=False))
        yield hosts, plan, journal
