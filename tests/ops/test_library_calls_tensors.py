"""The C++ calls of attention, indexing, sorting and training, as tt-metal 0.81.1 has them."""

from __future__ import annotations

import pytest

from tests.ops.test_library_calls import calls_as, emitted

Q = "tensor<2x4x32x64xbf16>"
MASK = "tensor<1x1x32x32xbf16>"
SINK = "tensor<1x4x1x1xbf16>"
CACHE = "tensor<2x4x64x64xbf16>"
TOKEN = "tensor<1x2x4x64xbf16>"
PAGES = "tensor<9x4x32x64xbf16>"
TABLE = "tensor<2x3xi32>"
USERS = "tensor<2xi32>"
X = "tensor<8x96xbf16>"
INDEX = "tensor<8x5xi32>"
PART = "tensor<8x5xbf16>"
VALUES = f"{PART}, tensor<8x5xi32>"
ATTENTION = '"ttir.scaled_dot_product_attention"'
DECODE = '"ttir.scaled_dot_product_attention_decode"'
PAGED = '"ttir.paged_scaled_dot_product_attention_decode"'

CALLS = [
    (
        '%r = "ttir.clamp_scalar"(%i) <{min = -2147483648 : i32, max = 7 : i32}> : '
        f"({INDEX}) -> {INDEX}",
        f"%i: {INDEX}",
        INDEX,
        "ttnn::clamp(@, -2147483647 - 1, 7)",
    ),
    (
        '%r = "ttir.clamp_scalar"(%i) <{min = 1 : i32, max = -1 : i32}> : '
        "(tensor<8xui32>) -> tensor<8xui32>",
        "%i: tensor<8xui32>",
        "tensor<8xui32>",
        "ttnn::maximum(@, @); r = ttnn::minimum(@, @)",
    ),
    (
        '%r = "ttir.full"() <{shape = array<i32: 2>, fill_value = -2 : i32}> : '
        "() -> tensor<2xui32>",
        "",
        "tensor<2xui32>",
        "4294967294u)",
    ),
    (
        f'%r = "ttir.selu"(%x) <{{scale = 2.0 : f32, alpha = 0.5 : f32}}> : ({X}) -> {X}',
        f"%x: {X}",
        X,
        "ttnn::selu(@, 2.0f, 0.5f)",
    ),
    (
        f'%r = "ttir.elu"(%x) <{{alpha = 0.5 : f32}}> : ({X}) -> {X}',
        f"%x: {X}",
        X,
        "ttnn::elu(@, 0.5f)",
    ),
    (
        f"%r = {ATTENTION}(%q, %q, %q) <{{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}}> : "
        f"({Q}, {Q}, {Q}) -> {Q}",
        f"%q: {Q}",
        Q,
        "ttnn::transformer::scaled_dot_product_attention(@, @, @)",
    ),
    (
        f"%r = {ATTENTION}(%q, %q, %q, %m, %s) <{{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1>, "
        "is_causal = false, scale = 5.000000e-01 : f32}> : "
        f"({Q}, {Q}, {Q}, {MASK}, {SINK}) -> {Q}",
        f"%q: {Q}, %m: {MASK}, %s: {SINK}",
        Q,
        "ttnn::transformer::scaled_dot_product_attention(@, @, @, @, false, 0.5f, std::nullopt, "
        "std::nullopt, std::nullopt, std::nullopt, @)",
    ),
    (
        f"%r = {DECODE}(%t, %c, %c, %u) <{{operandSegmentSizes = array<i32: 1, 1, 1, 0, 1, 0>}}> : "
        f"({TOKEN}, {CACHE}, {CACHE}, {USERS}) -> {TOKEN}",
        f"%t: {TOKEN}, %c: {CACHE}, %u: {USERS}",
        TOKEN,
        "ttnn::transformer::scaled_dot_product_attention_decode(@, @, @, true, std::nullopt, "
        "std::vector<uint32_t>{}, @)",
    ),
    (
        f"%r = {PAGED}(%t, %p, %p, %n, %t, %u) <{{sliding_window_size = 40 : ui32, "
        f"operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 1, 0>}}> : "
        f"({TOKEN}, {PAGES}, {PAGES}, {TABLE}, {TOKEN}, {USERS}) -> {TOKEN}",
        f"%t: {TOKEN}, %p: {PAGES}, %n: {TABLE}, %u: {USERS}",
        TOKEN,
        "ttnn::transformer::paged_scaled_dot_product_attention_decode(@, @, @, @, true, "
        "std::nullopt, @, std::nullopt, std::nullopt, 40)",
    ),
    (
        f'%r = "ttir.chunked_scaled_dot_product_attention"(%q, %p, %p, %n, %i, %q) : '
        f"({Q}, {PAGES}, {PAGES}, {TABLE}, tensor<1xi32>, {Q}) -> {Q}",
        f"%q: {Q}, %p: {PAGES}, %n: {TABLE}, %i: tensor<1xi32>",
        Q,
        "ttnn::transformer::chunked_scaled_dot_product_attention(@, @, @, @, @)",
    ),
    (
        f'%r = "ttir.concatenate_heads"(%q) : ({Q}) -> tensor<2x32x256xbf16>',
        f"%q: {Q}",
        "tensor<2x32x256xbf16>",
        "ttnn::transformer::concatenate_heads(@)",
    ),
    (
        '%r, %k, %v = "ttir.split_query_key_value_and_split_heads"(%x) <{num_heads = 4 : ui32, '
        "num_kv_heads = 2 : ui32, transpose_key = true}> : (tensor<2x32x256xbf16>) -> "
        "(tensor<2x4x32x32xbf16>, tensor<2x2x32x32xbf16>, tensor<2x2x32x32xbf16>)",
        "%x: tensor<2x32x256xbf16>",
        "tensor<2x4x32x32xbf16>",
        "ttnn::transformer::split_query_key_value_and_split_heads(@, std::nullopt, 4, 2, true, "
        "std::nullopt)",
    ),
    (
        f'%r = "ttir.gather"(%x, %i) <{{dim = -1 : i32}}> : ({X}, {INDEX}) -> {PART}',
        f"%x: {X}, %i: {INDEX}",
        PART,
        "ttnn::gather(@, 1, @, /*sparse_grad=*/false, /*memory_config=*/std::nullopt)",
    ),
    (
        f'%r = "ttir.scatter"(%x, %i, %s) <{{dim = 1 : i32, scatter_reduce_type = '
        f"#ttcore.reduce_type<sum>}}> : ({X}, {INDEX}, {PART}) -> {X}",
        f"%x: {X}, %i: {INDEX}, %s: {PART}",
        X,
        'ttnn::scatter(@, 1, @, @, std::nullopt, "add")',
    ),
    (
        '%r, %p = "ttir.sort"(%x) <{dim = 0 : si32, descending = true}> : '
        f"({PART}) -> ({VALUES})",
        f"%x: {PART}",
        PART,
        "ttnn::sort(@, 0, true)",
    ),
    (
        f'%r, %p = "ttir.topk"(%x) <{{k = 5 : i32, largest = false}}> : ({X}) -> ({VALUES})',
        f"%x: {X}",
        PART,
        "ttnn::topk(@, 5, 1, false, true)",
    ),
    (
        f'%r = "ttir.slice_dynamic"(%x, %u, %u) <{{step = [2 : i32, 1 : i32]}}> : '
        f"({X}, {USERS}, {USERS}) -> tensor<2x8xbf16>",
        f"%x: {X}, %u: {USERS}",
        "tensor<2x8xbf16>",
        "ttnn::slice<uint32_t>(@, @, @, ttsl::SmallVector<uint32_t>{2, 1})",
    ),
    (
        f'%r = "ttir.bitcast_convert"(%x) : ({X}) -> tensor<8x96xui16>',
        f"%x: {X}",
        "tensor<8x96xui16>",
        "ttnn::bitcast(@, ttnn::DataType::UINT16)",
    ),
    (
        f'%r = "ttir.gelu_bw"(%x, %x) <{{approximate = "tanh"}}> : ({X}, {X}) -> {X}',
        f"%x: {X}",
        X,
        "ttnn::gelu_bw(@, @, ttnn::operations::unary::GeluVariant::TANH)[0].value()",
    ),
    (
        f'%r = "ttir.dropout"(%x) <{{prob = 2.500000e-01 : f32, scale = 2.000000e+00 : f32, '
        f"seed = 7 : ui32, use_per_device_seed = false}}> : ({X}) -> {X}",
        f"%x: {X}",
        X,
        "ttnn::experimental::dropout(@, 0.25f, 2.0f, 7, /*use_per_device_seed=*/false)",
    ),
    (
        '%r = "ttir.embedding_backward"(%i, %w, %g) : (tensor<1x32xi32>, tensor<9x64xbf16>, '
        "tensor<1x32x64xbf16>) -> tensor<9x64xbf16>",
        "%i: tensor<1x32xi32>, %w: tensor<9x64xbf16>, %g: tensor<1x32x64xbf16>",
        "tensor<9x64xbf16>",
        "ttnn::embedding_bw(@, @, @)",
    ),
]


