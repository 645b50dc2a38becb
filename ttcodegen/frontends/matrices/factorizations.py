"""LU, Cholesky and QR factorizations, and solutions of triangular systems."""

from __future__ import annotations

from typing import NamedTuple

from xdsl.dialects.builtin import i32

from ttcodegen.dialects.core.datatypes import f32, tensor_type
from ttcodegen.foundation.lazy_numpy import np
from ttcodegen.frontends.matrices.matrix import (
    LARGEST,
    Matrix,
    column_indices,
    require_small,
    row_indices,
)

# Triangular systems


def triangular_solution(
    name: str, a: Matrix, b: Matrix, upper: bool, unit: bool = False, largest: int = LARGEST
) -> Matrix:
    """Solves a x = b for a triangular `a` by substitution, one row after the other.

    The other triangle is not read, nor is the diagonal with `unit`.
    """
    require_small(name, a.rows, largest)
    found: list[Matrix] = []
    order = range(a.rows)
    for k in reversed(order) if upper else order:
        row = b.row(k)
        if not unit:
            row = row / a.entry(k, k)
        found.append(row)
        if len(found) < a.rows:
            # Rows that are solved change as well, and are not read again.
            b = b - a.column(k) * row
    first, *others = reversed(found) if upper else found
    return first.above(*others)


# LU


class LU(NamedTuple):
    """LU factorization with partial pivoting."""

    factors: Matrix
    """L below the diagonal, with ones on it, and U above."""
    order: Matrix
    """Row order, as a column of indices."""
    pivots: Matrix
    """Row that each step exchanges its own with, as a column of indices from 0."""
    sign: Matrix
    """Sign of the permutation, [..., 1, 1]."""


def lu_factors(name: str, a: Matrix, pivoted: bool = True) -> LU:
    """LU factorization, by default with partial pivoting."""
    steps = min(a.rows, a.columns)
    require_small(name, steps)
    rows, columns = row_indices(a.rows), column_indices(a.columns)
    order = a.constant(rows, i32).expanded([*a.batch, a.rows, 1])
    sign = a.constant(np.ones([1, 1], np.float32)).expanded([*a.batch, 1, 1])
    pivots: list[Matrix] = []
    for k in range(steps):
        place = a.constant(np.full([1, 1], k), i32)
        if pivoted:
            place = _place_of_largest(a.mask(rows >= k).where(abs(a.column(k)), -1.0))
            swapped = _swapped(place, k, a.rows)
            a, order = a.permuted_rows(swapped), order.gather(swapped, -2)
            sign = place.equals(k).where(sign, -sign)
        pivots.append(place.expanded([*a.batch, 1, 1]))
        pivot = a.entry(k, k)
        factor = pivot.equals(0.0).where(0.0, a.column(k) / pivot)
        factor = a.mask(rows > k).where(factor, 0.0)
        rest = a - factor * a.mask(columns > k).where(a.row(k), 0.0)
        a = a.mask((rows > k) & (columns == k)).where(factor, rest)
    first, *others = pivots
    return LU(a, order, first.above(*others), sign)


def _place_of_largest(column: Matrix) -> Matrix:
    return column.of(
        column.build.emit(
            "argmax",
            [column.value],
            tensor_type(i32, [*column.batch, 1, 1]),
            dim_arg=[len(column.shape) - 2],
            keep_dim=True,
        )
    )


def _swapped(place: Matrix, k: int, count: int) -> Matrix:
    """Row order that exchanges row `k` with the row at `place`."""
    rows = place.constant(row_indices(count), i32)
    others = place.equals(rows).where(k, rows)
    return place.mask(row_indices(count) == k).where(place, others)


def order_of_pivots(pivots: Matrix, count: int) -> Matrix:
    """Row order that exchanges of rows produce; `pivots` are a column of indices from 0."""
    order = pivots.constant(row_indices(count), i32).expanded([*pivots.batch, count, 1])
    for k in range(pivots.rows):
        order = order.gather(_swapped(pivots.entry(k, 0), k, count), -2)
    return order


