"""What runs on a device: small networks, and ResNet-18's convolutions one by one."""

from __future__ import annotations

import functools

from tvmdash import networks
from tvmdash.network_ops import Array, Conv2d
from tvmdash.networks import INPUT, Network, Node


@functools.cache
def layers() -> dict[str, Network]:
    """The different convolutions of ResNet-18 as networks of one node, `resnet18_c1` and on in the order of the net."""
    whole = networks.resnet18()
    shapes = whole.shapes()
    convolutions = [(node.op, shapes[node.inputs[0]][1:]) for node in whole.nodes if isinstance(node.op, Conv2d)]
    return {
        f"resnet18_c{number}": Network(f"resnet18_c{number}", shape, (Node("conv", op, (INPUT,)),))
        for number, (op, shape) in enumerate(dict.fromkeys(convolutions), start=1)
    }


@functools.lru_cache(maxsize=1)
def problem(name: str, seed: int) -> tuple[Network, dict[str, Array], Array, Array]:
    """A network or layer, its weights, an input and the reference answer."""
    network = layers()[name] if name in layers() else networks.NETWORKS[name]()
    weights, x = networks.make_weights(network, seed), networks.make_input(network, seed)
    return network, weights, x, networks.reference(network, weights, x)
