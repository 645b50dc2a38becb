"""Formulas of models, each an operation on two tensors: rows of tiles dealt out to the nodes.

formulas.py GRID_X GRID_Y ROWS COLUMNS NAME...        the formulas of these names, or all
"""

import math
import sys

import numpy as np
import ttl
import ttnn

GRID_X, GRID_Y, ROWS, COLUMNS = map(int, sys.argv[1:5])
WIDE = (1, COLUMNS)


def number(value):
    return ttl.block.fill(value, shape=WIDE)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0)


def elu(x, slope, scale=1):
    return scale * np.where(x > 0, x, slope * np.expm1(x))


def gelu(x):
    return x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2


def hardsigmoid(x):
    return np.clip(x + 3, 0, 6) / 6


def huber(a, b):
    cut = ttl.math.clamp(a - b, -1, 1)
    return cut * (a - b - cut * number(0.5))


def huber_in_numpy(a, b):
    cut = np.clip(a - b, -1, 1)
    return cut * (a - b - cut / 2)


def rotated(a, b):
    return ttl.math.cos(b) * a + ttl.math.sin(b) * ttl.math.neg(a)


def angles(a, b):
    inside = ttl.math.tanh(a) * number(0.75)
    return ttl.math.asin(inside) + ttl.math.acos(inside) * ttl.math.atan(b)


def angles_in_numpy(a, b):
    inside = np.tanh(a) * 0.75
    return np.arcsin(inside) + np.arccos(inside) * np.arctan(b)


def areas(a, b):
    inside = ttl.math.tanh(a) * number(0.75)
    return ttl.math.atanh(inside) + ttl.math.asinh(b) - ttl.math.acosh(abs(b) + number(1.5))


def areas_in_numpy(a, b):
    inside = np.tanh(a) * 0.75
    return np.arctanh(inside) + np.arcsinh(b) - np.arccosh(np.abs(b) + 1.5)


def density(a, b):
    width = ttl.math.square(b) + number(0.5)
    return ttl.math.exp(-ttl.math.square(a) / width) * ttl.math.rsqrt(width)


def density_in_numpy(a, b):
    width = b * b + 0.5
    return np.exp(-a * a / width) / np.sqrt(width)


def entropy(a, b):
    share = ttl.math.sigmoid(a)
    return -(share * ttl.math.log(share)) + ttl.math.logp1(ttl.math.abs(b))


def entropy_in_numpy(a, b):
    share = sigmoid(a)
    return -(share * np.log(share)) + np.log1p(np.abs(b))


def parts(a, b):
    return ttl.math.frac(a) + ttl.math.trunc(b) * ttl.math.floor(a) - ttl.math.ceil(b)


def signs(a, b):
    root = ttl.math.sqrt(ttl.math.abs(a))
    return ttl.math.sign(a) * root + ttl.math.signbit(b)


def rectified(a, b):
    upper = ttl.math.relu_max(a, 1) + ttl.math.relu_min(b, 1)
    return ttl.math.relu(a) - upper + ttl.math.leaky_relu(b, 2) * ttl.math.prelu(a, 3)


def rectified_in_numpy(a, b):
    upper = np.clip(a, 0, 1) + np.maximum(b, 1)
    leaky, sloped = np.where(b > 0, b, 2 * b), np.where(a > 0, a, 3 * a)
    return np.maximum(a, 0) - upper + leaky * sloped


def exponential_units(a, b):
    return ttl.math.elu(a, 2) + ttl.math.celu(b, 2, 0.5) - ttl.math.selu(a, 1, 2)


def exponential_units_in_numpy(a, b):
    celu = np.maximum(b, 0) + np.minimum(2 * np.expm1(b / 2), 0)
    return elu(a, 2) + celu - elu(a, 2, 1)


def bounded(a, b):
    return ttl.math.hardtanh(a, -1, 1) * ttl.math.softsign(b) + ttl.math.threshold(a, 1, 5)


def bounded_in_numpy(a, b):
    return np.clip(a, -1, 1) * b / (1 + np.abs(b)) + np.where(a > 1, 5, a)


def powers(a, b):
    return ttl.math.exp2(a) - ttl.math.expm1(b) + a**3 * ttl.math.pow(b, 2)


def inverted(a, b):
    return ttl.math.rsub(a, 3) * ttl.math.recip(ttl.math.square(b) + number(1))


def distance(a, b):
    return ttl.math.max(a, b) - ttl.math.min(a, b)


def remainders(a, b):
    return abs(a) % number(0.75) + ttl.math.round(b, 1) // number(0.5)


def chosen(a, b):
    positive = ttl.math.relu(ttl.math.sign(a))
    kept = ttl.block.mask(b, positive)
    infinite = ttl.math.recip(ttl.block.mask_posinf(number(2), positive))
    return ttl.block.where(positive, a, kept) + infinite


def chosen_in_numpy(a, b):
    return np.where(a > 0, a, b + 0.5)


