"""Functions of blocks in the simulator, element by element against Python's own arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tests.lang.running import compiler_refusal, failure, operation, run_text
from ttcodegen.lang.simulator.functions import MATH_FUNCTIONS

Scalar = Callable[[float], float]


def _elu(slope: float, scale: float = 1.0) -> Scalar:
    return lambda x: scale * (x if x > 0 else slope * (math.exp(x) - 1))


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


MEANINGS: dict[str, tuple[tuple[float, ...], Scalar]] = {
    "abs": ((), abs),
    "neg": ((), lambda x: -x),
    "exp": ((), math.exp),
    "exp2": ((), lambda x: 2**x),
    "expm1": ((), math.expm1),
    "log": ((), math.log),
    "logp1": ((), math.log1p),
    "sqrt": ((), math.sqrt),
    "square": ((), lambda x: x * x),
    "rsqrt": ((), lambda x: 1 / math.sqrt(x)),
    "recip": ((), lambda x: 1 / x),
    "rsub": ((3,), lambda x: 3 - x),
    "tan": ((), math.tan),
    "tanh": ((), math.tanh),
    "atan": ((), math.atan),
    "atanh": ((), math.atanh),
    "sin": ((), math.sin),
    "asin": ((), math.asin),
    "asinh": ((), math.asinh),
    "cos": ((), math.cos),
    "acos": ((), math.acos),
    "acosh": ((), math.acosh),
    "relu": ((), lambda x: max(x, 0)),
    "relu_max": ((1,), lambda x: max(min(x, 1), 0)),
    "relu_min": ((1,), lambda x: max(max(x, 1), 0)),
    "leaky_relu": ((2,), lambda x: x if x > 0 else 2 * x),
    "elu": ((2,), _elu(2)),
    "gelu": ((), lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2),
    "sigmoid": ((), _sigmoid),
    "celu": ((2, 0.5), lambda x: max(0, x) + min(0, 2 * (math.exp(x / 2) - 1))),
    "silu": ((), lambda x: x * _sigmoid(x)),
    "prelu": ((3,), lambda x: x if x > 0 else 3 * x),
    "softplus": ((2, 0.5, 2), lambda x: x if 2 * x > 2 else math.log(1 + math.exp(2 * x)) / 2),
    "softsign": ((), lambda x: x / (1 + abs(x))),
    "hardsigmoid": ((), lambda x: min(max(x + 3, 0), 6) / 6),
    "hardtanh": ((0, 1), lambda x: min(max(x, 0), 1)),
    "selu": ((2, 3), _elu(3, 2)),
    "frac": ((), lambda x: math.fmod(x, 1)),
    "trunc": ((), math.trunc),
    "round": ((1,), lambda x: round(x, 1)),
    "floor": ((), math.floor),
    "ceil": ((), math.ceil),
    "clamp": ((-1, 1), lambda x: min(max(x, -1), 1)),
    "threshold": ((1, 5), lambda x: 5 if x > 1 else x),
    "sign": ((), lambda x: (x > 0) - (x < 0)),
    "signbit": ((), lambda x: math.copysign(1, x) > 0),
}
POINTS = [-2.75, -1.0, -0.625, -0.0, 0.0, 0.125, 0.625, 1.0, 1.5, 2.75]


def test_each_function_of_the_table_has_a_meaning_here() -> None:
    assert MEANINGS.keys() == MATH_FUNCTIONS.keys()


KERNELS = """
    @ttl.datamovement()
    def read():
        with x_dfb.reserve() as x_blk:
            ttl.copy(x[0, 0], x_blk).wait()
    @ttl.compute()
    def compute():
        with x_dfb.wait() as x_blk, y_dfb.reserve() as y_blk:
            y_blk.store(EXPRESSION)
    @ttl.datamovement()
    def write():
        with y_dfb.wait() as y_blk:
            ttl.copy(y_blk, y[0, 0]).wait()
