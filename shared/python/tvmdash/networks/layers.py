"""The layers of a network, each alone."""

from __future__ import annotations

import functools

from tvmdash.networks import definitions
from tvmdash.networks.ops import Conv2d, Shape


@functools.cache
def resnet18_convolutions() -> dict[str, tuple[Conv2d, Shape]]:
    """The different convolutions of ResNet-18 with the shapes of their inputs (channels, height, width).

    They are named `resnet18_c1` and on, in the order of the network.
    """
    whole = definitions.resnet18()
    shapes = whole.shapes()
    convolutions = [(node.op, shapes[node.inputs[0]][1:]) for node in whole.nodes if isinstance(node.op, Conv2d)]
    return {
        f"resnet18_c{number}": convolution for number, convolution in enumerate(dict.fromkeys(convolutions), start=1)
    }
