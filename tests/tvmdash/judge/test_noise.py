"""What the judge learns of scatter and luck before it decides anything."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.tvmdash.judge.homes import QUIET, RELEASE, chain, draw_home, draw_pairs, series, take, tell
from tvmdash.judge import RULES, Evidence, KnownStep
from tvmdash.judge.noise import learn


def lucky_home(luck: float, *, points: int = 30, same_code: bool = False, seed: int = 1) -> dict[str, Evidence]:
    """A chain of 20 builds whose luck has that standard deviation, measured with many pairs."""
    rng = np.random.default_rng(seed)
    code = dict.fromkeys([f"b{at}" for at in range(21)], 1) if same_code else {}
    home = {}
    for number in range(points):
        at = luck * rng.standard_normal(21)
        logs = [draw_pairs(rng, build, build - 1, at[build] - at[build - 1], count=20) for build in range(1, 21)]
        home[f"p{number:02}"] = series(logs, code=code)
    return home


def luck_of(home: dict[str, Evidence]) -> tuple[float, float]:
    """Of code and of libraries, root mean square over the home."""
    noise = learn(home)
    code, library = (np.mean([getattr(each, kind) for each in noise.series.values()]) for kind in ("code", "library"))
    return math.sqrt(code), math.sqrt(library)


def test_without_data_the_guesses_of_the_rules_stand() -> None:
    noise = learn({"p": series([take(1, 0, 0.0)])})
    own = noise.series["p"]
    assert own.code == pytest.approx(RULES.code_luck**2)
    assert own.library == pytest.approx(RULES.library_luck**2)
    assert noise.redrawn == pytest.approx(RULES.redrawn)
    assert own.pair == pytest.approx(0.01**2, rel=0.7)


def test_luck_is_learned_from_jumps() -> None:
    lucks = [math.hypot(*luck_of(lucky_home(luck))) for luck in (0.0, 0.004, 0.012)]
    assert lucks[0] < 0.0036
    assert lucks[1] == pytest.approx(0.004, rel=0.3)
    assert lucks[2] == pytest.approx(0.012, rel=0.2)


def test_jumps_with_the_same_code_teach_the_luck_of_libraries() -> None:
    code, library = luck_of(lucky_home(0.01, same_code=True))
    assert library == pytest.approx(0.01, rel=0.2)
    assert code == pytest.approx(RULES.code_luck, rel=0.2)  # nothing was seen of it


def test_a_lucky_series_is_known_as_such_among_calm_ones() -> None:
    home = lucky_home(0.003)
    home["wild"] = lucky_home(0.03, points=1, seed=2)["p00"]
    noise = learn(home)
    assert noise.series["wild"].code > 5 * noise.series["p00"].code


def test_a_step_that_was_told_is_not_learned_as_luck() -> None:
    home = lucky_home(0.003)
    rng = np.random.default_rng(3)
    for name in home:
        logs = [draw_pairs(rng, build, build - 1, 0.2 * (build == 10), count=20) for build in range(1, 21)]
        home[name] = series(logs)
    told = {name: replace(each, steps=[KnownStep(10, 0.2, "")]) for name, each in home.items()}
    assert luck_of(told)[0] < 0.0035


def test_one_untold_step_in_a_series_does_not_become_its_luck() -> None:
    home = lucky_home(0.003)
    logs = [*QUIET, 0.001, 0.2]
    calm, moved = chain(logs[:-1]), chain(logs)
    lucks = [learn({**home, "p": each}).series["p"].code for each in (calm, moved)]
    assert math.sqrt(lucks[1]) < 1.5 * math.sqrt(lucks[0])


def test_a_step_of_all_series_is_nobodys_luck() -> None:
    home = lucky_home(0.003)
    moved = {}
    for name, each in home.items():
        last = each.pairs[-1]
        moved[name] = replace(each, pairs=(*each.pairs[:-1], replace(last, log=last.log + 0.1)))
    assert luck_of(moved)[0] == pytest.approx(luck_of(home)[0], rel=0.15)


@pytest.mark.parametrize(("code", "children"), [(0.01, 0.01), (0.01, 0.0)])
def test_the_share_that_layouts_draw_anew_is_learned_from_layouts(code: float, children: float) -> None:
    rng = np.random.default_rng(5)
    home = lucky_home(code)
    for name, each in home.items():
        again = [
            draw_pairs(
                rng, 20, 19, children * rng.standard_normal() * math.sqrt(2), count=20, layout=at, base_layout=at
            )
            for at in range(1, 5)
        ]
        home[name] = replace(each, pairs=(*each.pairs, *again))
    redrawn = learn(home).redrawn
    assert redrawn > 0.2 if children else redrawn < 0.1


def test_a_busy_nights_pairs_are_known_to_scatter_and_count_for_less() -> None:
    rng = np.random.default_rng(6)
    home = {}
    for number in range(20):
        logs = [draw_pairs(rng, at, at - 1, 0.0, sd=0.02 if at == 8 else 0.01, count=6) for at in range(1, 11)]
        home[f"p{number:02}"] = series(logs)
    noise = learn(home)
    usual = np.median([factor for night, factor in noise.factors.items() if night != 8])
    assert noise.factors[8] / usual == pytest.approx(2.0, rel=0.35)
    each = home["p00"]
    assert noise.error("p00", each.pairs[7]) > 2 * noise.error("p00", each.pairs[6])


def test_one_odd_night_neither_hides_what_later_nights_say_nor_counts_itself() -> None:
    calm = chain([*QUIET, 0.0], count=6)
    odd = replace(calm, pairs=(*calm.pairs[:2], replace(calm.pairs[2], log=0.05, std=0.25), *calm.pairs[3:]))
    home = draw_home(7)
    noise = learn({**home, "p": odd})
    assert math.sqrt(noise.series["p"].pair) < 0.035
    odd_error, next_error = (noise.error("p", pairs) for pairs in odd.pairs[2:4])
    assert odd_error > 20 * next_error
    assert math.sqrt(next_error) < 0.015


def test_a_devices_scatter_is_not_that_of_the_cpu() -> None:
    rng = np.random.default_rng(8)
    home = draw_home(8)
    for number in range(6):
        logs = [draw_pairs(rng, at, at - 1, 0.0, sd=0.06) for at in range(1, 13)]
        home[f"d{number}"] = series(logs, is_of_device=True)
    noise = learn(home)
    assert math.sqrt(noise.series["d0"].pair) == pytest.approx(0.06, rel=0.3)
    assert math.sqrt(noise.series["p00"].pair) == pytest.approx(0.013, rel=0.3)


def test_controls_teach_nothing_of_tvms_luck() -> None:
    home = lucky_home(0.003)
    wild = lucky_home(0.05, points=30, seed=9)
    controls = {f"c{name}": replace(each, is_control=True) for name, each in wild.items()}
    assert learn({**home, **controls}).series["p00"].code == pytest.approx(learn(home).series["p00"].code, rel=0.01)


def card(*, step: float = 0.0, seed: int = 5) -> dict[str, Evidence]:
    """Programs on a card as an H100 had them: launches scatter a hundred times as far as long kernels do."""
    rng = np.random.default_rng(seed)
    home = {}
    for number, sd in enumerate([0.0014, 0.0014, 0.17, 0.17]):
        levels = [0.0] * 5 + [step * (number == 0)]
        pairs = [draw_pairs(rng, at, RELEASE, level, sd=sd, count=6) for at, level in enumerate(levels)]
        home[f"p{number}"] = series(pairs, is_of_device=True)
    return home


def test_calm_programs_are_not_thought_to_scatter_like_restless_ones_of_the_same_card() -> None:
    home = card()
    home["new"] = series([take(0, RELEASE, 0.0, count=2, std=0.0001)], is_of_device=True)
    scatter = {name: math.sqrt(own.pair) for name, own in learn(home).series.items()}
    assert scatter["p0"] < 0.003
    assert scatter["p2"] == pytest.approx(0.17, rel=0.25)
    assert scatter["new"] > 0.03, "two pairs that are alike say little"


def test_a_small_step_of_a_calm_program_is_told_beside_restless_ones() -> None:
    assert tell(card(step=0.048)) == {("p0",): "told"}
    assert tell(card()) == {}


def test_a_night_that_scatters_far_more_than_usual_says_nothing_of_others() -> None:
    calm = [take(at, RELEASE, 0.0, std=0.01) for at in range(4)]
    odd = take(4, RELEASE, 0.0, std=0.3)
    scatter = [math.sqrt(learn({"p": series(pairs)}).series["p"].pair) for pairs in ([*calm, odd], calm)]
    assert scatter[0] < 0.04
    assert scatter[1] < 0.015
