"""Variables that hold a block until a condition gives them an expression: where it does not hold,
they are the block."""

import numpy as np
import ttl
import ttnn

ROWS, COLUMNS = 2, 3


@ttl.operation(grid=(1, ROWS))
def __replaced(x: ttnn.Tensor, y: ttnn.Tensor) -> None:
    _, row = ttl.node(dims=2)
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 1))
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1))

    @ttl.datamovement()
    def read():
        for column in range(COLUMNS):
            with x_dfb.reserve() as x_blk:
                ttl.copy(x[row, column], x_blk).wait()

    @ttl.compute()
    def compute():
        for column in range(COLUMNS):
            with x_dfb.wait() as x_blk, y_dfb.reserve() as y_blk:
                value = x_blk
                if row == 1:
                    value = ttl.math.abs(value)
                if column == 2:
                    value = value + x_blk
                y_blk.store(value)

    @ttl.datamovement()
    def write():
        for column in range(COLUMNS):
            with y_dfb.wait() as y_blk:
                ttl.copy(y_blk, y[row, column]).wait()


elements = np.random.default_rng(1).standard_normal((32 * ROWS, 32 * COLUMNS)).astype(np.float32)
x = ttnn.from_torch(elements, ttnn.float32, layout=ttnn.TILE_LAYOUT)
y = ttnn.zeros((32 * ROWS, 32 * COLUMNS), ttnn.float32)
__replaced(x, y)

expected = elements.copy()
expected[32:] = abs(expected[32:])
expected[:, 64:] += elements[:, 64:]
results = {"y": (y.elements(), expected)}
