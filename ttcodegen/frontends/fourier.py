"""Fourier transforms, as matmuls with matrices of cosines and sines."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import element_of, shape_of, tensor_type
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.frontends.special_functions import Complex
from ttcodegen.ops.core.builder import OpBuilder

# A transform of a vector is its product with the matrix of its frequencies. Nothing is normalized
# here: front ends scale the results as their source asks.

_MAX_TRANSFORM_SIZE = 2048
"""Limit on the size of a transformed dimension: the matrix has its square of elements."""


def transform(build: OpBuilder, value: Complex, axes: Sequence[int], forward: bool) -> Complex:
    """Discrete Fourier transform of complex numbers along dimensions, without normalization."""
    for axis in axes:
        angles = _angles(shape_of(value.real.type)[axis])
        cosines, sines = np.cos(angles), (-1 if forward else 1) * np.sin(angles)
        value = Complex(
            build.like(
                "subtract",
                _along(build, value.real, axis, cosines),
                _along(build, value.imag, axis, sines),
            ),
            build.like(
                "add",
                _along(build, value.real, axis, sines),
                _along(build, value.imag, axis, cosines),
            ),
        )
    return value


def transform_of_real(
    build: OpBuilder, value: SSAValue, axes: Sequence[int], onesided: bool = True
) -> Complex:
    """Forward transform of real numbers, without normalization.

    With `onesided`, the last of the dimensions keeps its first half: the others are conjugates.
    """
    *others, last = axes
    size = shape_of(value.type)[last]
    angles = _angles(size)[:, : size // 2 + 1 if onesided else size]
    halves = Complex(
        _along(build, value, last, np.cos(angles)), _along(build, value, last, -np.sin(angles))
    )
    return transform(build, halves, others, True)


def transform_to_real(build: OpBuilder, value: Complex, axes: Sequence[int], size: int) -> SSAValue:
    """Inverse transform to real numbers, without normalization.

    The last of the dimensions holds the first half of `size` frequencies. Each of the others is
    the conjugate of one of these, which therefore counts twice.
    """
    *others, last = axes
    value = transform(build, value, others, False)
    half = size // 2 + 1
    counts = np.full([half, 1], 2.0)
    counts[0] = 1
    if size % 2 == 0:
        counts[-1] = 1
    angles = _angles(size)[:half]
    parts = (build.slice_dim(part, last, 0, half) for part in (value.real, value.imag))
    real, imag = parts
    return build.like(
        "subtract",
        _along(build, real, last, counts * np.cos(angles)),
        _along(build, imag, last, counts * np.sin(angles)),
    )


def _angles(size: int) -> Array:
    """Angles of the powers of the root of unity.

    Raises:
        CompileError: if there are more than `_MAX_TRANSFORM_SIZE` of them.
    """
    if size > _MAX_TRANSFORM_SIZE:
        raise CompileError(
            f"Fourier transforms of more than {_MAX_TRANSFORM_SIZE} elements are not supported, "
            f"found {size}",
            remedy="compute them before or after the model",
        )
    places = np.arange(size)
    return 2 * np.pi / max(size, 1) * (np.outer(places, places) % max(size, 1))


def _along(build: OpBuilder, value: SSAValue, axis: int, matrix: Array) -> SSAValue:
    """Multiplies the vectors along one dimension by a constant matrix."""
    shape = shape_of(value.type)
    element = element_of(value.type)
    order = list(range(len(shape)))
    order[axis], order[-1] = order[-1], order[axis]
    vectors = build.permute(value, order)
    outer = shape_of(vectors.type)[:-1]
    size, count = matrix.shape
    made = build.emit(
        "matmul",
        [build.reshape(vectors, [prod(outer), size]), build.constant(matrix, element)],
        tensor_type(element, [prod(outer), count]),
    )
    return build.permute(build.reshape(made, [*outer, count]), order)
