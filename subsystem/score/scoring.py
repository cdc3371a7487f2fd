"""One night's value of a score. A workload that is missing is named and makes it incomplete; none is dropped.

The rule: a score is over its *expected* workloads. Those are the ones that its config lists; or, for all, every
workload that tonight's records and failures name, and every one that the night before expected, unless the
experiment's own config has changed since. Where one has no value the score is incomplete: its value is over the
others, it is said so, it is no point of the line over nights, and it is compared with no other night.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from definitions import CORRECT, SHARE, SPEEDUP, Definition, Selector, find_differing

from tvmdash.dashboard_info.pages import Lack, Missing, ScoredNight, WorkloadValue
from tvmdash.errors import DashboardError
from tvmdash.judge.means import combine_ratios
from tvmdash.records import Failure, Record
from tvmdash.text import elide, format_list

ALL_WORKLOADS = "every workload"
_REASON_COLUMNS = 160


class NoValueError(DashboardError):
    """A workload has no value, for a reason: in words, and as the kind with what it is of."""

    def __init__(self, message: str, lack: Lack, *of: str) -> None:
        super().__init__(message)
        self.lack, self.of = lack, of

    def missing(self, workload: str) -> Missing:
        return Missing(workload, elide(str(self), _REASON_COLUMNS), self.lack, self.of)


@dataclass(frozen=True)
class ExperimentNight:
    """An experiment's data of one night; `lacking`: why there is none. `config` names its own fields."""

    experiment: str
    records: tuple[Record, ...] = ()
    failures: tuple[Failure, ...] = ()
    tvm_hash: str = ""
    config: str = ""
    lacking: str = ""

    def select(self, selector: Selector, workload: str = "") -> tuple[list[Record], list[Failure]]:
        """Select the records and failures that are the selector's, of one workload where it is named."""
        records = [item for item in self.records if selector.selects(item) and _is(item.workload, workload)]
        failures = [item for item in self.failures if selector.may_have_selected(item.values)]
        return records, [item for item in failures if _is(item.workload, workload)]


@dataclass(frozen=True)
class ScorePoint(ScoredNight):
    """A night that is scored now: with its parts, and with why workloads have none."""

    workloads: tuple[WorkloadValue, ...] = ()
    lacks: tuple[Missing, ...] = ()


def short(workload: str) -> str:
    """Shorten `network.mlp` to mlp, as people say it."""
    return workload.partition(".")[2] or workload


def score(
    definition: Definition,
    nights: Mapping[str, ExperimentNight],
    stamp: str,
    earlier: ScoredNight | None,
) -> ScorePoint:
    """Score the night `stamp`; `nights` by experiment, `earlier` is its point of the night before."""
    used = [nights[name] for name in definition.experiments]
    expected = _expected(definition, used, earlier)
    there: list[WorkloadValue] = []
    lacks: list[Missing] = []
    for workload in expected:
        try:
            there.append(_of_workload(definition, nights, workload))
        except NoValueError as error:
            lacks.append(error.missing(workload))
    if not expected:  # nothing says which workloads there should be: why, where the experiments left nothing
        lacks = [
            Missing(ALL_WORKLOADS, elide(night.lacking, _REASON_COLUMNS), Lack.NO_DATA, (night.experiment,))
            for night in used
            if night.lacking
        ]
    value, low, high = _whole(definition, there)
    return ScorePoint(
        stamp,
        value,
        low,
        high,
        expected,
        tuple(lack.workload for lack in lacks),
        config=_config(used, earlier),
        has_data=any(not night.lacking for night in used),
        tvm_hash=" ".join(dict.fromkeys(night.tvm_hash for night in used if night.tvm_hash)),
        workloads=tuple(there),
        lacks=tuple(lacks),
    )


def _expected(definition: Definition, used: Sequence[ExperimentNight], earlier: ScoredNight | None) -> tuple[str, ...]:
    if definition.workloads is not None:
        return definition.workloads
    selectors = [definition.contender, *([definition.baseline] if definition.baseline else [])]
    found = [
        night.select(selector) for selector in selectors for night in used if night.experiment == selector.experiment
    ]
    tonight = {short(item.workload) for both in found for items in both for item in items}
    before = earlier.expected if earlier is not None and earlier.config == _config(used, earlier) else ()
    return tuple(sorted({*tonight, *before}))


