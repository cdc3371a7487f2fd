"""Each way down from a network knows every operator; tests/experiments/test_cnn_comp.py compares what comes out."""

from __future__ import annotations

import pytest

from tvmdash.networks import NETWORKS, to_onnx, to_torch
from tvmdash.relax_util import lowering


@pytest.mark.parametrize("lowerings", [lowering, to_onnx, to_torch], ids=lambda module: module.__name__)
def test_every_operator_of_every_network_has_its_row(lowerings):
    used = {type(node.op) for network in NETWORKS.values() for node in network().nodes}
    assert used == set(lowerings.LOWERINGS)
