"""Fourier transforms, factorizations of matrices and solutions of triangular systems.

jax writes factorizations as custom calls of the library that computes them on its platform: LAPACK
on CPUs, cuSOLVER or hipSOLVER on GPUs (`jax/_src/lax/linalg.py` of jax 0.10), XLA's own on TPUs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from math import prod
from typing import Any

from xdsl.dialects.builtin import i32

from ttcodegen.dialects.core.datatypes import element_of, shape_of
from ttcodegen.frontends import fourier
from ttcodegen.frontends.matrices import eigenvalues, factorizations
from ttcodegen.frontends.matrices.matrix import Matrix
from ttcodegen.frontends.special_functions import Complex
from ttcodegen.frontends.stablehlo.complex_numbers import as_complex
from ttcodegen.frontends.stablehlo.conversion import Conversion, Rule, Value
from ttcodegen.frontends.stablehlo.reading.operations import StableHLOOp

# Fourier transforms

_KIND = re.compile(r"(I?R?FFT)>?$")


def _fft(conversion: Conversion, op: StableHLOOp) -> Value:
    """Transform of the last dimensions; inverse ones are divided by the number of elements."""
    kind = _KIND.search(str(op.get("fft_type", op.get("type"))).upper())
    lengths = op.ints("fft_length", op.get("length"))
    if kind is None or not 1 <= len(lengths) <= 3:
        raise ValueError("'stablehlo.fft' needs its type, and one to three lengths")
    build = conversion.builder
    value = conversion.value(op.operands[0])
    given = as_complex(conversion, value)
    rank = len(shape_of(given.real.type))
    axes = list(range(rank - len(lengths), rank))
    sizes = [shape_of(given.real.type)[axis] for axis in axes]
    is_half = kind[1] == "IRFFT"
    if sizes != [*lengths[:-1], lengths[-1] // 2 + 1 if is_half else lengths[-1]]:
        raise ValueError(f"the lengths {lengths} do not fit an operand of the sizes {sizes}")
    count = prod(lengths)
    match kind[1]:
        case "RFFT":
            return fourier.transform_of_real(build, given.real, axes)
        case "IRFFT":
            made = fourier.transform_to_real(build, given, axes, lengths[-1])
            return build.like("multiply", made, conversion.filled_like(1 / max(count, 1), made))
        case "FFT":
            return fourier.transform(build, given, axes, True)
        case _:
            made = fourier.transform(build, given, axes, False)
            share = conversion.filled_like(1 / max(count, 1), made.real)
            return Complex(*(build.like("multiply", p, share) for p in (made.real, made.imag)))


# Factorizations


def _matrices(
    conversion: Conversion, op: StableHLOOp, count: int, square: bool = False
) -> list[Matrix]:
    """Operands as matrices, and vectors after the first.

    Raises:
        ValueError: if their number is another one, or the first is no matrix, or not square.
    """
    found = [Matrix.computed(conversion.builder, value) for value in conversion.tensors(op)]
    if len(found) != count:
        raise ValueError(f"{count} operands are needed, found {len(found)}")
    shape = found[0].shape
    if len(shape) < 2 or 0 in shape or (square and shape[-2] != shape[-1]):
        kind = "a square matrix" if square else "a matrix"
        raise ValueError(f"the first operand has to be {kind}, found the shape {list(shape)}")
    return found


def _results(op: StableHLOOp, *found: Matrix | None) -> list[Value]:
    """Results in the declared shapes and element types; None for zeros."""
    build = next(each.build for each in found if each is not None)
    if len(found) != len(op.results):
        raise ValueError(f"{len(found)} results are computed, found {len(op.results)}")
    made: list[Value] = []
    for value, result in zip(found, op.results, strict=True):
        shape, element = shape_of(result.type), element_of(result.type)
        if value is None:
            made.append(build.full(shape, 0, element))
        elif prod(shape) != prod(value.shape):
            raise ValueError(f"a result of the shape {list(value.shape)} is declared as {shape}")
        else:
            made.append(value.reshape(shape).to(element).value)
    return made


Options = Mapping[str, Any]
_Factorization = Callable[[Conversion, StableHLOOp, Options], list[Value]]


def _has_option(
    options: Options, name: str, letter: str, flag: str = "", default: bool = False
) -> bool:
    """Returns whether an option of LAPACK is a letter, or a flag of other libraries is set."""
    if name in options:
        given = options[name]
        return (chr(given) if isinstance(given, int) else str(given)) in (letter, letter.lower())
    return bool(options.get(flag, default))


def _column(vectors: Matrix) -> Matrix:
    """Vectors [..., count] as columns."""
    return vectors.reshape([*vectors.shape, 1])


_MAX_UNKNOWNS = 256
"""Limit on the unknowns of a triangular system, each of which takes several ops."""


def _triangular(
    a: Matrix, b: Matrix, *, left: bool, lower: bool, transposed: bool, unit: bool
) -> Matrix:
    """Solves op(a) x = b or x op(a) = b; the other triangle is not read."""
    if len(b.shape) < 2 or b.batch != a.batch or (b.rows if left else b.columns) != a.rows:
        raise ValueError(f"systems of {list(a.shape)} have no sides of {list(b.shape)}")
    # x a = b is a^T x^T = b^T.
    if transposed is left:
        a, lower = a.T, not lower
    solve = partial(factorizations.triangular_solution, "triangular_solve", a,
                    upper=not lower, unit=unit, largest=_MAX_UNKNOWNS)  # fmt: skip
    return solve(b) if left else solve(b.T).T


def _triangular_solve(conversion: Conversion, op: StableHLOOp) -> list[Value]:
    a, b = _matrices(conversion, op, 2, square=True)
    found = _triangular(
        a,
        b,
        left=bool(op.get("left_side", False)),
        lower=bool(op.get("lower", False)),
        transposed="NO_TRANSPOSE" not in str(op.get("transpose_a", "NO_TRANSPOSE")).upper(),
        unit=bool(op.get("unit_diagonal", False)),
    )
    return _results(op, found)


def _trsm(conversion: Conversion, op: StableHLOOp, options: Options) -> list[Value]:
    a, b = _matrices(conversion, op, 2, square=True)
    found = _triangular(
        a,
        b,
        left=_has_option(options, "side", "L"),
        lower=_has_option(options, "uplo", "L"),
        transposed=not _has_option(options, "trans_x", "N"),
        unit=_has_option(options, "diag", "U"),
    )
    return _results(op, found)


def _cholesky_factor(a: Matrix, lower: bool) -> Matrix:
    found = factorizations.cholesky_factor(a if lower else a.T)
    return found if lower else found.T


def _cholesky(conversion: Conversion, op: StableHLOOp) -> list[Value]:
    (a,) = _matrices(conversion, op, 1, square=True)
    return _results(op, _cholesky_factor(a, bool(op.get("lower", False))))


def _potrf(conversion: Conversion, op: StableHLOOp, options: Options) -> list[Value]:
    """Factor in one triangle, the other one as it was, and the first column that fails."""
    (a,) = _matrices(conversion, op, 1, square=True)
    lower = _has_option(options, "uplo", "L", "lower")
    found = _cholesky_factor(a, lower)
    failed = factorizations.first_failure(~(found.diagonal > 0.0))
    mine = found.triangle(lower)
    return _results(op, mine.where(found, a), failed)


def _getrf(conversion: Conversion, op: StableHLOOp, _: Options) -> list[Value]:
    """Factors, pivots from 1, and the first pivot that is zero."""
    (a,) = _matrices(conversion, op, 1)
    lu = factorizations.lu_factors("lu", a)
    failed = factorizations.first_failure(lu.factors.diagonal.equals(0.0))
    return _results(op, lu.factors, lu.pivots + 1, failed)


def _lu_decomposition(conversion: Conversion, op: StableHLOOp, _: Options) -> list[Value]:
    """Factors, pivots from 0, and the row order."""
    (a,) = _matrices(conversion, op, 1)
    lu = factorizations.lu_factors("lu", a)
    return _results(op, lu.factors, lu.pivots, lu.order)


def _pivots_to_permutation(conversion: Conversion, op: StableHLOOp, _: Options) -> list[Value]:
    (given,) = conversion.tensors(op)
    pivots = _column(Matrix(conversion.builder, given).to(i32))
    return _results(op, factorizations.order_of_pivots(pivots, shape_of(op.results[0].type)[-1]))


def _geqrf(conversion: Conversion, op: StableHLOOp, _: Options) -> list[Value]:
    (a,) = _matrices(conversion, op, 1)
    return _results(op, *factorizations.householder_reflections(a))


def _orgqr(conversion: Conversion, op: StableHLOOp, _: Options) -> list[Value]:
    a, tau = _matrices(conversion, op, 2)
    return _results(op, factorizations.orthogonal_factor(a, _column(tau), a.columns))


def _ormqr(conversion: Conversion, op: StableHLOOp, options: Options) -> list[Value]:
    a, tau, c = _matrices(conversion, op, 3)
    left, transpose = bool(options.get("left", True)), bool(options.get("transpose", False))
    apply = partial(factorizations.reflected, a, _column(tau))
    return _results(op, apply(c, transpose) if left else apply(c.T, not transpose).T)


def _syevd(conversion: Conversion, op: StableHLOOp, options: Options) -> list[Value]:
    """Eigenvectors, eigenvalues, and 0, as none fails."""
    (a,) = _matrices(conversion, op, 1, square=True)
    lower = _has_option(options, "uplo", "L", "lower", True)
    values, vectors = eigenvalues.symmetric_eigenvalues(eigenvalues.symmetric(a, lower))
    return _results(op, *(vectors, values, None)[: len(op.results)])


def _gesvd(
    conversion: Conversion, op: StableHLOOp, options: Options, *, turned: bool
) -> list[Value]:
    """The operand, singular values, u, v or its transpose, and 0, as none fails.

    Args:
        conversion: of the module.
        op: the call.
        options: of the call.
        turned: whether v is a result, else its transpose is.
    """
    (a,) = _matrices(conversion, op, 1)
    if not turned and (_has_option(options, "mode", "N") or options.get("compute_uv") is False):
        _, s, _ = eigenvalues.singular_values(a)
        return _results(op, a, s, None, None, None)
    least = min(a.rows, a.columns)
    full = any(min(shape_of(result.type)[-2:]) > least for result in op.results[2:4])
    u, s, v = eigenvalues.singular_values(a, full)
    if options.get("transposed"):
        return _results(op, a, s, v.T, u, None)
    return _results(op, a, s, u, v if turned else v.T, None)


_FACTORIZATIONS: dict[str, _Factorization] = {
    "geqrf": _geqrf,
    "gesdd": partial(_gesvd, turned=False),
    "gesvd": partial(_gesvd, turned=False),
    "gesvdj": partial(_gesvd, turned=True),
    "gesvdp": partial(_gesvd, turned=True),
    "getrf": _getrf,
    "orgqr": _orgqr,
    "ormqr": _ormqr,
    "potrf": _potrf,
    "syevd": _syevd,
    "trsm": _trsm,
}
"""Factorizations by LAPACK's names without the letter of the element type."""
_OF_XLA: dict[str, _Factorization] = {
    "Eigh": _syevd,
    "LuDecomposition": _lu_decomposition,
    "ProductOfElementaryHouseholderReflectors": _orgqr,
    "Qr": _geqrf,
    "cu_lu_pivots_to_permutation": _pivots_to_permutation,
    "hip_lu_pivots_to_permutation": _pivots_to_permutation,
}
_OF_LIBRARIES = re.compile(r"^(?:lapack_[sd]|cusolver_|hipsolver_)(\w+)_ffi$")


def factorization(name: str) -> _Factorization | None:
    """Returns the rule of a custom call that factorizes real matrices, None if there is none."""
    found = _OF_LIBRARIES.match(name)
    return _FACTORIZATIONS.get(found[1]) if found is not None else _OF_XLA.get(name)


RULES: dict[str, Rule] = {
    "cholesky": _cholesky,
    "fft": _fft,
    "triangular_solve": _triangular_solve,
}
