"""Device grids, L1 banks, and conversion of tensor data to shards."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
    AffineSymExpr,
)

from ttcodegen.dialects.ttcore.device import DeviceAttr, DeviceDescription, device_text
from ttcodegen.dialects.ttcore.layouts import Grid, shape_text
from ttcodegen.layout.collapse import Shape, volume
from ttcodegen.layout.tensor_layout import TensorLayout, offset_in_tile
from ttcodegen.systems.cards import N150
from ttcodegen.systems.description import SystemDescription

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# A device grid, its map to chips, and the addresses of shard bytes.
#
# The maps are those of the device specification. A grid may span several chips of the mesh. Other
# views of the same cores (transposed, wide, rotated) are made by `reinterpret`.


@dataclass(frozen=True)
class PhysicalCore:
    """A core, by chip, row and column."""

    chip: int
    row: int
    column: int


@dataclass(frozen=True)
class Device:
    """A grid of cores over one or more chips, made by `create`, `of_system` or `of`."""

    grid: Shape
    worker_map: AffineMap
    """Maps grid positions to chip, row and column."""
    mesh_shape: Shape
    chip_ids: Shape
    chip_grid: tuple[int, int]
    """Rows and columns of each chip."""
    dram_banks: int
    """DRAM banks of each chip."""

    def __post_init__(self) -> None:
        if prod(self.mesh_shape) != len(self.chip_ids):
            raise ValueError(
                f"a mesh of {shape_text(self.mesh_shape)} has {prod(self.mesh_shape)} chips, but "
                f"{len(self.chip_ids)} are given"
            )
        if self.worker_map.num_dims != len(self.grid) or len(self.worker_map.results) != 3:
            raise ValueError("the map of the cores leads from the grid to chip, row and column")

    @classmethod
    def create(
        cls,
        mesh_shape: Sequence[int] = (1,),
        chip_grid: tuple[int, int] = N150.grid,
        *,
        chip_ids: Sequence[int] | None = None,
        dram_banks: int = N150.num_dram_channels,
    ) -> Device:
        """Creates a grid over the chips of a mesh.

        The last two mesh dimensions are rows and columns of chips; leading ones become separate
        grid dimensions, such as a batch.
        """
        mesh = tuple(mesh_shape)
        full = mesh if len(mesh) > 1 else (*mesh, 1)
        outer, (down, beside) = full[:-2], full[-2:]
        rank = len(outer) + 2
        row, column = AffineDimExpr(rank - 2), AffineDimExpr(rank - 1)
        terms: list[AffineExpr] = []
        stride = down * beside
        for dim in reversed(range(len(outer))):
            if outer[dim] > 1:
                terms.insert(0, _times(AffineDimExpr(dim), stride))
            stride *= outer[dim]
        if down * beside > 1:
            terms.append(_times(_floordiv(row, chip_grid[0]), beside))
        if beside > 1:
            terms.append(_floordiv(column, chip_grid[1]))
        chip: AffineExpr = terms[0] if terms else AffineConstantExpr(0)
        for term in terms[1:]:
            chip = _plus(chip, term)
        results = (
            chip,
            _mod(row, chip_grid[0]) if down > 1 else row,
            _mod(column, chip_grid[1]) if beside > 1 else column,
        )
        chips = tuple(range(prod(mesh))) if chip_ids is None else tuple(chip_ids)
        return cls(
            (*outer, down * chip_grid[0], beside * chip_grid[1]),
            AffineMap(rank, 0, results),
            mesh,
            chips,
            chip_grid,
            dram_banks,
        )

    @classmethod
    def of_system(cls, system: SystemDescription, mesh_shape: Sequence[int] = (1,)) -> Device:
        """Creates a grid over the first chips of a system, as many as the mesh has."""
        chip = system.chip
        return cls.create(mesh_shape, chip.grid, dram_banks=chip.dram_grid[0] * chip.dram_grid[1])

    @classmethod
    def of(cls, device: DeviceDescription, chip_grid: tuple[int, int] = N150.grid) -> Device:
        """Creates the device that an attribute describes; raises ValueError if it has no map."""
        mapping = device.worker_grid.mapping
        if mapping is None:
            raise ValueError("the grid of the device has no map to its chips")
        banks = N150.num_dram_channels if device.dram_grid is None else prod(device.dram_grid.shape)
        mesh = device.mesh_shape or (1,)
        return cls(device.worker_grid.shape, mapping, mesh, device.chip_ids, chip_grid, banks)

    def reinterpret(self, grid: Sequence[int], worker_map: AffineMap) -> Device:
        """Returns another view of the same chips.

        Raises ValueError if the map leaves the chips, or maps two grid positions to one core.
        """
        changed = replace(self, grid=tuple(grid), worker_map=worker_map)
        if len(changed.logical_cores) != prod(changed.grid):
            raise ValueError("two positions of the grid are the same core")
        chips = len(self.chip_ids)
        for core in changed.logical_cores:
            sides = (chips, *self.chip_grid)
            if not all(
                0 <= place < side
                for place, side in zip((core.chip, core.row, core.column), sides, strict=True)
            ):
                raise ValueError(f"the map of the grid leads to {core}, which there is not")
        return changed

    # Cores

    def physical_core(self, core: Sequence[int]) -> PhysicalCore:
        """Returns the chip, row and column of a grid position.

        The chip is its index in the mesh; `chip_ids` has its number in the system. Raises
        ValueError if the position is not in the grid.
        """
        if len(core) != len(self.grid) or not all(
            0 <= place < side for place, side in zip(core, self.grid, strict=True)
        ):
            raise ValueError(f"{tuple(core)} is no core of the grid {shape_text(self.grid)}")
        return PhysicalCore(*self.worker_map.eval(list(core), []))

    @cached_property
    def logical_cores(self) -> dict[PhysicalCore, Shape]:
        """Grid position of each core."""
        places = product(*(range(side) for side in self.grid))
        return {self.physical_core(place): place for place in places}

    def locate(self, layout: TensorLayout, index: Sequence[int]) -> tuple[PhysicalCore, int]:
        """Returns the core of a tensor element and the element's offset in its shard.

        Raises ValueError if the layout's grid does not fit on the device's.
        """
        self.check(layout)
        place = layout.locate(index)
        return self.physical_core(place.core), place.offset

    def check(self, layout: TensorLayout) -> None:
        """Raises ValueError unless the layout's grid fits on the device's."""
        if len(layout.grid) != len(self.grid) or any(
            used > side for used, side in zip(layout.grid, self.grid, strict=True)
        ):
            raise ValueError(
                f"the layout's grid {shape_text(layout.grid)} does not fit on the device's, "
                f"{shape_text(self.grid)}"
            )

    # Memories

    @property
    def l1_map(self) -> AffineMap:
        """Maps grid position and shard byte to chip, row, column and address.

        The symbol is the address of the buffer.
        """
        rank = len(self.grid)
        address = _plus(AffineDimExpr(rank), AffineSymExpr(0))
        return AffineMap(rank + 1, 1, (*self.worker_map.results, address))

    @property
    def dram_map(self) -> AffineMap:
        """Maps grid position and shard byte to chip, 0, bank and address.

        Pages are interleaved over the banks. The symbols are the shape of the tensor's grid, the
        shape of its shard, the page size, the address of the buffer, and the size of an element.
        """
        rank = len(self.grid)
        page_size, base = AffineSymExpr(2 * rank), AffineSymExpr(2 * rank + 1)
        shard_bytes: AffineExpr = AffineSymExpr(2 * rank + 2)
        for dim in reversed(range(rank)):
            shard_bytes = _by(AffineSymExpr(rank + dim), shard_bytes)
        # Row-major index of the core.
        core: AffineExpr = AffineDimExpr(0)
        for dim in range(1, rank):
            core = _plus(_by(core, AffineSymExpr(dim)), AffineDimExpr(dim))
        byte = _plus(_by(core, shard_bytes), AffineDimExpr(rank))
        page = AffineBinaryOpExpr(AffineBinaryOpKind.FloorDiv, byte, page_size)
        in_bank = _by(_floordiv(page, self.dram_banks), page_size)
        in_page = AffineBinaryOpExpr(AffineBinaryOpKind.Mod, byte, page_size)
        zero = AffineConstantExpr(0)
        return AffineMap(
            rank + 1,
            2 * rank + 3,
            (zero, zero, _mod(page, self.dram_banks), _plus(_plus(in_bank, in_page), base)),
        )

    def l1_address(
        self, core: Sequence[int], byte: int, buffer_address: int
    ) -> tuple[PhysicalCore, int]:
        """Returns core and address of a shard byte in L1."""
        chip, row, column, address = self.l1_map.eval([*core, byte], [buffer_address])
        return PhysicalCore(chip, row, column), address

    def dram_address(
        self,
        layout: TensorLayout,
        core: Sequence[int],
        byte: int,
        buffer_address: int,
        page_size: int,
    ) -> tuple[int, int]:
        """Returns bank and address of a shard byte in DRAM."""
        self.check(layout)
        shard_bytes = layout.shard_bytes
        # Passes the shard's bytes as its shape with elements of size 1, because tiles may have
        # shared exponents.
        shape = (1,) * (len(self.grid) - 1) + (shard_bytes,)
        symbols = [*layout.grid, *shape, page_size, buffer_address, 1]
        _, _, bank, address = self.dram_map.eval([*core, byte], symbols)
        return bank, address

    # Text

    @property
    def description(self) -> DeviceDescription:
        """Description of the attribute, without memory maps."""
        return DeviceDescription(Grid(self.grid, self.worker_map), self.mesh_shape, self.chip_ids)

    @property
    def full_description(self) -> DeviceDescription:
        """Description with the DRAM banks and memory maps."""
        return replace(
            self.description,
            dram_grid=Grid((1, self.dram_banks)),
            l1_map=self.l1_map,
            dram_map=self.dram_map,
        )

    @property
    def attribute(self) -> DeviceAttr:
        """The device as an attribute, without memory maps."""
        return DeviceAttr(self.description)

    def __str__(self) -> str:
        return f"#ttcore.device{device_text(self.description)}"


def _plus(lhs: AffineExpr, rhs: AffineExpr) -> AffineExpr:
    return AffineBinaryOpExpr(AffineBinaryOpKind.Add, lhs, rhs)


def _by(lhs: AffineExpr, rhs: AffineExpr) -> AffineExpr:
    return AffineBinaryOpExpr(AffineBinaryOpKind.Mul, lhs, rhs)


def _times(expression: AffineExpr, factor: int) -> AffineExpr:
    return expression if factor == 1 else _by(expression, AffineConstantExpr(factor))


def _floordiv(expression: AffineExpr, divisor: int) -> AffineExpr:
    kind = AffineBinaryOpKind.FloorDiv
    return AffineBinaryOpExpr(kind, expression, AffineConstantExpr(divisor))


def _mod(expression: AffineExpr, divisor: int) -> AffineExpr:
    return AffineBinaryOpExpr(AffineBinaryOpKind.Mod, expression, AffineConstantExpr(divisor))


# Model of the L1 allocator.
#
# It allocates in the highest gap that is large enough (free_list_opt.cpp); circular buffers grow
# upwards to the lowest tensor (measured, tt-metal).

Block = tuple[int, int]
"""Begin and end address of a block of memory."""


class Bank:
    """L1 of one core; all cores have the same allocations."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._taken: list[Block] = []
        """Allocated blocks, in the order of addresses."""

    @property
    def lowest(self) -> int:
        """Lowest allocated address."""
        return self._taken[0][0] if self._taken else self.size

    @property
    def gaps(self) -> int:
        """Free bytes above the lowest allocated address."""
        return self.size - self.lowest - sum(end - start for start, end in self._taken)

    def allocate(self, size: int) -> Block:
        """Allocates the highest gap of that size; the block begins below zero if there is none."""
        end = self.size
        for start, taken_end in reversed(self._taken):
            if end - taken_end >= size:
                break
            end = start
        found = (end - size, end)
        insort(self._taken, found)
        return found

    def free(self, block: Block) -> None:
        """Frees a block."""
        self._taken.remove(block)


