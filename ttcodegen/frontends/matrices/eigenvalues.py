"""Singular values and eigenvalues of symmetric matrices, by Jacobi's rotations of columns."""

from __future__ import annotations

from xdsl.dialects.builtin import i32

from ttcodegen.dialects.core.datatypes import tensor_type
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.foundation.lazy_numpy import np
from ttcodegen.frontends.matrices.factorizations import householder_reflections, orthogonal_factor
from ttcodegen.frontends.matrices.matrix import Matrix

_MAX_JACOBI_COLUMNS = 16
"""Limit on the columns of Jacobi rotations, each pair rotated several times."""
_SWEEPS = 6


def _jacobi(a: Matrix) -> tuple[Matrix, Matrix]:
    """One-sided Jacobi: `a` with orthogonal columns, and the rotation applied.

    Each step rotates one half of the columns with the other half.
    """
    columns, rows = a.columns, a.rows
    if columns > _MAX_JACOBI_COLUMNS:
        raise CompileError(
            "singular values and eigenvalues of matrices of more than "
            f"{_MAX_JACOBI_COLUMNS} columns are not supported, found {columns}",
            remedy="compute them before or after the model",
        )
    unit = a.identity(columns, columns)
    if columns < 2:
        return a, unit
    both = a.above(unit)
    if columns % 2:
        both = both.beside(both.zeros(both.rows, 1))
    half = both.columns // 2
    first, second = both.first_columns(half), both.last_columns(half)
    for _ in range(_SWEEPS * (both.columns - 1)):
        top, bottom = first.first_rows(rows), second.first_rows(rows)
        mixed = (top * bottom).sum_of_rows()
        is_done = mixed.equals(0.0)
        difference = (bottom * bottom).sum_of_rows() - (top * top).sum_of_rows()
        zeta = difference / (2.0 * is_done.where(1.0, mixed))
        tangent = 1.0 / (abs(zeta) + (1.0 + zeta * zeta).sqrt())
        tangent = is_done.where(0.0, (zeta < 0.0).where(-tangent, tangent))
        cosine = 1.0 / (1.0 + tangent * tangent).sqrt()
        sine = cosine * tangent
        first, second = _next_round(cosine * first - sine * second, sine * first + cosine * second)
    found = first.beside(second).first_columns(columns)
    return found.first_rows(rows), found.part((rows, rows + columns), (0, columns))


def _next_round(first: Matrix, second: Matrix) -> tuple[Matrix, Matrix]:
    """Next pairs of a round-robin tournament: the first column stays, the others rotate.

    A full sweep restores the order.
    """
    half = first.columns
    if half == 1:
        return first, second
    kept = [first.part((0, first.rows), (1, half - 1))] if half > 2 else []
    return (
        first.column(0).beside(second.column(0), *kept),
        second.last_columns(1).beside(first.column(half - 1)),
    )


def _sorted_descending(row: Matrix) -> tuple[Matrix, Matrix]:
    """Sorted elements of a row, and their indices."""
    made = row.build.emit_op(
        "sort",
        [row.value],
        [row.value.type, tensor_type(i32, row.shape)],
        dim=len(row.shape) - 1,
        descending=True,
        stable=False,
    )
    return row.of(made.results[0]), row.of(made.results[1])


def _of_tall(a: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """Singular value decomposition u, s, v of a tall or square matrix; values descend in a row."""
    turned, v = _jacobi(a)
    s, order = _sorted_descending((turned * turned).sum_of_rows().sqrt())
    turned, v = turned.permuted_columns(order), v.permuted_columns(order)
    is_none = s.equals(0.0)
    return is_none.where(0.0, turned / is_none.where(1.0, s)), s, v


def singular_values(a: Matrix, full: bool = False) -> tuple[Matrix, Matrix, Matrix]:
    """Singular value decomposition u, s, v; values descend in a row.

    With `full`, u and v are square.
    """
    wide = a.rows < a.columns
    u, s, v = _of_tall(a.T if wide else a)
    if full:
        u = _completed_basis(u)
    return (v, s, u) if wide else (u, s, v)


def _completed_basis(u: Matrix) -> Matrix:
    """Completes orthonormal columns to a square orthogonal matrix."""
    if u.rows == u.columns:
        return u
    reflectors, tau = householder_reflections(u)
    return u.beside(orthogonal_factor(reflectors, tau, u.rows).last_columns(u.columns))


def symmetric(a: Matrix, is_lower: bool = True) -> Matrix:
    """Symmetric matrix of one triangle; the other triangle is not read."""
    return a.triangle(is_lower).where(a, a.T)


def symmetric_eigenvalues(a: Matrix) -> tuple[Matrix, Matrix]:
    """Eigenvalues, ascending in a row, and eigenvectors of a symmetric matrix.

    A diagonal shift makes the matrix positive, so that they are singular values.
    """
    shift = abs(a).sum_of_rows().largest_along(-1)
    _, s, v = _of_tall(a + shift * a.constant(np.eye(a.rows, dtype=np.float32)))
    backwards = a.constant(np.arange(a.rows)[None, ::-1].copy(), i32)
    ascending = backwards.expanded([*a.batch, 1, a.rows])
    return (s - shift).permuted_columns(ascending), v.permuted_columns(ascending)
