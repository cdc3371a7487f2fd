"""The website's data files: what they hold is what the home holds, and only what changed is written anew."""

from __future__ import annotations

import datetime
import itertools
import os
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests import make_site_home
from tests.make_site_home import Truth, make_home
from tests.site_files import expand, read_nights, read_script, read_series
from tests.site_transfer import sent, with_imports
from tests.subsystem import scripts
from tvmdash import common
from tvmdash.dashboard_info import OK, RUNNING, Home, JobResult, Night, StepResult
from tvmdash.incidents import file as incident_file
from tvmdash.incidents.events import Silenced
from tvmdash.incidents.ledger import SILENCED, Event, changed
from tvmdash.records import SCHEMAS
from tvmdash.series import store
from tvmdash.text import clean

REPO = Path(__file__).resolve().parents[3]
publishing = scripts.load("website").publishing
NOW = datetime.datetime(2026, 11, 21, 6, 2, 11, tzinfo=datetime.UTC)
STAMP = "20261121T031500Z"
HOSTILE = (
    "<script>alert(1)</script>",
    "../../etc/passwd",
    "編譯器 \u202e 😀",
    "x" * 180,
    "=cmd|' /C calc'!A0",
    'a"b,c',
)
ATOM = "{http://www.w3.org/2005/Atom}"


def publish(home: Home, receipt_nights: int = 30) -> Path:
    """The data files as a publish makes them, without the pages."""
    night = home.read_night(home.night_stamps()[-1])
    context = publishing.SiteContext(home, night, home.output("website").resolve(), NOW)
    with common.folder_beside(home.output("website")) as new:
        carrier = publishing.IncrementalSite.begin(context.old, new, context.made_by)
        publishing.site_data.write(context, new, carrier, receipt_nights)
        carrier.close()
    return home.output("website")


def read(path: Path) -> Any:
    return common.read_json(path)


def contents(site: Path, pattern: str = "series/*") -> dict[str, bytes]:
    return {str(path.relative_to(site)): path.read_bytes() for path in sorted(site.glob(pattern)) if path.is_file()}


def inodes(site: Path, pattern: str = "series/*") -> dict[str, int]:
    return {str(path.relative_to(site)): path.stat().st_ino for path in sorted(site.glob(pattern))}


def rewritten(before: dict[str, int], after: dict[str, int]) -> set[str]:
    return {name for name, inode in after.items() if before.get(name) != inode}


