"""Functions that go over rows: reductions, softmaxes, norms, running sums, orders and gathers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from tests.ttmetal.function_text import Shape, array, call, function, integers, single, tensor

REDUCED = {1: (70,), 2: (40, 70), 3: (3, 40, 70), 4: (2, 3, 40, 70)}
"""Shapes by their rank; the last two sizes are no multiples of 32."""
KINDS = ("sum", "mean", "max", "min")


def reductions() -> Iterator[str]:
    """Every set of dimensions of each rank, with every kind of reduction, data type and rank of the
    result somewhere."""
    number = 0
    for rank, shape in REDUCED.items():
        for size in range(1, rank + 1):
            for dims in combinations(range(rank), size):
                for turn in range(2):
                    kind = KINDS[(number + 2 * turn) % 4]
                    keep = (number // 2 + turn) % 2 == 0
                    element = ("bf16", "f32")[(number // 4 + turn) % 2]
                    yield _reduction(f"{kind}_{number}_{turn}", kind, shape, dims, keep, element)
                number += 1
    # Integers that no float of the matrix engine holds.
    for kind, dims in (("sum", (0, 1, 2)), ("max", (1,)), ("min", (2,)), ("prod", (1,))):
        yield _reduction(f"{kind}_of_integers", kind, (3, 40, 7), dims, kind == "sum", "i32")


def _reduction(
    name: str, kind: str, shape: Shape, dims: Sequence[int], keep: bool, element: str
) -> str:
    kept = [1 if axis in dims else size for axis, size in enumerate(shape)]
    left = [size for axis, size in enumerate(shape) if axis not in dims]
    words = {"dim_arg": integers(dims), "keep_dim": str(keep).lower()}
    return single(name, kind, [shape], kept if keep else left, element, **words)


def layers() -> Iterator[str]:
    """Functions of ops that are decomposed."""
    for element, axis in (("bf16", 2), ("f32", 1), ("f32", -1)):
        shape = (3, 50, 70)
        words = {"dimension": f"{axis} : si32"}
        name = f"softmax_{element}_{axis % 3}_{int(axis < 0)}"
        yield single(name, "softmax", [shape], shape, element, **words)
    for element in ("bf16", "f32"):
        shape, width = (2, 50, 70), (70,)
        norm = {"normalized_shape": array(width)}
        parts = "operandSegmentSizes"
        rms = {**norm, parts: "array<i32: 1, 1, 0>"}
        layer = {**norm, parts: "array<i32: 1, 1, 1>"}
        yield single(f"rms_norm_{element}", "rms_norm", [shape, width], shape, element, **rms)
        yield single(
            f"layer_norm_{element}", "layer_norm", [shape, width, width], shape, element, **layer
        )
        yield _embedding(f"embedding_{element}", (3, 40), (100, 70), element)
    yield _attention("attention", "bf16", (2, 4, 40, 64))


def _embedding(name: str, indices: Shape, table: Shape, element: str) -> str:
    types = [tensor(indices, "ui32" if element == "bf16" else "si32"), tensor(table, element)]
    result = tensor([*indices, table[-1]], element)
    return function(name, types, [call("embedding", ["%a0", "%a1"], types, result)])


def _attention(name: str, element: str, shape: Shape) -> str:
    """Scores, their softmax with a mask, and the weighted values; heads are joined afterwards."""
    batch, heads, length, size = shape
    whole = tensor(shape, element)
    scores = tensor((batch, heads, length, length), element)
    mask = tensor((batch, 1, length, length), element)
    scale = tensor((1, 1, 1, 1), element)
    moved = (batch, length, heads, size)
    ops = [
        call("matmul", ["%a0", "%a1"], [whole] * 2, scores, transpose_b="true"),
        call("full", [], [], scale, shape="array<i32: 1, 1, 1, 1>", fill_value="0.125 : f32"),
        call("multiply", ["%0", "%1"], [scores, scale], scores),
        call("add", ["%2", "%a3"], [scores, mask], scores),
        call("softmax", ["%3"], [scores], scores, dimension="3 : si32"),
        call("matmul", ["%4", "%a2"], [scores, whole], whole),
        call("permute", ["%5"], [whole], tensor(moved, element), permutation=array((0, 2, 1, 3))),
        call("reshape", ["%6"], [tensor(moved, element)],
             tensor((batch, length, heads * size), element),
             shape=integers((batch, length, heads * size))),
    ]  # fmt: skip
    return function(name, [*[whole] * 3, mask], ops)


def rows() -> Iterator[str]:
    """Functions whose programs pass over rows of tiles several times.

    With and without padding, rows that L1 holds and longer ones, several results, and operands of
    each shape.
    """
    for name, shape, element in (
        ("whole", (2, 96, 256), "bf16"),
        ("wide", (70, 128), "f32"),
        ("narrow", (5, 10), "f32"),
        ("long", (33, 20000), "bf16"),
    ):
        words = {"dimension": f"{len(shape) - 1} : si32"}
        yield single(f"softmax_{name}", "softmax", [shape], shape, element, **words)
    for element, width in (("bf16", 256), ("f32", 100)):
        shape = (2, 64, width)
        whole, row = tensor(shape, element), tensor((width,), element)
        words = {
            "normalized_shape": array((width,)),
            "operandSegmentSizes": "array<i32: 1, 1, 1>",
        }
        ops = [
            call("add", ["%a0", "%a1"], [whole, whole], whole),
            call("layer_norm", ["%0", "%a2", "%a3"], [whole, row, row], whole, **words),
        ]
        types = [whole, whole, row, row]
        yield function(f"norm_{element}", types, ops, f"%1, %0 : {whole}, {whole}")
    yield _range_of("range", (70, 50), "f32")
    yield _range_of("range_whole", (64, 64), "bf16")


def _range_of(name: str, shape: Shape, element: str) -> str:
    """Distances from the minimum of a row, in another unit, with their sums in a third."""
    whole, column = tensor(shape, element), tensor((shape[0], 1), element)
    words = {"dim_arg": integers((1,)), "keep_dim": "true"}
    ops = [
        call("abs", ["%a0"], [whole], whole),
        call("min", ["%0"], [whole], column, **words),
        call("subtract", ["%0", "%1"], [whole, column], whole),
        call("multiply", ["%2", "%a1"], [whole, column], whole),
        call("sum", ["%3"], [whole], column, **words),
        call("multiply", ["%4", "%a2"], [column, column], column),
    ]
    return function(name, [whole, column, column], ops, f"%3, %5 : {whole}, {column}")


def scans() -> Iterator[str]:
    """The places of the greatest elements, also where there are more than the matrix engine can
    count, and running sums."""
    for shape, dims, element in (
        ((3, 40, 70), (2,), "bf16"),
        ((1, 5, 5000), (2,), "f32"),
        ((3, 1100, 7), (1,), "bf16"),
        ((3, 40, 70), (0, 2), "si32"),
        ((70,), (0,), "f32"),
    ):
        left = [size for number, size in enumerate(shape) if number not in dims]
        words = {"dim_arg": integers(dims), "keep_dim": "false"}
        types = [tensor(shape, element)]
        op = call("argmax", ["%a0"], types, tensor(left, "si32") if left else "tensor<si32>",
                  **words)  # fmt: skip
        yield function(f"argmax_{shape[dims[-1]]}_{element}", types, [op])
    for shape, element in (((3, 40, 70), "bf16"), ((100,), "f32")):
        for axis in range(len(shape)):
            for kind in ("cumsum", "cumprod"):
                name = f"{kind}_{len(shape)}_{axis}"
                yield single(name, kind, [shape], shape, element, dim=f"{axis} : i64")
    yield from _orders()
    yield from _gathers()


def _orders() -> Iterator[str]:
    """Rows in order, along the last dimension and others, of all sizes of elements."""
    for name, shape, dim, kept, element, index in (
        ("rows", (3, 40, 70), 2, 70, "f32", "si32"),
        ("columns", (2, 50, 40), 1, 50, "bf16", "ui16"),
        ("integers", (64, 33), 1, 33, "si32", "si32"),
        ("bytes", (64, 100), -1, 100, "ui8", "si32"),
        ("few", (2, 64, 500), 2, 5, "bf16", "si32"),
        ("many", (5, 400), 1, 64, "f32", "ui32"),
        ("first", (4, 300, 6), 1, 1, "f32", "si32"),
    ):
        result = [kept if axis == dim % len(shape) else size for axis, size in enumerate(shape)]
        types = [tensor(result, element), tensor(result, index)]
        both = ", ".join(types)
        whole = kept == shape[dim]
        kind = f"sort_{name}" if whole else f"topk_{name}"
        which = "descending" if whole else "largest"
        words = f"dim = {dim} : i32, {which} = {str(name in ('rows', 'few', 'bytes')).lower()}"
        if not whole:
            words += f", k = {kept} : i32"
        yield (
            f"  func.func @{kind}(%a0: {tensor(shape, element)}) -> ({both}) {{\n"
            f'    %0, %1 = "ttir.{kind.partition("_")[0]}"(%a0) <{{{words}}}> : '
            f"({tensor(shape, element)}) -> ({both})\n"
            f"    return %0, %1 : {both}\n  }}\n"
        )


def _gathers() -> Iterator[str]:
    """Elements by index along each dimension, of a tensor that is longer along others too."""
    for name, shape, index, dim, element, kind in (
        ("last", (3, 40, 70), (3, 40, 33), 2, "f32", "ui32"),
        ("middle", (3, 40, 70), (3, 90, 70), 1, "bf16", "si32"),
        ("first", (30, 40), (5, 20), 0, "si32", "ui16"),
        ("vector", (100,), (70,), 0, "bf16", "si32"),
    ):
        types = [tensor(shape, element), tensor(index, kind)]
        op = call("gather", ["%a0", "%a1"], types, tensor(index, element), dim=f"{dim} : i32")
        yield function(f"gather_{name}", types, [op])
