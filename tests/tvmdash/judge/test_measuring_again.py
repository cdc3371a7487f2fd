"""What the judge has measured again, and when it stops."""

from __future__ import annotations

import itertools
import math

from tests.tvmdash.judge.homes import QUIET, RELEASE, Laboratory, chain, draw_home, only, series, take, tell
from tvmdash.judge import RULES, Pairs
from tvmdash.judge.home import Decision, judge


def test_of_a_clear_night_little_is_measured_again() -> None:
    ask = Laboratory()
    assert judge({"p": chain([*QUIET, 0.0]), "q": chain([*QUIET, 0.001])}, ask).changes == ()
    assert ask.asked == []


def test_the_most_undecided_is_measured_first_with_tonights_build_beside_an_older_one() -> None:
    ask = Laboratory()
    judge({"calm": chain([*QUIET, 0.0]), "some": chain([*QUIET, 0.025]), "much": chain([*QUIET, 0.028])}, ask)
    assert ask.asked[0][:2] == ("much", "b7")
    assert {name for name, _, _ in ask.asked} == {"some", "much"}
    assert all(int(base[1:]) < 7 for _, _, base in ask.asked)


def test_a_step_that_is_there_is_told_after_measuring_again_with_its_size() -> None:
    home = {"p": chain([*QUIET, 0.03], count=5)}
    assert tell(home).get(("p",)) != "told"
    ask = Laboratory({"p": {7: 0.03}})
    change = only(judge(home, ask))
    assert change.decision == Decision.TOLD
    assert math.log1p(change.found.effect) < 0.055
    assert 0 < len(ask.asked) <= RULES.most_rounds


def test_luck_that_another_layout_does_not_have_is_silent_after_measuring_again() -> None:
    ask = Laboratory()
    judgement = judge({"p": chain([*QUIET, 0.028])}, ask)
    assert judgement.changes == ()
    assert judgement.undecided == frozenset()
    assert 0 < len(ask.asked) <= RULES.most_rounds


def test_what_would_be_told_is_looked_at_once_more() -> None:
    ask = Laboratory({"p": {7: 0.3}})
    only(judge({"p": chain([*QUIET, 0.3])}, ask))
    assert len(ask.asked) == 1


def test_controls_are_not_measured_again() -> None:
    ask = Laboratory()
    judge({"canary": chain([*QUIET, 0.035], is_control=True), "p": chain([*QUIET, 0.0])}, ask)
    assert ask.asked == []


def test_where_nothing_can_be_measured_the_judge_ends_and_leaves_it_undecided() -> None:
    ask = Laboratory(most=0)
    judgement = judge({"p": chain([*QUIET, 0.028])}, ask)
    assert [change.decision for change in judgement.changes] in ([], [Decision.SUSPECTED])
    assert judgement.undecided == {"p"}


def test_series_that_stay_undecided_are_measured_in_turn() -> None:
    ask = Laboratory({"some": {7: 0.012}, "much": {7: 0.012}})
    judge({"calm": chain([*QUIET, 0.0]), "some": chain([*QUIET, 0.025]), "much": chain([*QUIET, 0.028])}, ask)
    ahead = list(itertools.accumulate(1 if name == "much" else -1 for name, _, _ in ask.asked))
    assert len(ahead) >= 2 * RULES.layouts
    assert {abs(each) for each in ahead} == {0, 1}


def test_no_series_is_measured_more_often_in_a_night_than_the_rules_allow() -> None:
    ask = Laboratory({f"p{at:02}": {12: 0.02} for at in range(20)})
    judge(draw_home(5), ask)
    names = [name for name, _, _ in ask.asked]
    assert all(names.count(name) <= RULES.most_rounds + 1 for name in set(names))


def test_a_new_reference_is_joined_with_the_old_builds_by_measuring_again() -> None:
    measured = [*(take(at, RELEASE, log) for at, log in enumerate(QUIET)), take(6, "b99", 0.0)]
    evidence = series(measured)
    apart = type(evidence)("cnn", evidence.pairs, {f"b{at}": at for at in range(7)}, "b6")
    ask = Laboratory({"p": {6: 0.3}})
    assert only(judge({"p": apart}, ask)).decision == Decision.TOLD
    assert ask.asked


def test_new_code_is_not_measured_beside_an_earlier_build_of_the_same_code() -> None:
    """A change that was reverted and came again: beside its first build nothing could be seen."""
    ask = Laboratory({"p": {7: 0.03, 5: 0.03}})
    code = {f"b{number}": 2 if number in {5, 7} else 1 for number in range(8)}
    judge({"p": chain([0.0, 0.0, 0.0, 0.0, 0.03, -0.03, 0.03], code=code)}, ask)
    assert ask.asked
    assert "b5" not in {base for _, build, base in ask.asked if build == "b7"}


def test_pairs_that_scatter_when_measured_again_are_not_taken_for_calm_ones() -> None:
    """A young home knows no scatter: five times two pairs of 6 % that happen to agree on 5 % are no step."""
    home = {"p": series([take(1, 0, 0.05, count=2, std=0.06)])}

    def ask(name: str, build: str, base: str, count: int) -> Pairs:
        return take(1, 0, 0.05, count=2, std=0.06)

    changes = judge(home, ask).changes
    assert [change.decision for change in changes if change.decision == Decision.TOLD] == []
    calm = judge(home, lambda name, build, base, count: take(1, 0, 0.05, count=2, std=0.005)).changes
    assert [change.decision for change in calm] == [Decision.TOLD]
