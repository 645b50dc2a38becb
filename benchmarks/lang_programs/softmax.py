"""The softmax of each row, with its maximum taken away, on 8x8 nodes.

softmax.py ROWS COLUMNS
"""

import sys

import numpy as np
import ttl
import ttnn

ROWS, COLUMNS = (int(size) // 32 for size in sys.argv[1:])


@ttl.operation(grid=(8, 8))
def softmax(x: ttnn.Tensor, y: ttnn.Tensor) -> None:
    node = ttl.node(dims=1)
    each = ROWS // 64
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, COLUMNS))
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, COLUMNS))

    @ttl.datamovement()
    def read():
        for row in range(node * each, (node + 1) * each):
            with x_dfb.reserve() as x_blk:
                ttl.copy(x[row, :], x_blk).wait()

    @ttl.compute()
    def compute():
        for _ in range(each):
            with x_dfb.wait() as x_blk, y_dfb.reserve() as y_blk:
                greatest = ttl.math.reduce_max(x_blk, dims=[-1], shape=(1, 1))
                rest = x_blk - ttl.block.broadcast(greatest, dims=[-1], shape=(1, COLUMNS))
                powers = ttl.math.exp(rest)
                total = ttl.math.reduce_sum(powers, dims=[-1], shape=(1, 1))
                part = ttl.math.recip(total)
                y_blk.store(powers * ttl.block.broadcast(part, dims=[-1], shape=(1, COLUMNS)))

    @ttl.datamovement()
    def write():
        for row in range(node * each, (node + 1) * each):
            with y_dfb.wait() as y_blk:
                ttl.copy(y_blk, y[row, :]).wait()


def tensor(*tiles):
    values = np.random.default_rng(0).standard_normal([32 * size for size in tiles])
    return ttnn.from_torch(values, ttnn.bfloat16, layout=ttnn.TILE_LAYOUT)


softmax(tensor(ROWS, COLUMNS), tensor(ROWS, COLUMNS))
