"""Prefix sums of rows: products with a triangle of ones, and the sums of the blocks before."""

import numpy as np
import ttl
import ttnn

ROWS, COLS = 3, 4


def tiled(array):
    return ttnn.from_torch(array, layout=ttnn.TILE_LAYOUT)


@ttl.operation(grid=(1, ROWS))
def __prefix_sum(x: ttnn.Tensor, triangle: ttnn.Tensor, y: ttnn.Tensor) -> None:
    row = ttl.node(dims=1)
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 1))
    t_dfb = ttl.make_dataflow_buffer_like(triangle, shape=(1, 1))
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1))

    @ttl.datamovement()
    def read():
        t_blk = t_dfb.reserve()
        t_xf = ttl.copy(triangle[0, 0], t_blk)
        t_xf.wait()
        t_blk.push()
        for c in range(COLS):
            with x_dfb.reserve() as x_blk:
                ttl.copy(x[row, c], x_blk).wait()

    @ttl.compute()
    def compute():
        with t_dfb.wait() as t_blk:
            carried = ttl.block.fill(0, shape=(1, 1))
            for _ in range(COLS):
                with x_dfb.wait() as x_blk, y_dfb.reserve() as y_blk:
                    y_blk.store(x_blk @ t_blk + carried)
                    total = ttl.math.reduce_sum(x_blk, dims=[-1], shape=(1, 1))
                    carried += ttl.block.broadcast(total, dims=[-1], shape=(1, 1))

    @ttl.datamovement()
    def write():
        for c in range(COLS):
            with y_dfb.wait() as y_blk:
                ttl.copy(y_blk, y[row, c]).wait()


rng = np.random.default_rng(5)
x = rng.random((32 * ROWS, 32 * COLS)).astype(np.float32)
y = ttnn.zeros(x.shape, ttnn.float32)
__prefix_sum(
    tiled(x),
    tiled(np.triu(np.ones((32, 32), np.float32))),
    y,
)
results = {"y": (ttnn.to_torch(y), np.cumsum(x, 1))}
