"""Experiments that ask for a sandbox: measured as others are, and shut off from the rest of the machine."""

from __future__ import annotations

import json
import os
import shutil
import socket
from pathlib import Path

import pytest

from dashboard.night import recovery
from dashboard.process import sandbox
from tests.dashboard import homes

PROBE = """
cat {root}/home/config/config.json > "$2/config" || true
cat {root}/secret > "$2/secret" || true
echo > {root}/home/results/nights/$TVMDASH_JOB.json || true
python3 -c "import socket; socket.create_connection(('127.0.0.1', {port}), 5); print('reached')" > "$2/network" || true
ls -d /proc/{pid} > "$2/processes" || true
"""
TELL = """printf '{"title": "t", "value": "%s"}' "$(ls "$2" | tr '\\n' ' ')" > "$3/summary.json\""""
SHUT, OPEN = "0 0 0 0", "1 1 1 1"


@pytest.fixture
def tmp_path(on_disk: Path) -> Path:
    return on_disk


@pytest.fixture
def home(tmp_path: Path, tvm_artifact_folder: Path) -> homes.HomeForTests:
    return homes.make_home(tmp_path, tvm_artifact_folder)


@pytest.fixture
def _sealed() -> None:
    if obstacle := sandbox.find_obstacle():
        pytest.skip(obstacle)


@pytest.mark.usefixtures("_sealed")
def test_a_sandboxed_experiment_is_measured_and_sees_nothing_else(home: homes.HomeForTests) -> None:
    (home.root / "secret").write_text("the operator's")
    count = """printf '{"value": 1.5, "seen": "%s"}' "$(cd "$2" && for f in config secret network processes; do
      test -s $f && echo 1 || echo 0; done | xargs)" > "$3/data.json\""""
    summarize = homes.good("summarize").replace(homes.WORK["summarize"], TELL)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        probe = PROBE.format(root=home.root, port=listening.getsockname()[1], pid=os.getpid())
        run = homes.good("run", probe)
        analyze = homes.good("analyze").replace(homes.WORK["analyze"], count)
        for name in ("shut", "open"):
            config = {"sandbox": name == "shut"}
            home.experiment(name, config=config, run=run, analyze=analyze, summarize=summarize)
        home.night()
    stamp = home.stamps()[-1]
    for name, seen in (("shut", SHUT), ("open", OPEN)):
        data = homes.read(home.home.data_file(name, stamp))
        assert (data["value"], data["seen"]) == (1.5, seen), name
        assert homes.read(home.home.summary(name) / "summary.json")["value"].strip() == f"data_{stamp}.json"
        assert "sandbox" not in data["night"]["config"], "how it is run changes no series and no setup"
    assert (home.home.nights / "open.json").exists()
    assert not (home.home.nights / "shut.json").exists()


@pytest.mark.usefixtures("_sealed")
def test_what_setup_left_is_there_for_every_stage(home: homes.HomeForTests) -> None:
    scripts = {stage: homes.good(stage, "cat setup/built") for stage in homes.STAGES}
    home.experiment("shut", config={"sandbox": True}, setup=homes.good("setup"), **scripts)
    for _ in range(2):
        home.night()


@pytest.mark.usefixtures("_sealed")
def test_a_killed_sandboxed_run_is_analyzed_in_a_sandbox_too(home: homes.HomeForTests) -> None:
    folder = home.root / "experiment-shut"
    homes.write(folder / "config" / "config.json", {"active": True, "sandbox": True, "repeat": 3})
    assert recovery._read_config(folder) == ({"active": True, "repeat": 3}, True)


def test_without_bubblewrap_it_is_rejected_and_others_run(home: homes.HomeForTests, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("sh", "bash", "env", "python3", "cp", "mv", "cat", "touch", "mkdir", "git"):
        if found := shutil.which(name):
            (programs / name).symlink_to(found)
    home.experiment("shut", config={"sandbox": True})
    home.experiment("open")
    done = home.run_with({"PATH": str(programs)})
    assert done.code == 1, done.output
    assert "$.sandbox: bubblewrap is not installed (Debian, Ubuntu: apt install bubblewrap)" in json.dumps(home.last())
    assert home.home.data_stamps("open") == home.stamps()
    assert home.home.data_stamps("shut") == []