def add_night(home: Home, truth: Truth, **without: str) -> Truth:
    """The home one night later; what an experiment given as `without` measured is left out."""
    later = Truth(truth.series, truth.nights + 1, truth.seed, truth.last + datetime.timedelta(days=1))
    make_site_home.write_night(home, later, later.nights - 1, with_data=True)
    for name in without:
        home.data_file(name, later.stamp(later.nights - 1)).unlink()
    make_site_home.ingest(home, later)
    return later


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home on which stat_alerts, score and deadline have really run, with raw measurements; it is not changed."""
    home = make_home(tmp_path_factory.mktemp("told") / "home", Truth(40, 60), traces=2)
    publish(home)
    return home


@pytest.fixture
def copied(told: Home, tmp_path: Path) -> Home:
    shutil.copytree(told.root, tmp_path / "home")
    return Home(tmp_path / "home")


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> tuple[Home, Truth]:
    """Two years and more of two points, without alerts; it is not changed."""
    truth = Truth(8, 720)
    home = make_home(tmp_path_factory.mktemp("long") / "home", truth, files=3, subsystems=False)
    publish(home)
    return home, truth


@pytest.fixture
def long_copy(long: tuple[Home, Truth], tmp_path: Path) -> tuple[Home, Truth]:
    shutil.copytree(long[0].root, tmp_path / "home", symlinks=True)
    return Home(tmp_path / "home"), long[1]


# What the files hold.


def test_shards_hold_the_points_of_the_store(long: tuple[Home, Truth]) -> None:
    home, _ = long
    site = home.output("website")
    with store.open_for_reading(home.store_file, home.data("relax_opt"), "relax_opt") as opened:
        known = opened.series("relax_opt")
        versions, machines = opened.versions("relax_opt"), opened.machines("relax_opt")
    assert len(known) == 8
    for one in known:
        past, recent = (read_series(site, one.id, past=past) for past in (True, False))
        assert [*past["stamp"], *recent["stamp"]] == list(one.stamps)
        assert [*past["value"], *recent["value"]] == pytest.approx(one.values, rel=1e-6)
        assert (past["stamp"][-1] < "20250101T000000Z" <= recent["stamp"][0], recent["stamp"][-1]) == (True, STAMP)
        for shard in (past, recent):
            assert [shard["tvms"][at] for at in shard["tvm"]] == [versions[stamp] for stamp in shard["stamp"]]
            assert [shard["machines"][at] for at in shard["machine"]] == [machines[stamp] for stamp in shard["stamp"]]
            lengths = {name: len(column) for name, column in shard.items() if name in
                       ("value", "low", "high", "std", "samples", "tvm", "machine", "code")}  # fmt: skip
            assert set(lengths.values()) == {len(shard["stamp"])}
        assert past["identity"] == one.labels
        for name, column in {"low": one.low, "high": one.high, "std": one.std}.items():
            for told, known_one, value in zip([*past[name], *recent[name]], column, one.values, strict=True):
                assert told == (None if known_one is None else pytest.approx(known_one, abs=1e-5 * abs(value)))
        code = dict(zip(one.stamps, one.code, strict=True))
        same = [code[a] == code[b] for a, b in zip(recent["stamp"], recent["stamp"][1:], strict=False)]
        assert same == [a == b for a, b in zip(recent["code"], recent["code"][1:], strict=False)]
    assert len(recent["machines"]) == 2, "the machine changed a third before the end"
    sizes = next(one for one in known if one.metric == "code_size")
    assert set(read_series(site, sizes.id)["value"]) <= {round(value) for value in sizes.values}


def test_each_night_has_its_points_in_one_file(long: tuple[Home, Truth]) -> None:
    home, _ = long
    site = home.output("website")
    nights = read_nights(site)
    with store.open_for_reading(home.store_file, home.data("relax_opt"), "relax_opt") as opened:
        known = opened.series("relax_opt")
        versions, machines = opened.versions("relax_opt"), opened.machines("relax_opt")
    for one in known:
        for at, stamp in enumerate(one.stamps):
            night = nights[stamp]
            place = night["id"].index(one.id)
            assert night["value"][place] == pytest.approx(one.values[at], rel=1e-6)
            for name, column in {"low": one.low, "high": one.high}.items():
                known_one = one.values[at] if column[at] is None else column[at]  # without an interval it is one itself
                assert night[name][place] == pytest.approx(known_one, rel=1e-5)
            measured = night["experiments"]["relax_opt"]
            assert (measured["tvm"], measured["machine"]) == (versions[stamp], machines[stamp])
    for one in known:  # equal code, equal number
        codes = [nights[stamp]["code"][nights[stamp]["id"].index(one.id)] for stamp in one.stamps]
        assert [a == b for a, b in itertools.pairwise(codes)] == [a == b for a, b in itertools.pairwise(one.code)]


def test_a_new_night_writes_its_own_columns_alone(long_copy: tuple[Home, Truth]) -> None:
    home, truth = long_copy
    site = publish(home)
    before = inodes(site, "columns/*")
    add_night(home, truth)
    publish(home)
    after = inodes(site, "columns/*")
    assert rewritten(before, after) == {"columns/2026112.js"}


@pytest.mark.parametrize("at_once", [True, False], ids=["all", "one"])
def test_many_points_are_read_at_once_and_say_the_same(
    long_copy: tuple[Home, Truth], monkeypatch: pytest.MonkeyPatch, at_once: bool
) -> None:
    site = long_copy[0].output("website")
    one_by_one = contents(site)
    asked = []
    read = store.Store.series

    def series(opened: store.Store, experiment: str, **span: str) -> list[store.Series]:
        asked.append(experiment)
        return read(opened, experiment, **span)

    monkeypatch.setattr(store.Store, "series", series)
    if at_once:
        monkeypatch.setattr(publishing.site_data.shards, "_MANY_POINTS", 0)
    for path in sorted((site / "series").iterdir()):
        path.unlink()
    assert contents(publish(long_copy[0])) == one_by_one
    assert bool(asked) == at_once


def test_the_index_joins_series_with_what_the_alerts_say(told: Home) -> None:
    site = told.output("website")
    index = read(site / "index.json")
    columns = index["series"]
    assert {len(column) for column in columns.values()} == {len(columns["id"])}
    alerts = {one["id"]: one for one in read(told.output("stat_alerts") / "page.json")["series"]}
    assert set(columns["id"]) == set(alerts)
    for at, name in enumerate(columns["id"]):
        one = alerts[name]
        assert (columns["name"][at], columns["verdict"][at]) == (clean(one["name"]), one["verdict"])
        assert columns["grade"][at] == one["noise_grade"]
        assert index["experiments"][columns["experiment"][at]]["name"] == one["experiment"]
        assert columns["last"][at] == read_series(site, name)["value"][-1]
    worse = [at for at, state in enumerate(columns["state"]) if state == "worse"]
    assert worse == list(range(len(worse))), "what needs attention comes first"
    assert len(worse) == index["verdicts"]["regressions"] > 0
    assert all(columns["incident"][at].startswith("i2026") for at in worse)
    assert all(columns["change"][at] > 1.04 for at in worse)
    assert index["stamps"][-1] == index["night"] == STAMP
    assert set(index["nights"]) == set(index["stamps"])
    assert (index["written"], index["years"]) == ("2026-11-21T06:02:11Z", [2026])
    active = {one["name"]: one["active"] for one in index["experiments"]}
    assert active == {"asleep": False, "cnn_engines": True, "pass_comparison": True, "relax_opt": True}


def test_shards_tell_steps_incidents_and_annotations(told: Home) -> None:
    site = told.output("website")
    index = read(site / "index.json")
    worst = index["series"]["id"][0]
    shard = read_series(site, worst)
    incident = next(one for one in shard["incidents"] if one["id"] == index["series"]["incident"][0])
    assert incident["way"] == "worse"
    assert incident["percent"] > 4
    assert {"stamp": incident["begin"], "size": pytest.approx(incident["percent"] / 100), "kind": "compiler"} in [
        {**step, "size": step["size"]} for step in shard["steps"]
    ]
    assert [note["kind"] for note in shard["annotations"]] == ["release", "machine", "night"]
    assert shard["noise"] == pytest.approx(
        next(one["noise"] for one in read(told.output("stat_alerts") / "page.json")["series"] if one["id"] == worst)
    )


def test_names_that_do_harm_are_text_in_every_file(told: Home) -> None:
    site = told.output("website")
    for path in [*site.glob("*.json"), *site.glob("series/*.js"), *site.glob("receipts/*/*.json")]:
        raw = path.read_bytes()
        assert raw.isascii() or path.name == "published.json", path
        assert b"\\u202e" in raw or b"\xe2\x80\xae" not in raw
    names = read(site / "index.json")["series"]["name"]
    assert any("<img_src=x_onerror=alert(1)>" in name or "onerror" in name for name in names)


def test_receipts_hold_records_samples_and_operators(told: Home) -> None:
    site = told.output("website")
    index = read(site / "index.json")
    for one in index["experiments"]:
        if not one["active"]:
            continue
        name = Path(one["page"]).stem
        receipt = read(site / "receipts" / STAMP / f"{name}.json")
        data = read(told.data_file(one["name"], STAMP))
        assert [record["record"] for record in receipt["records"]] == data["records"]
        assert receipt["night"] == data["night"]
        for record in receipt["records"]:
            assert set(record["series"]) == {"run_time", "compile_time", "code_size", "planned_memory"}
            assert set(record["series"].values()) <= set(index["series"]["id"])
            assert len(record["samples_ms"]) == 10
            run = record["record"]["execution_elapsed_ms_mean"]
            assert all(0.99 * run < sample < 1.03 * run for sample in record["samples_ms"])
            names = [operator[0] for operator in record["operators"]]
            assert "fused_conv2d_add_relu" in names
            assert sum(operator[1] for operator in record["operators"]) == 12 * record["runs"] == 36
            assert [name for name, _ in record["passes"]] == ["FoldConstant", "FuseOps", "<b>DeadCode</b>"]
        assert receipt["trace"] == f"{name}.perfetto-trace"
        assert (site / "receipts" / STAMP / receipt["trace"]).stat().st_size > 1000
        assert receipt["repeat"] == f"python3 -m dashboard reproduce HOME {one['name']}/{STAMP}"
    assert len(list((site / "receipts").iterdir())) == 30
    older = read(next(path for path in site.glob("receipts/20261101*/*.json")))
    assert "not kept" in older["samples_words"]
    assert older["records"][0]["samples_ms"] == []


def test_samples_are_read_without_pandas_which_takes_longer_than_reading(told: Home) -> None:
    (raw, *_) = sorted((told.root / "tmp" / "raw" / "relax_opt").iterdir())
    code = (
        "import sys; from pathlib import Path; from data import receipts; found, _ = receipts.read_measured("
        "Path(sys.argv[1])); print(sum(len(one.samples_ms) for one in found.values()) > 0, 'pandas' in sys.modules)"
    )
    environment = make_site_home.environment() | {
        "PYTHONPATH": f"{REPO / 'subsystem/website'}:{REPO / 'shared/python'}"
    }
    done = subprocess.run(
        [sys.executable, "-c", code, raw], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "True False\n"


def test_the_feed_is_valid_and_leads_to_the_incidents(told: Home) -> None:
    site = told.output("website")
    feed = ET.fromstring((site / "feed.xml").read_bytes())
    assert feed.tag == f"{ATOM}feed"
    for element in (feed, *feed.findall(f"{ATOM}entry")):
        assert len(element.findall(f"{ATOM}id")) == 1
        assert str(element.findtext(f"{ATOM}id")).startswith("urn:uuid:")
        assert element.findtext(f"{ATOM}title")
        moment = str(element.findtext(f"{ATOM}updated")).replace("Z", "+00:00")
        assert datetime.datetime.fromisoformat(moment).tzinfo
    assert feed.find(f"{ATOM}author/{ATOM}name") is not None
    entries = feed.findall(f"{ATOM}entry")
    ids = [one["id"] for one in read(told.output("stat_alerts") / "incidents.json")["incidents"]]
    links = [entry.find(f"{ATOM}link") for entry in entries]
    wanted = {f"https://bench.example.org/tvm/alerts.html#incident-{name}" for name in ids}
    assert {link.get("href") for link in links if link is not None} == wanted
    times = [str(entry.findtext(f"{ATOM}updated")) for entry in entries]
    assert times == sorted(times, reverse=True)
    assert feed.findtext(f"{ATOM}updated") == times[0]


def test_incidents_are_given_out_as_data(told: Home) -> None:
    value = read(told.output("website") / "incidents.json")
    ledger = read(told.output("stat_alerts") / "incidents.json")["incidents"]
    assert [one["id"] for one in value["incidents"]] == [one["id"] for one in reversed(ledger)]
    for one in value["incidents"]:
        assert one["files"] == [moved["series"] for moved in one["moved"]]
        assert one["headline"]
        assert one["words"]


# What is written anew.


def test_a_publish_with_nothing_new_writes_no_data_file(copied: Home) -> None:
    site = publish(copied)
    before = {**inodes(site), **inodes(site, "receipts/*/*")}
    shutil.rmtree(copied.root / "tmp")  # what was read once is not read again, and outlives its source
    publish(copied)
    assert {**inodes(site), **inodes(site, "receipts/*/*")} == before


def test_one_new_night_leaves_the_past_and_whatever_got_no_point(long_copy: tuple[Home, Truth]) -> None:
    home, truth = long_copy
    site = publish(home)
    before = inodes(site)
    add_night(home, truth)
    publish(home)
    changed = {name for name in before if not name.endswith("-past.js")}
    assert rewritten(before, inodes(site)) == changed
    assert len(before) == 2 * len(changed) > 0
    assert all(read_script(site / name)["stamp"][-1] == "20261122T031500Z" for name in changed)


def test_a_series_without_a_point_that_night_is_carried_over(copied: Home) -> None:
    (copied.output("stat_alerts") / "page.json").unlink()
    site = publish(copied)
    before = inodes(site)
    add_night(copied, Truth(40, 60), pass_comparison="")
    publish(copied)
    index = read(site / "index.json")["series"]
    names = [one["name"] for one in read(site / "index.json")["experiments"]]
    kept = {pack for at, pack in enumerate(index["pack"]) if names[index["experiment"][at]] == "pass_comparison"}
    assert kept
    changed = {Path(name).stem for name in rewritten(before, inodes(site))}
    assert changed == set(index["pack"]) - kept


def test_what_people_say_rewrites_the_series_that_it_is_about(copied: Home) -> None:
    site = publish(copied)
    before = inodes(site)
    one = list(incident_file.read_ledger(copied).incidents.values())[-1]
    said = changed(one.id, "false_alarm", at="2026-11-22T09:00:00Z", who="ann")
    incident_file.append(incident_file.file_of(copied), [said])
    publish(copied)
    index = read(site / "index.json")["series"]
    concerned = {index["pack"][index["id"].index(moved.series)] for moved in one.moved}
    assert {Path(name).stem for name in rewritten(before, inodes(site))} == concerned
    assert rewritten(before, inodes(site)), "there is an incident at all"


def test_a_new_year_moves_points_into_the_past(long_copy: tuple[Home, Truth]) -> None:
    home, truth = long_copy
    later = Truth(truth.series, 45 + truth.nights, truth.seed, truth.last + datetime.timedelta(days=45))
    make_site_home.write_night(home, later, later.nights - 1, with_data=True)
    make_site_home.ingest(home, later)
    site = publish(home)
    (recent,) = (path for path in site.glob("series/*.js") if not path.stem.endswith("-past"))
    assert read_script(recent)["stamp"][0] >= "20260101T000000Z"
    past = read_script(recent.with_name(f"{recent.stem}-past.js"))
    assert "20250101T000000Z" < past["stamp"][-1] < "20260101T000000Z"
    assert len(past["series"]) == len(read_script(recent)["series"]) == 8


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"schema_version": 1, "version": 3, "files": 5}', None])
def test_a_damaged_state_costs_a_full_build_and_nothing_else(long_copy: tuple[Home, Truth], damage: str | None) -> None:
    home, _ = long_copy
    site = publish(home)
    before, files = inodes(site), contents(site)
    state = site / "published.json"
    state.unlink()
    if damage is not None:
        state.write_text(damage, encoding="ascii")
    publish(home)
    assert contents(site) == files
    assert rewritten(before, inodes(site)) == set(files)


def test_a_file_of_another_size_is_made_again(long_copy: tuple[Home, Truth]) -> None:
    home, _ = long_copy
    site = publish(home)
    files = contents(site) | contents(site, "columns/*")
    victim = next(site.glob("series/*-past.js"))
    victim.unlink()
    victim.write_bytes(b"")  # as a power cut leaves it
    next(site.glob("columns/*.js")).unlink()
    publish(home)
    assert contents(site) | contents(site, "columns/*") == files


def test_a_night_taken_in_later_is_found(copied: Home) -> None:
    site = publish(copied)
    data = read(copied.data_file("relax_opt", STAMP))
    common.write_json(copied.data_file("relax_opt", "20260801T120000Z"), data)
    make_site_home.ingest(copied, Truth(40, 60))
    publish(copied)
    index = read(site / "index.json")["series"]
    shards = [one for path in site.glob("series/*.js") for one in expand(read_script(path))]
    grown = [shard for shard in shards if shard["stamp"][0] == "20260801T120000Z"]
    assert len(grown) == 4 * len(data["records"])
    assert all(index["points"][index["id"].index(one["id"])] == len(one["stamp"]) for one in grown)


def test_a_publish_killed_at_any_instant_leaves_the_old_data_whole(long_copy: tuple[Home, Truth]) -> None:
    home, truth = long_copy
    site = publish(home)
    files = contents(site)
    add_night(home, truth)
    folder = REPO / "subsystem" / "website"
    argv = [str(folder / "run.sh"), str(home.config("subsystem", "website")), str(site), str(home.root)]
    ended = []
    for wanted in ("series/*", "series/*-past.js", "receipts", "index.json"):
        common.remove_unfinished(site.parent)
        process = subprocess.Popen(
            argv, cwd=folder, env=make_site_home.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        while process.poll() is None and not list(site.parent.glob(f".website.*.new/{wanted}")):
            time.sleep(0.001)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        ended.append(process.wait())
        if ended[-1]:
            assert contents(site) == files
    assert -signal.SIGKILL in ended
    common.remove_unfinished(site.parent)
    publish(home)
    assert read(site / "index.json")["stamps"][-1] == "20261122T031500Z"


# Homes at the edge.


def bare_home(root: Path, stamp: str = STAMP, names: tuple[str, ...] = ()) -> Home:
    """A home whose night measured `names`; without any other subsystem's output."""
    home = Home(root)
    home.nights.mkdir(parents=True)
    steps = tuple(StepResult(stage, OK, "good", stamp, 1) for stage in make_site_home.STAGES)
    jobs = tuple(JobResult("experiment", name, f"Title of {name}", "", steps) for name in names)
    common.write_json(home.night_file(stamp), Night(stamp, RUNNING, jobs=jobs).to_json())
    return home


