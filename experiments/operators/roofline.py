"""Operators against the machine's peaks (Williams et al. 2009, "Roofline"), in records, graphs and words."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from peaks import MATMUL, NUMPY, PeakRate, Peaks, bandwidth_of, gflops_of, peaks

from tvmdash.errors import DashboardError
from tvmdash.exp_templates import History, Record
from tvmdash.experiment import engine_text
from tvmdash.experiment import plots as series_plots
from tvmdash.machine.devices import CPU, device_of
from tvmdash.plot_util.specs import Estimate, GroupedBar, Plot
from tvmdash.relax_util.operators.kinds import Operator
from tvmdash.relax_util.operators.table import OPERATORS
from tvmdash.series.store import Series
from tvmdash.summary_util import SectionKind, Summary
from tvmdash.text import format_bytes, format_list, format_quantity, three_digits

DOMAIN, TVM = "topi.", "tvm"
TOLD, NEAREST = 5, 3
CALL_MS = 0.02
"""Time below which a call is more call than operator, and is not ranked."""


@dataclass(frozen=True)
class Share:
    """The share of the machine's peaks that one operator reaches."""

    operator: Operator
    dtype: str
    series: Series
    percent: float
    bound: str

    @property
    def words(self) -> str:
        return f"{self.operator.label} {self.dtype} {_percent(self.percent)} ({self.bound})"


def operator_of(workload: str, values: Mapping[str, Any]) -> Operator:
    """Find the operator that a point or a record names; DashboardError where the table has it no more."""
    for operator in OPERATORS:
        args = {name: value for name, value in values.items() if name not in {"dtype", "threads", "device"}}
        if workload == DOMAIN + operator.kind and args == operator.args:
            return operator
    raise DashboardError(f"{workload}: table.py has no operator with {dict(values)}.")


def rate_of_record(record: Record) -> PeakRate:
    ms = record.additional_info["execution_elapsed_ms_median"]
    return PeakRate(record.workload, record.workload_args, record.runtime_config["threads"], ms)


def facts(rate: PeakRate, rates: Sequence[PeakRate]) -> dict[str, Any]:
    """Return what joins the record of `rate`; the shares are left out where tonight's peaks are not among `rates`.

    Float16 is held against the float32 peak of arithmetic: processors without float16 units compute in float32.
    """
    if not rate.workload.startswith(DOMAIN):
        is_product = rate.workload == MATMUL
        return {"gflops_per_s": gflops_of(rate)} if is_product else {"gbytes_per_s": bandwidth_of(rate)}
    operator, moved = _work(rate)
    known: dict[str, Any] = {
        "operations": operator.operations,
        "bytes_moved": moved,
        "gflops_per_s": operator.operations / rate.ms / 1e6,
        "gbytes_per_s": moved / rate.ms / 1e6,
    }
    machine = peaks(rates, rate.threads)
    if machine is None:
        return known
    least_ms, bound = machine.least_ms(operator.operations, moved)
    return {
        **known,
        "roofline_percent": least_ms / rate.ms * 100,
        "roofline_bound": bound,
        "peak_gflops_per_s": machine.gflops,
        "peak_gbytes_per_s": machine.bandwidth_for(moved),
    }


def _work(rate: PeakRate) -> tuple[Operator, int]:
    operator = operator_of(rate.workload, rate.args)
    return operator, operator.bytes_moved(np.dtype(rate.args["dtype"]).itemsize)


def without_machine(history: History) -> History:
    kept = tuple(series for series in history.series if series.labels.get("engine") != NUMPY.name)
    return dataclasses.replace(history, series=kept)


def shares(history: History) -> list[Share]:
    """List tonight's operators, in the order of the records; none where the machine was not measured.

    On the processor: other devices have other peaks.
    """
    tonight = [(series, _rate(series)) for series in _list_tonight(history)]
    rates = [rate for _, rate in tonight]
    shares_of_peak = []
    for series, rate in tonight:
        known = facts(rate, rates) if rate.workload.startswith(DOMAIN) and _is_known(rate) else {}
        if "roofline_percent" in known:
            operator = operator_of(rate.workload, rate.args)
            shares_of_peak.append(
                Share(operator, rate.args["dtype"], series, known["roofline_percent"], known["roofline_bound"])
            )
    return shares_of_peak


def _list_tonight(history: History) -> list[Series]:
    """List tonight's run times on the processor."""
    tonight = series_plots.measured_tonight(history, {"run_time"})
    return [series for series in tonight if device_of(series.labels) == CPU]


def _rate(series: Series) -> PeakRate:
    labels = series.labels
    return PeakRate(labels["workload"], labels["workload_args"], labels["runtime_config"]["threads"], series.values[-1])


def _is_known(rate: PeakRate) -> bool:
    """Tell whether the table still has it: nights outlive the table's rows."""
    args = {name: value for name, value in rate.args.items() if name != "dtype"}
    return any(rate.workload == DOMAIN + operator.kind and args == operator.args for operator in OPERATORS)


