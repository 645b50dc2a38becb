"""Rows of x by the indices in the first row of i, and a number moved within the block of i."""

import numpy as np
import ttl
import ttnn

DTYPE = ttnn.float32


@ttl.operation(grid=(1, 1))
def gather(x: ttnn.Tensor, i: ttnn.Tensor, y: ttnn.Tensor) -> None:
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 1))
    i_dfb = ttl.make_dataflow_buffer_like(i, shape=(1, 1))
    o_dfb = ttl.make_dataflow_buffer_like(i, shape=(1, 1))

    @ttl.datamovement()
    def read():
        with i_dfb.reserve() as i_blk:
            ttl.copy(i[0, 0], i_blk).wait()
        with i_dfb.wait() as i_blk:
            for column in range(4):
                row = ttl.read_index(i_blk, 0, column)
                number = ttl.raw_element_read(i_blk, 0, column)
                with x_dfb.reserve() as x_blk:
                    ttl.copy(x[row, 0], x_blk).wait()
                with o_dfb.reserve() as o_blk:
                    ttl.copy(i[0, 0], o_blk).wait()
                    ttl.raw_element_read(o_blk, 0, 0)
                    ttl.raw_element_write(o_blk, 20, column + 17, number)
                    if number > 1.5:
                        ttl.raw_element_write(o_blk, 21, 2, value=0.3)

    @ttl.datamovement()
    def write():
        for column in range(4):
            with x_dfb.wait() as x_blk:
                ttl.copy(x_blk, y[column, 0]).wait()
            with o_dfb.wait() as o_blk:
                ttl.copy(o_blk, y[column, 1]).wait()


indices = np.zeros((32, 32), np.float32)
indices[0, :4] = 2.75, 0, 1, 3
elements = np.random.default_rng(0).standard_normal((128, 32)).astype(np.float32)
x = ttnn.from_torch(elements, DTYPE, layout=ttnn.TILE_LAYOUT)
i = ttnn.from_torch(indices, DTYPE, layout=ttnn.TILE_LAYOUT)
y = ttnn.from_torch(np.zeros((128, 64)), DTYPE, layout=ttnn.TILE_LAYOUT)
gather(x, i, y)
