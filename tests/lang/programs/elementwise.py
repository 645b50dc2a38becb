"""Tiled element-wise with broadcast and reduce, as in the specification."""

import sys

import numpy as np
import ttl
import ttnn

N, M, N_BLOCK_SIZE, GRID_X, GRID_Y = map(int, sys.argv[1:])
TILE_SIZE = 32


@ttl.operation(grid=(GRID_X, GRID_Y))
def __elwise(
    a: ttnn.Tensor, b: ttnn.Tensor, c: ttnn.Tensor, d: ttnn.Tensor, y: ttnn.Tensor, z: ttnn.Tensor
) -> None:
    # Shape in tiles (N and M are evenly divisible by TILE_SIZE)
    N_TILES = N // TILE_SIZE
    M_TILES = M // TILE_SIZE

    # Shape in blocks (N_TILES is evenly divisible by N_BLOCK_SIZE)
    N_BLOCKS = N_TILES // N_BLOCK_SIZE

    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(N_BLOCK_SIZE, M_TILES))
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=(N_BLOCK_SIZE, 1))
    c_dfb = ttl.make_dataflow_buffer_like(c, shape=(1, M_TILES))
    d_dfb = ttl.make_dataflow_buffer_like(d, shape=(1, 1))
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(N_BLOCK_SIZE, 1))
    z_dfb = ttl.make_dataflow_buffer_like(z, shape=(1, M_TILES))

    @ttl.datamovement()
    def elwise_read():
        with (
            c_dfb.reserve() as c_blk,
            d_dfb.reserve() as d_blk,
        ):
            c_xf = ttl.copy(c[0, :], c_blk)
            d_xf = ttl.copy(d[0, 0], d_blk)

            c_xf.wait()
            d_xf.wait()

        for n_block in range(N_BLOCKS):
            with (
                a_dfb.reserve() as a_blk,
                b_dfb.reserve() as b_blk,
            ):
                a_xf = ttl.copy(a[n_block * N_BLOCK_SIZE : (n_block + 1) * N_BLOCK_SIZE, :], a_blk)
                b_xf = ttl.copy(b[n_block * N_BLOCK_SIZE : (n_block + 1) * N_BLOCK_SIZE, 0], b_blk)

                a_xf.wait()
                b_xf.wait()

    @ttl.compute()
    def elwise_compute():
        with (
            c_dfb.wait() as c_blk,
            d_dfb.wait() as d_blk,
            z_dfb.reserve() as z_blk,
        ):
            c_squared = c_blk**2
            d_squared = d_blk**2

            c_squared_bcast = ttl.block.broadcast(
                c_squared, dims=[0], shape=(N_BLOCK_SIZE, M_TILES)
            )
            d_squared_bcast = ttl.block.broadcast(
                d_squared, dims=[0, 1], shape=(N_BLOCK_SIZE, M_TILES)
            )

            z_final = ttl.block.fill(0, shape=(1, M_TILES))

            for _ in range(N_BLOCKS):
                with (
                    a_dfb.wait() as a_blk,
                    b_dfb.wait() as b_blk,
                    y_dfb.reserve() as y_blk,
                ):
                    a_squared = a_blk**2
                    b_squared = b_blk**2

                    b_squared_bcast = ttl.block.broadcast(
                        b_squared, dims=[-1], shape=(N_BLOCK_SIZE, M_TILES)
                    )

                    expanded_y = ttl.math.sqrt(
                        a_squared + b_squared_bcast + c_squared_bcast + d_squared_bcast
                    )
                    expanded_z = ttl.math.sqrt(
                        a_squared - b_squared_bcast - c_squared_bcast - d_squared_bcast
                    )

                    y_final = ttl.math.reduce_sum(expanded_y, dims=[-1], shape=(N_BLOCK_SIZE, 1))
                    z_partial = ttl.math.reduce_sum(expanded_z, dims=[0], shape=(1, M_TILES))

                    y_blk.store(y_final)
                    z_final += z_partial

            z_blk.store(z_final)

    @ttl.datamovement()
    def elwise_write():
        with z_dfb.wait() as z_blk:
            z_xf = ttl.copy(z_blk, z[0, :])
            z_xf.wait()

        for n_block in range(N_BLOCKS):
            n_slice = slice(n_block * N_BLOCK_SIZE, (n_block + 1) * N_BLOCK_SIZE)

            with y_dfb.wait() as y_blk:
                y_xf = ttl.copy(y_blk, y[n_slice, :])
                y_xf.wait()


generator = np.random.default_rng(7)


def tensor(elements):
    return ttnn.from_torch(elements, dtype=ttnn.float32, layout=ttnn.TILE_LAYOUT)


a = tensor(generator.random((N, M)) + 2)
b = tensor(generator.random((N, 1)))
c = tensor(generator.random(M))
d = tensor(generator.random(()))
y = ttnn.zeros((N, 1), ttnn.float32)
z = ttnn.zeros((M,), ttnn.float32)
__elwise(a, b, c, d, y, z)

squares = [each.elements() ** 2 for each in (a, b, c, d)]
results = {
    "y": (y.elements(), np.sqrt(sum(squares)).sum(axis=1, keepdims=True)),
    "z": (z.elements(), np.sqrt(squares[0] - squares[1] - squares[2] - squares[3]).sum(axis=0)),
}
