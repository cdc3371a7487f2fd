"""The subsystem in docs/how-to/subsystem.md, run as it stands there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.dashboard import homes

PAGE = homes.REPO / "docs" / "how-to" / "subsystem.md"
NAME = "slower"


def files() -> dict[str, str]:
    """The page's files by name: each stands behind a line that begins with its name, or ends with its place."""
    text = PAGE.read_text(encoding="utf-8")
    found = re.findall(r"`([\w./]+)`[^`\n]*(?:`[^`\n]*`[^`\n]*)*:?\n\n```\w+\n(.*?)```\n", text, re.DOTALL)
    return {name.rpartition("/")[2]: content for name, content in found}


@pytest.fixture
def home(tmp_path: Path, tvm_artifact_folder: Path) -> homes.HomeForTests:
    """A home with the experiment `good` and the page's subsystem."""
    made = homes.make_home(tmp_path, tvm_artifact_folder)
    made.experiment("good")
    there = files()
    folder = made.code / "subsystem" / NAME
    for name in ("run.sh", "check.sh"):
        homes.script(folder / name, there[name])
    for name in ("fields.json", "slower.py"):
        (folder / name).write_text(there[name])
    homes.write(made.home.config("subsystem", NAME) / "config.json", json.loads(there["config.json"]))
    return made


def last_run_took(home: homes.HomeForTests, seconds: float) -> None:
    """Have the newest night's run of `good` taken so long."""
    path = home.home.night_file(home.stamps()[-1])
    night = homes.read(path)
    next(step for job in night["jobs"] for step in job["steps"] if step["stage"] == "run")["elapsed_s"] = seconds
    homes.write(path, night)


def test_the_pages_subsystem_tells_a_slow_run_and_is_quiet_about_others(home: homes.HomeForTests) -> None:
    home.night()
    assert home.home.read_report(NAME) is None, "there was no night before"
    last_run_took(home, 0.0001)
    home.night()
    report = home.home.read_report(NAME)
    assert report is not None
    assert report[0] == "A slow run"
    assert re.fullmatch(r"good took .+, .+ the night before\.", report[1])
    last_run_took(home, 9999)
    home.night()
    assert home.home.read_report(NAME) is None
    assert homes.read(home.home.output(NAME) / "page.json")["last"] == 9999


def test_the_pages_subsystem_is_checked_and_blocked_with_a_reason(home: homes.HomeForTests) -> None:
    assert home.run(verb="check").code == 0
    config = home.home.config("subsystem", NAME) / "config.json"
    homes.write(config, {**homes.read(config), "experiment": "goood"})
    assert f"{config}: $.experiment: this home has no 'goood'." in home.run(verb="check").output
    assert home.run().code == 1
    status = home.status(NAME, "run", kind="subsystem")
    assert status["state"] == "blocked"
    assert "experiment goood is unknown" in status["message"]
