# ruff: noqa: E501 -- MLIR as it is printed
"""Modules that the tests of the optimizer compile."""

from __future__ import annotations

from ttcodegen.compilation import CompiledModule, CompileOptions, compile_module
from ttcodegen.flatbuffer.program import Program
from ttcodegen.flatbuffer.reader import read_ttnn
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.optimizer.call import call_in_file
from ttcodegen.optimizer.cost.calls import CostModel
from ttcodegen.systems.cards import default_system

INPUT = "ttcore.argument_type = #ttcore.argument_type<input>"
WEIGHT = "ttcore.argument_type = #ttcore.argument_type<parameter>"

CHAIN = f"""
func.func @main(%x: tensor<2048x1024xbf16> {{{INPUT}}}, %w: tensor<1024x2048xbf16> {{{WEIGHT}}}, %v: tensor<2048x1024xbf16> {{{WEIGHT}}}) -> tensor<2048x1024xbf16> {{
  %hidden = "ttir.matmul"(%x, %w) : (tensor<2048x1024xbf16>, tensor<1024x2048xbf16>) -> tensor<2048x2048xbf16>
  %squared = "ttir.multiply"(%hidden, %hidden) : (tensor<2048x2048xbf16>, tensor<2048x2048xbf16>) -> tensor<2048x2048xbf16>
  %scores = "ttir.matmul"(%squared, %v) : (tensor<2048x2048xbf16>, tensor<2048x1024xbf16>) -> tensor<2048x1024xbf16>
  %sum = "ttir.add"(%scores, %x) : (tensor<2048x1024xbf16>, tensor<2048x1024xbf16>) -> tensor<2048x1024xbf16>
  return %sum : tensor<2048x1024xbf16>
}}
"""
"""Products and what is computed element by element between them."""

PADDED = f"""
func.func @main(%x: tensor<32x256xbf16> {{{INPUT}}}, %w: tensor<256x512xbf16> {{{WEIGHT}}}, %g: tensor<512xbf16> {{{WEIGHT}}}, %v: tensor<512x64xbf16> {{{WEIGHT}}}) -> tensor<32x1x64xbf16> {{
  %0 = "ttir.matmul"(%x, %w) : (tensor<32x256xbf16>, tensor<256x512xbf16>) -> tensor<32x512xbf16>
  %1 = "ttir.reshape"(%0) <{{shape = [32 : i32, 1 : i32, 512 : i32]}}> : (tensor<32x512xbf16>) -> tensor<32x1x512xbf16>
  %2 = "ttir.exp"(%1) : (tensor<32x1x512xbf16>) -> tensor<32x1x512xbf16>
  %3 = "ttir.multiply"(%2, %1) : (tensor<32x1x512xbf16>, tensor<32x1x512xbf16>) -> tensor<32x1x512xbf16>
  %4 = "ttir.rms_norm"(%3, %g) <{{normalized_shape = array<i64: 512>, epsilon = 1.0e-5 : f32, operandSegmentSizes = array<i32: 1, 1, 0>}}> : (tensor<32x1x512xbf16>, tensor<512xbf16>) -> tensor<32x1x512xbf16>
  %5 = "ttir.reshape"(%4) <{{shape = [32 : i32, 512 : i32]}}> : (tensor<32x1x512xbf16>) -> tensor<32x512xbf16>
  %6 = "ttir.matmul"(%5, %v) : (tensor<32x512xbf16>, tensor<512x64xbf16>) -> tensor<32x64xbf16>
  %7 = "ttir.reshape"(%6) <{{shape = [32 : i32, 1 : i32, 64 : i32]}}> : (tensor<32x64xbf16>) -> tensor<32x1x64xbf16>
  return %7 : tensor<32x1x64xbf16>
}}
"""
"""Rows of a decoder, each a matrix of one row, as models have them."""

