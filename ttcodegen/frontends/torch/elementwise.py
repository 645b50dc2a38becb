"""Elementwise operations: arithmetic, comparisons, activations, fake quantization."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

from xdsl.dialects.builtin import Float64Type
from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import element_of, f32, i1, shape_of
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.frontends.special_functions import (
    SPECIAL_FUNCTIONS,
    float_floored,
    float_rest,
    floored,
    next_after,
    truncated,
)
from ttcodegen.frontends.torch.graph import (
    Graph,
    Rule,
    Scalar,
    kind_of,
    limits,
    unsupported_argument,
)

# Operations on elements: arithmetic, comparisons, activations, conversions.


def _unary(name: str, **attributes: Any) -> Rule:
    """One op; integers become floats first where the result holds floats."""

    def rule(graph: Graph, x: SSAValue, *_: Any, **__: Any) -> SSAValue:
        return graph.like(name, graph.value(x), **attributes)

    return rule


def _special(name: str) -> Rule:
    """Several ops; integers become floats first."""

    def rule(graph: Graph, x: SSAValue) -> SSAValue:
        return SPECIAL_FUNCTIONS[name](graph, graph.value(x))

    return rule


def _digamma(graph: Graph, x: SSAValue) -> SSAValue:
    """That of mathematics, and at zero the infinity of the sign against its own."""
    x = graph.value(x)
    zero = graph.compare("eq", x, graph.number(0, x), i1)
    found = SPECIAL_FUNCTIONS["digamma"](graph, x)
    pole = graph.like("neg", graph.like("reciprocal", x))
    return graph.broadcasting("where", zero, pole, found, element=graph.element)


def _next_after(graph: Graph, x: SSAValue, towards: SSAValue) -> SSAValue:
    return next_after(graph, *(graph.expanded(graph.value(v), graph.shape) for v in (x, towards)))


def _property(name: str) -> Rule:
    def rule(graph: Graph, x: SSAValue) -> SSAValue:
        return graph.like(name, x, element=i1)

    return rule


def _binary(name: str) -> Rule:
    def rule(graph: Graph, a: Scalar, b: Scalar, *_: Any) -> SSAValue:
        return graph.apply(name, a, b)

    return rule


def _comparison(name: str) -> Rule:
    def rule(graph: Graph, a: Scalar, b: Scalar) -> SSAValue:
        lhs, rhs = graph.together(a, b)
        return graph.compare(name, lhs, rhs, i1)

    return rule


def _logical(name: str) -> Rule:
    def rule(graph: Graph, *operands: SSAValue) -> SSAValue:
        return graph.broadcasting(name, *(graph.logical(o) for o in operands), element=i1)

    return rule


def _bitwise(name: str) -> Rule:
    """Of booleans it is the logical one."""

    def rule(graph: Graph, *operands: Scalar) -> SSAValue:
        kind = "logical" if kind_of(graph.element) == "b" else "bitwise"
        return graph.apply(f"{kind}_{name}", *operands)

    return rule


def _is_splat(value: Scalar, number: float) -> bool:
    return not isinstance(value, SSAValue) and value == number


def _add(graph: Graph, a: Scalar, b: Scalar, alpha: float = 1) -> SSAValue:
    if alpha != 1:
        b = b * alpha if not isinstance(b, SSAValue) else graph.apply("multiply", b, alpha)
    if kind_of(graph.element) == "b":
        return graph.apply("logical_or", a, b)
    return graph.apply("add", a, b)


def _sub(graph: Graph, a: Scalar, b: Scalar, alpha: float = 1) -> SSAValue:
    if alpha != 1:
        b = b * alpha if not isinstance(b, SSAValue) else graph.apply("multiply", b, alpha)
    return graph.apply("subtract", a, b)


def _rsub(graph: Graph, a: Scalar, b: Scalar, alpha: float = 1) -> SSAValue:
    return _sub(graph, b, a, alpha)


def _mul(graph: Graph, a: Scalar, b: Scalar) -> SSAValue:
    return graph.apply("logical_and" if kind_of(graph.element) == "b" else "multiply", a, b)


def _div(graph: Graph, a: Scalar, b: Scalar, rounding_mode: str | None = None) -> SSAValue:
    if rounding_mode is None:
        return graph.apply("div", a, b)
    rank = len(graph.shape)
    first, second = graph.value(a, rank=rank), graph.value(b, rank=rank)
    if kind_of(graph.element) != "f":
        return (floored if rounding_mode == "floor" else truncated)(graph, first, second)
    if rounding_mode == "floor":
        return _in_float32(graph, float_floored, first, second)
    return graph.like("trunc", graph.broadcasting("div", first, second))


def _in_float32(
    graph: Graph,
    composed: Callable[[Graph, SSAValue, SSAValue], SSAValue],
    a: SSAValue,
    b: SSAValue,
) -> SSAValue:
    """Composite op evaluated in float32 and rounded to the element type once; float64 as it is."""
    if isinstance(graph.element, Float64Type):
        return composed(graph, a, b)
    found = composed(graph, *(graph.typecast(value, f32) for value in (a, b)))
    return graph.typecast(found, graph.element)


def _floor_divide(graph: Graph, a: Scalar, b: Scalar) -> SSAValue:
    return _div(graph, a, b, "floor")


def _fmod(graph: Graph, a: Scalar, b: Scalar) -> SSAValue:
    """The remainder with the sign of the dividend; TTIR's has that of the divisor."""
    rank = len(graph.shape)
    a, b = graph.value(a, rank=rank), graph.value(b, rank=rank)
    if kind_of(graph.element) == "f":
        return _in_float32(graph, float_rest, a, b)
    rest = graph.broadcasting("remainder", a, b)
    if kind_of(graph.element) in "ub":
        return rest
    zero = graph.number(0, rest)
    negative = graph.compare("lt", a, zero, i1)
    opposite = graph.compare("ne", negative, graph.compare("lt", b, zero, i1), i1)
    left = graph.compare("ne", rest, zero, i1)
    moved = graph.broadcasting("subtract", rest, b)
    differs = graph.broadcasting("logical_and", opposite, left, element=i1)
    return graph.broadcasting("where", differs, moved, rest, element=graph.element)


