"""Networks as lists of operators, which each engine lowers in its own way."""

from __future__ import annotations

from tvmdash.networks.definitions import (
    INITIALISERS,
    INPUT,
    NETWORKS,
    Network,
    Node,
    dcgan,
    dqn,
    make_input,
    make_weights,
    mlp,
    mobilenet_v2,
    node_weights,
    reference,
    resnet18,
    squeezenet,
    vgg16,
)

__all__ = [
    "INITIALISERS",
    "INPUT",
    "NETWORKS",
    "Network",
    "Node",
    "dcgan",
    "dqn",
    "make_input",
    "make_weights",
    "mlp",
    "mobilenet_v2",
    "node_weights",
    "reference",
    "resnet18",
    "squeezenet",
    "vgg16",
]
