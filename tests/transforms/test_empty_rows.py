"""Rows of attention that see no key are zero, as torch's fused attention has them."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.ir import Attribute

from tests.transforms.programs import Program, apply
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.dialects.core.datatypes import bf16, f32
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.numerics.golden_values import Golden
from ttcodegen.numerics.lowered import interpreter_of, read_flatbuffer
from ttcodegen.transforms.ttir.fusing.rules import TTIREmptyAttentionRowsPass

HEADS, SIZE = 2, 32


def text(element: str, queries: int, keys: int, mask: str) -> str:
    shapes = [f"tensor<2x{HEADS}x{n}x{SIZE}x{element}>" for n in (queries, keys, keys)]
    types = ", ".join([*shapes, f"tensor<{mask}x{element}>"])
    return f"""
func.func @main(%q: {shapes[0]}, %k: {shapes[1]}, %v: {shapes[2]}, %m: tensor<{mask}x{element}>)
    -> {shapes[0]} {{
  %0 = "ttir.scaled_dot_product_attention"(%q, %k, %v, %m)
    <{{is_causal = false, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>}}>
    : ({types}) -> {shapes[0]}
  return %0 : {shapes[0]}
}}"""


def attended(arrays: list[np.ndarray]) -> np.ndarray:
    torch = pytest.importorskip("torch")
    q, k, v, mask = (torch.tensor(a.astype(np.float32)) for a in arrays)
    found = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return found.numpy()


@pytest.mark.parametrize("target", ["ttnn", "ttmetal"])
@pytest.mark.parametrize(
    ("element", "queries", "keys"), [("bf16", 32, 32), ("f32", 32, 32), ("bf16", 1, 64)]
)
def test_rows_that_see_nothing_are_zero(target: str, element: str, queries: int, keys: int) -> None:
    rng = np.random.default_rng(0)
    dtype = "bfloat16" if element == "bf16" else "float32"
    shapes = [(2, HEADS, n, SIZE) for n in (queries, keys, keys)]
    arrays = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
    mask = np.where(rng.random((2, 1, queries, keys)) < 0.5, 0, -np.inf)
    mask[0] = -np.inf if queries == 1 else mask[0]
    mask[1, :, : queries // 4] = -np.inf
    # Rows of the lowest finite number are no empty ones: there torch has the mean of the values.
    mask[1, :, queries // 2] = -3e38
    arrays.append(mask.astype(dtype))
    expected = attended(arrays)
    source = Source("m.mlir", text(element, queries, keys, f"2x1x{queries}x{keys}"))
    from ttcodegen.parsing import parse_module

    (golden,) = Golden(parse_module(source)).run("main", arrays)
    np.testing.assert_allclose(golden.astype(np.float32), expected, atol=1e-2)
    compiled = compile_module(source, CompileOptions("m", target=target))
    (found,) = interpreter_of(read_flatbuffer(compiled.flatbuffer)).run("main", arrays)
    found = found.astype(np.float32)
    assert not found[1, :, : queries // 4].any()
    np.testing.assert_allclose(found, expected, atol=0.1)


@pytest.mark.parametrize("target", ["ttnn", "ttmetal"])
@pytest.mark.parametrize("element", ["bf16", "f32"])
def test_rows_whose_window_is_masked_are_zero(target: str, element: str) -> None:
    """A mask and a window that hide no whole row may do so together."""
    body = text(element, 32, 32, "1x1x1x32")
    body = body.replace("is_causal = false,", "is_causal = false, sliding_window_size = 8 : ui32,")
    rng = np.random.default_rng(0)
    dtype = "bfloat16" if element == "bf16" else "float32"
    arrays = [rng.standard_normal((2, HEADS, 32, SIZE)).astype(dtype) for _ in range(3)]
    mask = np.where(np.arange(32) < 16, 0, -np.inf).reshape(1, 1, 1, 32)
    apart = np.abs(np.arange(32)[:, None] - np.arange(32))
    expected = attended([*arrays, mask + np.where(apart <= 4, 0, -np.inf)])
    assert not expected[:, :, 20:].any()
    compiled = compile_module(Source("m.mlir", body), CompileOptions("m", target=target))
    interpreter = interpreter_of(read_flatbuffer(compiled.flatbuffer))
    (found,) = interpreter.run("main", [*arrays, mask.astype(dtype)])
    np.testing.assert_allclose(found.astype(np.float32), expected, atol=0.2)
    assert not found[:, :, 20:].any()


@pytest.mark.parametrize("target", ["ttnn", "ttmetal"])
@pytest.mark.parametrize("heads", [1, 4])
@pytest.mark.parametrize(("element", "paged"), [("bf16", False), ("f32", False), ("bf16", True)])
def test_users_that_decode_and_see_nothing_get_zero(
    target: str, heads: int, element: str, paged: bool
) -> None:
    query, mask = f"tensor<1x2x4x{SIZE}x{element}>", f"tensor<2x1x{heads}x64x{element}>"
    keys = f"tensor<{'4x2x32' if paged else '2x2x64'}x{SIZE}x{element}>"
    table, kind = ("%t, %q, ", "paged_") if paged else ("", "")
    given = f"{query}, {keys}, {keys}, {f'tensor<2x2xi32>, {query}, ' if paged else ''}{mask}"
    sizes = "1, 1, 1, 1, 1, 1, 0, 0" if paged else "1, 1, 1, 1, 0, 0"
    source = Source(
        "m.mlir",
        f"""