def _pow(graph: Graph, a: Scalar, b: Scalar) -> SSAValue:
    if isinstance(a, SSAValue):
        for exponent, name in ((2, "square"), (0.5, "sqrt"), (-0.5, "rsqrt"), (-1, "reciprocal")):
            if _is_splat(b, exponent) and (exponent == 2 or kind_of(graph.element) == "f"):
                return graph.like(name, graph.value(a))
        if _is_splat(b, 1):
            return a
        if _is_splat(b, 3):
            return graph.apply("multiply", graph.like("square", graph.value(a)), a)
    return graph.apply("pow", a, b)


def _where(graph: Graph, condition: SSAValue, a: Scalar, b: Scalar) -> SSAValue:
    rank = len(graph.shape)
    condition = graph.logical(condition)
    values = [graph.aligned(graph.value(v, rank=rank), graph.shape) for v in (a, b)]
    return graph.emit("where", [graph.aligned(condition, graph.shape), *values], graph.type)


def _masked_fill(graph: Graph, x: SSAValue, mask: SSAValue, value: Scalar) -> SSAValue:
    return _where(graph, mask, value, x)


def _clamp(
    graph: Graph, x: SSAValue, low: Scalar | None = None, high: Scalar | None = None
) -> SSAValue:
    x = graph.value(x)
    if isinstance(low, SSAValue) or isinstance(high, SSAValue):
        result = x if low is None else graph.apply("maximum", x, low)
        return result if high is None else graph.apply("minimum", result, high)
    is_whole = kind_of(graph.element) != "f"
    if low != low or high != high:
        return graph.full(shape_of(x.type), nan, element_of(x.type))
    if low is not None and high is not None and not is_whole:
        if low == 0 and high == 6:
            return graph.like("relu6", x)
        return graph.like("clamp_scalar", x, min=low, max=high)
    if low == 0 and high is None and not is_whole:
        return graph.like("relu", x)
    result = x if low is None else graph.apply("maximum", x, _within(graph, low))
    return result if high is None else graph.apply("minimum", result, _within(graph, high))