GATED = f"""
func.func @main(%x: tensor<1024x2048xbf16> {{{INPUT}}}, %u: tensor<2048x5632xbf16> {{{WEIGHT}}}, %g: tensor<2048x5632xbf16> {{{WEIGHT}}}, %d: tensor<5632x2048xbf16> {{{WEIGHT}}}) -> tensor<1024x2048xbf16> {{
  %0 = "ttir.matmul"(%x, %g) : (tensor<1024x2048xbf16>, tensor<2048x5632xbf16>) -> tensor<1024x5632xbf16>
  %1 = "ttir.silu"(%0) : (tensor<1024x5632xbf16>) -> tensor<1024x5632xbf16>
  %2 = "ttir.matmul"(%x, %u) : (tensor<1024x2048xbf16>, tensor<2048x5632xbf16>) -> tensor<1024x5632xbf16>
  %3 = "ttir.multiply"(%1, %2) : (tensor<1024x5632xbf16>, tensor<1024x5632xbf16>) -> tensor<1024x5632xbf16>
  %4 = "ttir.matmul"(%3, %d) : (tensor<1024x5632xbf16>, tensor<5632x2048xbf16>) -> tensor<1024x2048xbf16>
  return %4 : tensor<1024x2048xbf16>
}}
"""
"""A gated product, whose factors fill much of L1."""

SMALL_IMAGE = f"""
func.func @main(%x: tensor<12x256x1x1xbf16> {{{INPUT}}}, %w: tensor<256x256x1x1xbf16> {{{WEIGHT}}}) -> tensor<12x256x1x1xbf16> {{
  %0 = "ttir.conv2d"(%x, %w) <{{dilation = array<i32: 1, 1>, groups = 1 : i32, padding = array<i32: 0, 0, 0, 0>, stride = array<i32: 1, 1>, batch_dim = 0 : i64, channel_dim = 1 : i64, height_dim = 2 : i64, width_dim = 3 : i64}}> : (tensor<12x256x1x1xbf16>, tensor<256x256x1x1xbf16>) -> tensor<12x256x1x1xbf16>
  return %0 : tensor<12x256x1x1xbf16>
}}
"""
"""Images of one pixel, channels first: tiles of them are little but padding."""

CHANNEL_SCALES = f"""
func.func @main(%x: tensor<2x4x8x8xbf16> {{{INPUT}}}, %s: tensor<4xbf16> {{{INPUT}}}) -> tensor<2x4x8x8xbf16> {{
  %0 = "ttir.mean"(%x) <{{dim_arg = [0 : i32, 2 : i32, 3 : i32], keep_dim = true}}> : (tensor<2x4x8x8xbf16>) -> tensor<1x4x1x1xbf16>
  %1 = "ttir.rsqrt"(%0) : (tensor<1x4x1x1xbf16>) -> tensor<1x4x1x1xbf16>
  %2 = "ttir.reshape"(%s) <{{shape = [1 : i32, 4 : i32, 1 : i32, 1 : i32]}}> : (tensor<4xbf16>) -> tensor<1x4x1x1xbf16>
  %3 = "ttir.multiply"(%1, %2) : (tensor<1x4x1x1xbf16>, tensor<1x4x1x1xbf16>) -> tensor<1x4x1x1xbf16>
  %4 = "ttir.multiply"(%x, %3) : (tensor<2x4x8x8xbf16>, tensor<1x4x1x1xbf16>) -> tensor<2x4x8x8xbf16>
  return %4 : tensor<2x4x8x8xbf16>
}}
"""
"""A scale of each channel, which a reshape would take out of its tiles."""

LAST_ROWS = f"""
func.func @main(%x: tensor<36x64xbf16> {{{INPUT}}}) -> tensor<4x1x64xbf16> {{
  %0 = "ttir.exp"(%x) : (tensor<36x64xbf16>) -> tensor<36x64xbf16>
  %1 = "ttir.reshape"(%0) <{{shape = [4 : i32, 9 : i32, 64 : i32]}}> : (tensor<36x64xbf16>) -> tensor<4x9x64xbf16>
  %2 = "ttir.slice_static"(%1) <{{begins = [0 : i32, 8 : i32, 0 : i32], ends = [4 : i32, 9 : i32, 64 : i32], step = [1 : i32, 1 : i32, 1 : i32]}}> : (tensor<4x9x64xbf16>) -> tensor<4x1x64xbf16>
  return %2 : tensor<4x1x64xbf16>
}}
"""
"""The last row of each matrix of a batch."""

