"""Sums and maxima of integers along rows, columns and both, which the vector engine computes."""

import numpy as np
import ttl
import ttnn

ROWS, COLUMNS = 2, 3


@ttl.operation(grid=(1, 1))
def __integer_sums(
    x: ttnn.Tensor,
    row_sums: ttnn.Tensor,
    column_sums: ttnn.Tensor,
    total: ttnn.Tensor,
    row_maxima: ttnn.Tensor,
    below: ttnn.Tensor,
) -> None:
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(ROWS, COLUMNS))
    row_dfb = ttl.make_dataflow_buffer_like(row_sums, shape=(ROWS, 1))
    column_dfb = ttl.make_dataflow_buffer_like(column_sums, shape=(1, COLUMNS))
    total_dfb = ttl.make_dataflow_buffer_like(total, shape=(1, 1))
    maxima_dfb = ttl.make_dataflow_buffer_like(row_maxima, shape=(ROWS, 1))
    below_dfb = ttl.make_dataflow_buffer_like(below, shape=(ROWS, COLUMNS))

    @ttl.datamovement()
    def read():
        with x_dfb.reserve() as x_blk:
            ttl.copy(x[:, :], x_blk).wait()

    @ttl.compute()
    def compute():
        with x_dfb.wait() as x_blk:
            with row_dfb.reserve() as blk:
                blk.store(ttl.math.reduce_sum(x_blk * x_blk, dims=[1], shape=(ROWS, 1)))
            with column_dfb.reserve() as blk:
                blk.store(ttl.math.reduce_sum(x_blk, dims=[0], shape=(1, COLUMNS)))
            with total_dfb.reserve() as blk:
                blk.store(ttl.math.reduce_sum(x_blk, dims=[0, 1], shape=(1, 1)))
            with maxima_dfb.reserve() as blk:
                blk.store(ttl.math.reduce_max(-x_blk, dims=[-1], shape=(ROWS, 1)))
            with below_dfb.reserve() as blk:
                largest = ttl.math.reduce_max(x_blk, dims=[0, 1], shape=(1, 1))
                blk.store(x_blk - ttl.block.broadcast(largest, dims=[0, 1], shape=(ROWS, COLUMNS)))

    @ttl.datamovement()
    def write():
        for dfb, y in (
            (row_dfb, row_sums),
            (column_dfb, column_sums),
            (total_dfb, total),
            (maxima_dfb, row_maxima),
            (below_dfb, below),
        ):
            with dfb.wait() as blk:
                ttl.copy(blk, y[:, :]).wait()


elements = np.random.default_rng(1).integers(-1000, 1000, (32 * ROWS, 32 * COLUMNS), np.int32)
expected = {
    "row_sums": (elements**2).sum(1, keepdims=True),
    "column_sums": elements.sum(0, keepdims=True),
    "total": elements.sum(keepdims=True),
    "row_maxima": (-elements).max(1, keepdims=True),
    "below": elements - elements.max(),
}
x = ttnn.from_torch(elements, layout=ttnn.TILE_LAYOUT)
made = {name: ttnn.zeros(each.shape, ttnn.int32) for name, each in expected.items()}
__integer_sums(x, *made.values())
results = {name: (made[name].elements(), each) for name, each in expected.items()}
