"""Homes whose nights were measured beside a reference TVM, with planted truth: what is said from the first night on."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.subsystem.stat_alerts.alert_homes import AlertHome, Truth, stamp_of
from tests.subsystem.stat_alerts.test_night_verdict import SUBSYSTEM, judged
from tests.subsystem.website.sites import Site
from tvmdash.incidents import file as incident_file
from tvmdash.incidents import ledger as ledgers
from tvmdash.incidents import replay
from tvmdash.incidents.events import Separated
from tvmdash.incidents.text import describe
from tvmdash.judge import Pairs, model
from tvmdash.judge import home as judge_home
from tvmdash.series import store
from tvmdash.verdict import Evidence, Level, NightVerdict, Standing

WORKLOADS = ("mlp", "dqn", "bert", "gru")
PAIRS = 5
NEW, OLD = "tonight", "release"


@dataclass
class Nights:
    """What tonight's TVM and the reference take, by night.

    speed: by (workload, level) and night, the factor of tonight's TVM over the reference. machine: that of the wall
    clock. artifacts, references: what was measured on each night; contents: of what all points ran; pairs: of
    processes. compilations: of pairs in which both sides compiled; compiling: as speed, of them.
    """

    count: int
    machine: Sequence[float] = ()
    artifacts: Sequence[str] = ()
    references: Sequence[str] = ()
    contents: Sequence[str] = ()
    pairs: Sequence[int] = ()
    scatter: float = 0.01
    seed: int = 1
    speed: dict[tuple[str, int], np.ndarray[Any, Any]] = field(default_factory=dict)
    alone: frozenset[int] = frozenset()
    compilations: int = 0
    compiling: dict[tuple[str, int], np.ndarray[Any, Any]] = field(default_factory=dict)

    def slower(self, workload: str, level: int, factor: float, first: int, until: int | None = None) -> Nights:
        self.speed.setdefault((workload, level), np.ones(self.count))[first:until] *= factor
        return self

    def fill(self, root: Path) -> AlertHome:
        home, rng = AlertHome(root), np.random.default_rng(self.seed)
        for night in range(self.count):
            records = [self._record(workload, level, night, rng) for workload in WORKLOADS for level in (0, 3)]
            artifact = self.artifacts[night] if self.artifacts else f"build{night}"
            reference = self.references[night] if self.references else OLD
            identity = {"artifact": {"key": artifact}, "fingerprint": "f"}
            beside = {"reference": {"key": reference, "version": "0.26.0"}} if night not in self.alone else {}
            home.write_data("relax_opt", night, {
                "schema_version": 1, "timestamp": stamp_of(night), "tvm_hash": artifact, "records": records,
                "night": {**identity, **beside},
            })  # fmt: skip
        home.ingest()
        return home

    def _record(self, workload: str, level: int, night: int, rng: np.random.Generator) -> dict[str, Any]:
        quiet = Truth(nights=self.count)
        record = quiet.record(workload, level, night, np.ones(2))
        info = record["additional_info"]
        for name in ("compile_time", "code_size", "device_memory_usage"):
            del info[name]
        speed = self.speed.get((workload, level), np.ones(self.count))[night]
        logs = math.log(speed) + self.scatter * rng.standard_normal(self.pairs[night] if self.pairs else PAIRS)
        reach = 2.776 * logs.std(ddof=1) / math.sqrt(PAIRS) if len(logs) > 1 else math.nan
        wall = (self.machine[night] if self.machine else 1.0) * math.exp(rng.normal(0, 0.02))
        info["execution_elapsed_ms_median"] *= speed * wall
        info["module_hash"] = f"{workload}{level}"
        if self.contents and self.contents[night]:
            info["content"] = {"hash": f"{workload}{level}{self.contents[night]}", "pairs": PAIRS}
        if night not in self.alone:
            ratio = {
                "clock": "cpu", "log_ratios": logs.tolist(), "ratio": math.exp(logs.mean()),
                "low": math.exp(logs.mean() - reach), "high": math.exp(logs.mean() + reach),
            }  # fmt: skip
            if len(logs) == 1:
                del ratio["low"], ratio["high"]
            info["paired"] = {"ratios": {"run_time": ratio}, "reference": {"run_time": 0.25}}
            if self.compilations:
                log = math.log(self.compiling.get((workload, level), np.ones(self.count))[night])
                found = (log + 0.07 * rng.standard_normal(self.compilations)).tolist()
                busy = (self.machine[night] if self.machine else 1.0) * math.exp(rng.normal(0, 0.2))
                info["compile_time"] = 330.0 * math.exp(log) * busy
                info["paired"]["ratios"]["compile_time"] = {
                    "clock": "cpu", "log_ratios": found, "ratio": math.exp(sum(found) / len(found)),
                }  # fmt: skip
        return record


def verdicts(home: AlertHome, count: int, first: int = 0) -> list[NightVerdict]:
    return [judged(home, night) for night in range(first, count)]


def opened(home: AlertHome) -> list[ledgers.Incident]:
    ledger = ledgers.fold(incident_file.read(home.output / ledgers.LEDGER_FILE))
    return list(ledger.incidents.values())


def test_the_first_night_says_which_series_differ_from_the_reference_and_by_how_much(tmp_path: Path) -> None:
    home = Nights(1).slower("mlp", 0, 1.04, 0).slower("gru", 3, 0.92, 0).fill(tmp_path)
    (verdict,) = verdicts(home, 1)
    assert verdict.beside is not None
    assert (verdict.beside.reference, verdict.beside.series, verdict.beside.is_first) == ("0.26.0", 8, True)
    slower, faster = verdict.beside.differences
    assert "mlp" in slower.name
    assert "gru" in faster.name
    assert (slower.worse, faster.worse) == (True, False)
    assert slower.low < 0.04 < slower.high
    assert faster.low < -0.08 < faster.high
    assert verdict.level is Level.CHANGED
    assert slower.name in verdict.headline
    assert not opened(home)


def test_of_fewer_than_five_pairs_nothing_is_said_beside_the_reference(tmp_path: Path) -> None:
    home = Nights(2, artifacts=[NEW, NEW], pairs=[2, 3]).slower("mlp", 0, 0.9, 0).fill(tmp_path)
    first, second = verdicts(home, 2)
    assert (first.level, second.level) == (Level.BLIND, Level.STEADY)
    assert first.beside is None
    assert second.beside is not None
    (difference,) = second.beside.differences
    assert "opt_level 0" in difference.name


def test_a_young_canary_says_nothing_of_how_well_tvm_was_seen(tmp_path: Path) -> None:
    home, canary = Nights(2).fill(tmp_path), Truth(nights=2)
    for night in range(2):
        records = [canary.record(f"chain{at}", 0, night, np.ones(2)) for at in range(12)]
        value = {"schema_version": 1, "timestamp": stamp_of(night), "tvm_hash": f"build{night}", "records": records}
        home.write_data("canary", night, value)
    home.ingest()
    _, second = verdicts(home, 2)
    assert (second.level, second.seen, second.blind) == (Level.STEADY, 56, 0)


def exact_beside(root: Path, **reference: float) -> AlertHome:
    """A home of two nights, whose records say what two processes gave, and what the reference gave."""
    home = Nights(2).fill(root)
    for night in range(2):
        path = home.home.data_file("relax_opt", stamp_of(night))
        value = json.loads(path.read_text())
        info = value["records"][0]["additional_info"]
        info |= {"code_size": 20480, "validation_accuracy": 0.997}
        info["alike"] = {"code_size": PAIRS, "validation_accuracy": PAIRS}
        info["paired"]["reference"] |= reference
        path.write_text(json.dumps(value))
    home.home.store_file.unlink()
    home.ingest()
    return home


def test_exact_numbers_that_are_others_on_the_reference_are_told_on_the_first_night(tmp_path: Path) -> None:
    home = exact_beside(tmp_path, code_size=20352, accuracy=1.0)
    first, second = verdicts(home, 2)
    assert first.beside is not None
    found = [(each.name, each.unit, each.reference, each.value, each.worse) for each in first.beside.exact]
    assert found == [
        ("relax_opt mlp accuracy", "", 1.0, 0.997, True),
        ("relax_opt mlp code size", "bytes", 20352.0, 20480.0, None),
    ]
    assert first.level is Level.CHANGED
    assert first.blind == 0, "what was measured on both is seen, however young"
    exact = [(each.standing, each.reason) for each in first.series if each.evidence is Evidence.EXACT]
    assert exact == [(Standing.STEADY, None)] * 2
    assert "Not judged" not in home.run(0)["value"]
    assert (first.beside.series, first.beside.differences) == (8, ())
    assert "−0.003 (worse)" in first.headline
    assert "+128 bytes" in home.run(0)["value"]
    assert (second.level, "exact" in second.headline) == (Level.STEADY, False)


@pytest.mark.parametrize(("on_reference", "others"), [(39, [("relax_opt mlp registers", 39, 40)]), (40, [])])
def test_where_nothing_is_measured_in_turn_exact_numbers_alone_are_told(
    tmp_path: Path, on_reference: int, others: list[tuple[str, float, float]]
) -> None:
    home = Nights(1).fill(tmp_path)
    path = home.home.data_file("relax_opt", stamp_of(0))
    value = json.loads(path.read_text())
    del value["records"][1:]
    exact = {"registers": 40, "alike": {"registers": 2}, "paired": {"reference": {"registers": on_reference}}}
    value["records"][0]["additional_info"] |= exact
    path.write_text(json.dumps(value))
    home.home.store_file.unlink()
    home.ingest()
    (verdict,) = verdicts(home, 1)
    assert verdict.beside is not None
    assert (verdict.beside.series, verdict.beside.numbers) == (0, 1)
    assert [(each.name, each.reference, each.value) for each in verdict.beside.exact] == others
    assert f"{verdict.lead}." in home.run(0)["value"]


def test_exact_numbers_that_are_those_of_the_reference_change_nothing(tmp_path: Path) -> None:
    first, _ = verdicts(exact_beside(tmp_path, code_size=20480, accuracy=0.997), 2)
    assert first.beside is not None
    assert (first.level, first.beside.exact) == (Level.STEADY, ())


def test_the_first_night_of_a_tvm_that_is_no_slower_than_the_reference_is_green(tmp_path: Path) -> None:
    (verdict,) = verdicts(Nights(1).fill(tmp_path), 1)
    assert verdict.level is Level.STEADY
    assert verdict.beside is not None
    assert (verdict.beside.series, verdict.beside.differences, verdict.beside.is_first) == (8, (), True)


def test_how_tvm_stands_to_the_reference_is_told_once(tmp_path: Path) -> None:
    home = Nights(2, artifacts=[NEW, NEW]).slower("mlp", 0, 1.04, 0).fill(tmp_path)
    first, second = verdicts(home, 2)
    assert first.beside is not None
    assert second.beside is not None
    assert (first.beside.is_first, second.beside.is_first) == (True, False)
    assert [difference.name for difference in second.beside.differences] == [first.beside.differences[0].name]
    assert second.level is Level.STEADY
    assert "0.26.0" not in second.headline


@pytest.mark.parametrize("night", [1, 2, 5])
def test_a_step_is_told_the_same_night_from_the_second_on_whatever_the_machine_does(tmp_path: Path, night: int) -> None:
    machine = [1.0, 3.0, 0.9, 5.0, 1.2, 4.0]
    home = Nights(night + 1, machine=machine).slower("bert", 3, 1.06, night).fill(tmp_path)
    *before, verdict = verdicts(home, night + 1)
    assert [earlier.level for earlier in before] == [Level.STEADY] * night
    assert verdict.level is Level.REGRESSION
    (incident,) = opened(home)
    (moved,) = incident.moved
    assert "bert" in moved.name
    assert moved.low is not None
    assert moved.high is not None
    assert moved.low < 0.06 < moved.high
    assert (incident.begin, incident.after) == (stamp_of(night), stamp_of(night - 1))
    assert incident.cause is not None
    assert (incident.cause.whose, incident.cause.evidence) == ("runtime", "paired")
    explained = replay.explain(home.output, incident)
    assert "the same decision" in explained
    assert "NOT" not in explained


def test_a_second_step_the_night_after_the_first_is_told_as_well(tmp_path: Path) -> None:
    home = Nights(8).slower("mlp", 0, 1.06, 5).slower("mlp", 0, 1.07, 6).fill(tmp_path)
    verdicts(home, 8)
    assert [incident.begin for incident in opened(home)] == [stamp_of(5), stamp_of(6)]


def test_a_machine_that_becomes_slower_for_good_is_no_regression(tmp_path: Path) -> None:
    home = Nights(12, machine=[1.0] * 5 + [1.4] * 7).fill(tmp_path)
    assert {verdict.level for verdict in verdicts(home, 12)} == {Level.STEADY}
    assert not opened(home)


def test_nights_of_one_artifact_are_one_build_however_they_scatter(tmp_path: Path) -> None:
    home = Nights(6, artifacts=[NEW] * 6).slower("mlp", 0, 1.05, 3).fill(tmp_path)
    assert not [verdict for verdict in verdicts(home, 6) if verdict.level is Level.REGRESSION]
    assert not opened(home)


def test_a_step_that_is_taken_back_is_told_both_ways(tmp_path: Path) -> None:
    home = Nights(16).slower("dqn", 0, 1.08, 6, 9).fill(tmp_path)
    verdicts(home, 16)
    first = opened(home)[0]
    assert (first.begin, first.is_worse) == (stamp_of(6), True)
    assert not first.is_open


def test_beside_last_nights_artifact_the_ratio_itself_is_the_step(tmp_path: Path) -> None:
    """As in a home that builds from source: the reference is what the night before measured."""
    count = 12
    builds = [f"build{night}" for night in range(count)]
    nights = Nights(count, artifacts=builds, references=["", *builds[:-1]], alone=frozenset({0}))
    nights.slower("mlp", 3, 1.06, 4, 5)  # the ratio of one night to the night before; from then on the level stays
    home = nights.fill(tmp_path)
    said = verdicts(home, count)
    assert [verdict.night for verdict in said if verdict.new] == [stamp_of(4)]
    (incident,) = opened(home)
    assert incident.after == stamp_of(3)
    assert incident.is_open, "it stays slower, although from the next night on the reference is as slow"
    assert "were measured in turn." in describe(incident), "no two nights had the same reference"
    assert [verdict.level for verdict in said[4:]] == [Level.REGRESSION] * (count - 4)


def test_beside_last_nights_artifact_a_step_stays_open_though_many_small_ones_led_the_other_way(tmp_path: Path) -> None:
    """Places add up: the median of all nights before the step is where tonight is; the builds just before are not."""
    artifacts = [f"build{night}" for night in range(38)]
    home = Nights(38, artifacts=artifacts, references=[OLD, *artifacts[:-1]], scatter=0.004)
    home.slower("mlp", 0, 0.997, 1, 30).slower("mlp", 0, 1.05, 30, 31)
    filled = home.fill(tmp_path)
    verdicts(filled, 38)
    regressions = [incident for incident in opened(filled) if incident.way == "worse"]
    assert [(incident.begin, incident.is_open) for incident in regressions] == [(stamp_of(30), True)]


def test_a_home_with_a_long_history_is_judged_by_its_times_until_there_are_twenty_ratios(tmp_path: Path) -> None:
    alone = frozenset(range(25))
    home = Nights(48, alone=alone, scatter=0.008).slower("mlp", 0, 1.1, 47).fill(tmp_path)
    verdicts(home, 47, first=24)
    verdict = judged(home, 47)
    assert verdict.level is Level.REGRESSION
    (incident,) = opened(home)
    assert incident.cause is not None
    assert incident.cause.evidence == "paired"


def test_a_series_that_loses_its_reference_for_a_night_is_not_judged_by_its_time(tmp_path: Path) -> None:
    machine = [1.0] * 9 + [4.0]
    home = Nights(10, machine=machine, alone=frozenset({9})).fill(tmp_path)
    *_, verdict = verdicts(home, 10)
    assert not verdict.new
    assert not opened(home)


def test_where_the_reference_is_last_nights_tvm_the_step_is_told_and_not_the_difference_too(tmp_path: Path) -> None:
    """A release came out: tonight's TVM is faster than last night's, which is the reference from tonight on."""
    builds = ["old", "old", "new"]
    nights = Nights(3, artifacts=builds, references=["older", "older", "old"])
    (*_, verdict) = verdicts(nights.slower("mlp", 0, 0.9, 2).fill(tmp_path), 3)
    assert verdict.improved
    assert verdict.level is Level.IMPROVED
    assert "relax_opt mlp" in verdict.headline
    assert "0.26.0" not in verdict.headline


def test_a_reference_that_is_new_on_a_night_on_which_something_got_better_is_told_beside_it(tmp_path: Path) -> None:
    nights = Nights(5, references=["older"] * 3 + ["other"] * 2)
    nights.slower("mlp", 0, 0.9, 2, 3).slower("dqn", 3, 1.05, 3)
    *before, verdict, after = verdicts(nights.fill(tmp_path), 5)
    assert [earlier.level for earlier in before] == [Level.STEADY, Level.STEADY, Level.IMPROVED]
    assert after.level is Level.BLIND, "nothing joins the builds beside one reference with those beside the other"
    assert verdict.level is Level.CHANGED
    assert verdict.lead.startswith("Beside TVM 0.26.0")
    assert "relax_opt dqn" in verdict.lead


class Bench:
    """Answers `dashboard remeasure`: pairs of tonight's artifact and an older one, between which one series differs."""

    def __init__(self, home: AlertHome, shift: float, scatter: float = 0.01, pairs: int = 5) -> None:
        self.home, self.shift, self.scatter, self.pairs = home, shift, scatter, pairs
        self.rng, self.asked = np.random.default_rng(5), list[dict[str, Any]]()

    def __call__(self, _home: object, request: Sequence[dict[str, Any]], _budget_s: float) -> list[dict[str, Any]]:
        self.asked += request
        return [self._answer(asked) for asked in request]

    def _answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        with store.open_for_reading(self.home.home.store_file, self.home.home.data("relax_opt"), "relax_opt") as opened:
            times = {outline.id: outline.labels for outline in opened.outlines("relax_opt", "run_time")}
        moved = [(of["workload"], of["build_config"]["opt_level"]) == ("network.bert", 3) for of in times.values()]
        logs = self.scatter * self.rng.standard_normal((len(times), self.pairs))
        logs += self.shift * np.array(moved)[:, None]
        ratios = {
            series: {"log": float(log.mean()), "std": float(log.std(ddof=1)), "pairs": self.pairs}
            | {"layout": asked["layout"]}
            for series, log in zip(times, logs, strict=True)
        }
        return {"state": "measured", "values": {}, "ratios": ratios, "seconds": 10.0, "error": ""}


