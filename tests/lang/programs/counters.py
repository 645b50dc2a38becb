"""Kernels that count: numbers that loops carry, and that conditions change."""

import numpy as np
import ttl
import ttnn

COLUMNS, ROWS, TILES = 2, 2, 7


@ttl.operation(grid=(COLUMNS, ROWS))
def __count(x: ttnn.Tensor, y: ttnn.Tensor) -> None:
    column, row = ttl.node(dims=2)
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 1))
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1))

    @ttl.datamovement()
    def read():
        place = 0
        last = column * 2
        for i in range(3):
            for _ in range(2):
                with x_dfb.reserve() as x_blk:
                    ttl.copy(x[row, place], x_blk).wait()
                place += 1
            if i > row:
                last = last + 1
        with x_dfb.reserve() as x_blk:
            ttl.copy(x[0, last], x_blk).wait()

    @ttl.compute()
    def compute():
        turn, before = 0, 1
        for _ in range(TILES):
            turn, before = (turn + before) % 3, turn
            with x_dfb.wait() as x_blk, y_dfb.reserve() as y_blk:
                if turn == 0:
                    y_blk.store(-x_blk)
                else:
                    y_blk.store(x_blk + x_blk)

    @ttl.datamovement()
    def write():
        first = 0
        if column == 1:
            first = 1
        n = first
        for _ in range(TILES):
            with y_dfb.wait() as y_blk:
                ttl.copy(y_blk, y[column * ROWS + row, n]).wait()
            if n == TILES - 1:
                n = 0
            else:
                n += 1


def turns():
    turn, before = 0, 1
    for _ in range(TILES):
        turn, before = (turn + before) % 3, turn
        yield -1 if turn == 0 else 2


def tile(tensor, row, column):
    return tensor[32 * row : 32 * row + 32, 32 * column : 32 * column + 32]


elements = np.random.default_rng(1).standard_normal((32 * ROWS, 32 * 8))
x = ttnn.from_torch(elements, ttnn.float32, layout=ttnn.TILE_LAYOUT)
y = ttnn.zeros((32 * COLUMNS * ROWS, 32 * TILES), ttnn.float32)
__count(x, y)

expected = np.zeros_like(y.elements())
for column in range(COLUMNS):
    for row in range(ROWS):
        last = column * 2 + sum(i > row for i in range(3))
        read = [tile(x.elements(), row, n) for n in range(6)] + [tile(x.elements(), 0, last)]
        for n, (factor, block) in enumerate(zip(turns(), read, strict=True)):
            place = (n + (column == 1)) % TILES
            tile(expected, column * ROWS + row, place)[:] = factor * block
results = {"y": (y.elements(), expected)}
