"""The pages of machines, in homes where it is planted on which of them TVM got slower, and which was away."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.golden_files import Golden
from tests.subsystem.stat_alerts.alert_homes import AlertHome, stamp_of
from tests.subsystem.stat_alerts.test_night_verdict import judged
from tests.subsystem.stat_alerts.test_paired_nights import OLD, Nights
from tests.subsystem.website.sites import HOSTILE, Page, Site, as_shown, assert_whole, job, record, stamp
from tvmdash import common
from tvmdash.dashboard_info import BLOCKED, COMPLETE, Home, HostNight, HostState, JobResult, StepResult
from tvmdash.text import format_percent, format_percent_range
from tvmdash.verdict import Evidence, JudgedSeries, NightVerdict, Standing

COUNT, TONIGHT = 12, stamp_of(11)
NO_ROUTE = "desk: ssh: connect to host desk port 22: No route to host."
FIVE = ("", "box", "epyc", "grace", "xeon")


def measure(
    home: AlertHome, experiment: str, host: str, nights: Nights, *, first: int = 0, last: int = COUNT, points: str = ""
) -> None:
    """Leave what a machine measured of an experiment from night `first` until before `last`."""
    rng = np.random.default_rng(nights.seed)
    name = f"{experiment}~{host}" if host else experiment
    for night in range(first, last):
        records = [nights._record(workload, 3, night, rng) for workload in (points or "mlp bert dqn").split()]
        for item in records:
            item.update(env_name=host or "home", hw_model=cpu_of(host))
            item["target"] = f'{{"kind": "llvm", "mcpu": "that of {host}"}}'
        beside = {} if night in nights.alone else {"reference": {"key": OLD, "version": "0.26.0"}}
        home.write_data(name, night, {
            "schema_version": 1, "timestamp": stamp_of(night), "tvm_hash": f"build{night}", "records": records,
            "environment": {"machine": {"host": host or "home", "cpu_model": f"fingerprint of {host or 'home'}"}},
            "night": {"artifact": {"key": f"build{night}"}, "fingerprint": "f", "machine": host or "home", **beside},
        })  # fmt: skip


def cpu_of(host: str) -> str:
    return f"CPU of {host or 'home'}"


def quiet(seed: int, *, alone: bool = False) -> Nights:
    return Nights(COUNT, seed=seed, scatter=0.003, alone=frozenset(range(COUNT) if alone else ()))


def plant(root: Path) -> AlertHome:
    """Tonight, after eleven steady nights, beside the reference on each of them.

    Of `cnn`, on five machines, bert is 8 % slower everywhere, mlp 8 % on box alone, and dqn 12 % slower on box and 10 %
    faster on epyc. Of `gemm`, mlp is 8 % slower at home, and since the night before on desk, which is away tonight;
    fresh measures it for the first time. The canary runs on box.
    """
    home, tonight = AlertHome(root), COUNT - 1
    for seed, host in enumerate(FIVE):
        nights = quiet(seed).slower("bert", 3, 1.08, tonight)
        if host == "box":
            nights.slower("mlp", 3, 1.08, tonight).slower("dqn", 3, 1.12, tonight)
        measure(home, "cnn", host, nights.slower("dqn", 3, 0.90, tonight) if host == "epyc" else nights)
    measure(home, "gemm", "", quiet(11).slower("mlp", 3, 1.08, tonight), points="mlp bert")
    measure(home, "gemm", "desk", quiet(12).slower("mlp", 3, 1.08, tonight - 1), last=tonight, points="mlp bert")
    measure(home, "gemm", "fresh", quiet(13, alone=True), first=tonight, points="mlp bert")
    measure(home, "canary", "box", quiet(14, alone=True), points="mlp")
    home.ingest()
    return home


def away(name: str, title: str) -> JobResult:
    step = StepResult("run", BLOCKED, NO_ROUTE, TONIGHT, reason="host_away", subject="desk")
    return JobResult("experiment", name, title, "", (step,))


def host_night(name: str, state: HostState = HostState.MEASURED, why: str = "", **facts: Any) -> HostNight:
    known = {} if state is HostState.AWAY else {"node": f"{name}-1", "hw_model": cpu_of(name)}
    return HostNight(name, state, why, **(known | facts))


def leave_nights(site: Site) -> None:
    """The records of the nights: desk was lost once, handed in a night later, and is away tonight."""
    others = tuple(host_night(name, clock_offset_s=0.4, elapsed_s=300.0) for name in FIVE[1:])
    desk = {
        8: host_night("desk", HostState.LOST, "desk: two minutes of silence.", clock_offset_s=-90.0, elapsed_s=60.0),
        9: host_night("desk", late=(stamp_of(8),)),
    }
    names = [f"cnn~{name}" if name else "cnn" for name in FIVE]
    for night in range(COUNT - 1):
        jobs = [job(name, stamp_of(night)) for name in (*names, "gemm", "gemm~desk", "canary~box")]
        hosts = (*others, desk.get(night, host_night("desk")))
        site.night(*jobs, at=stamp_of(night), state=COMPLETE, hosts=hosts)
    hosts = (*others, host_night("desk", HostState.AWAY, NO_ROUTE), host_night("fresh", elapsed_s=42.0))
    site.night(*TONIGHTS, at=TONIGHT, hosts=hosts)
    for night in (8, 9):
        own = site.home.hosts / "desk" / "nights" / f"{stamp_of(night)}.json"
        own.parent.mkdir(parents=True, exist_ok=True)
        own.write_text("{}")
    known = {"name": "home", "since": stamp_of(0), "machine_id": None, "hw_model": cpu_of(""), "formerly": None}
    common.write_json(site.home.machine_file, {"schema_version": 1, **known})


TONIGHTS = (
    job("cnn", TONIGHT, title="Networks"),
    *(job(f"cnn~{name}", TONIGHT, title=f"{name}: Networks") for name in FIVE[1:]),
    job("gemm", TONIGHT),
    job("gemm~fresh", TONIGHT, title="fresh: Products"),
    away("gemm~desk", "desk: Products"),
    job("canary~box", TONIGHT),
)


@dataclass(frozen=True)
class Planted:
    """A home, its site, and the verdict on its last night."""

    home: AlertHome
    site: Site
    verdict: NightVerdict

    @functools.cached_property
    def rows(self) -> dict[str, str]:
        """The rows of the matrix by their experiment and workload, in their order."""
        lines = [" ".join(line.split()) for line in self.site.page("hosts.html").texts["tr"]]
        return {" ".join(line.split()[:2]): line for line in lines if line.startswith(("cnn ", "gemm ", "canary "))}

    def words(self, host: str) -> str:
        return self.site.page(f"hosts/{host}.html").words

    def said(self, experiment: str, workload: str) -> JudgedSeries:
        """What the verdict says of a run time."""
        name = f"{experiment} {workload} run time"
        (key,) = (series["id"] for series in self.home.page()["series"] if series["name"] == name)
        return next(each for each in self.verdict.series if each.series == key)


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    home = plant(tmp_path_factory.mktemp("hosts"))
    site = Site(home.home)
    judged(home, COUNT - 2, job("gemm~desk", stamp_of(COUNT - 2)))
    verdict = judged(home, COUNT - 1, *TONIGHTS)
    leave_nights(site)
    site.publish_here(TONIGHT)
    return Planted(home, site, verdict)


def test_messages(planted: Planted, golden: Golden) -> None:
    pages = ("hosts.html", *(f"hosts/{name}.html" for name in ("local", "box", "desk", "fresh", "grace")))
    golden.messages("website_hosts", [(page, planted.site.page(page).list_sentences("tr")) for page in pages])


def test_on_which_machines_a_point_moved_is_said_and_those_that_disagree_come_first(planted: Planted) -> None:
    rows = planted.rows
    assert list(rows) == ["cnn dqn", "cnn mlp", "gemm mlp", "cnn bert", "gemm bert", "canary mlp"]
    mixed = "mixed: worse on box, better on epyc, not on home, grace and xeon"
    assert rows["cnn dqn"].startswith(f"cnn dqn run time {mixed} together")
    assert "worse only on box" in rows["cnn mlp"]
    assert "worse on home and desk;" in rows["gemm mlp"]
    assert "worse on all 5" in rows["cnn bert"]
    assert "worse" not in rows["gemm bert"]


def test_not_measured_tonight_is_told_apart_from_not_measured_there(planted: Planted) -> None:
    rows = planted.rows
    for cell in ("desk ∅", "epyc \u2013", "fresh ◔"):
        assert cell in rows["gemm bert"]
    assert "desk ✖worse not measured" in rows["gemm mlp"]
    assert "desk \u2013not measured there" in rows["cnn mlp"]
    assert "⊘away" in planted.site.page("hosts.html").texts["thead"][0]


@pytest.mark.parametrize("host", ["box", "home"])
def test_a_cell_has_the_verdicts_change_and_the_ratio_to_the_reference(planted: Planted, host: str) -> None:
    said = planted.said("cnn~box" if host == "box" else "cnn", "mlp")
    assert (said.standing, said.evidence) == (Standing.MOVED if host == "box" else Standing.STEADY, Evidence.PAIRED)
    assert said.effect is not None
    assert said.low is not None
    assert said.high is not None
    change = f"{format_percent(said.effect)} {format_percent_range(said.low, said.high)}"
    word = "✖worse" if host == "box" else "=steady"
    (ratio,) = (series["beside"] for series in planted.home.page()["series"] if series["id"] == said.series)
    beside = f"beside {format_percent(ratio['effect'])} ({format_percent_range(ratio['low'], ratio['high'])})"
    assert f" {host} {word} {change} {beside}" in planted.rows["cnn mlp"]


def test_from_five_machines_on_there_is_one_number_over_all(planted: Planted) -> None:
    effects = [planted.said(f"cnn~{name}" if name else "cnn", "bert").effect for name in FIVE]
    logs = np.log1p(np.array(effects, dtype=float))
    reach = 2.776 * logs.std(ddof=1) / np.sqrt(5)  # Student's t, 4 degrees of freedom
    middle, low, high = np.expm1([logs.mean(), logs.mean() - reach, logs.mean() + reach])
    assert 0.078 < middle < 0.082
    together = f"together {format_percent(middle)} ({format_percent_range(low, high)}) change, 5 machines"
    assert together in planted.rows["cnn bert"]
    assert "together" not in planted.rows["gemm mlp"]


def test_the_page_of_a_machine_says_how_its_nights_went_and_what_came_late(planted: Planted) -> None:
    words = planted.words("desk")
    assert f"{common.format_day(TONIGHT)}: away. {NO_ROUTE}" in words
    assert "10 of 12 nights (83 %)" in words
    lost, taken = (common.format_moment(stamp_of(night)) for night in (8, 9))
    assert re.search(rf"{lost} ✗lost .* delivered on {taken}\.", words)
    assert re.search(rf"{taken} ✓measured .* measurements of {lost}\.", words)
    assert "✖worse gemm~desk mlp" in words
    assert "Nights handed in 2" in words
    assert "Fingerprint of 2026-05-11" in words
    fresh = planted.words("fresh")
    assert "1 of 1 night (100 %)" in fresh
    assert f"{common.format_moment(stamp_of(10))} \u2013not asked" in fresh


def test_the_page_of_a_machine_shows_what_moved_there_its_noise_and_its_canary(planted: Planted) -> None:
    page = planted.site.page("hosts/box.html")
    moved, canary = page.texts["tbody"][:2]
    assert [name for name in ("mlp", "bert", "dqn") if f"✖worse cnn~box {name}" in " ".join(moved.split())] == [
        "mlp", "bert", "dqn",
    ]  # fmt: skip
    assert "canary~box mlp run time" in " ".join(canary.split())
    assert ["no control program" in words for words in (page.words, planted.words("grace"))] == [False, True]
    assert re.search(r"series: \d [ABCD]", page.words)
    assert "None of its series" in planted.words("fresh")
    assert "cnn~grace mlp" not in page.words


def test_the_controls_of_a_machine_are_those_that_the_config_names(tmp_path: Path) -> None:
    site = Site(Home(tmp_path / "home"))
    site.night(job("cnn"), job("cnn~box"), job("stream~box"))
    for name in ("cnn", "cnn~box", "stream~box", "canary~box"):
        site.data(name, [record("mlp", 1.0)])
    config = site.home.config("subsystem", "stat_alerts") / "config.json"
    config.parent.mkdir(parents=True)
    common.write_json(config, {"active": True, "controls": ["stream"]})
    site.publish_here()
    page = site.page("hosts/box.html")
    controls = " ".join(page.texts["tbody"][0].split())
    assert "stream~box" in controls
    assert "canary~box" not in controls
    assert "stream is a control" in site.page("hosts/local.html").words
    common.write_json(config, {"active": True, "controls": []})
    site.publish_here()
    assert "names no controls" in site.page("hosts/box.html").words


def test_the_homes_own_machine_has_a_page_of_its_own_nights(planted: Planted) -> None:
    words = planted.words("local")
    assert "own machine" in words
    assert "12 of 12 nights (100 %)" in words
    assert f"{common.format_moment(stamp_of(10))} ✓measured 12 min 34 s" in words
    assert "desk" not in words


def test_every_page_is_whole_and_leads_to_the_machines(planted: Planted) -> None:
    assert_whole(planted.site)
    assert [page.path.name for page in planted.site.pages() if "Hosts" not in page.words] == []
    assert "explore.html#q=env_name%3Dbox" in " ".join(planted.site.page("hosts/box.html").references)


def test_a_publish_that_changes_nothing_writes_no_page_anew(planted: Planted) -> None:
    def list_inodes() -> dict[str, int]:
        paths = [planted.site.folder / "hosts.html", *(planted.site.folder / "hosts").iterdir()]
        return {path.name: path.stat().st_ino for path in paths}

    before = list_inodes()
    assert len(before) == len(FIVE) + 3
    planted.site.publish_here(TONIGHT)
    assert list_inodes() == before


def test_the_explorer_can_pick_a_machine_and_its_experiments_read_well(planted: Planted) -> None:
    index = common.read_json(planted.site.folder / "index.json")
    titles = {item["name"]: item["title"] for item in index["experiments"]}
    assert titles["cnn~box"] == "box: Networks"
    names = [titles[index["experiments"][at]["name"]] for at in index["series"]["experiment"]]
    machines = {title: labels["env_name"] for title, labels in zip(names, index["series"]["labels"], strict=True)}
    assert machines["box: Networks"] == "box"
    assert machines["Networks"] == "home"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(Home(tmp_path / "home"))


def of_host(name: str, **values: Any) -> dict[str, Any]:
    return {**record("mlp", 1.0), "env_name": name, **values}


def test_a_home_that_measures_on_one_machine_has_no_such_pages(site: Site) -> None:
    site.data("cnn", [record("mlp", 1.0)])
    site.night(job("cnn"), hosts=(HostNight("box", HostState.AWAY, NO_ROUTE),))
    site.publish_here()
    assert not (site.folder / "hosts.html").exists()
    assert not (site.folder / "hosts").exists()
    assert [page.path.name for page in site.pages() if "Hosts" in page.words] == []
    site.data("cnn~box", [of_host("box")])
    site.night(job("cnn"), job("cnn~box"), hosts=(HostNight("box", HostState.MEASURED, ""),))
    site.publish_here()
    assert_whole(site)
    assert [page.path.name for page in site.pages() if "Hosts" not in page.words] == []
    assert site.page("hosts.html").words.count("?not judged") == 2


def test_a_night_that_changes_one_machine_writes_its_page_alone(site: Site) -> None:
    for name in ("box", "desk"):
        site.data(f"cnn~{name}", [of_host(name)])
    names = ("hosts.html", "hosts/local.html", "hosts/box.html", "hosts/desk.html")

    def publish(why: str) -> list[int]:
        site.night(
            job("cnn~box"), hosts=(HostNight("box", HostState.LOST, why), HostNight("desk", HostState.MEASURED, ""))
        )
        site.publish_here()
        return [(site.folder / name).stat().st_ino for name in names]

    first = publish("silence")
    same = [now == before for now, before in zip(publish("a full disk"), first, strict=True)]
    assert same == [False, True, False, True]


def test_a_host_that_is_away_is_no_other_machine_of_the_home(site: Site) -> None:
    """Its experiment comes first by name, so that its fingerprint would stand for the home's."""
    for night in (1, 0):
        site.data("cnn", [record("mlp", 1.0)], at=stamp(night), cpu_model="that of the home")
        if night:
            site.data("a~box", [of_host("box")], at=stamp(night), cpu_model="that of box")
        site.night(job("cnn", stamp(night)), at=stamp(night), state=COMPLETE)
    site.publish_here()
    words = site.page("machines.html").words
    assert "No change recorded." in words
    assert "that of the home" in words


