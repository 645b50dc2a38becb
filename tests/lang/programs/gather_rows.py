"""Rows of tiles in an order that a table of Python gives."""

import numpy as np
import ttl
import ttnn

ORDER = (4, 0, 0, 3, 1)


def tiled(array):
    return ttnn.from_torch(array, layout=ttnn.TILE_LAYOUT)


@ttl.operation(grid=(len(ORDER),))
def __gather(x, y):
    n = ttl.node(dims=1)
    io_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 3), block_count=1)

    @ttl.datamovement()
    def read():
        with io_dfb.reserve() as blk:
            for at, source in enumerate(ORDER):
                if n == at:
                    ttl.copy(x[source, :], blk).wait()

    @ttl.datamovement()
    def write():
        blk = io_dfb.wait()
        xf = ttl.copy(blk, y[n, :])
        xf.wait()
        blk.pop()


rng = np.random.default_rng(5)
x = rng.random((32 * 5, 96)).astype(np.float32)
y = ttnn.zeros(x.shape, ttnn.float32)
__gather(tiled(x), y)
results = {"y": (ttnn.to_torch(y), x.reshape(5, 32, 96)[list(ORDER)].reshape(160, 96))}
