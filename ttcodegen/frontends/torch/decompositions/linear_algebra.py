"""Factorizations, singular values and eigenvalues of small matrices."""

from __future__ import annotations

from typing import Any

from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.frontends.torch.decompositions.tracing import (
    Decompositions,
    Tensor,
    torch,
)

# Factorizations of small matrices, column by column, and what follows from them.
#
# Matrices are [..., rows, columns]. Each column becomes a dozen operations; what would become too
# many is refused.

LARGEST = 64
"""Limit on the columns that are processed sequentially."""


def require_small(name: str, count: int, largest: int = LARGEST) -> None:
    """Raises CompileError for matrices whose decomposition would have too many operations."""
    if count > largest:
        raise CompileError(
            f"'{name}' of matrices of more than {largest} columns is not supported, found {count}",
            remedy="compute it before or after the model",
        )


def _product(a: Tensor, b: Tensor) -> Tensor:
    """Matmul in full precision: elementwise products, added pairwise."""
    terms = _transposed(a).unsqueeze(-1) * b.unsqueeze(-2)
    while (count := terms.shape[-3]) > 1:
        halves = terms[..., : count // 2, :, :] + terms[..., count // 2 : count // 2 * 2, :, :]
        rest = terms[..., count // 2 * 2 :, :, :]
        terms = torch.cat([halves, rest], -3) if count % 2 else halves
    return terms.sum(-3)


def _rows(count: int) -> Tensor:
    return torch.arange(count)


def _transposed(x: Tensor) -> Tensor:
    return x.transpose(-2, -1)


def _identity(x: Tensor, rows: int, columns: int) -> Tensor:
    unit = torch.eye(rows, columns, dtype=x.dtype)
    return unit.expand([*x.shape[:-2], rows, columns])


# LU


def _lu_factor(name: str, a: Tensor, pivoted: bool = True) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """LU factorization with partial pivoting.

    Returns L below and U above the diagonal, the row order, the pivots (from 1), and the sign of
    the permutation.
    """
    rows, columns = a.shape[-2:]
    steps = min(rows, columns)
    require_small(name, steps)
    places = _rows(rows)
    order = places.expand([*a.shape[:-2], rows])
    sign = a.new_ones(a.shape[:-2])
    pivots: list[Tensor] = []
    for k in range(steps):
        if pivoted:
            size = torch.where(places >= k, a[..., :, k].abs(), -1.0)
            place = size.argmax(-1, keepdim=True)
            swapped = torch.where(places == k, place, torch.where(places == place, k, places))
            a = a.gather(-2, swapped.unsqueeze(-1).expand(a.shape))
            order = order.gather(-1, swapped)
            sign = torch.where(place.squeeze(-1) == k, sign, -sign)
        else:
            place = torch.full([*a.shape[:-2], 1], k)
        pivots.append(place + 1)
        column, pivot = a[..., :, k : k + 1], a[..., k : k + 1, k : k + 1]
        below = (places > k)[:, None]
        factor = torch.where(below, torch.where(pivot == 0, 0.0, column / pivot), 0.0)
        right = _rows(columns) > k
        changed = a - factor * torch.where(right, a[..., k : k + 1, :], 0.0)
        here = (_rows(columns) == k) & below & (pivot != 0)
        a = torch.where(here, factor, changed)
    exchanged = (
        torch.cat(pivots, -1).to(torch.int32)
        if pivots
        else torch.zeros([*a.shape[:-2], 0], dtype=torch.int32)
    )
    return a, order, exchanged, sign


def _diagonal_of(a: Tensor) -> Tensor:
    return a.diagonal(0, -2, -1)


def _determinant(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    lu, _, pivots, sign = _lu_factor("det", a)
    return _diagonal_of(lu).prod(-1) * sign, lu, pivots


def _log_determinant(a: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    lu, _, pivots, sign = _lu_factor("slogdet", a)
    diagonal = _diagonal_of(lu)
    logarithms = diagonal.abs().log().unsqueeze(-1)
    total = _product(torch.ones_like(logarithms).mT, logarithms).squeeze(-1).squeeze(-1)
    return torch.sign(diagonal).prod(-1) * sign, total, lu, pivots


def _triangular_solution(
    name: str, a: Tensor, b: Tensor, upper: bool, unit: bool = False
) -> Tensor:
    """Solves a triangular system a x = b, one row at a time."""
    count = a.shape[-1]
    require_small(name, count)
    places = _rows(count)[:, None]
    shape = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a = a.expand([*shape, *a.shape[-2:]])
    x = b.expand([*shape, *b.shape[-2:]])
    for k in reversed(range(count)) if upper else range(count):
        row = x[..., k : k + 1, :]
        if not unit:
            row = row / a[..., k : k + 1, k : k + 1]
        left = places < k if upper else places > k
        x = torch.where(places == k, row, x - torch.where(left, a[..., :, k : k + 1], 0.0) * row)
    return x


def _solve_triangular(
    a: Tensor, b: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    name = "solve_triangular"
    if left:
        return _triangular_solution(name, a, b, upper, unitriangular)
    turned = _triangular_solution(name, _transposed(a), _transposed(b), not upper, unitriangular)
    return _transposed(turned)


def _old_solve_triangular(
    b: Tensor, a: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Tensor, Tensor]:
    turned = _transposed(a) if transpose else a
    found = _triangular_solution("triangular_solve", turned, b, upper != transpose, unitriangular)
    return found, a.expand([*found.shape[:-2], *a.shape[-2:]]).clone()


def _lu_solution(name: str, lu: Tensor, b: Tensor) -> Tensor:
    lower = _triangular_solution(name, lu, b, upper=False, unit=True)
    return _triangular_solution(name, lu, lower, upper=True)


def _solve(
    a: Tensor, b: Tensor, *, left: bool = True, check_errors: bool = False
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Solves a x = b, or x a = b."""
    is_vector = b.dim() == a.dim() - 1 and list(b.shape) == list(a.shape[:-1])
    columns = b.unsqueeze(-1) if is_vector else b
    if not left:
        a, columns = _transposed(a), _transposed(columns)
    lu, order, pivots, _ = _lu_factor("solve", a)
    shape = torch.broadcast_shapes(lu.shape[:-2], columns.shape[:-2])
    columns = columns.expand([*shape, *columns.shape[-2:]])
    order = order.expand([*shape, order.shape[-1]])
    found = _lu_solution("solve", lu, _permute_rows(columns, order))
    found = found if left else _transposed(found)
    return found.squeeze(-1) if is_vector else found, lu, pivots, _no_error(a)


def _permute_rows(b: Tensor, order: Tensor) -> Tensor:
    """Permutes the rows of `b`."""
    return b.gather(-2, order.unsqueeze(-1).expand(b.shape))


def _no_error(a: Tensor) -> Tensor:
    return torch.zeros(a.shape[:-2], dtype=torch.int32)


def _inverse(a: Tensor, *, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    found, *_ = _solve(a, _identity(a, *a.shape[-2:]))
    return found, _no_error(a)


def _lu_factors(
    a: Tensor, *, pivot: bool = True, check_errors: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    lu, _, pivots, _ = _lu_factor("lu_factor", a, pivot)
    return lu, pivots, _no_error(a)


def _unpacked(lu: Tensor) -> tuple[Tensor, Tensor]:
    rows, columns = lu.shape[-2:]
    steps = min(rows, columns)
    lower = torch.tril(lu[..., :, :steps], -1) + _identity(lu, rows, steps)
    return lower, torch.triu(lu[..., :steps, :])


def _permutation(order: Tensor, dtype: Any) -> Tensor:
    """Permutation matrix that restores the row order."""
    count = order.shape[-1]
    return (order.unsqueeze(-2) == _rows(count)[:, None]).to(dtype)


def _lu(a: Tensor, *, pivot: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    lu, order, _, _ = _lu_factor("lu", a, pivot)
    lower, upper = _unpacked(lu)
    return (_permutation(order, a.dtype) if pivot else a.new_zeros(0)), lower, upper


def _order_of(pivots: Tensor, rows: int) -> Tensor:
    """Row order that pivots produce."""
    places = _rows(rows)
    order = places.expand([*pivots.shape[:-1], rows])
    for k in range(pivots.shape[-1]):
        place = pivots[..., k : k + 1].to(torch.int64) - 1
        swapped = torch.where(places == k, place, torch.where(places == place, k, places))
        order = order.gather(-1, swapped)
    return order


def _lu_unpack(
    lu: Tensor, pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Tensor, Tensor, Tensor]:
    none = lu.new_zeros(0)
    order = _order_of(pivots, lu.shape[-2]) if unpack_pivots else None
    lower, upper = _unpacked(lu) if unpack_data else (none, none)
    return (none if order is None else _permutation(order, lu.dtype)), lower, upper


def _lu_solve(
    lu: Tensor, pivots: Tensor, b: Tensor, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    """Solves a x = b by the LU factors of a; with `adjoint`, its transpose."""
    if not left:
        return _transposed(_lu_solve(lu, pivots, _transposed(b), left=True, adjoint=not adjoint))
    shape = torch.broadcast_shapes(lu.shape[:-2], b.shape[:-2])
    order = _order_of(pivots, lu.shape[-2]).expand([*shape, lu.shape[-2]])
    b = b.expand([*shape, *b.shape[-2:]])
    if not adjoint:
        return _lu_solution("lu_solve", lu, _permute_rows(b, order))
    turned = _transposed(lu)
    x = _triangular_solution("lu_solve", turned, b, upper=False)
    x = _triangular_solution("lu_solve", turned, x, upper=True, unit=True)
    return _permute_rows(x, torch.argsort(order, -1))


# Cholesky


def _cholesky_factor(a: Tensor) -> tuple[Tensor, Tensor]:
    """Cholesky factor and the first column (from 1) that fails, 0 if none does."""
    count = a.shape[-1]
    require_small("cholesky", count)
    places = _rows(count)[:, None]
    columns: list[Tensor] = []
    failed = _no_error(a)
    for k in range(count):
        pivot = a[..., k : k + 1, k : k + 1]
        bad = ~(pivot > 0).squeeze(-1).squeeze(-1)
        failed = torch.where((failed == 0) & bad, k + 1, failed)
        column = torch.where(places >= k, a[..., :, k : k + 1] / torch.sqrt(pivot), 0.0)
        columns.append(column)
        a = a - column * _transposed(column)
    lower = torch.cat(columns, -1) if columns else a.clone()
    return lower, failed.to(torch.int32)


def _cholesky_ex(
    a: Tensor, *, upper: bool = False, check_errors: bool = False
) -> tuple[Tensor, Tensor]:
    lower, failed = _cholesky_factor(_transposed(a) if upper else a)
    return _transposed(lower) if upper else lower, failed


def _cholesky(a: Tensor, upper: bool = False) -> Tensor:
    return _cholesky_ex(a, upper=upper)[0]


def _cholesky_solve(b: Tensor, factor: Tensor, upper: bool = False) -> Tensor:
    lower = torch.tril(_transposed(factor) if upper else factor)
    x = _triangular_solution("cholesky_solve", lower, b, upper=False)
    return _triangular_solution("cholesky_solve", _transposed(lower), x, upper=True)


def _cholesky_inverse(factor: Tensor, upper: bool = False) -> Tensor:
    return _cholesky_solve(_identity(factor, *factor.shape[-2:]), factor, upper)


# QR


def reflections_of(a: Tensor) -> tuple[Tensor, Tensor]:
    """Householder QR in LAPACK's form: reflectors below the diagonal, R above, and their
    factors."""
    rows, columns = a.shape[-2:]
    steps = min(rows, columns)
    require_small("qr", steps)
    places = _rows(rows)[:, None]
    factors: list[Tensor] = []
    for k in range(steps):
        column = a[..., :, k : k + 1]
        first = a[..., k : k + 1, k : k + 1]
        below = torch.where(places > k, column, 0.0)
        rest = (below * below).sum(-2, keepdim=True)
        size = torch.sqrt(first * first + rest)
        beta = torch.where(rest == 0, first, torch.where(first < 0, size, -size))
        tau = torch.where(rest == 0, 0.0, (beta - first) / torch.where(rest == 0, 1.0, beta))
        scale = torch.where(rest == 0, 1.0, first - beta)
        vector = torch.where(places == k, 1.0, below / scale)
        share = (vector * a).sum(-2, keepdim=True)
        right = _rows(columns) > k
        a = a - torch.where(right, tau * vector * share, 0.0)
        stored = torch.where(places == k, beta, torch.where(places > k, vector, column))
        a = torch.where(_rows(columns) == k, stored, a)
        factors.append(tau.squeeze(-1))
    return a, torch.cat(factors, -1) if factors else a.new_zeros([*a.shape[:-2], 0])


def reflected(a: Tensor, tau: Tensor, x: Tensor, transpose: bool = False) -> Tensor:
    """Multiplies a matrix by the product of Householder reflections, or by its transpose."""
    places = _rows(a.shape[-2])[:, None]
    steps = range(tau.shape[-1])
    for k in steps if transpose else reversed(steps):
        vector = torch.where(places == k, 1.0, torch.where(places > k, a[..., :, k : k + 1], 0.0))
        share = (vector * x).sum(-2, keepdim=True)
        x = x - tau[..., k : k + 1].unsqueeze(-1) * vector * share
    return x


def _qr(a: Tensor, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    rows, columns = a.shape[-2:]
    reflections, tau = reflections_of(a)
    width = rows if mode == "complete" else min(rows, columns)
    upper = torch.triu(reflections)[..., :width, :]
    if mode == "r":
        return a.new_zeros(0), upper
    padded = torch.nn.functional.pad(reflections, (0, max(width - columns, 0)))
    return reflected(padded, tau, _identity(a, rows, width)), upper


def _householder_product(a: Tensor, tau: Tensor) -> Tensor:
    require_small("householder_product", tau.shape[-1])
    return reflected(a, tau, _identity(a, *a.shape[-2:]))


def _multiplied_by_q(
    a: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False
) -> Tensor:
    require_small("ormqr", tau.shape[-1])
    if left:
        return reflected(a, tau, other, transpose)
    return _transposed(reflected(a, tau, _transposed(other), not transpose))


# Powers

_TAYLOR_TERMS = 10
_MOST_SQUARINGS = 20


def _matrix_exponential(a: Tensor) -> Tensor:
    """Matrix exponential by scaling and squaring of a Taylor series."""
    norm = a.abs().sum(-2, keepdim=True).amax(-1, keepdim=True)
    times = (torch.ceil(torch.log2(norm.clamp(min=0.5))) + 1).clamp(0, _MOST_SQUARINGS)
    scaled = a * torch.exp2(-times)
    unit = _identity(a, *a.shape[-2:])
    total = unit
    for term in range(_TAYLOR_TERMS, 0, -1):
        total = unit + _product(scaled, total) / term
    for step in range(_MOST_SQUARINGS):
        total = torch.where(times > step, _product(total, total), total)
    return total


DECOMPOSITIONS: Decompositions = {
    "_linalg_det": _determinant,
    "_linalg_slogdet": _log_determinant,
    "_linalg_solve_ex": _solve,
    "linalg_inv_ex": _inverse,
    "linalg_lu_factor_ex": _lu_factors,
    "linalg_lu": _lu,
    "lu_unpack": _lu_unpack,
    "linalg_lu_solve": _lu_solve,
    "linalg_solve_triangular": _solve_triangular,
    "triangular_solve": _old_solve_triangular,
    "linalg_cholesky_ex": _cholesky_ex,
    "cholesky": _cholesky,
    "cholesky_solve": _cholesky_solve,
    "_cholesky_solve_helper": _cholesky_solve,
    "cholesky_inverse": _cholesky_inverse,
    "linalg_qr": _qr,
    "geqrf": reflections_of,
    "linalg_householder_product": _householder_product,
    "ormqr": _multiplied_by_q,
    "linalg_matrix_exp": _matrix_exponential,
}


# Singular values and eigenvalues of symmetric matrices, by Jacobi's rotations of columns.

_MAX_JACOBI_COLUMNS = 16
"""Limit on the columns of Jacobi rotations, each pair rotated several times."""
_SWEEPS = 6


def _jacobi(a: Tensor) -> tuple[Tensor, Tensor]:
    """One-sided Jacobi: `a` with orthogonal columns, and the rotation applied.

    Each step rotates one half of the columns with the other half.
    """
    columns = a.shape[-1]
    if columns > _MAX_JACOBI_COLUMNS:
        raise CompileError(
            "singular values and eigenvalues of matrices of more than "
            f"{_MAX_JACOBI_COLUMNS} columns are not supported, found {columns}",
            remedy="compute them before or after the model",
        )
    unit = torch.eye(columns, dtype=a.dtype).expand([*a.shape[:-2], columns, columns])
    if columns < 2:
        return a, unit
    both = torch.cat([a, unit], -2)
    if columns % 2:
        both = torch.nn.functional.pad(both, (0, 1))
    count, rows = both.shape[-1], a.shape[-2]
    half = count // 2
    first, second = both[..., :half], both[..., half:]
    for _ in range(_SWEEPS * (count - 1)):
        top, bottom = first[..., :rows, :], second[..., :rows, :]
        a_size = (top * top).sum(-2, keepdim=True)
        b_size = (bottom * bottom).sum(-2, keepdim=True)
        mixed = (top * bottom).sum(-2, keepdim=True)
        zeta = (b_size - a_size) / (2 * torch.where(mixed == 0, 1.0, mixed))
        tangent = 1 / (zeta.abs() + torch.sqrt(1 + zeta * zeta))
        tangent = torch.where(mixed == 0, 0.0, torch.where(zeta < 0, -tangent, tangent))
        cosine = 1 / torch.sqrt(1 + tangent * tangent)
        sine = cosine * tangent
        first, second = cosine * first - sine * second, sine * first + cosine * second
        first, second = _next_round(first, second)
    found = torch.cat([first, second], -1)[..., :columns]
    return found[..., :rows, :], found[..., rows:, :]


def _next_round(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """Next pairs of a round-robin tournament: the first column stays, the others rotate.

    A full sweep restores the order.
    """
    half = first.shape[-1]
    if half == 1:
        return first, second
    parts = [first[..., :1], second[..., :1], first[..., 1 : half - 1]]
    return torch.cat(parts, -1), torch.cat([second[..., 1:], first[..., half - 1 :]], -1)


def _singular_values(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Singular value decomposition u, s, v of a tall or square matrix; values descend."""
    turned, v = _jacobi(a)
    s = torch.sqrt((turned * turned).sum(-2))
    s, order = torch.sort(s, dim=-1, descending=True)
    turned, v = (each.gather(-1, order.unsqueeze(-2).expand(each.shape)) for each in (turned, v))
    tiny = s.unsqueeze(-2) == 0
    return torch.where(tiny, 0.0, turned / torch.where(tiny, 1.0, s.unsqueeze(-2))), s, v


def _svd(
    a: Tensor, full_matrices: bool = False, compute_uv: bool = True, *, driver: Any = None
) -> tuple[Tensor, Tensor, Tensor]:
    rows, columns = a.shape[-2:]
    wide = rows < columns
    u, s, v = _singular_values(a.transpose(-2, -1) if wide else a)
    if not compute_uv:
        return a.new_zeros(0), s, a.new_zeros(0)
    if full_matrices:
        u = _complete_basis(u)
    if wide:
        u, v = v, u
    return u, s, v.transpose(-2, -1)


def _complete_basis(u: Tensor) -> Tensor:
    """Completes orthonormal columns to a square orthogonal matrix."""
    rows, columns = u.shape[-2:]
    if rows == columns:
        return u
    reflections, tau = reflections_of(u)
    unit = torch.eye(rows, dtype=u.dtype).expand([*u.shape[:-2], rows, rows])
    padded = torch.nn.functional.pad(reflections, (0, rows - columns))
    return torch.cat([u, reflected(padded, tau, unit)[..., columns:]], -1)


def _symmetric(a: Tensor, *, is_lower: bool = True) -> Tensor:
    """Symmetric matrix of one triangle; the other triangle is not read."""
    half = torch.tril(a) if is_lower else torch.triu(a)
    diagonal = torch.diag_embed(a.diagonal(0, -2, -1))
    return half + half.transpose(-2, -1) - diagonal


def _eigh(a: Tensor, UPLO: str = "L", compute_v: bool = True) -> tuple[Tensor, Tensor]:
    """Eigenvalues, ascending, and eigenvectors of a symmetric matrix.

    A diagonal shift makes the matrix positive, so that they are singular values.
    """
    a = _symmetric(a, is_lower=UPLO.upper() == "L")
    if 0 in a.shape:
        return a.new_zeros(a.shape[:-1]), a.new_zeros(a.shape if compute_v else [0])
    shift = a.abs().sum(-1, keepdim=True).amax(-2, keepdim=True)
    _, s, v = _singular_values(a + shift * torch.eye(a.shape[-1], dtype=a.dtype))
    values = (s - shift.squeeze(-1)).flip(-1)
    return values, v.flip(-1) if compute_v else a.new_zeros(0)


def _pseudo_inverse(
    a: Tensor, *, atol: Tensor | None = None, rtol: Tensor | None = None, hermitian: bool = False
) -> Tensor:
    """Pseudo-inverse from the singular values above a tolerance."""
    rows, columns = a.shape[-2:]
    if 0 in a.shape:
        return a.new_zeros([*a.shape[:-2], columns, rows])
    u, s, vh = _svd(_symmetric(a) if hermitian else a)
    if rtol is None:
        relative = max(rows, columns) * torch.finfo(a.dtype).eps
        relative = relative if atol is None else torch.where(atol > 0, 0.0, relative).unsqueeze(-1)
    else:
        relative = rtol.unsqueeze(-1)
    least = s[..., :1] * relative
    if atol is not None:
        least = torch.maximum(least, atol.unsqueeze(-1).to(s.dtype))
    inverse = torch.where(s > least, 1 / torch.where(s > least, s, 1.0), 0.0)
    return _product(_transposed(vh) * inverse.unsqueeze(-2), _transposed(u))


SPECTRAL_DECOMPOSITIONS: Decompositions = {
    "_linalg_svd": _svd,
    "_linalg_eigh": _eigh,
    "linalg_pinv.atol_rtol_tensor": _pseudo_inverse,
}
