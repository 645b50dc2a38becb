"""Batched matrix multiplication with bias, as in the specification; the nodes of a grid share the
blocks of the result."""

import sys

import numpy as np
import ttl
import ttnn

I_BLOCKS, M_BLOCKS, N_BLOCKS, K_BLOCKS = map(int, sys.argv[1].split(","))
I_BLOCK_SIZE, M_BLOCK_SIZE, N_BLOCK_SIZE, K_BLOCK_SIZE = map(int, sys.argv[2].split(","))
COLUMNS, ROWS = map(int, sys.argv[3:] or (1, 1))
TILE_SIZE = 32


@ttl.operation(grid=(COLUMNS, ROWS))
def __matmul(a: ttnn.Tensor, b: ttnn.Tensor, c: ttnn.Tensor, y: ttnn.Tensor) -> None:
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(I_BLOCK_SIZE, M_BLOCK_SIZE, K_BLOCK_SIZE))
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=(K_BLOCK_SIZE, N_BLOCK_SIZE))
    c_dfb = ttl.make_dataflow_buffer_like(c, shape=(M_BLOCK_SIZE, N_BLOCK_SIZE))
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(I_BLOCK_SIZE, M_BLOCK_SIZE, N_BLOCK_SIZE))

    column, row = ttl.node(dims=2)

    @ttl.datamovement()
    def matmul_read():
        for i_block in range(column, I_BLOCKS, COLUMNS):
            i_slice = slice(i_block * I_BLOCK_SIZE, (i_block + 1) * I_BLOCK_SIZE)

            for m_block in range(row, M_BLOCKS, ROWS):
                m_slice = slice(m_block * M_BLOCK_SIZE, (m_block + 1) * M_BLOCK_SIZE)

                for n_block in range(N_BLOCKS):
                    n_slice = slice(n_block * N_BLOCK_SIZE, (n_block + 1) * N_BLOCK_SIZE)

                    with c_dfb.reserve() as c_blk:
                        c_xf = ttl.copy(c[m_slice, n_slice], c_blk)
                        c_xf.wait()

                    for k_block in range(K_BLOCKS):
                        k_slice = slice(k_block * K_BLOCK_SIZE, (k_block + 1) * K_BLOCK_SIZE)

                        with (
                            a_dfb.reserve() as a_blk,
                            b_dfb.reserve() as b_blk,
                        ):
                            a_xf = ttl.copy(a[i_slice, m_slice, k_slice], a_blk)
                            b_xf = ttl.copy(b[k_slice, n_slice], b_blk)

                            a_xf.wait()
                            b_xf.wait()

    @ttl.compute()
    def matmul_compute():
        for _ in range(column, I_BLOCKS, COLUMNS):
            for _ in range(row, M_BLOCKS, ROWS):
                for _ in range(N_BLOCKS):
                    with y_dfb.reserve() as y_blk:
                        y_final = ttl.block.fill(
                            0, shape=(I_BLOCK_SIZE, M_BLOCK_SIZE, N_BLOCK_SIZE)
                        )

                        for _ in range(K_BLOCKS):
                            with (
                                a_dfb.wait() as a_blk,
                                b_dfb.wait() as b_blk,
                            ):
                                b_bcast = ttl.block.broadcast(
                                    ttl.block.unsqueeze(b_blk, dims=[0]),
                                    dims=[0],
                                    shape=(I_BLOCK_SIZE, K_BLOCK_SIZE, N_BLOCK_SIZE),
                                )
                                y_final += a_blk @ b_bcast

                        with c_dfb.wait() as c_blk:
                            c_bcast = ttl.block.broadcast(
                                ttl.block.unsqueeze(c_blk, dims=[0]),
                                dims=[0],
                                shape=(I_BLOCK_SIZE, M_BLOCK_SIZE, N_BLOCK_SIZE),
                            )
                            y_final = y_final + c_bcast

                        y_blk.store(y_final)

    @ttl.datamovement()
    def matmul_write():
        for i_block in range(column, I_BLOCKS, COLUMNS):
            for m_block in range(row, M_BLOCKS, ROWS):
                for n_block in range(N_BLOCKS):
                    with y_dfb.wait() as y_blk:
                        y_xf = ttl.copy(
                            y_blk,
                            y[
                                i_block * I_BLOCK_SIZE : (i_block + 1) * I_BLOCK_SIZE,
                                m_block * M_BLOCK_SIZE : (m_block + 1) * M_BLOCK_SIZE,
                                n_block * N_BLOCK_SIZE : (n_block + 1) * N_BLOCK_SIZE,
                            ],
                        )
                        y_xf.wait()


def random(*shape):
    return ttnn.from_torch(
        np.random.default_rng(len(shape)).standard_normal(shape),
        dtype=ttnn.bfloat16,
        layout=ttnn.TILE_LAYOUT,
    )


BATCH = I_BLOCKS * I_BLOCK_SIZE
M = M_BLOCKS * M_BLOCK_SIZE * TILE_SIZE
N = N_BLOCKS * N_BLOCK_SIZE * TILE_SIZE
K = K_BLOCKS * K_BLOCK_SIZE * TILE_SIZE
a, b, c = random(BATCH, M, K), random(K, N), random(M, N)
y = ttnn.zeros((BATCH, M, N), layout=ttnn.TILE_LAYOUT)
__matmul(a, b, c, y)
results = {"y": (y.elements(), a.elements() @ b.elements() + c.elements())}
