"""The first page of a home whose truth is known: the verdict, the incidents, the series, what comes next."""

from __future__ import annotations

import datetime
import gzip
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.golden_files import Golden
from tests.subsystem import scripts
from tests.subsystem.stat_alerts.alert_homes import MLP, AlertHome, Truth, stamp_of
from tests.subsystem.website.sites import HOSTILE, STAMP, Page, Site, assert_whole, failure, job, record, stamp
from tvmdash import common
from tvmdash.dashboard_info import COMPLETE, OK, Home, JobResult, StepResult
from tvmdash.incidents import decisions
from tvmdash.incidents.decisions import By
from tvmdash.judge.history.cause import Reason, ReasonKind
from tvmdash.machine import identity
from tvmdash.machine.identity import MachineIdentity, Rename, RenameKind
from tvmdash.verdict import Level, NightVerdict, write_verdict

NIGHTS = 40
STEADY = "TVM did not get slower: nothing moved beyond its noise"
TONIGHT = stamp_of(NIGHTS - 1)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(Home(tmp_path / "home"))


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Site, Page]:
    """A home in which mlp got 8 % slower four nights ago and gru left nothing tonight, judged by the real alerts."""
    truth = Truth(nights=NIGHTS, workloads=("mlp", "dqn", "gru")).step("mlp", 3, "run", NIGHTS - 4, 1.08)
    truth.absent |= {("gru", NIGHTS - 1)}
    alerts = AlertHome(tmp_path_factory.mktemp("told")).fill(truth)
    site = Site(alerts.home)
    for night in range(NIGHTS - 1):
        site.night(job("relax_opt", stamp_of(night)), at=stamp_of(night), state=COMPLETE)
    alerts.run(NIGHTS - 1)
    done = JobResult("subsystem", "stat_alerts", "Alerts", "", (StepResult("run", OK, "", TONIGHT),))
    later = JobResult("subsystem", "exp_reports", "Slack", "", (StepResult("precheck", OK, "", TONIGHT),))
    site.night(job("relax_opt", TONIGHT), done, later, at=TONIGHT)
    return site, site.publish_here(TONIGHT)


def test_messages(told: tuple[Site, Page], golden: Golden) -> None:
    golden.messages("website_first_page", [("of a home with a regression and a gap", told[1].list_sentences())])


def tallies(page: Page) -> dict[str, int]:
    """The counts of the verdict by their words."""
    items = [text.strip() for text in page.texts["li"] if text.strip()[:1] in "✖★=∅◔?✗" and ":" not in text]
    return {" ".join(item.split()[1:]).lstrip("0123456789"): int("".join(filter(str.isdigit, item))) for item in items}


def test_the_verdict_says_what_got_slower_and_where(told: tuple[Site, Page]) -> None:
    site, page = told
    assert page.first("h1").startswith("✖")
    assert f"{MLP} +" in page.first("h1")
    assert "16 of 24 expected series" in page.words
    assert_whole(site)


def test_every_expected_series_is_counted_once(told: tuple[Site, Page]) -> None:
    counts = tallies(told[1])
    assert counts["worse"] == 1
    assert counts["missing"] == 8
    assert "failed points" not in counts, "nothing stands for nothing"
    assert sum(counts.values()) == 24


def test_the_incident_says_from_to_by_how_much_since_when_and_how_sure(told: tuple[Site, Page]) -> None:
    _, page = told
    incident = next(text for text in page.texts["article"] if "Regression" in text)
    words = " ".join(incident.split())
    assert "ms → " in words
    assert f"Since {common.parse_stamp(stamp_of(NIGHTS - 4)):%Y-%m-%d}, TVM " in words
    assert "over 4 nights" in words
    kinds = [str(item.get("class")) for item in page.all("svg")]
    assert kinds[:3] == ["forest-axis", "forest-row is-worse", "spark worse"]
    shapes = {str(item.get("class")) for name in ("rect", "path", "circle") for item in page.all(name)}
    assert {"band", "break", "line", "dot"} <= shapes


def test_what_needs_attention_comes_first_and_leads_to_its_receipt(told: tuple[Site, Page]) -> None:
    _, page = told
    rows = [" ".join(text.split()) for text in page.texts["tr"] if "(opt_level" in text]
    assert rows[0].startswith("✖mlp (opt_level 3) ◇ +8.2 %")
    assert [row for row in rows if "✖" in row] == rows[:1]
    assert not [row for row in rows if "gru" in row], "they have a line for each experiment"
    receipts = [str(item["href"]) for item in page.all("a") if "receipt.html" in str(item["href"])]
    assert receipts[0].startswith(f"receipt.html#night={TONIGHT}&series=")
    assert all(f"night={TONIGHT}" in receipt for receipt in receipts)