def _within(graph: Graph, bound: float) -> float:
    """A bound as an element of the result has it: of integers one that the type can hold."""
    if kind_of(graph.element) == "f":
        return bound
    least, most = limits(graph.element)
    return int(min(max(bound, least), most))


def _clamp_max(graph: Graph, x: SSAValue, high: Scalar) -> SSAValue:
    return graph.apply("minimum", x, high)


def _gelu(graph: Graph, x: SSAValue, approximate: str = "none") -> SSAValue:
    """The library has one gelu; that by tanh differs from it by less than 0.001."""
    return graph.like("gelu", x)


def _leaky_relu(graph: Graph, x: SSAValue, slope: float = 0.01) -> SSAValue:
    return graph.like("leaky_relu", x, parameter=float(slope))


def _elu(
    graph: Graph, x: SSAValue, alpha: float = 1, scale: float = 1, input_scale: float = 1
) -> SSAValue:
    """scale * (x if x > 0 else alpha * (exp(input_scale * x) - 1))."""
    if input_scale == 1 and scale == 1:
        return graph.like("elu", x, alpha=float(alpha))
    if input_scale == 1:
        return graph.like("selu", x, scale=float(scale), alpha=float(alpha))
    below = graph.like("expm1", graph.apply("multiply", x, input_scale))
    if alpha != 1:
        below = graph.apply("multiply", below, alpha)
    positive = graph.compare("gt", x, graph.number(0, x), i1)
    result = graph.emit("where", [positive, x, below], x.type)
    return result if scale == 1 else graph.apply("multiply", result, scale)


def _celu(graph: Graph, x: SSAValue, alpha: float = 1) -> SSAValue:
    return _elu(graph, x, alpha, 1, 1 / alpha)


def _hardtanh(graph: Graph, x: SSAValue, low: float = -1, high: float = 1) -> SSAValue:
    return _clamp(graph, x, low, high)


def _hardswish(graph: Graph, x: SSAValue) -> SSAValue:
    """x times a hard sigmoid."""
    return graph.apply("multiply", x, graph.like("hardsigmoid", x))


def _softplus(graph: Graph, x: SSAValue, beta: float = 1, threshold: float = 20) -> SSAValue:
    """log(1 + exp(beta x)) / beta, and x itself where that is as good."""
    scaled = x if beta == 1 else graph.apply("multiply", x, beta)
    curve = graph.like("log1p", graph.like("exp", graph.apply("minimum", scaled, threshold)))
    curve = curve if beta == 1 else graph.apply("multiply", curve, 1 / beta)
    straight = graph.compare("gt", scaled, graph.number(threshold, scaled), i1)
    return graph.emit("where", [straight, x, curve], x.type)


def _log_sigmoid(graph: Graph, x: SSAValue) -> SSAValue:
    """The lesser of x and 0, less a logarithm that no exponential overflows in, or
    becomes nothing in."""
    curve = graph.like("log1p", graph.like("exp", graph.like("neg", graph.like("abs", x))))
    return graph.like("subtract", graph.apply("minimum", x, 0), curve)


def _prelu(graph: Graph, x: SSAValue, weight: SSAValue) -> SSAValue:
    """There is a slope below zero for each channel, which is dimension 1."""
    rank = len(shape_of(x.type))
    (count,) = shape_of(weight.type) or (1,)
    shape = [count if axis == min(1, rank - 1) else 1 for axis in range(rank)]
    below = graph.broadcasting("multiply", x, graph.reshape(weight, shape))
    positive = graph.compare("gt", x, graph.number(0, x), i1)
    return graph.emit("where", [positive, x, below], x.type)


def _glu(graph: Graph, x: SSAValue, dim: int = -1) -> SSAValue:
    axis = graph.dim(dim, len(shape_of(x.type)))
    half = shape_of(x.type)[axis] // 2
    value, gate = (graph.part(x, axis, i * half, (i + 1) * half) for i in (0, 1))
    return graph.like("multiply", value, graph.like("sigmoid", gate))


