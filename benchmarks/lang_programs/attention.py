"""Attention of heads of 64 elements with a running maximum and sum over blocks of keys, a node for
each block of queries of each head.

attention.py HEADS LENGTH BLOCK
"""

import math
import sys

import numpy as np
import ttl
import ttnn

HEADS, LENGTH, BLOCK = (int(size) for size in sys.argv[1:])
TILES, SIZE, WIDTH = LENGTH // 32, BLOCK // 32, 2
BLOCKS = TILES // SIZE


@ttl.operation(grid=(HEADS, BLOCKS))
def attention(q: ttnn.Tensor, k: ttnn.Tensor, v: ttnn.Tensor, y: ttnn.Tensor) -> None:
    head, block = ttl.node(dims=2)
    queries = slice(block * SIZE, (block + 1) * SIZE)
    q_dfb = ttl.make_dataflow_buffer_like(q, shape=(SIZE, WIDTH), block_count=1)
    k_dfb = ttl.make_dataflow_buffer_like(k, shape=(SIZE, WIDTH))
    v_dfb = ttl.make_dataflow_buffer_like(v, shape=(SIZE, WIDTH))
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(SIZE, WIDTH), block_count=1)

    @ttl.datamovement()
    def read():
        with q_dfb.reserve() as q_blk:
            ttl.copy(q[head, queries, :], q_blk).wait()
        for step in range(BLOCKS):
            keys = slice(step * SIZE, (step + 1) * SIZE)
            with k_dfb.reserve() as k_blk, v_dfb.reserve() as v_blk:
                k_xf = ttl.copy(k[head, keys, :], k_blk)
                v_xf = ttl.copy(v[head, keys, :], v_blk)
                k_xf.wait()
                v_xf.wait()

    @ttl.compute()
    def compute():
        with q_dfb.wait() as q_blk, y_dfb.reserve() as y_blk:
            greatest = ttl.block.fill(-1e9, shape=(SIZE, 1))
            total = ttl.block.fill(0, shape=(SIZE, 1))
            result = ttl.block.fill(0, shape=(SIZE, WIDTH))
            scale = ttl.block.fill(1 / math.sqrt(32 * WIDTH), shape=(SIZE, SIZE))
            for _ in range(BLOCKS):
                with k_dfb.wait() as k_blk, v_dfb.wait() as v_blk:
                    scores = (q_blk @ ttl.block.transpose(k_blk)) * scale
                    here = ttl.math.reduce_max(scores, dims=[-1], shape=(SIZE, 1))
                    now = ttl.math.max(greatest, here)
                    weights = ttl.math.exp(
                        scores - ttl.block.broadcast(now, dims=[-1], shape=(SIZE, SIZE))
                    )
                    kept = ttl.math.exp(greatest - now)
                    total = total * kept + ttl.math.reduce_sum(weights, dims=[-1], shape=(SIZE, 1))
                    result = (
                        result * ttl.block.broadcast(kept, dims=[-1], shape=(SIZE, WIDTH))
                        + weights @ v_blk
                    )
                    greatest = now
            y_blk.store(result / ttl.block.broadcast(total, dims=[-1], shape=(SIZE, WIDTH)))

    @ttl.datamovement()
    def write():
        with y_dfb.wait() as y_blk:
            ttl.copy(y_blk, y[head, queries, :]).wait()


def tensor():
    values = np.random.default_rng(0).standard_normal([HEADS, LENGTH, 32 * WIDTH])
    return ttnn.from_torch(values, ttnn.bfloat16, layout=ttnn.TILE_LAYOUT)


attention(tensor(), tensor(), tensor(), tensor())
