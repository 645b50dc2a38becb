"""Elementwise operations: arithmetic, comparisons, activations."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

from xdsl.dialects.builtin import Float64Type
from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import element_of, f32, i1, shape_of
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.frontends.expressions import Expression
from ttcodegen.frontends.special_functions import (
    SPECIAL_FUNCTIONS,
    float_floored,
    float_rest,
    floored,
    next_after,
    sign_of_float,
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
from ttcodegen.frontends.zeta import polygamma, zeta

# Operations on elements: arithmetic, comparisons, activations, conversions.


def _unary(name: str, **attributes: Any) -> Rule:
    """Makes the rule of a unary op; integers are converted to floats if the result is float."""

    def rule(graph: Graph, x: SSAValue, *_: Any, **__: Any) -> SSAValue:
        return graph.like(name, graph.value(x), **attributes)

    return rule


def _special(name: str) -> Rule:
    """Makes the rule of a special function; integers are converted to floats."""

    def rule(graph: Graph, x: SSAValue) -> SSAValue:
        return SPECIAL_FUNCTIONS[name](graph, graph.value(x))

    return rule


def _zeta(graph: Graph, x: Scalar, q: Scalar) -> SSAValue:
    rank = max(len(shape_of(each.type)) for each in (x, q) if isinstance(each, SSAValue))
    given = (Expression.computed(graph, graph.value(each, rank=rank)) for each in (x, q))
    return zeta(*given).value


def _polygamma(graph: Graph, order: int, x: SSAValue) -> SSAValue:
    return polygamma(order, Expression.computed(graph, graph.value(x))).value


def _digamma(graph: Graph, x: SSAValue) -> SSAValue:
    """Digamma, with the infinity of the opposite sign at signed zeros."""
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
    """Makes the rule of a bitwise op, logical for booleans."""

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
    """Remainder with the dividend's sign; TTIR's has the divisor's."""
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
    result = x if low is None else graph.apply("maximum", x, _clamp_to_type(graph, low))
    return result if high is None else graph.apply("minimum", result, _clamp_to_type(graph, high))


def _clamp_to_type(graph: Graph, bound: float) -> float:
    """Clamps a bound to the range of the result's element type."""
    if kind_of(graph.element) == "f":
        return bound
    least, most = limits(graph.element)
    return int(min(max(bound, least), most))


def _clamp_max(graph: Graph, x: SSAValue, high: Scalar) -> SSAValue:
    return graph.apply("minimum", x, high)


def _gelu(graph: Graph, x: SSAValue, approximate: str = "none") -> SSAValue:
    """GELU; the tanh form differs from the library's by less than 0.001."""
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
    """x times hardsigmoid(x)."""
    return graph.apply("multiply", x, graph.like("hardsigmoid", x))


def _softplus(graph: Graph, x: SSAValue, beta: float = 1, threshold: float = 20) -> SSAValue:
    """log(1 + exp(beta x)) / beta; x above the threshold."""
    scaled = x if beta == 1 else graph.apply("multiply", x, beta)
    curve = graph.like("log1p", graph.like("exp", graph.apply("minimum", scaled, threshold)))
    curve = curve if beta == 1 else graph.apply("multiply", curve, 1 / beta)
    straight = graph.compare("gt", scaled, graph.number(threshold, scaled), i1)
    return graph.emit("where", [straight, x, curve], x.type)


def _log_sigmoid(graph: Graph, x: SSAValue) -> SSAValue:
    """min(x, 0) - log1p(exp(-|x|)), which neither overflows nor underflows."""
    curve = graph.like("log1p", graph.like("exp", graph.like("neg", graph.like("abs", x))))
    return graph.like("subtract", graph.apply("minimum", x, 0), curve)


def _prelu(graph: Graph, x: SSAValue, weight: SSAValue) -> SSAValue:
    """PReLU with a slope per channel (dimension 1)."""
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
    """Interpolates from the nearer end, so that weights 0 and 1 are exact."""
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


