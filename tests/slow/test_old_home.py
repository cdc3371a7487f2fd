"""A home of 70 nights from before there was a ledger: nothing of what it knew is lost, whatever is made again."""

from __future__ import annotations

import difflib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dashboard.archive import archive
from tests.dashboard.homes import REPO
from tvmdash.dashboard_info import Home
from tvmdash.store import TABLES, connect, keep_messages

pytestmark = pytest.mark.slow
BEFORE_THE_LEDGER = "67c9a73"
_TOLD_IN_SLACK = 60
_TELL = f"""
import datetime, pathlib, sys
from tvmdash.slack_util.ledger import Entry, Ledger, State
folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True)
last = datetime.datetime(2026, 11, 21, 3, 15)
for day in range({_TOLD_IN_SLACK}):
    stamp = f"{{last - datetime.timedelta(days=day):%Y%m%dT%H%M%SZ}}"
    Ledger(folder).put(Entry(stamp, "key", 0.0, State.SENT, ts="1800000000.000100"))
"""
"""What that commit's nights left of its messages in Slack: of so many nights."""
_BUILT = ["tvms", "trials", "trial_series", "failures", "runs", "series", "measurements"]


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """The home as that commit's own code made, judged and published it; people looked after it; no raw data is left."""
    root = tmp_path_factory.mktemp("old")
    git = ["git", "-c", "safe.directory=*", "-C", str(REPO)]
    if subprocess.run([*git, "cat-file", "-e", f"{BEFORE_THE_LEDGER}^{{commit}}"], check=False).returncode:
        pytest.skip(f"commit {BEFORE_THE_LEDGER} is not in this clone. Fetch the whole history: git fetch --unshallow")
    code = root / "code"
    code.mkdir()
    files = subprocess.run([*git, "archive", BEFORE_THE_LEDGER], check=True, stdout=subprocess.PIPE).stdout
    subprocess.run(["tar", "-x", "-C", str(code)], input=files, check=True)
    home = root / "home"
    program(code, "tests/make_site_home.py", str(home), "--nights", "70", "--series", "40", "--publish")
    program(code, "-m", "tvmdash.incidents", str(home), "silence", "cnn_*", "--days", "30", "--who", "ann")
    shutil.rmtree(home / "tmp" / "raw")
    program(code, "-c", _TELL, str(Home(home).output("exp_reports")))
    return Home(home)


def program(code: Path, *words: str) -> None:
    """Run a Python program of a checkout, which must go well."""
    # Of a machine of its own: whoever measures on this one meanwhile is not waited for.
    env = {name: os.environ[name] for name in ("PATH", "SLURMD_NODENAME")}
    env |= {"HOME": "/tmp", "PYTHONPATH": f"{code}:{code}/shared/python"}
    done = subprocess.run(
        [sys.executable, *words], env=env, cwd=code, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def make_again(home: Home) -> None:
    """The verdict, the scores, the website and the index of the home's last night, by the code of today."""
    program(REPO, "-m", "dashboard", "rebuild", str(home.root))
    for name in ("stat_alerts", "score", "website"):
        folder, output = REPO / "subsystem" / name, home.output(name)
        output.mkdir(parents=True, exist_ok=True)
        env = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": "/tmp", "LANG": "C.UTF-8",
            "PYTHONPATH": str(REPO / "shared" / "python"), "TVMDASH_NIGHT": home.night_stamps()[-1],
        }  # fmt: skip
        argv = [str(folder / "run.sh"), str(home.config("subsystem", name)), str(output), str(home.root)]
        done = subprocess.run(argv, env=env, cwd=folder, capture_output=True, text=True, check=False, timeout=600)
        assert done.returncode == 0, done.stdout + done.stderr


def read_all(home: Home) -> dict[str, Any]:
    """All that is told of the home: every table, every address of its site, the words of the nights' pages."""
    site = home.output("website")
    with connect(home.root) as opened:
        tables = {name: sorted(opened.execute(f'SELECT * FROM "{name}"').fetchall(), key=repr) for name in TABLES}
    listed = subprocess.run(
        [sys.executable, "-m", "tvmdash.incidents", str(home.root), "list"], check=True, capture_output=True, text=True,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(REPO / "shared" / "python")},
    ).stdout  # fmt: skip
    pages = {page.name: page.read_text(encoding="utf-8") for page in (site / "nights").glob("2*Z.html")}
    addresses = sorted(str(page.relative_to(site)) for page in site.rglob("*.html"))
    return {**tables, "incidents in words": listed, "pages": pages, "addresses": addresses}


def test_a_home_of_old_is_the_same_after_the_index_is_deleted_and_after_a_restore(old: Home, tmp_path: Path) -> None:
    told = [page.name for page in (old.output("website") / "nights").glob("2*Z.html")]
    addresses = {str(path.relative_to(old.output("website"))) for path in old.output("website").rglob("*.html")}
    keep_messages(old, old.night_stamps()[-1])
    (old.output("exp_reports") / "slack.json").write_text('{"schema_version": 1, "messages": []}')
    make_again(old)
    before = read_all(old)
    assert len(before["messages"]) == _TOLD_IN_SLACK
    assert before["verdicts"]
    assert set(told) == set(before["pages"])
    assert len(told) == 70
    assert addresses <= set(before["addresses"]), "an address that people have kept leads nowhere"
    assert "cnn_*" in before["incidents in words"]
    assert [row for row in before["incidents"] if row[2] == "acknowledged"]
    assert any(row[-1] for row in before["nights"]), "what the last night's page said is kept"
    assert [name for name in _BUILT if not before[name] and name != "failures"] == []

    old.store_file.unlink()
    (old.output("stat_alerts") / "state.json").unlink(missing_ok=True)
    shutil.rmtree(old.output("website"))
    make_again(old)
    assert differences(before, read_all(old)) == []

    archive.archive(old.root, tmp_path / "backup", f"{old.night_stamps()[-1]}-after", exclude=())
    restored = Home(tmp_path / "restored")
    archive.restore(tmp_path / "backup", None, restored.root)
    assert not restored.store_file.exists()
    make_again(restored)
    assert differences(before, read_all(restored)) == []


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What is not the same, line by line."""
    texts = [json.dumps(told, indent=1, sort_keys=True, default=str).splitlines() for told in (before, after)]
    return list(difflib.unified_diff(*texts, n=1, lineterm=""))
