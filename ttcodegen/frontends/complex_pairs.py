"""Complex tensors as pairs of real ones, as which devices compute with them."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import shape_of
from ttcodegen.ops.core.builder import OpBuilder


@dataclass(frozen=True, slots=True)
class Complex:
    """A tensor of complex numbers: its real and its imaginary part, both of its shape."""

    real: SSAValue
    imag: SSAValue


def joined(build: OpBuilder, value: Complex) -> SSAValue:
    """The parts next to each other, as a last dimension of two."""
    shape = shape_of(value.real.type)
    parts = [build.reshape(part, [*shape, 1]) for part in (value.real, value.imag)]
    return build.concat(parts, len(shape))


def parted(build: OpBuilder, pairs: SSAValue) -> Complex:
    """The complex tensor whose parts are next to each other in the last dimension."""
    *shape, _ = shape_of(pairs.type)
    parts = (build.slice_dim(pairs, len(shape), index, index + 1) for index in (0, 1))
    return Complex(*(build.reshape(part, shape) for part in parts))