_HEADS = [
    (
        f'  %p{i} = "ttir.linear"(%x, %w{i}, %b{i}) : (tensor<128x128xbf16>, tensor<128x128xbf16>, '
        "tensor<128xbf16>) -> tensor<128x128xbf16>\n"
        f'  %r{i} = "ttir.reshape"(%p{i}) <{{shape = [2 : i32, 64 : i32, 4 : i32, 32 : i32]}}> : '
        "(tensor<128x128xbf16>) -> tensor<2x64x4x32xbf16>\n"
        f'  %h{i} = "ttir.permute"(%r{i}) <{{permutation = array<i64: 0, 2, 1, 3>}}> : '
        "(tensor<2x64x4x32xbf16>) -> tensor<2x4x64x32xbf16>\n"
    )
    for i in range(3)
]
PROJECTIONS = (
    f"func.func @main(%x: tensor<128x128xbf16> {{{INPUT}}}, "
    + ", ".join(
        f"%w{i}: tensor<128x128xbf16> {{{WEIGHT}}}, %b{i}: tensor<128xbf16> {{{WEIGHT}}}"
        for i in range(3)
    )
    + ") -> (tensor<2x4x64x32xbf16>, tensor<2x4x64x32xbf16>, tensor<2x4x64x32xbf16>) {\n"
    + "".join(_HEADS)
    + "  return %h0, %h1, %h2 : tensor<2x4x64x32xbf16>, tensor<2x4x64x32xbf16>, "
    "tensor<2x4x64x32xbf16>\n}\n"
)
"""Queries, keys and values of one input."""

CONVOLUTION = f"""
func.func @main(%x: tensor<1x14x14x32xbf16> {{{INPUT}}}, %w: tensor<64x32x3x3xbf16> {{{WEIGHT}}}) -> tensor<1x14x14x64xbf16> {{
  %0 = "ttir.conv2d"(%x, %w) <{{stride = 1 : i32, padding = 1 : i32, dilation = 1 : i32, groups = 1 : i32}}> : (tensor<1x14x14x32xbf16>, tensor<64x32x3x3xbf16>) -> tensor<1x14x14x64xbf16>
  %1 = "ttir.relu"(%0) : (tensor<1x14x14x64xbf16>) -> tensor<1x14x14x64xbf16>
  return %1 : tensor<1x14x14x64xbf16>
}}
"""
"""A convolution whose activation it can apply itself."""

SEQUENCES = f"""
func.func @main(%x: tensor<2x64x257xbf16> {{{INPUT}}}, %w: tensor<96x64x7xbf16> {{{WEIGHT}}}) -> tensor<2x96x129xbf16> {{
  %0 = "ttir.conv1d"(%x, %w) <{{stride = array<i32: 2>, padding = array<i32: 3>, dilation = array<i32: 1>, groups = 1 : i32, batch_dim = 0 : i64, channel_dim = 1 : i64, length_dim = 2 : i64}}> : (tensor<2x64x257xbf16>, tensor<96x64x7xbf16>) -> tensor<2x96x129xbf16>
  return %0 : tensor<2x96x129xbf16>
}}
"""
"""A convolution of sequences whose windows skip every second place."""

DECODING = f"""
func.func @main(%x: tensor<32x1024xbf16> {{{INPUT}}}, %g: tensor<1024x4096xbf16> {{{WEIGHT}}}, %u: tensor<1024x4096xbf16> {{{WEIGHT}}}, %d: tensor<1024x4096xbf16> {{{WEIGHT}}}) -> tensor<32x1024xbf16> {{
  %gate = "ttir.matmul"(%x, %g) : (tensor<32x1024xbf16>, tensor<1024x4096xbf16>) -> tensor<32x4096xbf16>
  %active = "ttir.silu"(%gate) : (tensor<32x4096xbf16>) -> tensor<32x4096xbf16>
  %up = "ttir.matmul"(%x, %u) : (tensor<32x1024xbf16>, tensor<1024x4096xbf16>) -> tensor<32x4096xbf16>
  %product = "ttir.multiply"(%active, %up) : (tensor<32x4096xbf16>, tensor<32x4096xbf16>) -> tensor<32x4096xbf16>
  %t = "ttir.permute"(%d) <{{permutation = array<i64: 1, 0>}}> : (tensor<1024x4096xbf16>) -> tensor<4096x1024xbf16>
  %down = "ttir.matmul"(%product, %t) : (tensor<32x4096xbf16>, tensor<4096x1024xbf16>) -> tensor<32x1024xbf16>
  return %down : tensor<32x1024xbf16>
}}
"""
"""Products of a row of tiles with large weights, as models have them that make one token."""

