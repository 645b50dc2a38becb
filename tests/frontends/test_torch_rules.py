"""Rules of PyTorch's operations by themselves, for overloads that few exported programs have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import i32
from xdsl.ir import Attribute, Block, SSAValue

from ttcodegen.dialects.core.datatypes import f32, tensor_type
from ttcodegen.frontends.torch.graph import Graph
from ttcodegen.frontends.torch.rules import RULES
from ttcodegen.transforms.const_eval import known_elements

Array = np.ndarray


def applied(
    name: str, shape: tuple[int, ...], *arguments: Any, element: Attribute = f32, **options: Any
) -> Array:
    """Result of the rule of an op for constants; arrays are tensors."""
    block = Block()
    graph = Graph(block.add_op)
    graph.results = [tensor_type(element, shape)]
    given: list[Any] = [graph.constant(a, f32) if hasattr(a, "dtype") else a for a in arguments]
    result = RULES[name](graph, *given, **options)
    assert isinstance(result, SSAValue)
    found = known_elements(result)
    assert found is not None
    assert found.shape == shape
    return found


@pytest.mark.parametrize("size", [(None, [2.2, 2.2]), ([8, 8], 2.2, 2.2)])
def test_sizes_that_were_rounded_follow_their_factor(size: tuple[Any, ...]) -> None:
    image = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    places = np.floor(np.arange(8) / 2.2).astype(int)
    found = applied("upsample_nearest2d", (1, 1, 8, 8), image, *size)
    np.testing.assert_array_equal(found, image[:, :, places][..., places])


@pytest.mark.parametrize(("options", "side"), [({}, "left"), ({"side": "right"}, "right")])
def test_searchsorted_says_its_side_in_two_ways(options: dict[str, Any], side: Any) -> None:
    limits = np.asarray([-0.5, 0, 0.5], np.float32)
    values = np.asarray([[-1, -0.5, 0], [0.2, 0.5, 2]], np.float32)
    found = applied("searchsorted", (2, 3), limits, values, element=i32, **options)
    np.testing.assert_array_equal(found, np.searchsorted(limits, values, side=side))


def test_bucketize_takes_a_number() -> None:
    limits = np.asarray([-0.5, 0, 0.5], np.float32)
    assert applied("bucketize", (), 0.2, limits, element=i32) == 2


def test_transposed_convolutions_of_one_image_alone() -> None:
    image = np.linspace(-3, 3, 216, dtype=np.float32).reshape(1, 4, 6, 9)
    weight = np.linspace(-1, 1, 72, dtype=np.float32).reshape(4, 2, 3, 3)
    batch = applied("conv_transpose2d", (1, 2, 13, 19), image, weight, None, 2)
    alone = applied("conv_transpose2d", (2, 13, 19), image[0], weight, None, 2)
    np.testing.assert_array_equal(alone, batch[0])
