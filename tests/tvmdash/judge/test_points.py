"""What the judge says of single series, from tables of pairs whose truth is plain."""

from __future__ import annotations

import math

import pytest

from tests.tvmdash.judge.homes import QUIET, RELEASE, beside_release, chain, draw_home, only, series, take, tell
from tvmdash.judge import RULES, Evidence, KnownStep
from tvmdash.judge.home import Decision, Scope, judge

TEN = math.log(1.10)
SIX = math.log(1.06)


def test_of_two_equal_builds_nothing_is_told() -> None:
    judgement = judge({"p": series([take(1, 0, 0.0, count=10)])})
    assert judgement.changes == ()
    assert judgement.undecided == frozenset()


def test_ten_percent_between_two_builds_are_told_with_effect_and_interval() -> None:
    change = only(judge({"p": series([take(1, 0, TEN, count=10)])}))
    assert (change.decision, change.series, change.scope) == (Decision.TOLD, ("p",), Scope.POINT)
    assert change.found.begin == 1
    assert change.found.effect == pytest.approx(0.10)
    low, high = change.interval
    assert 0.07 < low < 0.09
    assert 0.11 < high < 0.13
    assert change.found.odds > RULES.log("told")


@pytest.mark.parametrize("effect", [0.10, 0.30, 1.0, 9.0])
def test_what_is_larger_is_told_with_its_own_size(effect: float) -> None:
    change = only(judge({"p": chain([*QUIET, math.log1p(effect)])}))
    assert change.decision == Decision.TOLD
    assert change.found.effect == pytest.approx(effect, rel=0.03)


@pytest.mark.parametrize("count", [2, 3, 4])
def test_of_fewer_than_five_pairs_nothing_is_told_whatever_they_say(count: int) -> None:
    assert RULES.fewest_pairs == 5
    judgement = judge({"p": series([take(1, 0, math.log(1.5), count=count, std=0.001)])})
    assert only(judgement).decision == Decision.SUSPECTED
    assert judgement.undecided == {"p"}


def test_the_pairs_of_two_nights_count_together() -> None:
    nights = [take(1, 0, TEN, count=3), take(1, 0, TEN, count=3, night=2)]
    assert tell({"p": series(nights)}) == {("p",): "told"}


def test_a_single_pair_says_nothing_of_scatter_and_is_no_error() -> None:
    assert tell({"p": chain([*QUIET, 0.0], count=1)}) == {}
    assert tell({"p": series([take(1, 0, TEN, count=1, std=math.nan)])}) in ({}, {("p",): "suspected"})


def test_a_home_without_series_has_nothing_to_tell() -> None:
    judgement = judge({})
    assert judgement.changes == ()
    assert judgement.undecided == frozenset()


@pytest.mark.parametrize(
    ("sign", "log", "said"),
    [
        (1, TEN, "told"), (1, -TEN, "better"), (-1, -TEN, "told"), (-1, TEN, "better"), (0, TEN, "told"),
        (0, -TEN, "told"),
    ],
)  # fmt: skip
def test_what_is_worse_depends_on_the_metric(sign: int, log: float, said: str) -> None:
    change = only(judge({"p": chain([*QUIET, log], sign=sign)}))
    assert change.decision == said
    assert change.found.effect == pytest.approx(math.expm1(log), rel=0.05)  # its sign is that of the number


def test_a_step_of_a_control_is_never_told() -> None:
    judgement = judge({"canary": chain([*QUIET, TEN], is_control=True), "p": chain([*QUIET, 0.0])})
    assert judgement.changes == ()
    assert "canary" not in judgement.undecided


@pytest.mark.parametrize("effect", [0.005, 0.009])
def test_what_nobody_acts_on_is_not_told_however_sure_it_is(effect: float) -> None:
    sure = [take(at, RELEASE, 0.0 if at < 12 else math.log1p(effect), std=0.0005, count=40) for at in range(20)]
    judgement = judge({"p": series(sure, code=dict.fromkeys([f"b{at}" for at in range(20)], 1))})
    assert judgement.changes == ()
    assert judgement.undecided == frozenset()


def test_a_step_beside_a_release_is_told_with_the_build_that_brought_it() -> None:
    change = only(judge({"p": beside_release([*QUIET, TEN, TEN + 0.002, TEN - 0.001])}))
    assert change.found.begin == len(QUIET)
    assert change.found.effect == pytest.approx(0.10, abs=0.01)


def test_a_point_that_always_differed_from_the_release_has_no_step() -> None:
    assert tell({"p": beside_release([TEN + log for log in QUIET])}) == {}


