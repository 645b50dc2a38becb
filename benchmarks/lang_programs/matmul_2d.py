"""A matmul over 8x8 nodes with multicast along rows and columns: the first column of nodes reads
`a`, the first row `b`.

    matmul_2d.py ROWS INNER COLUMNS
"""

# ruff: noqa: B023

import sys

import numpy as np
import ttl
import ttnn

ROWS, INNER, COLUMNS = (int(size) // 32 for size in sys.argv[1:])
SIDE, DEPTH = 8, 4
HEIGHT, WIDTH, STEPS = ROWS // SIDE, COLUMNS // SIDE, INNER // DEPTH


@ttl.operation(grid=(SIDE, SIDE))
def matmul(a: ttnn.Tensor, b: ttnn.Tensor, y: ttnn.Tensor) -> None:
    column, row = ttl.node(dims=2)
    rows = slice(row * HEIGHT, (row + 1) * HEIGHT)
    columns = slice(column * WIDTH, (column + 1) * WIDTH)
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(HEIGHT, DEPTH))
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=(DEPTH, WIDTH))
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(HEIGHT, WIDTH), block_count=1)
    a_net = ttl.PipeNet([ttl.Pipe(src=(0, n), dst=(slice(0, SIDE), n)) for n in range(SIDE)])
    b_net = ttl.PipeNet([ttl.Pipe(src=(n, 0), dst=(n, slice(0, SIDE))) for n in range(SIDE)])

    @ttl.datamovement()
    def read_a():
        for step in range(STEPS):
            with a_dfb.reserve() as a_blk:

                def send(pipe):
                    ttl.copy(a[rows, step * DEPTH : (step + 1) * DEPTH], a_blk).wait()
                    ttl.copy(a_blk, pipe).wait()

                def take(pipe):
                    ttl.copy(pipe, a_blk).wait()

                a_net.if_src(send)
                a_net.if_dst(take)

    @ttl.compute()
    def compute():
        with y_dfb.reserve() as y_blk:
            total = ttl.block.fill(0, shape=(HEIGHT, WIDTH))
            for _ in range(STEPS):
                with a_dfb.wait() as a_blk, b_dfb.wait() as b_blk:
                    total += a_blk @ b_blk
            y_blk.store(total)

    @ttl.datamovement()
    def read_b_and_write():
        for step in range(STEPS):
            with b_dfb.reserve() as b_blk:

                def send(pipe):
                    ttl.copy(b[step * DEPTH : (step + 1) * DEPTH, columns], b_blk).wait()
                    ttl.copy(b_blk, pipe).wait()

                def take(pipe):
                    ttl.copy(pipe, b_blk).wait()

                b_net.if_src(send)
                b_net.if_dst(take)
        with y_dfb.wait() as y_blk:
            ttl.copy(y_blk, y[rows, columns]).wait()


def tensor(*tiles):
    values = np.random.default_rng(0).standard_normal([32 * size for size in tiles])
    return ttnn.from_torch(values, ttnn.bfloat16, layout=ttnn.TILE_LAYOUT)


matmul(tensor(ROWS, INNER), tensor(INNER, COLUMNS), tensor(ROWS, COLUMNS))
