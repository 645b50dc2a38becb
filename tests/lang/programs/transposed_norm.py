"""Layer norm over columns: of the transposed block, which is transposed back."""

import numpy as np
import ttl
import ttnn

N, C = 2, 3
EPS = 1e-5


def tiled(array):
    return ttnn.from_torch(array, layout=ttnn.TILE_LAYOUT)


@ttl.operation(grid=(N, 1))
def __norm(x, gamma, beta, y):
    n, _ = ttl.node(dims=2)
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(C, 1))
    g_dfb = ttl.make_dataflow_buffer_like(gamma, shape=(C, 1))
    b_dfb = ttl.make_dataflow_buffer_like(beta, shape=(C, 1))
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(C, 1))

    @ttl.datamovement()
    def read():
        for tensor, dfb in ((x, x_dfb), (gamma, g_dfb), (beta, b_dfb)):
            with dfb.reserve() as blk:
                ttl.copy(tensor[:, n] if tensor is x else tensor[:, 0], blk).wait()

    @ttl.compute()
    def compute():
        def mean(rows):
            total = ttl.math.reduce_sum(rows, dims=[1], shape=(1, 1))
            scaled = total * ttl.block.fill(1 / (32 * C), shape=(1, 1))
            return ttl.block.broadcast(scaled, dims=[1], shape=(1, C))

        with x_dfb.wait() as x_blk, g_dfb.wait() as g_blk, b_dfb.wait() as b_blk:
            rows = ttl.block.transpose(x_blk)
            centred = rows - mean(rows)
            variance = mean(centred**2)
            normal = centred * ttl.math.rsqrt(variance + ttl.block.fill(EPS, shape=(1, C)))
            with y_dfb.reserve() as y_blk:
                g = ttl.block.broadcast(g_blk, dims=[-1], shape=(C, 1))
                b = ttl.block.broadcast(b_blk, dims=[-1], shape=(C, 1))
                y_blk.store(ttl.block.transpose(normal) * g + b)

    @ttl.datamovement()
    def write():
        with y_dfb.wait() as y_blk:
            ttl.copy(y_blk, y[:, n]).wait()


rng = np.random.default_rng(5)
x = rng.standard_normal((32 * C, 32 * N)).astype(np.float32)
g, b = (rng.standard_normal((32 * C, 1)).astype(np.float32) for _ in "gb")
t = [tiled(v) for v in (x, g, b)]
y = ttnn.zeros(x.shape, ttnn.float32)
__norm(*t, y)
e = (x - x.mean(0)) / np.sqrt(x.var(0) + EPS) * g + b
results = {"y": (ttnn.to_torch(y), e)}
