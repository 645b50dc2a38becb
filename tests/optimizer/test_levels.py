"""Effect of the optimizer's levels on programs."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from tests.optimizer.modules import (
    CHAIN,
    CHANNEL_SCALES,
    CONVOLUTION,
    DECODING,
    GATED,
    INPUT,
    LAST_ROWS,
    ODD_HEADS,
    ONE_TOKEN,
    PADDED,
    PROJECTIONS,
    SMALL_IMAGE,
    WEIGHT,
    attention,
    compiled,
    entry,
    most_l1,
    names,
    seconds,
    token,
)
from tests.random_programs.checking import (
    failures_built_together,
    failures_in_numpy,
    functions_of,
    module_of,
    seeded_module,
)
from ttcodegen.compilation import CompiledModule, CompileOptions, compile_module
from ttcodegen.dialects.ttnn.program_configs import SDPA
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.numerics.drawing import draw_inputs
from ttcodegen.optimizer.cost.calls import CostModel
from ttcodegen.parsing import parse_module
from ttcodegen.project.checking import run_in_numpy
from ttcodegen.project.cpu_backend import CPUBackend
from ttcodegen.project.toolchain import Toolchain
from ttcodegen.systems.cards import default_system

MODULES = {
    "chain": CHAIN,
    "padded": PADDED,
    "last rows": LAST_ROWS,
    "projections": PROJECTIONS,
    "convolution": CONVOLUTION,
    "decoding": DECODING,
    "attention": attention(256),
    "token": token(32, 8, 2),
    "token of few users": token(8, 4, 1),
    "token of odd users": token(11, 4, 2),
    "masked attention": attention(128, mask=True),
}


def outputs(text: str, level: int) -> list[list[np.ndarray]]:
    """Outputs of a module's flatbuffer for drawn inputs."""
    source = Source("m.mlir", text)

    def drawn(module: ModuleOp, function: FuncOp) -> tuple[np.ndarray, ...]:
        return tuple(draw_inputs(module, function, seed=0).values())

    return [list(run.flatbuffer) for run in run_in_numpy(source, compiled(text, level), drawn)]


def memories(module: CompiledModule) -> set[str | None]:
    """Buffer types and memory layouts of the tensors of a program."""
    types = [tensor.type for tensor in entry(module).tensors]
    return {f"{type_.buffer_type} {type_.memory_layout}" for type_ in types}


@pytest.mark.parametrize("text", MODULES.values(), ids=MODULES)
def test_levels_take_less_time_each(text: str) -> None:
    plain, first, second = (seconds(compiled(text, level)) for level in range(3))
    assert first < plain
    assert second <= first * 1.001


@pytest.mark.parametrize(
    "text",
    [GATED, SMALL_IMAGE, CHANNEL_SCALES, ONE_TOKEN, ODD_HEADS],
    ids=["mlp", "image", "scales", "token", "heads"],
)
def test_no_level_takes_more_time_than_the_one_before(text: str) -> None:
    """Register blocks for shards are not those of other results; reshapes and permutations of
    tensors in tiles are not always cheaper than what they replace."""
    plain, first, second = (seconds(compiled(text, level)) for level in range(3))
    assert second <= first <= plain


@pytest.mark.parametrize("text", MODULES.values(), ids=MODULES)
def test_levels_compute_the_same(text: str) -> None:
    """But for roundings in between, which what is fused leaves out."""
    for level in (1, 2):
        for plain, found in zip(outputs(text, 0), outputs(text, level), strict=True):
            for one, other in zip(plain, found, strict=True):
                assert one.shape == other.shape
                one, other = one.astype(np.float64), other.astype(np.float64)
                assert np.abs(one - other).max() <= 0.02 * np.abs(one).max()


@pytest.mark.parametrize("level", [1, 2])
def test_the_same_input_gives_the_same_bytes(level: int) -> None:
    one, other = compiled(CHAIN, level), compiled(CHAIN, level)
    assert one.files == other.files
    assert one.flatbuffer == other.flatbuffer
    assert one.decisions == other.decisions


def test_level_0_has_nothing_but_interleaved_dram() -> None:
    assert memories(compiled(CHAIN, 0)) <= {"dram interleaved", "system_memory none"}


