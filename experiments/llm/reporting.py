"""Rates of a record, and tonight's times by phase, length and depth, on each engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calls import PREFILL

from tvmdash.exp_templates import History, Record
from tvmdash.experiment import plots
from tvmdash.plot_util.specs import Estimate, GroupedBar
from tvmdash.series.store import Series
from tvmdash.summary_util import SectionKind, Summary
from tvmdash.text import format_list, three_digits

MEDIAN = "execution_elapsed_ms_median"


def find_rate(record: Record) -> dict[str, float]:
    """Tokens in a second: of a prefill the whole prompt, of a step one for each sequence."""
    args = record.workload_args
    tokens = args["prompt"] if args["phase"] == PREFILL else args["batch"]
    return {"tokens_per_second": tokens / record.additional_info[MEDIAN] * 1e3}


Rows = Mapping[str, Mapping[str, Series]]
"""Tonight's run times by what is computed, then by engine and variant."""


def make_plot(history: History) -> GroupedBar:
    """Tonight's times of both phases with their intervals, each engine beside the others."""
    rows = _find_rows(history)
    names = tuple(dict.fromkeys(how for row in rows.values() for how in row))
    values = tuple(tuple(_estimate(row.get(how)) for how in names) for row in rows.values())
    title = f"{history.experiment}, night {history.stamps[-1]}"
    return GroupedBar(title, "ms", tuple(rows), names, values, lower_is_better=True)


def summarize(usual: Summary, history: History) -> Summary:
    """`usual` without its fastest and slowest, which are of unlike work, and with each row's times."""
    lines = []
    for what, row in _find_rows(history).items():
        times = [f"{how} {three_digits(series.values[-1])}" for how, series in row.items()]
        lines.append(f"- {what}: {format_list(times, 8)} ms")
    return usual.without(SectionKind.EXTREMES).with_lines(lines)


def _find_rows(history: History) -> Rows:
    """The prompts first, then the depths."""
    tonight = plots.measured_tonight(history, {"run_time"})
    rows: dict[str, dict[str, Series]] = {}
    for series in sorted(tonight, key=lambda series: series.labels["workload_args"]["phase"] != PREFILL):
        how = " ".join(filter(None, (series.labels["engine"], series.labels["build_config"].get("variant"))))
        what = _describe(str(series.labels["workload"]), series.labels["workload_args"])
        rows.setdefault(what, {})[how] = series
    return rows


def _describe(workload: str, args: Mapping[str, Any]) -> str:
    """As in `15M float32, first token of prompt 32` and `15M q4f32, token at depth 512, batch 4`."""
    model = f"{workload.partition('.')[2]} {args['dtype']}"
    if args["phase"] == PREFILL:
        return f"{model}, first token of prompt {args['prompt']}"
    return f"{model}, token at depth {args['depth']}" + (f", batch {args['batch']}" if args["batch"] > 1 else "")


def _estimate(series: Series | None) -> Estimate | None:
    return None if series is None else Estimate(series.values[-1], series.low[-1], series.high[-1])
