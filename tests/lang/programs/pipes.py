"""The nets of the specification: gather, scatter, scatter-gather and forward, and one that follows
no rule. Each node has a tile of its number; what it receives it adds up."""

import sys

import numpy as np
import ttl
import ttnn

KIND = sys.argv[1]
COLS, ROWS = map(int, sys.argv[2:])


ORDER = [int(n) for n in np.random.default_rng(5).permutation(COLS * ROWS)]


def pipes(grid_x, grid_y):
    if KIND == "permutation":
        return [
            ttl.Pipe(src=divmod(n, grid_y), dst=divmod(ORDER[n], grid_y))
            for n in range(grid_x * grid_y)
        ]
    if KIND == "gather":
        return [ttl.Pipe(src=(x, y), dst=(0, y)) for x in range(1, COLS) for y in range(ROWS)]
    if KIND == "scatter":
        return [ttl.Pipe(src=(x, 0), dst=(x, slice(1, grid_y))) for x in range(grid_x)]
    if KIND == "scatter-gather":
        return [
            ttl.Pipe(src=(x, y), dst=(x, slice(0, grid_y)))
            for x in range(grid_x)
            for y in range(grid_y)
        ]
    return [
        ttl.Pipe(src=(x, y), dst=(x, (y + 1) % grid_y))
        for x in range(grid_x)
        for y in range(grid_y)
    ]


@ttl.operation(grid=(COLS, ROWS))
def __exchange(own: ttnn.Tensor, sums: ttnn.Tensor) -> None:
    grid_x, grid_y = ttl.grid_size()
    x, y = ttl.node(dims=2)

    net = ttl.PipeNet(pipes(grid_x, grid_y))

    sent_dfb = ttl.make_dataflow_buffer_like(own, shape=(1, 1))
    received_dfb = ttl.make_dataflow_buffer_like(own, shape=(1, 1))
    sum_dfb = ttl.make_dataflow_buffer_like(own, shape=(1, 1))

    @ttl.datamovement()
    def dm():
        if net.is_src():
            with sent_dfb.reserve() as sent_blk:
                xf = ttl.copy(own[y, x], sent_blk)
                xf.wait()

                def pipe_src(pipe):
                    xf = ttl.copy(sent_blk, pipe)
                    xf.wait()

                net.if_src(pipe_src)

        def pipe_dst(pipe):
            with received_dfb.reserve() as received_blk:
                xf = ttl.copy(pipe, received_blk)
                xf.wait()

        net.if_dst(pipe_dst)

    @ttl.compute()
    def add():
        if net.is_dst():
            total = ttl.block.fill(0, shape=(1, 1))
            for _ in range(incoming(x, y)):
                with received_dfb.wait() as received_blk:
                    total += received_blk
            with sum_dfb.reserve() as sum_blk:
                sum_blk.store(total)

    @ttl.datamovement()
    def write():
        if net.is_dst():
            with sum_dfb.wait() as sum_blk:
                xf = ttl.copy(sum_blk, sums[y, x])
                xf.wait()


def incoming(x, y):
    """Number of pipes that lead to a node."""
    if KIND == "gather":
        return COLS - 1
    return ROWS if KIND == "scatter-gather" else 1


TILE = 32
numbers = np.arange(ROWS * COLS, dtype=np.float32).reshape(ROWS, COLS)
own = ttnn.from_torch(np.kron(numbers, np.ones((TILE, TILE), np.float32)), layout=ttnn.TILE_LAYOUT)
sums = ttnn.zeros((ROWS * TILE, COLS * TILE), ttnn.float32)
__exchange(own, sums)

expected = np.zeros_like(numbers)
if KIND == "gather":
    expected[:, 0] = numbers[:, 1:].sum(axis=1)
elif KIND == "scatter":
    expected[1:] = numbers[0]
elif KIND == "scatter-gather":
    expected[:] = numbers.sum(axis=0)
elif KIND == "permutation":
    for n, target in enumerate(ORDER):
        expected.T[divmod(target, ROWS)] = numbers.T[divmod(n, ROWS)]
else:
    expected = np.roll(numbers, 1, axis=0)
results = {"sums": (sums.elements()[::TILE, ::TILE], expected)}
