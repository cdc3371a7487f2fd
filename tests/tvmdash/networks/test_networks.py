"""The networks have their published structure, and the reference computes what the operators mean."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tvmdash.errors import DashboardError
from tvmdash.networks import NETWORKS, Network, make_input, make_weights, reference
from tvmdash.networks.ops import (
    STATISTICS,
    BatchNorm,
    Concat,
    Conv2d,
    ConvTranspose2d,
    Dense,
    GlobalAvgPool,
    MaxPool,
    Relu,
    Softmax,
    Tanh,
)

PUBLISHED_PARAMETERS = {
    "mlp": (784 + 1) * 256 + (256 + 1) * 128 + (128 + 1) * 10,
    "dqn": (4 * 64 + 1) * 32 + (32 * 16 + 1) * 64 + (64 * 9 + 1) * 64 + (3136 + 1) * 512 + (512 + 1) * 18,
    "squeezenet": 1_235_496,
    "mobilenet_v2": 3_504_872,
    "resnet18": 11_689_512,
    "dcgan": 3_576_704,
    "vgg16": 138_357_544,
}
"""Of torchvision's models, and of PyTorch's DCGAN tutorial; mlp and dqn have no number, but layer sizes."""
HUGE = ("vgg16",)
"""What takes gigabytes and many seconds to compute."""


@pytest.fixture(scope="module", params=[name for name in NETWORKS if name not in HUGE])
def network(request: pytest.FixtureRequest) -> Network:
    return NETWORKS[request.param]()


def count_parameters(network: Network) -> int:
    """Trainable numbers, as papers count them: batch-norm statistics are left out."""
    return sum(math.prod(shape) for name, shape in network.weight_shapes().items() if not name.endswith(STATISTICS))


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_has_as_many_parameters_as_published(name):
    assert count_parameters(NETWORKS[name]()) == PUBLISHED_PARAMETERS[name]


def test_vgg16_classifies_into_a_thousand():
    network = NETWORKS["vgg16"]()
    shapes = network.shapes(2)
    assert shapes["pool4"] == (2, 512, 7, 7)
    assert shapes[network.nodes[-1].name] == (2, 1000)


def test_values_are_named_once(network):
    assert len(network.shapes()) == len(network.nodes) + 1


def test_no_output_is_dead_saturated_or_overflown(network):
    output = reference(network, make_weights(network, 7), make_input(network, 7))
    assert output.shape == network.shapes()[network.nodes[-1].name]
    assert np.isfinite(output).all()
    assert 0.01 < output.std() < 100
    assert len(np.unique(output)) > output.size * 0.7


def test_every_layer_of_mobilenet_is_alive():
    network = NETWORKS["mobilenet_v2"]()
    weights, x = make_weights(network, 3), make_input(network, 3)
    for length in [place for place, node in enumerate(network.nodes, start=1) if isinstance(node.op, Relu)][::12]:
        value = reference(Network("part", network.input_shape, network.nodes[:length]), weights, x)
        assert 0.3 < (value == 0).mean() < 0.7
        assert (value == 6).mean() < 0.1


def test_weights_and_inputs_follow_from_the_seed_alone(network):
    one, again, other = (make_weights(network, seed) for seed in (1, 1, 2))
    assert all(np.array_equal(one[name], again[name]) for name in one)
    assert not any(np.array_equal(one[name], other[name]) for name in one)
    assert np.array_equal(make_input(network, 1), make_input(network, 1))
    assert all(array.dtype == np.float32 for array in one.values())


def test_a_batch_is_computed_image_by_image():
    network = NETWORKS["dqn"]()
    weights, x = make_weights(network, 0), make_input(network, 0, batch=3)
    together = reference(network, weights, x)
    assert together.shape == (3, 18)
    for index in range(3):
        np.testing.assert_allclose(together[index : index + 1], reference(network, weights, x[index : index + 1]))


def test_an_input_of_another_shape_is_refused():
    network = NETWORKS["mlp"]()
    with pytest.raises(DashboardError, match=r"mlp: an input of shape \(1, 785\) is not \(batch, \*\(784,\)\)"):
        reference(network, make_weights(network, 0), np.zeros((1, 785), np.float32))


@pytest.mark.parametrize(
    "conv",
    [
        Conv2d(4, 3),
        Conv2d(6, 3, 2, 1),
        Conv2d(2, 1),
        Conv2d(4, 3, 1, 1, groups=2),
        Conv2d(8, 3, 2, 1, groups=4, bias=False),
    ],
    ids=str,
)
def test_a_convolution_is_the_sum_over_its_window(conv):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 4, 7, 6))
    weights = {name: rng.standard_normal(shape) for name, shape in conv.weights(x.shape).items()}
    actual = conv.forward(weights, x)
    assert actual.shape == conv.shape(x.shape)
    padded = np.pad(x, ((0, 0), (0, 0), (conv.padding,) * 2, (conv.padding,) * 2))
    inputs, outputs = 4 // conv.groups, conv.channels // conv.groups
    for image, channel, row, column in np.ndindex(actual.shape):
        top, left, first = row * conv.stride, column * conv.stride, channel // outputs * inputs
        window = padded[image, first : first + inputs, top : top + conv.kernel, left : left + conv.kernel]
        expected = (window * weights["weight"][channel]).sum() + (weights["bias"][channel] if conv.bias else 0.0)
        assert actual[image, channel, row, column] == pytest.approx(expected)


@pytest.mark.parametrize(
    "conv", [ConvTranspose2d(3, 4, 2, 1), ConvTranspose2d(2, 3, bias=False), ConvTranspose2d(2, 2, 3)], ids=str
)
def test_a_transposed_convolution_spreads_each_input_over_its_window(conv):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 4, 5, 3))
    weights = {name: rng.standard_normal(shape) for name, shape in conv.weights(x.shape).items()}
    actual = conv.forward(weights, x)
    assert actual.shape == conv.shape(x.shape)
    expected = np.zeros(actual.shape) + (weights["bias"][:, None, None] if conv.bias else 0.0)
    for image, source, row, column in np.ndindex(x.shape):
        for channel, down, right in np.ndindex(conv.channels, conv.kernel, conv.kernel):
            place = row * conv.stride + down - conv.padding, column * conv.stride + right - conv.padding
            if 0 <= place[0] < actual.shape[2] and 0 <= place[1] < actual.shape[3]:
                product = x[image, source, row, column] * weights["weight"][source, channel, down, right]
                expected[image, channel, place[0], place[1]] += product
    np.testing.assert_allclose(actual, expected)


def test_pooling_takes_the_largest_and_padding_never_wins():
    x = -np.arange(1.0, 17.0).reshape(1, 1, 4, 4)
    assert MaxPool(2, 2).forward({}, x).tolist() == [[[[-1, -3], [-9, -11]]]]
    assert MaxPool(3, 2, 1).forward({}, x).tolist() == [[[[-1, -2], [-5, -6]]]]
    assert GlobalAvgPool().forward({}, x).tolist() == [[[[-8.5]]]]


def test_a_batch_norm_uses_its_statistics():
    weights = {"scale": np.array([2.0]), "shift": np.array([1.0]), "mean": np.array([3.0]), "variance": np.array([4.0])}
    assert BatchNorm(0.0).forward(weights, np.full((1, 1, 1, 1), 5.0)).item() == 3.0


def test_simple_operators():
    x = np.array([[-1.0, 7.0]])
    assert Relu().forward({}, x).tolist() == [[0.0, 7.0]]
    assert Relu(6.0).forward({}, x).tolist() == [[0.0, 6.0]]
    assert Tanh().forward({}, np.array([[0.0, 50.0]])).tolist() == [[0.0, 1.0]]
    assert Dense(1).forward({"weight": np.array([[1.0, 2.0]]), "bias": np.array([0.5])}, x).tolist() == [[13.5]]
    assert Softmax().forward({}, np.array([[1000.0, 1000.0]])).tolist() == [[0.5, 0.5]]
    assert Concat().shape((1, 2, 5, 5), (1, 3, 5, 5)) == (1, 5, 5, 5)
