"""The last night as a text file for node_exporter's textfile collector.

Format: https://prometheus.io/docs/instrumenting/exposition_formats/ (text format 0.0.4).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tvmdash import common
from tvmdash.dashboard_info import COMPLETE, Night
from tvmdash.verdict import Level, NightVerdict

_PREFIX = "tvm_dashboard"


@dataclass(frozen=True)
class Gauge:
    """A metric: what it is, and its value by labels."""

    name: str
    description: str
    values: tuple[tuple[Mapping[str, str], float], ...]

    def format_lines(self) -> Iterator[str]:
        name = f"{_PREFIX}_{self.name}"
        yield f"# HELP {name} {self.description}"
        yield f"# TYPE {name} gauge"
        for labels, value in self.values:
            inside = ",".join(f'{key}="{_escape(text)}"' for key, text in labels.items())
            yield f"{name}{{{inside}}} {value:.15g}" if inside else f"{name} {value:.15g}"


def write_metrics(path: Path, home: Path, night: Night, verdict: NightVerdict | None) -> None:
    """Replace the file at once, so that no scrape reads half of it; its folder must be there."""
    text = "".join(f"{line}\n" for gauge in list_gauges(home, night, verdict) for line in gauge.format_lines())
    common.write_bytes(path, text.encode("utf-8", errors="replace"))


def list_gauges(home: Path, night: Night, verdict: NightVerdict | None) -> list[Gauge]:
    """List the metrics of a night. Its age is `time() - tvm_dashboard_night_start_seconds`."""
    of = {"home": home.name}
    begun = common.parse_stamp(night.stamp).timestamp()
    states: dict[str, int] = {}
    for job in night.jobs:
        states[job.state] = states.get(job.state, 0) + 1
    gauges = [
        Gauge("night_start_seconds", "Start time of the last night, in seconds since 1970.", ((of, begun),)),
        Gauge("night_duration_seconds", "Duration of the last night.", ((of, night.elapsed_s),)),
        Gauge("night_complete", "1 if the last night ran to completion.", ((of, float(night.state == COMPLETE)),)),
        Gauge("jobs", "Jobs of the last night by state.", tuple(({**of, "state": s}, n) for s, n in states.items())),
        Gauge(
            "job_duration_seconds",
            "Duration of each job of the last night.",
            tuple(({**of, "kind": j.kind, "job": j.name}, sum(s.elapsed_s for s in j.steps)) for j in night.jobs),
        ),
    ]
    return gauges + (_list_verdict(of, verdict) if verdict else [])


def _list_verdict(of: Mapping[str, str], verdict: NightVerdict) -> list[Gauge]:
    levels = tuple(({**of, "level": level.value}, float(verdict.level is level)) for level in Level)
    missing = verdict.expected - verdict.seen
    series = {"expected": verdict.expected, "seen": verdict.seen, "missing": missing, "blind": verdict.blind}
    ids = {"new": verdict.new, "open": verdict.open, "improved": verdict.improved}
    incidents = tuple(({**of, "kind": kind}, float(len(each))) for kind, each in ids.items())
    return [
        Gauge("level", "1 for the verdict of the last night.", levels),
        Gauge("series", "Series of the last night.", tuple(({**of, "kind": k}, n) for k, n in series.items())),
        Gauge("incidents", "Incidents after the last night.", incidents),
    ]


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
