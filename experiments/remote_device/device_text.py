"""How the devices stand to one another, in words."""

from __future__ import annotations

from tvmdash.experiment import plots
from tvmdash.experiment.info import History
from tvmdash.summary_util import format_ratio, geometric_mean_ratio


def summarize_history(history: History) -> list[str]:
    """A line for each device but the first: its times against the first one's, over the workloads of both."""
    times: dict[str, dict[str, float]] = {}
    for series in plots.measured_tonight(history, {"run_time"}):
        device = series.labels["runtime_config"]["device"]
        times.setdefault(device, {})[str(series.labels["workload"])] = series.values[-1]
    if not times:
        return []
    first, *others = times
    lines = []
    for device in others:
        pairs = [(times[first][name], ms) for name, ms in times[device].items() if name in times[first]]
        if pairs:
            lines.append(f"- {device} against {first}: {format_ratio(geometric_mean_ratio(pairs))}")
    return lines
