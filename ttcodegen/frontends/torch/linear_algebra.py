"""Rules of `torch.linalg`: factorizations of small matrices, solutions, inverses, determinants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import Float64Type, TensorType, i32
from xdsl.ir import Attribute, SSAValue

from ttcodegen.dialects.core.datatypes import element_of, shape_of
from ttcodegen.frontends.matrices import eigenvalues, factorizations
from ttcodegen.frontends.matrices.factorizations import LU
from ttcodegen.frontends.matrices.matrix import Matrix, require_small, row_indices
from ttcodegen.frontends.torch.graph import Graph, Rule
from ttcodegen.ops.core.builder import broadcast_shapes

Result = Matrix | None
"""Result of a rule; None for zeros, of which info has one for each matrix, and others none."""
_MatrixRule = Callable[..., "Result | Sequence[Result]"]


def _rule(function: _MatrixRule, *of_nothing: float) -> Rule:
    """Makes a rule of a function of matrices.

    Tensors among the arguments are matrices that are computed with in 32 bits. Of matrices without
    elements, results are the given numbers, by default identities and zeros.
    """

    @wraps(function)
    def rule(graph: Graph, *arguments: Any, **named: Any) -> SSAValue | Sequence[SSAValue]:
        if any(_is_empty(each) for each in arguments):
            fills = [*of_nothing, *[None] * len(graph.results)]
            return [_of_nothing(graph, *each) for each in zip(graph.results, fills, strict=False)]
        found = function(
            *(_argument(graph, each) for each in arguments),
            **{name: _argument(graph, each) for name, each in named.items()},
        )
        several = [found] if isinstance(found, Matrix) or found is None else list(found)
        made: list[SSAValue] = []
        for value, type_ in zip(several, graph.results, strict=False):
            shape = shape_of(type_)
            if 0 in shape:
                made.append(graph.nothing(type_))
            elif value is None:
                made.append(graph.full(shape, 0, type_.element_type))
            else:
                made.append(value.reshape(shape).value)
        return made

    return rule


def _of_nothing(graph: Graph, type_: TensorType[Attribute], fill: float | None) -> SSAValue:
    """Result of matrices without elements; by default, factors and permutations are identities."""
    shape = shape_of(type_)
    if 0 in shape:
        return graph.nothing(type_)
    sides = shape[-2:]
    is_matrix = type_.element_type != i32 and len(sides) == 2 and sides[0] == sides[1]
    if fill is None and is_matrix:
        unit = np.broadcast_to(np.eye(sides[0], dtype=np.float32), shape)
        return graph.constant(unit, type_.element_type)
    return graph.full(shape, fill or 0, type_.element_type)


def _is_empty(argument: Any) -> bool:
    return isinstance(argument, SSAValue) and 0 in shape_of(cast("SSAValue", argument).type)


def _argument(graph: Graph, argument: Any) -> Any:
    if not isinstance(argument, SSAValue):
        return argument
    value = cast("SSAValue", argument)
    is_index = element_of(value.type) == i32
    return Matrix(graph, value) if is_index else Matrix.computed(graph, value)


def _together(a: Matrix, b: Matrix) -> tuple[Matrix, Matrix]:
    """Expands two operands to one batch."""
    batch = broadcast_shapes([a.batch, b.batch])
    assert batch is not None
    return a.expanded([*batch, *a.shape[-2:]]), b.expanded([*batch, *b.shape[-2:]])


def _column(vectors: Matrix) -> Matrix:
    return vectors.reshape([*vectors.shape, 1])


# Determinants and solutions


def _determinant(a: Matrix) -> list[Result]:
    lu = factorizations.lu_factors("det", a)
    return [_product(lu.factors.diagonal) * lu.sign, lu.factors, lu.pivots + 1]


def _product(column: Matrix) -> Matrix:
    return column.of(column.build.reduce("prod", column.value, [len(column.shape) - 2]))


def _log_determinant(a: Matrix) -> list[Result]:
    lu = factorizations.lu_factors("slogdet", a)
    diagonal = lu.factors.diagonal
    total = abs(diagonal).apply("log").sum_of_rows()
    return [_product(diagonal.apply("sign")) * lu.sign, total, lu.factors, lu.pivots + 1]


def _solve_triangular(
    a: Matrix, b: Matrix, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Matrix:
    a, b = _together(a, b)
    name = "solve_triangular"
    if left:
        return factorizations.triangular_solution(name, a, b, upper, unitriangular)
    return factorizations.triangular_solution(name, a.T, b.T, not upper, unitriangular).T


def _old_solve_triangular(
    b: Matrix, a: Matrix, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> list[Result]:
    a, b = _together(a, b)
    turned = a.T if transpose else a
    name = "triangular_solve"
    found = factorizations.triangular_solution(name, turned, b, upper != transpose, unitriangular)
    return [found, a]


def _solve(a: Matrix, b: Matrix, *, left: bool = True, check_errors: bool = False) -> list[Result]:
    """Solves a x = b, or x a = b."""
    lu = factorizations.lu_factors("solve", a if left else a.T)
    b = as_columns(a, b)
    found = _by_factors("solve", lu.factors, lu.order, b if left else b.T)
    return [found if left else found.T, lu.factors, lu.pivots + 1, None]


def as_columns(a: Matrix, b: Matrix) -> Matrix:
    """Right sides of a solve as matrices: vectors, one for each matrix of `a`, are columns."""
    return _column(b) if b.shape == a.shape[:-1] else b


def solution(a: Matrix, b: Matrix) -> Matrix:
    """Solves a x = b."""
    lu = factorizations.lu_factors("solve", a)
    return _by_factors("solve", lu.factors, lu.order, b)


def _by_factors(name: str, factors: Matrix, order: Matrix, b: Matrix) -> Matrix:
    order, _ = _together(order, b)
    factors, b = _together(factors, b)
    return factorizations.lu_solution(name, factors, b.permuted_rows(order))


def _inverse(a: Matrix, *, check_errors: bool = False) -> list[Result]:
    return [solution(a, a.identity(a.rows, a.rows)), None]


def _lu_factors(a: Matrix, *, pivot: bool = True, check_errors: bool = False) -> list[Result]:
    lu = factorizations.lu_factors("lu_factor", a, pivot)
    return [lu.factors, lu.pivots + 1, None]


def _unpacked(lu: Matrix, order: Matrix) -> list[Result]:
    """The permutation that restores the row order, L and U."""
    rows = order.constant(row_indices(lu.rows), i32)
    permutation = rows.equals(order.T).to(lu.element)
    return [permutation, factorizations.lower_factor(lu), factorizations.upper_factor(lu)]


def _lu(a: Matrix, *, pivot: bool = True) -> list[Result]:
    lu: LU = factorizations.lu_factors("lu", a, pivot)
    return _unpacked(lu.factors, lu.order)


def _order(pivots: Matrix, count: int) -> Matrix:
    """Row order of pivots [..., steps] from 1."""
    column = pivots.to(i32).reshape([*pivots.shape, 1])
    return factorizations.order_of_pivots(column - 1, count)


def _lu_unpack(
    lu: Matrix, pivots: Matrix, unpack_data: bool = True, unpack_pivots: bool = True
) -> list[Result]:
    return _unpacked(lu, _order(pivots, lu.rows))


def _lu_solve(
    lu: Matrix, pivots: Matrix, b: Matrix, *, left: bool = True, adjoint: bool = False
) -> Matrix:
    """Solves a x = b by the LU factors of a; with `adjoint`, its transpose."""
    if not left:
        return _lu_solve(lu, pivots, b.T, left=True, adjoint=not adjoint).T
    order = _order(pivots, lu.rows)
    if not adjoint:
        return _by_factors("lu_solve", lu, order, b)
    order, _ = _together(order, b)
    lu, b = _together(lu, b)
    x = factorizations.triangular_solution("lu_solve", lu.T, b, upper=False)
    x = factorizations.triangular_solution("lu_solve", lu.T, x, upper=True, unit=True)
    return x.permuted_rows(factorizations.inverse_order(order))


# Cholesky


def _cholesky_ex(a: Matrix, *, upper: bool = False, check_errors: bool = False) -> list[Result]:
    lower = factorizations.cholesky_factor(a.T if upper else a)
    failed = factorizations.first_failure(~(lower.diagonal > 0.0))
    return [lower.T if upper else lower, failed]


def _cholesky(a: Matrix, upper: bool = False) -> Result:
    return _cholesky_ex(a, upper=upper)[0]


def _cholesky_solve(b: Matrix, factor: Matrix, upper: bool = False) -> Matrix:
    factor, b = _together(factor, b)
    return factorizations.cholesky_solution("cholesky_solve", factor.T if upper else factor, b)


def _cholesky_inverse(factor: Matrix, upper: bool = False) -> Matrix:
    return _cholesky_solve(factor.identity(factor.rows, factor.rows), factor, upper)


# QR


def _qr(a: Matrix, mode: str = "reduced") -> list[Result]:
    reflectors, tau = factorizations.householder_reflections(a)
    width = a.rows if mode == "complete" else min(a.rows, a.columns)
    upper = reflectors.upper().first_rows(width)
    if mode == "r":
        return [None, upper]
    return [factorizations.orthogonal_factor(reflectors, tau, width), upper]


def _householder_product(a: Matrix, tau: Matrix) -> Matrix:
    require_small("householder_product", tau.columns)
    return factorizations.orthogonal_factor(a, _column(tau), a.columns)


def _multiplied_by_q(
    a: Matrix, tau: Matrix, other: Matrix, left: bool = True, transpose: bool = False
) -> Matrix:
    require_small("ormqr", tau.columns)
    if left:
        return factorizations.reflected(a, _column(tau), other, transpose)
    return factorizations.reflected(a, _column(tau), other.T, not transpose).T


def _by_reflections(
    graph: Graph, a: SSAValue, tau: SSAValue, other: SSAValue, *arguments: bool
) -> SSAValue | Sequence[SSAValue]:
    if 0 in shape_of(tau.type):
        return other
    return _rule(_multiplied_by_q)(graph, a, tau, other, *arguments)


# Powers

_TAYLOR_TERMS = 10
_MOST_SQUARINGS = 20


def _matrix_exponential(a: Matrix) -> Matrix:
    """Matrix exponential by scaling and squaring of a Taylor series."""
    norm = abs(a).sum_of_rows().largest_along(-1)
    large = [norm > 0.5 * 2.0**step for step in range(_MOST_SQUARINGS)]
    scale = norm.number(1.0)
    for is_large in large:
        scale = is_large.where(scale * 0.5, scale)
    scaled = a * scale
    unit = a.identity(a.rows, a.rows)
    total = unit
    for term in range(_TAYLOR_TERMS, 0, -1):
        total = unit + (scaled @ total) / term
    for is_large in large:
        total = is_large.where(total @ total, total)
    return total


# Singular values


def _svd(
    a: Matrix, full_matrices: bool = False, compute_uv: bool = True, *, driver: Any = None
) -> list[Result]:
    u, s, v = eigenvalues.singular_values(a, full_matrices and compute_uv)
    return [u, s, v.T] if compute_uv else [None, s, None]


def _eigh(a: Matrix, UPLO: str = "L", compute_v: bool = True) -> list[Result]:
    lower = UPLO.upper() == "L"
    values, vectors = eigenvalues.symmetric_eigenvalues(eigenvalues.symmetric(a, lower))
    return [values, vectors if compute_v else None]


def _pseudo_inverse(
    a: Matrix, *, atol: Matrix | None = None, rtol: Matrix | None = None, hermitian: bool = False
) -> Matrix:
    """Pseudo-inverse from the singular values above a tolerance."""
    u, s, v = eigenvalues.singular_values(eigenvalues.symmetric(a) if hermitian else a)

    def tolerance(given: Matrix) -> Matrix:
        return given.to(s.element).reshape([*given.shape, 1, 1])

    most = s.first_columns(1)
    if rtol is not None:
        least = most * tolerance(rtol)
    else:
        is_double = isinstance(a.element, Float64Type)
        epsilon = np.finfo(np.float64 if is_double else np.float32).eps
        least = most * float(max(a.rows, a.columns) * epsilon)
        if atol is not None:
            least = (tolerance(atol) > 0.0).where(0.0, least)
    if atol is not None:
        least = least.apply("maximum", tolerance(atol))
    is_used = s > least
    inverse = is_used.where(1.0 / is_used.where(s, 1.0), 0.0)
    return (v * inverse) @ u.T


RULES: dict[str, Rule] = {
    "_linalg_det": _rule(_determinant, 1.0),
    "_linalg_slogdet": _rule(_log_determinant, 1.0, 0.0),
    "_linalg_solve_ex": _rule(_solve),
    "linalg_inv_ex": _rule(_inverse),
    "linalg_lu_factor_ex": _rule(_lu_factors),
    "linalg_lu": _rule(_lu),
    "lu_unpack": _rule(_lu_unpack),
    "linalg_lu_solve": _rule(_lu_solve),
    "linalg_solve_triangular": _rule(_solve_triangular),
    "triangular_solve": _rule(_old_solve_triangular),
    "linalg_cholesky_ex": _rule(_cholesky_ex),
    "cholesky": _rule(_cholesky),
    "cholesky_solve": _rule(_cholesky_solve),
    "_cholesky_solve_helper": _rule(_cholesky_solve),
    "cholesky_inverse": _rule(_cholesky_inverse),
    "linalg_qr": _rule(_qr),
    "geqrf": _rule(factorizations.householder_reflections),
    "linalg_householder_product": _rule(_householder_product),
    "ormqr": _by_reflections,
    "linalg_matrix_exp": _rule(_matrix_exponential),
    "_linalg_svd": _rule(_svd),
    "_linalg_eigh": _rule(_eigh),
    "linalg_pinv.atol_rtol_tensor": _rule(_pseudo_inverse),
}
