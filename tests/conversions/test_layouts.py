"""The placement of tensors, and the ops that convert between placements."""

from __future__ import annotations

import pytest
from xdsl.dialects.func import FuncOp

from ttcodegen.dialects.ttnn.placement import placement_of
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.transforms.const_eval import is_const_eval


def argument(kind: str) -> str:
    return f"{{ttcore.argument_type = #ttcore.argument_type<{kind}>}}"


def placements(module):
    function = next(op for op in module.walk() if isinstance(op, FuncOp) and not is_const_eval(op))
    return [placement_of(argument) for argument in function.body.block.args]


def test_an_input_arrives_row_major_and_is_tilised(lowered, calls):
    module = lowered(f"""
func.func @f(%x: tensor<32x64xbf16> {argument("input")}) -> tensor<32x64xbf16> {{
  %0 = "ttir.relu"(%x) : (tensor<32x64xbf16>) -> tensor<32x64xbf16>
  return %0 : tensor<32x64xbf16>
}}""")
    assert placements(module)[0].layout.value == "row_major"
    assert calls(module) == [
        "to_layout -> bf16 tile dram",
        "relu -> bf16 tile dram",
        "deallocate",
    ]


def test_an_undeclared_argument_and_a_parameter_lie_in_tiles(lowered):
    module = lowered(f"""
func.func @f(%x: tensor<32x64xf32>, %w: tensor<32x64xf32> {argument("parameter")})
    -> tensor<32x64xf32> {{
  %0 = "ttir.add"(%x, %w) : (tensor<32x64xf32>, tensor<32x64xf32>) -> tensor<32x64xf32>
  return %0 : tensor<32x64xf32>
}}""")
    assert [place.layout.value for place in placements(module)] == ["tile", "tile"]


def test_a_weight_of_a_convolution_stays_on_the_host(lowered, calls):
    module = lowered(f"""
func.func @f(%x: tensor<1x8x8x4xbf16>, %w: tensor<16x4x3x3xbf16> {argument("parameter")})
    -> tensor<1x6x6x16xbf16> {{
  %0 = "ttir.conv2d"(%x, %w) <{{stride = 1 : i32, padding = 0 : i32, dilation = 1 : i32,
    groups = 1 : i32}}> : (tensor<1x8x8x4xbf16>, tensor<16x4x3x3xbf16>) -> tensor<1x6x6x16xbf16>
  return %0 : tensor<1x6x6x16xbf16>
}}""")
    weight = placements(module)[1]
    assert (weight.buffer_type, weight.layout.value) == ("system_memory", "row_major")
    assert "from_device -> bf16 row_major system_memory" not in calls(module)


def test_argmax_reads_rows_and_its_indices_are_converted(lowered, calls):
    module = lowered("""
func.func @f(%x: tensor<4x64xf32>) -> tensor<4xi32> {
  %0 = "ttir.argmax"(%x) <{dim_arg = [1 : i32], keep_dim = false}>
    : (tensor<4x64xf32>) -> tensor<4xi32>
  return %0 : tensor<4xi32>
}""")
    made = [line for line in calls(module) if not line.startswith("deallocate")]
    assert made[:3] == [
        "to_layout -> f32 row_major dram",
        "argmax -> u32 row_major dram",
        "typecast -> si32 row_major dram",
    ]
    assert made[-1].startswith("reshape -> si32")


def test_a_comparison_asks_the_library_for_the_data_type_of_booleans(lowered):
    module = lowered("""
func.func @f(%x: tensor<32x32xf32>, %y: tensor<32x32xf32>) -> tensor<32x32xi1> {
  %0 = "ttir.lt"(%x, %y) : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xi1>
  return %0 : tensor<32x32xi1>
}""")
    compare = next(op for op in module.walk() if op.name == "ttnn.lt")
    assert compare.parameter("dtype").mlir == "bf16"


