"""From start to end: a try of one TVM against another, a night on three nodes of a real Slurm, and the site of both."""

from __future__ import annotations

import html
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dashboard.artifacts.artifact import Artifact
from tests.dashboard import homes
from tests.dashboard.homes import HomeForTests
from tests.slow import slurm_cluster

pytestmark = pytest.mark.slow
BASE = "0.26.0"
NODES = ("n1", "n2", "n3")
TIMEOUT_S = 1800.0
ABSENT = "\N{EN DASH} not measured there"


def call(home: HomeForTests, env: dict[str, str], *words: str) -> str:
    """What a command of the dashboard prints, which must go well."""
    done = subprocess.run(
        [sys.executable, "-m", "dashboard", *words],
        env={**os.environ, **homes.environment(), **env},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def make_home(root: Path, artifact: Artifact) -> HomeForTests:
    """A home that measures real TVM here and on the first node, and something small on all three."""
    shelf = root / "shelf"
    shutil.copytree(artifact.path, shelf / artifact.key, copy_function=os.link)
    home = homes.make_home(root, shelf, experiment_dirs=["../code/experiments"], env_name="desk")
    network = {"active": True, "size": "smoke", "networks": ["mlp"], "opt_levels": [3], "hosts": ["local", "n1"]}
    homes.write(home.home.config("experiment", "relax_opt") / "config.json", network)
    folder = home.experiment("plain", config={"title": "Something small", "hosts": list(NODES)})
    homes.write(folder / "fields.json", {"needs_tvm": False})
    for name, priority in (("stat_alerts", 85), ("website", 0)):
        homes.write(home.home.config("subsystem", name) / "config.json", {"active": True, "priority": priority})
    return home


def read_text(page: Path) -> str:
    """The words of a page, each part once with single blanks."""
    text = re.sub(r"<(script|style)\b.*?</\1>", " ", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def test_a_try_and_a_night_on_three_nodes_are_one_site(tmp_path: Path, tvm_artifact: Artifact) -> None:
    missing = slurm_cluster.find_missing()
    if missing:
        pytest.skip(f"there is no Slurm here: {', '.join(missing)} missing (Debian: apt install slurm-wlm munge)")
    home, candidate = make_home(tmp_path, tvm_artifact), f"pypi:{tvm_artifact.version}"
    with slurm_cluster.started(tmp_path / "slurm", len(NODES)) as cluster:
        env = slurm_cluster.add_nodes(home, cluster, *NODES)
        words = ["--against", f"pypi:{BASE}", "--until", "20%", "--budget", "15m"]
        tried = call(home, env, "try", str(home.path), candidate, *words)
        planned = call(home, env, "plan", str(home.path))
        said = call(home, env, "run", str(home.path), "--no-rebuild-tvm")
    assert f"Base: pypi:{BASE}, TVM {BASE}" in tried
    assert "Host n1 (Slurm, node n1): plain, relax_opt (at most 8 h)." in planned
    assert "5 of 5 experiments and 2 of 2 subsystems ok." in said
    hosts = {host["name"]: host for host in home.last()["hosts"]}
    assert {name: (host["state"], host["node"]) for name, host in hosts.items()} == {
        name: ("measured", name) for name in NODES
    }
    assert hosts["n2"]["elapsed_s"] < hosts["n1"]["elapsed_s"] / 2, "the time until it had measured, not until all had"
    data = homes.read(home.home.data_file("relax_opt~n1", home.stamps()[0]))
    assert data["night"]["artifact"]["key"] == tvm_artifact.key
    check_site(home, candidate)


def check_site(home: HomeForTests, candidate: str) -> None:
    """One site has the try, the night, and what each machine measured."""
    page = home.home.page()
    assert page is not None
    site, (night,) = page.parent, home.stamps()
    assert "23 of 23 expected series All 5 experiments ok" in read_text(page)
    assert "n1: Something small experiment" in read_text(site / "nights" / f"{night}.html")
    hosts = read_text(site / "hosts.html")
    assert "TVM on 4 machines" in hosts
    assert f"plain $.value desk {ABSENT} n1 ◔ too young n2 ◔ too young n3 ◔ too young" in hosts
    steady = f"desk = steady n1 = steady n2 {ABSENT} n3 {ABSENT}"
    assert f"relax_opt mlp code size (variant default) {steady}" in hosts
    for name in NODES:
        assert re.search(rf"\b{name} [^✓]* ✓ measured measured on 1 of 1 night \(100 %\)", hosts)
        assert "Availability 1 of 1 night (100 %)" in read_text(site / "hosts" / f"{name}.html")
    (tried,) = (site / "tries").glob("*.html")
    assert f"{candidate} against pypi:{BASE}" in read_text(tried)