def test_another_machine_of_the_home_is_marked_though_its_hosts_stayed(site: Site) -> None:
    for night in (1, 0):
        site.data("cnn", [record("mlp", 1.0)], at=stamp(night), host=f"home-{night}")
        site.data("cnn~box", [of_host("box")], at=stamp(night), host="box")
        site.night(job("cnn", stamp(night)), at=stamp(night), state=COMPLETE)
    site.publish_here()
    assert "◆ the machine changed" in site.page().words


def test_an_experiment_that_is_away_tonight_keeps_its_title_and_one_that_only_hosts_measure_is_told_once(
    site: Site,
) -> None:
    for name in ("cnn", "gemm"):
        folder = site.home.config("experiment", name)
        folder.mkdir(parents=True)
        common.write_json(folder / "config.json", {"active": True, "title": name.upper()})
    site.data("cnn", [record("mlp", 1.0)])
    site.data("cnn~box", [of_host("box")], at=stamp(40))
    site.data("gemm~box", [of_host("box")])
    site.night(job("cnn", title="CNN"), job("gemm~box", title="box: GEMM"))
    site.publish_here()
    assert_whole(site)
    titles = {item["name"]: item["title"] for item in common.read_json(site.folder / "index.json")["experiments"]}
    assert titles == {"cnn": "CNN", "cnn~box": "box: CNN", "gemm~box": "box: GEMM"}
    pages = [page for page in site.pages() if page.path.parent.name == "experiments"]
    assert {page.first("h1")[1:] for page in pages} == {"CNN", "box: CNN not run", "box: GEMM"}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_of_folders_stay_text(site: Site, name: str) -> None:
    host = name.replace("/", "").replace("\x00", "")[:100]
    site.data("cnn", [record("mlp", 1.0)])
    site.data(f"cnn~{host}", [of_host(name, hw_model=name)])
    site.night(job("cnn"), job(f"cnn~{host}"), hosts=(HostNight(host, HostState.LOST, name, name, name),))
    site.publish_here()
    assert_whole(site)
    assert as_shown(host)[:20] in site.page("hosts.html").words
    for path in (site.folder / "hosts.html", *(site.folder / "hosts").iterdir()):
        assert not set("\x00\x1b\u202e") & set(path.read_text(encoding="utf-8"))
        assert {found.get("src") for found in Page.read(path).all("img")} <= {"icon.svg", "../icon.svg"}