OTHERS = """
func.func @main(%x: tensor<64x128xbf16>, %y: tensor<64x128xbf16>, %rows: tensor<4x8xui32>, %table: tensor<512x128xbf16>, %image: tensor<1x16x16x32xbf16>) -> (tensor<64xbf16>, tensor<64x1xbf16>, tensor<64xi32>, tensor<64x128xbf16>, tensor<64x128xi16>, tensor<64x160xbf16>, tensor<64x128xbf16>, tensor<64x128xbf16>, tensor<4x8x128xbf16>, tensor<1x8x8x32xbf16>, tensor<1x8x8x32xbf16>) {
  %sum = "ttir.sum"(%x) <{dim_arg = [1 : i32], keep_dim = false}> : (tensor<64x128xbf16>) -> tensor<64xbf16>
  %max = "ttir.max"(%x) <{dim_arg = [1 : i32], keep_dim = true}> : (tensor<64x128xbf16>) -> tensor<64x1xbf16>
  %argmax = "ttir.argmax"(%x) <{dim_arg = [1 : i32], keep_dim = false}> : (tensor<64x128xbf16>) -> tensor<64xi32>
  %sorted, %order = "ttir.sort"(%x) <{dim = 1 : si32, descending = true, stable = false}> : (tensor<64x128xbf16>) -> (tensor<64x128xbf16>, tensor<64x128xi16>)
  %padded = "ttir.pad"(%x) <{padding = array<i32: 0, 0, 0, 32>, value = 1.0 : f32}> : (tensor<64x128xbf16>) -> tensor<64x160xbf16>
  %clamped = "ttir.clamp_scalar"(%x) <{min = -1.0 : f32, max = 1.0 : f32}> : (tensor<64x128xbf16>) -> tensor<64x128xbf16>
  %summed = "ttir.cumsum"(%y) <{dim = 1 : i64}> : (tensor<64x128xbf16>) -> tensor<64x128xbf16>
  %found = "ttir.embedding"(%rows, %table) : (tensor<4x8xui32>, tensor<512x128xbf16>) -> tensor<4x8x128xbf16>
  %most = "ttir.max_pool2d"(%image) <{kernel = array<i32: 2, 2>, stride = array<i32: 2, 2>, padding = array<i32: 0, 0>, dilation = array<i32: 1, 1>, ceil_mode = false}> : (tensor<1x16x16x32xbf16>) -> tensor<1x8x8x32xbf16>
  %mean = "ttir.avg_pool2d"(%image) <{kernel = array<i32: 2, 2>, stride = array<i32: 2, 2>, padding = array<i32: 0, 0>, dilation = array<i32: 1, 1>, ceil_mode = false}> : (tensor<1x16x16x32xbf16>) -> tensor<1x8x8x32xbf16>
  return %sum, %max, %argmax, %sorted, %order, %padded, %clamped, %summed, %found, %most, %mean : tensor<64xbf16>, tensor<64x1xbf16>, tensor<64xi32>, tensor<64x128xbf16>, tensor<64x128xi16>, tensor<64x160xbf16>, tensor<64x128xbf16>, tensor<64x128xbf16>, tensor<4x8x128xbf16>, tensor<1x8x8x32xbf16>, tensor<1x8x8x32xbf16>
}
"""
"""Calls of many kinds, each of its own."""


