"""Decompositions of layers, elementwise operations and views."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan, pi, prod
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

# Layers, in the forms and with the results that no rule gives.


# Pools with the places of the greatest elements

Windows = Sequence[tuple[Tensor, Tensor]]
"""For each dimension the places of the elements of each window, [windows, elements], and which of
them there are."""


def _greatest(x: Tensor, windows: Windows) -> tuple[Tensor, Tensor]:
    """The greatest element of each window over the last dimensions, and its index in those."""
    spatial = len(windows)
    outer, sizes = list(x.shape[:-spatial]), list(x.shape[-spatial:])
    counts = [places.shape[0] for places, _ in windows]
    index = torch.zeros([1] * (2 * spatial), dtype=torch.int64)
    inside = torch.ones([1] * (2 * spatial), dtype=torch.bool)
    for axis, ((places, given), size) in enumerate(zip(windows, sizes, strict=True)):
        shape = [1] * (2 * spatial)
        shape[axis], shape[spatial + axis] = places.shape
        index = index * size + places.clamp(0, size - 1).reshape(shape)
        inside = inside & given.reshape(shape)
    index = index.reshape(prod(counts), -1)
    inside = inside.reshape(prod(counts), -1)
    flat = x.reshape(prod(outer), prod(sizes))
    found = flat.index_select(1, index.reshape(-1)).reshape(prod(outer), *index.shape)
    least = -inf if x.dtype.is_floating_point else torch.iinfo(x.dtype).min
    found = torch.where(inside, found, least)
    best = found.argmax(-1, keepdim=True)
    value = found.gather(-1, best)
    places = index.expand(found.shape).gather(-1, best)
    return value.reshape([*outer, *counts]), places.reshape([*outer, *counts])


def _each(value: Any, count: int) -> list[int]:
    listed = [value] if isinstance(value, int) else list(value)
    return listed * count if len(listed) == 1 else listed


def _pool_windows(
    size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool
) -> tuple[Tensor, Tensor]:
    span = size + 2 * padding - dilation * (kernel - 1) - 1
    count = (span + (stride - 1 if ceil_mode else 0)) // stride + 1
    if ceil_mode and (count - 1) * stride >= size + padding:
        count -= 1
    begins = torch.arange(count)[:, None] * stride - padding
    places = begins + torch.arange(kernel) * dilation
    return places, (places >= 0) & (places < size)


def _max_pool(spatial: int) -> Decomposition:
    def pool(
        x: Tensor, kernel: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        kernel = _each(kernel, spatial)
        stride = _each(stride, spatial) if stride not in (None, []) else kernel
        parts = zip(
            x.shape[-spatial:], kernel, stride, _each(padding, spatial), _each(dilation, spatial),
            strict=True,
        )  # fmt: skip
        return _greatest(x, [_pool_windows(*each, ceil_mode) for each in parts])

    return pool


def _adaptive_windows(size: int, wanted: int) -> tuple[Tensor, Tensor]:
    index = torch.arange(wanted)[:, None]
    begins = torch.div(index * size, wanted, rounding_mode="floor")
    ends = torch.div((index + 1) * size + wanted - 1, wanted, rounding_mode="floor")
    places = begins + torch.arange(-(-size // wanted) + 1)
    return places, (places < ends) & (places < size)


def _adaptive_max_pool(spatial: int) -> Decomposition:
    def pool(x: Tensor, sizes: Any) -> tuple[Tensor, Tensor]:
        wanted = _each(sizes, spatial)
        found = x.shape[-spatial:]
        return _greatest(x, [_adaptive_windows(*each) for each in zip(found, wanted, strict=True)])

    return pool


# Normalizations with their statistics


def _statistics(x: Tensor, axes: Any, epsilon: float) -> tuple[Tensor, Tensor]:
    """Mean and the inverse of the deviation, dimensions kept."""
    mean = x.mean(axes, keepdim=True)
    centred = x - mean
    return mean, torch.rsqrt((centred * centred).mean(axes, keepdim=True) + epsilon)


def _layer_norm(
    x: Tensor, shape: Any, weight: Tensor | None, bias: Tensor | None, epsilon: float
) -> tuple[Tensor, Tensor, Tensor]:
    wide = x.to(torch.float32)
    mean, scale = _statistics(wide, list(range(x.dim() - len(shape), x.dim())), epsilon)
    found = (wide - mean) * scale
    found = found if weight is None else found * weight
    found = found if bias is None else found + bias
    return found.to(x.dtype), mean.to(x.dtype), scale.to(x.dtype)


def _group_norm(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, n: int, c: int, size: int, groups: int,
    epsilon: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    wide = x.to(torch.float32).reshape(n, groups, c // groups * size)
    mean, scale = _statistics(wide, [2], epsilon)
    found = ((wide - mean) * scale).reshape(n, c, size)
    found = found if weight is None else found * weight.reshape(1, c, 1)
    found = found if bias is None else found + bias.reshape(1, c, 1)
    mean, scale = (each.reshape(n, groups).to(x.dtype) for each in (mean, scale))
    return found.reshape(x.shape).to(x.dtype), mean, scale


def _batch_norm(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor | None,
    variance: Tensor | None, training: bool, momentum: float, epsilon: float,
) -> Any:  # fmt: skip
    """Batch norm by running statistics, or by the statistics of the batch in training."""
    if training:
        named = "_native_batch_norm_legit"
        statistics = () if mean is None else (mean, variance)
        return getattr(torch.ops.aten, named)(
            x, weight, bias, *statistics, training, momentum, epsilon
        )
    return _batch_norm_by(x, weight, bias, mean, variance, momentum, epsilon)


def _batch_norm_by(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Any, variance: Any,
    momentum: float, epsilon: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    # Calls of batch norms would be taken apart by this again.
    sizes = [1, -1, *[1] * (x.dim() - 2)]
    scale = torch.rsqrt(variance.to(torch.float32) + epsilon)
    scale = scale if weight is None else scale * weight
    found = (x - mean.reshape(sizes)) * scale.reshape(sizes)
    found = (found if bias is None else found + bias.reshape(sizes)).to(x.dtype)
    kept = x.new_zeros(0, dtype=mean.dtype)
    return found, kept, kept.clone()


def _batch_norm_without_update(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Any, variance: Any,
    momentum: float, epsilon: float,
) -> tuple[Tensor, ...]:  # fmt: skip
    made = _batch_norm_by(x, weight, bias, mean, variance, momentum, epsilon)
    return *made, x.new_zeros(0, dtype=torch.uint8)


def _renormalized_rows(
    weight: Tensor, indices: Tensor, max_norm: float, norm_type: float
) -> Tensor:
    """A table whose rows that indices name have at most that norm."""
    used = (torch.arange(weight.shape[0])[:, None] == indices.reshape(-1)).any(1)
    norm = torch.linalg.vector_norm(weight, norm_type, 1)
    factor = torch.where(used & (norm > max_norm), max_norm / (norm + 1e-7), 1.0)
    return weight * factor[:, None].to(weight.dtype)


# Products of integers and of groups


def _integer_product(a: Tensor, b: Tensor) -> Tensor:
    return torch.matmul(a.to(torch.int32), b.to(torch.int32))


def _packed_product(x: Tensor, weight: Tensor, scales: Tensor) -> Tensor:
    """A product with rows of integers that have a scale each."""
    return torch.matmul(x, weight.to(x.dtype).transpose(0, 1)) * scales.to(x.dtype)


def _scaled_product(
    a: Tensor, b: Tensor, scale_a: Tensor, scale_b: Tensor, bias: Tensor | None = None,
    scale_result: Tensor | None = None, out_dtype: Any = None, use_fast_accum: bool = False,
) -> Tensor:  # fmt: skip
    wide = torch.float32
    found = torch.matmul(a.to(wide), b.to(wide)) * scale_a * scale_b
    found = found if bias is None else found + bias.to(wide)
    found = found if scale_result is None else found * scale_result
    return found.to(out_dtype or a.dtype)


def _grouped_product(
    a: Tensor, b: Tensor, offs: Tensor | None = None, bias: Tensor | None = None,
    out_dtype: Any = None,
) -> Tensor:  # fmt: skip
    """Matmuls by groups: rows, columns or elements of sums up to each of some ends
    belong to one group."""
    dtype = out_dtype or a.dtype
    if a.dim() == b.dim() == 3:
        return torch.bmm(a, b).to(dtype)
    assert offs is not None
    ends = offs.to(torch.int64)
    begins = torch.cat([torch.zeros_like(ends[:1]), ends[:-1]])
    extent = a.shape[-1] if b.dim() == a.dim() else (a.shape[0] if a.dim() == 2 else b.shape[-1])
    places = torch.arange(extent)
    chosen = (places >= begins[:, None]) & (places < ends[:, None])
    if a.dim() == 2 and b.dim() == 2:
        return torch.matmul(torch.where(chosen[:, None, :], a, 0.0), b).to(dtype)
    if a.dim() == 2:
        every = torch.matmul(a, b)
        return torch.where(chosen[:, :, None], every, 0.0).sum(0).to(dtype)
    return torch.where(chosen[:, None, :], torch.matmul(a, b), 0.0).sum(0).to(dtype)


def _conv_tbc(x: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """1-D convolution of [time, batch, channels] with weights of [time, channels, outputs]."""
    turned = torch.nn.functional.conv1d(
        x.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad
    )
    return turned.permute(2, 0, 1)


def _trilinear(
    a: Tensor, b: Tensor, c: Tensor, expand_a: Any, expand_b: Any, expand_c: Any, summed: Any,
    unroll_dim: int = 1,
) -> Tensor:  # fmt: skip
    """Contraction of three tensors after unit dimensions are inserted into each."""
    factors: list[Tensor] = []
    for factor, places in zip((a, b, c), (expand_a, expand_b, expand_c), strict=True):
        for place in sorted(places):
            factor = factor.unsqueeze(place)
        factors.append(factor)
    product = factors[0] * factors[1] * factors[2]
    return product.sum(list(summed)) if summed else product


def _masked_softmax(
    x: Tensor, mask: Tensor, dim: int | None = None, mask_type: int | None = None
) -> Tensor:
    """Softmax of the scores that a mask keeps.

    The mask is [L, L] for all heads (type 0), [B, L] for keys (type 1), or of the scores' shape."""
    if mask_type == 0:
        mask = mask.reshape([1] * (x.dim() - mask.dim()) + list(mask.shape))
    elif mask_type == 1 and mask.dim() < x.dim():
        mask = mask.reshape([mask.shape[0], *[1] * (x.dim() - 2), mask.shape[1]])
    hidden = torch.where(mask, -inf, x.to(torch.float32))
    return torch.softmax(hidden, x.dim() - 1 if dim is None else dim).to(x.dtype)