def plots(history: History) -> dict[str, Plot]:
    """Draw for each data type tonight's run times and shares of the roofline; `tonight` is the first type's times."""
    shares_of_peak = shares(history)
    drawn: dict[str, Plot] = {}
    for dtype in dict.fromkeys(share.dtype for share in shares_of_peak):
        own = [share for share in shares_of_peak if share.dtype == dtype]
        title = f"{history.experiment}, night {history.stamps[-1]}: {dtype}"
        times = f"tonight_{dtype}" if "tonight" in drawn else "tonight"
        drawn[times] = _bars(title, "ms", own, lower_is_better=True)
        drawn[f"roofline_{dtype}"] = _bars(title, "% of the machine's peak", own, lower_is_better=False)
    return drawn


def _bars(title: str, unit: str, shares_of_peak: Sequence[Share], *, lower_is_better: bool) -> GroupedBar:
    labels = tuple(dict.fromkeys(share.operator.short for share in shares_of_peak))
    engines = tuple(dict.fromkeys(str(share.series.labels["engine"]) for share in shares_of_peak))
    by_place = {(share.operator.short, share.series.labels["engine"]): share for share in shares_of_peak}
    estimate = _time if lower_is_better else _share
    rows = tuple(
        tuple(estimate(by_place[label, engine]) if (label, engine) in by_place else None for engine in engines)
        for label in labels
    )
    return GroupedBar(title, unit, labels, engines, rows, lower_is_better=lower_is_better)


def _time(share: Share) -> Estimate:
    return Estimate(share.series.values[-1], share.series.low[-1], share.series.high[-1])


def _share(share: Share) -> Estimate:
    """Return the share with the interval of the operator's time; the peaks' own is not in it."""
    ms, low, high = share.series.values[-1], share.series.low[-1], share.series.high[-1]
    return Estimate(share.percent, *(share.percent * ms / bound if bound else None for bound in (high, low)))


def summary(usual: Summary, history: History) -> Summary:
    """Replace the fastest and slowest of `usual`, which are of unlike shapes, by the engines against the peaks."""
    return usual.without(SectionKind.EXTREMES).with_lines(summarize_history(history))


def summarize_history(history: History) -> list[str]:
    """Compare the engines by data type, list the machine's peaks, and name the operators farthest from them."""
    shares_of_peak, tonight = shares(history), _list_tonight(history)
    rates = [_rate(series) for series in tonight]
    lines = [*_by_dtype(shares_of_peak), *_fastest(shares_of_peak)]
    for threads in dict.fromkeys(rate.threads for rate in rates):
        machine = peaks(rates, threads)
        lines.append(
            _describe_machine(machine, threads) if machine else f"- The machine's peaks are missing ({threads})."
        )
    ranked = [
        share for share in shares_of_peak if share.series.labels["engine"] == TVM and share.series.values[-1] >= CALL_MS
    ]
    own = sorted(ranked, key=lambda share: share.percent)
    if own:
        lines.append(f"- TVM farthest from the peak: {format_list([share.words for share in own[:TOLD]], TOLD)}")
    if len(own) > TOLD:
        lines.append(
            f"- TVM nearest to the peak: {format_list([share.words for share in own[: -NEAREST - 1 : -1]], TOLD)}"
        )
    if any(share.percent > 100 for share in shares_of_peak):
        lines.append("- Above 100 %: the data lay in a nearer cache than the one measured for its size")
    return lines


def _by_dtype(shares_of_peak: Sequence[Share]) -> list[str]:
    """Compare TVM in each data type, where there are several; give the middle share of each engine."""
    lines = []
    dtypes = list(dict.fromkeys(share.dtype for share in shares_of_peak))
    for dtype in dtypes:
        own = [share for share in shares_of_peak if share.dtype == dtype]
        if len(dtypes) > 1:
            lines += [f"{line} ({dtype})" for line in engine_text.compare_with_each([share.series for share in own])]
        engines = dict.fromkeys(str(share.series.labels["engine"]) for share in own)
        middles = {name: [s.percent for s in own if s.series.labels["engine"] == name] for name in engines}
        text_of_engines = [
            f"{name} {_percent(statistics.median(percents))} of {len(percents)}" for name, percents in middles.items()
        ]
        lines.append(f"- Middle share of the machine's peak in {dtype}: {format_list(text_of_engines, 4)} operators")
    return lines


def _fastest(shares_of_peak: Sequence[Share]) -> list[str]:
    """Count the operators in which TVM is the fastest, and name them."""
    places: dict[tuple[str, str], list[Share]] = {}
    for share in shares_of_peak:
        places.setdefault((share.operator.label, share.dtype), []).append(share)
    contested = [group for group in places.values() if len(group) > 1]
    best = [min(group, key=lambda share: share.series.values[-1]) for group in contested]
    if not best:
        return []
    won = [f"{share.operator.label} {share.dtype}" for share in best if share.series.labels["engine"] == TVM]
    where = f": {format_list(won, TOLD)}" if won else ""
    return [f"- TVM is the fastest in {len(won)} of {len(best)} operators{where}"]


def _describe_machine(machine: Peaks, threads: int) -> str:
    rates = [f"{three_digits(rate)} GB/s in {format_bytes(size)}" for size, rate in machine.bandwidth]
    text = format_list([f"{three_digits(machine.gflops)} GFLOP/s (float32 matrix product)", *rates], 6)
    return f"- The machine tonight with {threads} thread{'' if threads == 1 else 's'}: {text}"


def _percent(value: float) -> str:
    return format_quantity(value, "%")