def scores(a, b):
    product = a @ ttl.block.transpose(b)
    largest = ttl.math.reduce_max(product, dims=[-1], shape=(1, 1))
    return ttl.block.broadcast(largest, dims=[-1], shape=WIDE) * number(0.125)


def scores_in_numpy(a, b):
    largest = [
        (a[32 * n : 32 * n + 32] @ b[32 * n : 32 * n + 32].T).max(1, keepdims=True)
        for n in range(ROWS)
    ]
    return np.broadcast_to(np.vstack(largest) / 8, a.shape)


def centred(a, b):
    total = ttl.math.reduce_sum(a, dims=[-1], shape=(1, 1))
    flat = ttl.block.squeeze(ttl.block.unsqueeze(total, dims=[0]), dims=[0])
    mean = ttl.block.broadcast(flat, dims=[-1], shape=WIDE) * number(1 / (32 * COLUMNS))
    return (a - mean) * ttl.math.tan(b * number(0.25))


FORMULAS = {
    "mish": (
        lambda a, b: a * ttl.math.tanh(ttl.math.softplus(a, 1, 1, 20)) + b,
        lambda a, b: a * np.tanh(softplus(a)) + b,
    ),
    "swiglu": (lambda a, b: ttl.math.silu(a) * b, lambda a, b: a * sigmoid(a) * b),
    "geglu": (lambda a, b: ttl.math.gelu(a) * b, lambda a, b: gelu(a) * b),
    "hardswish": (
        lambda a, b: a * ttl.math.hardsigmoid(a) - b,
        lambda a, b: a * hardsigmoid(a) - b,
    ),
    "huber": (huber, huber_in_numpy),
    "rotated": (rotated, lambda a, b: np.cos(b) * a - np.sin(b) * a),
    "angles": (angles, angles_in_numpy),
    "areas": (areas, areas_in_numpy),
    "density": (density, density_in_numpy),
    "entropy": (entropy, entropy_in_numpy),
    "parts": (parts, lambda a, b: a - np.trunc(a) + np.trunc(b) * np.floor(a) - np.ceil(b)),
    "signs": (signs, lambda a, b: np.sign(a) * np.sqrt(np.abs(a)) + (b >= 0)),
    "rectified": (rectified, rectified_in_numpy),
    "exponential-units": (exponential_units, exponential_units_in_numpy),
    "bounded": (bounded, bounded_in_numpy),
    "powers": (powers, lambda a, b: 2**a - np.expm1(b) + a**3 * b**2),
    "inverted": (inverted, lambda a, b: (3 - a) / (b * b + 1)),
    "distance": (distance, lambda a, b: np.abs(a - b)),
    "remainders": (
        remainders,
        lambda a, b: np.abs(a) % 0.75 + np.round(b, 1) // 0.5,
    ),
    "chosen": (chosen, chosen_in_numpy),
    "scores": (scores, scores_in_numpy),
    "centred": (
        centred,
        lambda a, b: (a - a.mean(1, keepdims=True)) * np.tan(b / 4),
    ),
}
NAMES = sys.argv[5:] or list(FORMULAS)
CHOSEN = tuple(FORMULAS[name][0] for name in NAMES)


@ttl.operation(grid=(GRID_X, GRID_Y))
def __formulas(a: ttnn.Tensor, b: ttnn.Tensor, y: ttnn.Tensor) -> None:
    node = ttl.node(dims=1)
    nodes = ttl.grid_size(dims=1)
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=WIDE)
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=WIDE)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=WIDE)

    @ttl.datamovement()
    def read():
        for row in range(node, ROWS, nodes):
            with a_dfb.reserve() as a_blk, b_dfb.reserve() as b_blk:
                a_xf = ttl.copy(a[row, :], a_blk)
                b_xf = ttl.copy(b[row, :], b_blk)
                a_xf.wait()
                b_xf.wait()

    @ttl.compute()
    def compute():
        for _ in range(node, ROWS, nodes):
            with a_dfb.wait() as a_blk, b_dfb.wait() as b_blk:
                for formula in CHOSEN:
                    with y_dfb.reserve() as y_blk:
                        y_blk.store(formula(a_blk, b_blk))

    @ttl.datamovement()
    def write():
        for row in range(node, ROWS, nodes):
            place = 0
            for _ in range(len(CHOSEN)):
                with y_dfb.wait() as y_blk:
                    ttl.copy(y_blk, y[row, place : place + COLUMNS]).wait()
                place += COLUMNS


def random(seed):
    elements = np.random.default_rng(seed).uniform(-2.5, 2.5, (32 * ROWS, 32 * COLUMNS))
    return ttnn.from_torch(elements, ttnn.float32, layout=ttnn.TILE_LAYOUT)


a, b = random(1), random(2)
y = ttnn.zeros((32 * ROWS, 32 * COLUMNS * len(CHOSEN)), ttnn.float32)
__formulas(a, b, y)
wide = 32 * COLUMNS
results = {
    name: (
        y.elements()[:, wide * n : wide * (n + 1)],
        FORMULAS[name][1](a.elements(), b.elements()),
    )
    for n, name in enumerate(NAMES)
}
