"""TTNN as tt-mlir printed it in 2024 and 2025: devices, destinations, names and layouts of then."""

from __future__ import annotations

import pytest

from tests.parsing.reading import parse
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.diagnostics import CompileError, Diagnostics, Source
from ttcodegen.parsing import parse_module
from ttcodegen.transforms.module_text import module_text
from ttcodegen.translation import mlir_to_cpp, ttnn_to_flatbuffer

DEVICE = "!tt.device<<#tt.grid<8x8, (d0, d1) -> (0, d0, d1)>, [0]>>"
INTRODUCTION = f"""
#l1_ = #tt.memory_space<l1>
#system = #tt.memory_space<system>
#host = #tt.layout<(d0, d1) -> (d0, d1), undef, <1x1>, memref<64x128xf32, #system>>
#back = #tt.layout<(d0, d1) -> (d0, d1), undef, <8x8>, memref<8x16xf32, #system>>
#core = #tt.layout<(d0, d1) -> (d0, d1), undef, <8x8>, memref<8x16xf32, #l1_>>
func.func @forward(%a: tensor<64x128xf32, #host>, %b: tensor<64x128xf32, #host>)
    -> tensor<64x128xf32, #back> {{
  %0 = "ttnn.open_device"() : () -> {DEVICE}
  %1 = "ttnn.full"(%0) <{{fillValue = 0.0 : f32}}> : ({DEVICE}) -> tensor<64x128xf32, #core>
  %2 = "ttnn.to_memory_config"(%a, %1)
      : (tensor<64x128xf32, #host>, tensor<64x128xf32, #core>) -> tensor<64x128xf32, #core>
  %3 = "ttnn.full"(%0) <{{fillValue = 0.0 : f32}}> : ({DEVICE}) -> tensor<64x128xf32, #core>
  %4 = "ttnn.subtract"(%2, %b, %3) <{{operandSegmentSizes = array<i32: 2, 1>}}>
      : (tensor<64x128xf32, #core>, tensor<64x128xf32, #host>, tensor<64x128xf32, #core>)
      -> tensor<64x128xf32, #core>
  %5 = "ttnn.full"(%0) <{{fillValue = 0.0 : f32}}> : ({DEVICE}) -> tensor<64x128xf32, #back>
  %6 = "ttnn.to_memory_config"(%4, %5)
      : (tensor<64x128xf32, #core>, tensor<64x128xf32, #back>) -> tensor<64x128xf32, #back>
  "ttnn.close_device"(%0) : ({DEVICE}) -> ()
  return %6 : tensor<64x128xf32, #back>
}}
"""


def names(module):
    return [op.name for op in module.walk() if isinstance(op, CatalogueOp)]


def test_a_listing_with_devices_and_destinations_is_one_op() -> None:
    module = parse(INTRODUCTION)
    assert names(module) == ["ttnn.subtract"]
    assert "tt.device<" not in module_text(module)


def test_it_continues_to_a_flatbuffer() -> None:
    made = ttnn_to_flatbuffer(Source("in.mlir", INTRODUCTION))
    assert b"ttnn.subtract" in bytes(made.whole)


def test_it_continues_to_cpp() -> None:
    from ttcodegen.conversions.ttnn_to_emitc import ConvertTTNNToEmitC
    from ttcodegen.ops.dialects import load_dialects

    module = parse(INTRODUCTION)
    ConvertTTNNToEmitC(module_name="listing").apply(load_dialects(), module)
    made = mlir_to_cpp(Source("in.mlir", module_text(module)))
    assert "ttnn::subtract(inputs.a, inputs.b)" in str(made.whole)


T = "tensor<4x6xf32>"
D = "!ttnn.device"


OPS = f"""
"ttnn.div"(%a, %a, %e) <{{operandSegmentSizes = array<i32: 2, 1>}}> : ({T}, {T}, {T}) -> {T}
"ttnn.clamp"(%a) <{{max = 2.0 : f32, min = 1.0 : f32}}> : ({T}) -> {T}
"ttnn.slice"(%a, %e2) <{{begins = [0 : i32, 0 : i32], ends = [2 : i32, 6 : i32], \
step = [1 : i32, 2 : i32]}}> : ({T}, tensor<2x3xf32>) -> tensor<2x3xf32>
"ttnn.transpose"(%a) <{{dim0 = 0 : si32, dim1 = -1 : si32}}> : ({T}) -> tensor<6x4xf32>
"ttnn.moreh_cumsum"(%a, %e) <{{dim = 1 : i64}}> : ({T}, {T}) -> {T}
"ttnn.to_dtype"(%a) <{{dtype = #tt.supportedDataTypes<bf16>}}> : ({T}) -> tensor<4x6xbf16>
"ttnn.zeros"(%d) <{{shape = #ttnn.shape<4x6>}}> : ({D}) -> {T}
"ttnn.ones"() <{{shape = array<i32: 4, 6>}}> : () -> {T}
"ttnn.full"(%d) <{{fillValue = 3.0 : f32}}> : ({D}) -> {T}
"ttnn.to_device"(%a, %d) <{{memory_config = #ttnn.memory_config<#dram>}}> : ({T}, {D}) -> {T}
"ttnn.matmul"(%a, %w, %e3) : ({T}, tensor<6x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
"ttnn.all_gather"(%a, %d) <{{dim = 1 : si32}}> : ({T}, {D}) -> tensor<4x12xf32>
"ttnn.all_reduce"(%a, %d) <{{reduce_type = #tt.reduce_type<sum>}}> : ({T}, {D}) -> {T}
"ttnn.reduce_scatter"(%a, %d) <{{scatter_split_dim = 1 : si32}}> : ({T}, {D}) -> tensor<4x3xf32>
"ttnn.mesh_shard"(%a, %d) <{{shard_shape = array<i64: 2, 1>, shard_dims = array<i64: -1, 0>, \
shard_type = #tt.shard_type<devices>, shard_direction = #tt.shard_direction<full_to_shard>}}> \
: ({T}, {D}) -> tensor<2x6xf32>
"ttnn.model_preprocessing"(%a) : ({T}) -> {T}
""".strip().splitlines()
"""One op to a line, and today's ops in the same order."""
TODAY = (
    "divide clamp_scalar slice_static permute cumsum typecast full full full - matmul all_gather "
    "all_reduce reduce_scatter mesh_shard -"
).split()


