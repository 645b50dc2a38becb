"""Functions of integers, and of ops that look at bits, places and pages."""

from __future__ import annotations

from collections.abc import Iterator

from tests.ttmetal.function_text import array, call, function, integers, single, tensor

_UNARY = "abs relu relu6 sign signbit square bitwise_not logical_not isfinite floor".split()
_BINARY = """
    add subtract multiply maximum minimum eq ne lt le gt ge logical_and logical_xor bitwise_and
    bitwise_or bitwise_xor
""".split()
_SHAPE = (5, 40)


def of_integers() -> Iterator[str]:
    """Elementwise ops of each type, then sums and running sums of them."""
    for element in ("ui32", "ui8"):
        type_ = tensor(_SHAPE, element)
        ops = [call(name, ["%a0"], [type_], type_) for name in _UNARY]
        ops += [call(name, ["%a0", "%a1"], [type_] * 2, type_) for name in _BINARY]
        ops.append(call("where", ["%a0", "%a0", "%a1"], [type_] * 3, type_))
        ops.append(call("clamp_tensor", ["%a0", "%a1", "%a0"], [type_] * 3, type_))
        ops.append(call("clamp_scalar", ["%a0"], [type_], type_, min="2 : i32", max="5 : i32"))
        given = ", ".join(f"%{number}" for number in range(len(ops)))
        results = f"{given} : {', '.join([type_] * len(ops))}"
        yield function(f"elements_{element}", [type_] * 2, ops, results)
    yield single("quotients", "div", [_SHAPE] * 2, _SHAPE, "si32")
    yield single("roots", "sqrt", [_SHAPE], _SHAPE, "si32")
    power = call("pow", ["%a0", "%a1"], [tensor(_SHAPE, "f32"), tensor(_SHAPE, "si32")],
                 tensor(_SHAPE, "f32"))  # fmt: skip
    yield function("powers", [tensor(_SHAPE, "f32"), tensor(_SHAPE, "si32")], [power])
    for kind in ("cumsum", "cumprod"):
        for axis in (0, 2):
            shape = (3, 37, 9)
            yield single(f"{kind}_{axis}", kind, [shape], shape, "i32", dim=f"{axis} : i64")
    words = {"dim_arg": integers((0, 1)), "keep_dim": "false"}
    yield single("total", "sum", [(3, 37, 9)], (9,), "ui32", **words)
    yield single("long_sums", "cumsum", [(2, 5000)], (2, 5000), "f32", dim="1 : i64")


def of_bits_and_places() -> Iterator[str]:
    """Bits in another type, slices from given places, places of maxima, pages of latent vectors,
    integers for floats, and interpolation."""
    for source, target in (("f32", "si32"), ("ui32", "f32"), ("bf16", "ui16"), ("ui16", "bf16")):
        types = [tensor((2, 35, 70), element) for element in (source, target)]
        bits = call("bitcast_convert", ["%a0"], types[:1], types[1])
        yield function(f"bits_{source}_{target}", types[:1], [bits])
    for element, places, shape, step in (
        ("bf16", "si32", (2, 17, 40), (1, 1, 1)),
        ("f32", "ui32", (3, 8, 70), (1, 3, 1)),
    ):
        types = [tensor((4, 35, 70), element), *[tensor((3,), places)] * 2]
        part = call("slice_dynamic", ["%a0", "%a1", "%a2"], types, tensor(shape, element),
                    step=integers(step))  # fmt: skip
        yield function(f"part_{element}", types, [part])
    for name, kernel, padding, dilation in (
        ("places", (3, 2), (1, 0, 1, 0), (1, 1)),
        ("places_apart", (2, 3), (0, 0, 0, 0), (2, 3)),
    ):
        yield _places(name, kernel, padding, dilation)
    yield from _quantized()
    yield single("between", "upsample2d", [(2, 5, 7, 33)], (2, 15, 14, 33), "bf16",
                 scale_factor=array((3, 2), "i32"), mode='"bilinear"')  # fmt: skip
    yield single("between_rows", "upsample2d", [(1, 6, 5, 9)], (1, 12, 5, 9), "f32",
                 scale_factor=array((2, 1), "i32"), mode='"bilinear"')  # fmt: skip
    yield from _latent()


def _places(
    name: str, kernel: tuple[int, int], padding: tuple[int, ...], dilation: tuple[int, int]
) -> str:
    source = tensor((2, 12, 11, 33), "bf16")
    sizes = [
        (size + padding[axis] + padding[axis + 2] - dilation[axis] * (kernel[axis] - 1) - 1) // 2
        + 1
        for axis, size in enumerate((12, 11))
    ]
    shape = (2, *sizes, 33)
    maxima, places = tensor(shape, "bf16"), tensor(shape, "si32")
    attributes = (
        f"kernel = {array(kernel, 'i32')}, stride = {array((2, 2), 'i32')}, "
        f"dilation = {array(dilation, 'i32')}, padding = {array(padding, 'i32')}, "
        "ceil_mode = false"
    )
    return (
        f"  func.func @{name}(%a0: {source}) -> ({maxima}, {places}) {{\n"
        f'    %0, %1 = "ttir.max_pool2d_with_indices"(%a0) <{{{attributes}}}> : '
        f"({source}) -> ({maxima}, {places})\n"
        f"    return %0, %1 : {maxima}, {places}\n  }}\n"
    )


def _quantized() -> Iterator[str]:
    shape = (3, 40, 4)
    real, stored = tensor(shape, "f32"), tensor(shape, "si32")
    scales = "[0.1 : f32, 0.25 : f32, 0.05 : f32, 0.5 : f32]"
    zeros = integers((0, 1, -4, 5))
    one = {"in_scale": "[0.25 : f32]", "in_zero_point": integers((3,))}
    other = {"out_scale": "[0.5 : f32]", "out_zero_point": integers((-2,))}
    yield function(
        "stored",
        [real],
        [
            call("quantize", ["%a0"], [real], stored, scale=scales, zero_point=zeros,
                 axis="2 : i32"),
            call("requantize", ["%0"], [stored], stored, **one, **other),
            call("dequantize", ["%1"], [stored], real, scale="[0.5 : f32]",
                 zero_point=integers((-2,))),
        ],
        f"%0, %1, %2 : {stored}, {stored}, {real}",
    )  # fmt: skip
    types = [real, tensor((4,), "f32"), tensor((4,), "si32")]
    unrolled = call("quantize_unrolled", ["%a0", "%a1", "%a2"], types, stored, axis="2 : i32")
    yield function("stored_by_tensors", types, [unrolled])


def _latent() -> Iterator[str]:
    users, heads, pages = 2, 5, 3
    types = [
        tensor((1, users, heads, 96), "bf16"),
        tensor((7, 1, 32, 96), "bf16"),
        tensor((users, pages), "si32"),
        tensor((users,), "si32"),
    ]
    op = call("paged_flash_multi_latent_attention_decode", ["%a0", "%a1", "%a2", "%a3"], types,
              tensor((1, users, heads, 64), "bf16"), head_dim_v="64 : ui32", is_causal="true",
              operandSegmentSizes=array((1, 1, 0, 1, 0, 1, 0), "i32"))  # fmt: skip
    yield function("latent", types, [op])
