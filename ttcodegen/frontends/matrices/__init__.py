"""Linear algebra of small matrices on the builder, column by column, for all front ends.

- `eigenvalues`: Singular values and eigenvalues of symmetric matrices, by Jacobi's rotations of
  columns
- `factorizations`: LU, Cholesky and QR factorizations, and solutions of triangular systems
- `matrix`: Matrices as expressions, and the limit on their columns

Matrices are [..., rows, columns]. Each column becomes a dozen ops of whole matrices; what would
become too many is refused.
"""
