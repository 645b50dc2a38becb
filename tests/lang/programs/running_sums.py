"""Sums of the rows of tiles so far, in the order of a list, downwards and upwards again: what
is computed from a block is needed after the block was popped, in a loop that the compiler goes
through."""

import numpy as np
import ttl
import ttnn

ROWS, COLUMNS = 3, 2


@ttl.operation(grid=(COLUMNS, 1))
def __running_sums(x: ttnn.Tensor, y: ttnn.Tensor, order: str) -> None:
    column, _ = ttl.node(dims=2)
    rows = list(range(x.shape[0] // ttl.TILE_SHAPE[0]))
    ordered = rows if order == "down" else list(reversed(rows))
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 1))
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1))

    @ttl.datamovement()
    def read():
        for row in ordered:
            with x_dfb.reserve() as x_blk:
                ttl.copy(x[row, column], x_blk).wait()

    @ttl.compute()
    def compute():
        total = ttl.block.fill(0, shape=(1, 1))
        for _ in ordered:
            with x_dfb.wait() as x_blk, y_dfb.reserve() as y_blk:
                total = total + x_blk
                y_blk.store(total)

    @ttl.datamovement()
    def write():
        for row in ordered:
            with y_dfb.wait() as y_blk:
                ttl.copy(y_blk, y[row, column]).wait()


elements = np.random.default_rng(1).standard_normal((32 * ROWS, 32 * COLUMNS)).astype(np.float32)
x = ttnn.from_torch(elements, ttnn.float32, layout=ttnn.TILE_LAYOUT)
y, z = (ttnn.zeros((32 * ROWS, 32 * COLUMNS), ttnn.float32) for _ in range(2))
__running_sums(x, y, "down")
__running_sums(y, z, "up")

tiles = elements.reshape(ROWS, 32, -1)
down = tiles.cumsum(0)
up = down[::-1].cumsum(0)[::-1]
results = {
    "y": (y.elements(), down.reshape(elements.shape)),
    "z": (z.elements(), up.reshape(elements.shape)),
}
