"""Cards as they are sold: what of a program depends on the grid and the banks of one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.optimizer.modules import entry
from ttcodegen.cli.ttcodegen import main
from ttcodegen.compilation import CompiledModule, CompileOptions, compile_module
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttcore.shards import Layout, Shards, filled_core_ranges
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.dialects.ttnn.program_configs import CoreGrid
from ttcodegen.flatbuffer.system import load_system
from ttcodegen.foundation.diagnostics import Diagnostics, Source
from ttcodegen.judging.programs import harvesting
from ttcodegen.ops.attention.primitives import DecodeCores, fitting_grid, needed_program
from ttcodegen.optimizer.call import bank_bytes, stream_bytes
from ttcodegen.optimizer.programs.attention_and_norms import norm_config, on_rectangle
from ttcodegen.systems.cards import MACHINES, MOST_CHIPS, card_text, machine, performance_of

STANDALONE = Path(__file__).parents[2] / "standalone" / "src"

GRIDS = {
    # Columns and rows of workers, DRAM banks: what tt-metal 0.70.1 reports of mocked cards.
    "n150": (8, 8, 12),
    "p150": (11, 10, 8),
    "p100": (11, 10, 7),
    "p150_140": (13, 10, 8),
    "p300": (11, 10, 8),
    "bh_galaxy": (12, 10, 8),
}


@pytest.mark.parametrize("name", GRIDS)
def test_cards_have_the_cores_and_banks_that_the_library_reports(name: str) -> None:
    chip = load_system(name).chip
    columns, rows, banks = GRIDS[name]
    assert (chip.grid, chip.num_dram_channels) == ((rows, columns), banks)
    assert len(chip.dram_bank_to_logical_worker_noc0) == banks
    assert len(set(chip.dram_bank_to_logical_worker_noc0)) == banks
    assert all(y < rows and x < columns for y, x in chip.dram_bank_to_logical_worker_noc0)


def test_all_machines_are_consistent() -> None:
    for each in MACHINES:
        assert each.system().check().arch == each.arch
        assert len(each.system().chip_indices) == each.chips


def test_the_bandwidth_of_a_p100_is_that_of_seven_banks() -> None:
    assert performance_of(load_system("p100").chip).dram_bandwidth == 448e9
    assert performance_of(load_system("p150").chip).dram_bandwidth == 512e9


def test_l1_of_a_blackhole_is_rounded_up_to_64_bytes() -> None:
    shards = Shards((1, 8), filled_core_ranges(2))
    row = TensorPlacement((2, 8), DataType.BFLOAT16, Layout.ROW_MAJOR).sharded(
        "height_sharded", shards
    )
    assert bank_bytes(row, load_system("n150").chip) == 32
    assert bank_bytes(row, load_system("p150").chip) == 64


@pytest.mark.parametrize(("name", "bank"), [("n150", 1_393_312), ("p150", 1_461_120)])
def test_a_bank_of_l1_is_no_larger_than_in_any_release(name: str, bank: int) -> None:
    """Measured on the mocked devices: 0.70.1 has 1,395,424 and 1,461,760 bytes."""
    assert performance_of(load_system(name).chip).l1_bank == bank


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("n150", ""),
        ("t3000", ""),
        ("p150", "blackhole"),
        ("p100", "blackhole:11x10:7"),
        ("p150_140", "blackhole:13x10:8"),
        ("bh_galaxy", "blackhole:12x10:8"),
    ],
)
def test_the_cpu_backend_is_told_the_card(name: str, text: str) -> None:
    assert card_text(load_system(name).chip) == text
    source = Source("m.mlir", ADDING)
    described = compile_module(source, CompileOptions("m", system=load_system(name))).description
    assert described.card == text


ADDING = """func.func @f(%x: tensor<32x32xbf16>) -> tensor<32x32xbf16> {
  %0 = "ttir.add"(%x, %x) : (tensor<32x32xbf16>, tensor<32x32xbf16>) -> tensor<32x32xbf16>
  return %0 : tensor<32x32xbf16>
}
"""


@pytest.mark.parametrize(
    ("name", "workers", "dram"), [("p150", 192, 0), ("p100", 192, 8), ("p150_140", 0, 0)]
)
def test_the_mocked_card_is_harvested_as_the_card_is(name: str, workers: int, dram: int) -> None:
    """The masks of cluster descriptions of these cards."""
    found = harvesting(load_system(name).chip)
    assert (found["workers"], found["dram"]) == (workers, dram)


# Attention of one token of each user


def test_arguments_of_kernels_limit_the_cores_of_attention() -> None:
    """Of 130 cores the kernel that writes would be given 344 words; 341 are allowed."""
    assert DecodeCores(32, 4, 130, 130).misfit == ("a kernel is given 341 words at most, here 344")
    assert DecodeCores(1, 1, 110, 110).misfit == "a head has 64 cores at most, here 110"
    assert DecodeCores(70, 1, 64, 64).misfit == "70 users need a core each, there are 64"
    assert DecodeCores(32, 4, 64, 64).misfit is None
    assert fitting_grid(32, 4, CoreGrid(13, 10)) == CoreGrid(13, 9)
    assert needed_program(32, 4, 256, CoreGrid(8, 8)) is None


def attending(users: int, heads: int, key_heads: int) -> str:
    """Attention of one token of each user to 256 keys."""
    query = f"tensor<1x{users}x{heads}x64xbf16>"
    keys = f"tensor<{users}x{key_heads}x256x64xbf16>"
    positions = f"tensor<{users}xi32>"
    return f"""
