"""Decompositions of elementwise operations and views."""

from __future__ import annotations

from math import nan, pi
from typing import Any

from ttcodegen.frontends.torch.decompositions.tracing import (
    Decomposition,
    Decompositions,
    Tensor,
    axis_of,
    computed,
    float_dtype,
    torch,
)


def _ignore_nan(name: str) -> Decomposition:
    """Maximum or minimum that ignores NaN in one of the operands."""

    def function(a: Tensor, b: Tensor) -> Tensor:
        found = getattr(torch, name)(a, b)
        if not found.dtype.is_floating_point:
            return found
        a, b = a.to(found.dtype), b.to(found.dtype)
        return torch.where(torch.isnan(a), b, torch.where(torch.isnan(b), a, found))

    return function


def _parts(x: Tensor) -> tuple[Tensor, Tensor]:
    pairs = torch.view_as_real(x.resolve_conj())
    return pairs.select(-1, 0), pairs.select(-1, 1)


def _negative(x: Tensor) -> Tensor:
    return torch.neg(x)


def _real(x: Tensor) -> Tensor:
    return _parts(x)[0] if x.is_complex() else x.alias()


def _conjugate(x: Tensor) -> Tensor:
    if not x.is_complex():
        return x.alias()
    real, imag = _parts(x)
    return torch.complex(real, -imag)


def _angle(x: Tensor) -> Tensor:
    """Argument of a number: 0 or pi for real numbers."""
    if x.is_complex():
        real, imag = _parts(x)
        return torch.atan2(imag, real)
    dtype = float_dtype(x)
    found = torch.where(x < 0, pi, 0.0).to(dtype)
    return torch.where(torch.isnan(x), nan, found) if x.dtype.is_floating_point else found


def _itself(x: Tensor, *_: Any, **__: Any) -> Tensor:
    return x.alias()


def _matrices_transposed(x: Tensor) -> Tensor:
    return _conjugate(x.transpose(-2, -1))


