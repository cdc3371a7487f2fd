"""A home that follows a page of nightly wheels: seven nights in a row, and what is left of them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from dashboard.plan.artifact_names import ArtifactFinder
from dashboard.plan.home_config import read_home_config
from dashboard.trials.tvms import list_range
from tests.dashboard import homes, page_server
from tests.dashboard.homes import HomeForTests
from tests.dashboard.package_index import HEALTHY, add_nightly, make_index, write_wheel
from tests.dashboard.page_server import PageServer

RUN = homes.good("run", 'cp "${TVMDASH_REFERENCE:-/dev/null}" "$TVMDASH_HOME/../$TVMDASH_JOB.reference"')


def go(home: HomeForTests, variables: dict[str, str], code: int = 0) -> tuple[str, str, str]:
    """A night that may get TVM; the version that it measured, that of the reference, its notes."""
    done = home.run_online(variables)
    assert done.code == code, done.output
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
    planned = home.run_online(variables, verb="plan").output
    assert re.search(
        rf"^TVM: latest from {shown}: 0\.26\.dev201, to be downloaded \(asked at ..:.. UTC\)\.$", planned, re.MULTILINE
    )
    assert "the version before it, which the night looks up where the wheels come from." in planned
    assert go(home, variables) == ("dev201", "dev200", "")
    assert f"TVM: latest from {shown}: 0.26.dev201, at hand (asked" in home.run_online(variables, verb="plan").output
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
    assert homes.call("restore", str(tmp_path / "backup"), str(home.path)).code == 0
    restored = {path.name.split("-")[6] for path in home.home.references.iterdir()}
    assert restored == {"0.26.dev201", "0.26.dev202", "0.26.dev203", "0.26.dev205"}


def finder_of(home: HomeForTests, tmp_path: Path) -> ArtifactFinder:
    return ArtifactFinder(read_home_config(home.home), tmp_path / "logs", rebuild=False)


def test_plan_check_and_doctor_say_what_a_night_would_take(tmp_path: Path) -> None:
    variables, page = make_index(tmp_path / "index", {}), tmp_path / "page"
    home = homes.make_home(tmp_path, Path("../shelf"), telemetry_rate=0, tvm_remote=f"wheel:ours,{page}")
    home.experiment("x")

    def ask(*options: str) -> list[tuple[int, str]]:
        done = [home.run_online(variables, *options, verb=verb) for verb in ("plan", "check", "doctor")]
        return [(item.code, item.output) for item in done]

    for code, told in zip((0, 2, 1), ask(), strict=True):
        assert told[0] == code, f"what is away is said, and stops no plan: {told[1]}"
        assert f"latest from wheel:ours,{page}: a night that began now would have none (asked at" in told[1]
        assert f"Check that this machine can reach {page}" in told[1]
    page.mkdir()
    files = {"tvm/__init__.py": HEALTHY, "tvm/_version.py": "__commit_id__ = None\n", "tvm/libtvm.so": "x"}
    write_wheel(page, "ours", "1.0", files)
    for code, told in ask():
        assert (code, "1.0, to be downloaded (asked at" in told) == (0, True), told
    assert go(home, variables)[0] == "1.0"
    for code, told in ask("--no-rebuild-tvm"):
        assert (code, f"latest from wheel:ours,{page}: 1.0, at hand.\n" in told) == (0, True), told
    page.rename(tmp_path / "elsewhere")
    for code, told in ask():
        assert code == 0
        assert ": 1.0, at hand; the source does not say what is newest (asked at" in told
    home.configure(tvm_branch="1.0")
    assert f"TVM: 1.0 from wheel:ours,{page}: at hand.\n" in home.run_online(variables, verb="plan").output
    home.configure(tvm_branch="2.0", measure_last_tvm="never")
    assert home.run_online(variables, verb="check").code == 2


PASSWORD, TOKEN = "hunter2hunter2", "s3cr3ttoken99"


def make_home_on(server: PageServer, root: Path, **config: Any) -> HomeForTests:
    """A home on the server's page, with an experiment on TVM and one that needs none."""
    remote = f"wheel:mlc-ai-nightly-cpu,{server.address}?token={TOKEN}"
    home = homes.make_home(root, Path("../shelf"), telemetry_rate=0, tvm_remote=remote, **config)
    home.experiment("x")
    homes.write(home.experiment("canary") / "fields.json", {"needs_tvm": False})
    return home


def test_secrets_of_an_index_address_are_in_no_log_page_message_or_list_of_processes(tmp_path: Path) -> None:
    variables, page = make_index(tmp_path / "index", {}), tmp_path / "page"
    add_nightly(page, 201, commit="aaaa1111")
    with page_server.serve(page, PASSWORD, TOKEN) as server:
        home = make_home_on(server, tmp_path, tvms={"other": f"wheel:mlc-ai-nightly-cpu,{server.address}@0.26.dev199"})
        told = [home.run_online(variables, verb=verb, warm=False).output for verb in ("plan", "check")]
        assert "0.26.dev201, to be downloaded" in told[0]
        done = home.run_online(variables, warm=False)
        assert done.code == 1, "the other TVM is not offered"
        assert "0.26.dev199 is not available for Python" in done.output
        assert server.asked
    away = home.run_online({**variables, "PIP_RETRIES": "0"}, warm=False)
    assert "Could not look up latest of wheel:mlc-ai-nightly-cpu,http://[hidden]@127.0.0.1" in away.output
    told += [done.output, away.output, *(home.run(verb=verb).output for verb in ("status", "plan", "check", "doctor"))]
    assert not server.seen_in, "no list of processes"
    kept = [home.path / "results", *(tmp_path / name for name in ("tmp", "shelf", "setup"))]
    files = [path for folder in kept for path in folder.rglob("*") if path.is_file()]
    assert any(path.name.startswith("pip-index-") for path in files)
    texts = {**{path.name: path.read_bytes() for path in files}, "said": "\n".join(told).encode()}
    leaks = [name for name, text in texts.items() for secret in (PASSWORD, TOKEN) if secret.encode() in text]
    assert not leaks


@pytest.mark.parametrize("slow", ["/?", "/mlc_ai"])
def test_a_server_that_sends_a_byte_a_second_costs_the_nights_tvm_alone(tmp_path: Path, slow: str) -> None:
    variables, page = make_index(tmp_path / "index", {}), tmp_path / "page"
    add_nightly(page, 201)
    with page_server.serve(page, PASSWORD, TOKEN) as server:
        home = make_home_on(server, tmp_path, artifact_timeout_s=3)
        server.dripping, server.watched = slow, tmp_path / "tmp"
        done = home.run_online(variables)
        server.dripping = ""
        assert done.code == 1
        assert home.states("canary")["run"] == "ok"
        assert home.states("x")["run"] == "blocked"
        (note,) = home.last()["notes"]
        assert "did not end within " in note
        assert "or allow more time (artifact_timeout_s)." in note
        home.configure(artifact_timeout_s=600)
        assert home.run_online(variables).code == 0
        add_nightly(page, 202)
        home.configure(artifact_timeout_s=3, measure_last_tvm="always")
        server.dripping = slow
        assert home.run_online(variables).code == 0
        assert home.states("x")["run"] == "ok"
        assert home.last()["artifacts"][0]["version"] == "0.26.dev201"
        assert not server.seen_in, "nor is a secret in a log that is still written to"
