"""Random kills of the commands that measure two TVMs: what was measured to its end is there, and counts."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.dashboard import homes
from tests.dashboard.remeasure_homes import NAME, Lab, make_lab, put_artifact

pytestmark = pytest.mark.slow
KILLS = 12
VERSIONS = [f"0.{minor}.0" for minor in range(10, 23)]


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """A lab with 13 releases and one night; from 0.17.0 on one workload is 8 % slower."""
    made = make_lab(tmp_path / "lab")
    shelf = [put_artifact(made.home.root / "shelf", version) for version in VERSIONS]
    slow = {one.key: {"mlp": 1.08} for one in shelf if int(one.version.split(".")[1]) >= 17}
    made.change(slow=slow)
    made.home.night()
    return made


def count_rounds(lab: Lab) -> int:
    """How many rounds the tries of the home have: one that was over is followed by another."""
    tries: list[dict[str, int]] = [
        homes.read(path)["runs"] for path in (lab.home.path / "results" / "tries").glob("*.json")
    ]
    return sum(sum(runs.values()) for runs in tries)


def count_pairs(lab: Lab) -> int:
    """How many pairs the home's bisection has."""
    paths = sorted((lab.home.path / "results" / "tries").glob("*.json"))
    if not paths:
        return 0
    trial = homes.read(paths[-1])
    (series,), steps = trial["series"], trial["bisection"]["steps"].values()
    return len(series["rounds"]) + sum(len(step["logs"]) for step in steps)


def count_nights(lab: Lab) -> int:
    """How many TVMs of the past were measured."""
    return len(list(lab.home.home.backfill(NAME).glob("data_*.json")))


COMMANDS: dict[str, tuple[tuple[str, ...], Any]] = {
    "compare": (("pypi:0.16.0", "pypi:0.17.0", "--rounds", "60"), count_rounds),
    "try": (("pypi:0.17.0", "--against", "pypi:0.16.0", "--experiments", NAME), count_rounds),
    "reproduce": ((f"{NAME}/STAMP", "--rounds", "60"), count_rounds),
    "backfill": (("--artifacts", "pypi:0.10.0..0.22.0", "--rounds", "4"), count_nights),
    "bisect": ((NAME, "mlp", "--good", "pypi:0.10.0", "--bad", "pypi:0.22.0"), count_pairs),
}


@pytest.mark.parametrize("verb", COMMANDS)
def test_no_kill_loses_a_finished_round_or_leaves_a_process(lab: Lab, verb: str) -> None:
    named, count = COMMANDS[verb]
    words = [word.replace("STAMP", lab.home.stamps()[0]) for word in named]
    rng, kept, killed = random.Random(7), 0, 0
    for attempt in range(KILLS):
        process = lab.home.start(*words, "--no-rebuild-tvm", verb=verb)
        try:
            process.wait(
                rng.uniform(0.3, 0.6 + 0.3 * attempt)
            )  # soon at first: on a quiet machine all is over in a second
        except subprocess.TimeoutExpired:
            process.send_signal(rng.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM)))
            process.wait(30)
            killed += 1
        assert process.stdout is not None
        process.stdout.close()
        deadline = time.monotonic() + 120
        while lab.home.processes() and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not lab.home.processes()
        now = count(lab)
        assert now >= kept, "what was kept is kept"
        kept = now
    assert killed
    assert kept >= len(lab.runs()) // 2 - killed, "a kill costs the round that it ends"
    done = lab.home.run(*words, "--no-rebuild-tvm", verb=verb)
    assert done.code == 0, done.output
    assert count(lab) >= kept
