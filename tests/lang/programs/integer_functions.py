"""Operators and functions of blocks of integers, one row of tiles of the result for each.

integer_functions.py DTYPE LAYOUT       int32 or uint32, TILE or ROW_MAJOR
"""

import sys

import numpy as np
import ttl
import ttnn

DTYPE = getattr(ttnn, sys.argv[1])
LAYOUT = getattr(ttnn, f"{sys.argv[2]}_LAYOUT")
IS_TILED = LAYOUT == ttnn.TILE_LAYOUT
SHAPE = (1, 1) if IS_TILED else (2, 32)
ROWS = 32 if IS_TILED else 2


def number(value):
    return ttl.block.fill(value, shape=SHAPE)


FUNCTIONS = [
    (lambda a, b: a + b, lambda a, b: a + b),
    (lambda a, b: a - b * number(3), lambda a, b: a - b * 3),
    (lambda a, b: a ^ b, lambda a, b: a ^ b),
    (lambda a, b: a**3 + ttl.math.square(b), lambda a, b: a**3 + b * b),
    (lambda a, b: ttl.math.rsub(-a, 7), lambda a, b: 7 + a),
    (lambda a, b: ttl.math.max(abs(a), b), lambda a, b: np.maximum(np.abs(a), b)),
    (lambda a, b: ttl.math.min(a, ttl.math.relu(b)), lambda a, b: np.minimum(a, np.maximum(b, 0))),
    (lambda a, b: ttl.block.where(a - b, a, b), lambda a, b: a),
    (lambda a, b: ttl.block.mask(a, b), lambda a, b: np.where(b == 1, 0, a)),
    (
        lambda a, b: (
            ttl.math.floor(a) + ttl.math.ceil(a) + ttl.math.trunc(b) + ttl.math.round(b, 0)
        ),
        lambda a, b: 2 * (a + b),
    ),
]
OF_SIGNED = [
    (lambda a, b: a // b, lambda a, b: a // b),
    (lambda a, b: a % b, lambda a, b: a % b),
    (lambda a, b: ttl.math.sign(a) - ttl.math.signbit(b), lambda a, b: np.sign(a) - (b >= 0)),
    (
        lambda a, b: ttl.math.clamp(a, -3, 5) + ttl.math.hardtanh(b, -2, 2),
        lambda a, b: np.clip(a, -3, 5) + np.clip(b, -2, 2),
    ),
    (
        lambda a, b: ttl.math.relu_max(a, 6) * ttl.math.relu_min(b, 2),
        lambda a, b: np.clip(a, 0, 6) * np.maximum(b, 2),
    ),
    (
        lambda a, b: ttl.math.threshold(a, 4, -1) + ttl.math.leaky_relu(b, 3),
        lambda a, b: np.where(a > 4, -1, a) + np.where(b > 0, b, 3 * b),
    ),
    (lambda a, b: ttl.math.prelu(a, 2), lambda a, b: np.where(a > 0, a, 2 * a)),
]
OF_TILES = [
    (lambda a, b: ttl.block.transpose(a), lambda a, b: a.T),
    (
        lambda a, b: ttl.block.broadcast(a, dims=[0], shape=(1, 1)) * b,
        lambda a, b: a[:1] * b,
    ),
    (
        lambda a, b: a - ttl.block.broadcast(b, dims=[1], shape=(1, 1)),
        lambda a, b: a - b[:, :1],
    ),
    (
        lambda a, b: ttl.block.broadcast(a + b, dims=[0, 1], shape=(1, 1)),
        lambda a, b: np.broadcast_to(a[0, 0] + b[0, 0], a.shape),
    ),
]
CHOSEN = [
    *FUNCTIONS,
    *(OF_SIGNED if DTYPE == ttnn.int32 else []),
    *(OF_TILES if IS_TILED else []),
]
COMPUTED = tuple(function for function, _ in CHOSEN)


@ttl.operation(grid=(1, 1))
def __integer_functions(a: ttnn.Tensor, b: ttnn.Tensor, y: ttnn.Tensor) -> None:
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=SHAPE)
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=SHAPE)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=SHAPE)

    @ttl.datamovement()
    def read():
        with a_dfb.reserve() as a_blk, b_dfb.reserve() as b_blk:
            a_xf = ttl.copy(a[:, :], a_blk)
            b_xf = ttl.copy(b[:, :], b_blk)
            a_xf.wait()
            b_xf.wait()

    @ttl.compute()
    def compute():
        with a_dfb.wait() as a_blk, b_dfb.wait() as b_blk:
            for function in COMPUTED:
                with y_dfb.reserve() as y_blk:
                    y_blk.store(function(a_blk, b_blk))

    @ttl.datamovement()
    def write():
        for place in range(len(COMPUTED)):
            with y_dfb.wait() as y_blk:
                row = place * SHAPE[0]
                ttl.copy(y_blk, y[row : row + SHAPE[0], :]).wait()


def random(seed):
    least = -50000 if DTYPE == ttnn.int32 else 1
    found = np.random.default_rng(seed).integers(least, 50000, (ROWS, 32), np.int32)
    return np.where(found % 5 == 0, 1, found)


a, b = random(1), random(2)
y = ttnn.zeros((ROWS * len(CHOSEN), 32), DTYPE, layout=LAYOUT)
operands = [ttnn.from_torch(each, DTYPE, layout=LAYOUT) for each in (a, b)]
__integer_functions(*operands, y)
kind = np.int32 if DTYPE == ttnn.int32 else np.uint32
expected = [function(a.astype(kind), b.astype(kind)) for _, function in CHOSEN]
results = {"y": (y.elements(), np.vstack(expected).astype(kind))}
