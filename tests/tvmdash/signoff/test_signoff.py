"""What says how a series stands from A to B, and what it takes to say it."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.dashboard import result_homes
from tests.dashboard.signoff_homes import PlantedHome, PlantedTvm, point, stamp_of
from tvmdash import common
from tvmdash.common import structured
from tvmdash.incidents import annotations
from tvmdash.incidents import file as incident_file
from tvmdash.incidents import ledger as ledgers
from tvmdash.incidents.events import Moved, Opened
from tvmdash.incidents.ledger import DETECTOR, LEDGER_FILE, OPENED, Event, iso_of
from tvmdash.incidents.next_step import name_tvms
from tvmdash.signoff.signoff import sign_off
from tvmdash.signoff.waivers import covers
from tvmdash.trials.signoff import (
    Signoff,
    SignoffDoubt,
    SignoffEvidence,
    SignoffSeries,
    SignoffState,
    SignoffWaiver,
)
from tvmdash.verdict import JudgedSeries, Level, NightVerdict, Standing, write_verdict

A, B = PlantedTvm("a" * 40), PlantedTvm("c" * 40, {"mlp": 1.1})
STEADY = ("vgg", "conv", "attention", "dqn", "lstm")


@pytest.fixture
def home(tmp_path: Path) -> PlantedHome:
    return PlantedHome(tmp_path / "home")


def signed(home: PlantedHome, a: PlantedTvm = A, b: PlantedTvm = B, matters: float = 0.05) -> Signoff:
    return sign_off(home.home, (a.commit, b.commit), matters=matters)


def known(home: PlantedHome, a: PlantedTvm = A, b: PlantedTvm = B, matters: float = 0.05) -> dict[str, SignoffSeries]:
    """Each series by its name."""
    return {item.name: item for item in signed(home, a, b, matters).series}


def kinds(item: SignoffSeries) -> tuple[Any, ...]:
    return item.state, item.evidence, item.doubt


def test_pairs_with_other_tvms_are_a_chain_whose_error_adds_up(home: PlantedHome) -> None:
    steps = [A, PlantedTvm("1" * 40), PlantedTvm("2" * 40, {"mlp": 1.1}), B]
    for night, (old, new) in enumerate(itertools.pairwise(steps)):
        home.add_night(night, new, {"nets": [point(name, new, old) for name in ("mlp", *STEADY)]}, old)
    chained = known(home)["nets mlp run time"]
    assert kinds(chained) == (SignoffState.WORSE, SignoffEvidence.CHAIN, None)
    assert chained.effect == pytest.approx(0.1, abs=1e-4)
    home.add_night(4, B, {"nets": [point(name, B, A) for name in ("mlp", *STEADY)]}, A)
    direct = known(home)["nets mlp run time"]
    assert kinds(direct) == (SignoffState.WORSE, SignoffEvidence.PAIRED, None)
    assert (direct.pairs, direct.effect) == (5, pytest.approx(0.1, abs=1e-4))
    assert direct.low is not None
    assert chained.low is not None
    assert chained.low < direct.low < 0.1


def test_what_few_pairs_of_the_two_and_no_others_say_is_no_chain(home: PlantedHome) -> None:
    points = [point(name, B, A) for name in ("mlp", *STEADY)]
    for each in points:
        ratio = each["additional_info"]["paired"]["ratios"]["run_time"]
        ratio["log_ratios"] = ratio["log_ratios"][:3]
    home.add_night(0, B, {"nets": points}, A)
    few = known(home)["nets mlp run time"]
    assert (few.evidence, few.pairs, few.nights) == (SignoffEvidence.PAIRED, 3, 1)


def test_where_luck_alone_keeps_a_change_from_being_excluded_no_more_pairs_are_asked_for(home: PlantedHome) -> None:
    other = PlantedTvm("c" * 40, {"mlp": 1.005})
    for night in range(6):
        home.add_night(night, other, {"nets": [point(name, other, A) for name in ("mlp", "vgg", "conv")]}, A)
    found = known(home, matters=0.01)["nets mlp run time"]
    assert kinds(found) == (SignoffState.UNCLEAR, SignoffEvidence.PAIRED, SignoffDoubt.LUCK)
    assert not any(" try " in command for command in signed(home, matters=0.01).commands)
    noisy = PlantedHome(home.root.with_name("noisy"))
    noisy.add_night(0, other, {"nets": [point(name, other, A, noise=9.0) for name in ("mlp", "vgg", "conv")]}, A)
    assert known(noisy, matters=0.01)["nets mlp run time"].doubt is SignoffDoubt.WIDE
    (command,) = signed(noisy, matters=0.01).commands
    asks = f"{noisy.root} git:{B.commit} --against git:{A.commit} --experiments nets"
    assert command.endswith(f" try {asks}")


def test_a_home_of_wheels_is_told_to_bisect_releases(home: PlantedHome) -> None:
    a = PlantedTvm("a" * 40, release="0.26.0")
    b = PlantedTvm("c" * 40, {"mlp": 1.1}, release="0.27.0")
    for night in range(4):
        tvm = b if night else a
        home.add_night(night, tvm, {"nets": [point(name, tvm, a) for name in ("mlp", *STEADY)]}, a)
    series = known(home, a, b)["nets mlp run time"].id
    moved = Moved(series, "mlp", "run_time", "ms", True, 2.0, 2.2, 0.1)
    opened = Opened("change", stamp_of(1), stamp_of(0), stamp_of(1), (a.commit, b.commit), "compiler", (moved,))
    event = Event.of(iso_of(stamp_of(1)), DETECTOR, OPENED, "i1", opened)
    incident_file.append(home.home.output("stat_alerts") / LEDGER_FILE, [event])
    ends = f"{series} --good pypi:0.26.0 --bad pypi:0.27.0 --incident i1"
    (command,) = signed(home, a, b).commands
    assert command.endswith(f" bisect {home.root} nets {ends}")
    (incident,) = ledgers.fold(incident_file.read(home.home.output("stat_alerts") / LEDGER_FILE)).incidents.values()
    assert name_tvms(incident, home.home) == ("pypi:0.26.0", "pypi:0.27.0")


@pytest.mark.parametrize(("of_a", "named"), [(1.0, True), (1.08, False)])
def test_an_incident_is_behind_a_only_where_a_is_as_the_last_good_tvm_was(
    home: PlantedHome, of_a: float, named: bool
) -> None:
    old, good, bad = PlantedTvm("0" * 40), PlantedTvm("1" * 40), PlantedTvm("2" * 40, {"mlp": 1.08})
    a, b = PlantedTvm("a" * 40, {"mlp": of_a}), PlantedTvm("c" * 40, {"mlp": 1.08 * of_a})
    nights = ((good, old), (bad, old), (bad, a), (b, a), (b, a))
    for night, (tvm, beside) in enumerate(nights):
        home.add_night(night, tvm, {"nets": [point(name, tvm, beside) for name in ("mlp", *STEADY)]}, beside)
    series = known(home, a, b)["nets mlp run time"].id
    moved = Moved(series, "mlp", "run_time", "ms", True, 2.0, 2.16, 0.08)
    opened = Opened("change", stamp_of(1), stamp_of(0), stamp_of(1), (good.commit, bad.commit), "compiler", (moved,))
    event = Event.of(iso_of(stamp_of(1)), DETECTOR, OPENED, "i1", opened)
    incident_file.append(home.home.output("stat_alerts") / LEDGER_FILE, [event])
    found = known(home, a, b)["nets mlp run time"]
    assert found.effect == pytest.approx(0.08, abs=1e-4)
    assert found.incident == ("i1" if named else None)


def test_what_ran_the_same_bytes_is_the_same_whatever_was_measured(home: PlantedHome) -> None:
    for night, tvm in ((0, A), (1, B)):
        nets = [point("mlp", tvm, content={"hash": "one", "pairs": 5}), point("dqn", tvm)]
        home.add_night(night, tvm, {"nets": nets})
    assert known(home)["nets mlp run time"].evidence is SignoffEvidence.NONE  # no pairs, so no content either
    nets = [point("mlp", A, B, content={"hash": "one", "pairs": 5})]
    home.add_night(2, A, {"nets": nets}, B)
    assert kinds(known(home)["nets mlp run time"]) == (SignoffState.SAME, SignoffEvidence.SAME_CODE, None)


def add_nights_alone(home: PlantedHome, code: str = "code") -> None:
    """Four nights of A and four of B without pairs."""
    for night in range(8):
        tvm = A if night < 4 else B
        wobble = 1 + 0.002 * (-1) ** night
        nets = [result_homes.record(f"network.{name}", tvm.time(name) * wobble) for name in ("mlp", "dqn")]
        home.add_night(night, tvm, {"nets": nets}, code=code if tvm is B else "code")


@pytest.mark.parametrize(("code", "doubt"), [("code", SignoffDoubt.NOT_JOINED), ("other", SignoffDoubt.OWN_CODE)])
def test_values_of_different_nights_say_nothing_where_nothing_judged_them(
    home: PlantedHome, code: str, doubt: SignoffDoubt
) -> None:
    add_nights_alone(home, code)
    done = signed(home)
    assert {kinds(item) for item in done.series} == {(SignoffState.UNCLEAR, SignoffEvidence.NONE, doubt)}
    assert done.verdict == "unclear"
    compare = f"compare {home.root} git:{A.commit} git:{B.commit} --experiments nets"
    assert done.commands == (f"python3 -m dashboard {compare}",)


def judge_nights(home: PlantedHome, visible: float) -> None:
    """What stat_alerts decided: the least change it would have told of each series."""
    series = tuple(JudgedSeries(item.id, Standing.STEADY, visible=visible) for item in known(home).values())
    for night in (7, 8):  # what is judged later says nothing of the nights between
        seen = series if night == 7 else ()
        write_verdict(home.home, NightVerdict(stamp_of(night), Level.STEADY, "Nothing moved", series=seen))


@pytest.mark.parametrize(("visible", "state"), [(0.03, SignoffState.SAME), (0.08, SignoffState.UNCLEAR)])
def test_without_pairs_the_incidents_between_count_where_the_nights_would_have_told_a_change_that_matters(
    home: PlantedHome, visible: float, state: SignoffState
) -> None:
    add_nights_alone(home)
    judge_nights(home, visible)
    found = known(home)
    assert (found["nets dqn run time"].state, found["nets dqn run time"].visible) == (state, visible)
    moved = Moved(found["nets mlp run time"].id, "mlp", "run_time", "ms", True, 2.0, 2.2, 0.1, 0.08, 0.12)
    opened = Opened("change", stamp_of(4), stamp_of(3), stamp_of(4), (A.commit, B.commit), "compiler", (moved,))
    event = Event.of(iso_of(stamp_of(4)), DETECTOR, OPENED, "i1", opened)
    incident_file.append(home.home.output("stat_alerts") / LEDGER_FILE, [event])
    mlp = known(home)["nets mlp run time"]
    assert kinds(mlp) == (SignoffState.WORSE, SignoffEvidence.LEDGER, None)
    assert (mlp.incident, mlp.effect) == ("i1", pytest.approx(0.1, abs=1e-4))
    recovered = replace(moved, recovered=stamp_of(6))
    event = Event.of(iso_of(stamp_of(4)), DETECTOR, OPENED, "i1", replace(opened, moved=(recovered,)))
    (home.home.output("stat_alerts") / LEDGER_FILE).unlink()
    incident_file.append(home.home.output("stat_alerts") / LEDGER_FILE, [event])
    assert known(home)["nets mlp run time"].state is state


def test_rounds_of_compare_say_what_no_pairs_were_measured_of(home: PlantedHome) -> None:
    add_nights_alone(home)
    folder = home.root / "results" / "comparisons"
    folder.mkdir()
    sides = {letter: {"asked": tvm.commit, "artifact": tvm.artifact} for letter, tvm in (("a", B), ("b", A))}
    series = [
        {
            **{name: getattr(item, name) for name in ("id", "experiment", "metric", "unit", "direction")},
            "labels": item.labels,
            "rounds": [[slower * 1.001**at, 2.0] for at in range(-4, 5)],
        }
        for item, slower in ((item, 2.2 if "mlp" in name else 2.0) for name, item in known(home).items())
    ]
    common.write_json(folder / f"{stamp_of(9)}.json", {"schema_version": 1, **sides, "series": series})
    found = known(home)
    assert kinds(found["nets mlp run time"]) == (SignoffState.WORSE, SignoffEvidence.COMPARED, None)
    assert kinds(found["nets dqn run time"]) == (SignoffState.SAME, SignoffEvidence.COMPARED, None)
    assert found["nets mlp run time"].effect == pytest.approx(0.1, abs=1e-4)
    assert known(home, B, A)["nets mlp run time"].effect == pytest.approx(1 / 1.1 - 1)


def test_an_experiment_that_a_never_ran_is_not_green_and_a_new_point_of_one_that_it_did_is_no_doubt(
    home: PlantedHome,
) -> None:
    home.add_night(0, A, {"nets": [point("dqn", A, A)]}, A)
    nets = [point("dqn", B, A), result_homes.record("network.new", 3.0)]
    home.add_night(1, B, {"nets": nets, "solo": [point("mlp", B)]}, A)
    done = signed(home)
    found = {item.name: item for item in done.series}
    assert (found["nets new run time"].state, found["nets new run time"].is_in_the_way) == (SignoffState.NEW, False)
    solo = found["solo mlp run time"]
    assert (kinds(solo)[2], solo.lacks, done.verdict) == (SignoffDoubt.NOT_MEASURED, "A", "unclear")


def test_nothing_that_both_measured_is_not_green(home: PlantedHome) -> None:
    home.add_night(0, A, {"one": [point("mlp", A)]})
    home.add_night(1, B, {"two": [result_homes.record("network.mlp", 2.0)]})
    done = signed(home)
    assert (done.verdict, replace(done, series=()).verdict) == ("unclear", "unclear")


def test_what_was_retired_is_missed_by_nobody(home: PlantedHome) -> None:
    home.add_night(0, A, {"nets": [point("dqn", A, A), point("old", A, A)]}, A)
    home.add_night(1, B, {"nets": [point("dqn", B, A)]}, A)
    assert known(home)["nets old run time"].state is SignoffState.LOST
    note = annotations.make(
        "night", stamp_of(1), "taken out", who="ann", at="2026-11-02T00:00:00Z", scope="nets old*", series="retired"
    )
    annotations.append(home.root, structured.to_json(note))
    assert "nets old run time" not in known(home)


@pytest.mark.parametrize(("code", "doubt"), [("code", None), ("other", SignoffDoubt.OWN_CODE)])
def test_another_size_with_other_code_of_the_experiment_may_be_its_own(
    home: PlantedHome, code: str, doubt: SignoffDoubt | None
) -> None:
    for night, (tvm, size) in enumerate(((A, 100), (B, 101))):
        record = point("mlp", tvm, code_size=size, alike={"code_size": 5})
        home.add_night(night, tvm, {"nets": [record]}, code=code if tvm is B else "code")
    found = known(home)["nets mlp code size"]
    assert found.doubt is doubt
    assert found.state is (SignoffState.UNCLEAR if doubt else SignoffState.CHANGED)


def test_one_tvm_of_several_is_joined_with_the_homes_own(home: PlantedHome) -> None:
    other = PlantedTvm("9" * 40)
    for night in (0, 1, 2):
        home.add_night(night, A, {"nets@release": [point(name, A, other) for name in ("mlp", *STEADY)]}, other)
        home.add_night(night, B, {"nets": [point(name, B, other) for name in ("mlp", *STEADY)]}, other)
    found = known(home)["nets mlp run time"]
    assert kinds(found) == (SignoffState.WORSE, SignoffEvidence.CHAIN, None)
    assert found.effect == pytest.approx(0.1, abs=1e-3)


def test_each_host_speaks_for_itself(home: PlantedHome) -> None:
    there = [{**point(name, B, A), "env_name": "desk"} for name in ("mlp", "dqn")]
    equal = replace(B, slower={})
    here = [point(name, equal, A) for name in ("mlp", "dqn")]
    home.add_night(0, B, {"nets": here, "nets~desk": there}, A)
    found = known(home)
    assert {name: item.state for name, item in found.items()} == {
        "nets mlp run time": SignoffState.SAME,
        "nets dqn run time": SignoffState.SAME,
        "nets~desk mlp run time": SignoffState.WORSE,
        "nets~desk dqn run time": SignoffState.SAME,
    }


GIVEN = SignoffWaiver("2026-11-01T00:00:00Z", "ann", "why", "*", "a", "b", "s", "s", SignoffState.WORSE, effect=0.05)
NOW = SignoffSeries("s", "s", "e", "run_time", "ms", "lower", {}, SignoffState.WORSE, effect=0.05, low=0.03, high=0.07)


@pytest.mark.parametrize(
    ("item", "covered"),
    [
        (NOW, True),
        (replace(NOW, effect=0.08, low=0.04, high=0.12), True),
        (replace(NOW, effect=0.08, low=0.06, high=0.1), False),
        (replace(NOW, effect=0.055, low=0.052, high=0.058), True),
        (replace(NOW, state=SignoffState.UNCLEAR, effect=0.04, low=-0.01, high=0.09), True),
        (replace(NOW, state=SignoffState.LOST, effect=None, low=None, high=None), False),
    ],
)
def test_a_waiver_covers_what_is_not_clearly_worse_than_it_was(item: SignoffSeries, covered: bool) -> None:
    assert covers(GIVEN, item) is covered


def test_a_rate_is_worse_where_it_is_lower() -> None:
    rate = replace(NOW, direction="higher", effect=-0.05, low=-0.07, high=-0.03)
    given = replace(GIVEN, effect=-0.05)
    assert covers(given, rate)
    assert not covers(given, replace(rate, effect=-0.08, low=-0.09, high=-0.07))


def test_a_waiver_for_what_cannot_be_said_covers_no_regression_and_one_of_bytes_not_a_byte_more() -> None:
    unclear = replace(GIVEN, state=SignoffState.UNCLEAR, effect=None)
    assert covers(unclear, replace(NOW, state=SignoffState.UNCLEAR))
    assert not covers(unclear, NOW)
    exact = replace(GIVEN, value=100.0)
    sized = replace(NOW, before=90.0, after=100.0, effect=100 / 90 - 1, low=None, high=None)
    assert covers(exact, sized)
    assert not covers(exact, replace(sized, after=101.0))
