"""Random numbers: those of the device, not the bits that XLA draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.ir import SSAValue

from ttcodegen.dialects.datatypes import element_of, f32, shape_of, tensor_type
from ttcodegen.frontends.stablehlo.call_options import like_result
from ttcodegen.frontends.stablehlo.conversion import Conversion, Rule, Value
from ttcodegen.frontends.stablehlo.dialect import StableHLOOp
from ttcodegen.lazy_numpy import np


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
    return _random(conversion, op, low, high)


def _random(conversion: Conversion, op: StableHLOOp, low: float, high: float) -> SSAValue:
    type_ = like_result(op)
    return conversion.builder.emit(
        "rand", [], type_, size=list(shape_of(type_)), low=low, high=high, seed=0
    )


def _rng(conversion: Conversion, op: StableHLOOp) -> Value:
    """Uniform numbers, or normal ones by the method of Box and Muller."""
    low, high = (conversion.number(value) for value in conversion.tensors(op)[:2])
    if low is None or high is None:
        raise ValueError("random numbers need limits that are known")
    normal = "NORMAL" in str(op.get("distribution", op.get("rng_distribution", "UNIFORM"))).upper()
    type_ = like_result(op)
    builder = conversion.builder
    if not normal:
        if not str(element_of(type_)).startswith(("f", "bf")):
            real = tensor_type(f32, shape_of(type_))
            drawn = builder.emit(
                "rand", [], real, size=list(shape_of(type_)), low=float(low), high=float(high)
            )
            return builder.typecast(builder.like("floor", drawn), element_of(type_))
        return _random(conversion, op, float(low), float(high))
    shape = shape_of(type_)
    real = tensor_type(f32, shape)
    first, second = (
        builder.emit("rand", [], real, size=list(shape), low=2.0**-24, high=1.0, seed=seed)
        for seed in (1, 2)
    )
    radius = builder.like("multiply", builder.like("log", first), conversion.filled(-2, shape, f32))
    angle = builder.like("multiply", second, conversion.filled(2 * np.pi, shape, f32))
    drawn = builder.like("multiply", builder.like("sqrt", radius), builder.like("cos", angle))
    drawn = builder.like("multiply", drawn, conversion.filled(high, shape, f32))
    drawn = builder.like("add", drawn, conversion.filled(low, shape, f32))
    return builder.typecast(drawn, element_of(type_))


def _rng_bits(conversion: Conversion, op: StableHLOOp) -> list[Value]:
    """Random bits; which ones is free where the algorithm is the default one
    (https://openxla.org/stablehlo/spec#rng_bit_generator)."""
    state = conversion.tensor(op.operands[0])
    type_ = op.results[1].type
    shape, element = shape_of(type_), element_of(type_)
    builder = conversion.builder
    half = 2.0**16
    parts = [
        builder.typecast(
            builder.like(
                "floor",
                builder.emit(
                    "rand",
                    [],
                    tensor_type(f32, shape),
                    size=list(shape),
                    low=0.0,
                    high=half,
                    seed=seed,
                ),
            ),
            element,
        )
        for seed in (1, 2)
    ]
    width = conversion.filled(16, shape, element)
    high = builder.like("logical_left_shift", parts[0], width)
    return [state, builder.like("bitwise_or", high, parts[1])]


RULES: dict[str, Rule] = {"rng": _rng, "rng_bit_generator": _rng_bits}
