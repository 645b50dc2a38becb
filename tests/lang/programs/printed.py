"""Kernels that print blocks, pages of tensors, numbers and the state of buffers."""

import numpy as np
import ttl
import ttnn


@ttl.operation(grid=(1, 1))
def __printed(a: ttnn.Tensor, rows: ttnn.Tensor, y: ttnn.Tensor, copy: ttnn.Tensor) -> None:
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 2))
    rows_dfb = ttl.make_dataflow_buffer_like(rows, shape=(2, 48))
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 2))

    @ttl.datamovement()
    def read():
        print("a: ", a, num_pages=2)
        print("rows: ", rows, num_pages=3)
        with a_dfb.reserve() as a_blk:
            ttl.copy(a[0, :], a_blk).wait()
            print("a_blk:", a_blk)
        with rows_dfb.reserve() as rows_blk:
            ttl.copy(rows[0:2, :], rows_blk).wait()
            print(rows_blk)

    @ttl.compute()
    def compute():
        for step in range(1):
            with a_dfb.wait() as a_blk, y_dfb.reserve() as y_blk:
                print("step=", step, " a_blk: ", a_blk)
                y_blk.store(a_blk + a_blk)
                print(a_dfb)

    @ttl.datamovement()
    def write():
        with y_dfb.wait() as y_blk:
            ttl.copy(y_blk, y[0, :]).wait()
        with rows_dfb.wait() as rows_blk:
            ttl.copy(rows_blk, copy[0:2, :]).wait()


array = np.arange(2048, dtype=np.float32).reshape(32, 64) % 100
lines = np.arange(192, dtype=np.int32).reshape(4, 48)
y = ttnn.zeros(array.shape, dtype=ttnn.bfloat16)
copy = ttnn.zeros((2, 48), dtype=ttnn.int32, layout=ttnn.ROW_MAJOR_LAYOUT)
__printed(
    ttnn.from_torch(array, dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT),
    ttnn.from_torch(lines, dtype=ttnn.int32, layout=ttnn.ROW_MAJOR_LAYOUT),
    y,
    copy,
)
results = {"y": (y.elements(), 2 * array), "copy": (copy.elements(), lines[:2])}