def test_a_new_release_that_nothing_joins_with_the_old_one_leaves_the_night_undecided() -> None:
    measured = [*(take(at, RELEASE, log) for at, log in enumerate(QUIET)), take(6, "next", SIX)]
    names = {f"b{at}": at for at in range(7)}
    judgement = judge({"p": series(measured[:-1]), "q": _with_places(measured, names)})
    assert judgement.undecided == {"q"}
    assert judgement.changes == ()


def _with_places(measured: list, names: dict[str, int]):  # type: ignore[no-untyped-def,type-arg]
    from tvmdash.judge import Evidence

    return Evidence("cnn", tuple(measured), names, measured[-1].build)


def test_pairs_that_join_the_two_releases_decide_it() -> None:
    measured = [*(take(at, RELEASE, log) for at, log in enumerate(QUIET)), take(6, "next", 0.03)]
    measured.append(take(5, "next", 0.03 - TEN, night=6))
    names = {f"b{at}": at for at in range(7)}
    evidence = _with_places([measured[-1], *measured[:-1]], names)
    assert only(judge({"q": evidence})).found.effect == pytest.approx(0.10, abs=0.01)


def test_an_open_step_is_not_told_again_and_what_comes_after_is_measured_from_its_level() -> None:
    logs = [*QUIET, TEN, 0.001, -0.002]
    known = [KnownStep(7, TEN, "R1")]
    assert tell({"p": chain(logs)}) == {("p",): "told"}
    assert tell({"p": chain(logs, steps=known)}) == {}
    change = only(judge({"p": chain([*logs, SIX], steps=known)}))
    assert (change.decision, change.found.begin, change.incident) == (Decision.TOLD, 10, "")
    assert change.found.effect == pytest.approx(0.06, abs=0.005)


def test_a_step_of_any_size_that_was_told_leaves_nothing_over() -> None:
    for size in (0.05, 0.5, 1.5, -1.5):
        logs = [0.0] * 6 + [size] * 6
        assert tell({"p": beside_release(logs, steps=[KnownStep(6, size, "R1")])}) == {}


def test_an_open_step_that_is_taken_back_is_fixed_and_names_its_incident() -> None:
    known = [KnownStep(3, 0.2, ""), KnownStep(7, TEN, "R1")]
    change = only(judge({"p": chain([*QUIET[:2], 0.2, *QUIET[3:], TEN, 0.001, -TEN], steps=known)}))
    assert (change.decision, change.incident, change.found.begin) == (Decision.FIXED, "R1", 9)


def test_of_two_open_steps_the_one_that_is_taken_back_is_fixed() -> None:
    known = [KnownStep(4, math.log(1.3), "R1"), KnownStep(7, TEN, "R2")]
    logs = [*QUIET[:3], math.log(1.3), *QUIET[4:], TEN, 0.001]
    for back, incident in ((TEN, "R2"), (math.log(1.3), "R1")):
        change = only(judge({"p": chain([*logs, -back], steps=known)}))
        assert (change.decision, change.incident) == (Decision.FIXED, incident)


def test_what_takes_back_half_is_better_and_leaves_the_incident_open() -> None:
    known = [KnownStep(7, math.log(1.2), "R1")]
    change = only(judge({"p": chain([*QUIET, math.log(1.2), 0.001, -math.log(1.2) / 2], steps=known)}))
    assert (change.decision, change.incident) == (Decision.BETTER, "")


def test_a_step_that_is_open_no_more_is_not_fixed_again() -> None:
    known = [KnownStep(7, TEN, "")]
    change = only(judge({"p": chain([*QUIET, TEN, 0.001, -TEN], steps=known)}))
    assert (change.decision, change.incident) == (Decision.BETTER, "")


def test_code_that_is_byte_for_byte_what_it_was_fixes_at_once_with_two_pairs() -> None:
    known = [KnownStep(7, TEN, "R1")]
    measured = [*chain([*QUIET, TEN, 0.001]).pairs, take(6, 8, -TEN, night=9, count=2)]
    change = only(judge({"p": series(measured, steps=known, has_returned=True)}))
    assert (change.decision, change.incident, change.series) == (Decision.FIXED, "R1", ("p",))
    assert tell({"p": series(measured, steps=known)}) == {}  # an older commit, measured once more, fixes nothing


def test_code_that_returned_to_the_bad_state_fixes_nothing() -> None:
    measured = [*chain([*QUIET, TEN, 0.001]).pairs, take(7, 8, 0.0, night=9)]
    assert tell({"p": series(measured, steps=[KnownStep(7, TEN, "R1")], has_returned=True)}) == {}


def test_an_older_commit_measured_once_makes_no_new_step() -> None:
    known = [KnownStep(7, TEN, "R1")]
    older = [*chain([*QUIET, TEN, 0.001]).pairs, take(4, 8, -TEN, night=9)]
    assert tell({"p": series(older, steps=known)}) == {}
    after = [*older, take(9, 4, TEN, night=10)]
    assert tell({"p": series(after, steps=known)}) == {}


