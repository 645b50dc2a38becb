"""Singular values and eigenvalues of symmetric matrices, by Jacobi's rotations of columns."""

from __future__ import annotations

from typing import Any

from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.frontends.torch.decompositions.linear_algebra import reflected, reflections_of
from ttcodegen.frontends.torch.decompositions.tracing import (
    Decompositions,
    Tensor,
    torch,
)

_LARGEST = 16
"""Upper bound on the columns of Jacobi rotations, each pair rotated several times."""
_SWEEPS = 6


def _rotated(a: Tensor) -> tuple[Tensor, Tensor]:
    """`a` with columns orthogonal to each other, and the rotation that makes them so: all pairs of
    columns in turn, half of the columns with the other half at a time."""
    columns = a.shape[-1]
    if columns > _LARGEST:
        raise CompileError(
            "singular values and eigenvalues of matrices of more than "
            f"{_LARGEST} columns are not supported, found {columns}",
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
    """The next pairs of a tournament: the first column stays, the others move on by one seat, along
    the first half and back along the second. After a sweep all are where they were."""
    half = first.shape[-1]
    if half == 1:
        return first, second
    parts = [first[..., :1], second[..., :1], first[..., 1 : half - 1]]
    return torch.cat(parts, -1), torch.cat([second[..., 1:], first[..., half - 1 :]], -1)


def _singular_values(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """u, s and v of u diag(s) v^T, for as many rows as columns or more; values fall."""
    turned, v = _rotated(a)
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
        u = _completed(u)
    if wide:
        u, v = v, u
    return u, s, v.transpose(-2, -1)


def _completed(u: Tensor) -> Tensor:
    """Orthogonal columns and others that are orthogonal to them, as many as there are rows."""
    rows, columns = u.shape[-2:]
    if rows == columns:
        return u
    reflections, tau = reflections_of(u)
    unit = torch.eye(rows, dtype=u.dtype).expand([*u.shape[:-2], rows, rows])
    padded = torch.nn.functional.pad(reflections, (0, rows - columns))
    return torch.cat([u, reflected(padded, tau, unit)[..., columns:]], -1)


def _symmetric(a: Tensor, *, is_lower: bool = True) -> Tensor:
    """The symmetric matrix of one triangle; what is in the other one is not read."""
    half = torch.tril(a) if is_lower else torch.triu(a)
    diagonal = torch.diag_embed(a.diagonal(0, -2, -1))
    return half + half.transpose(-2, -1) - diagonal


def _eigh(a: Tensor, UPLO: str = "L", compute_v: bool = True) -> tuple[Tensor, Tensor]:
    """Eigenvalues in order and vectors: those of the matrix with its diagonal so large that they
    are singular values."""
    a = _symmetric(a, is_lower=UPLO.upper() == "L")
    shift = a.abs().sum(-1, keepdim=True).amax(-2, keepdim=True)
    _, s, v = _singular_values(a + shift * torch.eye(a.shape[-1], dtype=a.dtype))
    values = (s - shift.squeeze(-1)).flip(-1)
    return values, v.flip(-1) if compute_v else a.new_zeros(0)


def _pseudo_inverse(
    a: Tensor, *, atol: Tensor | None = None, rtol: Tensor | None = None, hermitian: bool = False
) -> Tensor:
    """The inverse of the singular values above a tolerance."""
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
    return torch.matmul(vh.transpose(-2, -1) * inverse.unsqueeze(-2), u.transpose(-2, -1))


DECOMPOSITIONS: Decompositions = {
    "_linalg_svd": _svd,
    "_linalg_eigh": _eigh,
    "linalg_pinv.atol_rtol_tensor": _pseudo_inverse,
}
