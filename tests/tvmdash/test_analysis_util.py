"""From samples to records: intervals that cover, doubts in words, failures that stay failures."""

from __future__ import annotations

import dataclasses

import pytest

from tvmdash import analysis_util
from tvmdash.measure.capture import Sample, Trial
from tvmdash.measure.reduction import DoubtKind

LOAD = {"load_1_min": 0.1}
PROCESS = {
    "machine": {"docker_tag": None, "docker_hash": None, "cores": 2, "hw_model": "cpu x 2"},
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


def test_the_processes_of_one_point_are_put_together() -> None:
    (record,), _ = analysis_util.reduce([trial("a", [100, 100, 100]), trial("a", [102, 102, 102])])
    info = record.additional_info
    assert (info["samples"], info["processes"], info["spread_within_percent"]) == (6, 2, 0)
    assert record.execution_elapsed_ms_mean == 101
    assert info["execution_elapsed_ms_low"] < 100
    assert info["execution_elapsed_ms_high"] > 102


def test_compile_time_is_the_middle_one_of_the_processes() -> None:
    trials = [
        dataclasses.replace(item, facts={**item.facts, "compile_time": ms})
        for ms, item in zip([9.0, 1.0, 2.0], [trial("a", [1.0])] * 3, strict=True)
    ]
    (record,), _ = analysis_util.reduce(trials)
    assert record.additional_info["compile_time"] == 2


def test_what_ended_a_measurement_is_in_the_record() -> None:
    (record,), _ = analysis_util.reduce([trial("a", [1.0]), trial("a", [2.0])], lambda trials, _: f"{len(trials)} seen")
    assert record.additional_info["ended_by"] == "2 seen"


def test_failures_name_their_engine_where_there_are_several() -> None:
    wrong = [trial("a", [], error="wrong answer")]
    (plain,), (named,) = (analysis_util.reduce(wrong, name_engines=several)[1] for several in (False, True))
    assert (plain.values, named.values) == ({"n": "a"}, {"engine": "e", "n": "a"})


def test_a_point_with_one_wrong_trial_is_a_failure_and_never_a_record() -> None:
    records, failures = analysis_util.reduce(
        [trial("a", [1.0]), trial("a", [], error="wrong answer"), trial("b", [2.0])]
    )
    assert [record.workload_args for record in records] == [{"n": "b"}]
    assert [(failure.values, failure.error) for failure in failures] == [({"n": "a"}, "wrong answer")]


def test_one_sample_is_a_record_without_a_deviation() -> None:
    (record,), _ = analysis_util.reduce([trial("a", [2.5])])
    assert record.execution_elapsed_ms_std == 0


def test_an_unstable_point_and_a_busy_machine_are_said_in_words() -> None:
    (record,), _ = analysis_util.reduce([trial("a", [1, 1, 1, 1, 1, 1, 9], load=7.5)])
    doubts = " ".join(record.additional_info["doubts"])
    assert {DoubtKind.UNSTABLE, DoubtKind.BUSY_MACHINE} <= {*record.additional_info["doubt_kinds"]}
    assert len(record.additional_info["doubt_kinds"]) == len(record.additional_info["doubts"])
    assert "may be unstable: standard deviation is" in doubts
    assert "the machine was busy: load 7.5 on 2 cores" in doubts


@pytest.mark.parametrize(
    ("sizes", "alike"), [([20480, 20480], {"code_size": 2}), ([20480, 20481], {"code_size": 0}), ([20480], None)]
)
def test_a_size_proves_itself_exact_by_processes_that_agree(sizes: list[int], alike: dict[str, int] | None) -> None:
    one = trial("a", [1.0])
    (record,), _ = analysis_util.reduce(
        [dataclasses.replace(one, facts={**one.facts, "code_size": size}) for size in sizes]
    )
    expected = {**alike, "max_error": 2} if alike else alike
    assert record.additional_info.get("alike") == expected


def test_a_sum_over_functions_is_exact_only_where_each_of_them_is() -> None:
    one = trial("a", [1.0])
    functions = [{"f": {"registers": count}, "g": {"registers": 70 - count}} for count in (40, 41)]
    both = [{**one.facts, "registers": 70, "kernels": 2, "functions": each} for each in functions]
    (record,), _ = analysis_util.reduce([dataclasses.replace(one, facts=facts) for facts in both])
    assert record.additional_info["alike"] == {"registers": 0, "kernels": 2, "max_error": 2}
