"""The networks that the experiments measure: structure, seeded weights and inputs, a reference output.

Structure as published. A compiled network is judged by `reference`, which shares no code with a compiler.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from tvmdash.errors import DashboardError
from tvmdash.networks.ops import (
    Add,
    Array,
    BatchNorm,
    Concat,
    Conv2d,
    ConvTranspose2d,
    Dense,
    Flatten,
    GlobalAvgPool,
    MaxPool,
    Op,
    Relu,
    Shape,
    Softmax,
    Tanh,
)

INPUT = "input"


@dataclass(frozen=True)
class Node:
    """One operator in its place: reads the values named `inputs`, makes the value `name`."""

    name: str
    op: Op
    inputs: tuple[str, ...]


@dataclass(frozen=True)
class Network:
    """Nodes in an order in which they can be computed; the last one's value is the output.

    `input_shape` is without the batch. `INPUT` names the network's one input.
    """

    name: str
    input_shape: Shape
    nodes: tuple[Node, ...]

    def shapes(self, batch: int = 1) -> dict[str, Shape]:
        """The shape of every value by its name, the input's first."""
        shapes = {INPUT: (batch, *self.input_shape)}
        for node in self.nodes:
            shapes[node.name] = node.op.shape(*(shapes[name] for name in node.inputs))
        return shapes

    def weight_shapes(self) -> dict[str, Shape]:
        """The shape of every weight by its name, as in `conv1.bias`."""
        shapes = self.shapes()
        return {
            f"{node.name}.{suffix}": shape
            for node in self.nodes
            for suffix, shape in node.op.weights(*(shapes[name] for name in node.inputs)).items()
        }


INITIALISERS: Mapping[str, Callable[[np.random.Generator, Shape], Array]] = {
    "weight": lambda rng, shape: rng.standard_normal(shape) * math.sqrt(2.0 / math.prod(shape[1:])),  # He et al. 2015
    "bias": lambda rng, shape: rng.normal(0.0, 0.1, shape),
    "scale": lambda rng, shape: rng.uniform(0.5, 1.0, shape),
    "shift": lambda rng, shape: rng.normal(0.0, 0.1, shape),
    "mean": lambda rng, shape: rng.normal(0.0, 0.1, shape),
    "variance": lambda rng, shape: rng.uniform(0.5, 1.5, shape),
}


def make_weights(network: Network, seed: int) -> dict[str, Array]:
    """Float32 weights by name: the same for the same seed, and such that no layer dies, saturates or overflows."""
    rng = np.random.default_rng([seed, 0])
    shapes = network.weight_shapes()
    return {name: INITIALISERS[name.rsplit(".")[-1]](rng, shape).astype(np.float32) for name, shape in shapes.items()}


def make_input(network: Network, seed: int, batch: int = 1) -> Array:
    """A float32 input (batch, *input_shape), standard normal: the same for the same seed."""
    rng = np.random.default_rng([seed, 1])
    return rng.standard_normal((batch, *network.input_shape)).astype(np.float32)


def node_weights(node: Node, weights: Mapping[str, Array]) -> dict[str, Array]:
    """The arrays of one node by their short names: `weight`, `bias`."""
    named = ((name.rpartition("."), array) for name, array in weights.items())
    return {suffix: array for (owner, _, suffix), array in named if owner == node.name}


def reference(network: Network, weights: Mapping[str, Array], x: Array) -> Array:
    """The network's output for `x` (batch, *input_shape), computed in float64 and given as float64."""
    if x.shape[1:] != network.input_shape:
        raise DashboardError(f"{network.name}: an input of shape {x.shape} is not (batch, *{network.input_shape}).")
    wide = {name: array.astype(np.float64) for name, array in weights.items()}
    values = {INPUT: x.astype(np.float64)}
    for node in network.nodes:
        values[node.name] = node.op.forward(node_weights(node, wide), *(values[name] for name in node.inputs))
    return values[network.nodes[-1].name]