def write_foreign(home: Home, name: str, stamp: str, value: dict[str, Any]) -> None:
    home.data(name).mkdir(parents=True, exist_ok=True)
    common.write_json(home.data_file(name, stamp), {"tvm_hash": "=1+1", **value})


def test_an_empty_home_has_an_empty_catalogue(tmp_path: Path) -> None:
    site = publish(bare_home(tmp_path / "home"))
    index = read(site / "index.json")
    assert index["series"]["id"] == []
    assert index["experiments"] == []
    assert read(site / "incidents.json")["incidents"] == []
    assert ET.fromstring((site / "feed.xml").read_bytes()).findall(f"{ATOM}entry") == []


def test_one_series_of_one_night(tmp_path: Path) -> None:
    home = bare_home(tmp_path / "home", names=("foreign",))
    write_foreign(home, "foreign", STAMP, {"gpu": {"O3": 1.25}})
    site = publish(home)
    columns = {name: column[0] for name, column in read(site / "index.json")["series"].items()}
    assert (columns["last"], columns["change"], columns["past"], columns["state"]) == (1.25, None, 0, "unjudged")
    assert columns["labels"] == {"path": "$.gpu.O3"}
    receipt = read(next(site.glob("receipts/*/*.json")))
    assert receipt["records"][0]["series"] == {"value": columns["id"]}
    assert receipt["records"][0]["record"] == {"path": "$.gpu.O3", "value": 1.25}
    Draft202012Validator(common.read_json(SCHEMAS / "receipt_v1.json")).validate(receipt)
    shard = read_series(site, columns["id"])
    assert (shard["stamp"], shard["value"], shard["tvms"]) == ([STAMP], [1.25], ["=1+1"])
    assert [shard[name] for name in ("low", "high", "std", "samples", "code")] == [[None]] * 5


