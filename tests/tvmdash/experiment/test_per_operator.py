"""The operators of a network as records of their own, their sum, and what is compared without them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tvmdash.experiment import per_operator
from tvmdash.measure.capture import OperatorSpan
from tvmdash.records import Record

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "data_v1.json"


def network() -> Record:
    return Record.from_json(json.loads(GOLDEN.read_text())["records"][0])


def trial(**operators: list[float]) -> Any:
    return SimpleNamespace(facts={"operators": operators} if operators else {})


def test_the_calls_of_a_run_are_added_and_the_machines_own_are_one_operator() -> None:
    spans = [
        OperatorSpan(0, "vm.builtin.alloc_storage", 0, 1_000),
        OperatorSpan(0, "dense", 1, 2_000_000),
        OperatorSpan(0, "dense", 2, 1_000_000),
        OperatorSpan(0, "vm.builtin.null_value", 3, 500),
        OperatorSpan(3, "dense", 4, 5_000_000),
    ]
    assert per_operator.sum_up(spans) == {"vm.builtin": [0.0015, 0.0], "dense": [3.0, 5.0]}


def test_each_operator_is_a_record_beside_the_network_which_tells_their_sum() -> None:
    whole, dense, softmax = per_operator.split(
        network(), [trial(dense=[9.0, 10.0, 11.0], softmax=[1.0, 1.0, 1.0]), trial(dense=[12.0] * 3, softmax=[2.0] * 3)]
    )
    median = network().additional_info["execution_elapsed_ms_median"]
    told = whole.additional_info["operators"]
    assert told == {"count": 2, "sum_ms": 12.5, "of_run_time": 12.5 / median}
    assert replace(whole, additional_info=network().additional_info) == network()
    assert [record.workload_args["operator"] for record in (dense, softmax)] == ["dense", "softmax"]
    assert dense.additional_info["execution_elapsed_ms_median"] == 11.5
    assert (dense.additional_info["samples"], dense.additional_info["processes"]) == (6, 2)
    assert {metric.name for metric, _ in dense.metrics()} == {"run_time"}, (
        "what the network costs is not the operator's"
    )
    assert per_operator.name_whole(dense.labels) == per_operator.name_whole(whole.labels)
    assert per_operator.is_operator(dense.labels)
    assert not per_operator.is_operator(whole.labels)


def test_an_operator_that_a_process_did_not_call_is_left_out() -> None:
    names = [
        record.workload_args.get("operator")
        for record in per_operator.split(network(), [trial(a=[1.0], b=[1.0]), trial(a=[1.0])])
    ]
    assert names == [None, "a"]


def test_a_network_that_was_not_watched_stays_as_it_was() -> None:
    assert per_operator.split(network(), [trial()]) == [network()]


@pytest.mark.parametrize(
    ("config", "asked"), [({}, False), ({"per_operator": False}, False), ({"per_operator": True}, True)]
)
def test_nothing_is_watched_unless_it_is_asked_for(config: dict[str, bool], asked: bool) -> None:
    assert per_operator.is_asked(config) is asked