def _config(used: Sequence[ExperimentNight], earlier: ScoredNight | None) -> str:
    """Return the experiments' own fields; those of the night before where one left nothing that tells."""
    if any(night.lacking for night in used):
        return earlier.config if earlier else ""
    return " ".join(night.config for night in used)


def _is(workload: str, wanted: str) -> bool:
    return not wanted or wanted in {workload, short(workload)}


def _of_workload(definition: Definition, nights: Mapping[str, ExperimentNight], workload: str) -> WorkloadValue:
    """Compute the workload's part; NoValueError says why it has none."""
    contender = _measured(definition, definition.contender, nights, workload)
    if definition.baseline is None:
        return contender
    baseline = _measured(definition, definition.baseline, nights, workload)
    low, high = None, None
    if None not in (baseline.low, baseline.high, contender.low, contender.high):
        low = (baseline.low or 0.0) / (contender.high or math.inf)
        high = (baseline.high or 0.0) / contender.low if contender.low else None
    return WorkloadValue(workload, baseline.value / contender.value, low, high)


def _measured(
    definition: Definition, selector: Selector, nights: Mapping[str, ExperimentNight], workload: str
) -> WorkloadValue:
    night = nights[selector.experiment]
    if night.lacking:
        raise NoValueError(night.lacking, Lack.NO_DATA, night.experiment)
    good, bad = night.select(selector, workload)
    if not good and not bad:
        raise NoValueError(f"neither a record nor a failure of {selector}", Lack.NO_RECORD, *selector.key)
    if definition.kind == CORRECT:
        checked = sum("max_error" in record.additional_info for record in good)
        if not checked and not bad:
            message = f"none of its {len(good)} answers was checked" if len(good) > 1 else "it was not checked"
            raise NoValueError(message, Lack.NOT_CHECKED, *selector.key, str(len(good)))
        return WorkloadValue(workload, float(checked), total=checked + len(bad), unchecked=len(good) - checked)
    if not good:
        raise NoValueError(f"failed ({selector}): {bad[0].error}", Lack.FAILED, *selector.key, bad[0].error)
    if len(good) > 1:
        paths = format_list(find_differing(good), 4) or "nothing"
        message = f"{len(good)} records of {selector}: they differ in {paths}; select one of them"
        raise NoValueError(message, Lack.SEVERAL_RECORDS, *selector.key, str(len(good)), paths)
    value = next((value for metric, value in good[0].metrics() if metric == definition.metric), None)
    if value is None or value <= 0:
        message = f"its record of {selector} has no {definition.metric.name} above 0"
        raise NoValueError(message, Lack.NO_METRIC, *selector.key)
    info = good[0].additional_info if definition.metric.name == "run_time" else {}
    return WorkloadValue(workload, value, info.get("execution_elapsed_ms_low"), info.get("execution_elapsed_ms_high"))


_Estimate = tuple[float | None, float | None, float | None]


def _whole(definition: Definition, there: Sequence[WorkloadValue]) -> _Estimate:
    if not there:
        return None, None, None
    values = [item.value for item in there]
    if definition.kind == CORRECT:
        return sum(values), None, None
    if definition.kind == SHARE:
        return 100.0 * sum(value >= definition.threshold for value in values) / len(values), None, None
    ratio = combine_ratios(values)
    if definition.kind == SPEEDUP and ratio.n > 1:
        return ratio.value, ratio.low, ratio.high
    return ratio.value, *_measurement_interval(ratio.value, there)


def _measurement_interval(mean: float, there: Sequence[WorkloadValue]) -> tuple[float | None, float | None]:
    """Return the 95 % interval of a geometric mean that follows from its workloads' own.

    The workloads are taken as given: to ask for others, where times differ a thousandfold, answers nobody's question.
    """
    if not all(item.low and item.high for item in there):
        return None, None
    halves = (math.log((item.high or 1.0) / (item.low or 1.0)) / 2 for item in there)
    reach = math.exp(math.hypot(*halves) / len(there))
    return mean / reach, mean * reach