func.func @f(%q: {query}, %k: {keys}, %v: {keys}, %p: {positions}) -> {query} {{
  %0 = "ttir.scaled_dot_product_attention_decode"(%q, %k, %v, %p) <{{is_causal = true, operandSegmentSizes = array<i32: 1, 1, 1, 0, 1, 0>}}> : ({query}, {keys}, {keys}, {positions}) -> {query}
  return %0 : {query}
}}
"""  # noqa: E501 -- MLIR as it is printed


@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize(
    ("name", "users", "key_heads", "grid"),
    [
        ("n150", 32, 4, None),
        ("p150", 32, 4, None),
        ("p150", 1, 1, "{11, 10}"),
        ("p150_140", 32, 4, "{13, 9}"),
    ],
)
def test_attention_gets_cores_that_kernels_can_name(
    name: str, users: int, key_heads: int, grid: str | None, level: int
) -> None:
    options = CompileOptions("m", optimize=level, system=load_system(name))
    module = compile_module(Source("m.mlir", attending(users, 16, key_heads)), options)
    found = re.search(r"\.compute_with_storage_grid_size = (\{\d+, \d+\})", cpp(module))
    assert (found and found[1]) == grid


def cpp(module: CompiledModule) -> str:
    """All source files of a module."""
    return "\n".join(module.files.values())


def test_machines_are_found_by_name() -> None:
    found = machine("p150_140")
    assert found is not None
    assert found.chip.grid == (10, 13)


MACHINE_NUMBERS = re.compile(
    r"k\w*(?:Cores|Banks|Workers|Grid\w*)\b(?:\{|\s*=\s*)\d"
    r"|CoreCoord\(?\{?8, 8|constexpr CoreCoord \w+\{\d"
)


def test_numbers_of_a_machine_are_in_the_description_of_the_device_alone() -> None:
    """Counts of cores and banks, and grids, as constants of the CPU backend."""
    found = [
        f"{file.relative_to(STANDALONE)}: {line.strip()}"
        for file in sorted(STANDALONE.rglob("*.[ch]pp"))
        if file.name != "architecture.cpp"
        for line in file.read_text().splitlines()
        if MACHINE_NUMBERS.search(line)
    ]
    assert not found


SOURCES = Path(__file__).parents[2] / "ttcodegen"
GRIDS_AND_SIZES = re.compile(
    r"(?<![-<\w])(?:8, 8|8, 7|10, 13|13, 10|11, 10|10, 11|10, 12|12, 10)\b"
    r"|\b1464 \* 1024|\b1536 \* 1024|\b1_?499_?136|\b1_?572_?864"
    r"|\b(?:MOST_)?(?:CORES|BANKS|GRID\w*|L1\w*_BYTES|(?:DRAM|STREAM|L1)_ALIGNMENT|CHIPS)\s*=\s*\d"
)


def test_numbers_of_a_machine_are_in_the_room_of_systems_alone() -> None:
    """Grids, counts of cores, banks and chips, sizes of L1 and alignments of memories."""
    found = [
        f"{file.relative_to(SOURCES)}: {line.strip()}"
        for file in sorted(SOURCES.rglob("*.py"))
        if file.parent.name != "systems"
        for line in file.read_text().splitlines()
        if GRIDS_AND_SIZES.search(line)
    ]
    assert not found


# What the library places by the grid of the device


HEADS = """
func.func @f(%x: tensor<1x1x32x3072xbf16>) -> (tensor<1x32x32x64xbf16>, tensor<1x1x32x2048xbf16>) {
  %0:3 = "ttnn.nlp_create_qkv_heads_decode"(%x) <{num_heads = 32 : ui32, num_kv_heads = 8 : ui32}> : (tensor<1x1x32x3072xbf16>) -> (tensor<1x32x32x64xbf16>, tensor<1x32x8x64xbf16>, tensor<1x32x8x64xbf16>)
  %1 = "ttnn.nlp_concat_heads_decode"(%0#0) <{num_heads = 32 : ui32}> : (tensor<1x32x32x64xbf16>) -> tensor<1x1x32x2048xbf16>
  return %0#0, %1 : tensor<1x32x32x64xbf16>, tensor<1x1x32x2048xbf16>
}
"""  # noqa: E501 -- MLIR as it is printed


@pytest.mark.parametrize(
    ("name", "ranges"),
    [
        ("n150", [(0, 0, 7, 3)]),
        # As the mocked p150 and p150_140 of 0.70.1 report them.
        ("p150", [(0, 0, 10, 1), (0, 2, 9, 2)]),
        ("p150_140", [(0, 0, 12, 1), (0, 2, 5, 2)]),
    ],
)
def test_heads_of_users_are_on_the_rows_of_the_device(
    name: str, ranges: list[tuple[int, ...]]
) -> None:
    options = CompileOptions("m", system=load_system(name))
    program = entry(compile_module(Source("m.mlir", HEADS), options))
    found = {
        op.name: program.tensors[op.results[0]].type for op in program.operations if op.results
    }
    for op in ("ttnn.nlp_create_qkv_heads_decode", "ttnn.nlp_concat_heads_decode"):
        shards = found[op].placement.shards
        assert shards is not None
        assert [
            (r.first_column, r.first_row, r.last_column, r.last_row) for r in shards.core_ranges
        ] == ranges


@pytest.mark.parametrize("grid", [CoreGrid(8, 8), CoreGrid(11, 10), CoreGrid(13, 10)])
def test_normalisations_find_a_rectangle_for_each_width(grid: CoreGrid) -> None:
    """The library of 0.70.1 takes shards by width on rectangles of cores only."""
    for tiles in range(2, 200):
        rows = TensorPlacement((32, tiles * 32), DataType.BFLOAT16, Layout.TILE)
        cores = max(n for n in range(1, grid.cores + 1) if tiles % n == 0)
        shards = Shards((32, tiles // cores * 32), filled_core_ranges(cores, grid.columns))
        found = on_rectangle(rows.sharded("width_sharded", shards), grid)
        if found is None:
            # Only where no rectangle divides the row.
            assert all(
                tiles % (c * r)
                for c in range(1, grid.columns + 1)
                for r in range(1, grid.rows + 1)
                if c * r > 1
            )
            continue
        assert found.shards is not None
        assert found.shards.is_rectangle
        box = found.shards.bounding_box()
        assert box.columns <= grid.columns
        assert box.rows <= grid.rows
        config = norm_config(found)
        assert config is not None
        assert config.block_w * found.shards.cores == tiles


def test_pages_that_are_streamed_into_shards_begin_where_they_do_in_dram() -> None:
    """interleaved_to_sharded_program_factory.cpp: four pages with an alignment each."""
    assert stream_bytes(96, load_system("n150").chip) == 4 * (96 + 32)
    assert stream_bytes(96, load_system("p150").chip) == 4 * (128 + 64)


EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["p100", "p150", "p150_140"])
def test_programs_for_a_blackhole_compute_the_same(name: str, tmp_path: Path) -> None:
    digits = EXAMPLES / "digits" / "digits.mlir"
    options = ["--machine", name, "--optimize", "2", "--check"]
    assert main([str(digits), "-o", str(tmp_path / "out"), *options]) == 0


# Meshes


def test_chips_that_compute_the_same_are_warned_of() -> None:
    diagnostics = Diagnostics()
    options = CompileOptions("m", mesh=(2, 4))
    compile_module(Source("m.mlir", ADDING), options, diagnostics=diagnostics)
    assert [each.message for each in diagnostics.warnings] == [
        "the module does not say how tensors are divided among the chips of its mesh: each of the "
        "8 computes all of it"
    ]


def test_the_limit_of_emulated_chips_is_that_of_the_backend() -> None:
    header = (STANDALONE / "core" / "device.hpp").read_text()
    assert f"kMostChips = {MOST_CHIPS};" in header
