"""Functions of what the matrix engine multiplies: products, attention, convolutions and pools."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.ttmetal.function_text import Shape, array, call, function, single, tensor

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
    """Matmuls, with and without transposed operands."""
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
    for name, query, key, element, words, mask in (
        ("sink", (2, 4, 70, 32), (2, 70), "bf16", {"is_causal": "true"}, None),
        ("sink_of_token", (2, 4, 1, 32), (2, 45), "f32", {}, (2, 1, 1, 45)),
        ("sink_in_parts", (1, 6, 40, 64), (1, 6016), "bf16", {}, None),
        (
            "sink_and_band", (1, 2, 70, 32), (1, 70), "f32",
            {"is_causal": "true", "sliding_window_size": "20 : ui32"}, None,
        ),
    ):  # fmt: skip
        keys = (query[0], *key, query[3])
        yield _one_attention(name, query, keys, element, words, mask, sink=True)


def hidden() -> Iterator[str]:
    """Softmax and attention of rows in which a mask hides everything: with the lowest number, with
    a large one, and with minus infinity."""
    for element, least, infinity in (
        ("f32", "-3.4028234663852886E+38", "0xFF800000"),
        ("bf16", "-3.3895313892515355E+38", "0xFF800000"),
    ):
        for word, number in (("least", least), ("large", "-1.0E+9"), ("all", infinity)):
            name = f"hidden_{word}_{element}"
            for keys in (70, 6016):
                query, key, mask = (1, 1, 40, 32), (1, 1, keys, 32), (1, 1, 40, keys)
                types = [tensor(shape, element) for shape in (query, key, key, mask)]
                words = {"is_causal": "false"}
                words["operandSegmentSizes"] = "array<i32: 1, 1, 1, 1, 0>"
                operands = ["%a0", "%a1", "%a2", "%2"]
                op = call("scaled_dot_product_attention", operands, types, types[0], **words)
                ops = [*_hiding_rows(mask, element, number), op]
                yield function(f"{name}_{keys}", types[:3], ops)
            row = tensor((40, 70), element)
            ops = [
                *_hiding_rows((40, 70), element, number),
                call("add", ["%a0", "%2"], [row, row], row),
                call("softmax", ["%3"], [row], row, dimension="1 : si32"),
            ]
            yield function(f"{name}_softmax", [row], ops)


def _hiding_rows(shape: Shape, element: str, number: str) -> list[str]:
    """Calls that make a mask, as %2: `number` in the first 20 rows, 0 in others."""
    *outer, rows, columns = shape
    shapes = [(*outer, 20, columns), (*outer, rows - 20, columns)]
    types = [tensor(part, element) for part in shapes]
    parts = [
        call("full", [], [], type_, shape=array(part, "i32"), fill_value=f"{value} : f32")
        for part, type_, value in zip(shapes, types, (number, "0.0"), strict=True)
    ]
    words = {"dim": f"{len(outer)} : si32"}
    return [*parts, call("concat", ["%0", "%1"], types, tensor(shape, element), **words)]


def _one_attention(
    name: str,
    query: Shape,
    keys: Shape,
    element: str,
    words: dict[str, str],
    mask: Shape | None,
    sink: bool = False,
) -> str:
    types = [tensor(shape, element) for shape in (query, keys, keys)]
    types += [tensor(mask, element)] if mask is not None else []
    types += [tensor((1, query[1], 1, 1), element)] if sink else []
    words = {"is_causal": "false", **words}
    words["operandSegmentSizes"] = f"array<i32: 1, 1, 1, {int(mask is not None)}, {int(sink)}>"
    names = [f"%a{number}" for number in range(len(types))]
    op = call("scaled_dot_product_attention", names, types, types[0], **words)
    return function(f"attention_{name}", types, [op])


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
            key: f"{value} : i32" if isinstance(value, int) else array(value, "i32")
            for key, value in numbers.items()
        }
        types = [tensor(shape, element) for shape in (image, weight)]
        whole, bias = tensor(result, element), tensor((*[1] * (rank + 1), result[-1]), element)
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
            "kernel": array((3, 2) if ceil == "false" else (2, 1), "i32"),
            "stride": array((2, 2), "i32"),
            "padding": array((1, 0, 1, 0), "i32"),
            "dilation": array((1, 1), "i32"),
            "ceil_mode": ceil,
        }
        shape = (2, 10, 71, 40)
        yield single(f"max_pool_{element}", "max_pool2d", [shape], result, element, **words)
        for counted in ("true", "false"):
            yield single(f"avg_pool_{element}_{counted}", "avg_pool2d", [shape], result, element,
                         **words, count_include_pad=counted)  # fmt: skip