def test_a_hundred_experiments_with_hostile_names(tmp_path: Path) -> None:
    names = tuple(name.replace("/", "\u2215") for name in HOSTILE) + tuple(f"exp{at:03}" for at in range(94))
    home = bare_home(tmp_path / "home", names=names)
    for name in names:
        write_foreign(home, name, STAMP, {name: {'"<b>': 1}, "y" * 2000: 2})
    site = publish(home)
    index = read(site / "index.json")
    assert {one["name"] for one in index["experiments"]} == set(names)
    assert len(index["series"]["id"]) == 200
    assert max(map(len, index["series"]["name"])) <= 300
    inside = site.resolve()
    for path in site.rglob("*"):
        assert inside in path.resolve().parents
    assert len(list(site.glob("receipts/*/*.json"))) == 100


@pytest.mark.parametrize("how", ["missing", "damaged", "old"])
def test_without_its_index_the_data_files_say_the_same(copied: Home, how: str) -> None:
    site = copied.output("website")
    files = contents(site)
    assert files
    for suffix in ("", "-wal", "-shm"):
        Path(f"{copied.store_file}{suffix}").unlink(missing_ok=True)
    if how == "damaged":
        copied.store_file.write_bytes(b"not a database" * 1000)
    if how == "old":
        import sqlite3

        with sqlite3.connect(copied.store_file) as old:
            old.execute("PRAGMA user_version = 1")
        old.close()
    shutil.rmtree(site)
    publish(copied)
    assert contents(site) == files


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema_version": 1, "night": "x", "series": [3]}'])
def test_a_damaged_page_of_the_alerts_costs_the_verdicts_alone(copied: Home, text: str) -> None:
    files = {name: read(copied.output("website") / name)["value"] for name in contents(copied.output("website"))
             if name.endswith(".json")}  # fmt: skip
    (copied.output("stat_alerts") / "page.json").write_text(text, encoding="ascii")
    site = publish(copied)
    index = read(site / "index.json")
    assert set(index["series"]["verdict"]) == {""}
    assert index["verdicts"]["unjudged"] > 0
    assert {name: read(site / name)["value"] for name in files} == files