def token(users: int, heads: int, key_heads: int, position: str = "1") -> str:
    """A layer that makes one token of each user: keys and values go to caches, attention reads
    them."""
    size, hidden, length = 64, 128, 96
    wide, narrow = heads * size, key_heads * size
    x, p = f"tensor<{users}x{hidden}xbf16>", f"tensor<{position}xi32>"
    cache, q = f"tensor<{users}x{key_heads}x{length}x{size}xbf16>", f"{users}x{heads}x1x{size}xbf16"
    k, entry = f"{users}x{key_heads}x1x{size}xbf16", f"1x{key_heads}x{users}x{size}xbf16"
    decoded, weight = f"1x{users}x{heads}x{size}xbf16", "{" + WEIGHT + "}"
    cached = "{ttcore.argument_type = #ttcore.argument_type<input>, ttcore.kv_cache}"
    return f"""
func.func @main(%x: {x} {{{INPUT}}}, %p: {p} {{{INPUT}}}, %kc: {cache} {cached}, %vc: {cache} {cached}, %wq: tensor<{hidden}x{wide}xbf16> {weight}, %wk: tensor<{hidden}x{narrow}xbf16> {weight}, %wv: tensor<{hidden}x{narrow}xbf16> {weight}, %wo: tensor<{wide}x{hidden}xbf16> {weight}, %cos: tensor<1x1x1x{size}xbf16> {weight}) -> ({x}, {cache}, {cache}) {{
  %q = "ttir.matmul"(%x, %wq) : ({x}, tensor<{hidden}x{wide}xbf16>) -> tensor<{users}x{wide}xbf16>
  %k = "ttir.matmul"(%x, %wk) : ({x}, tensor<{hidden}x{narrow}xbf16>) -> tensor<{users}x{narrow}xbf16>
  %v = "ttir.matmul"(%x, %wv) : ({x}, tensor<{hidden}x{narrow}xbf16>) -> tensor<{users}x{narrow}xbf16>
  %qh = "ttir.reshape"(%q) <{{shape = [{users} : i32, {heads} : i32, 1 : i32, {size} : i32]}}> : (tensor<{users}x{wide}xbf16>) -> tensor<{q}>
  %kh = "ttir.reshape"(%k) <{{shape = [{users} : i32, {key_heads} : i32, 1 : i32, {size} : i32]}}> : (tensor<{users}x{narrow}xbf16>) -> tensor<{k}>
  %vh = "ttir.reshape"(%v) <{{shape = [{users} : i32, {key_heads} : i32, 1 : i32, {size} : i32]}}> : (tensor<{users}x{narrow}xbf16>) -> tensor<{k}>
  %qr = "ttir.multiply"(%qh, %cos) : (tensor<{q}>, tensor<1x1x1x{size}xbf16>) -> tensor<{q}>
  %kr = "ttir.multiply"(%kh, %cos) : (tensor<{k}>, tensor<1x1x1x{size}xbf16>) -> tensor<{k}>
  %kp = "ttir.permute"(%kr) <{{permutation = array<i64: 2, 1, 0, 3>}}> : (tensor<{k}>) -> tensor<{entry}>
  %vp = "ttir.permute"(%vh) <{{permutation = array<i64: 2, 1, 0, 3>}}> : (tensor<{k}>) -> tensor<{entry}>
  "ttir.update_cache"(%kc, %kp, %p) <{{batch_offset = 0 : i32}}> : ({cache}, tensor<{entry}>, {p}) -> ()
  "ttir.update_cache"(%vc, %vp, %p) <{{batch_offset = 0 : i32}}> : ({cache}, tensor<{entry}>, {p}) -> ()
  %qd = "ttir.permute"(%qr) <{{permutation = array<i64: 2, 0, 1, 3>}}> : (tensor<{q}>) -> tensor<{decoded}>
  %a = "ttir.scaled_dot_product_attention_decode"(%qd, %kc, %vc) <{{is_causal = false, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0>}}> : (tensor<{decoded}>, {cache}, {cache}) -> tensor<{decoded}>
  %ap = "ttir.permute"(%a) <{{permutation = array<i64: 1, 2, 0, 3>}}> : (tensor<{decoded}>) -> tensor<{q}>
  %ar = "ttir.reshape"(%ap) <{{shape = [{users} : i32, {wide} : i32]}}> : (tensor<{q}>) -> tensor<{users}x{wide}xbf16>
  %o = "ttir.matmul"(%ar, %wo) : (tensor<{users}x{wide}xbf16>, tensor<{wide}x{hidden}xbf16>) -> {x}
  return %o, %kc, %vc : {x}, {cache}, {cache}
}}
"""