def _sign(graph: Graph, x: SSAValue) -> SSAValue:
    x = graph.value(x)
    return sign_of_float(graph, x, 0) if kind_of(graph.element) == "f" else graph.like("sign", x)


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
    # Two zeros or two infinities have no ratio.
    alike = graph.compare("eq", big, small, i1)
    divisor = graph.broadcasting("where", alike, one, big, element=graph.element)
    ratio = graph.broadcasting("where", alike, one, graph.like("div", small, divisor),
                               element=graph.element)  # fmt: skip
    root = graph.like("sqrt", graph.broadcasting("add", graph.like("square", ratio), one))
    length = graph.like("multiply", big, root)
    nothing = graph.compare("eq", big, zero, i1)
    length = graph.broadcasting("where", nothing, big, length, element=graph.element)
    # hypot(inf, NaN) is inf, but the maximum above is NaN.
    far = graph.number(inf, big)
    sides = [graph.compare("eq", v, far, i1) for v in (x, y)]
    infinite = graph.broadcasting("logical_or", *sides, element=i1)
    return graph.broadcasting("where", infinite, far, length, element=graph.element)


def _logit(graph: Graph, x: SSAValue, epsilon: float | None = None) -> SSAValue:
    """log(x / (1 - x)); with an epsilon, x is clamped to [epsilon, 1 - epsilon]."""
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
    """Magnitude of one operand with the sign of the other, signed zeros included."""
    x, sign = graph.value(x, rank=len(graph.shape)), graph.value(sign, rank=len(graph.shape))
    size = graph.like("abs", x)
    below = graph.like("signbit", sign, element=i1)
    return graph.broadcasting("where", below, graph.like("neg", size), size, element=graph.element)


def _xlogy(graph: Graph, x: Scalar, y: Scalar) -> SSAValue:
    """x * log(y), which is 0 where x is 0 unless y is NaN."""
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
    """Randomized leaky ReLU: a random slope in training, else the mean of its limits."""
    if training:
        raise CompileError("rrelu is not compiled for training", remedy="call module.eval()")
    return _leaky_relu(graph, x, (low + high) / 2)


def _random_relu_with_noise(graph: Graph, x: SSAValue, _: SSAValue, *arguments: Any) -> SSAValue:
    return _random_relu(graph, x, *arguments)


def _round(graph: Graph, x: SSAValue, decimals: int = 0) -> SSAValue:
    """Rounds to the nearest integer, ties to even."""
    if decimals:
        raise unsupported_argument("round", "decimals", decimals)
    if kind_of(element_of(x.type)) != "f":
        return x
    return graph.rounded(x)


def _identity(graph: Graph, x: SSAValue, *_: Any, **__: Any) -> SSAValue:
    """Identity, up to a conversion of the element type."""
    return x


def _dropout(graph: Graph, x: SSAValue, probability: float = 0.5, train: bool = False) -> SSAValue:
    """Dropout in training, which scales the remaining elements; else the identity."""
    if not train or not probability:
        return x
    if probability == 1:
        return graph.broadcasting("multiply", x, graph.number(0, x))
    scale = 1 / (1 - probability)
    return graph.like("dropout", x, prob=probability, scale=scale, seed=graph.next_seed())


def _inference_dropout(
    graph: Graph, x: SSAValue, probability: float = 0.5, train: bool = False
) -> SSAValue:
    """Channel dropout and alpha dropout, supported in inference only."""
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
    """Converts a number to the kind of the result's elements."""
    return float(value) if kind_of(graph.element) == "f" else int(value)


_UNARY = """
    abs acos asin asinh atan ceil cos erf erfc exp exp2 expm1 floor frac log log10 log1p log2
    mish neg reciprocal relu relu6 rsqrt selu sigmoid silu sin softsign sqrt square tan tanh
    trunc hardsigmoid
""".split()

RULES: dict[str, Rule] = {
    **{name: _unary(name) for name in _UNARY},
    **{name: _special(name) for name in SPECIAL_FUNCTIONS},
    "digamma": _digamma,
    "polygamma": _polygamma,
    "special_zeta": _zeta,
    "isfinite": _property("isfinite"),
    "signbit": _property("signbit"),
    "sgn": _sign,
    "sign": _sign,
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
    "feature_dropout": _inference_dropout,
    "alpha_dropout": _inference_dropout,
    **dict.fromkeys(
        """
        alias clone contiguous detach lift_fresh_copy lift_fresh to _to_copy type_as positive
        resolve_conj resolve_neg _unwrap_for_grad _wrap_for_grad
        """.split(),
        _identity,
    ),
}
"""Rules by operation name, for all overloads."""
