"""What a publish takes over from the old site, and what it must make anew, though no night has changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.make_site_home import make_home
from tests.site_truth import Truth
from tests.subsystem import scripts
from tests.subsystem.website.sites import CONFIG, REPO, STAMP, Site, assert_whole, job, record, stamp
from tvmdash import common
from tvmdash.dashboard_info import COMPLETE, Home


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(Home(tmp_path / "home"))


def leave_picture(site: Site, words: str, **run: Any) -> None:
    """A run that telemetry watched, whose picture the experiment's page and that of the machine show."""
    graph = {"file": "graphs/cnn.svg", "alt": words}
    value = {"experiment": "cnn", "readings": 9, "abnormal": [], "ranges": {}, "outliers": [], "outliers_in_all": 0}
    site.output("telemetry", "page.json", {"stamp": STAMP, "faults": [], "runs": [{**value, "graph": graph, **run}]})
    site.output(
        "telemetry",
        "graphs/cnn.svg",
        f"<svg xmlns='http://www.w3.org/2000/svg'><title>t</title><desc>{words}</desc></svg>",
    )


def test_a_picture_that_two_pages_show_is_published_again_on_the_same_night(site: Site) -> None:
    site.night(job("cnn"))
    leave_picture(site, "warm")
    for _ in range(3):
        site.published()
        assert_whole(site)
        for page in (site.experiment("cnn"), site.page("machines.html")):
            assert "warm" in [image["alt"] for image in page.all("img")]


def test_a_picture_is_never_written_into_the_old_site(site: Site, tmp_path: Path) -> None:
    """Two runs whose pictures have one name: the first is that of the old site, the second another."""
    site.night(job("cnn"))
    leave_picture(site, "warm")
    site.published()
    (picture,) = site.folder.glob("graphs/telemetry/*.svg")
    before = picture.read_text()
    os.link(picture, tmp_path / "old.svg")
    files = {"first": {"file": "graphs/cnn.svg", "alt": "1"}, "second": {"file": "more/cnn.svg", "alt": "2"}}
    run = {"readings": 9, "abnormal": [], "ranges": {}, "outliers": [], "outliers_in_all": 0}
    runs = [{**run, "experiment": name, "graph": graph} for name, graph in files.items()]
    site.output("telemetry", "page.json", {"stamp": STAMP, "faults": [], "runs": runs})
    site.output("telemetry", "more/cnn.svg", "<svg xmlns='http://www.w3.org/2000/svg'><desc>hot</desc></svg>")
    site.published()
    assert (tmp_path / "old.svg").read_text() == before


def publish_by(code: Path, site: Site) -> None:
    """Publish by a copy of the repository, as a night does after an upgrade."""
    folder = code / "subsystem" / "website"
    site.folder.mkdir(parents=True, exist_ok=True)
    environment = {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "PYTHONPATH": str(code / "shared" / "python"),
        "LC_ALL": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    argv = [str(folder / "run.sh"), str(CONFIG), str(site.folder), str(site.home.root)]
    done = subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def copy_code(folder: Path) -> Path:
    for part in ("subsystem/website", "shared/python"):
        shutil.copytree(REPO / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def inodes(site: Site) -> dict[str, int]:
    """Of all that the website makes itself; what it copies is as old as it is."""
    static = {path.name for path in (REPO / "subsystem" / "website" / "static").iterdir()}
    copied = static | {"data", "report.json", "status.json"}
    names = {str(path.relative_to(site.folder)): path for path in site.folder.rglob("*") if path.is_file()}
    return {name: path.stat().st_ino for name, path in names.items() if name.split("/")[0] not in copied}


def test_what_the_library_words_otherwise_reaches_every_page_and_file_that_stands(site: Site, tmp_path: Path) -> None:
    for ago in (400, 1):
        site.night(job("cnn", stamp(ago)), at=stamp(ago), state=COMPLETE)
        site.data("cnn", [record("mlp", 1.0)], at=stamp(ago))
    site.night(job("cnn"))
    code = copy_code(tmp_path / "code")
    publish_by(code, site)
    before = inodes(site)
    old = f"nights/{stamp(400)}.html"
    assert "12 min 34 s" in site.page(old).words
    publish_by(code, site)
    assert inodes(site)[old] == before[old], "nothing has changed: it is carried over"
    before = inodes(site)  # of the site that is there while the next is made, so that none is used again
    library = code / "shared" / "python" / "tvmdash" / "text.py"
    library.write_text(library.read_text(encoding="utf-8").replace('(60, "min", 1, "s")', '(60, "minutes", 1, "s")'))
    publish_by(code, site)
    assert "12 minutes 34 s" in site.page(old).words
    assert [name for name, inode in inodes(site).items() if before.get(name) == inode] == []


def test_another_address_of_commits_reaches_the_pages_that_stand(site: Site) -> None:
    publishing = scripts.load("website").publishing
    commits = [{"sha": "c" * 40, "title": "A commit", "author": "a", "date": "2026-11-20"}]
    since = {"stamp": stamp(2), "key": "git-b", "version": "0.1+gb", "commit": "b" * 40, "commits": commits, "more": 0}
    site.night(job("cnn"), at=stamp(1), state=COMPLETE, provider="git", key="git-c", commit="c" * 40, since=since)
    site.night(job("cnn"))
    for address in ("https://one.example.org/{commit}", "https://two.example.org/{commit}"):
        night, links = site.home.read_night(STAMP), publishing.Links(address, "")
        publishing.publish(site.home, night, site.folder, common.utc_now(), links=links)
        assert address.format(commit="c" * 40) in list(site.page(f"nights/{stamp(1)}.html").references)


def test_commits_that_a_rewritten_branch_has_lost_are_named(site: Site) -> None:
    came, went = ({"sha": sha * 40, "title": f"A {sha}", "author": "a", "date": "2026-11-20"} for sha in "cd")
    since = {"stamp": stamp(2), "key": "git-b", "version": "0.1+gb", "commit": "d" * 40, "commits": [came], "more": 0}
    since |= {"gone": [went], "more_gone": 2}
    site.night(job("cnn"), at=stamp(1), state=COMPLETE, provider="git", key="git-c", commit="c" * 40, since=since)
    site.night(job("cnn"))
    site.publish_here(STAMP)
    words = " ".join(site.page(f"nights/{stamp(1)}.html").words.split())
    assert "1 commit ccccccccc A c a, 2026-11-20 " in words
    assert "The branch was rewritten: 3 commits are no longer in it ddddddddd A d a, 2026-11-20 and 2 more" in words


def test_samples_that_were_read_once_outlive_their_raw_measurements_and_the_code_that_read_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = make_home(tmp_path / "home", Truth(6, 3), traces=2, subsystems=False)
    site, last = Site(home), home.night_stamps()[-1]
    site.publish_here(last)
    receipts = {path: common.read_json(path)["records"] for path in site.folder.glob(f"receipts/{last}/*.json")}
    assert all(one["samples_ms"] for records in receipts.values() for one in records)
    shutil.rmtree(home.root / "tmp")
    context = sys.modules["views.context"]
    monkeypatch.setattr(context, "code_version", lambda: "newer")
    before = {path: path.stat().st_ino for path in receipts}
    site.publish_here(last)
    assert {path: common.read_json(path)["records"] for path in receipts} == receipts
    assert all(path.stat().st_ino != inode for path, inode in before.items()), "made by the new code"
