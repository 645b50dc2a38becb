# ruff: noqa: E501 -- layouts as tools print them
"""Modules of TTNN as other tools print them become programs with the layouts that they give."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp

from ttcodegen.cli.ttcodegen import main
from ttcodegen.compilation import CompiledModule, CompileOptions, compile_module
from ttcodegen.flatbuffer.reader import read_ttnn
from ttcodegen.foundation.diagnostics import CompileError, Diagnostics, Source
from ttcodegen.frontends.ttnn import normalize_ttnn
from ttcodegen.numerics.drawing import draw_inputs
from ttcodegen.numerics.interpreter import Interpreter
from ttcodegen.parsing import parse_module

LAYOUTS = """
#dram = #ttnn.buffer_type<dram>
#l1 = #ttnn.buffer_type<l1>
#tiles = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x8x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#share = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <8x8>, memref<4x4x!ttcore.tile<32x32, f32>, #l1>, <interleaved>>
#blocks = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x8>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <block_sharded>, core_ranges = #ttnn.core_range_set<[#ttnn.core_range<(0, 0), (7, 0)>]>>
"""
SHARDED = (
    LAYOUTS
    + """
func.func @f(%x: tensor<32x256xf32, #tiles>, %device: !ttnn.device) -> tensor<32x256xf32, #tiles> {
  %d = "ttnn.get_device"() <{mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
  %one = "ttnn.ones"(%d) <{shape = #ttnn.shape<32x256>, layout = #ttnn.layout<tile>}> : (!ttnn.device) -> tensor<32x256xf32, #tiles>
  %0 = "ttnn.to_memory_config"(%x) : (tensor<32x256xf32, #tiles>) -> tensor<32x256xf32, #blocks>
  %1 = "ttnn.relu"(%0) : (tensor<32x256xf32, #blocks>) -> tensor<32x256xf32, #blocks>
  "ttnn.deallocate"(%0) <{force = false}> : (tensor<32x256xf32, #blocks>) -> ()
  %2 = "ttnn.to_tensor_spec"(%1) : (tensor<32x256xf32, #blocks>) -> tensor<32x256xf32, #share>
  %3 = "ttnn.add"(%2, %one) : (tensor<32x256xf32, #share>, tensor<32x256xf32, #tiles>) -> tensor<32x256xf32, #tiles>
  return %3 : tensor<32x256xf32, #tiles>
}
"""
)


def compiled(
    text: str, target: str = "ttnn", diagnostics: Diagnostics | None = None
) -> CompiledModule:
    return compile_module(
        Source("in.mlir", text), CompileOptions("m", target), diagnostics=diagnostics
    )


def test_layouts_are_kept() -> None:
    files = compiled(SHARDED).files
    code = "\n".join(files.values())
    assert "ttnn::TensorMemoryLayout::BLOCK_SHARDED" in code
    assert "ttnn::CoreRange({0, 0}, {7, 0})" in code
    assert "ttnn::L1_MEMORY_CONFIG" in code


def test_handles_of_the_device_are_no_inputs() -> None:
    (function,) = compiled(SHARDED).description.functions
    assert [tensor.shape for tensor in function.inputs] == [(32, 256)]


LOAD = '"ttcore.load_cached"(%w) <{callee = @f_const_eval_0}> :'
LOAD_AS_PRINTED = "ttcore.load_cached(@f_const_eval_0, [%w]) :"


@pytest.mark.parametrize("load", [LOAD, LOAD_AS_PRINTED])
def test_cached_functions_run_once(load: str) -> None:
    module = (
        LAYOUTS
        + """
func.func @f_const_eval_0(%w: tensor<32x256xf32, #tiles>) -> tensor<32x256xf32, #tiles> attributes {const_eval} {
  %0 = "ttnn.exp"(%w) : (tensor<32x256xf32, #tiles>) -> tensor<32x256xf32, #tiles>
  return %0 : tensor<32x256xf32, #tiles>
}
func.func @f(%x: tensor<32x256xf32, #tiles> {ttcore.argument_type = #ttcore.argument_type<input>}, %w: tensor<32x256xf32, #tiles> {ttcore.argument_type = #ttcore.argument_type<parameter>}) -> tensor<32x256xf32, #tiles> {
  %0 = "ttcore.load_cached"(%w) <{callee = @f_const_eval_0}> : (tensor<32x256xf32, #tiles>) -> tensor<32x256xf32, #tiles>
  %1 = "ttnn.multiply"(%x, %0) : (tensor<32x256xf32, #tiles>, tensor<32x256xf32, #tiles>) -> tensor<32x256xf32, #tiles>
  return %1 : tensor<32x256xf32, #tiles>
}
""".replace(LOAD, load)
    )
    (function,) = compiled(module).description.functions
    assert function.name == "f"
    assert "prepare_f" in "\n".join(compiled(module).files.values())


def test_right_factors_in_shards_are_interleaved_for_the_library_to_choose_a_program() -> None:
    module = (
        LAYOUTS
        + """
#shard = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x8>, memref<8x1x!ttcore.tile<32x32, f32>, #l1>, <width_sharded>, core_ranges = #ttnn.core_range_set<[#ttnn.core_range<(0, 0), (7, 0)>]>>
func.func @f(%a: tensor<32x256xf32, #blocks>, %b: tensor<256x256xf32, #shard>) -> tensor<32x256xf32, #tiles> {
  %0 = "ttnn.matmul"(%a, %b) : (tensor<32x256xf32, #blocks>, tensor<256x256xf32, #shard>) -> tensor<32x256xf32, #tiles>
  return %0 : tensor<32x256xf32, #tiles>
}
"""
    )
    (program,) = (p for p in read_ttnn(compiled(module).flatbuffer).programs if p.kind == "entry")
    (product,) = (op for op in program.operations if op.name == "ttnn.matmul")
    left, right = (program.tensors[operand].type.placement for operand in product.operands)
    assert left.memory_layout == "block_sharded"
    assert (right.buffer_type, right.memory_layout) == ("dram", "interleaved")


PRODUCT = LAYOUTS + (
    "func.func @f(%a: tensor<32x256xf32, #tiles>, %b: tensor<256x32xf32, #tiles>) -> "
    'tensor<32x32xf32, #tiles> {\n  %0 = "ttnn.matmul"(%a, %b) <{matmul_program_config = '
    "#ttnn.matmul_multi_core_reuse_multi_cast_1d_program_config<compute_with_storage_grid_size = "
    "#ttnn.core_coord<8, 2>, in0_block_w = 1, out_subblock_h = 1, out_subblock_w = 1, "
    "per_core_m = 1, per_core_n = 1, fused_activation = #ttnn.unary_with_param<op_type = relu>, "
    "mcast_in0 = true, hop_cores = #ttnn.core_range_set<>>, transpose_a = false, "
    "transpose_b = false}> : (tensor<32x256xf32, #tiles>, tensor<256x32xf32, #tiles>) -> "
    "tensor<32x32xf32, #tiles>\n  return %0 : tensor<32x32xf32, #tiles>\n}\n"
)


def test_program_configurations_are_kept() -> None:
    tuning = compiled(PRODUCT).files["src/tuning.hpp"]
    assert "MatmulMultiCoreReuseMultiCast1DProgramConfig" in tuning
    assert ".compute_with_storage_grid_size = {8, 2}" in tuning
    assert ".out_block_h = 1" in tuning  # The whole of a core, where the text names no blocks.
    assert "UnaryOpType::RELU" in tuning


@pytest.mark.parametrize(
    ("given", "changed", "message"),
    [
        ("out_subblock_w = 1", "out_subblock_w = 3", "subblocks of 1x3 tiles do not divide 1x1"),
        ("out_subblock_h = 1", "out_subblock_h = 0", "'out_subblock_h' is 0"),
        ("in0_block_w = 1, ", "", "lacks one of .*in0_block_w"),
        ("op_type = relu", "op_type = cosh", "there is no activation 'cosh'"),
        ("mcast_in0 = true", "mcast = true", "has no other 'mcast'"),
        ("core_range_set<>", "core_range_set<[#ttnn.core_range<(0, 0), (1, 1)>]>", "hopped over"),
    ],
)
def test_program_configurations_that_no_program_can_have(
    given: str, changed: str, message: str
) -> None:
    assert given in PRODUCT
    with pytest.raises(CompileError, match=message):
        compiled(PRODUCT.replace(given, changed))


def test_what_is_left_to_the_library_is_reported() -> None:
    module = PRODUCT.replace("transpose_a =", "conv2d_slice_config = 1 : i32, transpose_a =")
    diagnostics = Diagnostics()
    compiled(module, diagnostics=diagnostics)
    reported = [str(diagnostic) for diagnostic in diagnostics.diagnostics]
    assert any("how a convolution is sliced is left to the library" in t for t in reported)


def test_given_compute_configurations_are_kept() -> None:
    module = LAYOUTS + (
        "func.func @f(%a: tensor<32x256xf32, #tiles>) -> tensor<32x256xf32, #tiles> {\n"
        '  %0 = "ttnn.softmax"(%a) <{dimension = 1 : si32 CONFIG}> : '
        "(tensor<32x256xf32, #tiles>) -> tensor<32x256xf32, #tiles>\n"
        "  return %0 : tensor<32x256xf32, #tiles>\n}\n"
    )
    config = ", compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi2>"
    given = compiled(module.replace("CONFIG", config)).files["src/tuning.hpp"]
    assert "MathFidelity::HiFi2" in given
    exact = compiled(module.replace("CONFIG", "")).files["src/tuning.hpp"]
    assert "MathFidelity::HiFi3" in exact


PAGED = """
func.func @f(%q: tensor<1x1x4x32xbf16>, %k: tensor<8x4x32x32xbf16>, %v: tensor<8x4x32x32xbf16>, %pages: tensor<1x4xi32>, %at: tensor<1xi32>) -> tensor<1x1x4x32xbf16> {
  %0 = "ttnn.paged_scaled_dot_product_attention_decode"(%q, %k, %v, %pages, %at) <{is_causal = true, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 1, 0>}> : (tensor<1x1x4x32xbf16>, tensor<8x4x32x32xbf16>, tensor<8x4x32x32xbf16>, tensor<1x4xi32>, tensor<1xi32>) -> tensor<1x1x4x32xbf16>
  return %0 : tensor<1x1x4x32xbf16>
}
"""


def test_inputs_are_drawn_by_what_the_ops_mean_that_calls_stand_for() -> None:
    source = Source("m.mlir", PAGED)
    module = parse_module(source)
    normalize_ttnn(module, Diagnostics())
    (function,) = [op for op in module.ops if isinstance(op, FuncOp)]
    drawn = list(draw_inputs(module, function, seed=0).values())
    assert 0 <= drawn[3].min() <= drawn[3].max() < 8
    assert 0 <= drawn[4].min() <= drawn[4].max() < 128


PADDED = """
func.func @f(%x: tensor<1x30x30xf32>) -> tensor<1x32x32xf32> {
  %0 = "ttnn.pad"(%x) <{padding = array<i32: 0, 0, 1, 1, 1, 1>, use_multicore = false, value = 0.0 : f32}> : (tensor<1x30x30xf32>) -> tensor<1x32x32xf32>
  return %0 : tensor<1x32x32xf32>
}
"""


def test_what_is_padded_in_front_is_padded_in_rows() -> None:
    written = "".join(compiled(PADDED).files.values())
    assert "ttnn::to_layout" in written
    assert "ROW_MAJOR" in written


UPSAMPLED = """
func.func @f(%x: tensor<1x8x8x32xbf16>) -> tensor<1x16x16x32xbf16> {
  %0 = "ttnn.upsample"(%x) <{mode = "bilinear", scale_factor = 2 : si32}> : (tensor<1x8x8x32xbf16>) -> tensor<1x16x16x32xbf16>
  return %0 : tensor<1x16x16x32xbf16>
}
"""


def test_upsampling_has_one_factor_or_two() -> None:
    assert "bilinear" in "".join(compiled(UPSAMPLED).files.values())
    nearest = UPSAMPLED.replace("bilinear", "nearest").replace("2 : si32", "array<i32: 2, 2>")
    assert "bilinear" not in "".join(compiled(nearest).files.values())
    code = "".join(compiled(UPSAMPLED.replace("x32xbf16", "x30xbf16")).files.values())
    assert "bilinear" in code
    assert "ttnn::pad" in code  # The library takes channels by 32.


BATCHES = """
func.func @f(%a: tensor<1x32x64xbf16>, %b: tensor<4x64x32xbf16>) -> tensor<4x32x32xbf16> {
  %0 = "ttnn.matmul"(%a, %b) : (tensor<1x32x64xbf16>, tensor<4x64x32xbf16>) -> tensor<4x32x32xbf16>
  return %0 : tensor<4x32x32xbf16>
}
"""


def computed(text: str, *arrays: np.ndarray) -> np.ndarray:
    """Output of a module with one function and one result, run from its flatbuffer."""
    (found,) = Interpreter(read_ttnn(compiled(text).flatbuffer)).run("f", list(arrays))
    return found


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def test_batches_that_the_library_does_not_multiply_are_repeated() -> None:
    text = BATCHES.replace("bf16", "f32")
    assert "ttnn::repeat" in "".join(compiled(text).files.values())
    a, b = drawn(1, 32, 64), drawn(4, 64, 32)
    np.testing.assert_allclose(computed(text, a, b), a @ b, rtol=0.02, atol=0.05)
    single = BATCHES.replace("tensor<4x64x32xbf16>", "tensor<64x32xbf16>")
    assert "repeat" not in "".join(compiled(single.replace("1x32x64", "4x32x64")).files.values())


LINEAR = """
func.func @f(%a: tensor<A>, %b: tensor<B>, %c: tensor<C>) -> tensor<R> {
  %0 = "ttnn.linear"(%a, %b, %c) <{MORE}> : (tensor<A>, tensor<B>, tensor<C>) -> tensor<R>
  return %0 : tensor<R>
}
"""


@pytest.mark.parametrize(
    ("a", "b", "c", "result", "taken"),
    [
        ((32, 64), (64, 32), (1, 32), (32, 32), True),
        ((2, 33, 64), (2, 64, 32), (2, 33, 32), (2, 33, 32), False),
        ((3, 33, 64), (3, 64, 32), (5, 3, 33, 32), (5, 3, 33, 32), False),
        ((2, 33, 64), (64, 32), (2, 1, 1), (2, 33, 32), False),
        ((32, 64), (64, 32), (1, 32, 32), (32, 32), False),
    ],
)
@pytest.mark.parametrize("activation", ["", "relu", "tanh"])
def test_a_bias_that_the_library_does_not_add_is_added(
    a: tuple[int, ...],
    b: tuple[int, ...],
    c: tuple[int, ...],
    result: tuple[int, ...],
    taken: bool,
    activation: str,
) -> None:
    text = LINEAR.replace("MORE", f'activation = "{activation}"' if activation else "")
    for name, shape in (("A", a), ("B", b), ("C", c), ("R", result)):
        text = text.replace(f"tensor<{name}>", f"tensor<{'x'.join(map(str, shape))}xf32>")
    code = "".join(compiled(text).files.values())
    assert ("ttnn::linear(" in code) == taken
    assert ("ttnn::tanh(" in code) == (activation == "tanh")
    x, y, z = drawn(*a), drawn(*b), drawn(*c)
    wanted = (x @ y + z).reshape(result)
    wanted = {"": wanted, "relu": np.maximum(wanted, 0), "tanh": np.tanh(wanted)}[activation]
    np.testing.assert_allclose(computed(text, x, y, z), wanted, rtol=0.02, atol=0.1)


def test_activations_that_nothing_is_are_refused() -> None:
    text = LINEAR.replace("MORE", 'activation = "tanhh"').replace("tensor<B>", "tensor<64x32xf32>")
    text = text.replace("tensor<A>", "tensor<32x64xf32>").replace("tensor<C>", "tensor<1x32xf32>")
    with pytest.raises(CompileError, match="there is no activation 'tanhh' that it applies"):
        compiled(text.replace("tensor<R>", "tensor<32x32xf32>"))


def test_configurations_of_forms_that_change_are_left_out() -> None:
    text = PRODUCT.replace("%b: tensor<256x32xf32, #tiles>", "%b: tensor<3x256x32xf32>")
    text = text.replace("tensor<256x32xf32, #tiles>)", "tensor<3x256x32xf32>)")
    text = text.replace("tensor<32x32xf32, #tiles>", "tensor<3x32x32xf32>")
    diagnostics = Diagnostics()
    files = compiled(text, diagnostics=diagnostics).files
    assert ".compute_with_storage_grid_size" not in files["src/tuning.hpp"]
    reported = [str(diagnostic) for diagnostic in diagnostics.diagnostics]
    assert any(
        "does not take this 'ttnn.matmul': its configuration is left out" in t for t in reported
    )


def test_operations_of_tt_lang_need_their_program() -> None:
    tensor = "tensor<32x256xf32, #tiles>"
    module = LAYOUTS + (
        f"func.func @f(%a: {tensor}, %b: {tensor}) -> {tensor} {{\n"
        '  %0 = "ttnn.tt_lang_op"(%a, %b) <{kernel_id = "scaled::v1", version_tag = "1.0", '
        'arg_roles = "in,out", shard_spec = "", grid = "", num_outs = 1 : si32}> : '
        f"({tensor}, {tensor}) -> {tensor}\n  return %0 : {tensor}\n}}\n"
    )
    with pytest.raises(CompileError, match="no program is given that has the operation") as caught:
        compiled(module)
    assert caught.value.diagnostics[0].place is not None


def test_a_result_in_another_form_lies_where_the_call_says() -> None:
    module = (
        LAYOUTS
        + """
#one = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x8x!ttcore.tile<32x32, f32>, #l1>, <interleaved>>
func.func @f(%x: tensor<256xf32>, %i: tensor<7xui32>) -> tensor<7xf32, #one> {
  %0 = "ttnn.gather"(%x, %i) <{dim = -1 : si32}> : (tensor<256xf32>, tensor<7xui32>) -> tensor<7xf32, #one>
  return %0 : tensor<7xf32, #one>
}
"""
    )
    assert "ttnn::L1_MEMORY_CONFIG" in "".join(compiled(module).files.values())
    x, i = drawn(256), np.array([3, 0, 255, 17, 17, 1, 200], np.uint32)
    assert np.array_equal(computed(module, x, i), x[i])


def test_a_convolution_gets_its_cores() -> None:
    config = (
        "conv2d_config = #ttnn.conv2d_config<shard_layout = height_sharded, core_grid = "
        "#ttnn.core_range_set<[#ttnn.core_range<(0,0), (7,3)>]>>"
    )
    sizes = "in_channels = 32 : i32, out_channels = 32 : i32, batch_size = 1 : i32, "
    sizes += "input_height = 8 : i32, input_width = 8 : i32, kernel_size = array<i32: 3, 3>, "
    sizes += "stride = array<i32: 1, 1>, padding = array<i32: 1, 1>, dilation = array<i32: 1, 1>, "
    module = f"""
func.func @f(%x: tensor<1x1x64x32xbf16>, %w: tensor<32x32x3x3xbf16>) -> tensor<1x1x64x32xbf16> {{
  %0 = "ttnn.conv2d"(%x, %w) <{{{sizes}groups = 1 : i32, {config}}}> : (tensor<1x1x64x32xbf16>, tensor<32x32x3x3xbf16>) -> tensor<1x1x64x32xbf16>
  return %0 : tensor<1x1x64x32xbf16>
}}
"""
    tuning = compiled(module).files["src/tuning.hpp"]
    assert ".core_grid = ttnn::CoreRangeSet(ttnn::CoreRange({0, 0}, {7, 3}))" in tuning
    for wrong, message in (
        ("shard_layout = heigth_sharded", "'shard_layout' is heigth_sharded, not one of"),
        ("shard_layout = height_sharded, weights_dtype = bf17", "'weights_dtype' is bf17"),
        ("shard_layout = height_sharded, output_layout = bf16", "'output_layout' is bf16"),
        ("shard_layout = height_sharded, act_block_w_div = -1", "'act_block_w_div' is -1"),
    ):
        with pytest.raises(CompileError, match=message):
            compiled(module.replace("shard_layout = height_sharded", wrong))
    none = module.replace("<[#ttnn.core_range<(0,0), (7,3)>]>", "<>")
    assert "core_grid" not in compiled(none).files["src/tuning.hpp"]
    with pytest.raises(CompileError, match="expected a set of cores"):
        compiled(module.replace("(0,0), (7,3)", "(0,0)"))


def test_arguments_arrive_whole_and_are_divided() -> None:
    """Callers, the check among them, give tensors that no core has a part of."""
    text = SHARDED.replace("%x: tensor<32x256xf32, #tiles>, ", "%x: tensor<32x256xf32, #blocks>, ")
    text = text.replace(
        "(%x) : (tensor<32x256xf32, #tiles>)", "(%x) : (tensor<32x256xf32, #blocks>)"
    )
    made = compiled(text)
    (function,) = made.description.functions
    assert [tensor.buffer_type for tensor in function.inputs] == ["dram"]
    assert "ttnn::to_memory_config(inputs.x, " in made.files["src/m.cpp"]
    (found,) = Interpreter(read_ttnn(made.flatbuffer)).run("f", [drawn(32, 256)])
    assert np.array_equal(found, np.maximum(drawn(32, 256), 0) + 1)


CACHE = """
func.func @f(%cache: tensor<1x8x64x32xbf16, #kept>, %rows: tensor<1x8x32x32xbf16>) -> tensor<1x8x64x32xbf16, #kept> {
  "ttnn.fill_cache"(%cache, %rows) <{batch_offset = 0 : i32}> : (tensor<1x8x64x32xbf16, #kept>, tensor<1x8x32x32xbf16>) -> ()
  return %cache : tensor<1x8x64x32xbf16, #kept>
}
"""


def test_caches_arrive_as_they_are_kept() -> None:
    kept = (
        "#kept = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 512 + d1 * 64 + d2, d3), <8x1>, "
        "memref<2x1x!ttcore.tile<32x32, bf16>, #l1>, <height_sharded>, core_ranges = "
        "#ttnn.core_range_set<[#ttnn.core_range<(0, 0), (7, 0)>]>>\n"
    )
    code = compiled(LAYOUTS + kept + CACHE).files["src/m.cpp"]
    assert "to_memory_config(inputs.cache" not in code


def test_functions_that_are_half_lowered_are_refused() -> None:
    module = """
func.func @f(%a: tensor<32x32xbf16>) -> tensor<32x32xbf16> {
  %0 = "ttir.exp"(%a) : (tensor<32x32xbf16>) -> tensor<32x32xbf16>
  %1 = "ttnn.relu"(%0) : (tensor<32x32xbf16>) -> tensor<32x32xbf16>
  return %1 : tensor<32x32xbf16>
}
"""
    with pytest.raises(CompileError, match=r"'ttir\.exp' is an op of TTIR in a function that"):
        compiled(module)


def test_other_targets_are_refused() -> None:
    with pytest.raises(CompileError, match="there is no way from it to ttmetal"):
        compiled(SHARDED, "ttmetal")


@pytest.mark.slow
def test_all_meanings_agree(tmp_path: Path) -> None:
    source = tmp_path / "sharded.mlir"
    source.write_text(SHARDED)
    assert main([str(source), "-o", str(tmp_path / "out"), "--check"]) == 0


def test_masks_of_attention_to_pages_fit_the_keys() -> None:
    attention = """
func.func @f(%q: tensor<1x1x4x64xbf16>, %k: tensor<8x4x32x64xbf16>, %v: tensor<8x4x32x64xbf16>, %t: tensor<1x8xi32>, %m: tensor<1x1x4x256xbf16>, %p: tensor<1xi32>) -> tensor<1x1x4x64xbf16> {
  %0 = "ttnn.paged_scaled_dot_product_attention_decode"(%q, %k, %v, %t, %m, %p) <{is_causal = false, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0>}> : (tensor<1x1x4x64xbf16>, tensor<8x4x32x64xbf16>, tensor<8x4x32x64xbf16>, tensor<1x8xi32>, tensor<1x1x4x256xbf16>, tensor<1xi32>) -> tensor<1x1x4x64xbf16>
  return %0 : tensor<1x1x4x64xbf16>
}
"""
    assert "ttnn::add" in "".join(compiled(attention).files.values())
    with pytest.raises(CompileError, match="expected a mask that broadcasts to"):
        compiled(attention.replace("4x256xbf16", "4x128xbf16"))
    masked_by_positions = (
        attention.replace("%t, %m, %p) <", "%t, %p) <")
        .replace("is_causal = false", "is_causal = true")
        .replace("1, 1, 1, 1, 1, 1, 0", "1, 1, 1, 1, 0, 1, 0")
        .replace(
            "tensor<1x8xi32>, tensor<1x1x4x256xbf16>, tensor<1xi32>)",
            "tensor<1x8xi32>, tensor<1xi32>)",
        )
    )
    compiled(masked_by_positions)


ON_A_MESH = """
module attributes {ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x4>]>} {
func.func @f(%x: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %0 = "ttnn.distribute_tensor"(%x) <{MAPPED}> : (tensor<32x32xf32>) -> tensor<32x8xf32>
  %1 = "ttnn.relu"(%0) : (tensor<32x8xf32>) -> tensor<32x8xf32>
  %2 = "ttnn.aggregate_tensor"(%1) <{COMPOSED}> : (tensor<32x8xf32>) -> tensor<32x32xf32>
  return %2 : tensor<32x32xf32>
}
}
"""
MAPPED = "mapper_config = #ttnn.mesh_mapper_config<placements = [<replicate>, <shard, 1 : i64>]>"
COMPOSED = "composer_config = #ttnn.mesh_composer_config<dims = [0 : i64, 1 : i64]>"


def on_a_mesh(mapped: str = MAPPED, composed: str = COMPOSED) -> str:
    return ON_A_MESH.replace("MAPPED", mapped).replace("COMPOSED", composed)


@pytest.mark.parametrize(
    ("mapped", "composed"),
    [
        (MAPPED, COMPOSED),
        (MAPPED.replace("1 :", "-1 :"), COMPOSED.replace("1 :", "-1 :")),
        ("mapper_config = #ttnn.mesh_mapper_config<placements = [<shard, 1 : i64>]>",
         "composer_config = #ttnn.mesh_composer_config<dims = [1 : i64]>"),
        ("placements = array<i32: -1, 1>, mesh_shape = array<i32: 1, 4>",) * 2,
    ],
)  # fmt: skip
def test_tensors_are_divided_as_their_calls_say(mapped: str, composed: str) -> None:
    code = "\n".join(compiled(on_a_mesh(mapped, composed)).files.values())
    assert "shard_tensor_to_mesh_mapper(device, /*dim=*/1, /*cluster_axis=*/1)" in code
    assert ".dims = {0, 1}" in code


@pytest.mark.parametrize(
    ("mapped", "message"),
    [
        (MAPPED.replace("[", "[<replicate>, "), "divides along 3 axes"),
        (MAPPED.replace("1 :", "2 :"), "divides dimension 2 of a tensor of rank 2"),
    ],
)
def test_tensors_are_divided_along_axes_that_there_are(mapped: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        compiled(on_a_mesh(mapped))


SENT = """
module attributes {ttcore.meshes = #ttcore.meshes<[<"mesh" = 2x2>]>} {
func.func @f(%x: tensor<32x64xf32>) -> tensor<32x64xf32> {
  %d = "ttnn.get_device"() <{mesh_shape = #ttnn<mesh_shape 2x2>}> : () -> !ttnn.device
  %s = "ttnn.create_global_semaphore"(%d) <{initial_value = 0 : ui32}> : (!ttnn.device) -> !ttnn.global_semaphore
  %0 = "ttnn.distribute_tensor"(%x) <{mapper_config = #ttnn.mesh_mapper_config<placements = [<shard, 0 : i64>, <shard, 1 : i64>]>}> : (tensor<32x64xf32>) -> tensor<16x32xf32>
  %1 = "ttnn.point_to_point"(%0KEPT) <{send_coord = array<i64: 1, 0>, receive_coord = array<i64: TO>}> : (tensor<16x32xf32>TYPE) -> tensor<16x32xf32>
  "ttnn.reset_global_semaphore"(%s) <{value = 0 : ui32}> : (!ttnn.global_semaphore) -> ()
  %2 = "ttnn.aggregate_tensor"(%1) <{composer_config = #ttnn.mesh_composer_config<dims = [0 : i64, 1 : i64]>}> : (tensor<16x32xf32>) -> tensor<32x64xf32>
  return %2 : tensor<32x64xf32>
}
}
"""


def sent(to: str, kept: bool) -> str:
    text = SENT.replace("TO", to)
    return text.replace("KEPT", ", %0" * kept).replace("TYPE", ", tensor<16x32xf32>" * kept)


@pytest.mark.parametrize("kept", [True, False])
def test_a_chip_sends_to_another_one(kept: bool) -> None:
    x = np.arange(32 * 64, dtype=np.float32).reshape(32, 64)
    binary = read_ttnn(compiled(sent("0, 1", kept)).flatbuffer)
    (found,) = Interpreter(binary).run("f", [x])
    expected = x.copy() if kept else np.zeros_like(x)
    expected[:16, 32:] = x[16:, :32]
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("kept", [True, False])
def test_the_call_of_the_library_sends(kept: bool) -> None:
    code = "\n".join(compiled(sent("0, 0", kept)).files.values())
    value = "shards" if kept else "last_use(shards)"
    assert (
        f"ttnn::point_to_point({value}, /*receiver_coord=*/ttnn::MeshCoordinate(0, 0), "
        "/*sender_coord=*/ttnn::MeshCoordinate(1, 0)"
    ) in code
    # What is sent is read afterwards no more, but it is no place to receive in.
    assert ("ttnn::clone(" in code) == kept
    with pytest.raises(CompileError, match="a chip sends to another one"):
        compiled(sent("1, 0", kept))


def test_a_chip_that_is_not_there_receives_nothing() -> None:
    with pytest.raises(CompileError, match="row and column of a chip of the mesh of 2x2"):
        compiled(sent("0, 2", False))


def test_a_sum_with_semaphores_is_a_sum() -> None:
    text = sent("0, 1", False).replace('"ttnn.point_to_point"(%0)', '"ttnn.all_reduce_async"(%0)')
    text = text.replace(
        "send_coord = array<i64: 1, 0>, receive_coord = array<i64: 0, 1>",
        "reduce_type = #ttcore.reduce_type<sum>, cluster_axis = 1 : ui32",
    )
    code = "\n".join(compiled(text).files.values())
    assert "ttnn::all_reduce(" in code
    assert "semaphore" not in code
