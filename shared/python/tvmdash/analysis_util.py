"""From the samples of trials to records."""

from __future__ import annotations

import datetime
import json
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvmdash.capture import Trial
from tvmdash.records import SCHEMA_VERSION, Failure, Record

UNSTABLE_SHARE = 0.10
BUSY_LOAD_PER_CORE = 0.7


@dataclass(frozen=True)
class Reduced:
    """The samples of one point in a few numbers, all in ms; `low` and `high` bound the median with 95 % confidence."""

    median: float
    mean: float
    std: float
    min: float
    low: float | None
    high: float | None
    count: int


def reduce_samples(samples: Sequence[float]) -> Reduced:
    """Reduce samples in ms. Outliers are kept; the median is what is compared.

    The interval is that of order statistics, distribution-free: Hettmansperger & Sheather 1986 without the
    interpolation. Fewer than six samples give none.
    """
    ordered = sorted(samples)
    low, high = median_interval(ordered)
    return Reduced(
        median=statistics.median(ordered),
        mean=statistics.fmean(ordered),
        std=statistics.stdev(ordered) if len(ordered) > 1 else 0.0,
        min=ordered[0],
        low=low,
        high=high,
        count=len(ordered),
    )


def median_interval(ordered: Sequence[float]) -> tuple[float | None, float | None]:
    """The narrowest symmetric pair of order statistics that holds the median with at least 95 % probability."""
    count = len(ordered)
    outside, below = 0.0, 0
    while below < count // 2:
        outside += 2 * math.comb(count, below) / 2**count
        if outside > 0.05:
            break
        below += 1
    return (ordered[below - 1], ordered[count - below]) if below else (None, None)


def reduce(trials: Iterable[Trial]) -> tuple[list[Record], list[Failure]]:
    """One record for each point that has an answer to trust, one failure for each that has not.

    A point measured in several trials gives one record of all their samples; if one of them was wrong, it failed.
    """
    by_point: dict[str, list[Trial]] = {}
    for trial in trials:
        by_point.setdefault(json.dumps(trial.point, sort_keys=True), []).append(trial)
    records, failures = [], []
    for group in by_point.values():
        wrong = next((trial for trial in group if trial.error), None)
        if wrong is not None:
            failures.append(Failure(wrong.point["workload"], wrong.point["values"], wrong.error or ""))
        else:
            records.append(_record(group))
    return records, failures


def _record(trials: Sequence[Trial]) -> Record:
    first = trials[0]
    samples = [sample.ms for trial in trials for sample in trial.samples]
    reduced = reduce_samples(samples)
    machine = first.process["machine"]
    columns = first.point["columns"]
    facts = first.facts
    info = {
        "docker_tag": machine["docker_tag"],
        "docker_hash": machine["docker_hash"],
        "execution_elapsed_ms_median": reduced.median,
        "execution_elapsed_ms_min": reduced.min,
        "execution_elapsed_ms_low": reduced.low,
        "execution_elapsed_ms_high": reduced.high,
        "samples": reduced.count,
        "doubts": doubts(reduced, [trial.facts for trial in trials], len(machine["affinity"])),
        **{
            name: value
            for name, value in facts.items()
            if name not in {"load_before", "load_after", "execution_config"}
        },
        "load_before": facts["load_before"],
        "load_after": trials[-1].facts["load_after"],
    }
    started = datetime.datetime.fromtimestamp(first.started_ns // 10**9, datetime.timezone.utc)
    return Record(
        timestamp=started.isoformat(),
        schema_version=SCHEMA_VERSION,
        additional_info={
            name: value for name, value in info.items() if value is not None or name.startswith("docker_")
        },
        workload=first.point["workload"],
        workload_args=columns["workload_args"],
        engine=first.point["engine"],
        engine_version=first.process["engine"]["version"],
        engine_config=columns["engine_config"],
        target=first.point["target"],
        build_config=columns["build_config"],
        env_name=first.process["env_name"],
        hw_model=machine["hw_model"],
        runtime_config=columns["runtime_config"],
        execution_config=facts["execution_config"],
        execution_elapsed_ms_mean=reduced.mean,
        execution_elapsed_ms_std=reduced.std,
    )


def doubts(reduced: Reduced, facts: Sequence[Mapping[str, Any]], cores: int) -> list[str]:
    """What makes a number doubtful, in words."""
    found = []
    if reduced.mean and reduced.std / reduced.mean > UNSTABLE_SHARE:
        found.append(f"may be unstable: the standard deviation is {reduced.std / reduced.mean:.0%} of the mean")
    busiest = max(fact["load_before"]["load_1_min"] for fact in facts)
    if busiest > BUSY_LOAD_PER_CORE * cores + 1:
        found.append(f"the machine was busy: load {busiest:.1f} on {cores} cores before the trial")
    if reduced.count < 6:
        found.append(f"only {reduced.count} samples: the median has no 95 % interval")
    return found