def judged_with(bench: Bench, home: AlertHome, night: int, monkeypatch: pytest.MonkeyPatch) -> NightVerdict:
    """The night judged while suspects can be measured again."""
    confirming = SUBSYSTEM.judge_pending.__globals__["confirming"]

    def opened(*arguments: Any, **options: Any) -> Any:
        return replace(plain(*arguments, **{**options, "budget_s": 600.0, "off": ""}), measure=bench)

    plain = confirming.opened
    monkeypatch.setattr(confirming, "opened", opened)
    return judged(home, night)


def test_a_step_that_one_night_cannot_tell_is_measured_again_in_pairs_and_told_the_same_night(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Nights(4, scatter=0.012, seed=3).slower("bert", 3, 1.03, 3).fill(tmp_path / "again")
    alone = Nights(4, scatter=0.012, seed=3).slower("bert", 3, 1.03, 3).fill(tmp_path / "alone")
    *_, without = verdicts(alone, 4)
    assert not without.new
    verdicts(home, 3)
    bench = Bench(home, math.log(1.03))
    verdict = judged_with(bench, home, 3, monkeypatch)
    assert verdict.level is Level.REGRESSION
    (incident,) = opened(home)
    (moved,) = incident.moved
    assert "bert" in moved.name
    assert moved.low is not None
    assert moved.high is not None
    assert moved.low < 0.03 < moved.high
    assert incident.state == "confirmed"
    assert moved.again_new == moved.again_old >= 5
    assert {asked["stamp"] for asked in bench.asked} == {stamp_of(3)}
    assert {asked["beside"] for asked in bench.asked} <= {stamp_of(night) for night in range(3)}
    explained = replay.explain(home.output, incident)
    assert "the same decision" in explained
    assert "NOT" not in explained


def test_what_was_split_off_is_explained_by_its_own_series(tmp_path: Path) -> None:
    nights = Nights(4, scatter=0.004).slower("bert", 3, 1.08, 3).slower("gru", 3, 1.08, 3)
    home = nights.fill(tmp_path)
    verdicts(home, 4)
    (whole,) = opened(home)
    bert = next(each for each in whole.moved if "bert" in each.name)
    split = ledgers.Event.of(
        stamp_of(3), "ann", ledgers.SEPARATED, f"{whole.id}-2", Separated(whole.id, (bert.series,))
    )
    incident_file.append(incident_file.file_of(home.home), [split])
    left, new = opened(home)
    explained = [replay.explain(home.output, each) for each in (whole, left, new)]
    assert [("bert" in text, "gru" in text) for text in explained] == [(True, True), (False, True), (True, False)]
    assert all("the same decision" in text for text in explained)


def test_what_is_measured_again_takes_turns_in_three_layouts_of_the_code_which_the_judge_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Nights(4, scatter=0.012, seed=3).slower("bert", 3, 1.03, 3).fill(tmp_path)
    verdicts(home, 3)
    bench = Bench(home, 0.016, scatter=0.03)
    seen: list[tuple[int, int]] = []

    def weigh(name: str, evidence: Any, noise: Any, again: Sequence[Pairs] = ()) -> Any:
        seen.extend((pairs.layout, pairs.base_layout) for pairs in again)
        return plain(name, evidence, noise, again)

    plain = judge_home.SeriesModel
    monkeypatch.setattr(judge_home, "SeriesModel", weigh)
    monkeypatch.setattr(model, "SeriesModel", weigh)
    judged_with(bench, home, 3, monkeypatch)
    asked = [request["layout"] for request in bench.asked]
    first = asked[0]
    assert asked[:4] == [first, first + 1, first + 2, first]
    assert set(seen) == {(layout, layout) for layout in asked}


def test_what_does_not_come_back_in_pairs_is_not_told_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Nights(4, scatter=0.006).slower("bert", 3, 1.025, 3).fill(tmp_path)
    verdicts(home, 3)
    verdict = judged_with(Bench(home, 0.0, pairs=12), home, 3, monkeypatch)
    assert verdict.level is Level.STEADY
    assert not opened(home)
    (outcome,) = [one for one in home.page()["confirmation"]["series"] if "bert" in one["name"]]
    assert outcome["outcome"] == "outlier"


def test_the_first_page_of_a_new_home_shows_how_each_point_stands_to_the_reference(tmp_path: Path) -> None:
    nights = Nights(2).slower("mlp", 0, 1.04, 0)
    home = nights.fill(tmp_path)
    site = Site(home.home)
    (first,) = verdicts(home, 1)
    page = site.publish_here(stamp_of(0))
    assert page.first("h1").endswith(first.title)
    row = page.words[page.words.index("Both measured in turn.") :]
    assert "mlp" in row[: row.index("+4.2 %")], "what differs comes first"
    verdicts(home, 2, first=1)
    page = site.publish_here(stamp_of(1))
    assert "Both measured in turn." not in page.words, "the builds before are what it stands beside from then on"


@pytest.mark.parametrize("before", ["build", "release"])
def test_artifacts_that_ran_the_same_code_are_one_build_whose_nights_may_differ(tmp_path: Path, before: str) -> None:
    """What is off on a night with the same code is the processes' luck, also beside the build before."""
    references = [OLD, *(f"build{night}" for night in range(5))] if before == "build" else ()
    home = Nights(6, references=references, contents=["same"] * 6).slower("mlp", 0, 1.05, 4).fill(tmp_path)
    found = verdicts(home, 6)
    assert [verdict.level for verdict in found] == [Level.STEADY] * 6
    assert [verdict.unchanged for verdict in found] == [0, 8, 8, 8, 8, 8]
    assert not opened(home)
    if before == "build":
        assert not any(verdict.beside.differences for verdict in found if verdict.beside), "each is its own reference"
        assert not any(verdict.beside.is_itself for verdict in found if verdict.beside), "but another artifact"


def test_code_that_is_another_than_before_is_judged_whatever_ran_before_that(tmp_path: Path) -> None:
    home = Nights(6, contents=[*["old"] * 4, "new", "new"]).slower("mlp", 0, 1.06, 4).fill(tmp_path)
    found = verdicts(home, 6)
    assert [verdict.level for verdict in found] == [*[Level.STEADY] * 4, *[Level.REGRESSION] * 2]
    assert [verdict.unchanged for verdict in found] == [0, 8, 8, 8, 0, 7]
    (incident,) = opened(home)
    assert incident.begin == stamp_of(4)


def test_a_series_that_ran_the_same_code_is_not_blind_however_noisy_it_is(tmp_path: Path) -> None:
    same = Nights(4, scatter=0.2, contents=["same"] * 4).fill(tmp_path / "same")
    other = Nights(4, scatter=0.2, contents=["", "a", "b", "c"]).fill(tmp_path / "other")
    assert [verdict.blind for verdict in verdicts(same, 4)] == [8, 0, 0, 0]
    assert [verdict.blind for verdict in verdicts(other, 4)] == [8, 8, 8, 8]


def test_one_artifact_stays_one_build_when_something_else_that_it_runs_changes(tmp_path: Path) -> None:
    """Nights before contents were recorded, and a system that was upgraded below the same artifact."""
    artifacts, contents = ["a", "a", "a", "b", "b"], ["", "before", "after", "after", ""]
    home = Nights(5, artifacts=artifacts, contents=contents).slower("mlp", 0, 1.06, 1).fill(tmp_path)
    assert [verdict.level for verdict in verdicts(home, 5)] == [Level.STEADY] * 5


def foreign_home(root: Path, factor: float) -> AlertHome:
    """Four nights of an experiment in any language, beside one release; its rate changes by the factor on the last."""
    home, rng = AlertHome(root), np.random.default_rng(2)
    metrics = {
        "rate": {"kind": "rate", "unit": "tokens/s", "direction": "higher"},
        "ms": {"kind": "time", "unit": "ms"},
    }
    for night in range(4):
        logs = {f"$.{name}": 0.01 * rng.standard_normal(PAIRS) for name in metrics}
        logs["$.rate"] += math.log(factor) * (night == 3)
        ratios = {
            path: {
                "clock": "wall",
                "log_ratios": values.tolist(),
                "ratio": math.exp(values.mean()),
                "low": 0,
                "high": 2,
            }
            for path, values in logs.items()
        }
        identity = {"artifact": {"key": f"build{night}"}, "reference": {"key": OLD, "version": "0.26.0"}}
        values = {"rate": 80.0 * math.exp(rng.normal(0, 0.3)), "ms": 3.0}
        whole = {"tvm_hash": f"build{night}", "metrics": metrics, "night": {**identity, "paired": {"ratios": ratios}}}
        home.write_data("copying", night, {"timestamp": stamp_of(night), **whole, **values})
    home.ingest()
    return home


def test_a_rate_of_a_foreign_experiment_beside_the_reference_is_judged_by_its_ratio(tmp_path: Path) -> None:
    slower = foreign_home(tmp_path / "slower", 0.9)
    *_, verdict = verdicts(slower, 4)
    assert verdict.level is Level.REGRESSION
    ((moved,),) = (incident.moved for incident in opened(slower))
    assert (moved.name, moved.worse) == ("copying $.rate", True)
    assert moved.effect == pytest.approx(-0.1, abs=0.02)
    assert (verdict.expected, verdict.seen) == (2, 2), "the ratio is no series of its own"
    *_, verdict = verdicts(foreign_home(tmp_path / "faster", 1.1), 4)
    assert verdict.level is Level.IMPROVED


def test_a_tvm_measured_against_itself_is_said_and_whatever_its_pairs_show_is_not_told(tmp_path: Path) -> None:
    """An A/A test: what differs between the two sides is the machine or chance, on and between nights."""
    builds = ["a", "a", "b", "c"]
    nights = Nights(4, artifacts=builds, references=builds).slower("mlp", 0, 1.2, 0, 1).slower("gru", 3, 1.2, 2)
    home = nights.fill(tmp_path)
    site = Site(home.home)
    (first,) = verdicts(home, 1)
    assert first.beside is not None
    assert (first.beside.is_itself, first.beside.differences) == (True, ())
    assert "A/A test" in first.lead
    assert "measured against itself" in site.publish_here(stamp_of(0)).words
    after = verdicts(home, 4, first=1)
    assert {verdict.level for verdict in [first, *after]} == {Level.BLIND}, "no other TVM is there to be seen"
    assert not opened(home)


def test_a_series_that_runs_exactly_the_code_of_before_is_fixed_that_night_and_that_is_said(tmp_path: Path) -> None:
    contents = ["a", "a", "a", "b", "b", "a"]
    home = Nights(6, contents=contents).slower("dqn", 0, 1.1, 3, 5).fill(tmp_path)
    said = verdicts(home, 6)
    (incident,) = [one for one in opened(home) if one.is_worse]
    assert [verdict.night for verdict in said if verdict.new] == [stamp_of(3)]
    assert (said[4].level, said[5].level) == (Level.REGRESSION, Level.IMPROVED)
    assert said[5].fixed == (incident.id,)
    assert incident.state == "fixed"
    assert "exactly" in incident.changes[-1].words.split()


def test_a_regression_that_is_taken_back_is_fixed_the_same_night(tmp_path: Path) -> None:
    home = Nights(12).slower("dqn", 0, 1.1, 4, 9).fill(tmp_path)
    said = verdicts(home, 12)
    (incident,) = [one for one in opened(home) if one.is_worse]
    assert said[9].fixed == (incident.id,)
    assert [verdict.level for verdict in said[4:9]] == [Level.REGRESSION] * 5
    assert [verdict.level for verdict in said[10:]] == [Level.STEADY] * 2


def test_what_came_with_a_fix_is_told_after_it(tmp_path: Path) -> None:
    home = Nights(14).slower("dqn", 0, 1.12, 4, 8).slower("dqn", 0, 1.04, 8).fill(tmp_path)
    said = verdicts(home, 14)
    first, second = [one for one in opened(home) if one.is_worse]
    assert said[8].fixed == (first.id,)
    assert first.state == "fixed"
    (moved,) = second.moved
    assert moved.effect == pytest.approx(0.04, abs=0.02)
    assert second.begin == stamp_of(8)
    assert second.is_open


def test_a_regression_that_was_called_fixed_by_mistake_goes_on_under_its_id(tmp_path: Path) -> None:
    """One night measured the tenth build as fast as before; the nights after it measure the same build as slow."""
    nights = Nights(16, artifacts=[f"build{min(night, 9)}" for night in range(16)])
    home = nights.slower("dqn", 0, 1.08, 4, 9).slower("dqn", 0, 1.01, 9).slower("dqn", 0, 1.09, 10).fill(tmp_path)
    said = verdicts(home, 16)
    (incident,) = [one for one in opened(home) if one.is_worse]
    assert said[9].fixed == (incident.id,)
    assert [change.state for change in incident.changes][:3] == ["new", "fixed", "new"]
    assert incident.changes[2].words.startswith("not back after all")
    assert incident.is_open
    assert said[15].level is Level.REGRESSION
    assert {verdict.new for verdict in said[5:]} == {()}


def test_an_older_version_measured_once_is_no_new_regression(tmp_path: Path) -> None:
    """Night 7 measures the wheel of night 1 again, under another key: faster than its neighbours, and no news."""
    order = [1, 2, 3, 4, 5, 6, 7, 2, 8, 9]
    artifacts = [f"0.27.dev{number}" + ("+again" if at == 7 else "") for at, number in enumerate(order)]
    nights = Nights(10, artifacts=artifacts).slower("mlp", 3, 1.08, 4, 7).slower("mlp", 3, 1.08, 8)
    said = verdicts(nights.fill(tmp_path), 10)
    assert [verdict.night for verdict in said if verdict.new] == [stamp_of(4)]
    (incident,) = opened(AlertHome(tmp_path))
    assert incident.versions[1] == "0.27.dev5"
    assert incident.is_open


def test_an_older_commit_measured_once_is_no_new_regression(tmp_path: Path) -> None:
    """Night 7 measures the commit of night 1 anew, as after a reset of the branch: its date says where it belongs."""
    order = [1, 2, 3, 4, 5, 6, 7, 2, 8, 9]
    artifacts = [f"git-{number}" + ("b" if at == 7 else "") for at, number in enumerate(order)]
    nights = Nights(10, artifacts=artifacts).slower("mlp", 3, 1.08, 4, 7).slower("mlp", 3, 1.08, 8)
    home = nights.fill(tmp_path)
    for at, (key, number) in enumerate(zip(artifacts, order, strict=True)):
        taken = {"key": key, "provider": "git", "facts": {"committed_utc": f"202605{number:02}T000000Z"}}
        home.taken[at] = (taken,)
    said = verdicts(home, 10)
    assert [verdict.night for verdict in said if verdict.new] == [stamp_of(4)]
    (incident,) = opened(home)
    assert incident.is_open


def test_what_moves_all_points_a_little_is_one_incident_that_no_point_shows_alone(tmp_path: Path) -> None:
    nights = Nights(9, scatter=0.008)
    for workload in WORKLOADS:
        for level in (0, 3):
            nights.slower(workload, level, 1.016, 7)
    said = verdicts(nights.fill(tmp_path), 9)
    (incident,) = opened(AlertHome(tmp_path))
    assert [verdict.night for verdict in said if verdict.new][:1] == [stamp_of(7)]
    assert len(incident.moved) >= 6
    assert all(moved.low is not None and moved.low < 0.016 < (moved.high or 0) for moved in incident.moved)
    assert incident.versions == ("build6", "build7")


def test_a_night_with_another_reference_that_nothing_joins_is_not_green(tmp_path: Path) -> None:
    nights = Nights(6, references=[OLD] * 4 + ["other"] * 2).slower("mlp", 0, 1.08, 4)
    said = verdicts(nights.fill(tmp_path), 6)
    assert not any(verdict.new for verdict in said)
    assert [verdict.is_green for verdict in said[4:]] == [False, False]


def test_a_step_on_the_second_night_is_told_beside_the_first_nights_build_that_was_measured_alone(
    tmp_path: Path,
) -> None:
    builds = ["build0", "build1", "build2"]
    nights = Nights(3, artifacts=builds, references=["", *builds[:-1]], alone=frozenset({0}), scatter=0.006)
    said = verdicts(nights.slower("mlp", 3, 1.1, 1, 2).fill(tmp_path), 3)
    assert [verdict.level for verdict in said[1:]] == [Level.REGRESSION] * 2
    (incident,) = opened(AlertHome(tmp_path))
    assert (incident.begin, incident.after) == (stamp_of(1), stamp_of(0))


def test_compile_times_of_a_busy_night_are_judged_by_their_pairs_and_say_nothing(tmp_path: Path) -> None:
    home = Nights(5, machine=[1, 1, 3, 1, 4], compilations=2).fill(tmp_path)
    said = verdicts(home, 5)
    assert not opened(home)
    assert [verdict.suspects for verdict in said] == [()] * 5
    assert [each.evidence for each in said[4].series] == [Evidence.PAIRED] * 16


def test_slower_compilation_is_suspected_at_once_and_told_when_five_pairs_say_so(tmp_path: Path) -> None:
    artifacts = ["a", "b", "c", "d", "d", "d"]
    nights = Nights(6, artifacts=artifacts, compilations=2)
    nights.compiling["mlp", 3] = np.array([1, 1, 1, 1.6, 1.6, 1.6])
    said = verdicts(nights.fill(tmp_path), 6)
    assert [verdict.level for verdict in said[3:]] == [Level.SUSPECT, Level.SUSPECT, Level.REGRESSION]
    (incident,) = opened(AlertHome(tmp_path))
    (moved,) = incident.moved
    assert (moved.metric, moved.worse, incident.versions) == ("compile_time", True, ("c", "d"))
    assert moved.low is not None
    assert moved.high is not None
    assert moved.low < 0.6 < moved.high


def test_a_step_of_all_run_times_is_found_beside_as_many_compile_times(tmp_path: Path) -> None:
    nights = Nights(9, scatter=0.008, compilations=2)
    for workload in WORKLOADS:
        for level in (0, 3):
            nights.slower(workload, level, 1.02, 7)
    said = verdicts(nights.fill(tmp_path), 9)
    (incident,) = opened(AlertHome(tmp_path))
    assert [verdict.night for verdict in said if verdict.new][:1] == [stamp_of(7)]
    assert {moved.metric for moved in incident.moved} == {"run_time"}


def test_what_few_pairs_of_each_point_show_together_is_told_beside_the_reference_too(tmp_path: Path) -> None:
    nights = Nights(1, compilations=2)
    nights.compiling = {(workload, level): np.array([0.7]) for workload in WORKLOADS for level in (0, 3)}
    (verdict,) = verdicts(nights.fill(tmp_path), 1)
    assert verdict.beside is not None
    assert len(verdict.beside.differences) == 8
    assert all("compile time" in each.name and each.worse is False for each in verdict.beside.differences)
    assert all(-0.5 < each.low < each.high < -0.1 for each in verdict.beside.differences)
    assert verdict.level is Level.CHANGED


def test_compile_times_that_see_little_are_named_and_do_not_make_a_night_too_noisy(tmp_path: Path) -> None:
    (*_, last) = verdicts(Nights(4, compilations=2).fill(tmp_path), 4)
    assert (last.level, last.blind) == (Level.STEADY, 8)
    assert last.headline.endswith("8 series could not have shown a change of 5 % (compile time of relax_opt)")


def test_what_goes_little_by_little_ends_the_regression_as_well(tmp_path: Path) -> None:
    """No build takes it back at once: each has a little less of it, one of them so much that it is told as better."""
    nights = Nights(24, scatter=0.006)
    for night, level in enumerate((1.03, 1.024, 1.018, 1.012, 1.008, 1.004, 1.002), 5):
        nights = nights.slower("dqn", 0, level, night, night + 1)
    home = nights.fill(tmp_path)
    said = verdicts(home, 24)
    (incident,) = [one for one in opened(home) if one.is_worse]
    assert (incident.begin, incident.state) == (stamp_of(5), "fixed")
    (fixed,) = [at for at, verdict in enumerate(said) if verdict.fixed]
    assert fixed < 15
    assert {verdict.level for verdict in said[5:fixed]} == {Level.REGRESSION}
    assert {verdict.level for verdict in said[fixed + 1 :]} == {Level.STEADY}


def test_a_regression_that_none_of_the_later_pairs_of_its_build_has_is_withdrawn(tmp_path: Path) -> None:
    """One night measured the sixth build 4 % too slow; the nights after it measure the same build."""
    nights = Nights(16, artifacts=[f"build{min(night, 5)}" for night in range(16)], scatter=0.006)
    home = nights.slower("dqn", 0, 1.04, 5, 6).fill(tmp_path)
    said = verdicts(home, 16)
    (incident,) = [one for one in opened(home) if one.is_worse]
    assert incident.begin == stamp_of(5)
    assert incident.state == "false_alarm"
    assert incident.changes[-1].words.startswith("it was none: all pairs")
    (night,) = [verdict for verdict in said if any(text.startswith("Withdrawn: ") for text in verdict.reasons)]
    assert not night.fixed
    assert incident.id not in night.open
    assert said[-1].level is Level.STEADY


def test_the_title_of_a_regression_beside_a_new_reference_is_that_of_the_regression(tmp_path: Path) -> None:
    references = [OLD] * 7 + ["other"]
    nights = Nights(8, references=references).slower("dqn", 0, 1.2, 5)
    home = nights.slower("gru", 3, 1.3, 7).fill(tmp_path)
    verdict = verdicts(home, 8)[-1]
    assert verdict.beside is not None
    assert (verdict.level, verdict.beside.is_first) == (Level.REGRESSION, True)
    assert verdict.title.partition(": ")[0] in {"TVM got slower", "Slower", "1 open regression", "2 open regressions"}
