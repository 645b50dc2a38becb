# ruff: noqa: E501 -- MLIR as it is printed
"""Decisions that are given, and those that were taken."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.optimizer.modules import (
    CHAIN,
    CONVOLUTION,
    DECODING,
    INPUT,
    PROJECTIONS,
    WEIGHT,
    attention,
    compiled,
    entry,
    names,
)
from ttcodegen.compilation import CompiledModule
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.foundation.diagnostics import CompileError

NORM = (
    "#ttnn.layernorm_sharded_multicore_program_config<compute_with_storage_grid_size = "
    "#ttnn.core_coord<8, 8>, subblock_w = 1, block_h = 1, block_w = 1, inplace = false>"
)
LOCATED = """
func.func @main(%arg0: tensor<64x128xbf16>, %arg1: tensor<64x128xbf16>) -> tensor<64x128xbf16> {
  %0 = "ttir.add"(%arg0, %arg1) : (tensor<64x128xbf16>, tensor<64x128xbf16>) -> tensor<64x128xbf16> loc("add_1"("model.py":3:1))
  %1 = "ttir.add"(%0, %arg1) : (tensor<64x128xbf16>, tensor<64x128xbf16>) -> tensor<64x128xbf16> loc("add_2")
  return %1 : tensor<64x128xbf16>
}
"""


def given(**entries: dict[str, Any]) -> str:
    """A file with overrides of the function main."""
    return json.dumps({"version": 1, "functions": {"main": entries}})


SPARSE = """
func.func @main(%rows: tensor<2x4x32x64xbf16>, %experts: tensor<1x4x64x96xbf16>,
                %routed: tensor<2x4x1x4xbf16>) -> tensor<2x4x1x4x32x96xbf16> {
  %0 = "ttir.sparse_matmul"(%rows, %experts, %routed)
      <{is_input_a_sparse = false, is_input_b_sparse = true}>
      : (tensor<2x4x32x64xbf16>, tensor<1x4x64x96xbf16>, tensor<2x4x1x4xbf16>)
      -> tensor<2x4x1x4x32x96xbf16>
  return %0 : tensor<2x4x1x4x32x96xbf16>
}
"""


@pytest.mark.parametrize(
    "text",
    [CHAIN, DECODING, attention(256), SPARSE],
    ids=["chain", "decode", "sdpa", "sparse"],
)
def test_what_was_decided_gives_the_same_program(text: str) -> None:
    decided = compiled(text, 2)
    again = compiled(text, 2, decided.decisions)
    assert again.files == decided.files
    assert again.flatbuffer == decided.flatbuffer


def test_the_configuration_of_a_sparse_product_is_kept() -> None:
    decided = json.loads(compiled(SPARSE, 2).decisions)
    product = decided["functions"]["main"]["sparse_matmul"]
    product["program_config"] = re.sub(
        r"in0_block_w = \d+", "in0_block_w = 7", product["program_config"]
    )
    with pytest.raises(CompileError, match="its configuration follows from its shapes"):
        compiled(SPARSE, 2, json.dumps(decided))


def test_an_override_is_obeyed() -> None:
    module = compiled(CHAIN, 2, given(hidden={"memory": "dram", "math_fidelity": "hifi4"}))
    assert json.loads(module.decisions)["functions"]["main"]["hidden"]["memory"] == "dram"
    (hidden, *_) = [op for op in entry(module).operations if op.name == "ttnn.matmul"]
    placement = entry(module).tensors[hidden.results[0]].type.placement
    assert placement.buffer_type == "dram"
    assert "MathFidelity::HiFi4" in module.files["src/tuning.hpp"]


def test_a_program_configuration_can_be_edited() -> None:
    decided = json.loads(compiled(CHAIN, 2).decisions)
    entry_ = decided["functions"]["main"]["hidden"]
    edited = entry_["program_config"].replace("in0_block_w = ", "in0_block_w = 1, x = ")
    edited = edited.replace("in0_block_w = 1, x = ", "in0_block_w = 2 - ").split(" - ")
    config = edited[0] + edited[1].lstrip("0123456789")
    module = compiled(CHAIN, 2, given(hidden={**entry_, "program_config": config}))
    assert ".in0_block_w = 2" in module.files["src/tuning.hpp"]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ("{", "are no JSON"),
        ("{}", '"version": 1'),
        (given(hiden={"memory": "l1"}), "makes nothing called 'hiden'"),
        (given(hidden={"memry": "l1"}), "has a field 'memry'"),
        (given(hidden={"op": "add"}), "is made by 'matmul', not 'add'"),
        (given(hidden={"memory": "l2"}), "'memory': \"l2\""),
        (given(hidden={"grid": [8]}), r"'grid': \[8\]"),
        (given(hidden={"math_fidelity": "hifi9"}), "'math_fidelity': \"hifi9\""),
        (given(hidden={"operands": {"left": {}}}), "names an operand 'left'"),
        (given(hidden={"operands": {"7": {}}}), "has no operand 7"),
        (given(hidden={"operands": {"00": {}}}), "names an operand '00'"),
        (given(hidden={"conv2d_config": {}}), "is no convolution"),
        (given(hidden={"operands": {"0": {"data_type": "f32"}}}), "has a field 'data_type'"),
        (given(hidden={"data_type": "si32"}), r"'hidden' \(matmul\) cannot give si32"),
        (given(squared={"weights": "bfp_bf8"}), "has no weights that could become bfp_bf8"),
        (given(hidden={"weights": "bf16"}), "'weights': \"bf16\""),
        (given(hidden={"fuse": True}), "has nothing fused into it"),
        (given(squared={"program_config": NORM}), "takes no program configuration"),
        (given(hidden={"program_config": NORM}), "the override of 'hidden'"),
        (
            given(hidden={"sharding": "block_sharded", "grid": [9, 8]}),
            r"'grid': \[9, 8\] is more than",
        ),
        (given(sum={"memory": "l1", "layout": "row_major"}), "no 'layout': \"row_major\""),
        ("override-output-layout=hiden=dram", "nothing is called 'hiden'"),
        ("override-output-layout=hidden=dramm", "'dramm' is no part of the layout"),
        ("override-output-layout=hidden=0x8:l1:block_sharded", r"'grid': \[8, 0\]"),
        ("override-output=hidden=dram", "no option 'override-output'"),
        ("override-output-layout", "'override-output-layout' applies to no call"),
        ("insert-memreconfig hidden=0", "'insert-memreconfig' applies to no call"),
        (given(squared={"math_fidelity": "hifi4"}), r"'squared' \(multiply\) takes no fidelity"),
        ("insert-memreconfig=hidden=a", "lists no operands of 'hidden'"),
        ("override-conv2d-config=hidden=dtype", "does not say FIELD#VALUE"),
        (given(hidden={"program_config": "#ttnn.nothing<>"}), "the override of 'hidden'"),
        (json.dumps({"version": 1, "functions": {"other": {}}}), "no function 'other'"),
    ],
)
def test_what_cannot_be_is_refused(overrides: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        compiled(CHAIN, 2, overrides)


def test_a_refusal_says_what_is_legal() -> None:
    with pytest.raises(CompileError) as refused:
        compiled(CHAIN, 2, given(squared={"sharding": "height_sharded", "layout": "row_major"}))
    (reported,) = refused.value.diagnostics
    assert "the shards of an operand" in reported.message
    assert reported.remedy is not None
    assert "the library takes" in reported.remedy
    assert '"height_sharded"' in reported.remedy


def placements(module: CompiledModule, op: str) -> list[TensorPlacement]:
    """The placement of the results of these calls."""
    program = entry(module)
    found = [o for o in program.operations if o.name == f"ttnn.{op}"]
    return [program.tensors[o.results[0]].type.placement for o in found]


def test_a_product_runs_on_the_cores_that_are_named() -> None:
    asked = {"memory": "l1", "sharding": "block_sharded", "grid": [4, 8]}
    (hidden, _) = placements(compiled(CHAIN, 2, given(hidden=asked)), "matmul")
    assert hidden.shards is not None
    assert hidden.shards.shape == (256, 512)
    assert hidden.shards.cores == 32


def test_level_1_shards_what_overrides_name() -> None:
    asked = {"memory": "l1", "sharding": "block_sharded"}
    module = compiled(CHAIN, 1, given(hidden=asked))
    (hidden, product) = placements(module, "matmul")
    assert hidden.memory_layout == "block_sharded"
    assert product.memory_layout == "interleaved"


def test_a_data_type_is_that_of_the_call_only() -> None:
    """A product takes it as a factor; what else uses it is given what it was given before."""
    module = compiled(CHAIN, 2, given(squared={"data_type": "bfp_bf8"}))
    (squared,) = placements(module, "multiply")
    assert squared.data_type.mlir == "bfp_bf8"
    assert "typecast" not in names(entry(module))
    module = compiled(CHAIN, 2, given(hidden={"data_type": "f32"}))
    assert placements(module, "matmul")[0].data_type.mlir == "f32"
    assert placements(module, "multiply")[0].data_type.mlir == "bf16"
    assert outputs_agree(module, compiled(CHAIN, 2))


def outputs_agree(one: CompiledModule, other: CompiledModule) -> bool:
    """Returns whether the outputs of two programs have the same types."""
    types = [
        [(p.tensors[o.tensor].type.shape, p.tensors[o.tensor].type.data_type) for o in p.outputs]
        for p in (entry(one), entry(other))
    ]
    return types[0] == types[1]


@pytest.mark.parametrize("name", ["0", "1"])
def test_an_activation_is_kept_apart(name: str) -> None:
    text = given(**{name: {"fuse": False}}).replace('"0"', '"conv2d"').replace('"1"', '"relu"')
    assert "relu" in names(entry(compiled(CONVOLUTION, 1, text)))


def test_projections_are_kept_apart() -> None:
    made = names(entry(compiled(PROJECTIONS, 1, given(p1={"fuse": False}))))
    assert made.count("linear") == 3


def test_what_is_fused_is_written_and_may_be_asked_for() -> None:
    decided = compiled(CONVOLUTION, 1).decisions
    ((_, call),) = [
        (name, reported)
        for name, reported in json.loads(decided)["functions"]["main"].items()
        if reported["op"] == "conv2d"
    ]
    assert call["fuse"] is True
    assert compiled(CONVOLUTION, 1, decided).files == compiled(CONVOLUTION, 1).files


@pytest.mark.parametrize(
    "text",
    [
        given(sum={"operands": {"1": {"memory": "l1", "sharding": "height_sharded"}}}),
        "insert-memreconfig=sum=1",
    ],
)
def test_an_operand_is_brought_elsewhere_first(text: str) -> None:
    program = entry(compiled(CHAIN, 2, text))
    (added,) = [op for op in program.operations if op.name == "ttnn.add"]
    placement = program.tensors[added.operands[1]].type.placement
    assert placement.buffer_type == "l1" or placement.memory_layout != "interleaved"
    assert "to_memory_config" in names(program)


@pytest.mark.parametrize("level", [1, 2])
def test_an_operand_that_is_taken_twice_is_brought_to_one_place(level: int) -> None:
    place = {"memory": "l1", "sharding": "block_sharded", "grid": [8, 8]}
    module = compiled(CHAIN, level, given(squared={"operands": {"0": place}}))
    program = entry(module)
    (square,) = (op for op in program.operations if op.name == "ttnn.multiply")
    (operand,) = {program.tensors[operand].type.placement for operand in square.operands}
    assert operand.memory_layout == "block_sharded"


def test_the_options_of_the_reference_say_the_same() -> None:
    text = "override-output-layout=hidden=8x4:l1:block_sharded:tile,squared=dram"
    module = compiled(CHAIN, 2, text)
    (hidden, _) = placements(module, "matmul")
    assert hidden.shards is not None
    assert hidden.shards.bounding_box().rows == 8
    assert hidden.shards.bounding_box().columns == 4
    assert placements(module, "multiply")[0].buffer_type == "dram"


def test_calls_go_by_the_names_of_their_locations() -> None:
    module = compiled(LOCATED, 2, "override-output-layout=add_1=dram")
    assert json.loads(module.decisions)["functions"]["main"]["add_1"]["memory"] == "dram"
    module = compiled(LOCATED, 2, given(add_1={"memory": "l1"}))
    assert json.loads(module.decisions)["functions"]["main"]["add_1"]["memory"] == "l1"
    with pytest.raises(CompileError) as refused:
        compiled(LOCATED, 2, given(ad_1={"memory": "l1"}))
    assert refused.value.diagnostics[0].remedy == "did you mean 'add_1'?"


ONE_CONVOLUTION = """
func.func @main(%x: tensor<1x32x32x64xbf16>, %w: tensor<64x64x3x3xbf16>, %b: tensor<1x1x1x64xbf16>) -> tensor<1x32x32x64xbf16> {
  %c = "ttir.conv2d"(%x, %w, %b) <{stride = array<i32: 1, 1>, padding = array<i32: 1, 1, 1, 1>, dilation = array<i32: 1, 1>, groups = 1 : i32}> : (tensor<1x32x32x64xbf16>, tensor<64x64x3x3xbf16>, tensor<1x1x1x64xbf16>) -> tensor<1x32x32x64xbf16> loc("conv1")
  %r = "ttir.relu"(%c) : (tensor<1x32x32x64xbf16>) -> tensor<1x32x32x64xbf16> loc("act")
  return %r : tensor<1x32x32x64xbf16>
}
"""


def test_a_location_names_the_call_and_not_what_prepares_its_operands() -> None:
    wanted = {"conv2d_config": {"act_block_h_override": 64}}
    module = compiled(ONE_CONVOLUTION, 2, given(conv1=wanted))
    assert "act_block_h_override = 64" in module.files["src/tuning.hpp"]


def test_a_call_has_one_entry() -> None:
    twice = (
        '{"version": 1, "functions": {"main": {"c": {"memory": "l1"}, "c": {"memory": "dram"}}}}'
    )
    with pytest.raises(CompileError, match="have 'c' twice"):
        compiled(ONE_CONVOLUTION, 2, twice)


def test_convolutions_get_their_cores() -> None:
    text = (
        "override-conv2d-config=conv2d=core_grid#8x4:override_sharding_config#true:"
        "shard_layout#height_sharded:act_block_h_override#32:enable_split_reader#false"
    )
    tuning = compiled(CONVOLUTION, 1, text).files["src/tuning.hpp"]
    assert "CoreRange({0, 0}, {3, 7})" in tuning
    assert "HEIGHT_SHARDED" in tuning
    assert "UnaryOpType::RELU" in tuning
    for wrong, message in (
        ("activation#none", "its activation is relu, not none"),
        ("act_block_h_override#8", "no multiple of 32"),
        ("override_sharding_config#true", "needs a 'core_grid'"),
        ("core_grid#8x9", "the chip has 8x8 cores"),
        ("core_grid#0x8", r"'core_grid': \[8, 0\]"),
        ("core_grid#8", "is no field of the convolution"),
        ("shard_layout#heigth_sharded", "'shard_layout': \"heigth_sharded\""),
        ("weights_dtype#bf17", "'weights_dtype': \"bf17\""),
    ):
        with pytest.raises(CompileError, match=message):
            compiled(CONVOLUTION, 1, f"override-conv2d-config=conv2d={wrong}")


def test_what_does_not_fit_into_l1_is_refused() -> None:
    asked = {"memory": "l1", "sharding": "height_sharded", "grid": [3, 3]}
    with pytest.raises(CompileError, match="KiB of L1"):
        compiled(CHAIN, 2, given(squared=asked))


def test_a_configuration_that_no_program_of_the_product_has_is_refused() -> None:
    decided = json.loads(compiled(CHAIN, 2).decisions)["functions"]["main"]["hidden"]
    config = re.sub(r"per_core_m = \d+", "per_core_m = 1", decided["program_config"])
    config = re.sub(r"out_(sub)?block_h = \d+", r"out_\1block_h = 1", config)
    with pytest.raises(CompileError, match="blocks of 1x"):
        compiled(CHAIN, 2, given(hidden={"program_config": config}))


def test_a_configuration_applies_no_other_activation() -> None:
    """An override must not change the values that a program computes."""
    made = json.loads(compiled(CHAIN, 2).decisions)["functions"]["main"]["hidden"]
    for name in ("relu", "rleu"):
        activation = f"fused_activation = #ttnn.unary_with_param<op_type = {name}>"
        config = made["program_config"].replace("fuse_batch", f"{activation}, fuse_batch")
        with pytest.raises(CompileError, match="changes what the program computes"):
            compiled(CHAIN, 2, given(hidden={"program_config": config}))


def test_a_field_that_a_configuration_has_not_is_named() -> None:
    made = json.loads(compiled(CHAIN, 2).decisions)["functions"]["main"]["hidden"]
    config = made["program_config"].replace("in0_block_w", "in1_block_w")
    with pytest.raises(CompileError, match=r"'hidden': #ttnn\.\w+ has no other 'in1_block_w'$"):
        compiled(CHAIN, 2, given(hidden={"program_config": config}))


NORMALISED = f"""
func.func @main(%x: tensor<256x512xbf16>, %g: tensor<512xbf16> {{{WEIGHT}}}) -> tensor<256x512xbf16> {{
  %n = "ttir.rms_norm"(%x, %g) <{{normalized_shape = array<i64: 512>, epsilon = 1.0e-5 : f32, operandSegmentSizes = array<i32: 1, 1, 0>}}> : (tensor<256x512xbf16>, tensor<512xbf16>) -> tensor<256x512xbf16>
  %s = "ttir.softmax"(%n) <{{dimension = 1 : si32}}> : (tensor<256x512xbf16>) -> tensor<256x512xbf16>
  return %s : tensor<256x512xbf16>
}}
"""


def test_the_configuration_of_a_normalisation_is_that_of_its_shards() -> None:
    """It is brought into shards that the configuration fits; there are none of other blocks."""
    config = NORM.replace("block_w = 1", "block_w = 2")
    module = compiled(NORMALISED, 1, given(n={"program_config": config}))
    (norm,) = placements(module, "rms_norm")
    assert norm.memory_layout == "block_sharded"
    assert norm.shards is not None
    assert norm.shards.shape == (32, 64)
    wrong = config.replace("block_w = 2", "block_w = 3")
    with pytest.raises(CompileError, match="blocks of 1x3 tiles are not its shards of"):
        compiled(NORMALISED, 1, given(n={"program_config": wrong}))


@pytest.mark.parametrize("kind", ["height_sharded", "width_sharded", "block_sharded"])
def test_a_softmax_keeps_shards(kind: str) -> None:
    module = compiled(NORMALISED, 2, given(s={"memory": "l1", "sharding": kind}))
    (made,) = placements(module, "softmax")
    assert made.memory_layout == kind


def test_an_override_is_measured_against_where_operands_lie_in_any_way() -> None:
    """Shards of what is computed element by element are those of an operand: it is brought so."""
    asked = {"memory": "l1", "sharding": "height_sharded"}
    module = compiled(CHAIN, 2, given(squared=asked))
    (squared,) = placements(module, "multiply")
    assert squared.memory_layout == "height_sharded"


@pytest.mark.parametrize("level", [1, 2])
def test_weights_of_one_product_become_block_floats(level: int) -> None:
    program = entry(compiled(CHAIN, level, given(scores={"weights": "bfp_bf4"})))
    products = [op for op in program.operations if op.name == "ttnn.matmul"]
    types = [program.tensors[op.operands[1]].type.data_type for op in products]
    assert types == ["bf16", "bfp_bf4"]


def test_what_is_on_the_host_is_not_written() -> None:
    """Weights that differ in each run are prepared on the host in each run."""
    text = CONVOLUTION.replace(WEIGHT, INPUT)
    decided = compiled(text, 2)
    assert "system_memory" not in decided.decisions
    assert compiled(text, 2, decided.decisions).files == decided.files


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"shard": [33, 32]}, r"'shard': \[33, 32\] is no multiple of 32x32, .* whole tiles"),
        (
            {"sharding": "width_sharded", "shard": [64, 31]},
            r"'shard': \[64, 31\] is no multiple of 32x32",
        ),
        (
            {"sharding": "interleaved", "grid": [2, 2]},
            "'grid' is given for an interleaved tensor, which has no shards",
        ),
        (
            {"sharding": "block_sharded", "grid": [9, 8]},
            r"'grid': \[9, 8\] is more than the 8x8 cores of the chip",
        ),
        ({"memory": "dram", "sharding": "height_sharded"}, "shards are in L1"),
        (
            {"operands": {"0": {"memory": "l1", "sharding": "height_sharded", "shard": [48, 128]}}},
            r"'shard': \[48, 128\] is no multiple of 32x32",
        ),
        ({"conv2d_config": {"act_block_h_override": 32}}, "is no convolution"),
    ],
)
def test_a_place_that_no_tensor_can_have_is_refused_for_that(
    wrong: dict[str, Any], reason: str
) -> None:
    text = f"""
func.func @main(%x: tensor<64x128xbf16> {{{INPUT}}}, %w: tensor<128x128xbf16> {{{WEIGHT}}}) -> tensor<64x128xbf16> {{
  %0 = "ttir.matmul"(%x, %w) : (tensor<64x128xbf16>, tensor<128x128xbf16>) -> tensor<64x128xbf16>
  return %0 : tensor<64x128xbf16>
}}
"""
    with pytest.raises(CompileError, match=reason):
        compiled(text, 2, given(matmul=wrong))
