"""Functions that put elements elsewhere: movements, reorderings and caches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.ttmetal.function_text import Shape, array, call, function, integers, single, tensor

REDUCTIONS = ("invalid", "sum", "prod", "min", "max")
"""Reductions of elements that a scatter writes to one place."""

_SLICES = {
    "slice_rows": ((5, 0), (70, 50), (1, 1)),
    "slice_columns": ((0, 33), (70, 50), (1, 1)),
    "slice_steps": ((3, 1), (69, 50), (3, 2)),
    "slice_element": ((69, 49), (70, 50), (1, 1)),
}


def movements() -> Iterator[str]:
    """Ops that put elements elsewhere, of all sizes of elements."""
    for element in ("bf16", "f32", "si32", "ui8"):
        for name, op, shapes, result, words in _moves():
            yield single(f"{name}_{element}", op, shapes, result, element, **words)


def _moves() -> Iterator[tuple[str, str, Sequence[Shape], Shape, dict[str, str]]]:
    for result in ((70, 150), (7, 10, 3, 50), (10500,), (5, 1, 42, 50)):
        words = {"shape": integers(result)}
        yield "reshape_" + "x".join(map(str, result)), "reshape", [(3, 70, 50)], result, words
    for order in ((1, 0, 2), (0, 2, 1), (2, 0, 1)):
        shape = (3, 40, 70)
        result = [shape[axis] for axis in order]
        name = "permute_" + "".join(map(str, order))
        yield name, "permute", [shape], result, {"permutation": array(order)}
    for name, (begins, ends, steps) in _SLICES.items():
        result = [-(-(e - b) // s) for b, e, s in zip(begins, ends, steps, strict=True)]
        words = {key: integers(v) for key, v in (("begins", begins), ("ends", ends))}
        yield name, "slice_static", [(70, 50)], result, {**words, "step": integers(steps)}
    for dim, shapes in enumerate((((2, 40, 70), (1, 40, 70)), ((2, 33, 70), (2, 7, 70)))):
        result = [sum(s[axis] for s in shapes) if axis == dim else size
                  for axis, size in enumerate(shapes[0])]  # fmt: skip
        yield f"concat_{dim}", "concat", shapes, result, {"dim": f"{dim} : si32"}
    yield "concat_2", "concat", [(40, 33), (40, 50), (40, 1)], (40, 84), {"dim": "1 : si32"}
    padding = {"padding": "array<i32: 0, 1, 3, 2, 5, 4>", "value": "1.0 : f32"}
    yield "pad", "pad", [(2, 40, 70)], (3, 45, 79), padding
    yield "repeat", "repeat", [(2, 33, 40)], (4, 33, 120), {"repeat_dimensions": array((2, 1, 3))}
    factors = {"scale_factor": "array<i32: 3, 2>", "mode": '"nearest"'}
    yield "upsample", "upsample2d", [(2, 5, 6, 40)], (2, 15, 12, 40), factors
    yield "reverse", "reverse", [(2, 40, 70)], (2, 40, 70), {"dimensions": array((0, 2))}


def reorderings() -> Iterator[str]:
    """Heads that are divided and put together, in tiles and across them, and what else reshapes and
    permutes of each other do."""
    for name, element, shapes, order in (
        ("divide", "bf16", ((64, 128), (1, 64, 2, 64), (1, 2, 64, 64)), (0, 2, 1, 3)),
        ("divide_odd", "f32", ((1, 40, 150), (1, 40, 3, 50), (1, 3, 40, 50)), (0, 2, 1, 3)),
        ("turn", "bf16", ((3, 1700), (3, 50, 34), (34, 3, 50)), (2, 0, 1)),
    ):
        types = [tensor(shape, element) for shape in shapes]
        ops = [
            call("reshape", ["%a0"], [types[0]], types[1], shape=integers(shapes[1])),
            call("permute", ["%0"], types[1:2], types[2], permutation=array(order)),
        ]
        yield function(name, types[:1], ops)
    for name, element, shapes, order in (
        ("join", "bf16", ((1, 2, 64, 64), (1, 64, 2, 64), (64, 128)), (0, 2, 1, 3)),
        ("join_odd", "f32", ((1, 3, 40, 50), (1, 40, 3, 50), (40, 150)), (0, 2, 1, 3)),
        ("join_wide", "bf16", ((2, 3, 33, 96), (2, 33, 3, 96), (66, 288)), (0, 2, 1, 3)),
    ):
        types = [tensor(shape, element) for shape in shapes]
        ops = [
            call("permute", ["%a0"], [types[0]], types[1], permutation=array(order)),
            call("reshape", ["%0"], types[1:2], types[2], shape=integers(shapes[2])),
        ]
        yield function(name, types[:1], ops)


def caches() -> Iterator[str]:
    """Rows that are written into tensors in place: heads of 70 elements, so that their last
    tiles are not full, and positions that do not fill a tile."""
    for element, new in (("bf16", "bf16"), ("f32", "f32"), ("bf16", "f32")):
        cache, entry = tensor((3, 2, 100, 70), element), tensor((2, 2, 40, 70), new)
        fill = call("fill_cache", ["%a0", "%a1"], [cache, entry], cache, batch_offset="1 : i32")
        yield function(f"fill_{element}_{new}", [cache, entry], [fill])
        types = [cache, tensor((1, 2, 3, 70), new), tensor((3,), "si32")]
        exp = call("exp", ["%a0"], [cache], cache)
        update = call("update_cache", ["%a0", "%a1", "%a2"], types, cache, batch_offset="0 : i32")
        after = call("exp", ["%1"], [cache], cache)
        results = f"%0, %2 : {cache}, {cache}"
        yield function(f"update_{element}_{new}", types, [exp, update, after], results)
    pages = tensor((8, 2, 64, 70), "bf16")
    for name, entry, others in (
        ("paged_fill_cache", (2, 2, 130, 70), ((3, 4), (2,))),
        ("paged_update_cache", (1, 3, 2, 70), ((3,), (3, 2))),
    ):
        types = [pages, tensor(entry, "bf16"), *(tensor(shape, "si32") for shape in others)]
        parts = {"operandSegmentSizes": "array<i32: 1, 1, 1, 1>"}
        op = call(name, ["%a0", "%a1", "%a2", "%a3"], types, pages, **parts)
        yield function(name, types, [op])
    rows = tensor((3, 2, 64, 64), "f32")
    types = [rows, tensor((1, 3, 32, 64), "f32"), tensor((3,), "ui32")]
    parts = {"operandSegmentSizes": "array<i32: 1, 1, 1, 0>"}
    op = call("paged_update_cache", ["%a0", "%a1", "%a2"], types, rows, **parts)
    yield function("without_pages", types, [op])


def scatter(
    name: str, shapes: tuple[Shape, Shape, Shape], element: str, reduction: str, dim: int,
    index: str = "si32",
) -> str:  # fmt: skip
    """A function that scatters: shapes of the input, the indices and the source."""
    of_input, of_index, of_source = shapes
    types = [tensor(of_input, element), tensor(of_index, index), tensor(of_source, element)]
    words = {
        "dim": f"{dim} : i32",
        "scatter_reduce_type": f"#ttcore.reduce_type<{reduction}>",
    }
    line = call("scatter", ["%a0", "%a1", "%a2"], types, types[0], **words)
    return function(name, types, [line])


def gradient(name: str, indices: Shape, rows: int, columns: int, element: str) -> str:
    """A function that adds up the rows of a gradient."""
    types = [
        tensor(indices, "si32"),
        tensor((rows, columns), element),
        tensor((*indices, columns), element),
    ]
    line = call("embedding_backward", ["%a0", "%a1", "%a2"], types, types[1])
    return function(name, types, [line])


def scatters() -> Iterator[str]:
    """Elements and rows that are written, or added, by index."""
    shapes = (64, 48), (8, 48), (8, 48)
    for element, reductions in {"bf16": REDUCTIONS, "f32": ("sum",), "si32": ("invalid",)}.items():
        for reduction in reductions:
            yield scatter(f"{reduction}_{element}", shapes, element, reduction, 0)
    yield gradient("gradient", (2, 20), 70, 40, "bf16")