def test_level_1_uses_l1_and_level_2_shards() -> None:
    assert "l1 interleaved" in memories(compiled(CHAIN, 1))
    assert not any("sharded" in str(found) for found in memories(compiled(CHAIN, 1)))
    assert any("sharded" in str(found) for found in memories(compiled(CHAIN, 2)))


def test_products_get_their_grid_and_configuration() -> None:
    """A product with a program configuration would multiply once only, and lose digits."""
    operations = [op for op in entry(compiled(CHAIN, 2)).operations if op.name == "ttnn.matmul"]
    assert operations
    for operation in operations:
        given = {a.name: a.value for a in operation.attributes if a.value is not None}
        assert "matmul_program_config" in given
        assert given["compute_config"].value.math_fidelity.value == "hifi2"  # type: ignore[union-attr]


def test_results_lie_where_they_are_expected() -> None:
    program = entry(compiled(CHAIN, 2))
    (output,) = program.outputs
    placement = program.tensors[output.tensor].type.placement
    assert (placement.buffer_type, placement.memory_layout) == ("dram", "interleaved")


def test_rows_are_not_padded_between_ops_that_work_on_rows() -> None:
    program = entry(compiled(PADDED, 1))
    shapes = {program.tensors[op.results[0]].type.shape for op in program.operations if op.results}
    assert (32, 1, 512) not in shapes
    # What is returned would be 32 times as large in tiles.
    (output,) = program.outputs
    assert program.tensors[output.tensor].type.layout == "row_major"


def test_a_row_of_each_matrix_is_taken_from_their_rows() -> None:
    program = entry(compiled(LAST_ROWS, 1))
    (taken,) = [op for op in program.operations if op.name == "ttnn.slice_static"]
    attributes = {a.name: a.value.values for a in taken.attributes}  # type: ignore[union-attr]
    assert attributes["begins"] == (8, 0)
    assert attributes["step"] == (9, 1)


def weights_of_products(module: CompiledModule) -> set[tuple[str, str | None]]:
    program = entry(module)
    products = [op for op in program.operations if op.name == "ttnn.matmul"]
    types = [program.tensors[op.operands[1]].type for op in products]
    return {(type_.buffer_type, type_.memory_layout) for type_ in types}


@pytest.mark.parametrize("weights", ["", "bfp8_b"])
def test_weights_of_one_row_of_tiles_are_read_from_all_banks(weights: str) -> None:
    options = CompileOptions("m", optimize=2, weights=weights)
    # Blocks of 1,024 rows of eight bits are read as fast by cores that read their own columns
    # (24.9 us from the banks on n150, 23.1 us so); those of 4,096 are not (259 us, 291 us).
    text = DECODING.replace("4096", "14336").replace("1024", "4096") if weights else DECODING
    module = compile_module(Source("m.mlir", text), options)
    assert ("dram", "width_sharded") in weights_of_products(module)
    tuning = module.files["src/tuning.hpp"]
    assert "MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig" in tuning
    # The structure has no default for it.
    assert ".fused_activation = {}" in tuning
    # They are brought there once.
    (prepared,) = [text for path, text in module.files.items() if path.endswith("/m.cpp")]
    assert "tuning::dram_width_sharded_" in prepared.partition("MainOutputs main")[0]
    assert "const ttnn::MemoryConfig dram_width_sharded_" in tuning


def test_what_differs_from_run_to_run_is_not_brought_to_the_banks() -> None:
    given = DECODING.replace("argument_type<parameter>", "argument_type<input>")
    assert ("dram", "width_sharded") not in weights_of_products(compiled(given, 2))


@pytest.mark.parametrize("mask", [False, True])
def test_attention_takes_chunks_that_fit(mask: bool) -> None:
    module = compiled(attention(512, mask), 2)
    (call,) = [op for op in entry(module).operations if "attention" in op.name]
    given = {a.name: a.value for a in call.attributes if a.value is not None}
    config = given["program_config"].value  # type: ignore[union-attr]
    assert isinstance(config, SDPA)
    # With 32 queries at a time, the 4 heads of 512 keep all 64 cores busy.
    assert max(config.q_chunk_size, config.k_chunk_size) > 32
    # A mask that is not known has calls beside the attention, which take as long in both.
    share = 0.8 if mask else 0.7
    assert seconds(module) < share * seconds(compiled(attention(512, mask), 0))
    assert most_l1(module) <= CostModel(default_system("wormhole_b0").chip).speed.usable_l1


