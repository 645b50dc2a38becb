"""Const-eval of values that depend on weights only, and deallocation of tensors."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp, ReturnOp

PARAMETER = "{ttcore.argument_type = #ttcore.argument_type<parameter>}"


def functions(module):
    return {op.sym_name.data: op for op in module.walk() if isinstance(op, FuncOp)}


def names(function):
    return [op.name.removeprefix("ttnn.") for op in function.body.block.ops]


def test_what_depends_on_weights_only_runs_once(lowered):
    module = lowered(f"""
func.func @f(%x: tensor<32x64xf32>, %w: tensor<32x64xf32> {PARAMETER}) -> tensor<32x64xf32> {{
  %0 = "ttir.exp"(%w) : (tensor<32x64xf32>) -> tensor<32x64xf32>
  %1 = "ttir.sin"(%0) : (tensor<32x64xf32>) -> tensor<32x64xf32>
  %2 = "ttir.add"(%x, %1) : (tensor<32x64xf32>, tensor<32x64xf32>) -> tensor<32x64xf32>
  return %2 : tensor<32x64xf32>
}}""")
    made = functions(module)
    assert names(made["f_const_eval"]) == ["exp", "sin", "deallocate", "func.return"]
    assert names(made["f"]) == ["ttcore.load_cached", "add", "func.return"]


def test_a_weight_that_is_overwritten_is_no_constant(lowered):
    module = lowered(f"""
func.func @f(%cache: tensor<2x4x64x32xbf16> {PARAMETER}, %x: tensor<1x4x32x32xbf16>)
    -> (tensor<2x4x64x32xbf16>) {{
  "ttir.fill_cache"(%cache, %x) <{{batch_offset = 1 : i32}}>
    : (tensor<2x4x64x32xbf16>, tensor<1x4x32x32xbf16>) -> ()
  %0 = "ttir.exp"(%cache) : (tensor<2x4x64x32xbf16>) -> tensor<2x4x64x32xbf16>
  return %0 : tensor<2x4x64x32xbf16>
}}""")
    assert list(functions(module)) == ["f"]


def test_random_numbers_are_drawn_in_every_call(lowered):
    module = lowered("""
func.func @f() -> tensor<32x32xbf16> {
  %0 = "ttir.rand"() <{dtype = bf16, high = 1.0 : f32, low = 0.0 : f32, seed = 7 : ui32,
    size = [32 : i32, 32 : i32]}> : () -> tensor<32x32xbf16>
  return %0 : tensor<32x32xbf16>
}""")
    assert "rand" in names(functions(module)["f"])


def test_a_tensor_is_given_back_after_its_last_use(lowered):
    module = lowered("""
func.func @f(%x: tensor<32x64xf32>) -> tensor<32x64xf32> {
  %0 = "ttir.exp"(%x) : (tensor<32x64xf32>) -> tensor<32x64xf32>
  %1 = "ttir.sin"(%0) : (tensor<32x64xf32>) -> tensor<32x64xf32>
  %2 = "ttir.add"(%0, %1) : (tensor<32x64xf32>, tensor<32x64xf32>) -> tensor<32x64xf32>
  return %2 : tensor<32x64xf32>
}""")
    ops = list(functions(module)["f"].body.block.ops)
    assert [op.name.removeprefix("ttnn.") for op in ops] == [
        "exp",
        "sin",
        "add",
        "deallocate",
        "deallocate",
        "func.return",
    ]
    assert {op.operands[0] for op in ops[3:5]} == {ops[0].results[0], ops[1].results[0]}


def test_a_view_keeps_its_source_alive(lowered):
    module = lowered("""
func.func @f(%x: tensor<32x64xf32>) -> (tensor<64x32xf32>, tensor<64x32xf32>) {
  %0 = "ttir.exp"(%x) : (tensor<32x64xf32>) -> tensor<32x64xf32>
  %1 = "ttir.reshape"(%0) <{shape = [64 : i32, 32 : i32]}>
    : (tensor<32x64xf32>) -> tensor<64x32xf32>
  %2 = "ttir.sin"(%1) : (tensor<64x32xf32>) -> tensor<64x32xf32>
  return %1, %2 : tensor<64x32xf32>, tensor<64x32xf32>
}""")
    assert "deallocate" not in names(functions(module)["f"])


def test_arguments_and_results_are_never_given_back(lowered):
    module = lowered("""
func.func @f(%x: tensor<32x64xf32>) -> (tensor<32x64xf32>, tensor<32x64xf32>) {
  %0 = "ttir.exp"(%x) : (tensor<32x64xf32>) -> tensor<32x64xf32>
  %1 = "ttir.sin"(%0) : (tensor<32x64xf32>) -> tensor<32x64xf32>
  return %0, %1 : tensor<32x64xf32>, tensor<32x64xf32>
}""")
    function = functions(module)["f"]
    assert "deallocate" not in names(function)
    assert isinstance(function.body.block.last_op, ReturnOp)
