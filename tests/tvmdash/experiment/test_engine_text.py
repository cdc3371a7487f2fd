"""How TVM stands to its rivals, in the words of a summary."""

from __future__ import annotations

from dataclasses import replace

from tests.golden_files import Golden
from tvmdash.experiment.engine_text import compare_devices, compare_with_each
from tvmdash.series.store import Series


def timed(engine: str, workload: str, value: float, variant: str = "") -> Series:
    labels = {"workload": workload, "engine": engine, "workload_args": {}, "build_config": {"variant": variant}}
    return Series(
        f"{engine}{workload}{variant}", "e", "run_time", "ms", True, labels, ("s",), (value,), (None,), (None,), (None,)
    )


def test_tvms_best_is_compared_with_each_rivals_best_on_what_both_did(golden: Golden) -> None:
    series = [
        timed("tvm", "network.a", 8.0, "untuned"),
        timed("tvm", "network.a", 2.0, "tuned"),
        timed("tvm", "network.b", 8.0),
        timed("ort", "network.a", 1.0),
        timed("ort", "network.b", 2.0),
        timed("torch", "network.a", 4.0),
    ]
    ort, torch = compare_with_each(series)
    golden.messages("engines", [("two rivals", f"{ort}\n{torch}")])
    assert "against ort: 2.83x slower" in ort
    assert "2.00x faster" in torch


def test_an_experiment_of_tvm_alone_has_nothing_to_say() -> None:
    assert compare_with_each([timed("tvm", "network.a", 1.0)]) == []
    assert compare_with_each([timed("ort", "network.a", 1.0)]) == []
    assert compare_with_each([timed("tvm", "network.a", 1.0), timed("ort", "network.b", 1.0)]) == [
        "- TVM and ort have no workload in common; 2 more only one of them did"
    ]


def on_device(series: Series, device: str) -> Series:
    return replace(series, id=f"{series.id}{device}", labels={**series.labels, "runtime_config": {"device": device}})


def test_a_device_is_compared_with_the_processor_and_not_with_the_rivals_there() -> None:
    series = [
        timed("tvm", "network.a", 8.0),
        on_device(timed("tvm", "network.a", 2.0), "opencl"),
        on_device(timed("tvm", "network.b", 2.0), "opencl"),
        timed("ort", "network.a", 1.0),
    ]
    (line,) = compare_with_each(series)
    assert "against ort: 8.00x slower" in line
    assert compare_devices(series) == ["- opencl against cpu: 4.00x faster (1 workload)"]
    assert compare_devices([item for item in series if item.labels.get("runtime_config")]) == []


def test_rivals_on_a_device_are_compared_with_tvm_there() -> None:
    series = [
        timed("tvm", "network.a", 8.0),
        on_device(timed("tvm", "network.a", 2.0), "cuda"),
        on_device(timed("torch cuda", "network.a", 4.0), "cuda"),
    ]
    (line,) = compare_with_each(series)
    assert "torch cuda: 2.00x faster" in line
    assert line.endswith(", on cuda")
