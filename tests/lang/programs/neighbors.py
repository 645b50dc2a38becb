"""Nodes that go on one after the other along a row, with functions that their kernels share."""

import sys

import numpy as np
import ttl
import ttnn

COLS, ROWS = map(int, sys.argv[1:])


@ttl.operation(grid=(COLS, ROWS))
def __neighbors(x: ttnn.Tensor, y: ttnn.Tensor) -> None:
    col, row = ttl.node(dims=2)
    turn = ttl.Semaphore()
    done = ttl.Semaphore()
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 1))
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1))

    def load(tensor, dfb, place):
        with dfb.reserve() as blk:
            ttl.copy(tensor[place], blk).wait()

    def scaled(blk, factor=2):
        return blk * ttl.block.fill(factor, shape=(1, 1))

    @ttl.datamovement()
    def read():
        if col != 0:
            turn.wait_ge(1)
        load(x, x_dfb, (row, col))
        if col < COLS - 1:
            turn.get_remote((col + 1, row)).inc(1)
        elif row == 0:
            done.get_remote_multicast((slice(0, COLS), slice(0, ROWS))).set(row + 1)

    @ttl.compute()
    def compute():
        if row - 1 >= 0 and col > 0:
            return
        with x_dfb.wait() as x_blk, y_dfb.reserve() as y_blk:
            y_blk.store(scaled(x_blk, factor=3) + scaled(x_blk))

    @ttl.datamovement()
    def write():
        if not (row == 0 or col == 0):
            return
        done.wait_eq(1)
        for dfb, tensor in ((y_dfb, y),):
            with dfb.wait() as y_blk:
                ttl.copy(y_blk, tensor[row, col]).wait()


elements = np.random.default_rng(0).random((32 * ROWS, 32 * COLS), np.float32)
x = ttnn.from_torch(elements, layout=ttnn.TILE_LAYOUT)
y = ttnn.zeros(x.shape, ttnn.float32)
__neighbors(x, y)

expected = 5 * elements
expected[32:, 32:] = 0
results = {"y": (y.elements(), expected)}