_PADDING = {"zero": 0.0, "one": 1.0, "inf": float("inf"), "neginf": float("-inf"), "undef": 0.0}


def offsets(layout: TensorLayout) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns the core and the shard offset of each element.

    Cores are row-major grid indices; both arrays have the shape of the tensor.
    """
    import numpy as np

    places = [_collapsed_positions(layout, row) for row in layout.coefficients]
    core: Any = np.zeros((), np.int64)
    positions: list[Any] = []
    for place, part, side in zip(places, layout.shard_shape, layout.grid, strict=True):
        core = core * side + place // part
        positions.append(place % part)
    offset: Any = _offset(layout, positions)
    return (
        np.broadcast_to(core, layout.shape),
        np.broadcast_to(offset, layout.shape),
    )


def _collapsed_positions(layout: TensorLayout, row: Shape) -> Any:
    """Returns positions in one collapsed dimension, broadcastable to the shape of the tensor."""
    import numpy as np

    total: Any = np.zeros((1,) * len(layout.shape), np.int64)
    for dim, factor in enumerate(row):
        if factor:
            along = [1] * len(layout.shape)
            along[dim] = layout.shape[dim]
            total = total + factor * np.arange(layout.shape[dim], dtype=np.int64).reshape(along)
    return total


def _offset(layout: TensorLayout, positions: list[Any]) -> Any:
    if layout.tile is None:
        return _linear(positions, layout.shard_shape)
    rows, columns = layout.tile
    *outer, row, column = positions
    tile = _linear([*outer, row // rows, column // columns], layout.memref_shape)
    return tile * rows * columns + offset_in_tile(row % rows, column % columns, layout.tile)


def _linear(positions: list[Any], shape: Shape) -> Any:
    total: Any = 0
    for position, size in zip(positions, shape, strict=True):
        total = total * size + position
    return total


def to_shards(layout: TensorLayout, array: NDArray[Any]) -> NDArray[Any]:
    """Returns the shards of a tensor, an array of the grid's shape and one dimension of shard
    memory.

    Padding holds the value that the layout specifies. Raises ValueError if the array has another
    shape than the tensor, or an infinity should pad integers.
    """
    import numpy as np

    if array.shape != layout.shape:
        raise ValueError(f"the layout is for the shape {layout.shape}, not {array.shape}")
    fill = _PADDING[layout.out_of_bounds.value]
    if not np.isfinite(fill) and np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"there is no {layout.out_of_bounds.value} among integers")
    size = volume(layout.padded_shard_shape)
    shards = np.full((layout.cores, size), fill, array.dtype)
    core, offset = offsets(layout)
    shards[core, offset] = array
    return shards.reshape(*layout.grid, size)


def from_shards(layout: TensorLayout, shards: NDArray[Any]) -> NDArray[Any]:
    """Returns the tensor of shards; raises ValueError if they are of another size."""
    size = volume(layout.padded_shard_shape)
    if shards.shape != (*layout.grid, size):
        raise ValueError(f"the shards are {(*layout.grid, size)}, not {shards.shape}")
    core, offset = offsets(layout)
    return shards.reshape(layout.cores, size)[core, offset]
