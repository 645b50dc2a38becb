"""An all-gather in a ring: nodes forward what they received in the step before."""

import sys

import numpy as np
import ttl
import ttnn

NODES = int(sys.argv[1]) if len(sys.argv) > 1 else 4


def tiled(array):
    return ttnn.from_torch(array, layout=ttnn.TILE_LAYOUT)


@ttl.operation(grid=(NODES, 1))
def __ring(x: ttnn.Tensor, y: ttnn.Tensor) -> None:
    me = ttl.node(dims=1)
    net = ttl.PipeNet([ttl.Pipe((n, 0), ((n + 1) % NODES, 0)) for n in range(NODES)])
    first_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 1))
    ring_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count=3)

    @ttl.datamovement()
    def travel():
        with first_dfb.reserve() as blk:
            ttl.copy(x[0, me], blk).wait()

            def start(pipe):
                ttl.copy(blk, pipe).wait()

            net.if_src(start)
        for step in range(1, NODES):
            with ring_dfb.reserve() as blk:

                def take(pipe):
                    ttl.copy(pipe, blk).wait()

                net.if_dst(take)
                if step < NODES - 1:

                    def hand_on(pipe):
                        ttl.copy(blk, pipe).wait()

                    net.if_src(hand_on)

    @ttl.datamovement()
    def write():
        with first_dfb.wait() as blk:
            ttl.copy(blk, y[me, me]).wait()
        for step in range(1, NODES):
            with ring_dfb.wait() as blk:
                ttl.copy(blk, y[me, (me + NODES - step) % NODES]).wait()


rng = np.random.default_rng(5)
x = rng.random((32, 32 * NODES)).astype(np.float32)
y = ttnn.zeros((32 * NODES, 32 * NODES), ttnn.float32)
__ring(tiled(x), y)
results = {"y": (ttnn.to_torch(y), np.tile(x, (NODES, 1)))}
