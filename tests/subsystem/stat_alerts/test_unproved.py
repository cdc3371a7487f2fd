"""A slowdown that nobody could measure again: told on each night until something decides it, by all that tell."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from dashboard.cli import status
from dashboard.cli.arguments import OK_CODE, TVM_WORSE
from dashboard.cli.status import judge_exit_code
from tests.subsystem import scripts, slack_homes
from tests.subsystem.slack_homes import job
from tests.subsystem.stat_alerts.alert_homes import MLP, REPO, AlertHome, Truth, stamp_of
from tests.subsystem.stat_alerts.test_night_verdict import judged
from tests.subsystem.website.sites import Site
from tests.thorough import examples
from tvmdash import common
from tvmdash.dashboard_info import COMPLETE, Night
from tvmdash.measure import within_night
from tvmdash.verdict import Level, NightVerdict, Standing
from tvmdash.verdict.remeasured import Outcome, OutcomeKind

SUBSYSTEM = scripts.load("stat_alerts")
CODE = SUBSYSTEM.concluding.standings.__globals__
EVIDENCE: Any = SUBSYSTEM.judge_pending.__globals__["confirming"].remeasured
SLOWER_FOR = 3


class Unmeasured(enum.StrEnum):
    """Why a suspect is not measured again."""

    SWITCHED_OFF = "confirm_seconds is 0"
    UNKNOWN = "no artifact is known, as of a foreign experiment or of imported nights"
    GONE = "the artifacts no longer exist"
    FAILED = "each run fails"
    NO_VALUE = "the runs write no value for the series"
    BUDGET = "the time is spent before the first run"
    BROKEN = "the dashboard's verb ends without a result"


@dataclass(frozen=True)
class World:
    """A home in which `moving` of its series are slower by `factor` from the night `before` on."""

    why: Unmeasured
    before: int
    factor: float
    moving: str
    tvm_stays: bool
    foreign: bool
    seed: int

    @property
    def nights(self) -> int:
        return self.before + SLOWER_FOR

    def versions(self) -> list[str]:
        """The TVM of each night: another one each night, or one up to the slowdown and one from then on."""
        if self.tvm_stays:
            return ["0.27.0"] * self.before + ["0.28.0"] * SLOWER_FOR
        return [f"{0x1A2B3C00 + night:08x}d" for night in range(self.nights)]

    def fill(self, root: Path) -> AlertHome:
        home = AlertHome(root)
        versions = self.versions()
        if self.foreign:
            self._fill_foreign(home, versions)
            return home
        truth = Truth(self.nights, 0.004, self.seed, ("mlp", "dqn"), versions=versions)
        truth.artifacts = [] if self.why is Unmeasured.UNKNOWN else versions
        for workload, level, kind in (("mlp", 3, "run"), *(_OTHERS if self.moving == "all" else ())):
            truth.step(workload, level, kind, self.before, self.factor)
        return home.fill(truth)

    def _fill_foreign(self, home: AlertHome, versions: list[str]) -> None:
        rng = np.random.default_rng(self.seed)
        names = [f"n{at}" for at in range(10 if self.moving == "all" else 3)]
        for night, version in enumerate(versions):
            values = dict(zip(names, np.exp(0.004 * rng.standard_normal(len(names))).tolist(), strict=True))
            for name in names if self.moving == "all" else names[:1]:
                values[name] *= self.factor if night >= self.before else 1.0
            declared = {name: {"unit": "ms", "direction": "lower", "kind": "time"} for name in names}
            value: dict[str, Any] = {"tvm_hash": version, "metrics": declared, **values}
            if self.why is not Unmeasured.UNKNOWN:
                value["night"] = {"artifact": {"key": version}, "fingerprint": "f"}
            home.write_data("foreign", night, value)
        home.ingest()


_OTHERS = tuple(
    (workload, level, kind)
    for workload in ("mlp", "dqn")
    for level in (0, 3)
    for kind in ("run", "compile")
    if (workload, level, kind) != ("mlp", 3, "run")
)


@contextmanager
def remeasuring(why: Unmeasured, night: int) -> Iterator[None]:
    """Within the night, whose `dashboard remeasure` comes to nothing."""

    def call(_verb: str, _home: str, question: str, answer: str, *_: str, **__: Any) -> int:
        rounds = common.read_json(Path(question))
        answers: dict[Unmeasured, list[dict[str, Any]]] = {
            Unmeasured.GONE: [{"state": "gone", "error": "its artifact no longer exists"} for _ in rounds],
            Unmeasured.FAILED: [{"state": "failed", "error": "run: run.sh exited with status 1"} for _ in rounds],
            Unmeasured.NO_VALUE: [{"state": "measured", "values": {}, "seconds": 1.0} for _ in rounds],
            Unmeasured.BUDGET: [],
        }
        if why in answers:
            common.write_json(Path(answer), {"rounds": answers[why]})
        return 0 if why in answers else 70

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TVMDASH_NIGHT", stamp_of(night))
        patch.setenv("BENCHMARK_DEPS", str(REPO / "shared"))
        patch.setattr(within_night, "call", call)
        yield


def verdict_on(home: AlertHome, why: Unmeasured, night: int, *jobs: Any) -> NightVerdict:
    config = {"confirm_seconds": 0} if why is Unmeasured.SWITCHED_OFF else {}
    with remeasuring(why, night):
        return judged(home, night, *jobs, **config)


WORLDS = st.builds(
    World,
    why=st.sampled_from(Unmeasured),
    before=st.integers(8, 40),
    factor=st.floats(1.25, 2.0),
    moving=st.sampled_from(["one", "all"]),
    tvm_stays=st.booleans(),
    foreign=st.booleans(),
    seed=st.integers(0, 1000),
)


def world(**given_parts: Any) -> World:
    usual = {"why": Unmeasured.UNKNOWN, "before": 40, "factor": 1.25, "moving": "one", "tvm_stays": False}
    return World(**{**usual, "foreign": True, "seed": 1, **given_parts})


@examples(6, 300)
@example(world())
@example(world(why=Unmeasured.BUDGET, foreign=False))
@example(world(moving="all"))
@example(world(why=Unmeasured.SWITCHED_OFF, before=12, tvm_stays=True, foreign=False))
@example(world(why=Unmeasured.SWITCHED_OFF, before=15, factor=2.0, foreign=False, seed=30))
@given(WORLDS)
def test_no_night_is_green_while_a_slowdown_is_neither_proved_nor_refuted(planted: World) -> None:
    with TemporaryDirectory() as root:
        home = planted.fill(Path(root))
        before = verdict_on(home, planted.why, planted.before - 1)
        assume(before.level in (Level.STEADY, Level.BLIND))  # nothing is told falsely yet
        for night in range(planted.before, planted.nights):
            verdict = verdict_on(home, planted.why, night)
            assert verdict.level in (Level.SUSPECT, Level.REGRESSION), (night, verdict.headline)
            assert not verdict.is_green
            tonight = Night(verdict.night, COMPLETE)
            assert judge_exit_code(home.home, tonight, OK_CODE, Level.SUSPECT) == TVM_WORSE


def foreign_home(root: Path, values: list[float], direction: str) -> AlertHome:
    """A home with one foreign number, and another that does nothing, on nights whose artifacts nobody knows."""
    home = AlertHome(root)
    rng = np.random.default_rng(5)
    for night, value in enumerate(values):
        declared = {"number": {"direction": direction}, "other": {"unit": "ms", "direction": "lower"}}
        other = float(np.exp(0.004 * rng.standard_normal()))
        data = {"tvm_hash": f"{night:08x}", "metrics": declared, "number": value, "other": other}
        home.write_data("foreign", night, data)
    home.ingest()
    return home


@pytest.mark.parametrize(
    ("before", "after", "direction", "words"),
    [
        ((10.0, 10.04, 9.96), 0.0, "higher", "worse, not yet confirmed: foreign $.number −100 %"),
        ((3.0, -3.0, 1.0), 90.0, "lower", "worse, not yet confirmed: foreign $.number +"),
        ((0.0,), 5.0, "lower", "worse, not yet confirmed: foreign $.number +"),
        ((0.0,), 5.0, "none", "changed, not yet confirmed: foreign $.number +"),
    ],
)
def test_a_number_that_is_no_logarithm_is_suspect_as_well(
    tmp_path: Path, before: tuple[float, ...], after: float, direction: str, words: str
) -> None:
    values = [before[night % len(before)] for night in range(40)] + [after] * 3
    home = foreign_home(tmp_path, values, direction)
    assert verdict_on(home, Unmeasured.UNKNOWN, 39).is_green
    for night in range(40, 43):
        verdict = verdict_on(home, Unmeasured.UNKNOWN, night)
        assert verdict.level is Level.SUSPECT, verdict.headline
        assert verdict.headline.startswith(f"Possibly {words}")
    assert verdict.title in Site(home.home).publish_here(verdict.night).first("h1")


UNDECIDED = {OutcomeKind.UNMEASURED, OutcomeKind.UNCLEAR, OutcomeKind.YOUNG, OutcomeKind.REPRODUCED}
"""No answer; a reproduced one that the detector has not told nevertheless is none either."""


@pytest.fixture(scope="module")
def slower(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The first night of a slowdown, judged: the table, what was judged, the ledger, the row of the series."""
    home = world(why=Unmeasured.SWITCHED_OFF).fill(tmp_path_factory.mktemp("slower"))
    verdict_on(home, Unmeasured.SWITCHED_OFF, 40)
    done = SUBSYSTEM.judge_pending(home.home, home.output, stamp_of(40), SUBSYSTEM.Options())
    return done.table, done.judged, done.ledger, [row.name for row in done.table.rows].index("foreign $.n0")