def attention(rows: int, mask: bool = False) -> str:
    """Attention of that many queries to as many keys; causal if without a mask."""
    heads, added = f"tensor<1x4x{rows}x64xbf16>", f"tensor<1x1x{rows}x{rows}xbf16>"
    arguments = f"%q: {heads}, %k: {heads}, %v: {heads}" + (f", %m: {added}" if mask else "")
    return f"""
func.func @main({arguments}) -> {heads} {{
  %0 = "ttir.scaled_dot_product_attention"(%q, %k, %v{", %m" if mask else ""}) <{{is_causal = {str(not mask).lower()}, operandSegmentSizes = array<i32: 1, 1, 1, {int(mask)}, 0>}}> : ({heads}, {heads}, {heads}{", " + added if mask else ""}) -> {heads}
  return %0 : {heads}
}}
"""


def compiled(text: str, level: int, overrides: str = "") -> CompiledModule:
    """A module, compiled at that level."""
    options = CompileOptions("m", optimize=level, overrides=overrides)
    return compile_module(Source("m.mlir", text), options)


def entry(module: CompiledModule) -> Program:
    """The program that is called."""
    binary = read_ttnn(module.flatbuffer)
    (found,) = [program for program in binary.programs if program.kind == "entry"]
    return found


def names(program: Program) -> list[str]:
    """The ops of a program that are no deallocations, without their dialect."""
    short = [operation.name.partition(".")[2] for operation in program.operations]
    return [name for name in short if name not in ("deallocate", "load_cached")]


def seconds(module: CompiledModule) -> float:
    """The estimated time of the program that is called."""
    program, model = entry(module), CostModel(default_system("wormhole_b0").chip)
    calls = [call_in_file(program, op) for op in program.operations if op.callee is None]
    return sum(model.cost(call).seconds for call in calls)


def most_l1(module: CompiledModule) -> int:
    """Bytes of each L1 that tensors and circular buffers take at most, while the program runs."""
    model = CostModel(default_system("wormhole_b0").chip)
    program = entry(module)
    live: set[int] = set()
    most = 0
    for operation in program.operations:
        if operation.name == "ttnn.deallocate":
            live.discard(operation.operands[0])
            continue
        live.update(operation.results)
        placements = [program.tensors[tensor].type.placement for tensor in live]
        used = sum(model.bank_bytes(placement) for placement in placements)
        if operation.callee is None:
            used += model.cost(call_in_file(program, operation)).circular_buffers
        most = max(most, used)
    return most


ONE_TOKEN = """
func.func @f(%cache: tensor<1x8x16x128xbf16>, %token: tensor<1x8x1x128xbf16>, %at: tensor<1xi32>)
    -> tensor<1x8x16x128xbf16> {
  "ttir.update_cache"(%cache, %token, %at) <{batch_offset = 0 : i32}> : (tensor<1x8x16x128xbf16>, tensor<1x8x1x128xbf16>, tensor<1xi32>) -> ()
  return %cache : tensor<1x8x16x128xbf16>
}
"""
"""A token is written where a number on the device says."""


def _head(name: str, projected: str, order: str, result: str) -> str:
    return f"""
  %{name}0 = "ttir.matmul"(%x, %{name}) <{{transpose_b = true}}> : (tensor<61x512xbf16>, tensor<384x512xbf16>) -> tensor<61x384xbf16>
  %{name}1 = "ttir.reshape"(%{name}0) <{{shape = [{projected.replace("x", " : i32, ")} : i32]}}> : (tensor<61x384xbf16>) -> tensor<{projected}xbf16>
  %{name}2 = "ttir.permute"(%{name}1) <{{permutation = array<i64: {order}>}}> : (tensor<{projected}xbf16>) -> tensor<{result}xbf16>"""


_HEADS = (
    ("q", "1x61x6x64", "0, 1, 3, 2", "1x61x64x6"),
    ("k", "1x61x6x64", "0, 2, 3, 1", "1x6x64x61"),
    ("v", "1x61x6x64", "0, 2, 1, 3", "1x6x61x64"),
)
ODD_HEADS = f"""
func.func @f(%x: tensor<61x512xbf16>, %q: tensor<384x512xbf16>, %k: tensor<384x512xbf16>, %v: tensor<384x512xbf16>)
    -> (tensor<1x61x64x6xbf16>, tensor<1x6x64x61xbf16>, tensor<1x6x61x64xbf16>) {{{"".join(_head(*each) for each in _HEADS)}
  return %q2, %k2, %v2 : tensor<1x61x64x6xbf16>, tensor<1x6x64x61xbf16>, tensor<1x6x61x64xbf16>
}}
"""
"""Heads that no call of the library splits."""