class _Graph:
    """Collects nodes; `then` appends to the value named `last`."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.last = INPUT

    def then(self, name: str, op: Op, *inputs: str) -> str:
        self.nodes.append(Node(name, op, inputs or (self.last,)))
        self.last = name
        return name

    def conv_bn(self, name: str, conv: Conv2d | ConvTranspose2d, activation: Relu | None) -> str:
        self.then(name, conv)
        self.then(f"{name}.bn", BatchNorm())
        return self.then(f"{name}.relu", activation) if activation else self.last

    def finish(self, name: str, input_shape: Shape) -> Network:
        return Network(name, input_shape, tuple(self.nodes))


def mlp() -> Network:
    """784-256-128-10, ReLU between, softmax at the end."""
    graph = _Graph()
    for index, units in enumerate((256, 128)):
        graph.then(f"dense{index}", Dense(units))
        graph.then(f"relu{index}", Relu())
    graph.then("dense2", Dense(10))
    graph.then("softmax", Softmax())
    return graph.finish("mlp", (784,))


def dqn() -> Network:
    """The Q-network of Mnih et al., Nature 518 (2015), for the 18 actions of the full Atari set."""
    graph = _Graph()
    for index, (channels, kernel, stride) in enumerate(((32, 8, 4), (64, 4, 2), (64, 3, 1))):
        graph.then(f"conv{index}", Conv2d(channels, kernel, stride))
        graph.then(f"relu{index}", Relu())
    graph.then("flatten", Flatten())
    graph.then("dense0", Dense(512))
    graph.then("relu3", Relu())
    graph.then("dense1", Dense(18))
    return graph.finish("dqn", (4, 84, 84))


def _fire(graph: _Graph, name: str, squeeze: int, expand: int) -> None:
    graph.then(f"{name}.squeeze", Conv2d(squeeze, 1))
    squeezed = graph.then(f"{name}.squeeze.relu", Relu())
    branches = []
    for kernel in (1, 3):
        graph.then(f"{name}.expand{kernel}", Conv2d(expand, kernel, padding=kernel // 2), squeezed)
        branches.append(graph.then(f"{name}.expand{kernel}.relu", Relu()))
    graph.then(f"{name}.concat", Concat(), *branches)


def squeezenet() -> Network:
    """SqueezeNet 1.1 (Iandola et al., arXiv:1602.07360; 1.1 as released by its authors)."""
    graph, number = _Graph(), 2
    graph.then("conv0", Conv2d(64, 3, 2))
    graph.then("relu0", Relu())
    stages = (((16, 64), (16, 64)), ((32, 128), (32, 128)), ((48, 192), (48, 192), (64, 256), (64, 256)))
    for fires in stages:
        graph.then(f"pool{number}", MaxPool(3, 2))
        for squeeze, expand in fires:
            _fire(graph, f"fire{number}", squeeze, expand)
            number += 1
    graph.then("classifier", Conv2d(1000, 1))
    graph.then("classifier.relu", Relu())
    graph.then("average", GlobalAvgPool())
    graph.then("flatten", Flatten())
    return graph.finish("squeezenet", (3, 224, 224))


def _inverted_residual(graph: _Graph, name: str, channels: tuple[int, int], expansion: int, stride: int) -> None:
    source, (before, after), relu6 = graph.last, channels, Relu(6.0)
    hidden = before * expansion
    if expansion > 1:
        graph.conv_bn(f"{name}.expand", Conv2d(hidden, 1, bias=False), relu6)
    graph.conv_bn(f"{name}.depthwise", Conv2d(hidden, 3, stride, 1, groups=hidden, bias=False), relu6)
    projected = graph.conv_bn(f"{name}.project", Conv2d(after, 1, bias=False), None)
    if stride == 1 and before == after:
        graph.then(f"{name}.add", Add(), source, projected)


def mobilenet_v2() -> Network:
    """MobileNetV2 of width 1 (Sandler et al., arXiv:1801.04381, table 2)."""
    graph, before, number = _Graph(), 32, 0
    graph.conv_bn("conv0", Conv2d(before, 3, 2, 1, bias=False), Relu(6.0))
    rows = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
    for expansion, after, repeats, first_stride in rows:
        for index in range(repeats):
            _inverted_residual(graph, f"block{number}", (before, after), expansion, first_stride if index == 0 else 1)
            before, number = after, number + 1
    graph.conv_bn("conv1", Conv2d(1280, 1, bias=False), Relu(6.0))
    _classify(graph)
    return graph.finish("mobilenet_v2", (3, 224, 224))


def _basic_block(graph: _Graph, name: str, channels: int, stride: int, *, project: bool) -> None:
    source = graph.last
    graph.conv_bn(f"{name}.conv0", Conv2d(channels, 3, stride, 1, bias=False), Relu())
    main = graph.conv_bn(f"{name}.conv1", Conv2d(channels, 3, 1, 1, bias=False), None)
    if project:
        graph.then(f"{name}.project", Conv2d(channels, 1, stride, bias=False), source)
        source = graph.then(f"{name}.project.bn", BatchNorm())
    graph.then(f"{name}.add", Add(), main, source)
    graph.then(f"{name}.relu", Relu())


def resnet18() -> Network:
    """ResNet-18 (He et al., arXiv:1512.03385, table 1; projection shortcuts where the shape changes)."""
    graph = _Graph()
    graph.conv_bn("conv0", Conv2d(64, 7, 2, 3, bias=False), Relu())
    graph.then("pool", MaxPool(3, 2, 1))
    for layer, channels in enumerate((64, 128, 256, 512)):
        for index in range(2):
            first = layer > 0 and index == 0
            _basic_block(graph, f"layer{layer}.{index}", channels, 2 if first else 1, project=first)
    _classify(graph)
    return graph.finish("resnet18", (3, 224, 224))


def dcgan() -> Network:
    """The generator of a DCGAN for 64x64 images (Radford et al., arXiv:1511.06434), 512 to 64 channels wide.

    Its input is 100 numbers as one pixel; the paper's is twice as wide.
    """
    graph = _Graph()
    for index, channels in enumerate((512, 256, 128, 64)):
        stride, padding = (2, 1) if index else (1, 0)
        graph.conv_bn(f"up{index}", ConvTranspose2d(channels, 4, stride, padding, bias=False), Relu())
    graph.then("up4", ConvTranspose2d(3, 4, 2, 1, bias=False))
    graph.then("tanh", Tanh())
    return graph.finish("dcgan", (100, 1, 1))


def vgg16() -> Network:
    """VGG-16 (Simonyan & Zisserman, arXiv:1409.1556, table 1, D). Its weights take 553 MB."""
    graph = _Graph()
    for stage, (channels, layers) in enumerate(((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))):
        for index in range(layers):
            graph.then(f"conv{stage}.{index}", Conv2d(channels, 3, padding=1))
            graph.then(f"conv{stage}.{index}.relu", Relu())
        graph.then(f"pool{stage}", MaxPool(2, 2))
    graph.then("flatten", Flatten())
    for index in range(2):
        graph.then(f"dense{index}", Dense(4096))
        graph.then(f"dense{index}.relu", Relu())
    graph.then("classifier", Dense(1000))
    return graph.finish("vgg16", (3, 224, 224))


def _classify(graph: _Graph) -> None:
    graph.then("average", GlobalAvgPool())
    graph.then("flatten", Flatten())
    graph.then("classifier", Dense(1000))


NETWORKS: Mapping[str, Callable[[], Network]] = {
    "mlp": mlp,
    "dqn": dqn,
    "squeezenet": squeezenet,
    "mobilenet_v2": mobilenet_v2,
    "resnet18": resnet18,
    "dcgan": dcgan,
    "vgg16": vgg16,
}
