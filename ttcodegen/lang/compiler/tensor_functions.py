"""TTIR text of functions on whole tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import isfinite

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.lang.simulator.functions import COMPARISONS
from ttcodegen.lang.simulator.shapes import Shape

# Text of a TTIR function on whole tensors


@dataclass(frozen=True)
class Value:
    """An SSA value of the function: a tensor."""

    name: str
    shape: Shape


@dataclass
class TensorText:
    """Writes TTIR ops, one a line; identical ops are written once."""

    element: str
    """Element type, in MLIR spelling."""
    lines: list[str] = field(default_factory=list[str])
    _known: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def is_float(self) -> bool:
        """True if the element type is a float, not an integer."""
        return "i" not in self.element

    def type(self, shape: Sequence[int], element: str | None = None) -> str:
        """Spelling of a tensor type."""
        return f"tensor<{'x'.join([*map(str, shape), element or self.element])}>"

    def op(
        self, name: str, operands: Sequence[Value], shape: Sequence[int], attributes: str = ""
    ) -> Value:
        """Adds `ttir.<name>`."""
        given = ", ".join(each.name for each in operands)
        types = ", ".join(self.type(each.shape) for each in operands)
        properties = f" <{{{attributes}}}>" if attributes else ""
        text = f'"ttir.{name}"({given}){properties} : ({types}) -> {self.type(shape)}'
        return Value(self._append(text), tuple(shape))

    def _append(self, text: str) -> str:
        """Appends an op unless it is known, and returns the name of its result."""
        if text not in self._known:
            self._known[text] = f"%{len(self._known)}"
            self.lines.append(f"{self._known[text]} = {text}")
        return self._known[text]

    def cast(self, value: Value, before: str, after: str) -> Value:
        """Converts a value to another element type."""
        if before == after:
            return value
        types = f"({self.type(value.shape, before)}) -> {self.type(value.shape, after)}"
        return Value(self._append(f'"ttir.typecast"({value.name}) : {types}'), value.shape)

    def elementwise(self, name: str, *operands: Value, attributes: str = "") -> Value:
        """Adds an elementwise op; operands of size 1 along a dimension are broadcast."""
        shape = tuple(max(sizes) for sizes in zip(*(o.shape for o in operands), strict=True))
        return self.op(name, operands, shape, attributes)

    def full(self, number: float, shape: Sequence[int]) -> Value:
        """Adds a tensor filled with one number."""
        sizes = ", ".join(map(str, shape))
        value = number_text(number) if self.is_float else f"{int(number)} : i32"
        attributes = f"shape = array<i32: {sizes}>, fill_value = {value}"
        return self.op("full", [], shape, attributes)

    def like(self, number: float, other: Value) -> Value:
        """Adds a tensor filled with one number, in the shape of another value."""
        return self.full(number, other.shape)

    def reshape(self, value: Value, shape: Sequence[int]) -> Value:
        """Reshapes a value."""
        if value.shape == tuple(shape):
            return value
        sizes = ", ".join(f"{size} : i32" for size in shape)
        return self.op("reshape", [value], shape, f"shape = [{sizes}]")

    def broadcast(self, value: Value, shape: Sequence[int]) -> Value:
        """Broadcasts a value along its dimensions of size 1."""
        if value.shape == tuple(shape):
            return value
        pairs = zip(value.shape, shape, strict=True)
        repeats = ", ".join(str(size // own) for own, size in pairs)
        attributes = f"broadcast_dimensions = array<i64: {repeats}>"
        return self.op("broadcast", [value], shape, attributes)


def number_text(number: float) -> str:
    """Spelling of a float32 in MLIR; infinities by their bits."""
    if not isfinite(number):
        return f"{'0x7F800000' if number > 0 else '0xFF800000'} : f32"
    text = repr(float(number))
    return f"{text if 'e' not in text else f'{number:.9e}'} : f32"


# Elementwise functions as TTIR ops

_Writer = Callable[..., Value]


def _elementwise(name: str) -> _Writer:
    """Writer of an elementwise op that takes the same operands."""

    def write(text: TensorText, *operands: Value) -> Value:
        return text.elementwise(name, *operands)

    return write


def _minus(text: TensorText, *operands: Value) -> Value:
    return text.elementwise("subtract" if len(operands) == 2 else "neg", *operands)


def _clamp(text: TensorText, x: Value, minimum: float, maximum: float) -> Value:
    attributes = f"min = {number_text(minimum)}, max = {number_text(maximum)}"
    return text.elementwise("clamp_scalar", x, attributes=attributes)


def _leaky_relu(text: TensorText, x: Value, slope: float) -> Value:
    return text.elementwise("leaky_relu", x, attributes=f"parameter = {number_text(slope)}")


def _select(text: TensorText, condition: Value, true: Value, false: Value) -> Value:
    return text.elementwise("where", condition, true, false)


def _masked(number: float) -> _Writer:
    def write(text: TensorText, x: Value, mask: Value) -> Value:
        is_masked = text.elementwise("eq", mask, text.like(1, mask))
        return _select(text, is_masked, text.like(number, x), x)

    return write


def _where(text: TensorText, condition: Value, true: Value, false: Value) -> Value:
    holds = text.elementwise("ne", condition, text.like(0, condition))
    return _select(text, holds, true, false)


def _power(text: TensorText, x: Value, exponent: float) -> Value:
    if exponent == 2:
        return text.elementwise("multiply", x, x)
    return text.elementwise("pow", x, text.like(exponent, x))


def _exponential(text: TensorText, x: Value, scale: float, slope: float, inner: float) -> Value:
    """scale * x above 0, else scale * slope * (e^(inner * x) - 1)."""
    exponential = text.elementwise("expm1", _times(text, x, inner))
    below = _times(text, exponential, scale * slope)
    is_above = text.elementwise("gt", x, text.like(0, x))
    return _select(text, is_above, _times(text, x, scale), below)


def _elu(text: TensorText, x: Value, slope: float) -> Value:
    return _exponential(text, x, 1, slope, 1)


def _celu(text: TensorText, x: Value, alpha: float, inverse: float) -> Value:
    return _exponential(text, x, 1, alpha, inverse)


def _selu(text: TensorText, x: Value, scale: float, alpha: float) -> Value:
    return _exponential(text, x, scale, alpha, 1)


def _times(text: TensorText, x: Value, number: float) -> Value:
    return x if number == 1 else text.elementwise("multiply", x, text.like(number, x))


def _softplus(text: TensorText, x: Value, beta: float, inverse: float, threshold: float) -> Value:
    scaled = _times(text, x, beta)
    exponential = text.elementwise("log1p", text.elementwise("exp", scaled))
    is_linear = text.elementwise("gt", scaled, text.like(threshold, x))
    return _select(text, is_linear, x, _times(text, exponential, inverse))


def _threshold(text: TensorText, x: Value, threshold: float, value: float) -> Value:
    is_above = text.elementwise("gt", x, text.like(threshold, x))
    return _select(text, is_above, text.like(value, x), x)


def _relu_max(text: TensorText, x: Value, maximum: float) -> Value:
    return _clamp(text, x, 0, maximum)


def _relu_min(text: TensorText, x: Value, minimum: float) -> Value:
    return text.elementwise("maximum", x, text.like(max(minimum, 0), x))


def _rsub(text: TensorText, x: Value, number: float) -> Value:
    return text.elementwise("subtract", text.like(number, x), x)


def _plus(text: TensorText, x: Value, number: float) -> Value:
    return text.elementwise("add", x, text.like(number, x))


def _floor_divide(text: TensorText, x: Value, y: Value) -> Value:
    if text.element == DataType.INT32.mlir:
        # TTIR division truncates, so the remainder is subtracted first to make it exact.
        multiple = text.elementwise("subtract", x, _remainder(text, x, y))
        return text.elementwise("div", multiple, y)
    return text.elementwise("floor", text.elementwise("div", x, y))


def _remainder(text: TensorText, x: Value, y: Value) -> Value:
    """Remainder of a division that rounds down: it has the sign of the divisor."""
    if text.element == DataType.INT32.mlir:
        remainder = text.elementwise("remainder", x, y)
        return text.elementwise("remainder", text.elementwise("add", remainder, y), y)
    return text.elementwise(
        "subtract", x, text.elementwise("multiply", _floor_divide(text, x, y), y)
    )


def _round(text: TensorText, x: Value, decimals: float) -> Value:
    """Rounds to the nearest, ties to even."""
    scaled = _times(text, x, 10.0**decimals)
    above = text.elementwise("floor", _plus(text, scaled, 0.5))
    distance = text.elementwise("subtract", above, scaled)
    is_tie = text.elementwise("eq", distance, text.like(0.5, x))
    half = _times(text, above, 0.5)
    is_odd = text.elementwise("ne", half, text.elementwise("floor", half))
    even = _select(text, is_odd, _plus(text, above, -1), above)
    return _times(text, _select(text, is_tie, even, above), 0.1**decimals)


def _atanh(text: TensorText, x: Value) -> Value:
    above, below = _plus(text, x, 1), _rsub(text, x, 1)
    return _times(text, text.elementwise("log", text.elementwise("div", above, below)), 0.5)


def _acosh(text: TensorText, x: Value) -> Value:
    square = text.elementwise("multiply", x, x)
    root = text.elementwise("sqrt", _plus(text, square, -1))
    return text.elementwise("log", text.elementwise("add", x, root))


def _signbit(text: TensorText, x: Value) -> Value:
    return _rsub(text, text.elementwise("signbit", x), 1)


_SAME_NAME = (
    "abs", "neg", "exp", "exp2", "expm1", "log", "sqrt", "square", "rsqrt", "tan", "tanh", "atan",
    "sin", "asin", "asinh", "cos", "acos", "relu", "gelu", "sigmoid", "silu", "softsign",
    "hardsigmoid", "frac", "trunc", "floor", "ceil", "sign",
)  # fmt: skip

TENSOR_FUNCTIONS: dict[str, _Writer] = {
    "+": _elementwise("add"),
    "+=": _elementwise("add"),
    "-": _minus,
    "*": _elementwise("multiply"),
    "/": _elementwise("div"),
    "//": _floor_divide,
    "%": _remainder,
    "^": _elementwise("bitwise_xor"),
    "abs": _elementwise("abs"),
    "**": _power,
    "ttl.block.where": _where,
    "ttl.block.mask": _masked(0.0),
    "ttl.block.mask_posinf": _masked(float("inf")),
    "ttl.math.max": _elementwise("maximum"),
    "ttl.math.min": _elementwise("minimum"),
    **{f"ttl.math.{name}": _elementwise(name) for name in COMPARISONS},
    **{f"ttl.math.{name}": _elementwise(name) for name in _SAME_NAME},
    "ttl.math.logp1": _elementwise("log1p"),
    "ttl.math.recip": _elementwise("reciprocal"),
    "ttl.math.rsub": _rsub,
    "ttl.math.relu_max": _relu_max,
    "ttl.math.relu_min": _relu_min,
    "ttl.math.leaky_relu": _leaky_relu,
    "ttl.math.prelu": _leaky_relu,
    "ttl.math.elu": _elu,
    "ttl.math.celu": _celu,
    "ttl.math.selu": _selu,
    "ttl.math.softplus": _softplus,
    "ttl.math.hardtanh": _clamp,
    "ttl.math.clamp": _clamp,
    "ttl.math.threshold": _threshold,
    "ttl.math.signbit": _signbit,
    "ttl.math.round": _round,
    "ttl.math.atanh": _atanh,
    "ttl.math.acosh": _acosh,
}
"""Writers by operator or function name; functions that are missing have no TTIR op."""