def test_it_says_what_was_still_to_come_and_when_the_next_night_is(told: tuple[Site, Page]) -> None:
    words = told[1].words
    assert "written: Slack" in words
    assert "2026-06-10 03:15 UTC" in words


def test_what_a_person_said_of_an_incident_stands_in_the_ledger(told: tuple[Site, Page]) -> None:
    site, _ = told
    alerts = AlertHome(site.home.root.parent)
    incident = alerts.incidents()[0]["id"]
    assert alerts.command("incidents", "ack", incident, "on it", "--who", "<ann>").returncode == 0
    alerts.run(NIGHTS - 1)
    site.night(job("relax_opt", TONIGHT), at=TONIGHT)
    site.publish_here(TONIGHT)
    page = site.page("alerts.html")
    assert "acknowledged <ann>" in page.words
    assert "<ann>: acknowledged, on it" in page.words
    assert f"incident-{incident}" in page.ids
    assert "at most 0.2 false alerts" in page.words
    assert_whole(site)


def test_without_alerts_the_page_says_that_nothing_was_judged(site: Site) -> None:
    dead = JobResult("subsystem", "stat_alerts", "Alerts", "", (failure("no numpy"),))
    site.night(job("cnn"), dead)
    site.data("cnn", [record("mlp", 1.0)])
    page = site.publish_here()
    assert page.first("h1") == "!Subsystem Alerts failed"
    assert "TVM was not judged. " in page.words
    assert "Alerts did not report: no numpy" in page.words
    assert tallies(page)["not judged"] == 1


def test_the_commits_since_the_night_before_are_counted_where_versions_count_them(site: Site) -> None:
    before = {"version": "0.27.0.post7+g1b565e7c3", "commit": "1b565e7c3" + "0" * 31, "facts": {"remote": "r"}}
    now = {"version": "0.27.0.post12+g2c676f8d4", "commit": "2c676f8d4" + "0" * 31}
    site.night(job("cnn", stamp(1)), at=stamp(1), state=COMPLETE, **before)
    site.night(job("cnn"), **now, facts={"remote": "r", "title": "[Relax] <Faster> softmax"})
    words = site.publish_here().words
    assert "TVM 0.27.0.post12+g2c676f8d4, commit 2c676f8d4000 ([Relax] <Faster> softmax)" in words
    assert "5 commits later than the night before, 0.27.0.post7+g1b565e7c3, commit 1b565e7c3000" in words


def test_each_of_several_tvms_is_compared_with_what_was_taken_for_the_same_branch(site: Site) -> None:
    for at, newest in ((stamp(1), "0.27.0"), (STAMP, "0.28.0")):
        site.night(job("cnn", at), at=at, state=COMPLETE)
        value = common.read_json(site.home.night_file(at))
        value["artifacts"] = [
            {"key": version, "version": version, "facts": {}, "asked": [{"remote": "pypi", "branch": branch}]}
            for version, branch in ((newest, "latest"), ("0.26.0", "0.26.0"))
        ]
        common.write_json(site.home.night_file(at), value)
    words = site.publish_here().words
    assert "TVM 0.28.0; the night before 0.27.0 " in words
    assert "TVM 0.26.0, as the night before" in words


def test_five_hundred_series_stay_small(site: Site) -> None:
    for ago in range(10, -1, -1):
        site.night(*(job(f"exp{index:03}") for index in range(100)), at=stamp(ago), state=COMPLETE)
    for ago in (2, 1, 0):
        for index in range(5):
            rows = [record(f"net{row:03}", 1 + (row * 7 + ago * 3) % 11 / 100) for row in range(100)]
            site.data(f"exp{index:03}", rows, at=stamp(ago))
    page = site.publish_here()
    assert "500 of 500 expected series" in page.words
    assert len([drawing for drawing in page.all("svg") if "spark" in (drawing["class"] or "")]) == 8 + 100
    assert len(gzip.compress(page.path.read_bytes())) < 40_000
    assert len(site.page("series.html").all("svg")) == 500
    assert len(list((site.folder / "experiments").iterdir())) == 100


