"""Recipes of the ops that move elements."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from xdsl.dialects.builtin import TensorType

from tests.random_programs.choices import shuffled
from tests.random_programs.generator import ELEMENTS, MOST_ELEMENTS, Generator, Shape
from tests.random_programs.witnesses import Rejected
from ttcodegen.dialects.core.datatypes import element_of, shape_of, ui32


def _factorized(generator: Generator, count: int) -> Shape:
    """A shape of that many elements."""
    sizes: list[int] = []
    rest = count
    for _ in range(generator.integer(0, 4)):
        divisors = [size for size in range(1, rest + 1) if rest % size == 0]
        sizes.append(generator.pick(divisors[::-1]))
        rest //= sizes[-1]
    if rest > 1:
        sizes.append(rest)
    while len(sizes) < 6 and generator.chance(15):
        sizes.insert(generator.integer(0, len(sizes)), 1)
    return tuple(sizes)


def reshape(generator: Generator) -> None:
    x = generator.any()
    shape = _factorized(generator, prod(shape_of(x.type)))
    generator.apply("reshape", [x], TensorType(element_of(x.type), shape), shape=list(shape))


def squeeze(generator: Generator) -> None:
    x = generator.existing(lambda value: 1 in shape_of(value.type))
    x = x or generator.argument((1, *generator.shape(0, 5)), generator.pick(ELEMENTS))
    shape = list(shape_of(x.type))
    dim = generator.pick([axis for axis, size in enumerate(shape) if size == 1])
    result = TensorType(element_of(x.type), shape[:dim] + shape[dim + 1 :])
    generator.apply("squeeze", [x], result, dim=_negative(generator, dim, len(shape)))


def _negative(generator: Generator, dim: int, rank: int) -> int:
    """The same dimension, maybe counted from the back."""
    return dim - rank if generator.chance(40) else dim


def unsqueeze(generator: Generator) -> None:
    x = generator.any(high=5)
    shape = list(shape_of(x.type))
    dim = generator.integer(0, len(shape))
    result = TensorType(element_of(x.type), [*shape[:dim], 1, *shape[dim:]])
    generator.apply("unsqueeze", [x], result, dim=_negative(generator, dim, len(shape) + 1))


def permute(generator: Generator) -> None:
    x = generator.any(low=1)
    shape = shape_of(x.type)
    order = shuffled(generator.choices, range(len(shape)))
    result = TensorType(element_of(x.type), [shape[axis] for axis in order])
    generator.apply("permute", [x], result, permutation=order)


def transpose(generator: Generator) -> None:
    x = generator.any(low=1)
    shape = list(shape_of(x.type))
    rank = len(shape)
    first, second = generator.integer(0, rank - 1), generator.integer(0, rank - 1)
    shape[first], shape[second] = shape[second], shape[first]
    generator.apply(
        "transpose",
        [x],
        TensorType(element_of(x.type), shape),
        dim0=_negative(generator, first, rank),
        dim1=_negative(generator, second, rank),
    )


def _factor(generator: Generator, room: int) -> int:
    return generator.pick([factor for factor in (1, 2, 3, 7, 32, 33) if factor <= max(room, 1)])


def broadcast(generator: Generator) -> None:
    x = generator.any(low=1)
    shape = list(shape_of(x.type))
    factors: list[int] = []
    for size in shape:
        room = MOST_ELEMENTS // (prod(shape) * prod(factors))
        factors.append(_factor(generator, room) if size == 1 else 1)
    result = [size * factor for size, factor in zip(shape, factors, strict=True)]
    type_ = TensorType(element_of(x.type), result)
    generator.apply("broadcast", [x], type_, broadcast_dimensions=factors)


def repeat(generator: Generator) -> None:
    x = generator.any(low=1)
    shape = list(shape_of(x.type))
    factors: list[int] = []
    for _ in shape:
        factors.append(_factor(generator, MOST_ELEMENTS // (prod(shape) * prod(factors))))
    result = [size * factor for size, factor in zip(shape, factors, strict=True)]
    type_ = TensorType(element_of(x.type), result)
    generator.apply("repeat", [x], type_, repeat_dimensions=factors)


def repeat_interleave(generator: Generator) -> None:
    x = generator.any(low=1)
    shape = list(shape_of(x.type))
    dim = generator.integer(0, len(shape) - 1)
    repeats = _factor(generator, MOST_ELEMENTS // prod(shape))
    shape[dim] *= repeats
    type_ = TensorType(element_of(x.type), shape)
    dim = _negative(generator, dim, len(shape))
    generator.apply("repeat_interleave", [x], type_, repeats=repeats, dim=dim)


def concat(generator: Generator) -> None:
    first = generator.any(low=1)
    shape = shape_of(first.type)
    dim = generator.integer(0, len(shape) - 1)
    parts = [first]
    for _ in range(generator.integer(0, 3)):
        wanted = list(shape)
        wanted[dim] = generator.pick((1, 2, 5, 32, shape[dim]))
        if sum(prod(shape_of(part.type)) for part in parts) + prod(wanted) > 2 * MOST_ELEMENTS:
            break
        parts.append(generator.like(tuple(wanted), element_of(first.type)))
    parts = shuffled(generator.choices, parts)
    result = list(shape)
    result[dim] = sum(shape_of(part.type)[dim] for part in parts)
    type_ = TensorType(element_of(first.type), result)
    generator.apply("concat", [parts], type_, dim=_negative(generator, dim, len(shape)))


def slice_static(generator: Generator) -> None:
    x = generator.any(low=1)
    shape = shape_of(x.type)
    begins: list[int] = []
    ends: list[int] = []
    steps: list[int] = []
    for size in shape:
        begin, end, step = 0, size, 1
        if generator.chance(60):
            begin = generator.integer(0, size - 1)
            end = generator.integer(begin + 1, size)
            step = generator.pick((1, 1, 1, 2, 3))
            begin, end, step = _maybe_backwards(generator, begin, end, step)
        begins.append(begin - size if generator.chance(10) else begin)
        ends.append(end)
        steps.append(step)
    spans = zip(shape, begins, ends, steps, strict=True)
    result = [len(range(b + size if b < 0 else b, e, s)) for size, b, e, s in spans]
    type_ = TensorType(element_of(x.type), result)
    generator.apply("slice_static", [x], type_, begins=begins, ends=ends, step=steps)


def _maybe_backwards(generator: Generator, begin: int, end: int, step: int) -> tuple[int, int, int]:
    """The bounds of a slice, or of one from its last element to its second."""
    if end - begin > 1 and generator.chance(15):
        return end - 1, begin, -step
    return begin, end, step


def index(generator: Generator) -> None:
    x = generator.any(low=1)
    shape = list(shape_of(x.type))
    dim = generator.integer(0, len(shape) - 1)
    begin = generator.integer(0, shape[dim] - 1)
    end = generator.integer(begin + 1, shape[dim])
    begin, end, step = _maybe_backwards(generator, begin, end, generator.pick((1, 1, 2, 3)))
    shape[dim] = len(range(begin, end, step))
    type_ = TensorType(element_of(x.type), shape)
    generator.apply("index", [x], type_, dim=dim, begin=begin, end=end, step=step)


def index_select(generator: Generator) -> None:
    x = generator.any(low=1)
    shape = list(shape_of(x.type))
    dim = generator.integer(0, len(shape) - 1)
    size = shape[dim]
    stride = generator.pick(range(size, max(0, size - 40), -1))
    length = generator.integer(1, stride)
    begin = generator.integer(0, size - length)
    shape[dim] = sum(min(length, size - start) for start in range(begin, size, stride))
    type_ = TensorType(element_of(x.type), shape)
    generator.apply("index_select", [x], type_, dim=dim, begin=begin, length=length, stride=stride)


def pad(generator: Generator) -> None:
    x = generator.any(low=1)
    shape = list(shape_of(x.type))
    widths: list[int] = []
    for axis, size in enumerate(shape):
        room = MOST_ELEMENTS // prod(shape) > 1 and generator.chance(50)
        before, after = (generator.pick((0, 1, 2)), generator.pick((0, 1, 5))) if room else (0, 0)
        if size > 2 and generator.chance(10):
            before, after = generator.pick(((-1, after), (before, -2), (-1, -1)))
        widths += [before, after]
        shape[axis] = size + before + after
    value = generator.pick((0.0, 1.0, 3.0))
    generator.apply("pad", [x], TensorType(element_of(x.type), shape), padding=widths, value=value)


def reverse(generator: Generator) -> None:
    x = generator.any(low=1)
    rank = len(shape_of(x.type))
    dims = shuffled(generator.choices, range(rank))[: generator.integer(1, rank)]
    generator.apply("reverse", [x], x.type, dimensions=dims)


def slice_dynamic(generator: Generator) -> None:
    x = generator.any(low=1)
    shape = shape_of(x.type)
    counts = [generator.integer(1, size) for size in shape]
    if generator.chance(50):
        places = min(size - count + 1 for size, count in zip(shape, counts, strict=True))
        element = generator.pick((ui32, *[e for e in ELEMENTS if str(e) == "i32"][:1]))
        begins = generator.argument((len(shape),), element, 0, places - 1)
    else:
        begins = generator.argument((len(shape),), ui32, 0, 0)
    ends = generator.argument((len(shape),), element_of(begins.type), 0, 0)
    generator.apply("slice_dynamic", [x, begins, ends], TensorType(element_of(x.type), counts))


_PATTERNS = (
    ("b s -> s b", lambda s: (s[1], s[0])),
    ("b s d -> (b s) d", lambda s: (s[0] * s[1], s[2])),
    ("b h s d -> b s (h d)", lambda s: (s[0], s[2], s[1] * s[3])),
    ("a b c -> c a b", lambda s: (s[2], s[0], s[1])),
    ("a b -> a 1 b", lambda s: (s[0], 1, s[1])),
    ("a b c -> (c b a)", lambda s: (s[0] * s[1] * s[2],)),
)


def rearrange(generator: Generator) -> None:
    pattern, result = generator.pick(_PATTERNS)
    rank = len(pattern.partition("->")[0].split())
    x = generator.any(low=rank, high=rank)
    type_ = TensorType(element_of(x.type), result(shape_of(x.type)))
    generator.apply("rearrange", [x], type_, pattern=pattern)


def typecast(generator: Generator) -> None:
    x = generator.any()
    element = generator.pick(ELEMENTS)
    array = generator.array(x)
    if array.size and (array.min() < 0) and str(element).startswith("u"):
        raise Rejected("a negative number has no unsigned one")
    if array.size and array.max() > 127 and str(element) in ("i8", "ui8"):
        raise Rejected("the number does not fit into 8 bits")
    generator.apply("typecast", [x], TensorType(element, shape_of(x.type)))


def clone(generator: Generator) -> None:
    x = generator.any()
    generator.apply("clone", [x], x.type)


def to_layout(generator: Generator) -> None:
    x = generator.any()
    generator.apply("to_layout", [x], x.type)


def mesh_shard(generator: Generator) -> None:
    x = generator.any()
    generator.apply("mesh_shard", [x], x.type, shard_shape=[1, 1])


def _local_collective(name: str, **attributes: int) -> Callable[[Generator], None]:
    """An op between devices, on a mesh of one."""

    def recipe(generator: Generator) -> None:
        x = generator.any(low=1)
        generator.apply(name, [x], x.type, **attributes)

    recipe.__name__ = name
    return recipe


def arange(generator: Generator) -> None:
    element = generator.pick([e for e in ELEMENTS if str(e) not in ("i1", "i8", "ui8")])
    start, step = generator.integer(0, 5), generator.pick((1, 2, 3))
    count = generator.pick((1, 2, 7, 32, 40))
    shape = list(generator.shape(0, 2, MOST_ELEMENTS // count))
    dim = generator.integer(0, len(shape))
    shape.insert(dim, count)
    generator.apply(
        "arange",
        [],
        TensorType(element, shape),
        start=start,
        end=start + step * count,
        step=step,
        arange_dimension=dim,
    )


def get_dimension_size(generator: Generator) -> None:
    x = generator.any(low=1)
    dim = generator.integer(0, len(shape_of(x.type)) - 1)
    element = generator.pick([e for e in ELEMENTS if str(e) in ("i32", "ui32")])
    generator.apply("get_dimension_size", [x], TensorType(element, (1,)), dimension=dim)


RECIPES = {
    function.__name__: function
    for function in (
        reshape,
        squeeze,
        unsqueeze,
        permute,
        transpose,
        broadcast,
        repeat,
        repeat_interleave,
        concat,
        slice_static,
        index,
        index_select,
        pad,
        reverse,
        slice_dynamic,
        rearrange,
        typecast,
        clone,
        to_layout,
        mesh_shard,
        _local_collective("all_gather", all_gather_dim=0, cluster_axis=1),
        _local_collective("all_reduce", cluster_axis=0),
        _local_collective("reduce_scatter", scatter_dim=-1, cluster_axis=1),
        _local_collective("collective_permute"),
        arange,
        get_dimension_size,
    )
}
"""A recipe for each op of this kind."""
