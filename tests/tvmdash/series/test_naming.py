"""What series are called: once, and the same everywhere."""

from __future__ import annotations

from typing import Any

from tvmdash.series import naming
from tvmdash.series.store import Outline


def outline(number: int, metric: str = "run_time", unit: str = "ms", experiment: str = "opt", **labels: Any) -> Outline:
    name = f"{number:016x}"
    return Outline(number, name, experiment, metric, unit, direction="lower", labels=labels)


def test_a_name_has_what_tells_the_series_from_the_others_of_its_experiment() -> None:
    series = [
        outline(1, workload="network.mlp", build_config={"opt_level": 3, "same": 1}, engine="tvm"),
        outline(2, workload="network.mlp", build_config={"opt_level": 0, "same": 1}, engine="tvm"),
        outline(3, "compile_time", workload="network.mlp", build_config={"opt_level": 3}, engine="tvm"),
        outline(4, "value", experiment="foreign", path="$.gpu.O3"),
    ]
    assert naming.names(series) == [
        "opt mlp run time (opt_level 3)",
        "opt mlp run time (opt_level 0)",
        "opt mlp compile time",
        "foreign $.gpu.O3",
    ]


def test_names_that_would_be_the_same_have_their_ids() -> None:
    series = [outline(at << 40, workload="network.mlp", target=target) for at, target in ((1, "a"), (2, "b"))]
    assert naming.names(series) == ["opt mlp run time [000001]", "opt mlp run time [000002]"]


def test_a_metric_whose_unit_changes_gets_another_key() -> None:
    series = [outline(1, "size", "bytes"), outline(2), outline(1, "size", "kB")]
    assert naming.keys(series) == [f"{1:016x}", f"{2:016x}", f"{1:016x}~kB"]


def test_fleets_are_machines_and_kinds() -> None:
    machine = {"hw_model": "EPYC", "env_name": "lab"}
    assert naming.fleet(outline(1, **machine)) == "times on EPYC, lab"
    assert naming.fleet_kind(outline(1, **machine)) == "times"
    assert naming.fleet(outline(1, unit="bytes", **machine)) == "sizes on EPYC, lab"
    assert naming.fleet(outline(1, path="$.a")) == "numbers of opt"
    assert naming.fleet(outline(1, "accuracy", unit="", **machine)) == "numbers of opt", "no machine moves an accuracy"


def test_a_key_with_its_unit_leads_back_to_the_id_and_names_files() -> None:
    assert naming.key_of("0123456789abcdef", "ms") == "0123456789abcdef~ms"
    assert naming.id_of("0123456789abcdef~ms") == naming.id_of("0123456789abcdef") == "0123456789abcdef"
    assert naming.file_name_of("0123456789abcdef") == "0123456789abcdef"
    assert naming.file_name_of("0123456789abcdef~ms") == "0123456789abcdef~ms"
    odd = naming.file_name_of("0123456789abcdef~GB/s")
    assert odd == "0123456789abcdef~160ede02"  # as sites of before have named it
