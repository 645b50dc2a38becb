"""A sum and functions of its elements, `sigmoid(sqrt(|a + b|))`, on 8x8 nodes.

chain.py ROWS COLUMNS
"""

import sys

import numpy as np
import ttl
import ttnn

ROWS, COLUMNS = (int(size) // 32 for size in sys.argv[1:])


@ttl.operation(grid=(8, 8))
def chain(a: ttnn.Tensor, b: ttnn.Tensor, y: ttnn.Tensor) -> None:
    node = ttl.node(dims=1)
    each = ROWS // 64
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 4))
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=(1, 4))
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 4))

    @ttl.datamovement()
    def read():
        for row in range(each):
            for column in range(0, COLUMNS, 4):
                here = (node * each + row, slice(column, column + 4))
                with a_dfb.reserve() as a_blk, b_dfb.reserve() as b_blk:
                    a_xf = ttl.copy(a[here], a_blk)
                    b_xf = ttl.copy(b[here], b_blk)
                    a_xf.wait()
                    b_xf.wait()

    @ttl.compute()
    def compute():
        for _ in range(each * COLUMNS // 4):
            with a_dfb.wait() as a_blk, b_dfb.wait() as b_blk, y_dfb.reserve() as y_blk:
                y_blk.store(ttl.math.sigmoid(ttl.math.sqrt(abs(a_blk + b_blk))))

    @ttl.datamovement()
    def write():
        for row in range(each):
            for column in range(0, COLUMNS, 4):
                with y_dfb.wait() as y_blk:
                    here = (node * each + row, slice(column, column + 4))
                    ttl.copy(y_blk, y[here]).wait()


def tensor(*tiles):
    values = np.random.default_rng(0).standard_normal([32 * size for size in tiles])
    return ttnn.from_torch(values, ttnn.bfloat16, layout=ttnn.TILE_LAYOUT)


chain(tensor(ROWS, COLUMNS), tensor(ROWS, COLUMNS), tensor(ROWS, COLUMNS))
