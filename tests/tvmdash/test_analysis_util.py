"""From samples to records: intervals that cover, doubts in words, failures that stay failures."""

from __future__ import annotations

import numpy as np
import pytest

from tvmdash import analysis_util
from tvmdash.capture import Sample, Trial

LOAD = {"load_1_min": 0.1}
PROCESS = {
    "machine": {"docker_tag": None, "docker_hash": None, "affinity": [0, 1], "hw_model": "cpu x 2"},
    "env_name": "default",
    "engine": {"version": "1", "tvm_hash": "abc"},
}


def trial(name: str, times_ms: list[float], *, error: str | None = None, load: float = 0.1) -> Trial:
    columns = {"workload_args": {"n": name}, "engine_config": {}, "build_config": {}, "runtime_config": {}}
    point = {"workload": "t.x", "values": {"n": name}, "engine": "e", "target": "cpu", "columns": columns}
    facts = {
        "load_before": {"load_1_min": load},
        "load_after": LOAD,
        "execution_config": {"number": 1},
        "max_error": 0.5,
    }
    samples = tuple(Sample(round(value * 1e6), 1) for value in times_ms)
    return Trial(point, 10**18, 10**18, error, facts, samples, PROCESS)


def test_a_point_becomes_one_record_with_all_its_numbers() -> None:
    (record,), failures = analysis_util.reduce([trial("a", [1, 2, 3, 4, 5, 6, 7])])
    assert not failures
    info = record.additional_info
    assert (info["execution_elapsed_ms_median"], info["execution_elapsed_ms_min"], info["samples"]) == (4, 1, 7)
    assert record.execution_elapsed_ms_mean == 4
    assert record.execution_elapsed_ms_std == pytest.approx(2.160, abs=1e-3)
    assert info["docker_tag"] is None
    assert info["max_error"] == 0.5
    assert record.timestamp == "2001-09-09T01:46:40+00:00"


def test_trials_of_one_point_are_put_together() -> None:
    (record,), _ = analysis_util.reduce([trial("a", [1, 1, 1]), trial("a", [3, 3, 3])])
    assert record.additional_info["samples"] == 6
    assert record.execution_elapsed_ms_mean == 2


def test_a_point_with_one_wrong_trial_is_a_failure_and_never_a_record() -> None:
    records, failures = analysis_util.reduce(
        [trial("a", [1.0]), trial("a", [], error="wrong answer"), trial("b", [2.0])]
    )
    assert [record.workload_args for record in records] == [{"n": "b"}]
    assert [(failure.values, failure.error) for failure in failures] == [({"n": "a"}, "wrong answer")]


@pytest.mark.parametrize("count", [6, 10, 25])
def test_the_interval_of_the_median_covers_as_often_as_it_says(count: int) -> None:
    generator = np.random.default_rng(1)
    inside = 0
    for _ in range(2000):
        low, high = analysis_util.median_interval(sorted(generator.exponential(size=count)))
        assert low is not None
        assert high is not None
        inside += low <= np.log(2) <= high
    assert inside / 2000 >= 0.94


def test_fewer_than_six_samples_have_no_interval_and_say_so() -> None:
    reduced = analysis_util.reduce_samples([1, 2, 3, 4, 5])
    assert (reduced.low, reduced.high) == (None, None)
    (record,), _ = analysis_util.reduce([trial("a", [1, 1, 1])])
    assert "only 3 samples" in record.additional_info["doubts"][0]
    assert "execution_elapsed_ms_low" not in record.additional_info


def test_one_sample_is_a_record_without_a_deviation() -> None:
    (record,), _ = analysis_util.reduce([trial("a", [2.5])])
    assert record.execution_elapsed_ms_std == 0


def test_an_unstable_point_and_a_busy_machine_are_said_in_words() -> None:
    (record,), _ = analysis_util.reduce([trial("a", [1, 1, 1, 1, 1, 1, 9], load=7.5)])
    doubts = " ".join(record.additional_info["doubts"])
    assert "may be unstable: the standard deviation is" in doubts
    assert "the machine was busy: load 7.5 on 2 cores" in doubts
