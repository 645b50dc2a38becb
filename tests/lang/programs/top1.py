"""The largest number of each row, and its index."""

import numpy as np
import ttl
import ttnn

ROWS, COLS = 2, 3


def tiled(array):
    return ttnn.from_torch(array, layout=ttnn.TILE_LAYOUT)


@ttl.operation(grid="auto")
def __top1(x, biggest, hot):
    gx, _gy = ttl.grid_size(dims=2)
    nx, ny = ttl.node(dims=2)
    n = ny * gx + nx
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, COLS))
    m_dfb = ttl.make_dataflow_buffer_like(biggest, shape=(1, 1))
    h_dfb = ttl.make_dataflow_buffer_like(hot, shape=(1, COLS))

    @ttl.datamovement()
    def read():
        if n < ROWS:
            with x_dfb.reserve() as blk:
                ttl.copy(x[n, :], blk).wait()

    @ttl.compute()
    def compute():
        if n < ROWS:
            with x_dfb.wait() as x_blk:
                m = ttl.math.reduce_max(x_blk, dims=[1], shape=(1, 1))
                with m_dfb.reserve() as m_blk:
                    m_blk.store(m)
                with h_dfb.reserve() as h_blk:
                    below = x_blk - ttl.block.broadcast(m, dims=[1], shape=(1, COLS))
                    one = ttl.block.fill(1.0, shape=(1, COLS))
                    zero = ttl.block.fill(0.0, shape=(1, COLS))
                    h_blk.store(ttl.block.where(one + ttl.math.sign(below), one, zero))

    @ttl.datamovement()
    def write():
        if n < ROWS:
            with m_dfb.wait() as m_blk:
                ttl.copy(m_blk, biggest[n, 0]).wait()
            with h_dfb.wait() as h_blk:
                ttl.copy(h_blk, hot[n, :]).wait()


rng = np.random.default_rng(5)
x = rng.permuted(np.tile(np.arange(32.0, dtype=np.float32), (32 * ROWS, COLS)), axis=1)
x += np.linspace(0, 0.5, x.shape[1], dtype=np.float32)
big = ttnn.zeros((32 * ROWS, 1), ttnn.float32)
hot = ttnn.zeros(x.shape, ttnn.float32)
__top1(tiled(x), big, hot)
results = {
    "biggest": (ttnn.to_torch(big), x.max(1, keepdims=True)),
    "hot": (ttnn.to_torch(hot), (x == x.max(1, keepdims=True)).astype(np.float32)),
}
