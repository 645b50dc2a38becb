"""Blocks of integers: each node computes with two rows of tiles."""

import numpy as np
import ttl
import ttnn


@ttl.operation(grid=(1, 2))
def __integers(a: ttnn.Tensor, b: ttnn.Tensor, mixed: ttnn.Tensor, sums: ttnn.Tensor) -> None:
    _, row = ttl.node(dims=2)
    shape = (1, 2)
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=shape)
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=shape)
    mixed_dfb = ttl.make_dataflow_buffer_like(mixed, shape=shape)
    sums_dfb = ttl.make_dataflow_buffer_like(sums, shape=shape)

    @ttl.datamovement()
    def read():
        for step in range(2):
            with a_dfb.reserve() as a_blk, b_dfb.reserve() as b_blk:
                ttl.copy(a[row * 2 + step, :], a_blk).wait()
                ttl.copy(b[row * 2 + step, :], b_blk).wait()

    @ttl.compute()
    def compute():
        total = ttl.block.fill(0, shape=shape)
        for _ in range(2):
            with a_dfb.wait() as a_blk, b_dfb.wait() as b_blk, mixed_dfb.reserve() as mixed_blk:
                bits = (a_blk ^ b_blk) + a_blk * b_blk
                largest = ttl.math.max(abs(a_blk), ttl.math.relu(-b_blk)) - b_blk**3
                rest = ttl.math.min(a_blk, b_blk) % ttl.block.fill(7, shape=shape)
                chosen = ttl.block.where(ttl.math.relu(a_blk), bits, largest)
                mixed_blk.store(chosen + rest)
                total += ttl.math.square(a_blk) + ttl.block.mask(b_blk, rest)
        with sums_dfb.reserve() as sums_blk:
            sums_blk.store(total)

    @ttl.datamovement()
    def write():
        for step in range(2):
            with mixed_dfb.wait() as mixed_blk:
                ttl.copy(mixed_blk, mixed[row * 2 + step, :]).wait()
        with sums_dfb.wait() as sums_blk:
            ttl.copy(sums_blk, sums[row, :]).wait()


def tensor(array):
    return ttnn.from_torch(array, dtype=ttnn.int32, layout=ttnn.TILE_LAYOUT)


a, b = np.random.default_rng(1).integers(-100, 100, size=(2, 128, 64)).astype(np.int32)
mixed = ttnn.zeros((128, 64), dtype=ttnn.int32)
sums = ttnn.zeros((64, 64), dtype=ttnn.int32)
__integers(tensor(a), tensor(b), mixed, sums)

rest = np.minimum(a, b) % 7
bits, largest = (a ^ b) + a * b, np.maximum(abs(a), np.maximum(-b, 0)) - b**3
added = (a * a + np.where(rest == 1, 0, b)).reshape(2, 2, 32, 64).sum(1).reshape(64, 64)
results = {
    "mixed": (mixed.elements(), np.where(a > 0, bits, largest) + rest),
    "sums": (sums.elements(), added),
}
