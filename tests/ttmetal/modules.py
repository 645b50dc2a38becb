"""TTIR text of functions that show what programs of the device can do, by what they are about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

Shape = Sequence[int]


def tensor(shape: Shape, element: str) -> str:
    """The type of a tensor."""
    return f"tensor<{'x'.join([*map(str, shape), element])}>"


def call(
    name: str, operands: Sequence[str], types: Sequence[str], result: str, **words: str
) -> str:
    """An op; the keywords are its attributes."""
    attributes = ", ".join(f"{key} = {value}" for key, value in words.items())
    listed = f" <{{{attributes}}}>" if words else ""
    return f'"ttir.{name}"({", ".join(operands)}){listed} : ({", ".join(types)}) -> {result}'


def function(name: str, types: Sequence[str], ops: Sequence[str], results: str = "") -> str:
    """A function of arguments %a0, %a1 and so on.

    Args:
        name: its name.
        types: those of the arguments, perhaps with attributes.
        ops: what gives %0, %1 and so on.
        results: what it returns, with types behind a colon; the last op's result if empty.
    """
    arguments = ", ".join(f"%a{index}: {type_}" for index, type_ in enumerate(types))
    results = results or f"%{len(ops) - 1} : {ops[-1].rsplit('-> ', 1)[1]}"
    given = results.partition(" : ")[2]
    lines = [f"%{number} = {op}" for number, op in enumerate(ops)]
    body = "".join(f"    {line}\n" for line in [*lines, f"return {results}"])
    return f"  func.func @{name}({arguments}) -> ({given}) {{\n{body}  }}\n"


def single(
    name: str, op: str, shapes: Sequence[Shape], result: Shape, element: str, **words: str
) -> str:
    """A function of one op whose operands and result have one element type."""
    types = [tensor(shape, element) for shape in shapes]
    names = [f"%a{index}" for index in range(len(shapes))]
    return function(name, types, [call(op, names, types, tensor(result, element), **words)])


def _integers(values: Sequence[int], type_: str = "i32") -> str:
    return f"[{', '.join(f'{value} : {type_}' for value in values)}]"


def _array(values: Sequence[int]) -> str:
    return f"array<i64: {', '.join(map(str, values))}>"


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


def _reduction(
    name: str, kind: str, shape: Shape, dims: Sequence[int], keep: bool, element: str
) -> str:
    kept = [1 if axis in dims else size for axis, size in enumerate(shape)]
    left = [size for axis, size in enumerate(shape) if axis not in dims]
    words = {"dim_arg": _integers(dims), "keep_dim": str(keep).lower()}
    return single(name, kind, [shape], kept if keep else left, element, **words)


MATMULS: dict[str, tuple[Shape, Shape, Shape, str]] = {
    "whole_blocks": ((256, 256), (256, 256), (256, 256), "bf16"),
    "unaligned": ((70, 50), (50, 33), (70, 33), "bf16"),
    "unaligned_f32": ((33, 100), (100, 70), (33, 70), "f32"),
    "inner_blocks": ((40, 600), (600, 64), (40, 64), "bf16"),
    "prime_inner": ((32, 352), (352, 32), (32, 32), "f32"),
    "beyond_the_grid": ((2100, 32), (32, 64), (2100, 64), "bf16"),
    "beyond_both": ((2080, 32), (32, 2100), (2080, 2100), "bf16"),
    "batched": ((3, 40, 50), (3, 50, 70), (3, 40, 70), "bf16"),
    "broadcast_right": ((2, 3, 40, 50), (50, 70), (2, 3, 40, 70), "f32"),
    "broadcast_both": ((2, 1, 40, 50), (1, 3, 50, 70), (2, 3, 40, 70), "bf16"),
    "vector_matrix": ((50,), (50, 70), (70,), "bf16"),
    "matrix_vector": ((70, 50), (50,), (70,), "f32"),
    "vectors": ((70,), (70,), (), "f32"),
    "batch_vector": ((3, 40, 50), (50,), (3, 40), "bf16"),
}
"""Shapes of the operands and the result by what is about them."""


def matmuls() -> Iterator[str]:
    """Products of matrices, with and without transposed operands."""
    for name, (left, right, result, element) in MATMULS.items():
        yield single(name, "matmul", [left, right], result, element)
    for element, left, right in (
        ("bf16", True, False),
        ("f32", False, True),
        ("bf16", True, True),
        ("f32", True, True),
    ):
        shapes = [(50, 40) if left else (40, 50), (70, 50) if right else (50, 70)]
        words = {"transpose_a": str(left).lower(), "transpose_b": str(right).lower()}
        name = f"transposed_{element}_{int(left)}{int(right)}"
        yield single(name, "matmul", shapes, (40, 70), element, **words)
    yield from _one_matrix()
    yield _fused("bias_gelu", "bf16", (40, 600), (600, 70), (70,), "gelu")
    yield _fused("bias_sigmoid", "f32", (3, 40, 50), (50, 70), (40, 70), "sigmoid")
    yield _fused("bias_relu", "bf16", (600, 64), (64, 600), (600, 600), "relu")
    yield _block_floats("block_floats", 128)
    yield _block_floats("block_floats_unaligned", 100)


def _one_matrix() -> Iterator[str]:
    """Batches that one matrix serves, with what comes after them in all forms: a residual, a row, a
    column, and what is broadcast over one of the batches."""
    for name, left, extra in (
        ("rows", (4, 14, 40), ((70,), (4, 14, 70))),
        ("columns", (2, 3, 70, 40), ((1, 1, 1, 70), (2, 3, 70, 1))),
        ("single_rows", (33, 1, 40), ((33, 1, 70),)),
        ("part", (2, 3, 70, 40), ((2, 1, 70, 70),)),
    ):
        shapes = [left, (*[1] * (len(left) - 2), 40, 70), *extra]
        types = [tensor(shape, "bf16") for shape in shapes]
        result = tensor((*left[:-1], 70), "bf16")
        ops = [call("matmul", ["%a0", "%a1"], types[:2], result)]
        for number, type_ in enumerate(types[2:]):
            operands = [f"%{number}", f"%a{number + 2}"]
            ops.append(call("add", operands, [result, type_], result))
        yield function(f"one_matrix_{name}", types, ops)


def _fused(name: str, element: str, left: Shape, right: Shape, bias: Shape, activation: str) -> str:
    types = [tensor(shape, element) for shape in (left, right, bias)]
    result = tensor([*left[:-1], right[-1]], element)
    ops = [
        call("linear", ["%a0", "%a1", "%a2"], types, result),
        call(activation, ["%0"], [result], result),
    ]
    return function(name, types, ops)


def _block_floats(name: str, inner: int) -> str:
    types = [tensor((70, inner), "bf16"), tensor((inner, 96), "bf16")]
    marked = [types[0], f'{types[1]} {{ttcore.weight_dtype = "bfp_bf8"}}']
    op = call("matmul", ["%a0", "%a1"], types, tensor((70, 96), "bf16"))
    return function(name, marked, [op])


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
        words = {"shape": _integers(result)}
        yield "reshape_" + "x".join(map(str, result)), "reshape", [(3, 70, 50)], result, words
    for order in ((1, 0, 2), (0, 2, 1), (2, 0, 1)):
        shape = (3, 40, 70)
        result = [shape[axis] for axis in order]
        name = "permute_" + "".join(map(str, order))
        yield name, "permute", [shape], result, {"permutation": _array(order)}
    for name, (begins, ends, steps) in _SLICES.items():
        result = [-(-(e - b) // s) for b, e, s in zip(begins, ends, steps, strict=True)]
        words = {key: _integers(v) for key, v in (("begins", begins), ("ends", ends))}
        yield name, "slice_static", [(70, 50)], result, {**words, "step": _integers(steps)}
    for dim, shapes in enumerate((((2, 40, 70), (1, 40, 70)), ((2, 33, 70), (2, 7, 70)))):
        result = [sum(s[axis] for s in shapes) if axis == dim else size
                  for axis, size in enumerate(shapes[0])]  # fmt: skip
        yield f"concat_{dim}", "concat", shapes, result, {"dim": f"{dim} : si32"}
    yield "concat_2", "concat", [(40, 33), (40, 50), (40, 1)], (40, 84), {"dim": "1 : si32"}
    padding = {"padding": "array<i32: 0, 1, 3, 2, 5, 4>", "value": "1.0 : f32"}
    yield "pad", "pad", [(2, 40, 70)], (3, 45, 79), padding
    yield "repeat", "repeat", [(2, 33, 40)], (4, 33, 120), {"repeat_dimensions": _array((2, 1, 3))}
    factors = {"scale_factor": "array<i32: 3, 2>", "mode": '"nearest"'}
    yield "upsample", "upsample2d", [(2, 5, 6, 40)], (2, 15, 12, 40), factors
    yield "reverse", "reverse", [(2, 40, 70)], (2, 40, 70), {"dimensions": _array((0, 2))}


def layers() -> Iterator[str]:
    """What is decomposed."""
    for element, axis in (("bf16", 2), ("f32", 1), ("f32", -1)):
        shape = (3, 50, 70)
        words = {"dimension": f"{axis} : si32"}
        name = f"softmax_{element}_{axis % 3}_{int(axis < 0)}"
        yield single(name, "softmax", [shape], shape, element, **words)
    for element in ("bf16", "f32"):
        shape, width = (2, 50, 70), (70,)
        norm = {"normalized_shape": _array(width)}
        parts = "operandSegmentSizes"
        rms = {**norm, parts: "array<i32: 1, 1, 0>"}
        layer = {**norm, parts: "array<i32: 1, 1, 1>"}
        yield single(f"rms_norm_{element}", "rms_norm", [shape, width], shape, element, **rms)
        yield single(
            f"layer_norm_{element}", "layer_norm", [shape, width, width], shape, element, **layer
        )
        yield _embedding(f"embedding_{element}", (3, 40), (100, 70), element)
    yield _attention("attention", "bf16", (2, 4, 40, 64))


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
            call("reshape", ["%a0"], [types[0]], types[1], shape=_integers(shapes[1])),
            call("permute", ["%0"], types[1:2], types[2], permutation=_array(order)),
        ]
        yield function(name, types[:1], ops)
    for name, element, shapes, order in (
        ("join", "bf16", ((1, 2, 64, 64), (1, 64, 2, 64), (64, 128)), (0, 2, 1, 3)),
        ("join_odd", "f32", ((1, 3, 40, 50), (1, 40, 3, 50), (40, 150)), (0, 2, 1, 3)),
        ("join_wide", "bf16", ((2, 3, 33, 96), (2, 33, 3, 96), (66, 288)), (0, 2, 1, 3)),
    ):
        types = [tensor(shape, element) for shape in shapes]
        ops = [
            call("permute", ["%a0"], [types[0]], types[1], permutation=_array(order)),
            call("reshape", ["%0"], types[1:2], types[2], shape=_integers(shapes[2])),
        ]
        yield function(name, types[:1], ops)


def rows() -> Iterator[str]:
    """What goes over rows of tiles several times: with and without padding, rows that L1 holds and
    longer ones, several results, and operands of each shape."""
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
            "normalized_shape": _array((width,)),
            "operandSegmentSizes": "array<i32: 1, 1, 1>",
        }
        ops = [
            call("add", ["%a0", "%a1"], [whole, whole], whole),
            call("layer_norm", ["%0", "%a2", "%a3"], [whole, row, row], whole, **words),
        ]
        types = [whole, whole, row, row]
        yield function(f"norm_{element}", types, ops, f"%1, %0 : {whole}, {whole}")
    yield _spread("spread", (70, 50), "f32")
    yield _spread("spread_whole", (64, 64), "bf16")


def _spread(name: str, shape: Shape, element: str) -> str:
    """Distances from the least of a row, in another unit, with their sums in a third."""
    whole, column = tensor(shape, element), tensor((shape[0], 1), element)
    words = {"dim_arg": _integers((1,)), "keep_dim": "true"}
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
        words = {"dim_arg": _integers(dims), "keep_dim": "false"}
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


def _embedding(name: str, indices: Shape, table: Shape, element: str) -> str:
    types = [tensor(indices, "ui32" if element == "bf16" else "si32"), tensor(table, element)]
    result = tensor([*indices, table[-1]], element)
    return function(name, types, [call("embedding", ["%a0", "%a1"], types, result)])


def _attention(name: str, element: str, shape: Shape) -> str:
    """Scores, their softmax with a mask, and the weighted values; heads come together behind."""
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
        call("permute", ["%5"], [whole], tensor(moved, element), permutation=_array((0, 2, 1, 3))),
        call("reshape", ["%6"], [tensor(moved, element)],
             tensor((batch, length, heads * size), element),
             shape=_integers((batch, length, heads * size))),
    ]  # fmt: skip
    return function(name, [*[whole] * 3, mask], ops)


def attention() -> Iterator[str]:
    """Scores that never leave L1: with padding along each dimension, groups of heads, masks of each
    shape, and what is left to others."""
    for name, query, key, width, element, words, mask in (
        ("plain", (1, 4, 64, 64), (4, 96), 64, "bf16", {}, None),
        ("causal", (2, 4, 70, 50), (2, 70), 50, "f32", {"is_causal": "true"}, None),
        ("one_tile", (1, 2, 20, 32), (2, 20), 32, "bf16", {"is_causal": "true"}, None),
        ("token", (2, 8, 1, 64), (2, 45), 64, "bf16", {"scale": "0.2 : f32"}, (2, 1, 1, 45)),
        ("masked", (2, 2, 40, 32), (2, 70), 32, "f32", {}, (2, 1, 40, 70)),
        ("heads", (1, 4, 33, 32), (2, 64), 32, "bf16", {"scale": "1.0 : f32"}, (1, 4, 33, 64)),
        (
            "band", (1, 2, 70, 32), (1, 70), 32, "bf16",
            {"is_causal": "true", "sliding_window_size": "20 : ui32"}, None,
        ),
        ("long", (1, 2, 32, 64), (1, 6016), 64, "bf16", {}, None),
    ):  # fmt: skip
        keys = (query[0], *key, width)
        yield _one_attention(name, query, keys, element, words, mask)


def _one_attention(
    name: str,
    query: Shape,
    keys: Shape,
    element: str,
    words: dict[str, str],
    mask: Shape | None,
) -> str:
    types = [tensor(shape, element) for shape in (query, keys, keys)]
    types += [tensor(mask, element)] if mask is not None else []
    words = {"is_causal": "false", **words}
    words["operandSegmentSizes"] = f"array<i32: 1, 1, 1, {int(mask is not None)}, 0>"
    names = [f"%a{number}" for number in range(len(types))]
    op = call("scaled_dot_product_attention", names, types, types[0], **words)
    return function(f"attention_{name}", types, [op])


def plumbing() -> Iterator[str]:
    """How values go through functions."""
    a, row = tensor((40, 70), "f32"), tensor((1, 70), "f32")
    listed = ", ".join(f"{number / 8:.3f}" for number in range(70))
    numbers = call("constant", [], [], row, value=f"dense<[[{listed}]]> : {row}")
    total = {"dim_arg": _integers((1,)), "keep_dim": "true"}
    column = tensor((40, 1), "f32")
    yield function(
        "several_results",
        [a, a],
        [
            numbers,
            call("add", ["%a0", "%0"], [a, row], a),
            call("exp", ["%a1"], [a], a),
            call("multiply", ["%1", "%2"], [a, a], a),
            call("sum", ["%3"], [a], column, **total),
            call("subtract", ["%3", "%4"], [a, column], a),
        ],
        f"%1, %5, %3, %4 : {a}, {a}, {a}, {column}",
    )
    yield function("unchanged", [a, row], [call("neg", ["%a0"], [a], a)],
                   f"%a1, %0, %a0 : {row}, {a}, {a}")  # fmt: skip
    yield function("twice", [a], [call("abs", ["%a0"], [a], a)], f"%0, %0 : {a}, {a}")
    for element, value in (("f32", "0.3 : f32"), ("bf16", "-2.0 : f32"), ("si32", "7 : i32")):
        filled = tensor((3, 40), element)
        yield function(
            f"filled_{element}",
            [],
            [call("full", [], [], filled, shape="array<i32: 3, 40>", fill_value=value)],
        )
    yield function("kept_constant", [], [numbers])
    small = tensor((40, 70), "ui16")
    hundred = call("full", [], [], a, shape="array<i32: 40, 70>", fill_value="100.0 : f32")
    grown = call("multiply", ["%a0", "%0"], [a, a], a)
    yield function("fractions_cut_off", [a], [hundred, grown, call("typecast", ["%1"], [a], small)])
    view = tensor((1, 40, 70), "f32")
    yield function(
        "free_reshape",
        [a],
        [
            call("sin", ["%a0"], [a], a),
            call("reshape", ["%0"], [a], view, shape=_integers((1, 40, 70))),
            call("cos", ["%1"], [view], view),
            call("reshape", ["%2"], [view], a, shape=_integers((40, 70))),
        ],
        f"%3, %1 : {a}, {view}",
    )


def sharing() -> Iterator[str]:
    """Values that one program reads in several places."""
    a, column = tensor((64, 70), "bf16"), tensor((64, 1), "bf16")
    total = {"dim_arg": _integers((1,)), "keep_dim": "true"}
    yield function(
        "around_a_reduction",
        [a, column],
        [
            call("multiply", ["%a0", "%a1"], [a, column], a),
            call("sum", ["%0"], [a], column, **total),
            call("add", ["%1", "%a1"], [column] * 2, column),
        ],
    )
    yield function(
        "results_in_other_registers",
        [a, column],
        [
            call("sum", ["%a0"], [a], column, **total),
            call("add", ["%a1", "%0"], [column] * 2, column),
            call("exp", ["%0"], [column], column),
        ],
        f"%1, %0, %2 : {column}, {column}, {column}",
    )
    square = tensor((96, 96), "bf16")
    for name, left, right, behind in (
        ("left_and_behind", "%a0", "%a1", "%a0"),
        ("right_and_behind", "%a0", "%a1", "%a1"),
        ("everywhere", "%a0", "%a0", "%a0"),
    ):
        ops = [
            call("matmul", [left, right], [square] * 2, square),
            call("add", ["%0", behind], [square] * 2, square),
        ]
        yield function(name, [square] * 2, ops)
    yield function(
        "filled",
        [square],
        [
            call("full", [], [], square, shape="array<i32: 96, 96>", fill_value="3.0 : f32"),
            call("add", ["%0", "%a0"], [square] * 2, square),
            call("matmul", ["%1", "%0"], [square] * 2, square),
            call("multiply", ["%2", "%0"], [square] * 2, square),
        ],
        f"%0, %3 : {square}, {square}",
    )


def broadcasts() -> Iterator[str]:
    """Operands whose tiles cores need several times, and keep."""
    for element in ("bf16", "f32"):
        shapes = (4096, 64), (1, 64), (4096, 1), (1, 1)
        types = [tensor(shape, element) for shape in shapes]
        column = tensor((4096, 1), element)
        ops = [
            call("multiply", ["%a0", "%a1"], types[:2], types[0]),
            call("add", ["%0", "%a2"], [types[0], column], types[0]),
            call("subtract", ["%1", "%a3"], [types[0], types[3]], types[0]),
            call("sum", ["%2"], types[:1], column, dim_arg=_integers((1,)), keep_dim="true"),
            call("multiply", ["%3", "%a3"], [column, types[3]], column),
        ]
        yield function(f"kept_{element}", types, ops)


def caches() -> Iterator[str]:
    """Rows that are written into tensors where they lie: heads of 70 elements, so that their last
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