@pytest.mark.parametrize("kind", OutcomeKind)
@pytest.mark.parametrize(
    ("interval", "relevant"),
    [
        ((None, None, None), True),
        ((0.099, 0.091, 0.108), True),
        ((0.1, -0.1, 0.3), True),
        ((0.004, 0.002, 0.006), False),
    ],
)
def test_only_an_answer_settles_what_was_measured_again(
    slower: Any, kind: OutcomeKind, interval: tuple[float | None, float | None, float | None], *, relevant: bool
) -> None:
    table, judged_night, ledger, row = slower
    outcome = Outcome(table.rows[row].key, "n0", kind, 4, 4, *interval)
    again = CODE["replace"](judged_night, confirmation=EVIDENCE.Confirmation(EVIDENCE.Evidence(""), (outcome,)))
    stand = CODE["standings"](table, again, ledger, {row}, SUBSYSTEM.Settings())[row]
    assert (stand.kind is Standing.SUSPECT) == (kind in UNDECIDED and relevant)
    if stand.kind is Standing.SUSPECT:
        by_interval = interval[1] is not None and interval[1] > 0
        assert (stand.effect, stand.low, stand.high) == (interval if by_interval else (stand.effect, None, None))
        assert by_interval or stand.effect == pytest.approx(0.25, abs=0.02), "as the nights before say"


