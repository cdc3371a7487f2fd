"""The measured operators, in shapes of the networks."""

from __future__ import annotations

from collections.abc import Sequence

from tvmdash.relax_util.operators.kinds import (
    Operator,
    batch_matmul,
    conv2d,
    dense,
    elementwise,
    layer_norm,
    reduction,
    softmax,
)

TRANSFORMER = "transformer, 8 heads of 64, 128 tokens"
"""A block of the size of GPT-2's smaller brothers; no layer of tvmdash.networks."""

OPERATORS: tuple[Operator, ...] = (
    conv2d("dqn conv0", (1, 4, 84, 84), (32, 4, 8, 8), 4, 0),
    conv2d("resnet18 conv0", (1, 3, 224, 224), (64, 3, 7, 7), 2, 3),
    conv2d("resnet18 layer0.0.conv0", (1, 64, 56, 56), (64, 64, 3, 3), 1, 1),
    conv2d("resnet18 layer3.0.conv1", (1, 512, 7, 7), (512, 512, 3, 3), 1, 1),
    conv2d("squeezenet classifier", (1, 512, 13, 13), (1000, 512, 1, 1), 1, 0),
    conv2d("mobilenet_v2 block1.expand", (1, 16, 112, 112), (96, 16, 1, 1), 1, 0),
    conv2d("mobilenet_v2 block1.depthwise", (1, 96, 112, 112), (96, 1, 3, 3), 2, 1),
    conv2d("mobilenet_v2 block2.depthwise", (1, 144, 56, 56), (144, 1, 3, 3), 1, 1),
    conv2d("mobilenet_v2 block16.depthwise", (1, 960, 7, 7), (960, 1, 3, 3), 1, 1),
    dense("mlp dense0", 1, 784, 256),
    dense("dqn dense0", 1, 3136, 512),
    dense(TRANSFORMER, 128, 512, 2048),
    batch_matmul(TRANSFORMER, 8, 128, 128, 64),
    batch_matmul(TRANSFORMER, 8, 1, 128, 64),
    softmax("mlp softmax", (1, 10)),
    softmax(TRANSFORMER, (8, 128, 128)),
    layer_norm(TRANSFORMER, (128, 512)),
    reduction("sum", "resnet18 average", (1, 512, 7, 7), (2, 3)),
    reduction("sum", "squeezenet average", (1, 1000, 13, 13), (2, 3)),
    reduction("max", TRANSFORMER, (8, 128, 128), (2,)),
    elementwise("add", "resnet18 layer3.1.add", (1, 512, 7, 7)),
    elementwise("add", "resnet18 layer0.0.add", (1, 64, 56, 56)),
    elementwise("relu", "resnet18 conv0.relu", (1, 64, 112, 112)),
    elementwise("gelu", TRANSFORMER, (128, 2048)),
)


def chosen(kinds: Sequence[str], shapes: int) -> list[Operator]:
    """Return the operators of these kinds, `shapes` of each (0: all), those with the least arithmetic first."""
    operators: list[Operator] = []
    for kind in kinds:
        own = sorted(
            (operator for operator in OPERATORS if operator.kind == kind), key=lambda operator: operator.operations
        )
        operators += own[: shapes or len(own)]
    return operators