def test_of_a_build_measured_out_of_order_the_step_begins_in_tvms_order() -> None:
    wheels = [take(0, RELEASE, 0.0), take(1, RELEASE, 0.001), take(3, RELEASE, TEN), take(2, RELEASE, -0.001, night=4)]
    wheels += [take(4, RELEASE, TEN, night=5)]
    assert only(judge({"p": series(wheels)})).found.begin == 3


def test_an_alternating_series_is_not_told_each_time_and_its_steps_still_are() -> None:
    code = {f"b{at}": 1 + at % 2 for at in range(12)}
    alternating = [0.02 * (-1) ** at for at in range(1, 12)]
    assert tell({"p": chain(alternating, code=code)}) == {}
    change = only(judge({"p": chain([*alternating[:-1], alternating[-1] + TEN], code=code)}))
    assert (change.decision, change.found.begin) == (Decision.TOLD, 11)
    assert change.found.effect == pytest.approx(0.10, abs=0.02)


def test_the_luck_of_code_is_no_doubt_where_the_code_is_the_same() -> None:
    same = dict.fromkeys([f"b{at}" for at in range(8)], 1)
    errors = []
    for last in (1, 2):
        found = judge({"p": chain([*QUIET, 0.03], code=same | {"b7": last})}).found["p"]
        assert found is not None
        errors.append(found.error)
    assert errors[0] < errors[1]


def test_one_quiet_night_of_twenty_points_is_silent_for_nearly_all_homes() -> None:
    said = [change for seed in range(40) for change in judge(draw_home(seed)).changes]
    assert sum(change.decision != Decision.SUSPECTED for change in said) <= 1
    assert len(said) <= 4


def test_the_same_evidence_is_judged_the_same_each_time() -> None:
    home = draw_home(3) | {"q": chain([*QUIET, TEN])}
    one, other = judge(home), judge(home)
    assert one.changes == other.changes
    assert one.found == other.found
    assert one.noise == other.noise


def test_an_end_that_did_not_last_opens_the_incident_again_and_one_that_did_does_not() -> None:
    steps = [KnownStep(2, 0.05, until=4, ended="i1")]
    levels = {"lasts": (0.0, 0.05, 0.0, -0.05, 0.0, 0.0), "was luck": (0.0, 0.05, 0.0, 0.0, 0.0, 0.0)}
    home = {
        name: chain([log + quiet for log, quiet in zip(logs, QUIET, strict=True)], count=15, steps=steps)
        for name, logs in levels.items()
    }
    changes = judge(home).changes
    assert [(change.series, change.decision, change.incident) for change in changes] == [
        (("was luck",), Decision.REOPENED, "i1")
    ]


def _opened_at(logs: list[float], begin: int = 6) -> Evidence:
    return beside_release(logs, steps=[KnownStep(begin, 0.02, "i1")])


def test_a_step_that_later_builds_do_not_have_is_withdrawn() -> None:
    quiet = [0.002, -0.001, 0.001, 0.0, -0.002, 0.001]
    after = [0.001, -0.001, 0.002, 0.0, -0.001, 0.001, 0.002, -0.002]
    change = only(judge({"p": _opened_at([*quiet, 0.02, *after])}))
    assert (change.decision, change.incident) == (Decision.WITHDRAWN, "i1")
    assert abs(change.found.effect) < 0.01
    assert change.found.odds > RULES.log("told")


@pytest.mark.parametrize("size", [0.012, 0.02, 0.1])
def test_a_step_that_stands_is_not_withdrawn(size: float) -> None:
    quiet = [0.002, -0.001, 0.001, 0.0, -0.002, 0.001]
    after = [size + log for log in quiet]
    assert tell({"p": _opened_at([*quiet, size, *after])}) == {}


def test_what_many_series_showed_together_is_not_withdrawn_by_one_of_them() -> None:
    quiet = [0.002, -0.001, 0.001, 0.0, -0.002, 0.001]
    home = {name: _opened_at([*quiet, 0.006, *(0.006 + log for log in quiet)]) for name in "pqrs"}
    assert tell(home) == {}


def test_an_older_build_withdraws_nothing() -> None:
    quiet = [0.002, -0.001, 0.001, 0.0, -0.002, 0.001]
    nights = [
        *(take(at, RELEASE, log) for at, log in enumerate([*quiet, 0.02, *quiet])),
        take(2, RELEASE, 0.0, night=20),
    ]
    assert tell({"p": series(nights, steps=[KnownStep(6, 0.02, "i1")])}) == {}
