"""Suspects measured again the same night, until each is clear or the time is over.

Each pass of the detector tells what it lacks, some steps ahead; that is measured in runs that many series share, and
the detector passes again. The clearest suspects go first, so that a night that ends early has them.
"""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from judging import evidence as remeasured
from judging.evidence import BROKEN, BUDGET, COMPLETE, MEASURED, RUNNING, Confirmation, Evidence
from judging.judge import Judged
from judging.table import Table

from rerun import outcomes
from rerun.questions import Asking, Wanted
from tvmdash import common
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.judge import RULES
from tvmdash.judge.history.series import Settings
from tvmdash.measure import within_night
from tvmdash.measure.prebuilt import MOST_LAYOUTS
from tvmdash.series.naming import id_of
from tvmdash.verdict.remeasured import Lack, RatioRun, Run

_PATIENCE_S = 90.0
"""Beyond the budget, for the analysis of the last run and for tidying up."""


def measured(home: Home, request: Sequence[dict[str, Any]], budget_s: float) -> list[dict[str, Any]]:
    """Measure the request's rounds, fewer where the time was over; DashboardError where there is no result."""
    with tempfile.TemporaryDirectory() as scratch:
        question, answer = Path(scratch) / "request.json", Path(scratch) / "result.json"
        common.write_json(question, list(request), durable=False)
        arguments = ("remeasure", str(home.root), str(question), str(answer), "--budget", f"{budget_s:.3f}")
        code = within_night.call(*arguments, timeout_s=budget_s + _PATIENCE_S)
        if not answer.is_file():
            raise DashboardError(
                f"dashboard remeasure exited with status {code} and wrote no result; see the log above."
            )
        value: Any = common.read_json(answer)
    rounds: list[dict[str, Any]] = value["rounds"]
    return rounds


DEPTHS = (1, 3, 4, 6)
"""Steps ahead in the first passes, and in all later ones: one run settles most, eight are the least for the others."""
MOST_PASSES = 80
_log = logging.getLogger("stat_alerts")

Judge = Callable[[Asking], Judged]
Measure = Callable[[Home, Sequence[dict[str, Any]], float], list[dict[str, Any]]]


