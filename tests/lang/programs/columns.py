"""Columns of tiles divided among the nodes, as in the specification's example of tensor slices."""

import math
import sys

import numpy as np
import ttl
import ttnn
from ttl import grid_size

ROWS, COLS, g, GRID_X, GRID_Y = map(int, sys.argv[1:])


@ttl.operation(grid=(GRID_X, GRID_Y))
def __negate(A: ttnn.Tensor, B: ttnn.Tensor) -> None:
    a_dfb = ttl.make_dataflow_buffer_like(A, shape=(g, 1))
    b_dfb = ttl.make_dataflow_buffer_like(B, shape=(g, 1))
    row_tiles = A.shape[0] // ttl.TILE_SHAPE[0]
    col_tiles = A.shape[1] // ttl.TILE_SHAPE[1]
    cols_per_node = math.ceil(col_tiles / (grid_size(dims=1)))

    node_num = ttl.node(dims=1)
    start_ct = node_num * cols_per_node
    end_ct = min(start_ct + cols_per_node, col_tiles)

    @ttl.datamovement()
    def dm():
        for ct in range(start_ct, end_ct):
            for rt in range(row_tiles // g):
                with a_dfb.reserve() as a_blk:
                    row_slice = slice(rt * g, (rt + 1) * g)
                    a_xf = ttl.copy(A[row_slice, ct : ct + 1], a_blk)
                    a_xf.wait()

    @ttl.compute()
    def negate():
        for _ in range(start_ct, end_ct):
            for _ in range(row_tiles // g):
                with a_dfb.wait() as a_blk, b_dfb.reserve() as b_blk:
                    b_blk.store(-a_blk)

    @ttl.datamovement()
    def write():
        for ct in range(start_ct, end_ct):
            for rt in range(row_tiles // g):
                with b_dfb.wait() as b_blk:
                    b_xf = ttl.copy(b_blk, B[rt * g : (rt + 1) * g, ct])
                    b_xf.wait()


A = ttnn.rand((ROWS * 32, COLS * 32))
B = ttnn.zeros((ROWS * 32, COLS * 32))
__negate(A, B)
results = {"B": (B.elements(), np.negative(A.elements()))}