def test_one_night_with_one_series_looks_right(site: Site) -> None:
    site.night(job("cnn"))
    site.data("cnn", [record("mlp", 1.0)])
    page = site.publish_here()
    assert "1 of 1 expected series" in page.words
    assert "Some of what was measured" in page.words
    assert not page.all("svg"), "one night is no line"
    assert "Too few nights to tell how often they start." in page.words
    assert_whole(site)


def verdicts(site: Site, reason: str, noise: float | None, needed: int | None = None) -> None:
    """What the alerts say of every series of tonight's site, the same of each: too young, or steady at its noise."""
    about = {"metric": "run_time", "unit": "ms", "verdict": "quiet", "reason": reason, "z": None, "since": STAMP}
    about |= {"standing": "steady" if noise else "young", "effect": None, "effect_low": None, "effect_high": None}
    about |= {"noise_grade": "A" if noise else "unknown", "noise": noise, "smallest_visible_change": noise}
    about |= {"why": Reason(ReasonKind.TOO_FEW_NIGHTS, nights=1, needed=needed).to_json()} if needed else {}
    known = common.read_json(site.folder / "index.json")["series"]
    rows = [
        {"id": one, "name": name, "experiment": "cnn", **about, "control": False, "last": []}
        for one, name in zip(known["id"], known["name"], strict=True)
    ]
    page: dict[str, Any] = {"schema_version": 1, "night": STAMP, "series": rows, "stamps": [STAMP], "annotations": []}
    shuffled = {"nights": 1000, "alerts": 0, "per_1000": 0.0, "at_most_per_1000": 3.0}
    page |= {"incidents": [], "honesty": {"target_per_1000": 0.2, "shuffled": shuffled}}
    site.output("stat_alerts", "page.json", page)
    level, words = (Level.STEADY, STEADY) if noise else (Level.BLIND, "Too early to tell")
    write_verdict(site.home, NightVerdict(STAMP, level, words, len(rows), len(rows)))


def test_the_first_night_shows_a_few_run_times_and_when_there_will_be_verdicts(site: Site) -> None:
    names = ("cnn", "rnn")
    site.night(*(job(name) for name in names))
    for name in names:
        site.data(name, [record(f"net{row}", 1.0 + row) for row in range(9)])
    site.publish_here()
    verdicts(site, "too young", None, needed=18)
    page = site.publish_here()
    assert "A series is judged once it has 18 nights; this was the first night." in page.words
    rows = [" ".join(text.split()) for text in page.texts["dt"] if "run time" in text]
    assert [row.split()[0] for row in rows] == ["cnn", "rnn"] * 4
    assert_whole(site)


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"night": 5}', f'{{"night": "{STAMP}", "level": "marvellous", "headline": "x"}}']
)
def test_a_damaged_verdict_costs_the_page_its_sentence_and_nothing_else(site: Site, content: str) -> None:
    site.night(job("cnn"))
    site.data("cnn", [record("mlp", 1.0)])
    site.publish_here()
    verdicts(site, "steady", 0.01)
    (site.home.output("stat_alerts") / "verdict.json").write_text(content)
    page = site.publish_here()
    assert page.first("h1").startswith("?")
    assert "✗Verdict: " in page.words
    assert [text for text in page.texts["dt"] if "run time" in text]
    assert_whole(site)


def test_how_many_nights_a_verdict_needs_is_no_matter_of_the_reasons_words(site: Site) -> None:
    site.night(job("cnn"))
    site.data("cnn", [record("mlp", 1.0)])
    site.publish_here()
    reason = "1 nights of history; 18 are needed"
    verdicts(site, reason, None)  # of a stat_alerts that wrote no typed reason
    page = site.publish_here()
    assert "18 nights" not in page.words
    assert any(attributes.get("title") == reason for _, attributes in page.tags)
    verdicts(site, "#1#", None, needed=18)
    assert "18 nights" in site.publish_here().words


def test_a_good_verdict_on_a_disturbed_machine_says_so(site: Site) -> None:
    site.night(job("cnn"))
    site.data("cnn", [record("mlp", 1.0)])
    site.publish_here()
    verdicts(site, "", 0.01)
    assert site.publish_here().first("h1") == f"✓{STEADY}"
    run = {"experiment": "cnn", "readings": 9, "abnormal": ["load of 9"], "ranges": {}, "outliers": []}
    graph = {"file": "none.svg", "alt": "none"}
    telemetry = {"stamp": STAMP, "faults": [], "runs": [{**run, "outliers_in_all": 0, "graph": graph}]}
    site.output("telemetry", "page.json", telemetry)
    page = site.publish_here()
    assert page.first("h1") == f"!{STEADY}"
    assert "possibly disturbed: cnn" in page.words


