"""The sum of each row of tiles and its neighbours, which come through pipes."""

import sys

import numpy as np
import ttl
import ttnn

NODES = int(sys.argv[1]) if len(sys.argv) > 1 else 4


def tiled(array):
    return ttnn.from_torch(array, layout=ttnn.TILE_LAYOUT)


@ttl.operation(grid=(1, NODES))
def __halo(x: ttnn.Tensor, y: ttnn.Tensor) -> None:
    _, row = ttl.node(dims=2)
    down = ttl.PipeNet([ttl.Pipe(src=(0, r), dst=(0, r + 1)) for r in range(NODES - 1)])
    up = ttl.PipeNet([ttl.Pipe(src=(0, r), dst=(0, r - 1)) for r in range(1, NODES)])
    own_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 2))
    above_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 2))
    below_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 2))
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 2))

    @ttl.datamovement()
    def exchange():
        with own_dfb.reserve() as own_blk:
            ttl.copy(x[row, :], own_blk).wait()

            def send(pipe):
                ttl.copy(own_blk, pipe).wait()

            down.if_src(send)
            up.if_src(send)
        if down.is_dst():
            with above_dfb.reserve() as above_blk:
                down.if_dst(lambda pipe: ttl.copy(pipe, above_blk).wait())
        if up.is_dst():
            with below_dfb.reserve() as below_blk:

                def take(pipe):
                    xf = ttl.copy(pipe, below_blk)
                    xf.wait()

                up.if_dst(take)

    @ttl.compute()
    def compute():
        with own_dfb.wait() as own_blk, y_dfb.reserve() as y_blk:
            total = own_blk * ttl.block.fill(0.5, shape=(1, 2))
            if row > 0:
                with above_dfb.wait() as above_blk:
                    total += above_blk
            if row < NODES - 1:
                with below_dfb.wait() as below_blk:
                    total += below_blk
            y_blk.store(total)

    @ttl.datamovement()
    def write():
        with y_dfb.wait() as y_blk:
            ttl.copy(y_blk, y[row, :]).wait()


rng = np.random.default_rng(5)
x = rng.random((32 * NODES, 64)).astype(np.float32)
rows = x.reshape(NODES, 32, 64)
expected = rows * 0.5
expected[1:] += rows[:-1]
expected[:-1] += rows[1:]
y = ttnn.zeros(x.shape, ttnn.float32)
__halo(tiled(x), y)
results = {"y": (ttnn.to_torch(y), expected.reshape(x.shape))}