def test_masks_of_attention_are_in_dram() -> None:
    """sdpa_device_operation.cpp refuses them in L1, where a small one is otherwise as cheap."""
    example = Path(__file__).parents[2] / "examples" / "transformer" / "transformer.mlir"
    program = entry(compiled(example.read_text(), 2))
    (call,) = [op for op in program.operations if "attention" in op.name]
    mask = program.tensors[call.operands[3]].type.placement
    assert mask.buffer_type == "dram"


def test_chunks_of_attention_divide_what_they_are_taken_of() -> None:
    module = compiled(attention(96), 2)
    (call,) = [op for op in entry(module).operations if "attention" in op.name]
    given = {a.name: a.value for a in call.attributes if a.value is not None}
    # Parts of chunks are computed as if they were whole: 96 rows have three chunks of 32.
    config = getattr(given.get("program_config"), "value", None)
    assert config is None or {config.q_chunk_size, config.k_chunk_size} == {32}


def test_projections_become_one_product() -> None:
    made = names(entry(compiled(PROJECTIONS, 1)))
    assert made.count("linear") == 1
    assert "split_query_key_value_and_split_heads" in made
    assert "permute" not in made


def test_activations_become_part_of_convolutions() -> None:
    module = compiled(CONVOLUTION, 1)
    assert "relu" not in names(entry(module))
    assert "UnaryOpType::RELU" in module.files["src/tuning.hpp"]


@pytest.mark.parametrize("text", MODULES.values(), ids=MODULES)
def test_peak_of_l1_is_below_its_size(text: str) -> None:
    model = CostModel(default_system("wormhole_b0").chip)
    assert 0 < most_l1(compiled(text, 2)) <= model.speed.usable_l1


WIDE = """
func.func @main(%x: tensor<1x1x852800x3xbf16>, %y: tensor<32x4096xf32>, %g: tensor<4096xf32>) -> (tensor<1x800x1066x3xbf16>, tensor<32x4096xf32>) {
  %0 = "ttir.exp"(%x) : (tensor<1x1x852800x3xbf16>) -> tensor<1x1x852800x3xbf16>
  %1 = "ttir.reshape"(%0) <{shape = [1 : i32, 800 : i32, 1066 : i32, 3 : i32]}> : (tensor<1x1x852800x3xbf16>) -> tensor<1x800x1066x3xbf16>
  %2 = "ttir.rms_norm"(%y, %g) <{normalized_shape = array<i64: 4096>, epsilon = 1.0e-5 : f32, operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<32x4096xf32>, tensor<4096xf32>) -> tensor<32x4096xf32>
  return %1, %2 : tensor<1x800x1066x3xbf16>, tensor<32x4096xf32>
}
"""  # noqa: E501


@pytest.mark.parametrize("level", [1, 2])
def test_what_fills_most_of_l1_is_placed_all_the_same(level: int) -> None:
    assert names(entry(compiled(WIDE, level)))


@pytest.mark.parametrize("level", [0, 2])
def test_weights_become_block_floats_once(level: int) -> None:
    options = CompileOptions("m", optimize=level, weights="bfp8_b")
    program = entry(compile_module(Source("m.mlir", CHAIN), options))
    products = [op for op in program.operations if op.name == "ttnn.matmul"]
    types = [[program.tensors[t].type.data_type for t in op.operands] for op in products]
    assert types == [["bf16", "bfp_bf8"]] * 2
    assert "ttnn.typecast" not in {op.name for op in program.operations}


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_mean_at_level_2_what_they_mean_at_level_0(seed: int) -> None:
    text = seeded_module([1000 + seed])
    assert failures_in_numpy(text, optimize=2) == failures_in_numpy(text)


@pytest.mark.slow
def test_random_programs_mean_at_level_2_what_they_mean_in_cpp(
    toolchain: Toolchain, cpu_backend: CPUBackend
) -> None:
    functions = [
        function
        for seed in range(2000, 2040)
        for function in functions_of(
            parse_module(Source("random.mlir", seeded_module([seed])))
        ).values()
        if not failures_in_numpy(module_of([function]))
    ]
    assert failures_built_together(module_of(functions), toolchain, optimize=2) == {}