def _addcmul(graph: Graph, x: SSAValue, a: SSAValue, b: SSAValue, value: float = 1) -> SSAValue:
    product = graph.apply("multiply", a, b)
    return graph.apply("add", x, product if value == 1 else graph.apply("multiply", product, value))


def _addcdiv(graph: Graph, x: SSAValue, a: SSAValue, b: SSAValue, value: float = 1) -> SSAValue:
    quotient = graph.apply("div", a, b)
    return graph.apply(
        "add", x, quotient if value == 1 else graph.apply("multiply", quotient, value)
    )


def _lerp(graph: Graph, a: SSAValue, b: SSAValue, weight: Scalar) -> SSAValue:
    """From the end that is nearer, so that weights of 0 and 1 give the ends themselves."""
    step = graph.apply("subtract", b, a)
    if isinstance(weight, SSAValue):
        near = graph.compare("lt", graph.like("abs", weight), graph.number(0.5, weight), i1)
        back = graph.apply("multiply", step, graph.apply("subtract", 1.0, weight))
        to_end = graph.apply("subtract", b, back)
        from_start = graph.apply("add", a, graph.apply("multiply", step, weight))
        return _where(graph, near, from_start, to_end)
    if abs(weight) < 0.5:
        return graph.apply("add", a, graph.apply("multiply", step, weight))
    return graph.apply("subtract", b, graph.apply("multiply", step, 1 - weight))


def _isnan(graph: Graph, x: SSAValue) -> SSAValue:
    if kind_of(element_of(x.type)) != "f":
        return graph.full(graph.shape, 0, i1)
    return graph.like("isnan", x, element=i1)


def _isinf(graph: Graph, x: SSAValue) -> SSAValue:
    if kind_of(element_of(x.type)) != "f":
        return graph.full(graph.shape, 0, i1)
    return graph.like("isinf", x, element=i1)


def _infinite(limit: float) -> Rule:
    def rule(graph: Graph, x: SSAValue) -> SSAValue:
        if kind_of(element_of(x.type)) != "f":
            return graph.full(graph.shape, 0, i1)
        return graph.compare("eq", x, graph.number(limit, x), i1)

    return rule


def _hypot(graph: Graph, x: Scalar, y: Scalar) -> SSAValue:
    """big * sqrt(1 + (small / big)^2), whose squares neither vanish nor overflow."""
    x, y = (graph.like("abs", graph.value(v, rank=len(graph.shape))) for v in (x, y))
    big, small = (graph.broadcasting(name, x, y) for name in ("maximum", "minimum"))
    zero, one = graph.number(0, big), graph.number(1, big)
    # Of two zeros or two infinities there is no ratio.
    alike = graph.compare("eq", big, small, i1)
    divisor = graph.broadcasting("where", alike, one, big, element=graph.element)
    ratio = graph.broadcasting("where", alike, one, graph.like("div", small, divisor),
                               element=graph.element)  # fmt: skip
    root = graph.like("sqrt", graph.broadcasting("add", graph.like("square", ratio), one))
    length = graph.like("multiply", big, root)
    infinite = graph.compare("eq", big, graph.number(inf, big), i1)
    nothing = graph.compare("eq", big, zero, i1)
    fixed = graph.broadcasting("logical_or", infinite, nothing, element=i1)
    return graph.broadcasting("where", fixed, big, length, element=graph.element)


def _logit(graph: Graph, x: SSAValue, epsilon: float | None = None) -> SSAValue:
    """log(x / (1 - x)); with an epsilon of an x that keeps that far from 0 and 1."""
    x = graph.value(x)
    if epsilon is not None:
        x = graph.like("clamp_scalar", x, min=float(epsilon), max=1 - float(epsilon))
    rest = graph.like("add", graph.like("neg", x), graph.number(1, x))
    return graph.like("log", graph.like("div", x, rest))


def _ldexp(graph: Graph, x: SSAValue, exponent: SSAValue) -> SSAValue:
    """x * 2^exponent."""
    power = graph.value(exponent, f32)
    return graph.apply("multiply", x, graph.like("exp2", power))