@dataclass
class Confirming:
    """One night's re-measuring. Without `may_measure` what is kept of it is played again, and nothing is run."""

    home: Home
    output: Path
    table: Table
    night: int
    evidence: Evidence
    may_measure: bool
    measure: Measure = measured

    def __post_init__(self) -> None:
        self._begun = time.monotonic()

    def judged(self, judge: Judge) -> Judged:
        """Judge the night with what was measured again."""
        if self.may_measure:
            first, asking = self._pass(judge, DEPTHS[0], None)
            if not asking.asked:
                return replace(first, confirmation=Confirmation(self.evidence))
            self._measure_all(judge, _find_clear(first))
        return self._decided(judge)

    def _pass(
        self, judge: Judge, depth: int, only: AbstractSet[str] | None, silent: AbstractSet[str] = frozenset()
    ) -> tuple[Judged, Asking]:
        asking = Asking(self.table, self.evidence, depth, only, silent)
        return judge(asking), asking

    def _measure_all(self, judge: Judge, first: AbstractSet[str]) -> None:
        """Measure whatever the detector asks for: for the series `first`, then for all."""
        for only in (first, None):
            for turn in range(MOST_PASSES):
                _, asking = self._pass(judge, DEPTHS[min(turn, len(DEPTHS) - 1)], only)
                if not asking.wants_any:
                    break
                if not self._measured(asking):
                    self._keep()
                    return
        self.evidence = replace(self.evidence, ended=COMPLETE)
        self._keep()

    def _keep(self) -> None:
        if self.evidence.runs or self.evidence.lacks:
            remeasured.write(self.output, self.evidence)

    def _measured(self, asking: Asking) -> bool:
        """Have what is lacking measured; False where that is the end of it."""
        wanted = list(asking.rounds())
        left_s = self.evidence.budget_s - (time.monotonic() - self._begun)
        if left_s <= 1:
            return self._ended(BUDGET)
        request = [self._make_request(question, asking) for question in wanted]
        try:
            answers = self.measure(self.home, request, left_s)
        except (DashboardError, OSError) as error:
            return self._ended(BROKEN, str(error))
        before = self.evidence
        # there are fewer answers where the time was over
        for question, answer in zip(wanted, answers, strict=False):
            self._take(question, answer)
        self._keep()
        if len(answers) < len(wanted) or any(answer["state"] == BUDGET for answer in answers):
            return self._ended(BUDGET)
        return self.evidence != before or self._ended(BROKEN, "none of the requested points was measured")

    def _make_request(self, question: Wanted, asking: Asking) -> dict[str, Any]:
        """Write one round as `dashboard remeasure` reads it."""
        beside = {"beside": question.beside[0], "layout": self._layout_of(question)} if question.beside[0] else {}
        round_asked = {"experiment": question.experiment, "stamp": question.stamp, "points": asking.points(question)}
        return {**round_asked, "metrics": asking.metrics(question), **beside}

    def _layout_of(self, question: Wanted) -> int:
        """Choose the layout of both codes in that round: a night has layouts of its own, which take turns."""
        of_build = (question.experiment, question.artifact)
        turn = sum((run.experiment, run.artifact) == of_build for run in self.evidence.runs) % RULES.layouts
        day = common.parse_stamp(self.evidence.night).toordinal()
        return 1 + (day * RULES.layouts + turn) % MOST_LAYOUTS

    def _ended(self, why: str, text: str = "") -> bool:
        self.evidence = replace(self.evidence, ended=why, words=text)
        return False

    def _take(self, wanted: Wanted, answer: Mapping[str, Any]) -> None:
        """Add one answer to the evidence."""
        run_key, beside = (wanted.experiment, wanted.stamp, wanted.artifact), wanted.beside[1]
        if answer["state"] == BUDGET:
            return
        if answer["state"] != MEASURED:
            lack = Lack(*run_key, answer["state"], answer["error"], beside=beside)
            self.evidence = self.evidence.with_more((), [lack])
            return
        ratios = {series: RatioRun(**ratio) for series, ratio in answer.get("ratios", {}).items()} if beside else {}
        run = Run(*run_key, answer["values"], answer["seconds"], beside, ratios)
        left = run.ratios if beside else run.values
        missing = [series for series in wanted.series if id_of(series) not in left]
        reason = f"its run wrote no {'ratio' if beside else 'value'} for this series"
        lacks = [Lack(*run_key, "failed", reason, id_of(series), beside) for series in missing]
        self.evidence = self.evidence.with_more([run], lacks)

    def _decided(self, judge: Judge) -> Judged:
        """Decide by what there is. A series that the end of the time left in the middle is judged by history alone.

        Unless what was measured of it is enough to say that the shift is there.
        """
        judged, asking = self._pass(judge, 0, None)
        if asking.stalled:
            sure = {self.table.rows[row].key for row, decision, _ in judged.decisions() if decision.kind == "alert"}
            silent = asking.stalled - sure
            judged, again = self._pass(judge, 0, None, silent)
            asking = replace(asking, asked={**asking.asked, **again.asked})
        outcomes_found = outcomes.outcomes_of(judged, self.table, self.evidence, asking)
        return replace(judged, confirmation=Confirmation(self.evidence, tuple(outcomes_found)))


def _find_clear(judged: Judged) -> set[str]:
    """Return the series that would be suspected however noisy they were."""
    every = [item for fleet in judged.fleets for item in fleet.decided.decisions.items()]
    return {key for key, decision in every if decision.z is not None and abs(decision.z) >= Settings().suspect}


def opened(
    home: Home, output: Path, table: Table, night: int, *, tonight: bool, budget_s: float, off: str
) -> Confirming | None:
    """Open the night's re-measuring; None where it is off, or of a past night of which nothing is kept."""
    stamp = table.stamps[night]
    try:
        kept = remeasured.read(output, stamp)
    except DashboardError as error:
        _log.warning("%s The decision rests on the history alone.", error)
        return None
    may = tonight and not off and (kept is None or kept.ended == RUNNING)
    if kept is None and not may:
        return None
    evidence = replace(kept or Evidence(stamp), budget_s=budget_s) if may else kept
    assert evidence is not None
    return Confirming(home, output, table, night, evidence, may)
