"""What runs on a device: small networks, and ResNet-18's convolutions one by one."""

from __future__ import annotations

import functools

from tvmdash import networks
from tvmdash.networks import INPUT, Network, Node
from tvmdash.networks import layers as network_layers
from tvmdash.networks.ops import Array


@functools.cache
def layers() -> dict[str, Network]:
    """The different convolutions of ResNet-18 as networks of one node."""
    convolutions = network_layers.resnet18_convolutions().items()
    return {name: Network(name, shape, (Node("conv", op, (INPUT,)),)) for name, (op, shape) in convolutions}


@functools.lru_cache(maxsize=1)
def problem(name: str, seed: int) -> tuple[Network, dict[str, Array], Array, Array]:
    """A network or layer, its weights, an input and the reference answer."""
    network = layers()[name] if name in layers() else networks.NETWORKS[name]()
    weights, x = networks.make_weights(network, seed), networks.make_input(network, seed)
    return network, weights, x, networks.reference(network, weights, x)
