"""Times as tokens per second, and what a symbolic length costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvmdash.devices import CPU, device_of
from tvmdash.exp_templates import History
from tvmdash.experiment import plots
from tvmdash.plot_util.specs import Estimate, GroupedBar
from tvmdash.series.store import Series
from tvmdash.summary_util import SectionKind, Summary, format_ratio, geometric_mean_ratio
from tvmdash.text import format_list, three_digits

STATIC, DYNAMIC = "tvm static", "tvm dynamic"
Cells = Mapping[tuple[str, str, int], Mapping[str, Series]]
"""Tonight's run times by model, phase and length, then by engine and kind of shapes."""


def tokens_per_second(args: Mapping[str, Any], ms: float) -> float:
    """A prefill does all tokens of its prompt in one call, a decoding step one."""
    return (args["length"] if args["phase"] == "prefill" else 1) / ms * 1e3


def cells(history: History) -> Cells:
    """Tonight's run times."""
    series_of: dict[tuple[str, str, int], dict[str, Series]] = {}
    for series in plots.measured_tonight(history, {"run_time"}):
        args = series.labels["workload_args"]
        model = str(series.labels["workload"]).partition(".")[2]
        device = device_of(series.labels)
        parts = (series.labels["engine"], series.labels["build_config"].get("shapes"), f"on {device}")
        how = " ".join(map(str, filter(None, parts[:2] if device == CPU else parts)))
        series_of.setdefault((model, args["phase"], args["length"]), {})[how] = series
    return series_of


def plot(history: History) -> GroupedBar:
    """Tokens per second tonight."""
    series_of = cells(history)
    names = tuple(dict.fromkeys(how for row in series_of.values() for how in row))
    rows = tuple(tuple(_estimate(row.get(how)) for how in names) for row in series_of.values())
    groups = tuple(f"{model}, {phase}, {length}" for model, phase, length in series_of)
    title = f"{history.experiment}, night {history.stamps[-1]}"
    return GroupedBar(title, "tokens/s", groups, names, rows, lower_is_better=False)


def _estimate(series: Series | None) -> Estimate | None:
    if series is None:
        return None
    args = series.labels["workload_args"]
    value, low, high = (
        tokens_per_second(args, ms) if ms else None for ms in (series.values[-1], series.high[-1], series.low[-1])
    )
    return Estimate(value, low, high)


def summary(usual: Summary, history: History) -> Summary:
    """`usual` without its fastest and slowest (they are of unlike work), and with the lines of `told`."""
    return usual.without(SectionKind.EXTREMES).with_lines(summarize_history(history))


def summarize_history(history: History) -> list[str]:
    """Tokens per second of each model and phase at the longest prompt, and how dynamic shapes stand to static ones."""
    series_of = cells(history)
    lines = []
    for model, phase in dict.fromkeys(key[:2] for key in series_of):
        length = max(key[2] for key in series_of if key[:2] == (model, phase))
        row = series_of[model, phase, length]
        rates = [f"{how} {_rate(series)}" for how, series in row.items()]
        lines.append(f"- {model}, {phase} {_of(phase, length)}: {format_list(rates, 6)} tokens/s")
    for phase in dict.fromkeys(key[1] for key in series_of):
        pairs = [
            (row[STATIC].values[-1], row[DYNAMIC].values[-1])
            for key, row in series_of.items()
            if key[1] == phase and {STATIC, DYNAMIC} <= row.keys()
        ]
        if pairs:
            lines.append(f"- dynamic against static, {phase}: {format_ratio(geometric_mean_ratio(pairs))}")
    return lines


def _of(phase: str, length: int) -> str:
    return f"of {length} tokens" if phase == "prefill" else f"after {length} tokens"


def _rate(series: Series) -> str:
    return three_digits(tokens_per_second(series.labels["workload_args"], series.values[-1]))
