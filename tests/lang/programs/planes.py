"""Sums and maxima over planes of tiles: blocks of three dimensions."""

import sys

import numpy as np
import ttl
import ttnn

PLANES, ROWS, COLUMNS = map(int, sys.argv[1:])
WHOLE, FLAT = (PLANES, ROWS, COLUMNS), (1, ROWS, COLUMNS)


@ttl.operation(grid=(1, 1))
def __planes(x: ttnn.Tensor, y: ttnn.Tensor) -> None:
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=WHOLE)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=FLAT)

    @ttl.datamovement()
    def read():
        with x_dfb.reserve() as x_blk:
            ttl.copy(x[:, :, :], x_blk).wait()

    @ttl.compute()
    def compute():
        with x_dfb.wait() as x_blk:
            with y_dfb.reserve() as y_blk:
                y_blk.store(ttl.math.reduce_sum(x_blk, dims=[0], shape=FLAT))
            with y_dfb.reserve() as y_blk:
                y_blk.store(ttl.math.reduce_max(-x_blk, dims=[0], shape=FLAT))
            with y_dfb.reserve() as y_blk:
                total = ttl.math.reduce_sum(x_blk * x_blk, dims=[0, -1], shape=(1, ROWS, 1))
                y_blk.store(ttl.block.broadcast(total, dims=[-1], shape=FLAT))

    @ttl.datamovement()
    def write():
        for plane in range(3):
            with y_dfb.wait() as y_blk:
                ttl.copy(y_blk, y[plane : plane + 1, :, :]).wait()


elements = np.random.default_rng(1).standard_normal((PLANES, 32 * ROWS, 32 * COLUMNS))
x = ttnn.from_torch(elements, ttnn.float32, layout=ttnn.TILE_LAYOUT)
y = ttnn.zeros((3, 32 * ROWS, 32 * COLUMNS), ttnn.float32)
__planes(x, y)

given = x.elements()
squares = (given * given).sum((0, 2), keepdims=True)
expected = [
    given.sum(0),
    (-given).max(0),
    np.broadcast_to(squares[0], (32 * ROWS, 32 * COLUMNS)),
]
results = {"y": (y.elements(), np.stack(expected))}
