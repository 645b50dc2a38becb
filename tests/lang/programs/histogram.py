"""Counts of the numbers of a tensor in ranges: sums of masks, on two nodes."""

import itertools

import numpy as np
import ttl
import ttnn

EDGES = (0.0, 0.1, 0.35, 0.6, 0.95)
TILES = 6


def tiled(array):
    return ttnn.from_torch(array, layout=ttnn.TILE_LAYOUT)


@ttl.operation(grid=(2, 1))
def __histogram(x: ttnn.Tensor, counts: ttnn.Tensor) -> None:
    half = ttl.node(dims=1)
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, TILES // 2))
    c_dfb = ttl.make_dataflow_buffer_like(counts, shape=(1, 1))
    shape = (1, TILES // 2)

    @ttl.datamovement()
    def read():
        with x_dfb.reserve() as blk:
            ttl.copy(x[0, half * (TILES // 2) : (half + 1) * (TILES // 2)], blk).wait()

    @ttl.compute()
    def compute():
        def at_least(blk, edge):
            return ttl.math.ceil(ttl.math.clamp(blk - ttl.block.fill(edge, shape=shape), 0, 1))

        with x_dfb.wait() as blk:
            for low, high in itertools.pairwise(EDGES):
                with c_dfb.reserve() as c_blk:
                    inside = at_least(blk, low) - at_least(blk, high)
                    c_blk.store(ttl.math.reduce_sum(inside, dims=[0, 1], shape=(1, 1)))

    @ttl.datamovement()
    def write():
        for bin in range(len(EDGES) - 1):
            with c_dfb.wait() as c_blk:
                ttl.copy(c_blk, counts[half, bin]).wait()


rng = np.random.default_rng(5)
x = rng.random((32, 32 * TILES)).astype(np.float32)
counts = ttnn.zeros((64, 32 * (len(EDGES) - 1)), ttnn.float32)
__histogram(tiled(x), counts)
found = ttnn.to_torch(counts)[::32, ::32]
ranges = list(itertools.pairwise(EDGES))
expected = np.array(
    [
        [np.count_nonzero((half > low) & (half <= high)) for low, high in ranges]
        for half in np.split(x, 2, 1)
    ]
)
results = {"counts": (found, expected)}