def _renormalized(x: Tensor, p: Any, dim: int, maxnorm: Any) -> Tensor:
    """Slices of one dimension whose norm is too large, made as small as that."""
    axes = [axis for axis in range(x.dim()) if axis != dim % x.dim()]
    wide = x.to(torch.float32)
    norm = torch.linalg.vector_norm(wide, p, axes, keepdim=True)
    factor = torch.where(norm > maxnorm, maxnorm / (norm + 1e-7), 1.0)
    return (wide * factor).to(x.dtype)


def _stably_sorted(x: Tensor, *, stable: bool, dim: int = -1, descending: bool = False) -> Tensor:
    return torch.sort(x, stable=stable, dim=dim, descending=descending).indices


def _linear_cross_entropy(
    x: Tensor, projection: Tensor, target: Tensor, bias: Tensor | None, weight: Tensor | None,
    reduction: str, ignore_index: int, label_smoothing: float, *_: Any,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """The cross entropy of a linear layer, at once instead of in chunks of rows; its gradients,
    which only training reads, are empty."""
    scores = torch.nn.functional.linear(x, projection, bias)
    loss = torch.nn.functional.cross_entropy(
        scores, target, weight, None, ignore_index, None, reduction, label_smoothing
    )
    return loss, x.new_zeros(0, 0), x.new_zeros(0, 0), x.new_zeros(0)


def _linear_cross_entropies(*given: Any) -> Tensor:
    """The cross entropy of each row."""
    return _linear_cross_entropy(*given[:5], "none", given[5], 0.0)[0]


ONLY_FIRST_RESULT = frozenset(
    """
    native_layer_norm native_group_norm native_batch_norm _native_batch_norm_legit
    _native_batch_norm_legit_no_training max_pool2d_with_indices max_pool3d_with_indices
    adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d
    """.split()
)
"""Operations whose rule gives one result of several: where others are used, they are taken
apart."""

DECOMPOSITIONS: Decompositions = {
    **{f"max_pool{n}d_with_indices": _max_pool(n) for n in (2, 3)},
    **{f"adaptive_max_pool{n}d": _adaptive_max_pool(n) for n in (1, 2, 3)},
    "native_layer_norm": _layer_norm,
    "native_group_norm": _group_norm,
    "native_batch_norm": _batch_norm,
    "_native_batch_norm_legit_no_training": _batch_norm_by,
    "_batch_norm_no_update": _batch_norm_without_update,
    "embedding_renorm": _renormalized_rows,
    "_int_mm": _integer_product,
    "_weight_int8pack_mm": _packed_product,
    "_scaled_mm": _scaled_product,
    "_grouped_mm": _grouped_product,
    "grouped_mm_fallback": _grouped_product,  # Of transformers.
    "conv_tbc": _conv_tbc,
    "_trilinear": _trilinear,
    "_masked_softmax": _masked_softmax,
    "renorm": _renormalized,
    "_linear_cross_entropy_batch_chunked": _linear_cross_entropy,
    "_linear_cross_entropy_batch_chunked_no_reduction": _linear_cross_entropies,
    "argsort.stable": _stably_sorted,
}


# Operations on elements, and views, that others of ATen spell out.


def _other_if_nan(name: str) -> Decomposition:
    """The greater, or lesser, of two numbers; where one is NaN, the other."""

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
    """0, or pi of negative numbers."""
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
    """The sum of a batch of products, and a matrix."""
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
    """The operation of `torch` of that name, of which an internal one is another form."""

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
    """The view of that name, whose result nothing is written to."""

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
    """`x` with its diagonal from the source: a choice by a mask of the diagonal."""
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
    """By Euclid's algorithm, in as many steps as the type may take."""
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
    """Mantissas from 1/2 to 1 and exponents: by halving 2^k for falling k."""
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
    """All tuples of the elements of vectors."""
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
    """The distances of all pairs of rows."""
    rows = x.shape[0]
    if rows < 2:
        return x.new_zeros(0)
    return torch.cat([_distance_of_rows(x[i + 1 :] - x[i], p) for i in range(rows - 1)])


ELEMENTWISE_DECOMPOSITIONS: Decompositions = {
    "fmax": _other_if_nan("maximum"),
    "fmin": _other_if_nan("minimum"),
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
