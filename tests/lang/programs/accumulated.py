"""Sums that are kept in a dataflow buffer, and a block that is stored into, read and stored into
again."""

import sys

import numpy as np
import ttl
import ttnn

STEPS = int(sys.argv[1])


@ttl.operation(grid=(1, 1))
def __accumulate(a: ttnn.Tensor, b: ttnn.Tensor, c: ttnn.Tensor, y: ttnn.Tensor) -> None:
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 2))
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=(2, 1))
    c_dfb = ttl.make_dataflow_buffer_like(c, shape=(1, 1))
    acc_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1))
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1))

    @ttl.datamovement()
    def read():
        with c_dfb.reserve() as c_blk:
            ttl.copy(c[0, 0], c_blk).wait()
        for k in range(STEPS):
            with a_dfb.reserve() as a_blk, b_dfb.reserve() as b_blk:
                ttl.copy(a[0, 2 * k : 2 * k + 2], a_blk).wait()
                ttl.copy(b[2 * k : 2 * k + 2, 0], b_blk).wait()

    @ttl.compute()
    def compute():
        with acc_dfb.reserve() as acc_blk:
            acc_blk.store(ttl.math.fill(acc_blk, 0))
        for _ in range(STEPS):
            with a_dfb.wait() as a_blk, b_dfb.wait() as b_blk, acc_dfb.wait() as pre_acc_blk:
                with acc_dfb.reserve() as acc_blk:
                    acc_blk.store(pre_acc_blk + a_blk @ b_blk)
        with c_dfb.wait() as c_blk, acc_dfb.wait() as acc_blk:
            with y_dfb.reserve() as y_blk:
                y_blk.store(ttl.math.relu(c_blk + acc_blk))
        with y_dfb.reserve() as y_blk:
            y_blk.store(ttl.block.fill(2, shape=(1, 1)))
            for _ in range(2):
                y_blk += y_blk
            y_blk.store(ttl.math.exp(-y_blk) + y_blk)

    @ttl.datamovement()
    def write():
        for i in range(2):
            with y_dfb.wait() as y_blk:
                ttl.copy(y_blk, y[0, i]).wait()


def random(rows, columns, seed):
    elements = np.random.default_rng(seed).standard_normal((rows * 32, columns * 32))
    return ttnn.from_torch(elements, ttnn.float32, layout=ttnn.TILE_LAYOUT)


a, b, c = random(1, 2 * STEPS, 1), random(2 * STEPS, 1, 2), random(1, 1, 3)
y = ttnn.zeros((32, 64), ttnn.float32)
__accumulate(a, b, c, y)

first = np.maximum(a.elements() @ b.elements() + c.elements(), 0)
second = np.full((32, 32), np.exp(-8) + 8)
results = {"y": (y.elements(), np.hstack([first, second]))}
