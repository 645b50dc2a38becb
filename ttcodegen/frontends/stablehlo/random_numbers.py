"""Random numbers: those of the device, not the bits that XLA draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Attribute, SSAValue

from ttcodegen.dialects.core.datatypes import element_of, f32, shape_of, tensor_type
from ttcodegen.foundation.lazy_numpy import np
from ttcodegen.frontends.stablehlo.conversion import Conversion, Rule, Value
from ttcodegen.frontends.stablehlo.reading.call_options import like_result
from ttcodegen.frontends.stablehlo.reading.operations import StableHLOOp


def uniform(
    conversion: Conversion,
    op: StableHLOOp,
    operands: Sequence[SSAValue],
    attributes: Mapping[str, Any],
) -> Value:
    """Random numbers between two known ones."""
    limits = [conversion.number(operand) for operand in operands[-2:]]
    low, high = (float(limit) if limit is not None else default
                 for limit, default in zip(limits, (0.0, 1.0), strict=True))  # fmt: skip
    type_ = like_result(op)
    return _drawn(conversion, shape_of(type_), element_of(type_), low, high)


def _drawn(
    conversion: Conversion,
    shape: Sequence[int],
    element: Attribute,
    low: float,
    high: float,
    seed: int = 0,
) -> SSAValue:
    """Uniform numbers from `low` to `high`."""
    return conversion.builder.emit(
        "rand", [], tensor_type(element, shape), size=list(shape), low=low, high=high, seed=seed
    )


def _rng(conversion: Conversion, op: StableHLOOp) -> Value:
    """Uniform numbers, or normal ones by the method of Box and Muller."""
    low, high = (conversion.number(value) for value in conversion.tensors(op)[:2])
    if low is None or high is None:
        raise ValueError("random numbers need limits that are known")
    normal = "NORMAL" in str(op.get("distribution", op.get("rng_distribution", "UNIFORM"))).upper()
    type_ = op.results[0].type
    shape, element = shape_of(type_), element_of(type_)
    named = conversion.known(conversion.tensors(op)[2]) if len(op.operands) > 2 else None
    if named is not None and tuple(int(size) for size in named.flat) != shape:
        raise ValueError(f"the shape is {named.tolist()}, and that of the result {list(shape)}")
    builder = conversion.builder
    if not normal and isinstance(element, AnyFloat):
        return _drawn(conversion, shape, element, float(low), float(high))
    if not normal:
        drawn = _drawn(conversion, shape, f32, float(low), float(high))
        return builder.typecast(builder.like("floor", drawn), element)
    first, second = (_drawn(conversion, shape, f32, 2.0**-24, 1.0, seed) for seed in (1, 2))
    radius = builder.like("multiply", builder.like("log", first), conversion.filled(-2, shape, f32))
    angle = builder.like("multiply", second, conversion.filled(2 * np.pi, shape, f32))
    drawn = builder.like("multiply", builder.like("sqrt", radius), builder.like("cos", angle))
    drawn = builder.like("multiply", drawn, conversion.filled(high, shape, f32))
    drawn = builder.like("add", drawn, conversion.filled(low, shape, f32))
    return builder.typecast(drawn, element)


def _rng_bits(conversion: Conversion, op: StableHLOOp) -> list[Value]:
    """Random bits; which ones is free where the algorithm is the default one
    (https://openxla.org/stablehlo/spec#rng_bit_generator)."""
    state = conversion.tensor(op.operands[0])
    type_ = op.results[1].type
    shape, element = shape_of(type_), element_of(type_)
    builder = conversion.builder
    drawn = (_drawn(conversion, shape, f32, 0.0, 2.0**16, seed) for seed in (1, 2))
    high, low = (builder.typecast(builder.like("floor", each), element) for each in drawn)
    width = conversion.filled(16, shape, element)
    return [state, builder.like("bitwise_or", builder.like("logical_left_shift", high, width), low)]


RULES: dict[str, Rule] = {"rng": _rng, "rng_bit_generator": _rng_bits}