def test_a_very_long_name_is_clipped_and_whole_in_its_title(site: Site) -> None:
    name = "network_" + "x" * 190
    site.night(job("cnn", title="T" * 190))
    site.data("cnn", [record(name, 1.0)])
    page = site.publish_here()
    assert not re.search(r"(x|T){120}", page.words)
    titles = [str(item.get("title")) for item in page.all("bdi")]
    assert any("x" * 190 in title for title in titles)
    assert "T" * 190 in titles


def test_a_series_of_no_positive_values_and_one_of_equal_ones_are_drawn(site: Site) -> None:
    for ago in (2, 1, 0):
        site.night(job("cnn", stamp(ago)), at=stamp(ago), state=COMPLETE)
        site.home.data("cnn").mkdir(parents=True, exist_ok=True)
        common.write_json(site.home.data_file("cnn", stamp(ago)), {"down": -1.0 * ago, "same": 0})
    site.publish_here()
    assert len(site.page("series.html").all("svg")) == 2
    assert_whole(site)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_deadlines_scores_and_runs_stay_text(site: Site, name: str) -> None:
    deadline: dict[str, Any] = {"title": name, "url": "javascript:alert(1)", "utc": "2999-01-01T00:00:00Z"}
    deadline |= {"near": False, "words": name, "left": "in 3 days", "moment": name}
    site.output("deadline", "deadlines.json", {"deadlines": [deadline]})
    run = {"experiment": name, "readings": 1, "abnormal": [name], "ranges": {name: [1, 2, 3]}, "outliers": []}
    graph = {"file": "../../../../config/config.json", "alt": name}
    runs = {"stamp": STAMP, "faults": [name], "runs": [{**run, "outliers_in_all": 0, "graph": graph}]}
    site.output("telemetry", "page.json", runs)
    score: dict[str, Any] = {"id": name, "title": name, "kind": name, "unit": name, "words": name, "before": None}
    score |= {"lower_is_better": False, "value": 1.5, "low": None, "high": None, "complete": False, "workloads": []}
    score |= {"missing": [{"workload": name, "reason": name}], "graphs": [graph]}
    site.output("score", "page.json", {"stamp": STAMP, "faults": [name], "scores": [score]})
    site.night(job("cnn"))
    page = site.publish_here()
    assert_whole(site)
    assert not [item for item in page.all("a") if "javascript" in str(item["href"])]
    assert "possibly disturbed" in page.words
    shown = "a\ufffdb\ufffd[31m\ufffdc" if "\x00" in name else name
    for file in ("index.html", "scores.html", "machines.html"):
        assert shown in site.page(file).text


def iso(at: str) -> str:
    return f"{common.parse_stamp(at):%Y-%m-%dT%H:%M:%SZ}"


def test_where_the_last_night_measured_nothing_the_mean_counts_the_series_of_the_night_that_it_is_of(
    site: Site,
) -> None:
    for ago in (4, 3, 2, 1):
        site.night(job("cnn"), at=stamp(ago), state=COMPLETE)
        site.data("cnn", [record("mlp", 1.0 + 0.01 * (4 - ago)), record("gru", 2.0)], at=stamp(ago))
    site.night(job("cnn"))
    assert "Geometric mean of 2 series, +1.5 % since the first" in site.publish_here().words


def test_what_is_retired_is_named_with_who_since_when_and_why(site: Site) -> None:
    for name in ("cnn", "rnn"):
        site.night(job(name, stamp(1)), at=stamp(1), state=COMPLETE)
        site.data(name, [record("mlp", 1.0)], at=stamp(1))
    by = By("ann", iso(stamp(1)), f"merged into cnn {HOSTILE}")
    decisions.retire(site.home, "rnn", by)
    decisions.retire(site.home, "cnn mlp*", replace(by, why="too old"))
    site.night(job("cnn"))
    site.data("cnn", [record("dqn", 1.0)])
    page = site.publish_here()
    day = f"{common.parse_stamp(stamp(1)):%Y-%m-%d}"
    assert f"rnn retired on {day} by ann: merged into cnn" in page.words
    assert f"cnn mlp* retired on {day} by ann: too old" in page.words
    assert f"retired on {day} by ann: too old." in site.experiment("cnn").words
    assert f"retired on {day} by ann: merged into cnn" in site.experiment("rnn").words
    assert "too old" not in site.experiment("rnn").words
    assert_whole(site)
    decisions.unretire(site.home, "rnn", by)
    assert "merged into cnn" not in site.publish_here().words