def test_damaged_raw_measurements_are_told_and_the_records_stand(copied: Home) -> None:
    raw = next((copied.root / "tmp" / "raw" / "relax_opt").glob(f"raw_{STAMP}"))
    for path in raw.glob("*.parquet"):
        path.write_bytes(b"PAR1 not any more")
    shutil.rmtree(copied.output("website"))
    site = publish(copied)
    receipt = next(
        one for path in site.glob(f"receipts/{STAMP}/*.json") if (one := read(path))["experiment"] == "relax_opt"
    )
    assert receipt["samples_words"].startswith("The raw measurements could not be read")
    assert receipt["trace"] is None
    assert receipt["records"]


def test_no_receipts_where_none_are_wanted(copied: Home) -> None:
    assert list(publish(copied, receipt_nights=0).glob("receipts/*")) == []
    assert len(list(publish(copied, receipt_nights=2).glob("receipts/*"))) == 2


def test_only_tonight_has_a_trace(copied: Home) -> None:
    site = publish(copied)
    old = {path.name: read(path) for path in site.glob(f"receipts/{STAMP}/*.json")}
    add_night(copied, Truth(40, 60))
    shutil.rmtree(copied.root / "tmp")
    publish(copied)
    assert list(site.glob("receipts/*/*.perfetto-trace")) == []
    for name, receipt in old.items():
        now = read(site / "receipts" / STAMP / name)
        assert (now["trace"], now["records"]) == (None, receipt["records"])


