"""The operators of a network as records of their own, and how their sum stands to the network's time.

Asked for by the config field `per_operator`: every process then watches `RUNS` runs. A watched run is slower by some
microseconds a call, so the sum may exceed the time end to end. What the virtual machine does itself is one operator.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from tvmdash import analysis_util
from tvmdash.analysis_util import OPERATORS
from tvmdash.config_util import Config, values_of
from tvmdash.measure.capture import OperatorSpan, Trial
from tvmdash.measure.reduction import reduce_processes
from tvmdash.records import Record

FIELD = "per_operator"
AXIS = "operator"
"""Name of an operator in workload_args, which only records of operators have."""
RUNS = 10
_OF_MACHINE, _MACHINE = "vm.builtin.", "vm.builtin"


def is_asked(config: Config) -> bool:
    """Return True where the config asks for records of operators."""
    return bool(values_of(config).get(FIELD))


def sum_up(spans: Sequence[OperatorSpan]) -> dict[str, list[float]]:
    """Return, by operator, the milliseconds of all its calls in each run."""
    runs = {repetition: index for index, repetition in enumerate(sorted({span.repetition for span in spans}))}
    times: dict[str, list[float]] = defaultdict(lambda: [0.0] * len(runs))
    for span in spans:
        name = _MACHINE if span.name.startswith(_OF_MACHINE) else span.name
        times[name][runs[span.repetition]] += span.duration_ns / 1e6
    return dict(times)


def split(record: Record, trials: Sequence[Trial]) -> list[Record]:
    """Return the record, completed by the operators' sum, and one of each operator; the record alone without any."""
    taken = [trial.facts[OPERATORS] for trial in trials if trial.facts.get(OPERATORS)]
    if not taken:
        return [record]
    names = [name for name in taken[0] if all(name in times for times in taken)]
    operators = [_make_record(record, name, [times[name] for times in taken]) for name in names]
    whole = median(median(map(sum, zip(*times.values(), strict=True))) for times in taken)
    told = {"count": len(names), "sum_ms": whole, "of_run_time": whole / record.additional_info[_MEDIAN]}
    return [replace(record, additional_info={**record.additional_info, OPERATORS: told}), *operators]


_MEDIAN = "execution_elapsed_ms_median"
_KEPT = ("docker_tag", "docker_hash", "described", "conditions", "device", "load_before", "load_after")


def _make_record(record: Record, name: str, processes: Sequence[Sequence[float]]) -> Record:
    reduced = reduce_processes(processes)
    info = {item: record.additional_info[item] for item in _KEPT if item in record.additional_info}
    return replace(
        record,
        workload_args={**record.workload_args, AXIS: name},
        additional_info={**info, **_drop_unknown(analysis_util.describe_statistics(reduced))},
        execution_config={**record.execution_config, "number": 1, "repeat": len(processes[0])},
        execution_elapsed_ms_mean=reduced.mean,
        execution_elapsed_ms_std=reduced.std,
    )


def _drop_unknown(info: Mapping[str, Any]) -> dict[str, Any]:
    return {name: item for name, item in info.items() if item is not None}


def is_operator(labels: Mapping[str, Any]) -> bool:
    """Return True where a series with these labels is of a single operator."""
    args = labels.get("workload_args")
    return isinstance(args, Mapping) and AXIS in args


def name_whole(labels: Mapping[str, Any]) -> str:
    """Return a key common to the series of a network and those of its operators."""
    args = {name: item for name, item in labels["workload_args"].items() if name != AXIS}
    return json.dumps({**labels, "workload_args": args}, sort_keys=True)