func.func @main(%q: {query}, %k: {keys}, %v: {keys}, %t: tensor<2x2xi32>, %m: {mask}) -> {query} {{
  %0 = "ttir.{kind}scaled_dot_product_attention_decode"(%q, %k, %v, {table}%m)
    <{{is_causal = false, operandSegmentSizes = array<i32: {sizes}>}}> : ({given}) -> {query}
  return %0 : {query}
}}""",
    )
    rng = np.random.default_rng(0)
    dtype = "bfloat16" if element == "bf16" else "float32"
    q, k, v = (rng.standard_normal((2, n, m, SIZE)) for n, m in ((4, 1), (2, 64), (2, 64)))
    hidden = np.where(rng.random((2, 1, heads, 64)) < 0.5, 0, -np.inf)
    hidden[0, :, 0] = -np.inf
    in_pages = [each.reshape(2, 2, 2, 32, SIZE).swapaxes(1, 2).reshape(4, 2, 32, SIZE)
                for each in (k, v)]  # fmt: skip
    arrays = [
        q.transpose(2, 0, 1, 3).astype(dtype),
        *(each.astype(dtype) for each in (in_pages if paged else (k, v))),
        np.arange(4, dtype=np.int32).reshape(2, 2),
        hidden.astype(dtype),
    ]
    whole = [each.repeat(2, 1).astype(np.float32) for each in (k, v)]
    expected = attended([q, *whole, hidden.swapaxes(1, 2)]).transpose(2, 0, 1, 3)
    assert not expected[0, 0, 0].any()
    compiled = compile_module(source, CompileOptions("m", target=target))
    (found,) = interpreter_of(read_flatbuffer(compiled.flatbuffer)).run("main", arrays)
    assert not found[0, 0, 0].any()
    np.testing.assert_allclose(found.astype(np.float32), expected, atol=0.1)


@pytest.mark.parametrize("element", [bf16, f32])
def test_a_mask_that_hides_no_row_costs_nothing(element: Attribute) -> None:
    p = Program()
    q, k, v = (p.argument(1, 2, 32, 32, element=element) for _ in range(3))
    low, zero = (p.number(each, 1, 1, 1, 1, element=element) for each in (-3e38, 0.0))
    mask = p.make.broadcasting("where", p.argument(1, 1, 32, 32, element=element), zero, low)
    operands = [q, k, v, mask]
    result = p.make.emit("scaled_dot_product_attention", operands, q.type, is_causal=False)
    found = apply(p.returns(result), TTIREmptyAttentionRowsPass())
    assert found.names == ["where", "scaled_dot_product_attention"]


@pytest.mark.parametrize("target", ["ttnn", "ttmetal"])
def test_rows_that_moderate_numbers_hide_keep_their_scores(target: str) -> None:
    """A key of which the mask is -10000 weighs nothing beside others, and as before where all are
    hidden; kernels round the sums to 16 bits."""
    shape, mask = f"tensor<2x{HEADS}x8x{SIZE}xf32>", "tensor<2x1x8x8xf32>"
    body = f"""
func.func @main(%q: {shape}, %k: {shape}, %v: {shape}, %m: {mask}) -> {shape} {{
  %n = "ttir.full"() <{{shape = array<i32: 2, 1, 8, 8>, fill_value = -10000.0 : f32}}>
    : () -> {mask}
  %a = "ttir.multiply"(%m, %n) : ({mask}, {mask}) -> {mask}
  %0 = "ttir.scaled_dot_product_attention"(%q, %k, %v, %a)
    <{{is_causal = false, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>}}>
    : ({shape}, {shape}, {shape}, {mask}) -> {shape}
  return %0 : {shape}
}}"""
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((2, HEADS, 8, SIZE)).astype(np.float32) for _ in range(3)]
    hidden = np.zeros((2, 1, 8, 8), np.float32)
    hidden[0, :, :3] = hidden[1, :, :, 5:] = 1
    compiled = compile_module(Source("m.mlir", body), CompileOptions("m", target=target))
    interpreter = interpreter_of(read_flatbuffer(compiled.flatbuffer))
    (found,) = interpreter.run("main", [*arrays, hidden])
    np.testing.assert_allclose(found, attended([*arrays, hidden * -10000]), atol=2e-2)
