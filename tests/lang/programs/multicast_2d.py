"""A matmul: the first column of nodes sends rows of `a`, the first row columns of `b`.

    multicast_2d.py SENDER BLOCKS

SENDER is the column, and the row, that sends; BLOCKS how many blocks of each buffer there are.
"""

# ruff: noqa: B023

import sys

import numpy as np
import ttl
import ttnn

SENDER, BLOCKS = map(int, sys.argv[1:])
SIDE, STEPS = 3, 4


@ttl.operation(grid=(SIDE, SIDE))
def product(a: ttnn.Tensor, b: ttnn.Tensor, y: ttnn.Tensor) -> None:
    column, row = ttl.node(dims=2)
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(2, 1), block_count=BLOCKS)
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=(1, 2), block_count=BLOCKS)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(2, 2), block_count=1)
    a_net = ttl.PipeNet([ttl.Pipe(src=(SENDER, n), dst=(slice(0, SIDE), n)) for n in range(SIDE)])
    b_net = ttl.PipeNet([ttl.Pipe(src=(n, SENDER), dst=(n, slice(0, SIDE))) for n in range(SIDE)])

    @ttl.datamovement()
    def read():
        for step in range(STEPS):
            with a_dfb.reserve() as a_blk:

                def send_a(pipe):
                    ttl.copy(a[2 * row : 2 * row + 2, step : step + 1], a_blk).wait()
                    ttl.copy(a_blk, pipe).wait()

                def take_a(pipe):
                    ttl.copy(pipe, a_blk).wait()

                a_net.if_src(send_a)
                a_net.if_dst(take_a)

            with b_dfb.reserve() as b_blk:

                def send_b(pipe):
                    ttl.copy(b[step : step + 1, 2 * column : 2 * column + 2], b_blk).wait()
                    ttl.copy(b_blk, pipe).wait()

                def take_b(pipe):
                    ttl.copy(pipe, b_blk).wait()

                b_net.if_src(send_b)
                b_net.if_dst(take_b)

    @ttl.compute()
    def compute():
        total = ttl.block.fill(0, shape=(2, 2))
        for _ in range(STEPS):
            with a_dfb.wait() as a_blk, b_dfb.wait() as b_blk:
                total += a_blk @ b_blk
        with y_dfb.reserve() as y_blk:
            y_blk.store(total)

    @ttl.datamovement()
    def write():
        with y_dfb.wait() as y_blk:
            ttl.copy(y_blk, y[2 * row : 2 * row + 2, 2 * column : 2 * column + 2]).wait()


draw = np.random.default_rng(3).uniform
a = ttnn.from_torch(draw(-1, 1, (64 * SIDE, 32 * STEPS)), layout=ttnn.TILE_LAYOUT)
b = ttnn.from_torch(draw(-1, 1, (32 * STEPS, 64 * SIDE)), layout=ttnn.TILE_LAYOUT)
y = ttnn.zeros((64 * SIDE, 64 * SIDE), layout=ttnn.TILE_LAYOUT)
product(a, b, y)