def _addbmm(x: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Sum of a matrix and a batch of matmuls."""
    if not x.dtype.is_floating_point:
        alpha, beta = int(alpha), int(beta)
    product = torch.bmm(a, b).sum(0, dtype=x.dtype)
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return product
    return (x if beta == 1 else x * beta) + product


def _rounded_to(x: Tensor, *, decimals: int) -> Tensor:
    if not x.dtype.is_floating_point:
        return x.clone()
    if decimals == 0:
        return torch.round(x)
    scale = 10.0 ** abs(decimals)
    wide = computed(x)
    found = torch.round(wide * scale) / scale if decimals > 0 else torch.round(wide / scale) * scale
    return torch.where(torch.isfinite(wide), found, wide).to(x.dtype)


def _by_name(name: str) -> Decomposition:
    """Maps an internal operation to the `torch` function of a name."""

    def function(*arguments: Any, **named: Any) -> Any:
        return getattr(torch, name)(*arguments, **named)

    return function


def _extremes(x: Tensor, dim: int | None = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    if dim is None:
        return x.amin(), x.amax()
    return x.amin(dim, keepdim=keepdim), x.amax(dim, keepdim=keepdim)


def _uninitialized(size: Any, _: Any, **named: Any) -> Tensor:
    return torch.empty(size, **named)


def _uninitialized_like(x: Tensor, size: Any, _: Any, **named: Any) -> Tensor:
    return x.new_empty(size, **named)


def _shifted(name: str) -> Decomposition:
    def function(x: Tensor, count: Any) -> Tensor:
        found = getattr(torch, name)(x, count)
        return found.to(x.dtype) if not isinstance(count, torch.Tensor) else found

    return function


def _copied(name: str) -> Decomposition:
    """Copying variant of a view operation."""

    def function(*arguments: Any, **named: Any) -> Any:
        made: Any = getattr(torch.ops.aten, name)(*arguments, **named)
        if isinstance(made, torch.Tensor):
            return made.clone()
        return [each.clone() for each in made]

    return function


_COPIES = """
    alias as_strided detach diagonal expand permute select slice split split_with_sizes squeeze t
    transpose unbind unfold unsqueeze view narrow
""".split()


def _view_copy(x: Tensor, size: Any) -> Tensor:
    return torch.reshape(x, size)


def _diagonal_scatter(
    x: Tensor, source: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    """Replaces a diagonal of `x` by a select with a mask."""
    first, second = axis_of(x, dim1), axis_of(x, dim2)
    rest = [axis for axis in range(x.dim()) if axis not in (first, second)]
    order = [*rest, first, second]
    turned = x.permute(order)
    rows, columns = turned.shape[-2:]
    begin_row, begin_column = max(-offset, 0), max(offset, 0)
    count = source.shape[-1]
    if count == 0:
        return x.clone()
    places = torch.arange(columns) - begin_column
    lines = torch.nn.functional.pad(source, (begin_column, columns - count - begin_column))
    expanded = lines.unsqueeze(-2).expand(turned.shape)
    mask = places[None, :] == torch.arange(rows)[:, None] - begin_row
    mask = mask & (places[None, :] >= 0) & (places[None, :] < count)
    found = torch.where(mask, expanded.to(x.dtype), turned)
    return found.permute([order.index(axis) for axis in range(x.dim())])


def _heaviside(x: Tensor, values: Tensor) -> Tensor:
    one = torch.where(x > 0, 1, 0).to(x.dtype)
    return torch.where(x == 0, values, one)


def _gcd_of(a: Tensor, b: Tensor) -> Tensor:
    """Greatest common divisor by Euclid's algorithm, for the type's maximum number of steps."""
    a, b = torch.broadcast_tensors(a, b)
    dtype = torch.promote_types(a.dtype, b.dtype)
    wide = torch.promote_types(dtype, torch.int32)
    a, b = a.to(wide).abs(), b.to(wide).abs()
    for _ in range({1: 13, 2: 24}.get(dtype.itemsize, 46)):
        rest = torch.remainder(a, torch.where(b == 0, 1, b).to(wide))
        a, b = torch.where(b == 0, a, b), torch.where(b == 0, 0, rest).to(wide)
    return a.to(dtype)


def _lcm_of(a: Tensor, b: Tensor) -> Tensor:
    divisor = _gcd_of(a, b)
    wide = torch.promote_types(divisor.dtype, torch.int32)
    whole = torch.where(divisor == 0, 1, divisor).to(wide)
    quotient = torch.div(a.to(wide), whole, rounding_mode="trunc")
    return (quotient * b.to(wide)).abs().to(divisor.dtype)


def _frexp(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mantissas in [1/2, 1) and exponents, by halving or doubling with powers of two."""
    wide = computed(x)
    size = wide.abs()
    exponent = torch.zeros_like(size)
    for step in (64, 32, 16, 8, 4, 2, 1):
        large = size >= 2.0**step
        size = torch.where(large, size * 2.0**-step, size)
        exponent = torch.where(large, exponent + step, exponent)
    for step in (64, 32, 16, 8, 4, 2, 1):
        small = (size < 2.0 ** (1 - step)) & (size > 0)
        size = torch.where(small, size * 2.0**step, size)
        exponent = torch.where(small, exponent - step, exponent)
    size, exponent = size * 0.5, exponent + 1
    finite = torch.isfinite(wide) & (wide != 0)
    mantissa = torch.where(finite, torch.where(wide < 0, -size, size), wide)
    return mantissa.to(x.dtype), torch.where(finite, exponent, 0).to(torch.int32)


def _combined(parts: list[Tensor]) -> Tensor:
    """Cartesian product of vectors."""
    return torch.stack([each.reshape(-1) for each in torch.meshgrid(*parts, indexing="ij")], 1)


def _cartesian_product(tensors: list[Tensor]) -> Tensor:
    return tensors[0].clone() if len(tensors) == 1 else _combined(tensors)


def _add_relu(a: Tensor, b: Any, *, alpha: Any = 1) -> Tensor:
    return torch.relu(torch.add(a, b, alpha=alpha))


def _distance_of_rows(difference: Tensor, p: float) -> Tensor:
    """The p-norm of the last dimension."""
    size = difference.abs()
    if p == 0:
        return (size != 0).to(size.dtype).sum(-1)
    if p == float("inf"):
        return size.amax(-1) if size.shape[-1] else size.sum(-1)
    if p == 1:
        return size.sum(-1)
    if p == 2:
        return torch.sqrt((size * size).sum(-1))
    return torch.pow(torch.pow(size, p).sum(-1), 1 / p)


def _cdist(x: Tensor, y: Tensor, p: float = 2.0, _: Any = None) -> Tensor:
    return _distance_of_rows(x.unsqueeze(-2) - y.unsqueeze(-3), p)


def _pdist(x: Tensor, p: float = 2.0) -> Tensor:
    """Distances of all pairs of rows."""
    rows = x.shape[0]
    if rows < 2:
        return x.new_zeros(0)
    return torch.cat([_distance_of_rows(x[i + 1 :] - x[i], p) for i in range(rows - 1)])


DECOMPOSITIONS: Decompositions = {
    "fmax": _ignore_nan("maximum"),
    "fmin": _ignore_nan("minimum"),
    "angle": _angle,
    "_neg_view": _negative,
    "real": _real,
    "conj": _conjugate,
    "conj_physical": _conjugate,
    **dict.fromkeys("_lazy_clone _pin_memory pin_memory".split(), _itself),
    "mH": _matrices_transposed,
    "matrix_H": _matrices_transposed,
    "addbmm": _addbmm,
    "_aminmax": _extremes,
    "_is_all_true": _by_name("all"),
    "_is_any_true": _by_name("any"),
    "_logcumsumexp": _by_name("logcumsumexp"),
    "_stack": _by_name("stack"),
    "empty_strided": _uninitialized,
    "new_empty_strided": _uninitialized_like,
    "_add_relu": _add_relu,
    "round.decimals": _rounded_to,
    "__lshift__": _shifted("bitwise_left_shift"),
    "__rshift__": _shifted("bitwise_right_shift"),
    **{f"{name}_copy": _copied(name) for name in _COPIES},
    "view_copy": _view_copy,
    "_reshape_copy": _view_copy,
    "diagonal_scatter": _diagonal_scatter,
    "heaviside": _heaviside,
    "gcd": _gcd_of,
    "lcm": _lcm_of,
    "frexp": _frexp,
    "cartesian_prod": _cartesian_product,
    "_cdist_forward": _cdist,
    "cdist": _cdist,
    "_pdist_forward": _pdist,
    "pdist": _pdist,
}
