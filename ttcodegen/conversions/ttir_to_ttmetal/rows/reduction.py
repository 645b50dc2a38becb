"""How compute kernels reduce rows to one element each, and repeat that over a tile.

The circular buffers `scaler`, what the matrix engine multiplies by, and `reduced`, the result in
the first column of a tile, belong to each program that does so.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from ttcodegen.conversions.ttir_to_ttmetal.parts.compute import ComputeKernel
from ttcodegen.dialects.ttkernel.attributes import BroadcastType, ReduceDim, ReduceType
from ttcodegen.dialects.ttkernel.builder import Value

SCALER, REDUCED, PARTIAL = "scaler", "reduced", "partial"
"""The names of the circular buffers; `partial` holds what tiles came to, element by element."""


def reduce_row(
    kernel: ComputeKernel, source: str, pool: ReduceType, tiles: Value, streams: bool
) -> None:
    """Reduces so many tiles of a circular buffer, which are given back one by one if they stream,
    to the first column of a tile in `reduced`."""
    kind = {"reduce_type": pool, "reduce_dim": ReduceDim.ROW}
    kernel.op("reconfig_data_format", source, SCALER)
    kernel.op("reduce_init", source, SCALER, REDUCED, **kind)
    with kernel.builder.destination_registers():
        with kernel.builder.loop(tiles, name_hint="column") as column:
            if streams:
                kernel.wait([source])
            kernel.op("reduce_tile", source, SCALER, 0 if streams else column, 0, 0, **kind)
            if streams:
                kernel.pop([source])
        kernel.pack_when_free([(0, REDUCED)])
        kernel.op("reduce_uninit")
    kernel.push([REDUCED])


@contextmanager
def repeated_row(kernel: ComputeKernel) -> Generator[None]:
    """What is computed inside finds what `reduce_row` left, repeated over all columns, in the first
    destination register; it has to pack."""
    column = {"bcast_type": BroadcastType.COL}
    kernel.wait([REDUCED])
    kernel.op("unary_bcast_init", REDUCED, REDUCED, **column)
    with kernel.builder.destination_registers():
        kernel.op("unary_bcast", REDUCED, 0, 0, **column)
        kernel.op("unary_bcast_uninit", REDUCED, **column)
        kernel.forget_formats()
        yield
    kernel.pop([REDUCED])
