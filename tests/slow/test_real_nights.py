"""Real nights on one TVM under several commits: beside load, with an extra operator, back again, an older one again."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dashboard.artifacts.artifact import Artifact
from tests.dashboard import homes
from tests.dashboard.homes import HomeForTests
from tests.slow.nightly_page import Edit, call, make_lab, pack, replace
from tvmdash import common

pytestmark = pytest.mark.slow
_RELU = 'register_legalize("relax.nn.relu", _call_topi_without_attr(topi.nn.relu))\n'
_WITH_MORE = """

def _relu_and_more(x):
    zero = topi.multiply(topi.add(topi.sin(x), topi.cos(x)), tirx.const(0, x.dtype))
    return topi.add(topi.nn.relu(x), zero)


register_legalize("relax.nn.relu", _call_topi_without_attr(_relu_and_more))
"""
EXTRA: dict[str, Edit] = {"tvm/relax/transform/legalize_ops/nn.py": replace(_RELU, _WITH_MORE)}
"""What costs a few percent of a convolutional network and changes no answer: a sine and a cosine of each activation."""
BUSY = "while True: sum(i * i for i in range(10000))"


@pytest.fixture
def burners() -> Iterator[list[subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for process in started:
        process.kill()
        process.wait()


def read_verdict(home: HomeForTests) -> dict[str, Any]:
    value: dict[str, Any] = common.read_json(home.home.output("stat_alerts") / "verdict.json")
    return value


def test_each_nights_verdict_is_what_was_planted(
    tmp_path: Path, tvm_artifact: Artifact, burners: list[subprocess.Popen[bytes]]
) -> None:
    page = tmp_path / "page"
    home = make_lab(tmp_path / "lab", page)
    config = {"active": True, "networks": ["mlp", "dqn"], "opt_levels": [3], "pairs": 8}
    homes.write(home.home.config("experiment", "relax_opt") / "config.json", config)
    homes.write(home.home.config("subsystem", "stat_alerts") / "config.json", {"active": True, "confirm_seconds": 90})
    seen = []

    def night(number: int, commit: str, edits: dict[str, Edit] | None = None) -> dict[str, Any]:
        pack(tvm_artifact, page, number, commit=commit, edits=edits or {})
        call(home, "run")
        verdict = read_verdict(home)
        seen.append((number, verdict["level"], verdict["title"], verdict["reasons"]))
        return verdict

    try:
        night(201, "aaaa11111")
        burners += [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(2)]
        beside = night(202, "bbbb22222")
        assert beside["level"] not in {"regression", "improved"}, "two programs kept both cores busy"
        for process in burners:
            process.kill()
        planted = night(203, "cccc33333", EXTRA)
        back = night(204, "dddd44444")
        assert back["open"] == [], "the code is what it was before"
        for number in (203, 204):
            next(page.glob(f"*dev{number}*")).unlink()
        call(home, "run")
        older = read_verdict(home)
        seen.append((202, older["level"], older["title"], older["reasons"]))
        assert older["level"] not in {"regression", "improved"}
        assert planted["level"] in {"changed", "regression", "suspect"}, (
            "code size is exact; times are as sure as they are"
        )
        assert [*planted["changed"], *planted["new"]], "that incident is new"
    finally:
        print(*seen, sep="\n")
        print(call(home, "incidents", "list", "--all"))
