# ruff: noqa: E501 -- MLIR as it is printed
"""Convolutions that keep their images in L1, against what the release was measured to do."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.optimizer.measured import DATA_TYPES, placed, table
from tests.optimizer.modules import INPUT, WEIGHT, compiled, entry, names
from tests.random_programs.checking import failures_built_together, failures_in_numpy
from tests.random_programs.convolution_chains import chain
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.operations.compute_config import ComputeConfig
from ttcodegen.dialects.ttcore.shards import Layout
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.dialects.ttnn.program_configs import Conv2dConfig, CoreGrid, Word
from ttcodegen.layout.device import Bank
from ttcodegen.optimizer import beam_search as search
from ttcodegen.optimizer.call import LibraryCall
from ttcodegen.optimizer.cost.calls import CostModel
from ttcodegen.optimizer.cost.convolution import convolution_footprint
from ttcodegen.optimizer.programs.convolution import halo_bytes, result_of, sharded_images
from ttcodegen.project.cpu_backend import CPUBackend
from ttcodegen.project.toolchain import Toolchain
from ttcodegen.systems.cards import default_system, performance

GRID = CoreGrid(8, 8)
OTHER_CALLS = re.compile(
    r"override|reshard=True|core_grid|output_layout=R|dtype=|act_block|double_buffer|DRAMSlice|enable_|"
    "config_tensors|full_inner|split_reader|mc=|shard_layout=ws"
)
"""Variants whose images are sharded anew, or whose programs have other buffers."""


@dataclass(frozen=True)
class Row:
    """A measured convolution."""

    variant: str
    call: LibraryCall
    result: TensorPlacement
    circular_buffers: int
    peak: int


def row(
    variant: str,
    shape: str,
    storage: str,
    dtype: str,
    out: str,
    out_storage: str,
    cb: int,
    peak: int,
) -> Row | None:
    """That of some columns of the table; None of images that are not in shards of tiles."""
    sizes = re.match(r"N=(\d+) (\d+)x(\d+) Ci=(\d+) Co=(\d+)", variant)
    image, result = placed(shape, dtype, "T", storage), placed(out, dtype, "T", out_storage)
    if sizes is None or image is None or result is None or storage.endswith("c"):
        return None
    batch, height, width, inputs, outputs = (int(size) for size in sizes.groups())

    def given(name: str, default: int) -> int:
        found = re.search(rf"(?<![a-z]){name}=(\d+)", variant)
        return int(found[1]) if found else default

    kernel, groups = given("k", 3), given("g", 1)
    weights = re.search(r"wd=(\w+)", variant)
    converted = re.search(r"weights_dtype=(\w+)", variant)
    weight_type = DataType.from_mlir(DATA_TYPES[weights[1] if weights else "bf16"])
    weight = TensorPlacement(
        (outputs, inputs // groups, kernel, kernel), weight_type, Layout.ROW_MAJOR
    )
    bias = TensorPlacement((1, 1, 1, outputs), weight_type, Layout.ROW_MAJOR)
    word = Word(DATA_TYPES[converted[1]]) if converted else None
    attributes: dict[str, Any] = {
        "in_channels": inputs, "out_channels": outputs, "batch_size": batch,
        "input_height": height, "input_width": width, "kernel_size": [kernel] * 2,
        "stride": [given("s", 1)] * 2, "padding": [given("p", 1)] * 2,
        "dilation": [given("d", 1)] * 2, "groups": groups,
        "conv2d_config": Conv2dConfig(weights_dtype=word),
    }  # fmt: skip
    if "acc" in variant:
        attributes["compute_config"] = ComputeConfig(
            fp32_dest_acc_en="fp32acc" in variant, packer_l1_acc="l1acc" in variant
        )
    plain = result.with_(buffer_type="dram", memory_layout="interleaved", shards=None)
    operands = (image, weight, *((bias,) if "bias=True" in variant else ()))
    return Row(variant, LibraryCall("conv2d", operands, (plain,), attributes), result, cb, peak)


IMAGE = "1x1x1024x64"
SOME = [
    ("N=1 32x32 Ci=64 Co=64 k=3 p=1", "hs8x4[32x64]", "hs8x4[32x64]", 49216, 21248),
    ("N=1 32x32 Ci=64 Co=64 k=1 p=0", "hs8x4[32x64]", "hs8x4[32x64]", 8192, 8192),
    ("N=1 32x32 Ci=64 Co=64 k=1 p=0", "bs2x8[128x32]", "bs2x8[128x32]", 20544, 16384),
    (
        "N=1 32x32 Ci=64 Co=64 wd=bf16 bias=True {weights_dtype=f32}",
        "hs8x4[32x64]",
        "hs8x4[32x64]",
        81984,
        21248,
    ),
    (
        "N=1 32x32 Ci=64 Co=64 wd=f32 bias=True {weights_dtype=bf8}",
        "hs8x4[32x64]",
        "hs8x4[32x64]",
        39872,
        21248,
    ),
]
"""Rows of the table."""


def check(found: Row) -> None:
    """The result is where it was found, and the call takes what it was found to take."""
    image = found.call.operands[0]
    result = result_of(found.call, image, GRID)
    assert result is not None, found.variant
    assert (result.memory_layout, result.shards) == (
        found.result.memory_layout,
        found.result.shards,
    )
    placed = replace(found.call, results=(result,))
    space = performance("wormhole_b0").usable_l1
    footprint = convolution_footprint(placed, GRID, space, "wormhole_b0")
    assert footprint.buffers == found.circular_buffers
    model = CostModel(default_system("wormhole_b0").chip)
    tensors = model.bank_bytes(image) + model.bank_bytes(result)
    if "dealloc=True" not in found.variant:
        assert tensors + halo_bytes(found.call, image, result) == found.peak
        assert footprint.tensors == found.peak


@pytest.mark.parametrize(("variant", "storage", "out", "cb", "peak"), SOME)
def test_images_in_shards_stay_there(
    variant: str, storage: str, out: str, cb: int, peak: int
) -> None:
    found = row(variant, IMAGE, storage, "bf16", IMAGE, out, cb, peak)
    assert found is not None
    check(found)


def measured(path: Path) -> Iterator[Row]:
    """The convolutions of the table whose images are in shards that they can use."""
    with path.open(encoding="utf-8") as file:
        for line in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            usable = line["op"] == "conv2d" and line["status"] == "ok" and line["in_layout"] == "T"
            if usable and not OTHER_CALLS.search(line["variant"]):
                out, storage = (line[key].partition(";")[0] for key in ("out_shape", "out_mem"))
                found = row(
                    line["variant"],
                    line["in_shapes"],
                    line["in_storage"],
                    line["in_dtype"],
                    out,
                    storage,
                    int(line["cb_bytes"]),
                    int(line["peak_l1"]),
                )
                if found is not None and found.call.operands[0].shards is not None:
                    yield found


def test_all_measured_convolutions_of_sharded_images_are_followed() -> None:
    path = table()
    if path is None:
        pytest.skip("there is no table of measured calls: name it in TTCODEGEN_SHARDED_RULES")
    found = [each for each in measured(path) if result_of(each.call, each.call.operands[0], GRID)]
    assert len(found) >= 25
    for each in found:
        check(each)


CHAIN = f"""
func.func @main(%x: tensor<8x28x28x256xbf16> {{{INPUT}}}, %a: tensor<64x256x1x1xbf16> {{{WEIGHT}}}, %b: tensor<64x64x3x3xbf16> {{{WEIGHT}}}, %c: tensor<256x64x1x1xbf16> {{{WEIGHT}}}) -> tensor<8x28x28x256xbf16> {{
  %0 = "ttir.conv2d"(%x, %a) <{{stride = 1 : i32, padding = 0 : i32, dilation = 1 : i32, groups = 1 : i32}}> : (tensor<8x28x28x256xbf16>, tensor<64x256x1x1xbf16>) -> tensor<8x28x28x64xbf16>
  %1 = "ttir.relu"(%0) : (tensor<8x28x28x64xbf16>) -> tensor<8x28x28x64xbf16>
  %2 = "ttir.conv2d"(%1, %b) <{{stride = 1 : i32, padding = 1 : i32, dilation = 1 : i32, groups = 1 : i32}}> : (tensor<8x28x28x64xbf16>, tensor<64x64x3x3xbf16>) -> tensor<8x28x28x64xbf16>
  %3 = "ttir.relu"(%2) : (tensor<8x28x28x64xbf16>) -> tensor<8x28x28x64xbf16>
  %4 = "ttir.conv2d"(%3, %c) <{{stride = 1 : i32, padding = 0 : i32, dilation = 1 : i32, groups = 1 : i32}}> : (tensor<8x28x28x64xbf16>, tensor<256x64x1x1xbf16>) -> tensor<8x28x28x256xbf16>
  %5 = "ttir.add"(%4, %x) : (tensor<8x28x28x256xbf16>, tensor<8x28x28x256xbf16>) -> tensor<8x28x28x256xbf16>
  %6 = "ttir.relu"(%5) : (tensor<8x28x28x256xbf16>) -> tensor<8x28x28x256xbf16>
  return %6 : tensor<8x28x28x256xbf16>
}}
"""
"""A block of a residual network."""


def convolved() -> list[TensorPlacement]:
    """The placement of the results of its convolutions but the first, at level 2."""
    program = entry(compiled(CHAIN, 2))
    made = [op for op in program.operations if op.name == "ttnn.conv2d"]
    return [program.tensors[op.results[0]].type.placement for op in made[1:]]


def test_convolutions_hand_shards_on() -> None:
    module = compiled(CHAIN, 2)
    program = entry(module)
    made = [op for op in program.operations if op.name in ("ttnn.conv2d", "ttnn.add")]
    images = [program.tensors[op.operands[0]].type.placement for op in made]
    # The input comes in rows, which cost more to tilize than the first convolution takes in DRAM.
    assert all(image.shards is not None for image in images[1:])
    assert names(program).count("to_memory_config") <= 3
    assert "reshape" not in names(program)
    code = "\n".join(text for name, text in module.files.items() if name.endswith(".cpp"))
    assert re.search(
        r"ttnn::conv2d\([^;]*_compute, /\*memory_config=\*/tuning::(height|block)_sharded", code
    )
    # Each is written once, to be tuned there.
    assert "ttnn::MemoryConfig(" not in code
    assert re.search(
        r"const ttnn::MemoryConfig (height|block)_sharded_\d+x\d+\{", module.files["src/tuning.hpp"]
    )


def test_what_was_decided_of_convolutions_gives_the_same_program() -> None:
    decided = compiled(CHAIN, 2)
    assert compiled(CHAIN, 2, decided.decisions).files == decided.files


def test_a_convolution_runs_on_the_cores_that_are_named() -> None:
    asked = {"sharding": "height_sharded", "grid": [8, 4]}
    (name,) = [n for n, chosen in choices().items() if chosen["op"] == "conv2d"][:1]
    text = json.dumps({"version": 1, "functions": {"main": {name: asked}}})
    assert choices(text)[name]["grid"] == [8, 4]


def choices(overrides: str = "") -> dict[str, dict[str, Any]]:
    """Decisions for the calls of a block of a residual network."""
    return json.loads(compiled(CHAIN, 2, overrides).decisions)["functions"]["main"]


def test_a_call_that_finds_no_room_between_others_leaves_l1(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert all(placement.shards is not None for placement in convolved())

    def short(decisions: Any, *_: Any) -> dict[Any, int]:
        return {op: 1024 for op, _, _ in decisions if op.name == "ttnn.conv2d"}

    monkeypatch.setattr(search, "shortages", short)
    assert all(placement.buffer_type == "dram" for placement in convolved())


def test_a_product_that_leaves_l1_keeps_its_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    square = "tensor<512x512xbf16>"
    text = f"""
