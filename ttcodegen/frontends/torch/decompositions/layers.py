"""Decompositions of layers in forms, or with results, that rules do not cover."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, prod
from typing import Any

from ttcodegen.frontends.torch.decompositions.tracing import (
    Decomposition,
    Decompositions,
    Tensor,
    torch,
)

# Pools with the places of the greatest elements

Windows = Sequence[tuple[Tensor, Tensor]]
"""Per dimension, element indices of each window, [windows, elements], and their validity mask."""


def _window_maximum(x: Tensor, windows: Windows) -> tuple[Tensor, Tensor]:
    """Maximum of each window over the last dimensions, and its flat index."""
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
        return _window_maximum(x, [_pool_windows(*each, ceil_mode) for each in parts])

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
        return _window_maximum(
            x, [_adaptive_windows(*each) for each in zip(found, wanted, strict=True)]
        )

    return pool


# Normalizations with their statistics


def _statistics(x: Tensor, axes: Any, epsilon: float) -> tuple[Tensor, Tensor]:
    """Mean and inverse standard deviation, with the dimensions kept."""
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
    """Batch norm with running statistics, or with those of the batch in training."""
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
    """Limits the norm of the table rows that `indices` use."""
    used = (torch.arange(weight.shape[0])[:, None] == indices.reshape(-1)).any(1)
    norm = torch.linalg.vector_norm(weight, norm_type, 1)
    factor = torch.where(used & (norm > max_norm), max_norm / (norm + 1e-7), 1.0)
    return weight * factor[:, None].to(weight.dtype)


# Products of integers and of groups


def _integer_product(a: Tensor, b: Tensor) -> Tensor:
    return torch.matmul(a.to(torch.int32), b.to(torch.int32))


def _packed_product(x: Tensor, weight: Tensor, scales: Tensor) -> Tensor:
    """Matmul with int8 weights that have a scale per row."""
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
    """Grouped matmul: `offs` are the ends of groups of rows, columns or contracted elements."""
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
    """Softmax of the unmasked scores.

    The mask is [L, L] for all heads (type 0), [B, L] for keys (type 1), or of the scores' shape.
    """
    if mask_type == 0:
        mask = mask.reshape([1] * (x.dim() - mask.dim()) + list(mask.shape))
    elif mask_type == 1 and mask.dim() < x.dim():
        mask = mask.reshape([mask.shape[0], *[1] * (x.dim() - 2), mask.shape[1]])
    hidden = torch.where(mask, -inf, x.to(torch.float32))
    return torch.softmax(hidden, x.dim() - 1 if dim is None else dim).to(x.dtype)


def _renormalized(x: Tensor, p: Any, dim: int, maxnorm: Any) -> Tensor:
    """Limits the norm of each slice along a dimension to `maxnorm`."""
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
    """Fused linear cross entropy without chunking; gradient results are empty."""
    scores = torch.nn.functional.linear(x, projection, bias)
    loss = torch.nn.functional.cross_entropy(
        scores, target, weight, None, ignore_index, None, reduction, label_smoothing
    )
    return loss, x.new_zeros(0, 0), x.new_zeros(0, 0), x.new_zeros(0)


def _linear_cross_entropies(*given: Any) -> Tensor:
    """Cross entropy of each row."""
    return _linear_cross_entropy(*given[:5], "none", given[5], 0.0)[0]


ONLY_FIRST_RESULT = frozenset(
    """
    native_layer_norm native_group_norm native_batch_norm _native_batch_norm_legit
    _native_batch_norm_legit_no_training max_pool2d_with_indices max_pool3d_with_indices
    adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d
    nll_loss_forward nll_loss2d_forward
    """.split()
)
"""Operations whose rule returns only the first result; using others requires decomposition."""

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
