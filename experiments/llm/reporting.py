"""Rates of a record, and tonight's times by phase, length and depth, on each engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calls import DECODE, PREFILL

from tvmdash.exp_templates import History, Record
from tvmdash.experiment import plots
from tvmdash.machine.devices import CPU, device_of
from tvmdash.plot_util.specs import Longitudinal, Plot
from tvmdash.series.store import Series
from tvmdash.summary_util import SectionKind, Summary
from tvmdash.text import format_list, three_digits

MEDIAN = "execution_elapsed_ms_median"


def find_rate(record: Record) -> dict[str, float]:
    """Tokens in a second: of a prefill the whole prompt, of a step one for each sequence."""
    args = record.workload_args
    tokens = args["prompt"] if args["phase"] == PREFILL else args["batch"]
    return {"tokens_per_second": tokens / record.additional_info[MEDIAN] * 1e3}


TITLES = {PREFILL: "time to first token", DECODE: "time per output token"}
Rows = Mapping[tuple[str, str], Mapping[str, Series]]
"""Tonight's run times by phase and what is computed, then by engine, variant and device."""


def make_plots(usual: Mapping[str, Plot], history: History) -> dict[str, Plot]:
    """Tonight's times of each phase, each engine beside the others, and lines over nights for each phase.

    `usual` has lines for each network: of prompts that take seconds and of tokens that take milliseconds.
    """
    rows, title = _find_rows(history), f"{history.experiment}, night {history.stamps[-1]}"
    made: dict[str, Plot] = {name: plot for name, plot in usual.items() if not isinstance(plot, Longitudinal)}
    for name, phase in {"tonight": PREFILL, DECODE: DECODE}.items():
        shown = {what: rows[of, what] for of, what in rows if of == phase}
        made[name] = plots.compare_ways(f"{title}: {TITLES[phase]}", shown)
        timed = [
            series
            for series in history.series
            if series.metric == "run_time" and series.labels["workload_args"]["phase"] == phase
        ]
        if timed:
            made.update(plots.longitudinal_plots(history, TITLES[phase], timed))
    return made


def summarize(usual: Summary, history: History) -> Summary:
    """`usual` without its fastest and slowest, which are of unlike work, and with each row's times."""
    lines = []
    for (phase, what), row in _find_rows(history).items():
        times = [f"{how} {three_digits(series.values[-1])}" for how, series in row.items()]
        lines.append(f"- {TITLES[phase]}, {what}: {format_list(times, 8)} ms")
    return usual.without(SectionKind.EXTREMES).with_lines(lines)


def _find_rows(history: History) -> Rows:
    """The prompts first, then the depths."""
    tonight = plots.measured_tonight(history, {"run_time"})
    rows: dict[tuple[str, str], dict[str, Series]] = {}
    for series in sorted(tonight, key=lambda series: series.labels["workload_args"]["phase"] != PREFILL):
        device, args = device_of(series.labels), series.labels["workload_args"]
        place = "" if device == CPU else f"on {device}"
        how = " ".join(filter(None, (series.labels["engine"], series.labels["build_config"].get("variant"), place)))
        rows.setdefault((args["phase"], _describe(str(series.labels["workload"]), args)), {})[how] = series
    return rows


def _describe(workload: str, args: Mapping[str, Any]) -> str:
    """As in `15M float32, prompt 32` and `15M q4f32, depth 512, batch 4`."""
    model = f"{workload.partition('.')[2]} {args['dtype']}"
    if args["phase"] == PREFILL:
        return f"{model}, prompt {args['prompt']}"
    return f"{model}, depth {args['depth']}" + (f", batch {args['batch']}" if args["batch"] > 1 else "")
