"""The RMS norm of each row times a row of weights, a node for each row of tiles.

rms_norm.py ROWS COLUMNS
"""

import sys

import numpy as np
import ttl
import ttnn

ROWS, COLUMNS = (int(size) // 32 for size in sys.argv[1:])
EPSILON = 1e-5


@ttl.operation(grid=(1, ROWS))
def rms_norm(x: ttnn.Tensor, weight: ttnn.Tensor, y: ttnn.Tensor) -> None:
    _, row = ttl.node(dims=2)
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, COLUMNS), block_count=1)
    weight_dfb = ttl.make_dataflow_buffer_like(weight, shape=(1, COLUMNS), block_count=1)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, COLUMNS), block_count=1)

    @ttl.datamovement()
    def read():
        with x_dfb.reserve() as x_blk:
            ttl.copy(x[row, :], x_blk).wait()
        with weight_dfb.reserve() as weight_blk:
            ttl.copy(weight[0, :], weight_blk).wait()

    @ttl.compute()
    def compute():
        with x_dfb.wait() as x_blk, y_dfb.reserve() as y_blk:
            squares = ttl.math.reduce_sum(ttl.math.square(x_blk), dims=[-1], shape=(1, 1))
            mean = squares * ttl.block.fill(1 / (32 * COLUMNS), shape=(1, 1))
            scale = ttl.math.rsqrt(mean + ttl.block.fill(EPSILON, shape=(1, 1)))
            with weight_dfb.wait() as weight_blk:
                scaled = x_blk * ttl.block.broadcast(scale, dims=[-1], shape=(1, COLUMNS))
                y_blk.store(scaled * ttl.block.broadcast(weight_blk, dims=[0], shape=(1, COLUMNS)))

    @ttl.datamovement()
    def write():
        with y_dfb.wait() as y_blk:
            ttl.copy(y_blk, y[row, :]).wait()


def tensor(rows, columns):
    values = np.random.default_rng(0).standard_normal([rows, 32 * columns])
    return ttnn.from_torch(values, ttnn.bfloat16, layout=ttnn.TILE_LAYOUT)


rms_norm(tensor(32 * ROWS, COLUMNS), tensor(1, COLUMNS), tensor(32 * ROWS, COLUMNS))