func.func @main(%x: {square} {{{INPUT}}}, %w: {square} {{{WEIGHT}}}) -> {square} {{
  %0 = "ttir.matmul"(%x, %w) : ({square}, {square}) -> {square}
  %1 = "ttir.exp"(%0) : ({square}) -> {square}
  return %1 : {square}
}}
"""

    def chosen() -> dict[str, str]:
        return json.loads(compiled(text, 2).decisions)["functions"]["main"]["matmul"]

    usual = chosen()
    assert usual["memory"] == "l1"

    def short(decisions: Any, *_: Any) -> dict[Any, int]:
        return {op: 1024 for op, _, _ in decisions if op.name == "ttnn.matmul"}

    monkeypatch.setattr(search, "shortages", short)
    assert chosen() == {**usual, "memory": "dram"}


def test_the_allocator_takes_the_highest_gap_that_is_large_enough() -> None:
    bank = Bank(100)
    first, second, third = bank.allocate(10), bank.allocate(20), bank.allocate(30)
    assert (first, second, third) == ((90, 100), (70, 90), (40, 70))
    bank.free(first)
    bank.free(third)
    assert bank.allocate(11) == (59, 70)
    assert bank.allocate(10) == (90, 100)
    assert bank.lowest == 59
    assert bank.allocate(60) == (-1, 59)


def test_images_that_the_library_folds_stay_in_dram() -> None:
    found = row(
        "N=1 32x32 Ci=64 Co=64 k=2 s=2 p=0",
        IMAGE,
        "hs8x4[32x64]",
        "bf16",
        "1x1x256x64",
        "hs8x1[32x64]",
        0,
        0,
    )
    assert found is not None
    assert list(sharded_images(found.call, GRID)) == []


def sharded_convolutions(text: str) -> int:
    """Number of convolutions with sharded results at level 2."""
    program = entry(compiled(text, 2))
    made = [op for op in program.operations if op.name == "ttnn.conv2d"]
    placements = [program.tensors[op.results[0]].type.placement for op in made]
    return sum(placement.shards is not None for placement in placements)


def test_random_chains_of_convolutions_lie_in_shards() -> None:
    assert sum(sharded_convolutions(chain(seed)) > 0 for seed in range(8)) >= 3


@pytest.mark.parametrize("seed", range(8))
def test_random_chains_of_convolutions_mean_at_level_2_what_they_say(seed: int) -> None:
    assert failures_in_numpy(chain(seed), optimize=2) == []


@pytest.mark.slow
def test_random_chains_of_convolutions_mean_the_same_in_cpp(
    toolchain: Toolchain, cpu_backend: CPUBackend
) -> None:
    text = "".join(chain(seed) for seed in range(100, 112))
    assert failures_built_together(text, toolchain, optimize=2) == {}


STEM = f"""
func.func @main(%x: tensor<1x3x160x160xbf16> {{{INPUT}}}, %w: tensor<16x3x3x3xbf16> {{{WEIGHT}}}) -> tensor<1x80x80x16xbf16> {{
  %0 = "ttir.permute"(%x) <{{permutation = array<i64: 0, 2, 3, 1>}}> : (tensor<1x3x160x160xbf16>) -> tensor<1x160x160x3xbf16>
  %1 = "ttir.conv2d"(%0, %w) <{{dilation = array<i32: 1, 1>, groups = 1 : i32, padding = array<i32: 1, 1, 1, 1>, stride = array<i32: 2, 2>}}> : (tensor<1x160x160x3xbf16>, tensor<16x3x3x3xbf16>) -> tensor<1x80x80x16xbf16>
  return %1 : tensor<1x80x80x16xbf16>
}}
"""
"""The first layer of a network for images, whose tiles are 29 parts of padding to 3 of channels."""


STEM_BESIDE_ANOTHER_USE = STEM.replace(
    "-> tensor<1x80x80x16xbf16> {\n", "-> (tensor<1x80x80x16xbf16>, tensor<1x160x160x3xbf16>) {\n"
).replace(
    "  return %1 : tensor<1x80x80x16xbf16>",
    '  %2 = "ttir.exp"(%0) : (tensor<1x160x160x3xbf16>) -> tensor<1x160x160x3xbf16>\n'
    "  return %1, %2 : tensor<1x80x80x16xbf16>, tensor<1x160x160x3xbf16>",
)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_images_of_few_channels_are_never_put_into_tiles(level: int) -> None:
    program = entry(compiled(STEM, level))
    assert names(program)[:3] == ["permute_row_major", "reshape_row_major", "conv2d"]
    (call,) = [each for each in program.operations if each.name == "ttnn.conv2d"]
    assert program.tensors[call.operands[0]].type.placement.layout is Layout.ROW_MAJOR


def test_a_permutation_that_others_use_as_well_stays_in_tiles() -> None:
    assert "permute" in names(entry(compiled(STEM_BESIDE_ANOTHER_USE, 0)))


@pytest.mark.parametrize("level", [0, 2])
def test_images_of_few_channels_mean_the_same_in_rows(level: int) -> None:
    text = STEM
    for seed, kind in enumerate((INPUT, WEIGHT)):
        drawn = f"drawn.low = -2.0 : f64, drawn.high = 2.0 : f64, drawn.seed = {seed} : i64"
        text = text.replace(kind, f"{kind}, {drawn}")
    assert failures_in_numpy(text, optimize=level) == []


POOLED = f"""
func.func @main(%x: tensor<8x112x112x64xbf16> {{{INPUT}}}, %a: tensor<64x64x1x1xbf16> {{{WEIGHT}}}, %b: tensor<64x64x3x3xbf16> {{{WEIGHT}}}, %c: tensor<256x64x1x1xbf16> {{{WEIGHT}}}) -> tensor<8x56x56x256xbf16> {{
  %0 = "ttir.max_pool2d"(%x) <{{kernel = array<i32: 3, 3>, stride = array<i32: 2, 2>, dilation = array<i32: 1, 1>, padding = array<i32: 1, 1, 1, 1>, ceil_mode = false}}> : (tensor<8x112x112x64xbf16>) -> tensor<8x56x56x64xbf16>
  %1 = "ttir.conv2d"(%0, %a) <{{stride = 1 : i32, padding = 0 : i32, dilation = 1 : i32, groups = 1 : i32}}> : (tensor<8x56x56x64xbf16>, tensor<64x64x1x1xbf16>) -> tensor<8x56x56x64xbf16>
  %2 = "ttir.conv2d"(%1, %b) <{{stride = 1 : i32, padding = 1 : i32, dilation = 1 : i32, groups = 1 : i32}}> : (tensor<8x56x56x64xbf16>, tensor<64x64x3x3xbf16>) -> tensor<8x56x56x64xbf16>
  %3 = "ttir.conv2d"(%2, %c) <{{stride = 1 : i32, padding = 0 : i32, dilation = 1 : i32, groups = 1 : i32}}> : (tensor<8x56x56x64xbf16>, tensor<256x64x1x1xbf16>) -> tensor<8x56x56x256xbf16>
  %4 = "ttir.conv2d"(%0, %c) <{{stride = 1 : i32, padding = 0 : i32, dilation = 1 : i32, groups = 1 : i32}}> : (tensor<8x56x56x64xbf16>, tensor<256x64x1x1xbf16>) -> tensor<8x56x56x256xbf16>
  %5 = "ttir.add"(%3, %4) : (tensor<8x56x56x256xbf16>, tensor<8x56x56x256xbf16>) -> tensor<8x56x56x256xbf16>
  return %5 : tensor<8x56x56x256xbf16>
}}
"""
"""The first block of a residual network, whose image comes from a pool."""


def test_rows_of_pools_are_tilized_into_shards() -> None:
    program = entry(compiled(POOLED, 2))
    convolutions = [op for op in program.operations if op.name == "ttnn.conv2d"]
    images = [program.tensors[op.operands[0]].type.placement for op in convolutions]
    assert {image.layout.value for image in images} == {"tile"}
    assert all(image.shards is not None for image in images)