def _copysign(graph: Graph, x: Scalar, sign: Scalar) -> SSAValue:
    """The size of one operand with the sign of the other, also that of a zero."""
    x, sign = graph.value(x, rank=len(graph.shape)), graph.value(sign, rank=len(graph.shape))
    size = graph.like("abs", x)
    below = graph.like("signbit", sign, element=i1)
    return graph.broadcasting("where", below, graph.like("neg", size), size, element=graph.element)


def _xlogy(graph: Graph, x: Scalar, y: Scalar) -> SSAValue:
    """x * log(y), which is zero where x is, whatever y is but NaN."""
    x, y = graph.value(x, rank=len(graph.shape)), graph.value(y, rank=len(graph.shape))
    zero = graph.compare("eq", x, graph.number(0, x), i1)
    number = graph.compare("eq", y, y, i1)
    product = graph.broadcasting("multiply", x, graph.like("log", y))
    hidden = graph.compare("logical_and", zero, number, i1)
    return _where(graph, hidden, 0.0, product)


def _random_relu(
    graph: Graph, x: SSAValue, low: float = 1 / 8, high: float = 1 / 3, training: bool = False,
    *_: Any,
) -> SSAValue:  # fmt: skip
    """Its slope is drawn in training, and the mean of its limits afterwards."""
    if training:
        raise CompileError("rrelu is not compiled for training", remedy="call module.eval()")
    return _leaky_relu(graph, x, (low + high) / 2)


def _random_relu_with_noise(graph: Graph, x: SSAValue, _: SSAValue, *arguments: Any) -> SSAValue:
    return _random_relu(graph, x, *arguments)


def _round(graph: Graph, x: SSAValue, decimals: int = 0) -> SSAValue:
    """To the nearest integer, halves to the even one."""
    if decimals:
        raise unsupported_argument("round", "decimals", decimals)
    if kind_of(element_of(x.type)) != "f":
        return x
    return graph.rounded(x)


def _same(graph: Graph, x: SSAValue, *_: Any, **__: Any) -> SSAValue:
    """Nothing but a conversion, if the graph says another element type."""
    return x


def _dropout(graph: Graph, x: SSAValue, probability: float = 0.5, train: bool = False) -> SSAValue:
    """In training elements are zero by chance, and the others are larger for it."""
    if not train or not probability:
        return x
    if probability == 1:
        return graph.broadcasting("multiply", x, graph.number(0, x))
    scale = 1 / (1 - probability)
    return graph.like("dropout", x, prob=probability, scale=scale, seed=graph.next_seed())


def _other_dropout(
    graph: Graph, x: SSAValue, probability: float = 0.5, train: bool = False
) -> SSAValue:
    """Dropout of whole channels, or that keeps mean and variance."""
    if train and probability:
        raise CompileError(
            "dropout of channels and alpha dropout are not compiled for training",
            remedy="call module.eval() of those modules",
        )
    return x


def _fill(graph: Graph, x: SSAValue, value: Scalar) -> SSAValue:
    if isinstance(value, SSAValue):
        return graph.expanded(graph.value(value), graph.shape)
    return graph.full(graph.shape, graph_number(graph, value), graph.element)


def graph_number(graph: Graph, value: float) -> float | int:
    """A number as an element of the result."""
    return float(value) if kind_of(graph.element) == "f" else int(value)


_UNARY = """
    abs acos asin asinh atan ceil cos erf erfc exp exp2 expm1 floor frac log log1p
    mish neg reciprocal relu relu6 rsqrt selu sigmoid sign silu sin sqrt square tan tanh
    trunc hardsigmoid
""".split()

