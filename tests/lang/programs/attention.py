"""Attention with a running maximum and sum over blocks of keys."""

import sys

import numpy as np
import ttl
import ttnn

QUERIES, KEYS, KEY_BLOCKS, DEPTH = map(int, sys.argv[1:5])
COLUMNS, ROWS = map(int, sys.argv[5:] or (1, QUERIES))
SCALE = 0.125


@ttl.operation(grid=(COLUMNS, ROWS))
def __attention(q: ttnn.Tensor, k: ttnn.Tensor, v: ttnn.Tensor, y: ttnn.Tensor) -> None:
    node = ttl.node(dims=1)
    nodes = ttl.grid_size(dims=1)
    q_dfb = ttl.make_dataflow_buffer_like(q, shape=(1, DEPTH))
    k_dfb = ttl.make_dataflow_buffer_like(k, shape=(KEYS, DEPTH))
    v_dfb = ttl.make_dataflow_buffer_like(v, shape=(KEYS, DEPTH))
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, DEPTH))

    @ttl.datamovement()
    def read():
        for row in range(node, QUERIES, nodes):
            with q_dfb.reserve() as q_blk:
                ttl.copy(q[row, :], q_blk).wait()
            for block in range(KEY_BLOCKS):
                keys = slice(block * KEYS, (block + 1) * KEYS)
                with k_dfb.reserve() as k_blk, v_dfb.reserve() as v_blk:
                    group = ttl.GroupTransfer()
                    group.add(ttl.copy(k[keys, :], k_blk))
                    group.add(ttl.copy(v[keys, :], v_blk))
                    group.wait_all()

    @ttl.compute()
    def attend():
        for _ in range(node, QUERIES, nodes):
            with q_dfb.wait() as q_blk, y_dfb.reserve() as y_blk:
                largest = ttl.block.fill(-1e30, shape=(1, 1))
                total = ttl.block.fill(0, shape=(1, 1))
                sums = ttl.block.fill(0, shape=(1, DEPTH))
                for _ in range(KEY_BLOCKS):
                    with k_dfb.wait() as k_blk, v_dfb.wait() as v_blk:
                        scores = (q_blk @ ttl.block.transpose(k_blk)) * ttl.block.fill(
                            SCALE, shape=(1, KEYS)
                        )
                        before = largest
                        largest = ttl.math.max(
                            before, ttl.math.reduce_max(scores, dims=[-1], shape=(1, 1))
                        )
                        shift = ttl.block.broadcast(largest, dims=[-1], shape=(1, KEYS))
                        weights = ttl.math.exp(scores - shift)
                        factor = ttl.math.exp(before - largest)
                        total = total * factor + ttl.math.reduce_sum(
                            weights, dims=[-1], shape=(1, 1)
                        )
                        sums = sums * ttl.block.broadcast(factor, dims=[-1], shape=(1, DEPTH))
                        sums += weights @ v_blk
                y_blk.store(sums / ttl.block.broadcast(total, dims=[1], shape=(1, DEPTH)))

    @ttl.datamovement()
    def write():
        for row in range(node, QUERIES, nodes):
            with y_dfb.wait() as y_blk:
                ttl.copy(y_blk, y[row, :]).wait()


def random(rows, seed):
    elements = np.random.default_rng(seed).standard_normal((rows * 32, DEPTH * 32))
    return ttnn.from_torch(elements, dtype=ttnn.float32, layout=ttnn.TILE_LAYOUT)


q, k, v = random(QUERIES, 0), random(KEYS * KEY_BLOCKS, 1), random(KEYS * KEY_BLOCKS, 2)
y = ttnn.zeros(q.shape, ttnn.float32)
__attention(q, k, v, y)

scores = q.elements().astype(np.float64) @ k.elements().T * SCALE
weights = np.exp(scores - scores.max(axis=1, keepdims=True))
results = {"y": (y.elements(), weights / weights.sum(axis=1, keepdims=True) @ v.elements())}
