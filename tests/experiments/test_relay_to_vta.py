"""relay_to_vta without a TVM that has both: its arithmetic, its tile sizes, what it says of today's TVM."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.experiments.trying import EXPERIMENTS, Tried, config_of, modules
from tvmdash import config_util
from tvmdash.errors import DashboardError
from tvmdash.networks.layers import resnet18_convolutions

OWN = modules("relay_to_vta")
CONFIG = config_of(OWN.relay_to_vta.RelayToVta, "relay_to_vta", targets=["sim", "pynq"], layers=[2, 11])


def test_a_layers_answer_is_that_of_the_definition() -> None:
    given = OWN.vta_device.make_problem("resnet18_c9", 0)
    assert given.macs == 512 * 7 * 7 * 256 * 3 * 3
    padded = np.pad(given.x.astype(int), ((0, 0), (1, 1), (1, 1)))
    for channel, row, column in ((0, 0, 0), (17, 3, 6), (511, 6, 2)):
        window = padded[:, 2 * row : 2 * row + 3, 2 * column : 2 * column + 3]
        total = int((window * given.weight[channel].astype(int)).sum())
        assert given.expected[channel, row, column] == min(127, max(0, total >> OWN.vta_device.SHIFT))
    assert np.unique(given.expected).size > 20
    assert 0.02 < (given.expected == 127).mean() < 0.5


def test_blocks_hold_the_channels_in_their_order() -> None:
    x = np.arange(32 * 2 * 3).reshape(32, 2, 3)
    assert OWN.vta_device.packed(x).shape == (1, 2, 2, 3, 1, 16)
    assert OWN.vta_device.packed(x)[0, 1, 0, 2, 0, 5] == x[21, 0, 2]
    assert (OWN.vta_device.unpacked(OWN.vta_device.packed(x)) == x).all()
    weight = np.arange(32 * 16 * 9).reshape(32, 16, 3, 3)
    assert OWN.vta_device.packed_weight(weight).shape == (2, 1, 3, 3, 16, 16)
    assert OWN.vta_device.packed_weight(weight)[1, 0, 2, 1, 3, 4] == weight[19, 4, 2, 1]


def test_each_layer_that_a_config_may_name_has_its_tile_sizes() -> None:
    lines = OWN.vta_device.TILES.read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line)["input"][2] for line in lines if not line.startswith("#")]
    told = {(row[0][1][1] * 16, row[0][1][2], row[1][1][0] * 16, row[1][1][2], row[2][0], row[3][0]) for row in rows}
    wanted = set()
    fields = config_util.read_fields(EXPERIMENTS / "relay_to_vta" / "fields.json")
    for number in fields["layers"].default:
        op, (channels, size, _) = resnet18_convolutions()[f"resnet18_c{number}"]
        wanted.add((channels, size, op.channels, op.kernel, op.stride, op.padding))
    assert told == wanted
    assert len(rows) == len(fields["layers"].default)


def test_a_target_has_a_process_of_its_own_and_a_board_needs_a_tracker() -> None:
    points = OWN.relay_to_vta.RelayToVta().points(CONFIG)
    assert [(point.group, point.workload) for point in points] == [
        (target, f"layer.resnet18_c{number}") for target in ("sim", "pynq") for number in (2, 11)
    ]
    with pytest.raises(DashboardError, match=r"\$\.tracker_host: it is empty; pynq is asked for"):
        OWN.relay_to_vta._remote("pynq", CONFIG)


def test_a_bitstream_that_is_not_there_is_named_before_a_board_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(DashboardError, match=r"\$\.bitstreams\.pynq: .*/none\.bit: no such file"):
        OWN.vta_device.board("pynq", ("127.0.0.1", 9), 1.0, str(tmp_path / "none.bit"))


def test_bytes_moved_are_the_sum_of_what_was_loaded_and_stored() -> None:
    counts = {"inp_load_nbytes": 5, "out_store_nbytes": 7, "gemm_counter": 1000}
    told = OWN.relay_to_vta._counted(SimpleNamespace(counted=lambda: counts))
    assert told == {"memory_traffic": 12, "simulator": counts}
    assert OWN.relay_to_vta._counted(SimpleNamespace(counted=dict)) == {}


@pytest.mark.usefixtures("tvm_artifact")
def test_on_todays_tvm_it_fails_and_says_which_one_it_needs(tmp_path: Path) -> None:
    tried = Tried(tmp_path, "relay_to_vta", {"layers": [9, 11]})
    tried.set_up()
    status = tried.stage("run", "raw")
    assert not status["success"]
    assert "None of 2 points could be measured" in status["message"]
    assert "has no Relay or no VTA" in status["message"]
    assert '"tvm_branch": "refs/tags/v0.18.0"' in status["message"]