RULES: dict[str, Rule] = {
    **{name: _unary(name) for name in _UNARY},
    **{name: _special(name) for name in SPECIAL_FUNCTIONS},
    "digamma": _digamma,
    "isfinite": _property("isfinite"),
    "signbit": _property("signbit"),
    "sgn": _unary("sign"),
    "softsign": _unary("softsign"),
    "log2": _unary("log2"),
    "log10": _unary("log10"),
    "isnan": _isnan,
    "isinf": _isinf,
    "isposinf": _infinite(inf),
    "isneginf": _infinite(-inf),
    "hypot": _hypot,
    "copysign": _copysign,
    "nextafter": _next_after,
    "ldexp": _ldexp,
    "logit": _logit,
    "xlogy": _xlogy,
    "round": _round,
    "add": _add,
    "sub": _sub,
    "rsub": _rsub,
    "mul": _mul,
    "div": _div,
    "divide": _div,
    "true_divide": _div,
    "multiply": _mul,
    "subtract": _sub,
    "floor_divide": _floor_divide,
    "fmod": _fmod,
    "pow": _pow,
    "remainder": _binary("remainder"),
    "maximum": _binary("maximum"),
    "minimum": _binary("minimum"),
    "atan2": _binary("atan2"),
    "eq": _comparison("eq"),
    "ne": _comparison("ne"),
    "lt": _comparison("lt"),
    "le": _comparison("le"),
    "gt": _comparison("gt"),
    "ge": _comparison("ge"),
    "logical_and": _logical("logical_and"),
    "logical_or": _logical("logical_or"),
    "logical_xor": _logical("logical_xor"),
    "logical_not": _logical("logical_not"),
    "bitwise_and": _bitwise("and"),
    "bitwise_or": _bitwise("or"),
    "bitwise_xor": _bitwise("xor"),
    "bitwise_not": _bitwise("not"),
    "__and__": _bitwise("and"),
    "__or__": _bitwise("or"),
    "bitwise_left_shift": _binary("logical_left_shift"),
    "bitwise_right_shift": _binary("right_shift"),
    "where": _where,
    "masked_fill": _masked_fill,
    "clamp": _clamp,
    "clip": _clamp,
    "clamp_min": _clamp,
    "clamp_max": _clamp_max,
    "gelu": _gelu,
    "leaky_relu": _leaky_relu,
    "rrelu": _random_relu,
    "rrelu_with_noise": _random_relu_with_noise,
    "elu": _elu,
    "celu": _celu,
    "hardtanh": _hardtanh,
    "hardswish": _hardswish,
    "softplus": _softplus,
    "log_sigmoid": _log_sigmoid,
    "prelu": _prelu,
    "glu": _glu,
    "addcmul": _addcmul,
    "addcdiv": _addcdiv,
    "lerp": _lerp,
    "fill": _fill,
    "dropout": _dropout,
    "feature_dropout": _other_dropout,
    "alpha_dropout": _other_dropout,
    **dict.fromkeys(
        """
        alias clone contiguous detach lift_fresh_copy lift_fresh to _to_copy type_as positive
        resolve_conj resolve_neg _unwrap_for_grad _wrap_for_grad
        """.split(),
        _same,
    ),
}
"""Operations by their names, for all their overloads."""


# Numbers as integers would represent them, of models that were trained for quantization.


def _fake_quantized(
    graph: Graph, x: SSAValue, scale: Any, zero_point: Any, least: int, most: int
) -> list[SSAValue]:
    """The nearest number that integers between two bounds can represent; nobody uses the mask of
    those that were in range."""
    x = graph.value(x)
    scale, zero = (graph.value(each, element_of(x.type)) for each in (scale, zero_point))
    places = graph.rounded(graph.broadcasting("div", x, scale))
    places = graph.broadcasting("add", places, zero)
    places = graph.like("clamp_scalar", places, min=float(least), max=float(most))
    return [graph.broadcasting("multiply", graph.broadcasting("subtract", places, zero), scale)]


def _fake_quantized_channels(
    graph: Graph,
    x: SSAValue,
    scale: SSAValue,
    zero_point: SSAValue,
    axis: int,
    least: int,
    most: int,
) -> list[SSAValue]:
    shape = [1] * len(shape_of(x.type))
    shape[axis] = shape_of(x.type)[axis]
    scale, zero_point = (graph.reshape(each, shape) for each in (scale, zero_point))
    return _fake_quantized(graph, x, scale, zero_point, least, most)


QUANTIZED_RULES: dict[str, Rule] = {
    "fake_quantize_per_tensor_affine_cachemask": _fake_quantized,
    "fake_quantize_per_channel_affine_cachemask": _fake_quantized_channels,
}
"""Operations by their names, for all their overloads."""
