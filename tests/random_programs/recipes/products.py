"""Recipes of matmuls, and of normalisations."""

from __future__ import annotations

from math import prod
from typing import Any

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue

from tests.random_programs.choices import shuffled
from tests.random_programs.generator import FLOATS, Generator, Recipe, Rejected, Shape
from ttcodegen.dialects.core.datatypes import element_of, shape_of

_INNER = (1, 2, 3, 8, 31, 32, 40)


def _weight(generator: Generator, shape: Shape, element: Attribute) -> SSAValue:
    """A tensor to multiply with: small numbers, so that sums of products stay small."""
    if generator.chance(25):
        return generator.like(shape, element)
    return generator.argument(shape, element, -0.5, 0.5)


def _turned(shape: Shape, transpose: bool) -> Shape:
    return (*shape[:-2], shape[-1], shape[-2]) if transpose and len(shape) > 1 else shape


def _factors(generator: Generator) -> tuple[list[SSAValue], Shape, dict[str, Any]]:
    """Two factors, the shape of their product, and whether they are transposed."""
    a = generator.floating(low=1, high=5)
    shape, element = shape_of(a.type), element_of(a.type)
    transpose_a, transpose_b = generator.chance(25), generator.chance(25)
    rows = _turned(shape, transpose_a)
    columns = generator.pick(_INNER)
    batch = rows[:-2]
    wanted: Shape = (rows[-1], columns)
    match generator.integer(0, 4):
        case 0:
            wanted = (rows[-1],)
        case 1 | 2:
            pass
        case _:
            batch_b = tuple(1 if generator.chance(30) else size for size in batch)
            wanted = (*batch_b[generator.integer(0, len(batch_b)) :], *wanted)
    b = _weight(generator, _turned(wanted, transpose_b), element)
    result = (*batch, *rows[-2:-1], *wanted[1:][-1:])
    return [a, b], result, {"transpose_a": transpose_a, "transpose_b": transpose_b}


def matmul(generator: Generator) -> None:
    operands, shape, attributes = _factors(generator)
    generator.apply(
        "matmul", operands, TensorType(element_of(operands[0].type), shape), **attributes
    )


def linear(generator: Generator) -> None:
    operands, shape, attributes = _factors(generator)
    element = element_of(operands[0].type)
    bias: SSAValue | None = None
    if generator.chance(70):
        wanted = shape[generator.integer(0, len(shape)) :] if generator.chance(40) else shape[-1:]
        bias = generator.like(wanted, element)
    generator.apply("linear", [*operands, bias], TensorType(element, shape), **attributes)


def dot_general(generator: Generator) -> None:
    lhs = generator.floating(low=1, high=5)
    shape = shape_of(lhs.type)
    axes = shuffled(generator.choices, range(len(shape)))
    batch_count = generator.integer(0, min(2, len(axes) - 1))
    contract_count = generator.integer(1, min(2, len(axes) - batch_count))
    batch, contract = axes[:batch_count], axes[batch_count : batch_count + contract_count]
    free = [a for a in range(len(shape)) if a not in batch and a not in contract]
    # The dimensions of the right side, each with what it is: (kind, which one, size).
    sides = [("batch", i, shape[axis]) for i, axis in enumerate(batch)]
    sides += [("contract", i, shape[axis]) for i, axis in enumerate(contract)]
    columns = [generator.pick((1, 2, 8, 33)) for _ in range(generator.integer(0, 2))]
    sides += [("free", i, size) for i, size in enumerate(columns)]
    sides = shuffled(generator.choices, sides)
    rhs = _weight(generator, tuple(size for _, _, size in sides), element_of(lhs.type))
    place = {(kind, number): axis for axis, (kind, number, _) in enumerate(sides)}
    result = [shape[axis] for axis in batch] + [shape[axis] for axis in free]
    result += [size for kind, _, size in sides if kind == "free"]
    generator.apply(
        "dot_general",
        [lhs, rhs],
        TensorType(element_of(lhs.type), result),
        batch_dims_lhs=batch,
        batch_dims_rhs=[place["batch", i] for i in range(len(batch))],
        contract_dims_lhs=contract,
        contract_dims_rhs=[place["contract", i] for i in range(len(contract))],
    )


def softmax(generator: Generator) -> None:
    x = generator.floating(low=1)
    x = generator.within(x, -8.0, 8.0)
    rank = len(shape_of(x.type))
    dim = generator.integer(0, rank - 1)
    dim = dim - rank if generator.chance(40) else dim
    generator.apply("softmax", [x], x.type, dimension=dim)


def _trailing(generator: Generator, name: str, least: int = 1) -> None:
    x = generator.floating(low=1)
    shape, element = shape_of(x.type), element_of(x.type)
    normalized = shape[-generator.integer(1, min(2, len(shape))) :]
    if prod(normalized) < least:
        raise Rejected("what has no variance is all rounding")
    vectors = [generator.like(normalized, element) if generator.chance(60) else None for _ in "wb"]
    generator.apply(
        name, [x, *vectors], x.type, normalized_shape=list(normalized), epsilon=0.0009765625
    )


def layer_norm(generator: Generator) -> None:
    _trailing(generator, "layer_norm", least=2)


