"""The planted worlds of tests/benchmarks/worlds: they are what they say, and their scores tell judges apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from tests.benchmarks.worlds import __main__ as command
from tests.benchmarks.worlds import parts
from tests.benchmarks.worlds.evidence import Build, Measure, Pairs, SeriesEvidence, Told, Verdict
from tests.benchmarks.worlds.noise import CODE_SHARE, FAMILIES, draw_pairs
from tests.benchmarks.worlds.play import play
from tests.benchmarks.worlds.scoring import Figures, Score
from tests.benchmarks.worlds.situations import ALL
from tests.benchmarks.worlds.standins import Oracle
from tests.benchmarks.worlds.world import Plan, Step, World

STANDINS = "tests.benchmarks.worlds.standins:"
SMALL = Plan(1000, 15, 14, gaps=False)


class Scripted:
    """It says what was written down for a night, and asks to measure again what was written down for all."""

    def __init__(self, world: World, said: dict[int, Verdict], asked: Sequence[tuple[str, int, int]] = ()) -> None:
        self.said = {world.stamp(night): verdict for night, verdict in said.items()}
        self.asked, self.got = asked, list[Pairs | None]()
        self.evidence: dict[str, SeriesEvidence] = {}

    def night(self, night: str, evidence: Sequence[SeriesEvidence], measure: Measure) -> Verdict:
        self.evidence = {series.series: series for series in evidence}
        for series, build, base in self.asked:
            pair = Build(f"tvm-{build:03}"), Build(f"tvm-{base:03}")
            self.got.append(measure(series, *pair, 5, relinked=True))
        return self.said.get(night, Verdict())


def source_home(plan: Plan = SMALL) -> World:
    world = World(plan)
    world.sequence = np.arange(1, plan.nights + 1)
    return world


def told(step: Step, begin: int, **changes: object) -> Told:
    first = Told("told", tuple(step.series), 0.05, 0.04, 0.06, f"tvm-{begin:03}", incident="R1")
    return replace(first, **changes)  # type: ignore[arg-type]


def score(world: World, said: dict[int, Verdict]) -> Score:
    return Score(world, play(world, lambda: Scripted(world, said)))


@pytest.mark.parametrize("name", ALL)
def test_an_oracle_is_right_in_every_situation(name: str) -> None:
    for luck in (0.0, 0.01):
        result = parts.run(parts.Job("situations", Plan(1000, 32, luck=luck, name=name), name), STANDINS + "Oracle")
        assert result.faults + result.wrong == ()


@pytest.mark.parametrize("part", ["quiet", "steps"])
def test_an_oracle_is_perfect_in_every_kind_of_home(part: str) -> None:
    grid = {"series": [15], "wheel": [False, True], "reference": ["chain", "fixed", "moving"]}
    jobs = parts.home_jobs(part, range(1000, 1004), {**grid, "luck": [(0.01, 0.5)], "how": {}})
    results = [parts.run(job, STANDINS + "Oracle") for job in jobs]
    assert [fault for result in results for fault in result.wrong] == []
    figures = sum((result.figures for result in results), Figures())
    assert (figures.false, figures.twice, figures.wrong_red, figures.closed, figures.green) == (0, 0, 0, 0, 0)
    assert figures.steps == figures.same == figures.ever == (0 if part == "quiet" else 4 * len(results))
    assert figures.recovered == figures.recoveries
    assert part == "quiet" or figures.recoveries > 0
    assert all(abs(error) < 1e-9 and holds for _, error, holds in figures.effects)


def test_a_judge_that_never_tells_is_green_over_every_step() -> None:
    job = parts.Job("steps", Plan(1000, 15, 40))
    figures = parts.run(job, STANDINS + "Silent").figures
    assert (figures.told, figures.false, figures.wrong_red, figures.ever, figures.steps) == (0, 0, 0, 0, 4)
    assert figures.green > 20


def test_a_judge_of_single_nights_tells_luck() -> None:
    calm, lucky = (
        sum((parts.run(parts.Job("quiet", Plan(seed, 48, 30, luck)), STANDINS + "Naive").figures.false)
            for seed in range(1000, 1003))
        for luck in (0.0, 0.01)
    )  # fmt: skip
    assert lucky > 4 * calm > 0


def test_worlds_do_not_depend_on_what_a_judge_measures_again() -> None:
    quiet, busy = source_home(), source_home()
    name = quiet.names[quiet.times()[0]]
    idle, asking = Scripted(quiet, {}), Scripted(busy, {}, [(name, 5, 4)])
    play(quiet, lambda: idle)
    play(busy, lambda: asking)
    again = {id(pairs) for pairs in asking.got}
    assert [pairs for pairs in asking.evidence[name].pairs if id(pairs) not in again] == list(idle.evidence[name].pairs)
    assert asking.evidence[name].values == idle.evidence[name].values


def test_measuring_again_ends_with_the_budget_and_with_the_build() -> None:
    world = source_home(replace(SMALL, again=1.0))
    world.gone = {3: 10}
    name = world.names[world.times()[0]]
    judge = Scripted(world, {}, [(name, 4, 3), (name, 5, 4), (name, 5, 4), (name, 5, 4)])
    play(world, lambda: judge)
    first, at_eight, at_ten = judge.got[:4], judge.got[32:36], judge.got[40:44]
    assert first == [None] * 4
    assert [len(pairs.logs) if pairs else 0 for pairs in at_eight] == [5, 5, 5, 0]
    assert [len(pairs.logs) if pairs else 0 for pairs in at_ten] == [0, 5, 5, 5]
    layouts = [(pairs.build.layout, pairs.base.layout) for pairs in at_eight if pairs]
    assert layouts == [(900, 900), (900, 901), (901, 902)]  # of builds 4 and 3, then 5 and 4


def test_relinked_children_of_a_night_take_turns() -> None:
    world = source_home(replace(SMALL, luck=0.01, again=1000.0))
    row = world.times()[0]
    world.scatter[row], world.common[:] = 1e-9, 0.0
    judge = Scripted(world, {}, [(world.names[row], 5, 4)] * 4)
    play(world, lambda: judge)
    first, second, third, again = (pairs.logs[0] for pairs in judge.got[16:20] if pairs)
    assert len({round(first, 6), round(second, 6), round(third, 6)}) == 3
    assert again == pytest.approx(first, abs=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_pairs_scatter_as_planned(family: str) -> None:
    drawn = draw_pairs(family, np.random.default_rng(1000), (40_000, 7))
    assert abs(drawn.mean()) < 0.02
    assert 0.95 < drawn.std() < 1.05
    neighbours = np.corrcoef(drawn[:, 1], drawn[:, 2])[0, 1]
    assert abs(neighbours - (0.5 if family == "correlated" else 0)) < 0.03


def test_a_relink_draws_anew_what_it_can() -> None:
    world = World(Plan(1000, 200, 60, luck=0.01, redrawn=0.5, gaps=False, churn=1.0))
    built = np.array([[world.effect(row, build) for build in range(61)] for row in world.times()])
    assert 0.009 < built.std() < 0.011
    left = np.array([[world.effect(row, build, 0.0) for build in range(61)] for row in world.times()])
    stays = CODE_SHARE * 0.5 + (1 - CODE_SHARE)
    assert left.var() / built.var() == pytest.approx(stays, rel=0.15)
    drawn = np.array([world.draw_moved(np.random.default_rng([1000, at])) for at in range(4000)])
    assert drawn.var() / built.var() == pytest.approx(1 - stays, rel=0.2)


def test_equal_code_has_the_luck_of_code_that_it_had() -> None:
    world = World(Plan(1000, 200, 20, luck=0.01, gaps=False, churn=0.0))
    step = world.plant(world.times()[:100], 0.05, 8, 14)
    rows = [row for row, name in enumerate(world.names) if name in step.series]
    before, within, after = (np.array([world.effect(row, build) for row in rows]) for build in (7, 8, 14))
    assert [world.artifact(row, 7).code for row in rows] == [world.artifact(row, 14).code for row in rows]
    assert all(world.artifact(row, 7).code != world.artifact(row, 8).code for row in rows)
    assert (after - before).std() == pytest.approx(0.01 * np.sqrt(2 * (1 - CODE_SHARE)), rel=0.2)
    assert (within - before).std() == pytest.approx(0.01 * np.sqrt(2), rel=0.2)


def test_a_telling_is_right_by_series_sign_and_begin() -> None:
    world = source_home()
    world.on[5:7] = False  # builds 6 and 7 are measured by no night
    step = world.plant(world.pick(2), 0.05, 7)
    kept = {"R1": tuple(step.series)}
    for begin, right in ((5, False), (6, True), (7, True), (8, True), (9, False)):
        result = score(world, {7: Verdict((told(step, begin),), kept)})
        assert (result.figures.false, result.delay(step)) == ((0, 0) if right else (1, None))
    for wrong in (told(step, 7, effect=-0.05), told(step, 7, decision="better"), told(step, 7, series=("other",))):
        assert score(world, {7: Verdict((wrong,))}).figures.false == 1


def test_telling_a_step_twice_is_no_reopening() -> None:
    world = source_home()
    step = world.plant(world.pick(1), 0.05, 7)
    kept = {"R1": tuple(step.series)}
    again = {6: Verdict((told(step, 7),), kept), 8: Verdict((told(step, 7),), kept)}
    reopened = score(world, again)
    assert (reopened.figures.twice, reopened.figures.closed) == (0, 14 - 8)
    assert score(world, {**again, 7: Verdict((), kept)}).figures.twice == 1
    assert score(world, {**again, 8: Verdict((told(step, 7, incident="R2"),), kept)}).figures.twice == 1


def test_an_incident_that_nothing_planted_explains_is_red_until_it_is_closed() -> None:
    world = source_home()
    step = world.plant(world.pick(1), 0.05, 7, 10)
    kept = {"R1": tuple(step.series)}
    said = {night: Verdict((), kept) for night in range(7, 12)}
    result = score(world, {6: Verdict((told(step, 7),), kept), **said})
    assert (result.figures.wrong_red, result.figures.closed) == (3, 0)  # builds 10, 11 and 12 have it no more
    fixed = told(step, 10, decision="fixed")
    assert score(world, {6: Verdict((told(step, 7),), kept), 9: Verdict((fixed,))}).fixed_after(step) == 0
    assert score(world, {6: Verdict((told(step, 7),), kept), 8: Verdict((fixed,))}).figures.not_fixed == 1


def test_an_oracle_in_a_world_with_other_steps_is_wrong() -> None:
    world, other = source_home(), source_home()
    for home, begin in ((world, 7), (other, 10)):
        home.plant(home.pick(1), 0.05, begin)
    figures = Score(world, play(world, lambda: Oracle(other))).figures
    assert (figures.false, figures.ever, figures.green) == (1, 0, 3)


def test_the_command_prints_the_tables(capsys: pytest.CaptureFixture[str]) -> None:
    judge = ["--judge", STANDINS + "Naive"]
    assert command.main([*judge, "--situations", "rates,drift", "--verbose"]) == 0
    assert "| drift | 0/1 | 0/1 |" in capsys.readouterr().out
    assert command.main([*judge, "--part", "steps", "--series", "15", "--luck", "0.3:0.5,0:1"]) == 0
    printed = capsys.readouterr().out
    assert "| 0.3 %, 0.5 |" in printed
    assert "| 10 % | 12 |" in printed
    assert command.main(["--part", "list"]) == 0
    assert "runtime_3_percent: TVM's" in capsys.readouterr().out