@pytest.mark.parametrize(
    ("element", "ops"),
    [
        ("i32", ["cumsum", "slice_static", "reshape"]),
        ("ui8", ["typecast", "sum", "typecast"]),
    ],
)
def test_integers_are_summed_where_none_of_their_bits_is_lost(lowered, calls, element, ops):
    module = lowered(f"""
func.func @f(%x: tensor<32x64x{element}>) -> tensor<32xi32> {{
  %0 = "ttir.sum"(%x) <{{dim_arg = [1 : i32], keep_dim = false}}>
    : (tensor<32x64x{element}>) -> tensor<32xi32>
  return %0 : tensor<32xi32>
}}""")
    made = [line for line in calls(module) if not line.startswith("deallocate")]
    assert [line.partition(" ")[0] for line in made] == ops
    assert not [line for line in made if line.startswith("sum") and "si32" in line]


def test_eight_bit_rows_become_tiles_by_way_of_a_wider_type(lowered, calls):
    module = lowered(f"""
func.func @f(%x: tensor<32x64xui8> {argument("input")}) -> tensor<32x64xf32> {{
  %0 = "ttir.typecast"(%x) : (tensor<32x64xui8>) -> tensor<32x64xf32>
  %1 = "ttir.exp"(%0) : (tensor<32x64xf32>) -> tensor<32x64xf32>
  return %1 : tensor<32x64xf32>
}}""")
    made = [line for line in calls(module) if not line.startswith("deallocate")]
    assert made == [
        "typecast -> f32 row_major dram",
        "to_layout -> f32 tile dram",
        "exp -> f32 tile dram",
    ]


def test_bytes_become_tiles_as_larger_integers(lowered, calls):
    module = lowered(f"""
func.func @f(%x: tensor<32x64xui8> {argument("input")}) -> tensor<64x32xui8> {{
  %0 = "ttir.permute"(%x) <{{permutation = array<i64: 1, 0>}}>
    : (tensor<32x64xui8>) -> tensor<64x32xui8>
  return %0 : tensor<64x32xui8>
}}""")
    assert [line for line in calls(module) if "deallocate" not in line] == [
        "typecast -> u32 row_major dram",
        "to_layout -> u32 tile dram",
        "typecast -> u8 tile dram",
        "permute -> u8 tile dram",
    ]


def test_one_conversion_serves_all_users(lowered, calls):
    module = lowered(f"""
func.func @f(%x: tensor<32x64xbf16> {argument("input")}) -> tensor<32x64xbf16> {{
  %0 = "ttir.exp"(%x) : (tensor<32x64xbf16>) -> tensor<32x64xbf16>
  %1 = "ttir.sin"(%x) : (tensor<32x64xbf16>) -> tensor<32x64xbf16>
  %2 = "ttir.add"(%0, %1) : (tensor<32x64xbf16>, tensor<32x64xbf16>) -> tensor<32x64xbf16>
  return %2 : tensor<32x64xbf16>
}}""")
    assert sum(line.startswith("to_layout") for line in calls(module)) == 1


def test_a_cache_is_overwritten_where_it_lies(lowered):
    module = lowered(f"""
func.func @f(%cache: tensor<2x4x64x32xbf16> {argument("input")}, %x: tensor<1x4x32x32xbf16>)
    -> tensor<2x4x64x32xbf16> {{
  "ttir.fill_cache"(%cache, %x) <{{batch_offset = 1 : i32}}>
    : (tensor<2x4x64x32xbf16>, tensor<1x4x32x32xbf16>) -> ()
  return %cache : tensor<2x4x64x32xbf16>
}}""")
    fill = next(op for op in module.walk() if op.name == "ttnn.fill_cache")
    assert fill.operands[0] is fill.parent.args[0]
    assert placements(module)[0].layout.value == "tile"


def test_a_cache_that_would_have_to_be_converted_is_refused(lowered):
    with pytest.raises(CompileError, match="fill_cache"):
        lowered("""
func.func @f(%cache: tensor<2x4x64x32xi32>, %x: tensor<1x4x32x32xi32>)
    -> tensor<2x4x64x32xi32> {
  "ttir.fill_cache"(%cache, %x) <{batch_offset = 1 : i32}>
    : (tensor<2x4x64x32xi32>, tensor<1x4x32x32xi32>) -> ()
  return %cache : tensor<2x4x64x32xi32>
}""")