_CONVOLUTIONS: dict[str, tuple[str, Shape, Shape, Shape, str, dict[str, Sequence[int] | int]]] = {
    "padded": ("conv2d", (2, 10, 40, 40), (70, 40, 3, 3), (2, 5, 20, 70), "bf16",
               {"stride": (2, 2), "padding": (1, 1, 1, 1)}),
    "wide": ("conv2d", (1, 9, 75, 64), (96, 64, 3, 2), (1, 7, 74, 96), "f32", {}),
    "dilated": ("conv2d", (1, 20, 12, 8), (8, 8, 3, 3), (1, 16, 6, 8), "bf16",
                {"dilation": (2, 3)}),
    "many_rows": ("conv2d", (1, 90, 64, 32), (64, 32, 2, 3), (1, 91, 64, 64), "bf16",
                  {"padding": (1, 1, 1, 1)}),
    "pointwise": ("conv2d", (1, 8, 20, 48), (40, 48, 1, 1), (1, 8, 20, 40), "f32", {}),
    "depthwise": ("conv2d", (1, 9, 9, 96), (96, 1, 3, 3), (1, 9, 9, 96), "bf16",
                  {"padding": (1, 1, 1, 1), "groups": 96}),
    "groups": ("conv2d", (1, 6, 7, 12), (8, 3, 2, 2), (1, 5, 6, 8), "f32", {"groups": 4}),
    "groups_of_tiles": ("conv2d", (1, 6, 7, 128), (128, 64, 2, 2), (1, 5, 6, 128), "bf16",
                        {"groups": 2}),
    "volume": ("conv3d", (1, 4, 9, 10, 16), (24, 16, 3, 3, 3), (1, 4, 5, 8, 24), "bf16",
               {"stride": (1, 2, 1), "padding": (1, 1, 0)}),
    "transposed": ("conv_transpose2d", (1, 5, 6, 16), (16, 24, 3, 3), (1, 10, 12, 24), "bf16",
                   {"stride": (2, 2), "padding": (1, 1, 1, 1), "output_padding": (1, 1)}),
    "transposed_f32": ("conv_transpose2d", (2, 4, 40, 8), (8, 4, 2, 4), (2, 5, 121, 4), "f32",
                       {"stride": (1, 3)}),
}  # fmt: skip
"""The op, the shapes of input, weight and result, the element type and what is not usual."""


