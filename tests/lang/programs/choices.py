"""Kernels that choose: with match, or, continue in conditions, and by tensors and buffers that
differ from node to node; functions of pipes count in a variable of their kernel."""

import numpy as np
import ttl
import ttnn

COLUMNS, ROWS, TILES = 2, 3, 6


@ttl.operation(grid=(COLUMNS, ROWS))
def __choose(p: ttnn.Tensor, q: ttnn.Tensor, y: ttnn.Tensor, z: ttnn.Tensor) -> None:
    column, row = ttl.node(dims=2)
    source = p if column == 0 else q
    plain_dfb = ttl.make_dataflow_buffer_like(p, shape=(1, 1))
    scaled_dfb = ttl.make_dataflow_buffer_like(p, shape=(1, 1))
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1))
    z_dfb = ttl.make_dataflow_buffer_like(z, shape=(1, 1), block_count=3)
    x_dfb = scaled_dfb if row == 1 else plain_dfb
    net = ttl.PipeNet([ttl.Pipe((0, r), (1, r)) for r in range(ROWS)])
    started = column * 10

    @ttl.datamovement()
    def read():
        for i in range(TILES + 2):
            if i > TILES - 1:
                if column or i == TILES:
                    continue
                break
            with x_dfb.reserve() as x_blk:
                match i, row:
                    case (0, 0) | (1, 1):
                        place = TILES - 1
                    case (n, r) if n > r + 1:
                        place = n - r
                    case _:
                        place = i
                ttl.copy(source[row or 2, place], x_blk).wait()

    @ttl.compute()
    def compute():
        for i in range(TILES):
            with x_dfb.wait() as x_blk, y_dfb.reserve() as y_blk:
                y_blk.store(x_blk)
                if row == 1:
                    if i == 2:
                        continue
                    y_blk += x_blk
                y_blk += x_blk

    @ttl.datamovement()
    def write():
        nonlocal started
        sent = 0

        def send(pipe):
            nonlocal sent
            with z_dfb.reserve() as z_blk:
                ttl.copy(p[row, sent], z_blk).wait()
                ttl.copy(z_blk, pipe).wait()
            sent += 2

        def receive(pipe):
            nonlocal started
            with z_dfb.reserve() as z_blk:
                ttl.copy(pipe, z_blk).wait()
            with z_dfb.wait() as z_blk:
                ttl.copy(z_blk, z[row, started - 10]).wait()
            started += 1

        for i in range(TILES):
            with y_dfb.wait() as y_blk:
                ttl.copy(y_blk, y[column * ROWS + row, i]).wait()
            if i < 3:
                net.if_src(send)
                if column == 0:
                    with z_dfb.wait() as z_blk:
                        ttl.copy(z_blk, z[row, 3 + i]).wait()
                net.if_dst(receive)


def tile(tensor, row, column):
    return tensor[32 * row : 32 * row + 32, 32 * column : 32 * column + 32]


def place_of(i, row):
    if (i, row) in ((0, 0), (1, 1)):
        return TILES - 1
    return i - row if i > row + 1 else i


def tensor(seed):
    elements = np.random.default_rng(seed).standard_normal((32 * ROWS, 32 * TILES))
    return ttnn.from_torch(elements, ttnn.float32, layout=ttnn.TILE_LAYOUT)


p, q = tensor(1), tensor(2)
y = ttnn.zeros((32 * COLUMNS * ROWS, 32 * TILES), ttnn.float32)
z = ttnn.zeros((32 * ROWS, 32 * TILES), ttnn.float32)
__choose(p, q, y, z)

expected, passed = np.zeros_like(y.elements()), np.zeros_like(z.elements())
for column, source in enumerate((p.elements(), q.elements())):
    for row in range(ROWS):
        for i in range(TILES):
            factor = 2 if row != 1 else 1 if i == 2 else 3
            read = tile(source, row or 2, place_of(i, row))
            tile(expected, column * ROWS + row, i)[:] = factor * read
for row in range(ROWS):
    for i in range(3):
        tile(passed, row, i)[:] = tile(passed, row, 3 + i)[:] = tile(p.elements(), row, 2 * i)
results = {"y": (y.elements(), expected), "z": (z.elements(), passed)}
