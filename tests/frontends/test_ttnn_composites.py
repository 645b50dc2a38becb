# ruff: noqa: E501 -- calls as tools print them
"""Calls of TTNN that are no call of their own here compute what the library's do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from ttcodegen.cli.opt import main as opt_main
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.flatbuffer.reader import read_ttnn
from ttcodegen.foundation.diagnostics import CompileError, Diagnostics, Source
from ttcodegen.numerics.interpreter import Interpreter
from ttcodegen.translation import ttnn_to_flatbuffer

Shape = tuple[int, ...]


def module(name: str, attributes: str, shapes: Sequence[Shape], *results: Shape) -> str:
    """A function `f` that makes one call on tensors of f32."""
    types = [f"tensor<{'x'.join(map(str, shape))}xf32>" for shape in shapes]
    made = [f"tensor<{'x'.join(map(str, shape))}xf32>" for shape in results]
    arguments = ", ".join(f"%{index}: {type_}" for index, type_ in enumerate(types))
    names = ", ".join(f"%{index}" for index in range(len(types)))
    outputs = ", ".join(f"%r{index}" for index in range(len(made)))
    return f"""
func.func @f({arguments}) -> ({", ".join(made)}) {{
  {outputs} = "ttnn.{name}"({names}) <{{{attributes}}}> : ({", ".join(types)}) -> ({", ".join(made)})
  return {outputs} : {", ".join(made)}
}}
"""


def run(text: str, *arrays: np.ndarray, diagnostics: Diagnostics | None = None) -> list[np.ndarray]:
    source = Source("in.mlir", text)
    made = compile_module(source, CompileOptions("m"), diagnostics=diagnostics)
    return Interpreter(read_ttnn(made.flatbuffer)).run("f", list(arrays))


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def close(found: np.ndarray, wanted: np.ndarray) -> None:
    np.testing.assert_allclose(found, wanted, rtol=0.02, atol=0.05)


def test_sequences_are_convolved() -> None:
    sizes = "batch_size = 2 : i32, input_length = 10 : i32, in_channels = 3 : i32, out_channels = 4 : i32, "
    sizes += "kernel_size = 3 : i32, stride = 2 : i32, padding = array<i32: 1, 2>, dilation = 1 : i32, groups = 1 : i32"
    text = module("conv1d", sizes, [(2, 10, 3), (4, 3, 3), (1, 1, 1, 4)], (1, 1, 12, 4))
    x, w, b = drawn(2, 10, 3), drawn(4, 3, 3), drawn(1, 1, 1, 4)
    padded = np.pad(x, ((0, 0), (1, 2), (0, 0)))
    rows = [np.einsum("nkc,ock->no", padded[:, at : at + 3], w) for at in range(0, 11, 2)]
    (found,) = run(text, x, w, b)
    close(found, (np.stack(rows, 1) + b[0]).reshape(1, 1, 12, 4))


@pytest.mark.parametrize("dims", [(1, 2), (-1, 0)])
def test_dimensions_change_places(dims: tuple[int, int]) -> None:
    x = drawn(2, 3, 5)
    wanted = np.swapaxes(x, *dims)
    said = f"dim0 = {dims[0]} : si32, dim1 = {dims[1]} : si32"
    (found,) = run(module("transpose", said, [x.shape], wanted.shape), x)
    assert np.array_equal(found, wanted)
    with pytest.raises(CompileError, match=r"\[3, 0\] are no dimensions"):
        run(module("transpose", "dim0 = 3 : si32, dim1 = 0 : si32", [x.shape], x.shape), x)


@pytest.mark.parametrize("exponent", ["3 : i32", "0.5 : f32"])
def test_powers(exponent: str) -> None:
    x = np.abs(drawn(4, 32)) + 0.5
    (found,) = run(module("pow_scalar", f"rhs = {exponent}", [x.shape], x.shape), x)
    close(found, x ** float(exponent.split()[0]))
    (found,) = run(module("pow_tensor", "", [x.shape, x.shape], x.shape), x, x)
    close(found, x**x)


def test_heads_stand_side_by_side() -> None:
    x = drawn(2, 3, 5, 32)
    (found,) = run(module("nlp_concat_heads", "", [x.shape], (2, 1, 5, 96)), x)
    assert np.array_equal(found, np.swapaxes(x, 1, 2).reshape(2, 1, 5, 96))


@pytest.mark.parametrize(
    ("shape", "heads"),
    [
        ((1, 1, 32, 128), 32),
        ((1, 2, 32, 64), 1),
        ((2, 1, 32, 128), 16),  # The library takes one token,
        ((2, 4, 32, 64), 12),
        ((2, 32, 32, 32), 32),
        ((1, 12, 32, 64), 12),  # up to 8 users or 16, 24 and 32,
        ((1, 4, 8, 48), 8),  # and heads of whole tiles.
    ],
)
def test_heads_of_tokens_stand_side_by_side(shape: Shape, heads: int) -> None:
    x = drawn(*shape)
    tokens, users, _, size = shape
    result = (tokens, 1, users, heads * size)
    text = module("nlp_concat_heads_decode", f"num_heads = {heads} : ui32", [shape], result)
    (found,) = run(text, x)
    assert np.array_equal(found, x[:, :, :heads].reshape(result))


def test_heads_that_are_not_there_are_refused() -> None:
    shape, result = (2, 1, 32, 128), (2, 1, 1, 34 * 128)
    text = module("nlp_concat_heads_decode", "num_heads = 34 : ui32", [shape], result)
    with pytest.raises(CompileError, match="there are no 34 heads in"):
        run(text, drawn(*shape))


@pytest.mark.parametrize("has_values", [False, True])
def test_values_of_latent_attention_are_narrower_than_keys(has_values: bool) -> None:
    query, key, value = drawn(1, 4, 32, 64), drawn(1, 1, 32, 64), drawn(1, 1, 32, 32)
    operands = [query, key, value] if has_values else [query, key]
    said = f"head_dim_v = 32 : ui32, is_causal = true, operandSegmentSizes = array<i32: 1, 1, {int(has_values)}, 0>"
    text = module("flash_mla_prefill", said, [x.shape for x in operands], (1, 4, 32, 32))
    scores = query @ np.swapaxes(key, 2, 3) / 8
    scores = np.where(np.tril(np.ones((32, 32))) > 0, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    (found,) = run(text, *operands)
    close(found, weights @ (value if has_values else key[..., :32]))


@pytest.mark.parametrize("index", [None, 2])
def test_rows_are_turned_by_their_positions(index: int | None) -> None:
    x, cosines, sines = drawn(2, 3, 5, 32), drawn(1, 1, 8, 32), drawn(1, 1, 8, 32)
    said = "" if index is None else f"token_index = {index} : ui32"
    rows = slice(0, 5) if index is None else slice(index, index + 1)
    turned = np.concatenate([-x[..., 16:], x[..., :16]], -1)
    text = module("rotary_embedding", said, [x.shape, cosines.shape, sines.shape], x.shape)
    (found,) = run(text, x, cosines, sines)
    close(found, x * cosines[:, :, rows] + turned * sines[:, :, rows])


def test_pairs_of_columns_are_turned() -> None:
    x, cosines, sines = drawn(1, 3, 32, 64), drawn(1, 1, 32, 64), drawn(1, 1, 32, 64)
    turn = np.zeros((1, 1, 32, 32), np.float32)
    turn[..., np.arange(0, 32, 2), np.arange(1, 32, 2)] = 1
    turn[..., np.arange(1, 32, 2), np.arange(0, 32, 2)] = -1
    shapes = [each.shape for each in (x, cosines, sines, turn)]
    (found,) = run(module("rotary_embedding_llama", "", shapes, x.shape), x, cosines, sines, turn)
    turned = np.stack([-x[..., 1::2], x[..., ::2]], -1).reshape(x.shape)
    close(found, x * cosines + turned * sines)


CONVOLUTION = (
    "batch_size = 1 : i32, dilation = array<i32: 1, 1>, groups = 1 : i32, in_channels = 4 : i32, "
    "input_height = 6 : i32, input_width = 6 : i32, kernel_size = array<i32: 3, 2>, "
    "out_channels = 8 : i32, padding = array<i32: 0, 0>, stride = array<i32: 1, 1>"
)


@pytest.mark.parametrize(
    ("name", "attributes", "shapes", "message"),
    [
        ("rotary_embedding", "", [(1, 1, 32, 32)] * 2, "takes 3 tensors or more, found 2"),
        ("rotary_embedding", "", [(32, 32)] * 3, "takes tensors of rank 4"),
        ("nlp_concat_heads", "", [(1, 0, 32, 32)], "of tensors without elements"),
        ("conv1d", "batch_size = 1 : i32", [(1, 4, 4)] * 2, "needs the attribute 'input_length'"),
        ("nlp_concat_heads", "", [(1, 2, 32, 32)], r"gives a tensor of shape \(1, 32, 64\), not"),
    ],
)
def test_calls_with_other_operands_are_refused(
    name: str, attributes: str, shapes: list[Shape], message: str
) -> None:
    with pytest.raises(CompileError, match=message):
        run(module(name, attributes, shapes, (1, 1, 32, 32)))


LATENT = "head_dim_v = 32 : ui32, operandSegmentSizes = array<i32: 1, 1, {}, 0>"
PAGED = "is_causal = false, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0>"


@pytest.mark.parametrize(
    ("name", "attributes", "shapes", "message"),
    [
        ("pow_scalar", 'rhs = "x"', [(4, 32)], "'rhs' should be a number"),
        ("pow_tensor", "", [(4, 32), (5, 32)], r"\(4, 32\) and \(5, 32\) do not broadcast"),
        (
            "conv2d",
            CONVOLUTION.replace("kernel_size = array<i32: 3, 2>", 'kernel_size = "x"'),
            [(1, 1, 36, 4), (1, 1, 24, 8)],
            "a list of integers",
        ),
        (
            "rotary_embedding",
            'token_index = "x"',
            [(1, 1, 32, 32)] * 3,
            "'token_index' should be an integer",
        ),
        ("pad", 'padding = "x"', [(4, 32)], "'padding' should be a list of integers"),
        (
            "conv3d",
            "kernel_size = array<i32: 2, 2, 2>, conv3d_config = #ttnn.conv3d_config<c_in_block = 3>",
            [(1, 3, 4, 5, 4), (32, 8)],
            "blocks of 3 channels do not divide 4",
        ),
        (
            "flash_mla_prefill",
            LATENT.format(1),
            [(1, 4, 32, 64), (1, 1, 32, 64)],
            r"its 2 operands are not those of operandSegmentSizes \[1, 1, 1, 0\]",
        ),
        (
            "flash_mla_prefill",
            LATENT.format(0) + ', is_causal = "x"',
            [(1, 4, 32, 64), (1, 1, 32, 64)],
            "'is_causal' should be a boolean",
        ),
        (
            "paged_scaled_dot_product_attention_decode",
            PAGED,
            [(1, 1, 4, 64), (8, 4, 32, 64), (8, 4, 32, 64), (1, 8), (1, 1, 4, 256)],
            "its 5 operands are not those of operandSegmentSizes",
        ),
    ],
)
def test_calls_that_say_what_cannot_be_are_refused(
    name: str, attributes: str, shapes: list[Shape], message: str
) -> None:
    text = module(name, attributes, shapes, (1, 4, 32, 32))
    with pytest.raises(CompileError, match=message):
        run(text)


def test_prepared_weights_are_those_of_the_model() -> None:
    x, w, b = drawn(1, 1, 36, 4), drawn(8, 4, 3, 2), drawn(1, 1, 1, 8)
    (matrix,) = run(
        module(
            "prepare_conv2d_weights",
            CONVOLUTION + ', weights_format = "OIHW"',
            [w.shape],
            (1, 1, 24, 8),
        ),
        w,
    )
    assert np.array_equal(matrix, w.transpose(2, 3, 1, 0).reshape(1, 1, 24, 8))
    (row,) = run(module("prepare_conv2d_bias", CONVOLUTION, [b.shape], b.shape), b)
    assert np.array_equal(row, b)
    (plain,) = run(
        module("conv2d", CONVOLUTION, [x.shape, w.shape, b.shape], (1, 1, 20, 8)), x, w, b
    )
    (found,) = run(
        module("conv2d", CONVOLUTION, [x.shape, matrix.shape, b.shape], (1, 1, 20, 8)), x, matrix, b
    )
    assert np.array_equal(found, plain)
    with pytest.raises(CompileError, match=r"expected a result of shape \(1, 1, 24, 8\)"):
        run(module("prepare_conv2d_weights", CONVOLUTION, [w.shape], (1, 1, 24, 32)), w)


@pytest.mark.parametrize("block", [0, 2])
def test_prepared_weights_of_volumes_are_those_of_the_model(block: int) -> None:
    x, w = drawn(1, 3, 4, 5, 4), drawn(8, 4, 2, 2, 2)
    said = f"groups = 1 : i32, c_in_block = {block} : i32, alignment = 32 : i32"
    (matrix,) = run(module("prepare_conv3d_weights", said, [w.shape], (32, 8)), w)
    together = block or 4
    wanted = w.reshape(8, 4 // together, together, 2, 2, 2).transpose(1, 3, 4, 5, 2, 0)
    assert np.array_equal(matrix, wanted.reshape(32, 8))
    said = f"kernel_size = array<i32: 2, 2, 2>, conv3d_config = #ttnn.conv3d_config<c_in_block = {block}>"
    made = (1, 2, 3, 4, 8)
    (plain,) = run(module("conv3d", said, [x.shape, w.shape], made), x, w)
    (found,) = run(module("conv3d", said, [x.shape, matrix.shape], made), x, matrix)
    assert np.array_equal(found, plain)


HEADS = """
func.func @f(%x: tensor<1x1x32x96xf32>) -> tensor<1x8x1x32xf32> {
  %first = "ttnn.full"() <{shape = #ttnn.shape<1>, fill_value = FIRST : i32}> : () -> tensor<1xui32>
  %q, %k, %v = "ttnn.nlp_create_qkv_heads_decode"(%x, %first) <{num_heads = 1 : ui32, num_kv_heads = 1 : ui32, overlap_qk_coregrid = true, slice_size = 8 : ui32}> : (tensor<1x1x32x96xf32>, tensor<1xui32>) -> (tensor<1x8x1x32xf32>, tensor<1x8x1x32xf32>, tensor<1x8x1x32xf32>)
  return %k : tensor<1x8x1x32xf32>
}
"""


def test_heads_of_some_users_are_split() -> None:
    x = drawn(1, 1, 32, 96)
    (found,) = run(HEADS.replace("FIRST", "16"), x)
    assert np.array_equal(found[0, :, 0], x[0, 0, 16:24, 32:64])
    with pytest.raises(CompileError, match="there are no users 25 to 32"):
        run(HEADS.replace("FIRST", "25"), x)
    unknown = re.sub(r"  %first = .*\n", "", HEADS).replace(
        "96xf32>)", "96xf32>, %first: tensor<1xui32>)", 1
    )
    with pytest.raises(CompileError, match="a user that the program finds out when it runs"):
        run(unknown, x, np.zeros(1, np.uint32))


SUBGRAPH = """
#l1 = #ttnn.buffer_type<l1>
#one = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, bf16>, #l1>, <block_sharded>, core_ranges = #ttnn.core_range_set<[#ttnn.core_range<(0, 0), (0, 0)>]>>
func.func @f(%x: tensor<64x64xbf16, #one>, %out: tensor<64x64xbf16, #one>) -> tensor<64x64xbf16, #one> {
  %0 = ttnn.d2m_subgraph @part
      ins(%x : tensor<64x64xbf16, #one>)
      outs(%out : tensor<64x64xbf16, #one>) : tensor<64x64xbf16, #one>
  return %0 : tensor<64x64xbf16, #one>
}
func.func private @part(%x: tensor<64x64xbf16, #one>) -> tensor<64x64xbf16, #one> {
  %0 = "ttnn.neg"(%x) : (tensor<64x64xbf16, #one>) -> tensor<64x64xbf16, #one>
  return %0 : tensor<64x64xbf16, #one>
}
"""


def test_parts_of_graphs_are_called() -> None:
    """Their layouts name a tile where a core has four."""
    diagnostics = Diagnostics()
    x = np.round(drawn(64, 64))
    (found,) = run(SUBGRAPH, x, np.zeros_like(x), diagnostics=diagnostics)
    assert np.array_equal(found, -x)
    assert any("divided evenly" in str(each) for each in diagnostics.diagnostics)


STATISTICS = """#l1 = #ttnn.buffer_type<l1>
#rows = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 32 + d1 * 32 + d2, d3), <1x2>, memref<1x1x!ttcore.tile<32x32, bf16>, #l1>, <width_sharded>>
func.func @f(%x: tensor<1x1x32x64xbf16, #rows>, %y: tensor<1x1x32x64xbf16, #rows>, %w: tensor<64xbf16>, %b: tensor<64xbf16>) -> (tensor<1x1x32x64xbf16>, tensor<1x1x32x64xbf16>) {
  %p = "ttnn.KIND_pre_all_gather"(%x) SIZES: (tensor<1x1x32x64xbf16, #rows>) -> tensor<1x1x32xCOLUMNSxbf16>
  %q = "ttnn.KIND_pre_all_gather"(%y) SIZES: (tensor<1x1x32x64xbf16, #rows>) -> tensor<1x1x32xCOLUMNSxbf16>
  %s = "ttnn.concat"(%p, %q) <{dim = 3 : si32}> : (tensor<1x1x32xCOLUMNSxbf16>, tensor<1x1x32xCOLUMNSxbf16>) -> tensor<1x1x32xGATHEREDxbf16>
  %0 = "ttnn.KIND_post_all_gather"(%x, %s, %w, %b) <{epsilon = 1.0e-05 : f32, operandSegmentSizes = array<i32: 1, 1, 1, 1>}> : (tensor<1x1x32x64xbf16, #rows>, tensor<1x1x32xGATHEREDxbf16>, tensor<64xbf16>, tensor<64xbf16>) -> tensor<1x1x32x64xbf16>
  %1 = "ttnn.KIND_post_all_gather"(%y, %s) <{operandSegmentSizes = array<i32: 1, 1, 0, 0>}> : (tensor<1x1x32x64xbf16, #rows>, tensor<1x1x32xGATHEREDxbf16>) -> tensor<1x1x32x64xbf16>
  return %0, %1 : tensor<1x1x32x64xbf16>, tensor<1x1x32x64xbf16>
}
"""


@pytest.mark.parametrize(("kind", "columns"), [("rms_norm", 32), ("layer_norm", 64)])
def test_rows_are_normalized_by_gathered_sums(kind: str, columns: int) -> None:
    sizes = "<{operandSegmentSizes = array<i32: 1, 0, 0>}> " if kind == "layer_norm" else ""
    text = STATISTICS.replace("KIND", kind).replace("SIZES", sizes)
    text = text.replace("COLUMNS", str(columns)).replace("GATHERED", str(2 * columns))
    x, y, w, b = drawn(1, 1, 32, 64) + 0.5, drawn(1, 1, 32, 64)[..., ::-1] * 2, drawn(64), drawn(64)
    row = np.concatenate([x, y], -1)
    if kind == "layer_norm":
        row = row - row.mean(-1, keepdims=True)
    row = row / np.sqrt((row**2).mean(-1, keepdims=True) + 1e-5)
    first, second = run(text, x, y, w, b)
    close(first, row[..., :64] * w + b)
    close(second, row[..., 64:])


@pytest.mark.parametrize(
    ("name", "columns", "made"),
    [("rms_norm", 1, {0: "squares"}), ("layer_norm", 2, {0: "squares", 32: "elements"})],
)
def test_sums_of_rows_are_in_the_first_column_of_a_tile(
    name: str, columns: int, made: dict[int, str]
) -> None:
    shape = (1, 1, 32, 64)
    sizes = "operandSegmentSizes = array<i32: 1, 1, 0>" if name == "layer_norm" else ""
    text = module(f"{name}_pre_all_gather", sizes, [shape, shape], (1, 1, 32, 32 * columns))
    x, residual = drawn(*shape), drawn(*shape)[..., ::-1]
    (found,) = run(text, x, residual)
    row = x + residual
    sums = {"squares": (row**2).sum(-1), "elements": row.sum(-1)}
    wanted = np.zeros((1, 1, 32, 32 * columns), np.float32)
    for column, kind in made.items():
        wanted[..., column] = sums[kind]
    close(found, wanted)


def test_sums_of_other_rows_are_refused() -> None:
    shapes = [(1, 1, 32, 64), (1, 1, 32, 32)]
    sizes = "operandSegmentSizes = array<i32: 1, 1, 0, 0>"
    text = module("layer_norm_post_all_gather", sizes, shapes, (1, 1, 32, 64))
    with pytest.raises(CompileError, match="are 64 columns for each chip, found"):
        run(text, drawn(1, 1, 32, 64), drawn(1, 1, 32, 32))


def test_attention_of_training_keeps_what_its_gradient_needs() -> None:
    shape, kept = (1, 2, 32, 32), (1, 2, 32, 32)
    given = "mask_type = #ttcore.attention_mask_type<causal>, dropout_probability = 0.0 : f32"
    forward = module("sdpa_fw", f"{given}, return_intermediates = true", [shape] * 3, shape, kept)
    q, k, v = (drawn(*shape) * scale for scale in (1.0, 0.5, 2.0))
    scores = np.where(np.tril(np.ones((32, 32))) > 0, q @ k.swapaxes(-1, -2) / np.sqrt(32), -1e30)
    chances = np.exp(scores - scores.max(-1, keepdims=True))
    chances /= chances.sum(-1, keepdims=True)
    attended, sums = run(forward, q, k, v)
    close(attended, chances @ v)
    backward = module("sdpa_bw", given, [*[shape] * 5, kept], *[shape] * 3)
    gradient = drawn(*shape)[..., ::-1].copy()
    *_, of_values = run(backward, gradient, attended, q, k, v, sums)
    close(of_values, chances.swapaxes(-1, -2) @ gradient)


def test_the_router_gives_experts_and_their_weights() -> None:
    shapes = [(32, 64), (64, 128), (32, 128)]
    text = module(
        "topk_router_gpt", "k = 4 : i32, num_experts = 128 : i32", shapes, (32, 4), (32, 4)
    )
    x, weight, bias = (drawn(*shape) for shape in shapes)
    experts, weights = run(text, x, weight, bias)
    logits = x @ weight + bias
    assert (experts[:, 0] == logits.argmax(-1)).mean() > 0.9
    close(weights.sum(-1), np.ones(32))


def test_a_call_without_an_operand_is_refused() -> None:
    text = module("sdpa_fw", "", [(1, 2, 32, 32)] * 2, (1, 2, 32, 32))
    with pytest.raises(CompileError, match=r"needs the operand 'value'|its 2 operands are not"):
        run(text)


def test_sums_of_rows_take_their_operands_out_of_shards() -> None:
    """The library refuses a typecast from shards to an interleaved tensor."""
    text = STATISTICS.replace("KIND", "rms_norm").replace("SIZES", "")
    text = text.replace("COLUMNS", "32").replace("GATHERED", "64")
    files = compile_module(Source("m.mlir", text), CompileOptions("m")).files
    (source,) = (file for name, file in files.items() if name.endswith("/m.cpp"))
    assert len(re.findall(r"ttnn::to_memory_config\(", source)) >= 2
    assert not re.search(r"ttnn::typecast\((last_use\()?inputs\.[xy]\b", source)


def norm(attributes: str, shapes: Sequence[Shape]) -> str:
    """A norm with what is around it."""
    return module("dit_rms_norm_unary_fused", attributes, shapes, shapes[0])


@pytest.mark.parametrize("activation", ["silu", "gelu", ""])
def test_rows_are_normalized_with_what_is_around_it(activation: str) -> None:
    x, weight, residual = drawn(5, 96), drawn(96), drawn(5, 96) + 1
    said = "operandSegmentSizes = array<i32: 1, 1, 0, 1>, epsilon = 1.0e-3 : f32"
    said += f', activation = "{activation}"' * bool(activation)
    (found,) = run(norm(said, [x.shape, weight.shape, residual.shape]), x, weight, residual)
    row = x + residual
    row = row / np.sqrt((row**2).mean(-1, keepdims=True) + 1e-3) * weight
    inner = np.sqrt(2 / np.pi) * (row + 0.044715 * row**3)
    wanted = {"silu": row / (1 + np.exp(-row)), "gelu": row / 2 * (1 + np.tanh(inner)), "": row}
    close(found, wanted[activation])


@pytest.mark.parametrize(
    ("sizes", "activation", "second", "message"),
    [
        ("1, 1, 0, 0", "silu", (32,), "of 96 elements, found"),
        ("1, 1, 0, 0", "mish", (96,), "one of gelu, relu, sigmoid, silu, tanh, found mish"),
        ("1, 0, 0, 1", "silu", (1, 96), "another shape"),
    ],
)
def test_norms_with_other_operands_are_refused(
    sizes: str, activation: str, second: Shape, message: str
) -> None:
    said = f'operandSegmentSizes = array<i32: {sizes}>, activation = "{activation}"'
    with pytest.raises(CompileError, match=message):
        run(norm(said, [(5, 96), second]))


def test_a_rotation_may_have_whole_tiles_of_positions() -> None:
    types = "(tensor<2x3x1x64xbf16>, tensor<1x1x1x64xbf16>, tensor<1x1x1x64xbf16>)"
    text = f"""func.func @main(%x: tensor<2x3x1x64xbf16>, %c: tensor<1x1x1x64xbf16>,
        %s: tensor<1x1x1x64xbf16>) -> tensor<2x3x32x64xbf16> {{
      %0 = "ttnn.rotary_embedding"(%x, %c, %s) : {types} -> tensor<2x3x32x64xbf16>
      return %0 : tensor<2x3x32x64xbf16>
    }}"""
    compiled = compile_module(Source("m.mlir", text), CompileOptions("m"))
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 3, 1, 64)).astype("bfloat16")
    angles = rng.standard_normal((1, 1, 1, 64))
    c, s = np.cos(angles).astype("bfloat16"), np.sin(angles).astype("bfloat16")
    (found,) = Interpreter(read_ttnn(compiled.flatbuffer)).run("main", [x, c, s])
    wide, low, high = (each.astype(np.float32) for each in (x, x[..., :32], x[..., 32:]))
    swapped = np.concatenate([-high, low], -1)
    expected = wide * c.astype(np.float32) + swapped * s.astype(np.float32)
    np.testing.assert_allclose(found[:, :, :1].astype(np.float32), expected, atol=0.05)


BOOLEANS = """
#dram = #ttnn.buffer_type<dram>
#boolean = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, i1>, #dram>, <interleaved>>
#number = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
func.func @f(%x: tensor<32x32xbf16, #number>, %y: tensor<32x32xbf16, #number>, %mask: tensor<32x32xi1, #boolean>) -> tensor<32x32xi1, #boolean> {
  %0 = "ttnn.gt"(%x, %y) : (tensor<32x32xbf16, #number>, tensor<32x32xbf16, #number>) -> tensor<32x32xi1, #boolean>
  %1 = "ttnn.logical_and"(%0, %mask) : (tensor<32x32xi1, #boolean>, tensor<32x32xi1, #boolean>) -> tensor<32x32xi1, #boolean>
  return %1 : tensor<32x32xi1, #boolean>
}
"""


def test_tiles_of_booleans_hold_bf16() -> None:
    x = np.arange(32 * 32).reshape(32, 32).astype(np.float32) % 7
    mask = x > 1
    (found,) = run(BOOLEANS, x, x.T.copy(), mask)
    assert np.array_equal(found.astype(bool), (x > x.T) & mask)


BATCHED = [(2, 33, 64), (2, 64, 32), (2, 33, 32)]
MANY_TOGETHER = [(4, 3, 32, 64), (4, 3, 64, 32), (5, 4, 3, 32, 32)]


@pytest.mark.parametrize("shapes", [BATCHED, MANY_TOGETHER])
def test_modules_without_a_call_of_the_library_are_lowered_by_all_tools(
    shapes: list[Shape], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = module("linear", "transpose_a = false, transpose_b = false", shapes, shapes[2])
    a, b, bias = (drawn(*shape) for shape in shapes)
    (found,) = Interpreter(read_ttnn(ttnn_to_flatbuffer(Source("m.mlir", text)).whole)).run(
        "f", [a, b, bias]
    )
    close(found, a @ b + bias)
    file = tmp_path / "m.mlir"
    file.write_text(text)
    for step, wanted in (
        ("--convert-ttnn-to-emitc", "ttnn::matmul"),
        ("--ttnn-to-ttnn-pipeline", "ttnn.matmul"),
    ):
        assert opt_main([step, str(file)]) == 0
        assert wanted in capsys.readouterr().out
