"""A real search of a few trials, its database used by cnn_comp: minutes, most of them the starts of TVM's builders."""

from __future__ import annotations

import pytest

from tests.experiments import trying

pytestmark = [pytest.mark.usefixtures("tvm_artifact"), pytest.mark.slow]


def test_cnn_comp_measures_what_tuning_found(tmp_path):
    place = {"TVMDASH_TUNING": str(tmp_path / "databases"), "TVMDASH_ARTIFACT": "build"}
    tuning = trying.Tried(tmp_path / "tuning", "tuning", {"trials": [0, 4], "number": 1})
    tuning.set_up()
    data = tuning.measured(**place)
    assert not data.failures
    by_point = {(record.workload, record.build_config["trials"]): record.additional_info for record in data.records}
    assert by_point.keys() == {("tuning.search_mlp", 4), ("network.mlp", 0), ("network.mlp", 4)}
    assert by_point["tuning.search_mlp", 4]["trials_made"] == 4
    assert by_point["network.mlp", 4]["kernels_scheduled"] > 0
    assert by_point["network.mlp", 4]["module_hash"] != by_point["network.mlp", 0]["module_hash"]
    assert "the search took" in tuning.told()

    rivals = trying.Tried(
        tmp_path / "cnn_comp", "cnn_comp", {"networks": ["mlp"], "engines": ["tvm tuned"], "number": 1}
    )
    (record,) = rivals.measured(**place).records
    assert record.additional_info["module_hash"] == by_point["network.mlp", 4]["module_hash"]
    assert record.additional_info["tuning"]["trials"] == 4
