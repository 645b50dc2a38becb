"""Block expressions and numbers that each branch of a condition gives another value."""

import numpy as np
import ttl
import ttnn


def tiled(array):
    return ttnn.from_torch(array, layout=ttnn.TILE_LAYOUT)


@ttl.operation(grid=(1, 4))
def __branches(x, y):
    _, row = ttl.node(dims=2)
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 2))
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 2))

    @ttl.datamovement()
    def read():
        with x_dfb.reserve() as blk:
            ttl.copy(x[row, :], blk).wait()

    @ttl.compute()
    def compute():
        with x_dfb.wait() as x_blk, y_dfb.reserve() as y_blk:
            if row < 2:
                scaled = x_blk * ttl.block.fill(2, shape=(1, 2))
                if row == 1:
                    scaled = scaled + x_blk
            elif row == 2:
                scaled = ttl.math.exp(x_blk)
            else:
                scaled = x_blk
            y_blk.store(ttl.math.sqrt(scaled))
            if row == 3:
                y_blk += scaled

    @ttl.datamovement()
    def write():
        with y_dfb.wait() as blk:
            ttl.copy(blk, y[row, :]).wait()


@ttl.operation(grid=(1, 4))
def __numbers(x, y):
    _, row = ttl.node(dims=2)
    io_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 1))

    @ttl.datamovement()
    def read():
        if row % 2 == 0:
            first = 0
            step = row + 1
        elif row == 1:
            first = 1
            step = 1
        else:
            first = 2
            step = first
        for tile in range(2):
            if tile == 1:
                column = first
            else:
                column = step
            with io_dfb.reserve() as blk:
                ttl.copy(x[row, column], blk).wait()

    @ttl.datamovement()
    def write():
        for tile in range(2):
            with io_dfb.wait() as blk:
                ttl.copy(blk, y[row, tile]).wait()


x = np.random.default_rng(5).random((128, 64)).astype(np.float32)
y = ttnn.zeros(x.shape, ttnn.float32)
__branches(tiled(x), y)
e = x.reshape(4, 32, 64)
e = np.stack([np.sqrt(2 * e[0]), np.sqrt(3 * e[1]), np.exp(e[2] / 2), np.sqrt(e[3]) + e[3]])
results = {"y": (ttnn.to_torch(y), e.reshape(x.shape))}

x = np.random.default_rng(6).random((128, 128)).astype(np.float32)
y = ttnn.zeros((128, 64), ttnn.float32)
__numbers(tiled(x), y)
t = x.reshape(4, 32, 4, 32)
chosen = np.stack(
    [
        np.concatenate([t[r, :, s], t[r, :, f]], 1)
        for r, (f, s) in enumerate([(0, 1), (1, 1), (0, 3), (2, 2)])
    ]
)
results |= {"numbers": (ttnn.to_torch(y), chosen.reshape(128, 64))}
