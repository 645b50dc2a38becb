"""Blocks of rows, and of parts of rows, of row-major tensors: each node computes with its share."""

import sys

import numpy as np
import ttl
import ttnn

ROWS, COLUMNS, HEIGHT, WIDTH, NODES = map(int, sys.argv[1:6])
DTYPE = {"f32": ttnn.float32, "bf16": ttnn.bfloat16, "i32": ttnn.int32}[sys.argv[6]]


@ttl.operation(grid=(NODES, 1))
def __row_major(x: ttnn.Tensor, w: ttnn.Tensor, y: ttnn.Tensor, largest: ttnn.Tensor) -> None:
    shape = (HEIGHT, WIDTH)
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=shape)
    w_dfb = ttl.make_dataflow_buffer_like(w, shape=(WIDTH,))
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=shape)
    largest_dfb = ttl.make_dataflow_buffer_like(largest, shape=(WIDTH,))

    node, nodes = ttl.node(dims=1), ttl.grid_size(dims=1)
    bands = ROWS // HEIGHT

    @ttl.datamovement()
    def read():
        for column in range(node, COLUMNS // WIDTH, nodes):
            part = slice(column * WIDTH, (column + 1) * WIDTH)
            for row in range(ROWS):
                with w_dfb.reserve() as w_blk:
                    ttl.copy(w[row, part], w_blk).wait()
            for band in range(bands):
                with x_dfb.reserve() as x_blk:
                    ttl.copy(x[band * HEIGHT : (band + 1) * HEIGHT, part], x_blk).wait()

    @ttl.compute()
    def compute():
        for _ in range(node, COLUMNS // WIDTH, nodes):
            most = ttl.block.fill(-10, shape=(WIDTH,))
            for _ in range(ROWS):
                with w_dfb.wait() as w_blk:
                    most = ttl.math.max(most, w_blk * w_blk - w_blk)
            with largest_dfb.reserve() as largest_blk:
                largest_blk.store(most)
            for _ in range(bands):
                with x_dfb.wait() as x_blk, y_dfb.reserve() as y_blk:
                    three = ttl.block.fill(3, shape=shape)
                    y_blk.store(ttl.math.relu(x_blk) * three - abs(x_blk))

    @ttl.datamovement()
    def write():
        for column in range(node, COLUMNS // WIDTH, nodes):
            part = slice(column * WIDTH, (column + 1) * WIDTH)
            with largest_dfb.wait() as largest_blk:
                ttl.copy(largest_blk, largest[part]).wait()
            for band in range(bands):
                with y_dfb.wait() as y_blk:
                    ttl.copy(y_blk, y[band * HEIGHT : (band + 1) * HEIGHT, part]).wait()


def tensor(array):
    return ttnn.from_torch(array, dtype=DTYPE, layout=ttnn.ROW_MAJOR_LAYOUT)


kind = np.int32 if DTYPE is ttnn.int32 else np.float32
a, b = np.random.default_rng(3).integers(-9, 10, size=(2, ROWS, COLUMNS)).astype(kind)
y = ttnn.zeros((ROWS, COLUMNS), DTYPE, layout=ttnn.ROW_MAJOR_LAYOUT)
largest = ttnn.zeros((COLUMNS,), DTYPE, layout=ttnn.ROW_MAJOR_LAYOUT)
__row_major(tensor(a), tensor(b), y, largest)
results = {
    "y": (y.elements(), np.maximum(a, 0) * 3 - abs(a)),
    "largest": (largest.elements(), (b * b - b).max(axis=0)),
}
