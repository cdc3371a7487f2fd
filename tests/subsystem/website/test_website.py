"""The website, published by its real run.sh on real homes: what it says of a night, and how it is swapped in."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from tests.subsystem.website.sites import HOSTILE, STAMP, Site, assert_whole, failure, job, record, stamp
from tvmdash import common
from tvmdash.dashboard_info import BLOCKED, COMPLETE, INTERRUPTED, OK, RUNNING, Home, JobResult, StepResult
from tvmdash.series import store
from tvmdash.verdict import ledger


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(Home(tmp_path / "a home, ÄÖ"))


def test_a_good_night_is_told_in_words_with_summary_graphs_and_data(site: Site) -> None:
    site.night(
        job("cnn", title="Networks", description="What do pipelines bring?"), notes=("The disk is nearly full.",)
    )
    site.results("cnn", value="25 points measured.", graphs={"tonight.svg": "Bars &amp; more", "later.svg": "Lines"})
    site.home.data("cnn").mkdir(parents=True)
    common.write_json(site.home.data_file("cnn", STAMP), {"gpu": {"O3": 1.5, "O2": 2.5}})
    page = site.published_by_script()
    for words in (
        "Networks ok",
        "2026-11-21 03:15 UTC",
        "0.27.0, commit 7b5acb32b",
        "The disk is nearly full.",
        "2 of 2 expected series",
        "2 of 2",
        "All experiments have ended",
    ):
        assert words in page.words
    page = site.experiment("cnn")
    for words in ("Networks", "What do pipelines bring?", "25 points measured.", "run 2 s", "2 points"):
        assert words in page.words
    assert [image["alt"] for image in page.all("img")] == ["", "Bars & more", "Lines"]
    assert "Not of tonight" not in page.words
    assert_whole(site)
    assert common.read_json(next(site.folder.glob("data/*/*.json"))) == {"gpu": {"O3": 1.5, "O2": 2.5}}


def test_status_report_and_cache_tag_lie_in_the_new_site(site: Site) -> None:
    site.night(job("cnn"))
    for _ in range(2):
        site.published_by_script()
        assert common.read_json(site.folder / "status.json") == {"success": True, "message": "Website"}
        title, value = site.home.read_report("website") or ("", "")
        assert (title, (site.folder / "index.html").as_uri() in value) == ("Website", True)
        assert (site.folder / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55\n")
    assert [path.name for path in site.folder.parent.iterdir()] == ["website"]


def test_failures_come_first_with_stage_message_and_log(site: Site) -> None:
    site.night(job("good"), job("bad", run=failure("run.sh was killed by SIGKILL.", "line 1\n<b>line 2</b>")))
    page = site.published()
    assert page.first("h1") == "!bad failed"
    assert "1 of 2 experiments ok" in page.words
    assert page.text.index("run.sh was killed by SIGKILL.") < page.text.index(
        "Experiments", page.text.index("What went wrong")
    )
    assert "line 1\n<b>line 2</b>" in page.text
    assert "bad run failed" in page.words
    page = site.experiment("bad")
    assert "analyze blocked" in page.words
    assert "line 1\n<b>line 2</b>" in page.text


def test_jobs_blocked_by_the_same_are_told_once(site: Site) -> None:
    lost = StepResult("run", BLOCKED, "no TVM to measure: the index is down", STAMP)
    site.night(*(job(f"exp{index:03}", run=lost) for index in range(100)))
    page = site.published()
    assert page.first("h1").startswith("✖100 experiments did")
    assert page.text.count("the index is down") == 1
    assert_whole(site)


def test_summary_and_graphs_of_an_older_night_say_so(site: Site) -> None:
    site.night(job("cnn", run=failure("broken")))
    site.results("cnn", at=stamp(1), graphs={"tonight.svg": "x"})
    site.published()
    page = site.experiment("cnn")
    assert "Not of tonight: this summary is of 2026-11-20 03:15 UTC." in page.words
    assert "Not of tonight: these graphs are of 2026-11-20 03:15 UTC." in page.words
    assert "No data of tonight" in page.words


def test_failed_points_are_told_with_their_errors(site: Site) -> None:
    site.night(job("cnn"))
    failures = [
        {"workload": "relax.mlp", "values": {"opt": index}, "error": f"too far off {index}"} for index in range(25)
    ]
    site.home.data("cnn").mkdir(parents=True)
    value = {"schema_version": 1, "tvm_hash": "x", "records": [], "failures": failures}
    common.write_json(site.home.data_file("cnn", STAMP), value)
    page = site.published()
    assert "25 failed points" in page.words
    assert "mlp, 0: too far off 0" in page.words
    page = site.experiment("cnn")
    assert "mlp, 0: too far off 0" in page.words
    assert "and 5 more, in the data" in page.words


def test_data_that_cannot_be_read_is_told_and_the_rest_is_shown(site: Site) -> None:
    site.night(job("cnn"), job("rnn"))
    site.home.data("cnn").mkdir(parents=True)
    site.home.data_file("cnn", STAMP).write_text('{"records": [')
    site.results("rnn", value="rnn is well")
    page = site.published()
    assert "Its data could not be read" in page.words
    assert "rnn is well" in site.experiment("rnn").words


@pytest.mark.parametrize(
    "damage",
    [
        '{"records": [',
        '{"records": [3], "failures": {}}',
        '{"records": {"a": []}}',
        "[]",
        '{"records": [], "failures": [{"workload": 3, "values": {}, "error": "x"}]}',
        '{"records": [], "failures": [{"workload": "a", "values": [], "error": "x"}]}',
        '{"records": [], "failures": [{"workload": "a", "values": {}, "error": {"a": 1}}]}',
    ],
)
def test_data_that_was_damaged_after_it_was_taken_in_is_told(site: Site, damage: str) -> None:
    site.night(job("cnn"), job("rnn"))
    for name in ("cnn", "rnn"):
        site.data(name, [record("mlp", 10.0)])
    with store.open_for_writing(site.home.store_file) as opened:
        for name in ("cnn", "rnn"):
            opened.ingest(site.home.data(name), name)
    site.home.data_file("cnn", STAMP).write_text(damage)
    page = site.publish_here()
    assert page.words.count("Its data could not be read") == page.words.count("could not be read") == 1
    assert "cnn mlp run time" in page.words


def test_a_home_where_nothing_is_active_says_what_to_do(site: Site) -> None:
    site.night()
    page = site.published()
    assert "No experiment ran" in page.words
    assert '"active": true' in page.words
    assert_whole(site)


def test_inactive_and_rejected_experiments_stay_visible(site: Site) -> None:
    rejected = JobResult("experiment", "odd", "odd", "", (failure("$.repeat: 0 is less than 1.", stage="precheck"),))
    site.night(rejected)
    for name, config in (
        ("asleep", {"active": False, "title": "Sleeping beauty"}),
        ("odd", {}),
        ("awake", {"active": True}),
    ):
        site.home.config("experiment", name).mkdir(parents=True)
        common.write_json(site.home.config("experiment", name) / "config.json", config)
    page = site.published()
    assert "$.repeat: 0 is less than 1." in page.words
    assert "odd precheck failed" in page.words
    assert "Sleeping beauty not active; never measured" in page.words
    assert "awake never measured" in page.words


def test_an_experiment_on_another_tvm_has_a_page_of_its_own_with_the_experiments_config(site: Site) -> None:
    site.home.config("experiment", "cnn").mkdir(parents=True)
    common.write_json(site.home.config("experiment", "cnn") / "config.json", {"active": True, "batch": 17})
    for name, median_ms in (("cnn", 1.0), ("cnn@release", 2.0), ("cnn@old", 3.0)):
        site.data(name, [record("network.mlp", median_ms)])
        site.results(name, graphs={"g.svg": f"graph of {name}"})
    site.night(job("cnn", title="CNN"), job("cnn@release", title="release: CNN"))
    page = site.published()
    assert "release: CNN" in page.words
    assert '"batch": 17' in site.experiment("cnn@release").words
    assert "Summary of cnn@release" in site.experiment("cnn@release").words
    assert '"batch": 17' not in site.experiment("cnn@old").words, "the home measures on that TVM no more"
    common.write_json(site.home.config("experiment", "cnn") / "config.json", {"active": False})
    site.night()
    site.published()
    assert "not active" in site.experiment("cnn@release").words
    assert_whole(site)


def test_reports_of_other_subsystems_are_shown_and_an_old_one_says_so(site: Site) -> None:
    done = JobResult("subsystem", "alerts", "Alerts", "", (StepResult("run", OK, "", STAMP),))
    dead = JobResult("subsystem", "score", "Score", "", (failure("no"),))
    site.night(job("cnn"), done, dead)
    for name in ("alerts", "score"):
        site.home.output(name).mkdir(parents=True)
        common.write_json(
            site.home.output(name) / "report.json", {"title": f"Report of {name}", "value": "1 regression"}
        )
    page = site.published()
    assert "cnn ok. " in page.words
    assert "Report of alerts 1 regression" in page.words
    assert "Report of score ◷ From an earlier night: Score has not reported tonight." in page.words


def test_the_calendar_tells_each_night_by_a_sign_and_in_words(site: Site) -> None:
    unfinished = JobResult("experiment", "cnn", "cnn", "", (StepResult("precheck", OK, "", stamp(3)),))
    site.night(unfinished, at=stamp(3), state=INTERRUPTED)
    site.night(job("rnn"), at=stamp(2), state=COMPLETE)
    site.night(job("cnn", run=failure("no")), at=stamp(1), state=COMPLETE)
    site.night(job("cnn"))
    page = site.published()
    days = [str(item["title"]) for item in page.all("a") if "202" in str(item.get("title"))]
    assert [day.partition(":")[0] for day in days] == [f"2026-11-{day}" for day in (18, 19, 20, 21)]
    assert [" ".join(text.split()) for text in page.texts["li"] if text.strip()[:2] in ("18", "19", "20", "21")] == [
        "18✖",
        "19✓",
        "20✖",
        "21✓",
    ]
    assert "it was stopped early" in site.page(f"nights/{stamp(3)}.html").words
    assert "Of 1 experiment, 1 not finished" in site.page("nights/2026.html").words


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_stays_text_and_inside_the_site(site: Site, name: str) -> None:
    path = name[:200].replace("/", "\u2215").replace("\x00", "").encode("utf-8", "replace").decode()
    bad = job(path, title=name, description=name, run=failure(name, name))
    site.night(job("cnn", title=name, description=name), bad, notes=(name,))
    site.results("cnn", value=name, graphs={f"{path[:150]}.svg": "x"})
    site.home.output("alerts").mkdir(parents=True)
    before = {path for path in site.home.root.rglob("*") if site.folder not in path.parents}
    page = site.published()
    assert_whole(site)
    kept = {ledger.folder_of(site.home), *ledger.list_files(site.home)}
    after = {path for path in site.home.root.rglob("*") if site.folder not in path.parents}
    assert after - {site.folder} == before | kept
    shown = "a\ufffdb\ufffd[31m\ufffdc" if "\x00" in name else name
    clipped = sum(item.get("title") == shown for tag in ("bdi", "th") for item in page.all(tag))
    assert page.text.count(shown) + clipped >= 5
    for other in site.pages():
        graphs = [image for image in other.all("img") if image["alt"]]
        assert len(graphs) == (other.path == site.experiment("cnn").path)
        assert not {"\x00", "\x1b", "\u202e"} & set(other.text)
    assert all(len(path.name) < 80 and path.name.isascii() for path in site.folder.rglob("*"))


def test_names_that_differ_in_their_signs_alone_keep_their_own_files(site: Site) -> None:
    names = ("a b", "a-b", "A_B", "äb")
    site.night(*(job(name) for name in names))
    for name in names:
        site.results(name, graphs={"tonight.svg": f"of {name}", "TONIGHT!.svg": f"also of {name}"})
    site.published()
    pages = [site.experiment(name) for name in names]
    images = [image for page in pages for image in page.all("img") if image["alt"]]
    alts = [f"{words} {name}" for name in names for words in ("of", "also of")]
    assert sorted(str(image["alt"]) for image in images) == sorted(alts)
    assert len({image["src"] for image in images}) == 8


def test_links_and_other_files_among_the_graphs_are_not_published(site: Site, tmp_path: Path) -> None:
    (tmp_path / "secret.svg").write_text("<svg>secret</svg>")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "deep.svg").write_text("<svg>secret</svg>")
    site.night(job("cnn"))
    site.results("cnn", graphs={"tonight.svg": "x", "page.html": "<script>"})
    graphs = site.home.graph("cnn")
    (graphs / "link.svg").symlink_to(tmp_path / "secret.svg")
    (graphs / "folder").symlink_to(tmp_path / "more")
    os.mkfifo(graphs / "pipe.svg")
    Path(os.fsdecode(os.fsencode(graphs) + b"/\xff.svg")).write_text("<svg></svg>")
    site.published()
    assert [image["alt"] for image in site.experiment("cnn").all("img")][1:] == ["x", "Graph \ufffd"]
    assert len(list(site.folder.glob("graphs/*/*"))) == 2


def test_only_nights_that_changed_are_rendered(site: Site) -> None:
    for ago in range(400, 0, -1):
        site.night(job("cnn", stamp(ago)), at=stamp(ago), state=RUNNING if ago == 1 else COMPLETE)
    site.published_by_script()
    before = site.inodes()
    assert len(before) == 400 + 2 * 3 + 1
    site.night(job("cnn", stamp(1)), at=stamp(1), state=COMPLETE)
    site.night(job("cnn"))
    site.published()
    after = site.inodes()
    new = {name for name in after if before.get(name) != after[name]}
    assert new == {f"{STAMP}.html", f"{stamp(1)}.html", "2026.html", "2026.json", "2026.js", "index.html"}
    assert "2 of 401 night pages" in site.home.read_report("website")[1]
    assert "The night is complete." in site.page(f"nights/{stamp(1)}.html").words
    assert_whole(site)


def test_pages_of_lost_records_go_and_unreadable_records_are_told(site: Site) -> None:
    for ago in (3, 2, 1):
        site.night(job("cnn"), at=stamp(ago), state=COMPLETE)
    site.night(job("cnn"))
    (site.home.nights / "1 stray <file>.json").write_text("{}")
    site.published()
    site.home.night_file(stamp(3)).unlink()
    site.home.night_file(stamp(2)).write_text('{"stamp": ')
    site.published()
    assert not (site.folder / "nights" / f"{stamp(3)}.html").exists()
    assert "The record of this night could not be read." in site.page(f"nights/{stamp(2)}.html").words
    assert "Its record could not be read" in site.page("nights/2026.html").words
    assert_whole(site)


@pytest.mark.parametrize("of_old", [False, True])
def test_a_night_of_which_only_the_jobs_can_be_told_says_so_once(site: Site, of_old: bool) -> None:
    site.night(job("bad", stamp(1), run=failure("run.sh was killed by SIGKILL.")), at=stamp(1))
    page = site.publish_here(stamp(1))
    assert page.first("h1") == "✖bad failed"
    path = site.folder / "nights" / "2026.json"
    catalogue = common.read_json(path)
    kept = catalogue["nights"][stamp(1)]["kept"]
    if of_old:
        del kept["says_jobs"]
    else:
        kept["sentence"][1] = "#an identifier#"
    common.write_json(path, catalogue)
    site.night(job("bad", stamp(1), run=failure("run.sh was killed by SIGKILL.")), at=stamp(1), state=COMPLETE)
    site.night(job("good"))
    site.published()
    page = site.page(f"nights/{stamp(1)}.html")
    assert page.words.count("Of 1 experiment, 1 failed") == 1
    assert "an identifier" not in page.words


@pytest.mark.parametrize("content", ["", "[]", '{"nights": {}}', '{"nights": 3'])
def test_a_damaged_catalogue_is_made_anew(site: Site, content: str) -> None:
    for ago in (2, 1):
        site.night(job("cnn"), at=stamp(ago), state=COMPLETE)
    site.night(job("cnn"))
    site.published()
    (site.folder / "nights" / "2026.json").write_text(content)
    site.published()
    assert set(common.read_json(site.folder / "nights" / "2026.json")["nights"]) == {stamp(2), stamp(1), STAMP}
    assert_whole(site)


def test_a_publish_that_fails_leaves_the_old_site(site: Site) -> None:
    site.night(job("cnn", title="The first"), at=stamp(1), state=COMPLETE)
    site.published()
    before = (site.folder / "index.html").read_bytes()
    site.night(job("cnn", title="The second"))
    assert site.publish("ulimit -f 1; ") == 1
    assert (site.folder / "index.html").read_bytes() == before
    assert common.read_json(site.folder / "status.json")["success"] is False
    assert [path.name for path in site.folder.parent.iterdir()] == ["website"]
    assert "The second" in site.published().words


def wait_until_begun(site: Site, process: subprocess.Popen[str], pattern: str) -> None:
    """Until the new site beside holds such a file, or the publish is over."""
    while process.poll() is None and not any(site.folder.parent.glob(f".website.*.new/{pattern}")):
        time.sleep(0.0002)


def test_a_publish_killed_at_any_instant_leaves_a_whole_site(site: Site) -> None:
    for ago in range(40, 0, -1):
        site.night(job("cnn", title="The first"), at=stamp(ago), state=COMPLETE)
    site.published()
    site.night(job("cnn", title="The second"))
    assert site.publish() == 0
    for part in range(12):
        site.night(job("cnn", title=f"Part {part}"))
        process = site.start()
        wait_until_begun(site, process, "index.html" if part % 4 else "nights/*.html")
        time.sleep(part * 0.0006)  # from the first moments of the new site to the last ones of the old
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        assert_whole(site)
        assert len(list((site.folder / "nights").glob("*Z.html"))) == 41
    common.remove_unfinished(site.folder.parent)
    assert [path.name for path in site.folder.parent.iterdir()] == ["website"]


def test_a_reader_never_misses_the_page_while_it_is_swapped(site: Site) -> None:
    site.night(job("cnn"))
    site.results("cnn", graphs={"tonight.svg": "x"})
    site.published()
    image = str(site.experiment("cnn").all("img")[1]["src"]).removeprefix("../")
    ended, faults, reads = threading.Event(), [], [0]

    def read() -> None:
        while not ended.is_set():
            reads[0] += 1
            for name, end in (("index.html", b"</html>\n"), ("site.css", b"}\n"), (image, b"</svg>")):
                try:
                    if not (site.folder / name).read_bytes().endswith(end):
                        faults.append(f"{name} is cut")
                except OSError as error:
                    faults.append(str(error))
            time.sleep(0.001)  # the processor is the publish's

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(2):
        assert site.publish() == 0
    ended.set()
    reader.join()
    assert (faults, reads[0] > 10) == ([], True)


def test_an_output_folder_behind_a_link_keeps_the_link(site: Site, tmp_path: Path) -> None:
    served = tmp_path / "served"
    served.mkdir()
    site.folder.parent.mkdir(parents=True)
    site.folder.symlink_to(served)
    site.night(job("cnn"))
    site.published_by_script()
    assert site.folder.is_symlink()
    assert (served / "index.html").is_file()


@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
def test_a_browser_finds_nothing_against_the_policy(site: Site, tmp_path: Path) -> None:
    site.night(job("cnn", title=HOSTILE[0], run=failure(HOSTILE[1])))
    site.results("cnn", graphs={"tonight.svg": "x"})
    site.published()
    argv = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--dump-dom"]
    argv += ["--enable-logging=stderr", f"--user-data-dir={tmp_path / 'profile'}"]
    argv.append((site.folder / "index.html").as_uri())
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=True)
    assert "What went wrong" in done.stdout
    assert not [line for line in done.stderr.splitlines() if "CONSOLE" in line]
