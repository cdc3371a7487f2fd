"""What a record tells beside its identity: it may grow, and every series stays what it was."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tvmdash import records
from tvmdash.errors import DashboardError
from tvmdash.records import description

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
TOLD: Mapping[str, Mapping[str, Any]] = {
    "workload_args": {"inputs": [{"shape": [1, 4, 84, 84], "dtype": "float32"}], "layout": "NCHW"},
    "engine_config": {"llvm": "llvm-22", "compiler": "GCC 14.2.1"},
    "build_config": {"exec_mode": "bytecode"},
    "runtime_config": {"os": "Debian 12", "kernel": "Linux 6.1", "python": "3.11.2"},
}
DEFINITION = "58b9095828ad" + "0" * 52


def yesterday() -> dict[str, Any]:
    value: dict[str, Any] = json.loads((GOLDEN / "data_v1.json").read_text())
    return value


def tonight(told: Mapping[str, Mapping[str, Any]] = TOLD, definition: str = DEFINITION) -> dict[str, Any]:
    """The golden night as it is written since records describe what was measured."""
    value = copy.deepcopy(yesterday())
    for record in value["records"]:
        columns, described = description.describe({name: record[name] for name in description.COLUMNS}, told)
        record.update(columns, workload=description.name_workload(record["workload"], definition))
        record["additional_info"] |= {"described": described, "definition": definition}
    return value


def ids_of(value: Mapping[str, Any]) -> dict[str, str]:
    return {point.key.metric: point.key.id for point in records.values_of(value, "relax_opt", "20261121T031500Z")}


def test_yesterdays_records_and_tonights_are_one_series() -> None:
    known = json.loads((GOLDEN / "series_ids.json").read_text())
    assert ids_of(yesterday()) == known
    assert ids_of(tonight()) == known


def test_another_kernel_compiler_or_definition_begins_no_series() -> None:
    other = {**TOLD, "runtime_config": {"kernel": "Linux 7.0"}, "engine_config": {"compiler": "clang 21", "nvcc": "13"}}
    assert ids_of(tonight(other, "f" * 64)) == ids_of(yesterday())


def test_what_is_varied_is_never_only_described() -> None:
    """The golden record varies the pipeline in engine_config."""
    varied = {"engine_config": {"pipeline": "other", "llvm": "llvm-22"}}
    record = records.Record.from_json(tonight(varied)["records"][0])
    assert record.engine_config == {"pipeline": "zero", "llvm": "llvm-22"}
    assert record.additional_info["described"] == {"engine_config": ["llvm"]}
    assert record.only_identity().engine_config == {"pipeline": "zero"}


def test_a_record_that_describes_nothing_is_told_apart_by_all_that_it_says() -> None:
    """Those that other programs wrote, and ours of before."""
    value = yesterday()
    value["records"][0]["runtime_config"]["os"] = "Debian 12"
    value["records"][0]["workload"] += ":58b9095828ad"
    assert not ids_of(value).items() & ids_of(yesterday()).items()


def test_the_record_tells_what_it_told_and_nothing_that_is_not_known() -> None:
    record = records.Record.from_json(
        tonight({"runtime_config": {"os": "Debian 12", "cuda": None, "flags": {}}})["records"][0]
    )
    assert record.workload == "network.nature-dqn:58b9095828ad"
    assert record.runtime_config == {"threads": 1, "os": "Debian 12"}
    assert record.labels["runtime_config"] == {"threads": 1}
    assert record.labels["workload"] == "network.nature-dqn"


@pytest.mark.parametrize("described", [["os"], {"env_name": ["x"]}, {"runtime_config": "os"}, {"runtime_config": [1]}])
def test_a_description_that_is_none_is_refused(described: object) -> None:
    value = yesterday()
    value["records"][0]["additional_info"]["described"] = described
    with pytest.raises(DashboardError, match=r"additional_info\.described"):
        records.check_data(value)


@pytest.mark.parametrize(
    ("version", "commit", "name"),
    [("0.27.0.post1", "7b5acb32b", "0.27.0.post1:7b5acb32b"), ("1.0", "1.0", "1.0"), ("1.31.1", "", "1.31.1")],
)
def test_an_engines_version_has_its_commit(version: str, commit: str, name: str) -> None:
    assert description.name_version(version, commit) == name
