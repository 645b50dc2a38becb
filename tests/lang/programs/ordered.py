"""Node 0 goes on when all others have read, and they when it says so."""

import sys

import numpy as np
import ttl
import ttnn

GRID_X, GRID_Y, START = map(int, sys.argv[1:])


@ttl.operation(grid=(GRID_X, GRID_Y))
def __ordered(x: ttnn.Tensor, y: ttnn.Tensor) -> None:
    node_num = ttl.node(dims=1)
    others = ttl.grid_size(dims=1) - 1
    have_read = ttl.Semaphore(START)
    may_go_on = ttl.Semaphore()
    node_0_have_read = have_read.get_remote((0, 0))
    all_may_go_on = may_go_on.get_remote_multicast()
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 1))
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1))

    @ttl.datamovement()
    def read():
        with x_dfb.reserve() as x_blk:
            ttl.copy(x[0, node_num], x_blk).wait()
        if node_num != 0:
            node_0_have_read.inc(1)
            may_go_on.wait_ge(1)
        else:
            have_read.wait_eq(START + others)
            all_may_go_on.set(1)

    @ttl.compute()
    def negate():
        with x_dfb.wait() as x_blk, y_dfb.reserve() as y_blk:
            y_blk.store(-x_blk)

    @ttl.datamovement()
    def write():
        with y_dfb.wait() as y_blk:
            ttl.copy(y_blk, y[0, node_num]).wait()


x = ttnn.rand((32, 32 * GRID_X * GRID_Y))
y = ttnn.zeros(x.shape)
__ordered(x, y)
results = {"y": (y.elements(), np.negative(x.elements()))}
