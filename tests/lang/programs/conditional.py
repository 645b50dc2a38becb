"""Nodes that compute different things, and different amounts of them."""

import numpy as np
import ttl
import ttnn

GRID = (3, 2)


def tiled(array):
    return ttnn.from_torch(array, layout=ttnn.TILE_LAYOUT)


@ttl.operation(grid=GRID)
def __conditional(x, bias, y):
    column, row = ttl.node(dims=2)
    columns, rows = ttl.grid_size(dims=2)
    number = row * columns + column
    is_last = number == columns * rows - 1
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 1))
    bias_dfb = ttl.make_dataflow_buffer_like(bias, shape=(1, 1), block_count=1)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1))

    @ttl.datamovement()
    def read():
        if is_last:
            with bias_dfb.reserve() as b_blk:
                ttl.copy(bias[0, 0], b_blk).wait()
        for tile in range(number % 2, 4):
            with x_dfb.reserve() as x_blk:
                ttl.copy(x[number, tile], x_blk).wait()

    @ttl.compute()
    def compute():
        if is_last:
            with bias_dfb.wait() as b_blk:
                for _ in range(number % 2, 4):
                    with x_dfb.wait() as x_blk, y_dfb.reserve() as y_blk:
                        y_blk.store(x_blk + ttl.block.broadcast(b_blk, dims=[0, 1], shape=(1, 1)))
        elif number % 2 == 0:
            for _ in range(number % 2, 4):
                with x_dfb.wait() as x_blk, y_dfb.reserve() as y_blk:
                    y_blk.store(x_blk * x_blk)
        else:
            for _ in range(number % 2, 4):
                with x_dfb.wait() as x_blk, y_dfb.reserve() as y_blk:
                    y_blk.store(x_blk * ttl.block.fill(0.5, shape=(1, 1)))

    @ttl.datamovement()
    def write():
        for tile in range(number % 2, 4):
            with y_dfb.wait() as y_blk:
                ttl.copy(y_blk, y[number, tile]).wait()


rng = np.random.default_rng(5)
x = rng.random((32 * 6, 128)).astype(np.float32)
bias = np.float32([[3.0]])
y = ttnn.zeros(x.shape, ttnn.float32)
__conditional(tiled(x), tiled(bias), y)
e = x.reshape(6, 32, 4, 32).copy()
for n in range(6):
    part = e[n, :, n % 2 :]
    e[n, :, n % 2 :] = part + 3 if n == 5 else part * part if n % 2 == 0 else part / 2
    e[n, :, : n % 2] = 0
results = {"y": (ttnn.to_torch(y), e.reshape(x.shape))}