"""


def computed(expression: str, elements: np.ndarray) -> np.ndarray:
    """A tile of an expression of the block `x_blk`."""
    text = operation(KERNELS.replace("\n    ", "\n").replace("EXPRESSION", expression))
    text = text.replace("ttnn.rand((64, 64))", f"ttnn.from_torch(numpy.array({elements.tolist()}),"
                        " ttnn.float32, layout=ttnn.TILE_LAYOUT)")  # fmt: skip
    text = text.replace("ttnn.zeros((64, 64))", "ttnn.zeros((32, 32), ttnn.float32)")
    result = run_text(text.replace("import ttl", "import numpy, ttl", 1))["y"]
    return result.elements()  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", MEANINGS)
def test_a_function_of_each_element(name: str) -> None:
    numbers, meaning = MEANINGS[name]
    points: list[float] = []
    for point in POINTS:
        try:
            meaning(point)
        except (ValueError, ZeroDivisionError):
            continue
        points.append(point)
    assert points
    call = ", ".join(["x_blk", *map(str, numbers)])
    found = computed(f"ttl.math.{name}({call})", np.array([points]))
    expected = [meaning(point) for point in points]
    np.testing.assert_allclose(found[0, : len(points)], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("x_blk + x_blk", [[2, 4], [6, 8]]),
        ("x_blk - x_blk", [[0, 0], [0, 0]]),
        ("x_blk * x_blk", [[1, 4], [9, 16]]),
        ("ttl.math.gt(x_blk, x_blk * x_blk - x_blk)", [[1, 0], [0, 0]]),
        ("ttl.math.ge(x_blk, x_blk * x_blk - x_blk)", [[1, 1], [0, 0]]),
        ("ttl.math.lt(x_blk, x_blk * x_blk - x_blk)", [[0, 0], [1, 1]]),
        ("ttl.math.le(x_blk, x_blk * x_blk - x_blk)", [[0, 1], [1, 1]]),
        ("ttl.math.eq(x_blk, x_blk * x_blk - x_blk)", [[0, 1], [0, 0]]),
        ("ttl.math.ne(x_blk, x_blk * x_blk - x_blk)", [[1, 0], [1, 1]]),
        ("x_blk / (x_blk * x_blk)", [[1, 0.5], [1 / 3, 0.25]]),
        ("x_blk % ttl.block.fill(2, shape=(1, 1))", [[1, 0], [1, 0]]),
        ("x_blk // ttl.block.fill(2, shape=(1, 1))", [[0, 1], [1, 2]]),
        ("-x_blk", [[-1, -2], [-3, -4]]),
        ("abs(-x_blk)", [[1, 2], [3, 4]]),
        ("x_blk ** 3", [[1, 8], [27, 64]]),
        ("ttl.math.pow(x_blk, 0)", [[1, 1], [1, 1]]),
        ("x_blk @ x_blk", [[7, 10], [15, 22]]),
        ("ttl.math.max(x_blk, ttl.block.fill(3, shape=(1, 1)))", [[3, 3], [3, 4]]),
        ("ttl.math.min(x_blk, ttl.block.fill(3, shape=(1, 1)))", [[1, 2], [3, 3]]),
        ("ttl.block.transpose(x_blk)", [[1, 3], [2, 4]]),
        ("ttl.block.broadcast(x_blk, dims=[0], shape=(1, 1))", [[1, 2], [1, 2]]),
        ("ttl.block.broadcast(x_blk, dims=[-1], shape=(1, 1))", [[1, 1], [3, 3]]),
        ("ttl.block.broadcast(x_blk, dims=[0, 1], shape=(1, 1))", [[1, 1], [1, 1]]),
        ("ttl.math.reduce_sum(x_blk, dims=[-1], shape=(1, 1))", [[3, 0], [7, 0]]),
        ("ttl.math.reduce_sum(x_blk, dims=[0], shape=(1, 1))", [[4, 6], [0, 0]]),
        ("ttl.math.reduce_max(x_blk, dims=[-1, -2], shape=(1, 1))", [[4, 0], [0, 0]]),
        ("ttl.block.mask(x_blk, ttl.math.sign(x_blk - x_blk @ x_blk))", [[1, 2], [3, 4]]),
        ("ttl.block.mask(x_blk, ttl.math.sign(x_blk))", [[0, 0], [0, 0]]),
        ("ttl.block.mask_posinf(x_blk, x_blk)", [[math.inf, 2], [3, 4]]),
        ("ttl.block.where(x_blk - x_blk, x_blk, -x_blk)", [[-1, -2], [-3, -4]]),
        ("ttl.block.squeeze(ttl.block.unsqueeze(x_blk, dims=[0, 2]), dims=[0, -2])",
         [[1, 2], [3, 4]]),
        ("ttl.block.squeeze(ttl.block.unsqueeze(x_blk, dims=0), 0)", [[1, 2], [3, 4]]),
    ],
)  # fmt: skip
def test_operators_and_functions_of_blocks(expression: str, expected: list[list[float]]) -> None:
    found = computed(expression, np.array([[1.0, 2.0], [3.0, 4.0]]))
    np.testing.assert_allclose(found[:2, :2], expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("x_blk + 1", "an operand of + is a int, not a block expression"),
        ("ttl.math.exp(2.0)", "an operand of ttl.math.exp is a float, not a block expression"),
        ("x_blk ** 0.5", "the exponent of a power is an unsigned integer, not 0.5"),
        ("ttl.math.elu(x_blk)", "ttl.math.elu takes the arguments (expr, slope)"),
        ("x_blk + ttl.block.fill(1, shape=(1, 2))",
         "operands of + have the shapes (1, 1) and (1, 2)"),
        ("ttl.block.fill(1, shape=(1, 2))",
         "an expression of the shape (1, 2) does not fit into a block of 'y_dfb', which has the "
         "shape (1, 1)"),
        ("ttl.block.fill(1, shape=(1, 2)) @ x_blk",
         "operands of @ have the shapes (1, 2) and (1, 1); they are [..., M, K] and [..., K, N] "
         "with the same outer dimensions"),
        ("ttl.math.reduce_sum(x_blk, dims=[2], shape=(1, 1))",
         "ttl.math.reduce_sum has the dimension 2, but there are 2"),
        ("ttl.math.reduce_sum(ttl.block.fill(1, shape=(2, 2)), dims=[0], shape=(1, 1))",
         "ttl.math.reduce_sum of (2, 2) over dimensions [0] does not give (1, 1)"),
        ("ttl.block.broadcast(x_blk, dims=[0], shape=(2, 2))",
         "ttl.block.broadcast from (1, 1) to (2, 2) changes dimension 1, which is not among its "
         "dims"),
        ("ttl.block.squeeze(x_blk, dims=[0])",
         "ttl.block.squeeze leaves (1,), but tiled blocks have two dimensions or more"),
        ("x_blk if x_blk else x_blk",
         "a block expression is no condition: kernels cannot branch on its elements"),
    ],
)  # fmt: skip
def test_wrong_expressions(expression: str, message: str) -> None:
    text = operation(KERNELS.replace("\n    ", "\n").replace("EXPRESSION", expression))
    lines = failure(text).splitlines()
    place, _, reported = lines[0].partition(" error: ")
    assert reported == message
    number, column = map(int, place.split(":")[1:3])
    assert lines[1] == text.splitlines()[number - 1]
    assert expression in lines[1]
    assert lines[2] == " " * (column - 1) + "^"


def test_flags_of_the_exponential() -> None:
    points = np.array([[-1.5, 0.25]])
    found = computed("ttl.math.exp(x_blk, scale=2.0, approx=True, iterations=4)", points)
    np.testing.assert_allclose(found[0, :2], [math.exp(-3), math.exp(0.5)], rtol=1e-6)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("scales=2", "ttl.math.exp takes the arguments (expr, *, approx=, scale=, "),
        ("approx=1", "the approx of ttl.math.exp is True or False, not 1"),
        ("iterations=0", "the iterations of ttl.math.exp is a positive integer, not 0"),
        ("scale=x_blk", "the scale of ttl.math.exp is a number that Python knows, not a Block"),
    ],
)
def test_flags_that_are_refused(flags: str, message: str) -> None:
    call = f"ttl.math.exp(x_blk, {flags})"
    text = operation(KERNELS.replace("\n    ", "\n").replace("EXPRESSION", call))
    assert message in failure(text)


def test_the_compiler_takes_the_exponential_of_whole_tiles() -> None:
    call = "ttl.math.exp(x_blk, iterations=4)"
    text = operation(KERNELS.replace("\n    ", "\n").replace("EXPRESSION", call))
    message = "the compiler takes the exponential of whole tiles, iterations=8, not 4"
    assert message in compiler_refusal(text)


def test_a_fill_of_a_data_type() -> None:
    fill = "ttl.block.fill(0.3, shape=(1, 1), layout=ttnn.TILE_LAYOUT, dtype=ttnn.DTYPE)"
    for dtype, expected in (("bfloat16", 0.30078125), ("float32", 0.3)):
        call = f"x_blk + {fill.replace('DTYPE', dtype)}"
        found = computed(call, np.array([[0.0]]))
        assert found[0, 0] == np.float32(expected)