def test_a_mute_is_named_with_its_end(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.night(job("cnn"))
    site.data("cnn", [record("mlp", 1.0)])
    tonight = common.parse_stamp(STAMP)
    monkeypatch.setattr(common, "utc_now", lambda: tonight)
    by = By("ann", iso(stamp(1)), "the lab is hot")
    decisions.mute(site.home, "cnn mlp*", tonight + datetime.timedelta(days=3), by)
    end = f"{tonight + datetime.timedelta(days=3):%Y-%m-%d}"
    assert f"cnn mlp* muted until {end} by ann: the lab is hot" in site.publish_here().words
    assert f"muted until {end} by ann" in site.experiment("cnn").words
    decisions.unmute(site.home, "cnn mlp*", by)
    assert "muted until" not in site.publish_here().words


def test_nights_before_an_experiment_was_renamed_are_shown_under_its_name_of_now(site: Site) -> None:
    site.night(job("old_name", stamp(2)), job("cnn", stamp(2)), at=stamp(2), state=COMPLETE)
    renames = (Rename(RenameKind.EXPERIMENT, "old_name", "new_name", iso(stamp(1)), "ann"),)
    identity.write(site.home.machine_file, MachineIdentity("lab7", stamp(9), None, "AMD EPYC x 2", renames=renames))
    site.night(job("new_name"), job("cnn"))
    page = site.publish_here()
    assert not list((site.folder / "experiments").glob("old*"))
    assert "Not in this night" not in page.words
    assert [" ".join(text.split()) for text in page.texts["dt"] if "name" in text] == ["✓new_name"]


def test_another_build_of_the_commit_of_the_night_before_is_not_called_the_same(site: Site) -> None:
    site.night(job("cnn", stamp(1)), at=stamp(1), state=COMPLETE, key="git-llvm18")
    since = {"stamp": stamp(1), "key": "git-llvm18", "version": "0.27.0", "commit": "7b5acb32b", "commits": []}
    for key, words in (("git-llvm18", "as the night before"), ("git-llvm19", "another build than the night before")):
        site.night(job("cnn"), key=key, provider="git", since=since)
        site.publish_here()
        assert f"TVM 0.27.0, commit 7b5acb32b, {words}" in site.page().words
    words = site.page(f"nights/{STAMP}.html").words
    assert "Another build of TVM 0.27.0" in words
    assert "0.27.0..0.27.0" not in words


def test_two_nightly_wheels_of_one_commit_are_called_so(site: Site) -> None:
    site.night(job("cnn", stamp(1)), at=stamp(1), state=COMPLETE, key="dev202", version="0.26.dev202")
    since = {"stamp": stamp(1), "key": "dev202", "version": "0.26.dev202", "commit": "7b5acb32b"}
    site.night(job("cnn"), key="dev203", version="0.26.dev203", since=since)
    site.publish_here()
    page = site.page(f"nights/{STAMP}.html")
    assert "Another build of commit 7b5acb32b: TVM 0.26.dev202..0.26.dev203" in page.words
    links = [link.get("href", "") for link in page.all("a")]
    assert not [link for link in links if "compare/" in link], "there is nothing between a commit and itself"


def test_a_night_took_as_long_as_its_steps_whenever_its_page_is_made(site: Site) -> None:
    begun = int(common.parse_stamp(STAMP).timestamp())
    steps = (
        StepResult("precheck", OK, "good", STAMP, 1.0, started_ns=begun * 10**9),
        StepResult("run", OK, "good", STAMP, 600.0, started_ns=(begun + 300) * 10**9),
    )
    site.night(JobResult("experiment", "cnn", "cnn", "", steps))
    night = site.home.read_night(STAMP)
    months_later = common.parse_stamp(STAMP) + datetime.timedelta(days=167)
    scripts.load("website").publishing.publish(site.home, night, site.folder, months_later)
    assert "Took 15 min" in site.page().words
