"""Operations that normalize, mask and multiply rows: each node has blocks of one row of tiles."""

import sys

import numpy as np
import ttl
import ttnn

KIND = sys.argv[1]
ROWS, INNER, OUTER, NODES = map(int, sys.argv[2:])
EPSILON = 1e-5
HAS_GAIN = KIND in ("rms-norm-matmul", "layer-norm")
HAS_MASK = KIND in ("masked-softmax", "gated", "masked")
HAS_WEIGHT = KIND in ("rms-norm-matmul", "gelu-matmul")


@ttl.operation(grid=(NODES, 1))
def __rows(
    x: ttnn.Tensor, gain: ttnn.Tensor, mask: ttnn.Tensor, w: ttnn.Tensor, y: ttnn.Tensor
) -> None:
    node = ttl.node(dims=2)[0]
    columns = y.shape[1] // 32
    first = node * -(-ROWS // NODES)
    last = min(first + -(-ROWS // NODES), ROWS)
    wide, narrow = (1, INNER), (1, 1)

    x_dfb = ttl.make_dataflow_buffer_like(x, shape=wide)
    gain_dfb = ttl.make_dataflow_buffer_like(gain, shape=wide)
    mask_dfb = ttl.make_dataflow_buffer_like(mask, shape=wide)
    w_dfb = ttl.make_dataflow_buffer_like(w, shape=(INNER, OUTER))
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, columns))

    @ttl.datamovement()
    def read():
        if HAS_GAIN:
            with gain_dfb.reserve() as gain_blk:
                ttl.copy(gain[0, :], gain_blk).wait()
        if HAS_WEIGHT:
            with w_dfb.reserve() as w_blk:
                ttl.copy(w[:, :], w_blk).wait()
        for row in range(first, last):
            with x_dfb.reserve() as x_blk:
                ttl.copy(x[row, :], x_blk).wait()
            if HAS_MASK:
                with mask_dfb.reserve() as mask_blk:
                    ttl.copy(mask[row, :], mask_blk).wait()

    def column(values):
        return ttl.block.broadcast(values, dims=[-1], shape=wide)

    def total(values):
        return ttl.math.reduce_sum(values, dims=[-1], shape=narrow)

    def mean(values):
        return total(values) * ttl.block.fill(1 / (INNER * 32), shape=narrow)

    def inverse_root(values):
        return ttl.math.rsqrt(mean(values * values) + ttl.block.fill(EPSILON, shape=narrow))

    def softmax(scores):
        largest = ttl.math.reduce_max(scores, dims=[-1], shape=narrow)
        weights = ttl.math.exp(scores - column(largest))
        return weights / column(total(weights))

    def computed(values, gain_blk, mask_blk, w_blk):
        if KIND == "rms-norm-matmul":
            scaled = values * column(inverse_root(values))
            gains = ttl.block.broadcast(gain_blk, dims=[0], shape=wide)
            return (scaled * gains) @ w_blk
        if KIND == "layer-norm":
            centered = values - column(mean(values))
            gains = ttl.block.broadcast(gain_blk, dims=[0], shape=wide)
            return centered * column(inverse_root(centered)) * gains
        if KIND == "softmax":
            return softmax(values)
        if KIND == "masked-softmax":
            low = ttl.block.fill(-1e9, shape=wide)
            return softmax(ttl.block.where(mask_blk, values, low))
        if KIND == "gelu-matmul":
            return ttl.math.gelu(values @ w_blk)
        if KIND == "gated":
            return ttl.math.silu(values) * ttl.math.sigmoid(mask_blk - values)
        if KIND == "masked":
            return ttl.block.mask(ttl.math.tanh(values), mask_blk)
        raise ValueError(KIND)

    @ttl.compute()
    def compute():
        gain_blk = gain_dfb.wait() if HAS_GAIN else None
        w_blk = w_dfb.wait() if HAS_WEIGHT else None
        for _ in range(first, last):
            mask_blk = mask_dfb.wait() if HAS_MASK else None
            with x_dfb.wait() as x_blk, y_dfb.reserve() as y_blk:
                y_blk.store(computed(x_blk, gain_blk, mask_blk, w_blk))
            if mask_blk is not None:
                mask_blk.pop()
        for held in (gain_blk, w_blk):
            if held is not None:
                held.pop()

    @ttl.datamovement()
    def write():
        for row in range(first, last):
            with y_dfb.wait() as y_blk:
                ttl.copy(y_blk, y[row, :]).wait()


def tensor(elements):
    return ttnn.from_torch(elements, dtype=ttnn.float32, layout=ttnn.TILE_LAYOUT)


generator = np.random.default_rng(5)
x = tensor(3 * generator.standard_normal((ROWS * 32, INNER * 32)))
gain = tensor(generator.uniform(0.5, 2, (1, INNER * 32)))
mask = tensor(generator.integers(0, 2, (ROWS * 32, INNER * 32)).astype(np.float32))
w = tensor(generator.standard_normal((INNER * 32, OUTER * 32)) / (INNER * 32) ** 0.5)
width = OUTER if KIND.endswith("matmul") else INNER
y = ttnn.zeros((ROWS * 32, width * 32), ttnn.float32)
__rows(x, gain, mask, w, y)

a, g, m, b = (each.elements().astype(np.float64) for each in (x, gain, mask, w))


def expected_softmax(scores):
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def expected_gelu(values):
    from math import erf

    return values * (1 + np.vectorize(erf)(values / 2**0.5)) / 2


def root_mean_square(values):
    return np.sqrt((values**2).mean(axis=1, keepdims=True) + EPSILON)


centered = a - a.mean(axis=1, keepdims=True)
EXPECTED = {
    "rms-norm-matmul": lambda: (a / root_mean_square(a) * g) @ b,
    "layer-norm": lambda: centered / root_mean_square(centered) * g,
    "softmax": lambda: expected_softmax(a),
    "masked-softmax": lambda: expected_softmax(np.where(m, a, -np.inf)),
    "gelu-matmul": lambda: expected_gelu(a @ b),
    "gated": lambda: a / (1 + np.exp(-a)) / (1 + np.exp(a - m)),
    "masked": lambda: np.where(m, 0, np.tanh(a)),
}
results = {"y": (y.elements(), EXPECTED[KIND]())}