@pytest.mark.parametrize(("op", "today"), list(zip(OPS, TODAY, strict=True)))
def test_names_of_other_years(op: str, today: str) -> None:
    result = op.rpartition("-> ")[2]
    text = (
        "#dram = #ttnn.buffer_type<dram>\n"
        f"func.func @f(%a: {T}, %w: tensor<6x2xf32>) -> {result} {{\n"
        f'  %d = "ttnn.get_device"() <{{mesh_shape = #ttnn<mesh_shape 1x2>}}> : () -> {D}\n'
        f'  %e = "ttnn.empty"(%d) <{{shape = #ttnn.shape<4x6>}}> : ({D}) -> {T}\n'
        f'  %e2 = "ttnn.empty"(%d) <{{shape = #ttnn.shape<2x3>}}> : ({D}) -> tensor<2x3xf32>\n'
        f'  %e3 = "ttnn.alloc"() <{{address = 0 : i64, size = 32 : i64}}> : () -> tensor<4x2xf32>\n'
        f"  %0 = {op}\n  return %0 : {result}\n}}\n"
    )
    module = parse_module(Source("in.mlir", text), Diagnostics())
    module.verify()
    assert names(module) == ([] if today == "-" else [f"ttnn.{today}"])


def test_a_value_that_full_makes_stays_where_it_is_an_operand() -> None:
    text = (
        f"func.func @f(%a: {T}, %d: {D}) -> {T} {{\n"
        f'  %0 = "ttnn.full"(%d) <{{fillValue = 3.0 : f32}}> : ({D}) -> {T}\n'
        f'  %1 = "ttnn.add"(%a, %0) : ({T}, {T}) -> {T}\n'
        f"  return %1 : {T}\n}}\n"
    )
    module = parse(text)
    assert names(module) == ["ttnn.full", "ttnn.add"]
    (function,) = module.ops
    assert len(function.function_type.inputs.data) == 1


@pytest.mark.parametrize("name", ["empty", "zeros", "ones"])
@pytest.mark.parametrize(
    ("operands", "types", "message"),
    [("%a", T, "takes no tensors, found 1"), ("%d, %d", f"{D}, {D}", "takes 1 device, found 2")],
)
def test_operands_of_what_makes_a_tensor_from_nothing(
    name: str, operands: str, types: str, message: str
) -> None:
    text = (
        f"func.func @f(%a: {T}, %d: {D}) -> {T} {{\n"
        f'  %0 = "ttnn.{name}"({operands}) <{{shape = #ttnn.shape<4x6>}}> : ({types}) -> {T}\n'
        f"  return %0 : {T}\n}}\n"
    )
    with pytest.raises(CompileError, match=f"'ttnn.{name}' {message}"):
        parse(text)


@pytest.mark.parametrize(
    ("op", "message"),
    [
        (f'"ttnn.exp"(%a, %d) : ({T}, {D}) -> {T}', "'ttnn.exp' takes no device, found 1"),
        (f'"ttnn.add"(%d, %a, %a) : ({D}, {T}, {T}) -> {T}', "'ttnn.add' takes no device"),
        (f'"ttnn.add"(%a, %d) : ({T}, {D}) -> {T}', "'ttnn.add' takes no device, found 1"),
        (f'"ttnn.to_device"(%d, %a) : ({D}, {T}) -> {T}', "takes a tensor before its device"),
        (f'"ttnn.to_device"(%a, %d, %d) : ({T}, {D}, {D}) -> {T}', "takes 1 device, found 2"),
    ],
)
def test_a_device_goes_where_a_call_takes_one(op: str, message: str) -> None:
    text = f"func.func @f(%a: {T}, %d: {D}) -> {T} {{\n  %0 = {op}\n  return %0 : {T}\n}}\n"
    with pytest.raises(CompileError, match=message):
        parse(text)


def test_hooks_have_no_effect_and_say_so() -> None:
    diagnostics = Diagnostics()
    text = (
        f"func.func @f(%a: {T}) -> {T} {{\n"
        '  "ttnn.register_pre_operation_hook"() : () -> ()\n'
        f'  %1 = "ttnn.relu"(%a) : ({T}) -> {T}\n'
        f"  return %1 : {T}\n}}\n"
    )
    module = parse_module(Source("in.mlir", text), diagnostics)
    assert names(module) == ["ttnn.relu"]
    (warning,) = diagnostics.diagnostics
    assert "no effect" in warning.message
