"""Tensors in shards on cores, or in L1: each node doubles a row of tiles."""

import sys

import numpy as np
import ttl
import ttnn

KIND = sys.argv[1]
ROWS, COLUMNS = 4, 2


@ttl.operation(grid=(1, ROWS))
def __double(x: ttnn.Tensor, y: ttnn.Tensor) -> None:
    _, row = ttl.node(dims=2)
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, COLUMNS))
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, COLUMNS))

    @ttl.datamovement()
    def read():
        with x_dfb.reserve() as x_blk:
            ttl.copy(x[row, :], x_blk).wait()

    @ttl.compute()
    def compute():
        with x_dfb.wait() as x_blk, y_dfb.reserve() as y_blk:
            y_blk.store(x_blk + x_blk)

    @ttl.datamovement()
    def write():
        with y_dfb.wait() as y_blk:
            ttl.copy(y_blk, y[row, :]).wait()


def config(shape):
    """The placement of the tensors."""
    if KIND == "l1":
        return ttnn.L1_MEMORY_CONFIG
    if KIND == "ranges":
        cores = ttnn.CoreRangeSet({ttnn.CoreRange(ttnn.CoreCoord(1, 2), ttnn.CoreCoord(1, 5))})
        return ttnn.MemoryConfig(
            ttnn.TensorMemoryLayout.HEIGHT_SHARDED,
            ttnn.BufferType.L1,
            ttnn.ShardSpec(cores, (32, shape[1]), ttnn.ShardOrientation.ROW_MAJOR),
        )
    grid, strategy = {
        "height": (ttnn.CoreGrid(y=2, x=2), ttnn.ShardStrategy.HEIGHT),
        "width": (ttnn.CoreGrid(y=1, x=2), ttnn.ShardStrategy.WIDTH),
        "block": (ttnn.CoreGrid(y=4, x=2), ttnn.ShardStrategy.BLOCK),
    }[KIND]
    return ttnn.create_sharded_memory_config(shape, grid, strategy)


SHAPE = (ROWS * 32, COLUMNS * 32)
array = np.random.default_rng(1).standard_normal(SHAPE).astype(np.float32)
x = ttnn.from_torch(array, dtype=ttnn.float32, layout=ttnn.TILE_LAYOUT, memory_config=config(SHAPE))
y = ttnn.zeros(SHAPE, dtype=ttnn.float32, memory_config=config(SHAPE))
__double(x, y)
assert x.memory_config().is_sharded() == (KIND != "l1")
whole = ttnn.to_memory_config(y, ttnn.DRAM_MEMORY_CONFIG)
assert whole.memory_config() == ttnn.DRAM_MEMORY_CONFIG

results = {KIND: (whole.elements(), 2 * array)}
