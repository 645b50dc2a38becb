"""Matrices as expressions, and the limit on their columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from xdsl.dialects.builtin import i32
from xdsl.ir import Attribute

from ttcodegen.dialects.core.datatypes import i1, tensor_type
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.frontends.expressions import Expression

LARGEST = 64
"""Limit on the columns that are processed sequentially."""


def require_small(name: str, count: int, largest: int = LARGEST) -> None:
    """Raises CompileError for matrices whose decomposition would have too many operations."""
    if count > largest:
        raise CompileError(
            f"'{name}' of matrices of more than {largest} columns is not supported, found {count}",
            remedy="compute it before or after the model",
        )


class Matrix(Expression):
    """Matrices [..., rows, columns]."""

    __slots__ = ()

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.shape[-2]

    @property
    def columns(self) -> int:
        """Number of columns."""
        return self.shape[-1]

    @property
    def batch(self) -> tuple[int, ...]:
        """The dimensions before rows and columns."""
        return self.shape[:-2]

    @property
    def T(self) -> Self:
        """Transpose."""
        rank = len(self.shape)
        return self.of(self.build.permute(self.value, [*range(rank - 2), rank - 1, rank - 2]))

    # Parts

    def part(self, rows: tuple[int, int], columns: tuple[int, int]) -> Self:
        """Elements from the first to before the last row and column."""
        outer = len(self.batch)
        begins = [*[0] * outer, rows[0], columns[0]]
        return self.of(self.build.slice(self.value, begins, [*self.batch, rows[1], columns[1]]))

    def entry(self, row: int, column: int) -> Self:
        """One element of each matrix, [..., 1, 1]."""
        return self.part((row, row + 1), (column, column + 1))

    def row(self, index: int) -> Self:
        """One row, [..., 1, columns]."""
        return self.part((index, index + 1), (0, self.columns))

    def column(self, index: int) -> Self:
        """One column, [..., rows, 1]."""
        return self.part((0, self.rows), (index, index + 1))

    def first_rows(self, count: int) -> Self:
        """The rows before `count`."""
        return self.part((0, count), (0, self.columns))

    def first_columns(self, count: int) -> Self:
        """The columns before `count`."""
        return self.part((0, self.rows), (0, count))

    def last_columns(self, begin: int) -> Self:
        """The columns from `begin` on."""
        return self.part((0, self.rows), (begin, self.columns))

    @property
    def diagonal(self) -> Self:
        """The diagonal as a column."""
        count = min(self.rows, self.columns)
        indices = self.constant(row_indices(count), i32).expanded([*self.batch, count, 1])
        return self.first_rows(count).gather(indices, -1)

    # Constants

    def constant(self, array: Array, element: Attribute | None = None) -> Self:
        """Constant broadcast over the batch, by default with the element type of the matrices."""
        wide = array.reshape([*[1] * (len(self.shape) - array.ndim), *array.shape])
        return self.of(self.build.constant(wide, element or self.element))

    def mask(self, array: Array) -> Self:
        """Boolean constant broadcast over the batch."""
        return self.constant(array, i1)

    def identity(self, rows: int, columns: int) -> Self:
        """Identity for each matrix of the batch."""
        unit = self.constant(np.eye(rows, columns, dtype=np.float32))
        return unit.expanded([*self.batch, rows, columns])

    def zeros(self, rows: int, columns: int) -> Self:
        """Matrix of zeros for each matrix of the batch."""
        return self.of(self.build.full([*self.batch, rows, columns], 0.0, self.element))

    def expanded(self, shape: Sequence[int]) -> Self:
        """Repeats dimensions of size 1."""
        own = [*[1] * (len(shape) - len(self.shape)), *self.shape]
        return self.of(self.build.repeat(self.reshape(own).value, shape))

    # Movement

    def beside(self, *others: Matrix) -> Self:
        """Concatenates columns."""
        values = [self.value, *(each.value for each in others)]
        return self.of(self.build.concat(values, len(self.shape) - 1))

    def above(self, *others: Matrix) -> Self:
        """Concatenates rows."""
        values = [self.value, *(each.value for each in others)]
        return self.of(self.build.concat(values, len(self.shape) - 2))

    def gather(self, index: Matrix, dim: int) -> Self:
        """Takes the elements at indices along a dimension that is negative."""
        result = tensor_type(self.element, index.shape)
        dim += len(self.shape)
        return self.of(self.build.emit("gather", [self.value, index.value], result, dim=dim))

    def permuted_rows(self, order: Matrix) -> Self:
        """Takes rows in the order of a column of indices."""
        return self.gather(order.expanded([*self.batch, order.rows, self.columns]), -2)

    def permuted_columns(self, order: Matrix) -> Self:
        """Takes columns in the order of a row of indices."""
        return self.gather(order.expanded([*self.batch, self.rows, order.columns]), -1)

    # Triangles

    def triangle(self, lower: bool) -> Self:
        """Mask of the lower or of the upper triangle, with the diagonal."""
        own = np.tri(self.rows, self.columns, dtype=bool)
        return self.mask(own if lower else ~np.tri(self.rows, self.columns, -1, bool))

    def lower(self, offset: int = 0) -> Self:
        """Lower triangle, up to a diagonal; zero above it."""
        return self.mask(np.tri(self.rows, self.columns, offset, bool)).where(self, 0.0)

    def upper(self) -> Self:
        """Upper triangle, from the diagonal; zero below it."""
        return self.triangle(False).where(self, 0.0)

    # Sums

    def sum_along(self, dim: int) -> Self:
        """Sums along a dimension that is negative, which is kept.

        The last of the running sums: those are added in 32 bits, where reductions cut summands to
        TF32, of which differences of large numbers would have nothing left.
        """
        dim += len(self.shape)
        if self.shape[dim] == 1:
            return self
        totals = self.build.like("cumsum", self.value, dim=dim)
        return self.of(self.build.slice_dim(totals, dim, self.shape[dim] - 1, self.shape[dim]))

    def sum_of_rows(self) -> Self:
        """Sum of each column, [..., 1, columns]."""
        return self.sum_along(-2)

    def largest_along(self, dim: int) -> Self:
        """Maximum along a dimension that is negative, which is kept."""
        dim += len(self.shape)
        return self.of(self.build.reduce("max", self.value, [dim]))

    def __matmul__(self, other: Matrix) -> Self:
        """Matmul of small matrices in full precision, as a sum of elementwise products."""
        left = self.T
        terms = left.reshape([*left.shape, 1]) * other.reshape(
            [*other.shape[:-1], 1, other.columns]
        )
        total = terms.sum_along(-3)
        return total.reshape([*total.shape[:-3], *total.shape[-2:]])


def row_indices(rows: int) -> Array:
    """Indices of the rows, as a column."""
    return np.arange(rows)[:, None]


def column_indices(columns: int) -> Array:
    """Indices of the columns, as a row."""
    return np.arange(columns)[None]
