"""Tiles that nodes find in every way that Python has to count: bits, tables, choices, loops that
end early, lists and records that differ from node to node, and blocks filled with such numbers."""

import functools
import math
import sys
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import ttl
import ttnn

COLUMNS, ROWS = map(int, sys.argv[1:])
TILES = 3 * COLUMNS * ROWS + 2
ORDER = [int(n) for n in np.random.default_rng(7).permutation(TILES)]


class Share(NamedTuple):
    first: int
    weight: float


@dataclass
class Neighbor:
    column: int
    row: int


@ttl.operation(grid=(COLUMNS, ROWS))
def shuffle(x: ttnn.Tensor, order: ttnn.Tensor, y: ttnn.Tensor) -> None:
    column, row = ttl.node(dims=2)
    me, count = ttl.node(dims=1), ttl.grid_size(dims=1)
    mine = [ORDER[n] for n in range(me, TILES, count)]
    places = range(me, TILES, count)
    share = Share((me * me) % 5, 1 / (me + 1))
    follower = (me + 1) % count
    neighbor = Neighbor(follower // ROWS, follower % ROWS)
    token = ttl.Semaphore()
    passed_on = token.get_remote((neighbor.column, neighbor.row))
    is_corner = (column, row) in ((0, ROWS - 1), (COLUMNS - 1, 0))
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 1))
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1))

    @ttl.datamovement()
    def read():
        if me > 0:
            token.wait_ge(me)
        passed_on.set(me + 1 if me != count - 1 else 0)
        for tile in mine:
            with x_dfb.reserve() as x_blk:
                ttl.copy(x[0, tile ^ 0], x_blk).wait()

    @ttl.compute()
    def compute():
        step = 0
        while True:
            if step >= len(places):
                break
            with x_dfb.wait() as x_blk, y_dfb.reserve() as y_blk:
                by_node = ttl.block.fill(share.weight, shape=(1, 1))
                by_step = ttl.block.fill(step / 2 + share.first, shape=(1, 1))
                parts = [x_blk, by_node * x_blk, by_step]
                total = functools.reduce(ttl.math.max, parts)
                y_blk.store(total if is_corner else -total)
            step += 1

    @ttl.datamovement()
    def write():
        for number, place in enumerate(places):
            if place == TILES - 1 and number > 0:
                print("the last tile")
            with y_dfb.wait() as y_blk:
                here = math.ceil(place / 2) + (place >> 1)
                there = place if abs(here - place) < 1 else (here & 0xFF) | 0
                ttl.copy(y_blk, y[0, there]).wait()


values = np.random.default_rng(0).standard_normal((32, 32 * TILES)).astype(np.float32)
x = ttnn.from_torch(values, layout=ttnn.TILE_LAYOUT, dtype=ttnn.float32)
y = ttnn.zeros((32, 32 * TILES), layout=ttnn.TILE_LAYOUT, dtype=ttnn.float32)
shuffle(x, x, y)

expected = np.empty_like(values)
for node in range(COLUMNS * ROWS):
    for number, place in enumerate(range(node, TILES, COLUMNS * ROWS)):
        tile = values[:, 32 * ORDER[place] : 32 * ORDER[place] + 32]
        filled = np.float32(number / 2 + (node * node) % 5)
        found = np.maximum(np.maximum(tile, tile * np.float32(1 / (node + 1))), filled)
        corner = divmod(node, ROWS) in ((0, ROWS - 1), (COLUMNS - 1, 0))
        expected[:, 32 * place : 32 * place + 32] = found if corner else -found
results = {"shuffled": (np.asarray(ttnn.to_torch(y)), expected)}
