"""Elementwise ops of one tensor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ttcodegen.dialects.datatypes import DataType
from ttcodegen.lazy_numpy import Array, np
from ttcodegen.ops.attribute_kinds import NUMBER
from ttcodegen.ops.cpp_calls import attribute_, cpp_call, cpp_text, operand_
from ttcodegen.ops.definition import (
    Call,
    OperandSpec,
    TTIRDefinition,
    TTNNDefinition,
    Verifier,
    attribute,
    operand,
    register,
)
from ttcodegen.ops.elementwise import (
    UNARY_HEADER,
    on_inputs,
    same_op,
    verify_bits,
    verify_broadcast,
)

INTEGERS = (DataType.INT32, DataType.UINT32, DataType.UINT16)
FLOATS = (DataType.BFLOAT16, DataType.FLOAT32, DataType.BFLOAT8_B, DataType.BFLOAT4_B)


def erf(x: Array) -> Array:
    """The error function, to 1.5e-7 (Abramowitz and Stegun, 7.1.26)."""
    t = 1.0 / (1.0 + 0.3275911 * np.abs(x.astype(np.float64)))
    coefficients = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)
    polynomial = np.zeros_like(t)
    for coefficient in coefficients:
        polynomial = (polynomial + coefficient) * t
    return np.sign(x) * (1.0 - polynomial * np.exp(-np.square(x.astype(np.float64))))


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)) without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * x))


def gelu(x: Array) -> Array:
    """x * Phi(x), with the exact normal distribution function."""
    return 0.5 * x * (1.0 + erf(x / np.sqrt(np.float32(2.0))))


def softplus(x: Array) -> Array:
    """log(1 + exp(x)) without overflow."""
    return np.logaddexp(x, np.zeros_like(x))


@dataclass(frozen=True)
class Row:
    """An elementwise unary op: TTIR name, meaning, and where they differ from the usual the TTNN
    name and the data types that the library computes with."""

    name: str
    function: Callable[[Array], Array]
    ttnn: str = ""
    data_types: tuple[DataType, ...] | None = FLOATS
    """Integers travel as f32 where the op has no meaning of its own for them; None takes all."""
    domain: tuple[float, float] | None = None
    """Where drawn inputs should lie so that the op is well conditioned."""
    verify: Verifier = verify_broadcast


ROWS = (
    Row("abs", lambda x: np.abs(x), data_types=None),
    Row("acos", lambda x: np.arccos(x), domain=(-0.95, 0.95)),
    Row("asin", lambda x: np.arcsin(x), domain=(-0.95, 0.95)),
    Row("asinh", lambda x: np.arcsinh(x)),
    Row("atan", lambda x: np.arctan(x)),
    Row("bitwise_not", lambda x: np.invert(x), data_types=INTEGERS, verify=verify_bits),
    Row("cbrt", lambda x: np.cbrt(x)),
    Row("ceil", lambda x: np.ceil(x)),
    Row("cos", lambda x: np.cos(x)),
    Row("erf", erf),
    Row("erfc", lambda x: 1.0 - erf(x)),
    Row("exp", lambda x: np.exp(x), domain=(-4.0, 4.0)),
    Row("exp2", lambda x: np.exp2(x), domain=(-4.0, 4.0)),
    Row("expm1", lambda x: np.expm1(x), domain=(-4.0, 4.0)),
    Row("floor", lambda x: np.floor(x)),
    Row("frac", lambda x: x - np.trunc(x)),
    Row("gelu", gelu),
    Row("hardsigmoid", lambda x: np.clip(x / 6.0 + 0.5, 0.0, 1.0)),
    Row("isfinite", lambda x: np.isfinite(x), data_types=None),
    Row("log", lambda x: np.log(x), domain=(0.05, 4.0)),
    Row("log1p", lambda x: np.log1p(x), domain=(-0.9, 4.0)),
    # Bytes are refused.
    Row("logical_not", lambda x: np.logical_not(x), data_types=(*INTEGERS, *FLOATS)),
    Row("mish", lambda x: x * np.tanh(softplus(x))),
    Row("neg", lambda x: np.negative(x), data_types=None),
    Row("reciprocal", lambda x: 1.0 / x, domain=(0.25, 4.0)),
    Row("relu", lambda x: np.maximum(x, 0), data_types=None),
    Row("relu6", lambda x: np.clip(x, 0, 6), data_types=None),
    Row("rsqrt", lambda x: 1.0 / np.sqrt(x), domain=(0.05, 4.0)),
    Row(
        "selu",
        lambda x: 1.050700987 * np.where(x > 0, x, 1.673263242 * np.expm1(np.minimum(x, 0))),
    ),
    Row("sigmoid", sigmoid),
    Row("sign", lambda x: np.sign(x), data_types=None),
    Row("signbit", lambda x: np.signbit(x), data_types=None),
    Row("silu", lambda x: x * sigmoid(x)),
    Row("sin", lambda x: np.sin(x)),
    Row("softsign", lambda x: x / (1.0 + np.abs(x))),
    Row("sqrt", lambda x: np.sqrt(x), domain=(0.05, 4.0)),
    Row("square", lambda x: np.square(x), data_types=None),
    Row("tan", lambda x: np.tan(x), domain=(-1.2, 1.2)),
    Row("tanh", lambda x: np.tanh(x)),
    Row("trunc", lambda x: np.trunc(x)),
)


def _in_floats(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """The function on integers as f32 has it: digits beyond it decide what is cut off."""

    def on_floats(x: Array) -> Array:
        if np.issubdtype(x.dtype, np.floating):
            return function(x)
        return function(x.astype(np.float32)).astype(np.float32)

    return on_floats


def _register(row: Row) -> None:
    meaning = on_inputs(_in_floats(row.function) if row.data_types is FLOATS else row.function)
    ttnn = row.ttnn or row.name
    register(
        TTIRDefinition(
            f"ttir.{row.name}",
            (operand("input", domain=row.domain),),
            verify=row.verify,
            numpy=meaning,
            lower=same_op(ttnn),
        )
    )
    register(
        TTNNDefinition(
            f"ttnn.{ttnn}",
            (OperandSpec("input", data_types=row.data_types),),
            numpy=meaning,
            cpp=cpp_call(f"ttnn::{ttnn}", UNARY_HEADER, operand_("input")),
        )
    )


for _row in ROWS:
    _register(_row)


def _leaky_relu(call: Call) -> Array:
    x = call.array("input")
    return np.where(x > 0, x, x * np.float32(call["parameter"]))


_SLOPE = (attribute("parameter", NUMBER, 0.01),)

register(
    TTIRDefinition(
        "ttir.leaky_relu",
        (operand("input"),),
        _SLOPE,
        verify=verify_broadcast,
        numpy=_leaky_relu,
        lower=same_op("leaky_relu", "parameter"),
    )
)

register(
    TTNNDefinition(
        "ttnn.leaky_relu",
        (operand("input"),),
        _SLOPE,
        numpy=_leaky_relu,
        cpp=cpp_call(
            "ttnn::leaky_relu",
            UNARY_HEADER,
            operand_("input"),
            attribute_("parameter", lambda value: cpp_text(float(value))),
        ),
    )
)