def windows() -> Iterator[str]:
    """Convolutions, with and without ops after them, and pools."""
    for name, (op, image, weight, result, element, words) in _CONVOLUTIONS.items():
        rank = len(image) - 2
        numbers: dict[str, Sequence[int] | int] = {
            "stride": (1,) * rank,
            "padding": (0,) * rank,
            **({} if op == "conv3d" else {"dilation": (1,) * rank}),
            **words,
        }
        given = {
            key: f"{value} : i32" if isinstance(value, int) else _array32(value)
            for key, value in numbers.items()
        }
        types = [tensor(shape, element) for shape in (image, weight)]
        whole, bias = tensor(result, element), tensor((1,) * (rank + 1) + result[-1:], element)
        ops = [
            call(op, ["%a0", "%a1", "%a2"], [*types, bias], whole, **given),
            call("relu", ["%0"], [whole], whole),
            call("add", ["%1", "%a3"], [whole, whole], whole),
        ]
        yield function(f"conv_{name}", [*types, bias, whole], ops)
        bare = call(op, ["%a0", "%a1"], types, whole, **given)
        yield function(f"conv_{name}_alone", types, [bare])
    for element, ceil in (("bf16", "false"), ("f32", "true")):
        result = (2, 5, 35, 40) if ceil == "false" else (2, 6, 36, 40)
        words = {
            "kernel": _array32((3, 2) if ceil == "false" else (2, 1)),
            "stride": _array32((2, 2)),
            "padding": _array32((1, 0, 1, 0)),
            "dilation": _array32((1, 1)),
            "ceil_mode": ceil,
        }
        shape = (2, 10, 71, 40)
        yield single(f"max_pool_{element}", "max_pool2d", [shape], result, element, **words)
        for counted in ("true", "false"):
            yield single(f"avg_pool_{element}_{counted}", "avg_pool2d", [shape], result, element,
                         **words, count_include_pad=counted)  # fmt: skip