@pytest.mark.parametrize(("line", "arguments", "result", "call"), CALLS)
def test_call(line, arguments, result, call):
    assert calls_as(call, emitted(line, arguments=arguments, result=result))


def test_update_of_pages_divides_its_users_among_cores():
    text = emitted(
        '"ttir.paged_update_cache"(%r, %x, %i, %n) : (tensor<20x4x32x64xbf16>, '
        "tensor<1x10x4x64xbf16>, tensor<10xi32>, tensor<10x2xi32>) -> ()",
        arguments="%r: tensor<20x4x32x64xbf16>, %x: tensor<1x10x4x64xbf16>, %i: tensor<10xi32>, "
        "%n: tensor<10x2xi32>",
        result="tensor<20x4x32x64xbf16>",
    )
    assert calls_as("ttnn::to_memory_config(@, tuning::height_sharded_32x64)", text)
    assert calls_as(
        "ttnn::experimental::paged_update_cache(@, @, /*update_idxs=*/std::vector<uint32_t>{}, @, "
        "std::nullopt, @, /*batch_offset=*/0, std::nullopt, std::nullopt, std::nullopt, "
        "std::nullopt, std::nullopt)",
        text,
    )


def test_fill_of_pages():
    text = emitted(
        f'"ttir.paged_fill_cache"(%r, %x, %n, %u) : ({PAGES}, tensor<2x4x64x64xbf16>, {TABLE}, '
        f"{USERS}) -> ()",
        arguments=f"%r: {PAGES}, %x: tensor<2x4x64x64xbf16>, %n: {TABLE}, %u: {USERS}",
        result=PAGES,
    )
    call = "ttnn::experimental::paged_fill_cache(@, @, @, @, /*batch_idx=*/0, std::nullopt, "
    assert text.count("ttnn::experimental::paged_fill_cache(") == 2
    assert calls_as(call + ", ".join(["std::nullopt"] * 4) + ")", text)
