"""Batched products whose sums are divided among nodes; pipes bring the parts to the first one."""

import numpy as np
import ttl
import ttnn

BATCH, M, N, SPLIT, K_EACH = 2, 2, 2, 3, 2


def tiled(array):
    return ttnn.from_torch(array, layout=ttnn.TILE_LAYOUT)


@ttl.operation(grid=(SPLIT, M))
def __split_k(a: ttnn.Tensor, b: ttnn.Tensor, y: ttnn.Tensor) -> None:
    part, m = ttl.node(dims=2)
    net = ttl.PipeNet([ttl.Pipe((k, r), (0, r)) for k in range(1, SPLIT) for r in range(M)])
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 1, K_EACH))
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=(1, K_EACH, N))
    partial_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1, N))
    received_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1, N), block_count=2)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1, N))

    @ttl.datamovement()
    def read():
        k = slice(part * K_EACH, (part + 1) * K_EACH)
        for batch in range(BATCH):
            with a_dfb.reserve() as a_blk, b_dfb.reserve() as b_blk:
                both = ttl.GroupTransfer()
                both.add(ttl.copy(a[batch, m, k], a_blk))
                both.add(ttl.copy(b[batch, k, :], b_blk))
                both.wait_all()

    @ttl.compute()
    def compute():
        for _ in range(BATCH):
            with a_dfb.wait() as a_blk, b_dfb.wait() as b_blk, partial_dfb.reserve() as p_blk:
                p_blk.store(a_blk @ b_blk)
            if part == 0:
                with partial_dfb.wait() as own, y_dfb.reserve() as y_blk:
                    total = own + ttl.block.fill(0, shape=(1, 1, N))
                    for _ in range(SPLIT - 1):
                        with received_dfb.wait() as other:
                            total = total + other
                    y_blk.store(total)

    @ttl.datamovement()
    def reduce():
        for batch in range(BATCH):
            if net.is_src():
                with partial_dfb.wait() as p_blk:

                    def send(pipe):
                        ttl.copy(p_blk, pipe).wait()

                    net.if_src(send)
            if net.is_dst():

                def receive(pipe):
                    with received_dfb.reserve() as r_blk:
                        ttl.copy(pipe, r_blk).wait()

                net.if_dst(receive)
                with y_dfb.wait() as y_blk:
                    ttl.copy(y_blk, y[batch, m, :]).wait()


rng = np.random.default_rng(5)
a = rng.random((BATCH, 32 * M, 32 * SPLIT * K_EACH)).astype(np.float32)
b = rng.random((BATCH, 32 * SPLIT * K_EACH, 32 * N)).astype(np.float32)
y = ttnn.zeros((BATCH, 32 * M, 32 * N), ttnn.float32)
__split_k(tiled(a), tiled(b), y)
results = {"y": (ttnn.to_torch(y), a @ b)}
