"""Sharding of tensors between device programs."""

from __future__ import annotations

import pytest

from tests.ttmetal.function_text import call, function, tensor
from tests.ttmetal.test_memory import lowered, programs
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttcore.shards import CoreRange, Layout
from ttcodegen.dialects.ttmetal.device_module import functions_of, is_host_function, launches
from ttcodegen.dialects.ttmetal.programs import AnyTiles, BlockTiles, Division, UnitTiles
from ttcodegen.dialects.ttnn.placement import TensorPlacement, placement_of
from ttcodegen.transforms.ttmetal.memory import CoreTiles, Use, own_bytes, sharded

CORES = CoreRange(0, 0, 7, 7)
TILE = 2048


def tiled(rows: int, columns: int) -> TensorPlacement:
    shape = (32 * rows, 32 * columns)
    return TensorPlacement(shape, DataType.BFLOAT16, buffer_type="l1")


def use(placement: TensorPlacement, division: Division, units: int = 0) -> Use:
    height, width = placement.collapsed_shape()
    return Use(CoreTiles(division, CORES, units), height * width * TILE)


@pytest.mark.parametrize(
    ("rows", "columns", "units", "tiles", "layout", "shard", "own"),
    [
        # Whole rows of tiles for each core, for some of them none.
        (16, 16, 16, 16, "height_sharded", (1, 16), 256),
        (128, 4, 512, 1, "height_sharded", (2, 4), 512),
        # 96 rows for 64 cores: the first 32 need two each, the next one has the row that it needs.
        (96, 4, 96, 4, "height_sharded", (2, 4), 4 * 65),
        (1, 128, 128, 1, "width_sharded", (1, 2), 128),
        (8, 64, 512, 1, "block_sharded", (1, 8), 512),
    ],
)
def test_units_of_linear_work_lie_where_they_are_computed(
    rows: int,
    columns: int,
    units: int,
    tiles: int,
    layout: str,
    shard: tuple[int, int],
    own: int,
) -> None:
    placement = tiled(rows, columns)
    uses = [use(placement, UnitTiles(tiles), units)]
    found = sharded(placement, uses)
    assert found is not None
    assert found.shards is not None
    assert (found.memory_layout, found.shards.shape) == (layout, (32 * shard[0], 32 * shard[1]))
    assert own_bytes(found, uses) == own * TILE


def test_blocks_lie_where_they_are_computed() -> None:
    placement = tiled(30, 20)
    uses = [use(placement, BlockTiles(4, 3))]
    found = sharded(placement, uses)
    assert found is not None
    assert found.shards is not None
    assert (found.memory_layout, found.shards.shape) == ("block_sharded", (128, 96))
    assert own_bytes(found, uses) == 30 * 20 * TILE


def test_what_moves_most_decides() -> None:
    placement = tiled(16, 16)
    rows, blocks = UnitTiles(16), BlockTiles(2, 2)
    uses = [use(placement, blocks), use(placement, rows, 16), use(placement, rows, 16)]
    found = sharded(placement, uses)
    assert found is not None
    assert found.memory_layout == "height_sharded"
    # Of the block that a core writes, a row or two may be its own.
    assert 2 * 256 * TILE <= own_bytes(found, uses) < 3 * 256 * TILE


def test_what_is_needed_anywhere_is_not_divided() -> None:
    placement = tiled(16, 16)
    assert sharded(placement, [use(placement, AnyTiles())]) is None
    rows = TensorPlacement((512, 512), DataType.UINT32, Layout.ROW_MAJOR, "l1")
    assert sharded(rows, [use(rows, UnitTiles(1), 512)]) is None


def test_rows_between_programs_never_leave_their_core() -> None:
    """A softmax works on the rows of a product where its cores have them, and leaves its own
    there."""
    type_, column = tensor((2048, 512), "bf16"), tensor((2048, 1), "bf16")
    ops = [
        call("matmul", ["%a0", "%a1"], [type_, tensor((512, 512), "bf16")], type_),
        call("softmax", ["%0"], [type_], type_, dimension="1 : si32"),
        call("matmul", ["%1", "%a1"], [type_, tensor((512, 512), "bf16")], type_),
        call("sum", ["%1"], [type_], column, dim_arg="[1 : i32]", keep_dim="true"),
        call("add", ["%2", "%3"], [type_, column], type_),
    ]
    module = lowered(function("rows", [type_, tensor((512, 512), "bf16")], ops))
    softmax = next(p for p in programs(module) if "max" in p.name)
    aliases = {buffer.operand for buffer in softmax.circular_buffers if buffer.is_alias}
    assert aliases >= {0, softmax.inputs}
    assert softmax.costs.own_l1_bytes == softmax.costs.noc_bytes == 0


def test_a_view_has_the_shards_of_its_buffer() -> None:
    flat, high = tensor((64, 64), "bf16"), tensor((1, 64, 64), "bf16")
    ops = [
        call("matmul", ["%a0", "%a0"], [flat, flat], flat),
        call("reshape", ["%0"], [flat], high, shape="[1 : i32, 64 : i32, 64 : i32]"),
        call("matmul", ["%1", "%a1"], [high, high], high),
    ]
    module = lowered(function("viewed", [flat, high], ops))
    [host] = [function for function in functions_of(module) if is_host_function(function)]
    first, second = launches([host])
    written, read = placement_of(first.outputs[0]), placement_of(second.inputs[0])
    assert written.shape != read.shape
    assert written.shards == read.shards is not None
