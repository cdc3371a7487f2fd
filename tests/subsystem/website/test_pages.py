"""The other pages: what they say, what they keep, and what is left of them where a source is damaged."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.subsystem.website.sites import STAMP, Site, assert_whole, failure, job, record, stamp
from tvmdash import common
from tvmdash.dashboard_info import COMPLETE, INTERRUPTED, Home, MissingBackup, PartialData, Reference, ReferenceChoice
from tvmdash.incidents import file as incident_file
from tvmdash.incidents.events import Moved
from tvmdash.incidents.ledger import Change, Incident, changed
from tvmdash.machine import identity
from tvmdash.machine.identity import MachineChange, MachineIdentity

REPO = Path(__file__).resolve().parents[3]
SEVERAL = re.compile(r"^    engines = \([^)]*,\s*[^)\s]", re.MULTILINE)
MOVED = Moved(
    "0123456789abcdef", "cnn mlp run time", "run_time", "ms", True, 1.0, 1.2, 0.2, 0.19, 0.21, z=9.0, nights=4
)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(Home(tmp_path / "home"))


def incident(begin: str, **given: Any) -> Incident:
    changes = (Change("2026-11-21T03:15:00Z", "detector", "new"),)
    known = {"kind": "change", "state": "new", "after": begin, "found": begin, "versions": ("aaa", "bbb")}
    return Incident(
        **{
            "id": f"i{begin[:8]}-1234",
            **known,
            "begin": begin,
            "blame": "compiler",
            "moved": (MOVED,),
            "changes": changes,
            **given,
        }
    )


def alerts(site: Site, *incidents: Incident, night: str = STAMP) -> None:
    rows = [one.to_json() for one in incidents]
    honesty = {
        "target_per_1000": 0.2,
        "shuffled": {"nights": 1000, "alerts": 3, "per_1000": 3.0, "at_most_per_1000": 7.8},
    }
    page = {"schema_version": 1, "night": night, "series": [], "stamps": [night], "incidents": rows, "honesty": honesty}
    site.output("stat_alerts", "page.json", {**page, "annotations": []})
    site.incidents(*incidents)


def point(at: str, value: float | None, missing: list[str] | None = None) -> dict[str, Any]:
    return {"stamp": at, "value": value, "low": None, "high": None, "expected": ["mlp"], "missing": missing or []}


def scores(site: Site, *points: dict[str, Any]) -> None:
    named = {"id": "abc", "title": "Speed", "unit": "times"}
    site.output("score", "scores.json", {"schema_version": 1, "scores": [{**named, "points": list(points)}]})
    last = points[-1]
    score = {**named, "kind": "speedup", "lower_is_better": False, "value": last["value"], "low": 1.1, "high": 1.9}
    before = {"stamp": points[0]["stamp"], "value": points[0]["value"]}
    score |= {
        "complete": not last["missing"],
        "words": "said",
        "before": before,
        "workloads": [],
        "missing": [],
        "graphs": [],
    }
    site.output("score", "page.json", {"stamp": last["stamp"], "faults": [], "scores": [score]})


SOURCES = (
    "stat_alerts/page.json", "score/page.json", "score/scores.json",
    "telemetry/page.json", "deadline/deadlines.json",
)  # fmt: skip


def whole_home(site: Site) -> None:
    site.night(job("cnn"))
    site.data("cnn", [record("mlp", 1.0)])
    alerts(site, incident(STAMP))
    scores(site, point(STAMP, 1.5))


@pytest.mark.parametrize("file", SOURCES)
def test_a_damaged_source_costs_its_own_part_and_is_told(site: Site, file: str) -> None:
    whole_home(site)
    subsystem, name = file.split("/")
    site.output(subsystem, name, '{"schema_version": 1, "night": 3, "stamp"')
    page = site.publish_here()
    assert_whole(site)
    assert "It could not be read" in page.words
    assert ("Speed" in page.words) == (file != "score/page.json")
    assert "Regression" in page.words
    assert "1 of 1 expected series" in page.words


def test_a_line_of_the_ledger_that_cannot_be_read_costs_itself_only(site: Site) -> None:
    whole_home(site)
    path = site.home.output("stat_alerts") / "incidents.jsonl"
    path.write_bytes(b'{"torn\n' + path.read_bytes() + b"[3]\n")
    page = site.publish_here()
    assert_whole(site)
    assert "Regression" in page.words


def test_what_people_said_since_the_night_is_on_the_page(site: Site) -> None:
    whole_home(site)
    site.publish_here()
    said = changed(incident(STAMP).id, "false_alarm", at="2026-11-21T09:00:00Z", who="ann", words="the fan was off")
    incident_file.append(incident_file.file_of(site.home), [said])
    site.publish_here()
    assert "the fan was off" in site.page("alerts.html").words


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"night": 3, "series": 1, "scores": [1], "incidents": [{}]}'])
def test_sources_of_another_shape_are_all_told(site: Site, content: str) -> None:
    whole_home(site)
    for file in SOURCES:
        site.output(*file.split("/"), content)
    page = site.publish_here()
    assert_whole(site)
    assert page.words.count("It could not be read") == len(SOURCES)
    assert "1 of 1 expected series" in page.words


def test_a_nights_page_keeps_its_results_when_the_next_night_has_run(site: Site) -> None:
    site.night(job("cnn", stamp(1)), at=stamp(1))
    site.data("cnn", [record("mlp", 1.0)], at=stamp(1))
    site.results("cnn", at=stamp(1), value="mlp takes a while.")
    scores(site, point(stamp(1), 1.5))
    site.publish_here(stamp(1))
    site.night(job("cnn", stamp(1)), at=stamp(1), state=COMPLETE)
    site.night(job("cnn"))
    site.data("cnn", [record("mlp", 1.3)])
    site.results("cnn", value="mlp takes longer.")
    scores(site, point(stamp(1), 1.5), point(STAMP, 1.2))
    alerts(site, incident(stamp(1), found=STAMP))
    site.publish_here()
    page = site.page(f"nights/{stamp(1)}.html")
    for words in ("The night is complete.", "mlp takes a while.", "Speed 1.50 times", "1 not judged", "bench"):
        assert words in page.words
    assert "✖cnn mlp run time +20.0 %" in page.words, "an incident that a later night found, at the night it began"
    assert "mlp takes longer." in site.page(f"nights/{STAMP}.html").words
    assert "cnn mlp run time +20.0 %" in site.page("nights/2026.html").words
    assert_whole(site)


def test_the_page_of_a_night_that_was_killed_says_which_data_is_partial(site: Site) -> None:
    site.night(job("cnn", stamp(1)), at=stamp(1), state=INTERRUPTED, partial=(PartialData("cnn", 2, 6),))
    site.night(job("cnn"))
    site.publish_here()
    assert "the data of cnn is partial, 2 of 6 points." in site.page(f"nights/{stamp(1)}.html").words
    assert "partial" not in site.page(f"nights/{STAMP}.html").words
    assert_whole(site)


def test_what_tvm_was_measured_against_is_told_by_the_first_page_and_the_nights_own(site: Site) -> None:
    against = Reference("wheel-0.27", "wheel-0.26", "wheel", "0.26.0", None, ReferenceChoice.AUTO)
    other = Reference("wheel-0.25", "wheel-0.24", "wheel", "0.24.0", None, ReferenceChoice.AUTO)
    site.night(job("cnn"), references=(against, other))
    assert "TVM 0.27.0, commit 7b5acb32b; measured against TVM 0.26.0" in site.publish_here().words
    words = site.page(f"nights/{STAMP}.html").words
    assert "TVM 0.27.0, commit 7b5acb32b, measured against TVM 0.26.0" in words
    assert "0.24.0" not in words, "of another TVM"
    assert_whole(site)


def test_a_missing_backup_is_told_by_the_first_page_and_the_nights_own(site: Site) -> None:
    site.night(job("cnn"), missing_backups=(MissingBackup("before", "/backup: the disk is full."),))
    site.data("cnn", [record("mlp", 1.0)])
    first = site.publish_here()
    for page in (first, site.page(f"nights/{STAMP}.html")):
        assert page.first("h1").startswith("!The backup before")
    assert_whole(site)


def test_an_incident_renders_the_page_of_the_night_it_began_and_no_other(site: Site) -> None:
    for ago in range(5, 0, -1):
        site.night(job("cnn", stamp(ago)), at=stamp(ago), state=COMPLETE)
    site.night(job("cnn"))
    site.publish_here()
    before = site.inodes()
    alerts(site, incident(stamp(3), found=STAMP))
    site.publish_here()
    after = site.inodes()
    changed = {name for name in after if before[name] != after[name]}
    assert changed == {f"{stamp(3)}.html", "2026.html", "2026.json", "2026.js", "index.html"}


def test_engines_are_compared_where_there_are_several(site: Site) -> None:
    site.night(job("engines", title="All engines"), job("alone", title="Ours"))
    rows = [record("mlp", 2.0), record("mlp", 1.0, level=0), record("mlp", 3.0, engine="torch")]
    rows += [record("dqn", 1.0), record("dqn", 0.5, engine="torch"), record("gru", 5.0)]
    site.data("engines", rows)
    site.data("alone", [record("mlp", 2.0)])
    site.publish_here()
    page = site.page("engines.html")
    assert_whole(site)
    body = [" ".join(text.split()) for text in page.texts["tr"]]
    mlp = "mlp 1.00 ms opt_level 0 ★3.00 \u00d7 (2.99 to 3.01) 3.00 ms"
    assert mlp in body[3], "TVM's fastest configuration is what counts, and is named"
    assert "dqn 1.00 ms opt_level 3 ✖0.500 \u00d7" in body[1]
    assert "gru 5.00 ms opt_level 3 not measured" in body[2]
    assert "Geometric mean 1.22 \u00d7 over 2" in body[4]
    assert "Ours measures tvm alone." in page.words


def test_engines_without_tvm_tonight_show_the_last_values_with_their_date(site: Site) -> None:
    rows = [record("mlp", 2.0), record("mlp", 3.0, engine="torch"), record("mlp", 8.0, engine="onnxruntime")]
    site.night(job("engines", stamp(1), title="All engines"), at=stamp(1), state=COMPLETE)
    site.data("engines", rows, at=stamp(1))
    site.night(job("engines", title="All engines"))
    site.data("engines", [record("mlp", 9.0, engine="torch")])
    site.publish_here()
    page = site.page("engines.html")
    assert "TVM was not measured here tonight. These are the values of 2026-11-20." in page.words
    row = " ".join(page.texts["tr"][1].split())
    assert row.startswith("mlp 2.00 ms ★4.00 \u00d7 (3.99 to 4.01) 8.00 ms")
    assert row.endswith("1.50 \u00d7 3.00 ms"), (
        "of torch, which was measured since, that night's interval is not at hand"
    )
    assert_whole(site)


def test_a_change_of_machine_is_told_and_stays_told(site: Site) -> None:
    for ago in (3, 2, 1, 0):
        site.night(job("cnn", stamp(ago)), at=stamp(ago), state=COMPLETE)
        flags = ["sse", "avx"] if ago > 1 else ["sse", "avx512"]
        site.data("cnn", [record("mlp", 1.0)], at=stamp(ago), system=f"Linux {6 if ago > 1 else 7}", cpu_flags=flags)
    page = site.publish_here()
    days = [str(item["title"]) for item in page.all("a") if "the machine changed" in str(item.get("title"))]
    assert [day.partition(":")[0] for day in days] == ["2026-11-20"]
    site.home.data_file("cnn", stamp(2)).unlink()
    site.publish_here()
    words = site.page("machines.html").words
    assert "2026-11-20 cpu flags +avx512 and -avx system Linux 6 → Linux 7" in words
    assert_whole(site)


def test_a_container_is_the_machine_that_its_home_names_and_an_exchange_is_told(site: Site) -> None:
    ids = []
    for kept in (None, MachineIdentity("lab7", stamp(1), None, "AMD EPYC x 2", formerly="sample")):
        for ago in (1, 0):
            change = (MachineChange("hw_model", "AMD EPYC x 2", "AMD EPYC x 4"),) if kept and not ago else ()
            site.night(job("cnn", stamp(ago)), at=stamp(ago), state=COMPLETE, machine_changes=change)
            site.data("cnn", [record("mlp", 1.0)], at=stamp(ago), host=f"container{ago}")
        if kept:
            identity.write(site.home.machine_file, kept)
        page = site.publish_here()
        (path,) = (site.folder / "receipts" / STAMP).glob("cnn*.json")
        (receipt,) = common.read_json(path)["records"]
        ids.append(receipt["series"]["run_time"])
        is_other = any("the machine changed" in str(item.get("title")) for item in page.all("a"))
        assert is_other is (kept is None), "without a name kept, a machine is known by its host's"
    words = site.page("machines.html").words
    assert "This home\u2019s machine is called lab7 since 2026-11-20: AMD EPYC x 2." in words
    assert "The processor changed from AMD EPYC x 2 to AMD EPYC x 4." in words
    assert receipt["record"]["env_name"] == "lab7"
    assert ids[0] is not None
    assert ids[0] == ids[1], "links to a series still lead to it"


def test_scores_show_value_interval_change_and_line(site: Site) -> None:
    site.night(job("cnn"))
    scores(site, point(stamp(2), 1.0), point(stamp(1), 1.4, ["mlp"]), point(STAMP, 1.5))
    page = site.publish_here()
    assert "Speed 1.50 times" in page.words
    page = site.page("scores.html")
    assert "1.50 times 1.10 to 1.90 +50.0 % since 2026-11-19" in page.words
    path = next(str(item["d"]) for item in page.all("path") if "line" in str(item["class"]))
    assert path.count("M") == 2, "an incomplete night is a gap"


def test_the_ledger_tells_the_detectors_error_beside_its_target(site: Site) -> None:
    site.night(job("cnn"))
    fixed = incident(
        stamp(9), state="fixed", end=stamp(2), changes=(Change("2026-11-20", "ann <b>", "fixed", "mended"),)
    )
    alerts(site, incident(STAMP), fixed)
    site.publish_here()
    page = site.page("alerts.html")
    assert "3.00 false alerts per 1000 series-nights (3 in 1000; with 95 % confidence below 7.80)" in page.words
    assert "the target is at most 0.2" in page.words
    assert "2026-11-12 to 2026-11-19" in page.words
    assert "ann <b>: fixed, mended" in page.words
    assert_whole(site)


def test_an_experiments_page_has_its_failure_config_and_nights_but_no_secrets(site: Site) -> None:
    site.night(job("cnn", stamp(1)), at=stamp(1), state=COMPLETE)
    site.night(job("cnn", run=failure("run.sh was killed by SIGKILL.", "the end")))
    site.home.config("experiment", "cnn").mkdir(parents=True)
    config = {"active": True, "repeat": 7, "api_token": "hunter2", "env": {"MY_SECRET": "hunter3"}}
    common.write_json(site.home.config("experiment", "cnn") / "config.json", config)
    site.publish_here()
    page = site.experiment("cnn")
    for words in ("run failed", "run.sh was killed by SIGKILL.", "the end", '"repeat": 7', "2026-11-20 03:15"):
        assert words in page.words
    assert "hunter" not in page.text
    assert [item for item in page.all("rect") if item.get("class") == "s2"], "the time that run took, night by night"
    assert_whole(site)


def test_what_only_old_nights_have_is_still_there(site: Site) -> None:
    site.night(job("old", stamp(40), title="An old one"), at=stamp(40), state=COMPLETE)
    site.data("old", [record("mlp", 1.0)], at=stamp(40))
    for ago in range(35, -1, -1):
        site.night(job("cnn", stamp(ago)), at=stamp(ago), state=COMPLETE)
    page = site.publish_here()
    assert "old last measured on 2026-10-12" in page.words
    assert "It last measured on 2026-10-12." in site.experiment("old").words


def test_an_empty_home_has_all_pages(site: Site) -> None:
    site.night()
    site.publish_here()
    assert_whole(site)
    names = {str(page.path.relative_to(site.folder)) for page in site.pages()}
    assert {f"{name}.html" for name in ("index", "series", "scores", "alerts", "machines", "engines")} <= names
    assert "nights/index.html" in names
    words = site.page("engines.html").words
    assert "there is nothing to compare" in words
    mains = [path for path in REPO.glob("experiments/*/*.py") if path.stem == path.parent.name]
    comparing = {path.stem for path in mains if SEVERAL.search(path.read_text("utf-8"))}
    *names, last = sorted(comparing)
    assert f"{', '.join(names)} and {last} do" in words, "the experiments here that measure several engines"


def test_the_receipt_of_a_night_that_pins_nothing_names_no_command(site: Site) -> None:
    site.night(job("cnn"))
    site.data("cnn", [record("mlp", 1.0)])
    site.publish_here()
    (receipt,) = site.folder.glob(f"receipts/{STAMP}/cnn*.json")
    assert common.read_json(receipt)["repeat"] == ""


def test_a_score_that_is_left_out_is_told_as_that_and_not_as_one_that_is_no_longer_defined(site: Site) -> None:
    site.night(job("cnn"))
    scores(site, point(stamp(1), 1.4), point(STAMP, 1.5))
    left_out = [{"id": "abc", "title": "Speed", "experiments": ["relax_opt"]}]
    site.output("score", "page.json", {"stamp": STAMP, "faults": [], "scores": [], "left_out": left_out})
    site.publish_here()
    words = site.page("scores.html").words
    assert "Left out Scores of experiments that are not active in this home." in words
    assert "Speed relax_opt" in words
    assert "No longer defined" not in words
    assert_whole(site)


def test_a_score_of_a_file_without_parts_is_shown_with_its_words(site: Site) -> None:
    site.night(job("cnn"))
    scores(site, point(stamp(1), 1.47), point(STAMP, 1.5))
    site.publish_here()
    shown = site.page("scores.html").words
    assert "1.50 times" in shown
    assert "said" in shown


def test_a_score_tells_its_value_once(site: Site) -> None:
    site.night(job("cnn"))
    scores(site, point(stamp(1), 1.47), point(STAMP, 1.5))
    page = common.read_json(site.home.output("score") / "page.json")
    details = "(1.10 to 1.90, 3 workloads). Since the night before, not judged against noise: +2.0 %."
    told = {"words": "#1#", "headline": "1.50 times as fast", "details": details}
    site.output("score", "page.json", {**page, "scores": [{**page["scores"][0], **told}]})
    site.publish_here()
    shown = site.page("scores.html").words
    assert "1.50 times as fast (1.10 to 1.90, 3 workloads). Since" in shown
    assert shown.count("1.50 times") == 2, "in words, and at the edge of the line"
    assert shown.count("1.10 to 1.90") == 1