def _array32(values: Sequence[int]) -> str:
    return f"array<i32: {', '.join(map(str, values))}>"


_OFTEN_MEANT = """
    x x_address x_tensor cb_x reserve_back noc_async_read_page get_write_ptr row column batch_0 tile
    first count left right partial scaler program programs device workload core cores share reader
    compute writer reader_kernel output_tiles read_left receive_right left_sent class
""".split()


def names() -> Iterator[str]:
    """Tensors that are called as kernels, host and the device's API call other things."""
    square = tensor((64, 64), "bf16")
    for number in range(0, len(_OFTEN_MEANT), 4):
        given = [*_OFTEN_MEANT[number:], "y", "z", "w"][:4]
        types = [f'{square} {{ttir.name = "{name}"}}' for name in given]
        ops = [
            call("matmul", ["%a0", "%a1"], [square] * 2, square),
            call("add", ["%0", "%a2"], [square] * 2, square),
            call("subtract", ["%a3", "%a2"], [square] * 2, square),
            call("permute", ["%2"], [square], square, permutation=_array((1, 0))),
        ]
        yield function(f"names_{number // 4}", types, ops, f"%1, %3 : {square}, {square}")


MODULES = {
    "reductions": reductions,
    "matmuls": matmuls,
    "movements": movements,
    "layers": layers,
    "reorderings": reorderings,
    "rows": rows,
    "attention": attention,
    "plumbing": plumbing,
    "sharing": sharing,
    "broadcasts": broadcasts,
    "names": names,
    "caches": caches,
    "scans": scans,
    "windows": windows,
}


def text_of(name: str) -> str:
    """The text of a module by its name in `MODULES`."""
    return f"module {{\n{''.join(MODULES[name]())}}}\n"
