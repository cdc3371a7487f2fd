"""A home that follows a page of nightly wheels: seven nights in a row, and what is left of them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from dashboard.investigate.tvm_range import list_range
from dashboard.plan.artifact_names import ArtifactFinder
from dashboard.plan.home_config import read_home_config
from tests.dashboard import homes
from tests.dashboard.homes import HomeForTests
from tests.dashboard.package_index import HEALTHY, add_nightly, make_index

RUN = homes.good("run", 'cp "${TVMDASH_REFERENCE:-/dev/null}" "$TVMDASH_HOME/../$TVMDASH_JOB.reference"')


def go(home: HomeForTests, variables: dict[str, str], code: int = 0) -> tuple[str, str, str]:
    """A night that may get TVM; the version that it measured, that of the reference, its notes."""
    environment = {**homes.environment(), **variables}
    done = subprocess.run(home.command("run"), env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    night = home.last()
    tvm, against = ("", "") if not night["artifacts"] else (night["artifacts"][0]["version"].removeprefix("0.26."), "")
    if night["references"]:
        against = night["references"][0]["version"].removeprefix("0.26.")
    return tvm, against, " ".join(night["notes"])


def test_seven_nights_on_a_page_of_nightly_wheels(tmp_path: Path) -> None:
    variables, page = make_index(tmp_path / "index", {"0.9.0": HEALTHY}), tmp_path / "page"
    remote = {"package": "mlc-ai-nightly-cpu", "find_links": str(page)}
    home = homes.make_home(tmp_path, Path("../shelf"), telemetry_rate=0, tvm_remote=remote)
    homes.write(home.experiment("x", run=RUN) / "fields.json", {"beside_reference": "reads"})
    shown = f"wheel:mlc-ai-nightly-cpu,{page}"

    for number in (200, 201):
        add_nightly(page, number, commit="aaaa1111")
    planned = home.run_with(variables, verb="plan").output
    assert f"TVM: latest from {shown}\n" in planned
    assert "the version before it, which the night looks up where the wheels come from." in planned
    assert go(home, variables) == ("dev201", "dev200", "")
    add_nightly(page, 202, commit="bbbb2222")
    assert go(home, variables) == ("dev202", "dev201", "")
    add_nightly(page, 203, commit="bbbb2222")
    assert go(home, variables) == ("dev203", "dev202", ""), "another build of the same commit"
    next(page.glob("*dev203*")).unlink()
    tvm, against, notes = go(home, variables)
    assert (tvm, against) == ("dev202", "dev203"), "older than the last: the page has gone back"
    assert "0.26.dev203, which was obtained before, is no longer offered." in notes
    add_nightly(page, 204, code="raise ImportError('undefined symbol')")
    tvm, against, notes = go(home, variables, code=1)
    assert (tvm, against) == ("", "")
    assert f"Could not obtain TVM latest from {shown}: mlc-ai-nightly-cpu 0.26.dev204: no apache-tvm-ffi works" in notes
    home.configure(measure_last_tvm="always")
    tvm, _, notes = go(home, variables)
    assert tvm == "dev203"
    assert "TVM 0.26.dev204 of" in notes
    add_nightly(page, 205, commit="cccc3333")
    assert go(home, variables)[:2] == ("dev205", "dev203")

    (candidate,) = list_range("wheel:0.26.dev202..0.26.dev205", finder_of(home, tmp_path))[1:-1]
    assert candidate.id == "0.26.dev203", "what has vanished from the page is at hand"
    status = home.run(verb="status").output
    assert "0.26.dev205 (cccc3333) against TVM 0.26.dev203" in status
    for gone in (tmp_path / "shelf", home.path):
        shutil.rmtree(gone)
    argv = [sys.executable, "-m", "dashboard", "restore", str(tmp_path / "backup"), str(home.path)]
    subprocess.run(argv, env=homes.environment(), check=True)
    restored = {path.name.split("-")[6] for path in home.home.references.iterdir()}
    assert restored == {"0.26.dev201", "0.26.dev202", "0.26.dev203", "0.26.dev205"}


def finder_of(home: HomeForTests, tmp_path: Path) -> ArtifactFinder:
    return ArtifactFinder(read_home_config(home.home), tmp_path / "logs", rebuild=False)