def test_all_that_tells_of_a_night_with_an_unproved_slowdown_agrees(tmp_path: Path) -> None:
    planted = world(why=Unmeasured.GONE, foreign=False)
    home = planted.fill(tmp_path)
    site, slack = Site(home.home), slack_homes.SlackHome(tmp_path)
    jobs = (job("relax_opt"), job("stat_alerts", kind="subsystem"))
    for night in range(40, 43):
        verdict = verdict_on(home, planted.why, night, *jobs)
        words = verdict.title
        assert (verdict.level, [suspect.name for suspect in verdict.suspects]) == (Level.SUSPECT, [MLP])
        assert f"{MLP} +2" in words
        tonight = Night(stamp_of(night), "running", jobs=jobs)
        assert words in site.publish_here(tonight.stamp).first("h1")
        assert words in site.page(f"nights/{tonight.stamp}.html").first("h1")
        assert slack.run("subsys_reporter", tonight).text.splitlines()[0].startswith(f"⚠️ {words[:60]}")
        over = Night(tonight.stamp, COMPLETE, elapsed_s=60, jobs=jobs)
        assert words in status.summarize_night(home.home, over)
        assert words in status.summarize_status(home.home, over)
        assert judge_exit_code(home.home, over, OK_CODE, Level.SUSPECT) == TVM_WORSE
        assert judge_exit_code(home.home, over, OK_CODE, Level.REGRESSION) == OK_CODE