def test_what_is_silenced_is_not_in_the_feed_and_ids_stay(copied: Home) -> None:
    site = publish(copied)
    first = {
        entry.findtext(f"{ATOM}id") for entry in ET.fromstring((site / "feed.xml").read_bytes()).iter(f"{ATOM}entry")
    }
    one = next(iter(incident_file.read_ledger(copied).incidents))
    quiet = Silenced(one, "2026-12-24T00:00:00Z")
    said = Event.of("2026-11-21T05:00:00Z", "ann", SILENCED, "", quiet)
    incident_file.append(incident_file.file_of(copied), [said])
    publish(copied)
    second = {
        entry.findtext(f"{ATOM}id") for entry in ET.fromstring((site / "feed.xml").read_bytes()).iter(f"{ATOM}entry")
    }
    assert second < first
    assert len(second) == len(first) - 1


# What a reader is sent.


def test_the_first_transfer_is_small_and_does_not_grow_with_history(tmp_path: Path) -> None:
    seen: dict[str, list[int]] = {"index": [], "explore": [], "catalogue": []}
    for nights in (30, 90):
        home = make_home(tmp_path / str(nights), Truth(500, nights), files=1, subsystems=False)
        make_site_home.publish(home)
        site = home.output("website").resolve()
        assert len(read(site / "index.json")["series"]["id"]) == 500
        seen["catalogue"].append(sent(site / "index.json"))
        for page in ("index", "explore"):
            seen[page].append(sum(map(sent, with_imports(site, page))))
        shard = max(sent(path) for path in site.glob("series/*.js"))
    assert shard < 20_000
    for page in ("index", "explore"):
        assert seen[page][1] + seen["catalogue"][1] + shard < 100_000, seen
    assert all(abs(after - before) < 5_000 for before, after in seen.values()), seen
