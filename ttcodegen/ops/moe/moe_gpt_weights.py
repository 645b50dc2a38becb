"""Weights of experts in the order in which the cores of `moe_gpt` read them.

Each core has the columns of some tiles: of gate and up weights (cores, layers, experts, pairs,
rows, 128), four tiles in a pair: gate, up, gate, up; and of down weights (cores, layers, experts,
2, rows, 128), four tiles in each half. A core that has one tile less has a tile of zeros at its
end. Rows of down weights begin with the columns of gate and up weights that the core itself has,
followed by those of the core before it, and so on around the ring of cores. A tile of rows after
these is the bias: the sum of its rows (a product with ones in
`moe_gpt/device/kernels/compute.cpp` of tt-metal 0.70.1, whose test prepares weights so:
`test_moe_gpt_e2e.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import shape_of
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.core.builder import OpBuilder

_TILE = 32
_DOWN_TILES = 8
"""Tiles that a core has of the columns of down weights, unless it has one less."""


def _tiles_of_cores(total: int, cores: int, most: int) -> list[int] | None:
    """Counts the tiles of each core, or returns None if they do not add up to `total`.

    Each core has its maximum or, on the third and fourth of each four, one tile less.
    """
    for less in (0, 1):
        tiles = [most - less * (core % 4 > 1) for core in range(cores)]
        if sum(tiles) == total:
            return tiles
    return None


@dataclass(frozen=True)
class ExpertWeights:
    """Layout of expert weights: the columns of each core and the bias rows."""

    cores: int
    experts: int
    hidden: int
    inner: int
    has_bias: bool
    inner_tiles: tuple[int, ...]
    hidden_tiles: tuple[int, ...]

    @staticmethod
    def of(gate_up: Sequence[int], down: Sequence[int], hidden: int) -> ExpertWeights | str:
        """From the shapes of both weights, of tokens of `hidden` elements; a string says what does
        not fit."""
        cores, _, experts, pairs, rows, _ = gate_up
        if rows not in (hidden, hidden + _TILE):
            return (
                f"w0_w1_tensor of {hidden} rows, or of {hidden + _TILE} with biases, found {rows}"
            )
        has_bias = rows > hidden
        inner = down[4] - _TILE * has_bias
        if hidden % _TILE or inner % _TILE or inner <= 0:
            return f"rows of whole tiles, found {hidden} and {inner}"
        tiles = _tiles_of_cores(inner // _TILE, cores, 2 * pairs)
        if tiles is None:
            most = 2 * pairs
            return (
                f"columns of w0_w1_tensor for the {inner // _TILE} tiles of rows of w2_tensor, "
                f"found {cores} cores with {most} each"
            )
        columns = _tiles_of_cores(hidden // _TILE, cores, _DOWN_TILES)
        if columns is None:
            return (
                f"a hidden_size of {_DOWN_TILES} tiles for each of {cores} cores, or one less for "
                f"the third and fourth of each four, found {hidden // _TILE} tiles"
            )
        return ExpertWeights(cores, experts, hidden, inner, has_bias, tuple(tiles), tuple(columns))

    def _parts_of_rows(self, core: int) -> list[tuple[int, int]]:
        """Row ranges of a core that correspond to the columns of each core, in core order."""
        places: dict[int, tuple[int, int]] = {}
        begin = 0
        for step in range(self.cores):
            source = (core - step) % self.cores
            size = self.inner_tiles[source] * _TILE
            places[source] = (begin, begin + size)
            begin += size
        parts = [places[source] for source in range(self.cores)]
        return [*parts, (begin, begin + _TILE)] if self.has_bias else parts

    # numpy

    def gate_and_up(self, packed: Array, layer: int) -> list[Array]:
        """Both (experts, rows, inner)."""
        values = packed[:, layer].reshape(*packed[:, layer].shape[:4], 2, 2, _TILE)
        # cores, experts, pairs, rows, tile of the pair, gate or up, column
        values = np.transpose(values, (5, 1, 3, 0, 2, 4, 6))
        values = values.reshape(*values.shape[:4], -1)
        return [
            np.concatenate(
                [each[:, :, core, : tiles * _TILE] for core, tiles in enumerate(self.inner_tiles)],
                axis=2,
            )
            for each in values
        ]

    def down(self, packed: Array, layer: int) -> Array:
        """(experts, rows, hidden)."""
        values = np.transpose(packed[:, layer], (0, 1, 3, 2, 4))
        values = values.reshape(*values.shape[:3], -1)
        columns: list[Array] = []
        for core, tiles in enumerate(self.hidden_tiles):
            own = values[core, :, :, : tiles * _TILE]
            parts = [own[:, begin:end] for begin, end in self._parts_of_rows(core)]
            columns.append(np.concatenate(parts, axis=1))
        return np.concatenate(columns, axis=2)

    def product(self, values: Array, weight: Array) -> Array:
        """Of rows with a weight, and its bias."""
        rows = values.shape[-1]
        made = values @ weight[:, :rows]
        return made + weight[:, rows:].sum(axis=1, keepdims=True) if self.has_bias else made

    # ops of TTIR

    def emit_gate_and_up(self, builder: OpBuilder, packed: SSAValue, layer: int) -> list[SSAValue]:
        """As `gate_and_up`."""
        cores, _, experts, pairs, rows, _ = shape_of(packed.type)
        values = builder.slice_dim(packed, 1, layer, layer + 1)
        values = builder.reshape(values, (cores * experts * pairs, rows, 4 * _TILE))
        found: list[SSAValue] = []
        for which in (0, 1):
            halves: list[SSAValue] = []
            for pair in (0, 1):
                begin = (2 * pair + which) * _TILE
                half = builder.slice_dim(values, 2, begin, begin + _TILE)
                halves.append(builder.reshape(half, (cores * experts * pairs, 1, rows, _TILE)))
            tiles = builder.concat(halves, 1)
            tiles = builder.reshape(tiles, (cores, experts, 2 * pairs * rows, _TILE))
            columns: list[SSAValue] = []
            for core, count in enumerate(self.inner_tiles):
                own = builder.slice_dim(tiles, 0, core, core + 1)
                own = builder.reshape(own, (experts, 2 * pairs, rows, _TILE))
                own = builder.permute(builder.slice_dim(own, 1, 0, count), [0, 2, 1, 3])
                columns.append(builder.reshape(own, (experts, rows, count * _TILE)))
            found.append(builder.concat(columns, 2))
        return found

    def emit_down(self, builder: OpBuilder, packed: SSAValue, layer: int) -> SSAValue:
        """As `down`."""
        _, _, experts, halves, rows, width = shape_of(packed.type)
        columns: list[SSAValue] = []
        for core, count in enumerate(self.hidden_tiles):
            own = builder.slice_dim(packed, 0, core, core + 1)
            own = builder.slice_dim(own, 1, layer, layer + 1)
            own = builder.reshape(own, (experts, halves, rows, width))
            own = builder.permute(own, [0, 2, 1, 3])
            own = builder.reshape(own, (experts, rows, halves * width))
            own = builder.slice_dim(own, 2, 0, count * _TILE)
            parts = [
                builder.slice_dim(own, 1, begin, end) for begin, end in self._parts_of_rows(core)
            ]
            columns.append(builder.concat(parts, 1))
        return builder.concat(columns, 2)