def rms_norm(generator: Generator) -> None:
    _trailing(generator, "rms_norm")


def group_norm(generator: Generator) -> None:
    element = generator.pick(FLOATS)
    channels, groups = generator.pick(((4, 2), (8, 1), (32, 4), (6, 6)))
    shape = [generator.pick((1, 2)), generator.pick((2, 5)), generator.pick((3, 8)), channels]
    dim = generator.pick((3, 1))
    if dim == 1:
        shape = [shape[0], channels, *shape[1:3]]
    x = generator.like(tuple(shape), element)
    vectors = [generator.like((channels,), element) if generator.chance(60) else None for _ in "wb"]
    generator.apply(
        "group_norm",
        [x, None, *vectors],
        x.type,
        num_groups=groups,
        epsilon=0.0009765625,
        channel_dim=dim,
    )


def _batch_norm(generator: Generator, name: str) -> None:
    x = generator.floating(low=2, high=5)
    shape, element = shape_of(x.type), element_of(x.type)
    dim = generator.integer(0, len(shape) - 1)
    channels = (shape[dim],)
    vectors = [generator.like(channels, element) for _ in range(3)]
    variance = generator.argument(channels, element, 0.5, 1.5)
    attributes: dict[str, Any] = {"dimension": dim, "epsilon": 0.0009765625}
    results = [x.type]
    if name == "batch_norm_training":
        attributes["momentum"] = 0.125
        results += [TensorType(element, channels)] * 2
    generator.apply(name, [x, *vectors, variance], results, **attributes)


def batch_norm_inference(generator: Generator) -> None:
    _batch_norm(generator, "batch_norm_inference")


def batch_norm_training(generator: Generator) -> None:
    _batch_norm(generator, "batch_norm_training")


def concatenate_heads(generator: Generator) -> None:
    x = generator.floating(low=4, high=4)
    batch, heads, sequence, size = shape_of(x.type)
    type_ = TensorType(element_of(x.type), (batch, sequence, heads * size))
    generator.apply("concatenate_heads", [x], type_)


def split_query_key_value_and_split_heads(generator: Generator) -> None:
    element = generator.pick(FLOATS)
    heads, key_heads = generator.pick(((1, None), (2, None), (4, 2), (3, 1)))
    size = generator.pick((4, 32))
    kept = key_heads or heads
    batch, sequence = generator.pick((1, 2)), generator.pick((1, 5, 32))
    x = generator.like((batch, sequence, (heads + 2 * kept) * size), element)
    keys = (batch, kept, sequence, size)
    transpose = generator.chance(50)
    turned = (*keys[:2], size, sequence) if transpose else keys
    shapes = [(batch, heads, sequence, size), turned, keys]
    generator.apply(
        "split_query_key_value_and_split_heads",
        [x, None],
        [TensorType(element, shape) for shape in shapes],
        num_heads=heads,
        num_kv_heads=key_heads,
        transpose_key=transpose,
    )


def scaled_dot_product_attention(generator: Generator) -> None:
    element = generator.pick(FLOATS)
    batch, heads = generator.pick((1, 2)), generator.pick((1, 2, 4))
    key_heads = generator.pick([count for count in (1, 2, 4) if heads % count == 0])
    queries, size = generator.pick((1, 5, 32)), generator.pick((4, 32))
    causal = generator.chance(50)
    keys = queries if causal else generator.pick((3, 32, 33))
    query = generator.like((batch, heads, queries, size), element)
    key, value = (generator.like((batch, key_heads, keys, size), element) for _ in "kv")
    mask: SSAValue | None = None
    if not causal and generator.chance(50):
        masked = (batch, 1, queries, keys) if generator.chance(50) else (1, 1, queries, keys)
        mask = generator.like(masked, element)
    scale = generator.pick((None, 0.125))
    generator.apply(
        "scaled_dot_product_attention",
        [query, key, value, mask, None],
        query.type,
        is_causal=causal,
        scale=scale,
    )


def rotary_embedding(generator: Generator) -> None:
    element = generator.pick(FLOATS)
    batch, heads = generator.pick((1, 2)), generator.pick((1, 3))
    positions, size = generator.pick((1, 5, 32)), generator.pick((4, 64, 128))
    x = generator.like((batch, heads, positions, size), element)
    outer = generator.pick(((1, 1), (), (batch, 1)))
    tables = [generator.argument((*outer, positions, size), element, -1.0, 1.0) for _ in "cs"]
    generator.apply("rotary_embedding", [x, *tables], x.type)


def gelu_bw(generator: Generator) -> None:
    gradient = generator.floating()
    x = generator.like(shape_of(gradient.type), element_of(gradient.type))
    approximate = generator.pick(("none", "tanh"))
    generator.apply("gelu_bw", [gradient, x], x.type, approximate=approximate)


RECIPES: dict[str, Recipe] = {
    function.__name__: function
    for function in (
        matmul,
        linear,
        dot_general,
        softmax,
        layer_norm,
        rms_norm,
        group_norm,
        batch_norm_inference,
        batch_norm_training,
        concatenate_heads,
        split_query_key_value_and_split_heads,
        scaled_dot_product_attention,
        rotary_embedding,
        gelu_bw,
    )
}
"""A recipe for each op of this kind."""
