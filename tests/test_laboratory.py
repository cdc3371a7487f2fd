"""The laboratory of tests/benchmarks: worlds judged by stat_alerts itself, and what was told held against the truth."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest

from tests.benchmarks.lab import cli, held_out
from tests.benchmarks.lab.claims import Case, must_tell, never_green
from tests.benchmarks.lab.data import stamp_of
from tests.benchmarks.lab.home import LabHome, stat_alerts
from tests.benchmarks.lab.intervals import Share
from tests.benchmarks.lab.matching import Matcher, Outcome
from tests.benchmarks.lab.noise import FAMILIES
from tests.benchmarks.lab.plant import fail, move_machine, step
from tests.benchmarks.lab.rows import CANARY, Experiment
from tests.benchmarks.lab.scoring import score
from tests.benchmarks.lab.situations import ALL
from tests.benchmarks.lab.telling import Telling, tellings
from tests.benchmarks.lab.world import Builds, Draw, World
from tvmdash import common, records
from tvmdash.incidents.events import Joined, Moved, Opened, Recovered
from tvmdash.incidents.ledger import Event, iso_of

SMALL = (Experiment("few", 2, ("run_time", "code_size")), CANARY)


def played(folder: Path, case: Case) -> LabHome:
    home = LabHome(folder, case.world)
    home.play()
    return home


def test_an_exact_number_that_changes_is_told_and_nothing_else(tmp_path: Path) -> None:
    world = World(Draw(1), 6, SMALL)
    case = Case(world, must_tell(world, step(world, world.pick("few", "code_size")[:1], 3, 0.02)))
    result = score(case, played(tmp_path, case))
    assert result.is_held
    assert [hit.delay for hit in result.hits] == [0]
    assert [judgement.outcome for judgement in result.judgements] == [Outcome.RIGHT]
    assert result.metric_nights == 5 * 8


def test_what_was_not_told_counts_as_missed_and_a_failed_experiment_speaks_against_a_green_night(
    tmp_path: Path,
) -> None:
    world = World(Draw(1), 5, SMALL)
    fail(world, "few", [4])
    must = must_tell(world, step(world, world.pick("few", "run_time")[:1], 1, 0.0005), within=3)
    case = Case(world, must, [never_green(world, 4, why="it failed")])
    home = played(tmp_path, case)
    result = score(case, home)
    assert (result.hits[0].delay, result.is_held) == (None, False)
    assert home.verdicts[4]["missing"][0]["why"] == "failed"
    home.verdicts[4]["level"] = "steady"
    green = score(case, home)
    assert (green.green, green.violations) == (result.green + 1, ["steady on night 4: it failed"])


def test_a_night_that_cannot_be_judged_is_counted_and_the_next_one_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(Draw(1), 3, SMALL)
    home, judge = LabHome(tmp_path, world), LabHome.judge
    monkeypatch.setattr(LabHome, "judge", lambda self, night: judge(self, night) if night != 1 else {}["gone"])
    home.play()
    result = score(Case(world), home)
    assert list(result.crashes) == ["night 1: KeyError('gone')"]
    assert [verdict["level"] != "no_data" for verdict in home.verdicts] == [True, False, True]
    assert not result.is_held


def test_the_world_answers_what_is_measured_again_as_the_command_does(tmp_path: Path) -> None:
    world = World(Draw(1), 3, SMALL, kept_artifacts=2)
    (row,) = world.pick("few", "run_time")[:1]
    step(world, [row], 1, 1.0)
    home = LabHome(tmp_path, world)
    for night in range(3):
        home.measure(night)
    labels = common.read_json(home.home.data_file("few", stamp_of(2)))["records"][0]
    points = [{name: labels.get(name) for name in records.IDENTITY if name not in {"env_name", "hw_model"}}]
    request = [{"experiment": "few", "stamp": stamp_of(night), "points": points} for night in (2, 1, 0)]
    request.append({**request[0], "beside": stamp_of(1)})
    keys = [key for key, at in home.rows.items() if at == row]
    assert len(keys) == 2, "the time and its ratio to the reference"
    with home.measuring_again():
        again = stat_alerts().judge_pending.__globals__["confirming"].measured(home.home, request, 600.0)
    assert [answer["state"] for answer in again] == ["measured", "measured", "gone", "measured"]
    (value,) = (again[0]["values"][key] for key in keys if key in again[0]["values"])
    assert value == pytest.approx(2 * world.rows[row].base, rel=0.2)
    assert len(again[0]["values"]) == 2, "time and size of the point, and of no other"
    (ratio,) = again[3]["ratios"].values()
    assert abs(ratio["log"]) < 0.1
    assert ratio["pairs"] == 5
    assert again[0]["ratios"] == {}
    assert home.again_s[2] > 0


def test_a_night_of_a_world_is_a_data_file_with_pairs_and_an_artifact(tmp_path: Path) -> None:
    world = World(Draw(1), 1, SMALL, builds=Builds.RELEASES)
    home = LabHome(tmp_path, world)
    home.measure(0)
    path = home.home.data_file("few", stamp_of(0))
    night = records.read_data(path, "few")
    assert len(night.records) == 2
    assert night.build.artifact == "build-000"
    value = common.read_json(path)
    assert value["night"]["reference"]["key"] == "wheel-release"
    paired = value["records"][0]["additional_info"]["paired"]
    ratio = paired["ratios"]["run_time"]
    assert len(ratio["log_ratios"]) == len(ratio["wall_log_ratios"]) == 5
    assert ratio["low"] < ratio["ratio"] < ratio["high"]
    assert set(paired["reference"]) == {"run_time", "code_size", "module_hash"}
    assert "paired" not in common.read_json(home.home.data_file("canary", stamp_of(0)))["records"][0]["additional_info"]


def test_what_runs_the_same_bytes_is_measured_with_one_pair_and_a_step_in_full(tmp_path: Path) -> None:
    world = World(Draw(1), 4, SMALL, same_sources=True)
    row = world.pick("few", "run_time")[0]
    step(world, [row], 3, 0.05)
    home = LabHome(tmp_path, world)
    for night in range(4):
        home.measure(night)
    pairs = [{at: len(ratio.cpu) for at, ratio in measured.ratios.items()} for measured in home.measured]
    other = next(at for at in pairs[1] if at != row)
    assert [night.get(row) for night in pairs] == [None, 5, 1, 5], "the first night has no build before it"
    assert pairs[3][other] == 1
    costs = [measured.seconds for measured in home.measured]
    assert costs[2] < costs[3] < costs[1]


def test_a_world_is_the_same_each_time_it_is_drawn(tmp_path: Path) -> None:
    files = []
    for name in ("first", "second"):
        home = LabHome(tmp_path / name, World(Draw(7), 2, SMALL))
        for night in range(2):
            home.measure(night)
        files.append(home.home.data_file("few", stamp_of(1)).read_bytes())
    assert files[0] == files[1]


def told(night: int, begin: int, effect: float, row: int = 0, **more: object) -> Telling:
    given = {"series": "time", "worse": effect > 0, **more}
    return Telling(night=night, after=begin - 1, begin=begin, rows=(row,), effect=effect, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("telling", "outcome"),
    [
        (told(11, 10, 0.05), Outcome.RIGHT),
        (told(11, 13, 0.05), Outcome.RIGHT),
        (told(11, 10, -0.05), Outcome.NOTHING),
        (told(9, 9, 0.05), Outcome.NOTHING),
        (told(30, 20, 0.05), Outcome.NOTHING),
        (told(11, 10, 0.05, row=2), Outcome.NOTHING),
        (told(11, 10, 0.05, worse=False), Outcome.WRONG_WAY),
        (told(11, 10, 0.05, blame="machine"), Outcome.BLAMED),
    ],
)
def test_a_telling_is_right_where_it_names_the_series_the_night_the_way_and_whose_it_was(
    telling: Telling, outcome: Outcome
) -> None:
    world = World(Draw(1), 40, SMALL)
    step(world, [0], 10, 0.05)
    assert Matcher(world).judge(telling).outcome == outcome


def test_the_same_change_told_twice_is_wrong_the_second_time() -> None:
    world = World(Draw(1), 40, SMALL)
    (change,) = step(world, [0], 10, 0.05)
    matcher = Matcher(world)
    assert [matcher.judge(told(night, 10, 0.05)).outcome for night in (12, 14)] == [Outcome.RIGHT, Outcome.REPEATED]
    assert matcher.delays == {change: 2}


def test_series_that_joined_an_incident_and_recovered_are_read_from_the_ledger() -> None:
    world = World(Draw(1), 40, SMALL)
    first, later, end = (iso_of(stamp_of(night)) for night in (10, 12, 20))
    moved = [Moved(key, key, "run_time", "ms", worse=True, before=1, after=1.05, effect=0.05) for key in ("a", "b")]
    opened = Opened("change", stamp_of(10), stamp_of(9), stamp_of(10), ("x", "y"), "compiler", (moved[0],))
    events = [
        Event.of(first, "detector", "opened", "i", opened),
        Event.of(later, "detector", "joined", "i", Joined((moved[1],))),
        Event.of(end, "detector", "recovered", "i", Recovered(("b",), stamp_of(18))),
    ]
    found = [
        (each.series, each.night, each.begin, each.effect, each.is_back)
        for each in tellings(events, world, {"a": 0, "b": 1})
    ]
    assert found == [("a", 10, 10, 0.05, False), ("b", 12, 10, 0.05, False), ("b", 20, 18, -0.05, True)]


def test_a_telling_between_two_changes_is_of_the_one_that_was_not_told_yet() -> None:
    world = World(Draw(1), 40, SMALL)
    changes = [*step(world, [0], 10, 0.05), *step(world, [0], 12, 0.05)]
    matcher = Matcher(world)
    outcomes = [matcher.judge(told(night, begin, 0.05)).outcome for night, begin in ((10, 10), (12, 11))]
    assert outcomes == [Outcome.RIGHT, Outcome.RIGHT]
    assert matcher.delays == dict.fromkeys(changes, 0)


def test_a_change_may_be_told_of_the_time_and_of_its_ratio_to_the_reference() -> None:
    world = World(Draw(1), 40, SMALL)
    step(world, [0], 10, 0.05)
    matcher = Matcher(world)
    both = [told(10, 10, 0.05, series="ratio"), told(12, 10, 0.05)]
    assert [matcher.judge(telling).outcome for telling in both] == [Outcome.RIGHT, Outcome.RIGHT]
    assert list(matcher.delays.values()) == [0]


def test_one_telling_of_a_range_of_nights_tells_all_changes_in_it() -> None:
    world = World(Draw(1), 40, SMALL)
    changes = [*step(world, [0], 10, 0.05), *step(world, [0], 12, 0.05)]
    matcher = Matcher(world)
    judgement = matcher.judge(Telling("s", 13, 9, 12, (0,), 0.1, 0.08, 0.12, worse=True))
    assert set(matcher.delays) == set(changes)
    assert judgement.truth == pytest.approx(2 * math.log(1.05))
    assert judgement.is_covered


def test_a_move_of_the_machine_is_not_tvms() -> None:
    world = World(Draw(1), 40, SMALL)
    move_machine(world, 10, 0.06)
    outcomes = [Matcher(world).judge(told(11, 10, 0.06, blame=blame)).outcome for blame in ("machine", "compiler")]
    assert outcomes == [Outcome.RIGHT, Outcome.BLAMED]


def test_a_wheel_is_measured_until_the_next_release() -> None:
    world = World(Draw(1), 70, SMALL, builds=Builds.RELEASES)
    assert [world.build(night).key for night in (0, 29, 30, 69)] == [
        "build-000", "build-000", "build-030", "build-060",
    ]  # fmt: skip


def test_the_reference_is_the_build_before_or_one_release_for_good() -> None:
    nightly, wheels = (World(Draw(1), 70, SMALL, builds=builds) for builds in Builds)
    fixed = World(Draw(1, release=True), 70, SMALL)
    keys = [[build and build.key for build in map(world.reference, (0, 1, 40))] for world in (nightly, wheels, fixed)]
    assert keys == [
        [None, "build-000", "build-039"],
        ["wheel-release", "wheel-release", "build-000"],
        ["wheel-release"] * 3,
    ]
    assert (nightly.reference(1).luck == nightly.build(0).luck).all()


def test_the_interval_of_a_share_is_wilsons() -> None:
    assert Share(0, 10).interval == pytest.approx((0, 0.2775), abs=1e-4)
    assert Share(5, 10).interval == pytest.approx((0.2366, 0.7634), abs=1e-4)


def test_the_command_prints_each_figure_with_its_interval_and_leaves_them_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "figures.json"
    assert cli.main(["run", "--situations", "first_night_*", "--json", str(path), "--verbose"]) == 0
    printed = capsys.readouterr().out
    (line,) = (line for line in printed.splitlines() if line.startswith("| first_night_is_the_same | "))
    assert " | 90 | 0.00 [0.00, " in line, "90 metric-nights without a false telling, and the interval of that"
    figures = json.loads(path.read_text())
    assert set(figures["situations"]) == {"first_night_differs", "first_night_is_the_same"}
    ratios = figures["situations"]["first_night_differs"]["shares"]["intervals of ratios"]
    assert ratios["of"] == 4 * 12
    assert ratios["low"] < ratios["hits"] / ratios["of"] <= ratios["high"]


def test_figures_of_several_runs_are_added_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "figures.json"
    assert cli.main(["run", "--situations", "first_night_differs", "--json", str(path)]) == 0
    once = capsys.readouterr().out
    assert cli.main(["table", str(path), str(path)]) == 0
    twice = capsys.readouterr().out
    counts = [int(re.search(r"intervals of ratios .* [0-9]+/([0-9]+) ", text)[1]) for text in (once, twice)]  # type: ignore[index]
    assert counts == [48, 96]


def test_the_held_out_part_has_other_seeds_other_noise_and_more_situations() -> None:
    assert not set(held_out.SITUATIONS) & set(ALL)
    assert not set(held_out.FAMILIES) & set(FAMILIES)
    assert held_out.FIRST_SEED > 100_000


@pytest.mark.parametrize("name", [*ALL, *held_out.SITUATIONS])
def test_each_situation_makes_a_world_and_claims_only_what_happens_in_it(name: str) -> None:
    case = {**ALL, **held_out.SITUATIONS}[name].make(Draw(1))
    assert {must.change for must in case.must} <= set(case.world.changes)
    assert all(change.night < case.world.nights for change in case.world.changes)
    assert all(never.nights.stop <= case.world.nights for never in case.never)
