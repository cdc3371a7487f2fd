"""Random kills of all that takes part in nights of every kind: nothing lost, halved, sent twice or left running."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import Popen

import pytest

from dashboard.archive import archive
from dashboard.process import watchdog
from tests.dashboard import homes
from tests.dashboard.homes import HomeForTests
from tests.slack import server
from tests.slack.server import CHANNEL, TOKEN, State
from tests.slow import every_kind
from tvmdash.dashboard_info import COMPLETE, INTERRUPTED

pytestmark = pytest.mark.slow
KILLS = int(os.environ.get("TVMDASH_KILLS", "15"))
KILLS_BEFORE_A_CHECK = 15
"""Nights killed one after the other, each while it may still be saving the one before, until one is left alone."""
KINDS = ("night", "watchdog, then night", "all at once", "stage", "term", "night, then watchdog")
END_S = 30.0


@pytest.fixture
def slack() -> Iterator[State]:
    with server.slack_server() as state:
        yield state
    assert not state.violations


@pytest.fixture
def home(tmp_path: Path, slack: State) -> HomeForTests:
    made = homes.make_home(tmp_path, tmp_path / "artifacts")
    measured = f'echo "$TVMDASH_JOB $TVMDASH_NIGHT" >> {tmp_path}/measured\n'
    every_kind.add_jobs(made, f'echo "$TVMDASH_JOB $TVMDASH_NIGHT STAGE $$" >> {tmp_path}/begun\n', measured)
    (tmp_path / "token").touch(mode=0o600)
    (tmp_path / "token").write_text(TOKEN)
    config = {"channel": CHANNEL, "token_file": str(tmp_path / "token"), "env": {"SLACK_API_URL": slack.url}}
    every_kind.add_real(made, "subsys_reporter", **config)
    every_kind.add_real(made, "exp_reports", **config)
    return made


@dataclass
class Killer:
    """Kills what takes part in nights. hits: by kind. spoiled: job and night of each stage that it killed."""

    home: HomeForTests
    rng: random.Random
    hits: Counter[str] = field(default_factory=Counter)
    spoiled: set[tuple[str, str]] = field(default_factory=set)

    def strike(self, night: Popen[str]) -> bool:
        """Kill something at random while the night goes on; whether it still did."""
        kind = self.rng.choice(KINDS)
        if night.poll() is not None:
            return False
        self.hits[kind] += 1
        guards = find_watchdogs(self.home)
        if kind == "term":
            night.send_signal(signal.SIGTERM)
        elif kind == "stage":
            self._kill_stage()
        elif kind == "all at once":
            kill(*guards, night.pid, *self.home.processes())
        elif kind == "watchdog, then night":
            kill(*guards)
            time.sleep(self.rng.choice((0.0, 0.01, 0.3)))
            kill(night.pid)
        else:
            kill(night.pid, *(guards if kind == "night, then watchdog" else ()))
        return True

    def _kill_stage(self) -> None:
        pids = self.home.processes()
        if pids:
            pid = self.rng.choice(pids)
            told = dict(item.partition(b"=")[::2] for item in homes.environment_of(pid))
            self.spoiled.add((told.get(b"TVMDASH_JOB", b"").decode(), told.get(b"TVMDASH_NIGHT", b"").decode()))
            kill(pid)


def find_watchdogs(home: HomeForTests) -> list[int]:
    """The watchdogs of this home's nights."""
    mark = f"{home.path}:".encode()
    return [pid for pid in homes.pids() if watchdog.__file__.encode() in (line := read_argv(pid)) and any(
        word.startswith(mark) for word in line
    )]  # fmt: skip


def read_argv(pid: int) -> list[bytes]:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return []


def kill(*pids: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_no_kill_loses_or_halves_anything_or_leaves_a_process(home: HomeForTests, slack: State) -> None:
    begun, killer, kept = time.monotonic(), Killer(home, random.Random(int(os.environ.get("TVMDASH_SEED", "1")))), {}
    done = home.run()
    assert done.code == 0, done.output
    usual_s, faults = done.seconds, list[str]()
    while killer.hits.total() < KILLS:
        for _ in range(min(KILLS_BEFORE_A_CHECK, KILLS - killer.hits.total())):
            with homes.killed_at_end(home.start()) as night:
                time.sleep(killer.rng.uniform(0, usual_s * 1.2))
                killer.strike(night)
                wait_for_end(night)
        faults += check_after_a_good_night(home, killer, kept)
        print(f"{killer.hits.total()} kills, {time.monotonic() - begun:.0f} s, faults: {faults}", flush=True)
        slack_faults = list_sent_twice(slack)
        assert faults + slack_faults == []
    print(f"kills: {dict(killer.hits)}; nights: {len(home.stamps())}; stages killed: {len(killer.spoiled)}")


def wait_for_end(night: Popen[str]) -> None:
    """A night whose stage or helper was killed goes on; its output is read so that it does not wait for a reader."""
    night.communicate(timeout=homes.DEADLINE_S)


def check_after_a_good_night(home: HomeForTests, killer: Killer, kept: dict[tuple[str, str], bytes]) -> list[str]:
    done = home.run()
    faults = [f"the night after ended with {done.code}: {done.output[-2000:]}"] if done.code else []
    if "Traceback" in done.output:
        faults.append(done.output[-2000:])
    if home.processes() or find_watchdogs(home):
        faults.append(f"processes are left: {[read_argv(pid) for pid in home.processes()]}")
    faults += every_kind.list_half_json(home)
    faults += every_kind.list_half_graphs(home.home.graph("shell"))
    measured = {tuple(line.split()) for line in (home.root / "measured").read_text().splitlines()}
    for name, stamp in sorted(measured - killer.spoiled):
        if not home.home.data_file(name, stamp).exists():
            faults.append(f"what {name} measured in {stamp} is lost: {home.home.read_night(stamp).notes}")
    for name in every_kind.EXPERIMENTS:
        for stamp in home.home.data_stamps(name):
            raw = home.home.data_file(name, stamp).read_bytes()
            if kept.setdefault((name, stamp), raw) != raw:
                faults.append(f"what {name} measured in {stamp} has changed")
    gone = [key for key in kept if not home.home.data_file(*key).exists()]
    faults += [f"{gone} are gone"] if gone else []
    states = {stamp: home.home.read_night(stamp).state for stamp in home.stamps()}
    faults += [f"{stamp} is {state}" for stamp, state in states.items() if state not in {COMPLETE, INTERRUPTED}]
    faults += [f"{path} is left" for path in (home.root / "tmp").glob("2*")]
    faults += [f"{path} is left" for path in (home.root / "tmp").glob(".*")]
    archive.verify(home.root / "backup")
    return faults


def list_sent_twice(slack: State) -> list[str]:
    """Messages that people would have seen twice."""
    marks = Counter(str(message.metadata) for message in slack.channel() if message.thread_ts is None)
    return [f"{mark} was sent {times} times" for mark, times in marks.items() if times > 1 and mark != "None"]