def inverse_order(order: Matrix) -> Matrix:
    """The row order that undoes another: the place of each index in a column of them."""
    count = order.rows
    rows = order.constant(row_indices(count), i32)
    found = order.constant(np.zeros([1, 1]), i32)
    for k in range(count):
        found = order.entry(k, 0).equals(rows).where(k, found)
    return found


def lower_factor(lu: Matrix) -> Matrix:
    """L of a matrix that holds both factors."""
    steps = min(lu.rows, lu.columns)
    return lu.first_columns(steps).lower(-1) + lu.constant(np.eye(lu.rows, steps, dtype=np.float32))


def upper_factor(lu: Matrix) -> Matrix:
    """U of a matrix that holds both factors."""
    return lu.first_rows(min(lu.rows, lu.columns)).upper()


def lu_solution(name: str, lu: Matrix, b: Matrix) -> Matrix:
    """Solves L U x = b; rows of `b` are already in the order of the factors."""
    lower = triangular_solution(name, lu, b, upper=False, unit=True)
    return triangular_solution(name, lu, lower, upper=True)


def first_failure(failed: Matrix) -> Matrix:
    """Index from 1 of the first true element of a column, 0 if there is none; [..., 1, 1]."""
    count = failed.rows
    left = failed.constant(count - row_indices(count), f32)
    most = failed.where(left, 0.0).largest_along(-2)
    return most.equals(0.0).where(0.0, count + 1 - most).to(i32)


# Cholesky


def cholesky_factor(a: Matrix) -> Matrix:
    """Lower Cholesky factor; only the lower triangle of `a` is read.

    NaN from the first column on that is not positive.
    """
    require_small("cholesky", a.rows)
    columns: list[Matrix] = []
    for k in range(a.rows):
        column = a.column(k) / a.entry(k, k).sqrt()
        columns.append(a.mask(row_indices(a.rows) >= k).where(column, 0.0))
        a = a - columns[-1] * columns[-1].T
    first, *others = columns
    return first.beside(*others)


def cholesky_solution(name: str, lower: Matrix, b: Matrix) -> Matrix:
    """Solves L L^T x = b."""
    x = triangular_solution(name, lower, b, upper=False)
    return triangular_solution(name, lower.T, x, upper=True)


# QR


def householder_reflections(a: Matrix) -> tuple[Matrix, Matrix]:
    """Householder QR in LAPACK's form.

    Returns reflectors below the diagonal with R above, and the factors of the reflections as a
    column.
    """
    steps = min(a.rows, a.columns)
    require_small("qr", steps)
    rows, columns = row_indices(a.rows), column_indices(a.columns)
    factors: list[Matrix] = []
    for k in range(steps):
        first = a.entry(k, k)
        below = a.mask(rows > k).where(a.column(k), 0.0)
        rest = (below * below).sum_of_rows()
        is_done = rest.equals(0.0)
        size = (first * first + rest).sqrt()
        beta = is_done.where(first, (first < 0.0).where(size, -size))
        tau = is_done.where(0.0, (beta - first) / is_done.where(1.0, beta))
        vector = a.mask(rows == k).where(1.0, below / is_done.where(1.0, first - beta))
        shares = (vector * a).sum_of_rows()
        stored = a.mask(rows == k).where(beta, a.mask(rows > k).where(vector, a.column(k)))
        turned = a - tau * vector * shares
        a = a.mask(columns > k).where(turned, a.mask(columns == k).where(stored, a))
        factors.append(tau)
    head, *others = factors
    return a, head.above(*others)


def reflected(reflectors: Matrix, tau: Matrix, x: Matrix, transpose: bool = False) -> Matrix:
    """Multiplies a matrix by the product of Householder reflections, or by its transpose."""
    rows = row_indices(reflectors.rows)
    steps = range(tau.rows)
    for k in steps if transpose else reversed(steps):
        below = reflectors.mask(rows > k).where(reflectors.column(k), 0.0)
        vector = reflectors.mask(rows == k).where(1.0, below)
        x = x - tau.entry(k, 0) * vector * (vector * x).sum_of_rows()
    return x


def orthogonal_factor(reflectors: Matrix, tau: Matrix, width: int) -> Matrix:
    """The first columns of Q, the product of Householder reflections."""
    return reflected(reflectors, tau, reflectors.identity(reflectors.rows, width))