CHOICE = """
func.func @main(%x: tensor<32x131072xbf16>) -> tensor<32xi32> {
  %0 = "ttir.exp"(%x) : (tensor<32x131072xbf16>) -> tensor<32x131072xbf16>
  %1 = "ttir.argmax"(%0) <{dim_arg = [1 : i32], keep_dim = false}> : (tensor<32x131072xbf16>) -> tensor<32xi32>
  return %1 : tensor<32xi32>
}
"""  # noqa: E501
"""A call whose rows are too long for the circular buffers that it is thought to have."""


@pytest.mark.parametrize("text", [CHAIN, DECODING, CHOICE], ids=["chain", "decode", "choice"])
def test_the_table_adds_up_to_what_the_program_takes(text: str) -> None:
    module = compiled(text, 2)
    (line,) = re.findall(r"estimated: ([0-9.]+) us", module.explanation)
    assert float(line) == pytest.approx(seconds(module) * 1e6, rel=0.01)


def test_products_with_vectors_have_no_shards() -> None:
    """The library drops a dimension of their results, which shards would cross."""
    module = compiled(
        """
func.func @main(%x: tensor<2x33x1024xf32>, %v: tensor<1024xf32>, %b: tensor<2x33xf32>) -> tensor<2x33xf32> {
  %0 = "ttir.linear"(%x, %v, %b) : (tensor<2x33x1024xf32>, tensor<1024xf32>, tensor<2x33xf32>) -> tensor<2x33xf32>
  return %0 : tensor<2x33xf32>
}
""",  # noqa: E501
        2,
    )
    program = entry(module)
    (product,) = (op for op in program.operations if op.name == "ttnn.matmul")
    assert program.tensors[product.results[0]].type.placement.shards is None


def test_what_is_computed_once_is_one_line_of_the_table() -> None:
    module = compiled(
        f"""
func.func @main(%x: tensor<64x64xbf16> {{{INPUT}}}, %w: tensor<64x64xbf16> {{{WEIGHT}}}) -> tensor<64x64xbf16> {{
  %0 = "ttir.exp"(%w) : (tensor<64x64xbf16>) -> tensor<64x64xbf16>
  %1 = "ttir.tanh"(%0) : (tensor<64x64xbf16>) -> tensor<64x64xbf16>
  %2 = "ttir.add"(%x, %1) : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  return %2 : tensor<64x64xbf16>
}}
""",  # noqa: E501
        2,
    )
    lines = module.explanation.splitlines()
    assert not any(re.search(r" (exp|tanh) ", line) for line in lines)
    assert any(re.search(r" add ", line) for line in lines)
    (once,) = (line for line in lines if "computed once" in line)
    assert int(once.split()[0]) >= 2


@pytest.mark.parametrize("element", ["ui16", "ui8"])
@pytest.mark.parametrize("level", [1, 2])
def test_integers_that_the_library_does_not_copy_stay_in_dram(element: str, level: int) -> None:
    """It copies none of these between DRAM and L1, neither way."""
    small, wide = f"tensor<70x5x3x1x{element}>", "tensor<70x5x3x1xbf16>"
    module = compiled(
        f"""
func.func @main(%x: {small}, %y: {wide}) -> ({small}, {small}) {{
  %0 = "ttir.relu6"(%x) : ({small}) -> {small}
  %1 = "ttir.relu"(%0) : ({small}) -> {small}
  %2 = "ttir.exp"(%y) : ({wide}) -> {wide}
  %3 = "ttir.typecast"(%2) : ({wide}) -> {small}
  %4 = "ttir.add"(%1, %3) : ({small}, {small}) -> {small}
  return %1, %4 : {small}, {small}
}}
""",
        level,
    )
    program = entry(module)
    placements = [
        program.tensors[t].type.placement for op in program.operations for t in op.results
    ]
    of_integers = [p for p in placements if p.data_type.mlir in ("u16", "u8")]
    assert of_integers
    assert not any(p.buffer_type == "l1" and p.shards is None for p in of_integers)
