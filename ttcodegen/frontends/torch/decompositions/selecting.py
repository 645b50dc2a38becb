"""Data-dependent selection and random distributions."""

from __future__ import annotations

from math import inf, log1p, nan, pi, prod
from typing import Any

from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.frontends.torch.decompositions.tracing import (
    Decomposition,
    Decompositions,
    Tensor,
    axis_of,
    computed,
    torch,
    widened,
)

# Operations that choose, count and write elements by the values of tensors.


# By masks


def _order_of(mask: Tensor) -> Tensor:
    """Exclusive prefix count of the true elements of a flat mask."""
    return torch.cumsum(mask.to(torch.int32), 0) - 1


def _masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Writes consecutive source elements where the mask is true."""
    x, mask = torch.broadcast_tensors(x, mask)
    if x.numel() == 0 or source.numel() == 0:
        return x.clone()
    flat = mask.reshape(-1)
    places = _order_of(flat).clamp(0, source.numel() - 1)
    found = source.reshape(-1).index_select(0, places)
    return torch.where(flat, found, x.reshape(-1)).reshape(x.shape)


def _take(x: Tensor, index: Tensor) -> Tensor:
    """Elements of the flat tensor; torch's own form reads the number of an index that is one."""
    return x.reshape(-1)[index.reshape(-1)].reshape(index.shape)


def _nonzero_static(x: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """Indices of the first `size` nonzero elements, padded with `fill_value`."""
    if x.dim() == 0:
        return torch.full((size, 0), fill_value, dtype=torch.int64)
    count = x.numel()
    if count == 0 or size == 0:
        return torch.full((size, x.dim()), fill_value, dtype=torch.int64)
    flat = (x != 0).reshape(-1)
    order = torch.where(flat, _order_of(flat), size)
    # Elements beyond `size` go to an extra slot that is cropped.
    places = torch.full((size + 1,), -1, dtype=torch.int32)
    indices = torch.arange(count, dtype=torch.int32)
    places = places.scatter(0, order.clamp(max=size).to(torch.int64), indices)[:size]
    rest = places
    columns: list[Tensor] = []
    for extent in reversed(x.shape):
        columns.append(torch.remainder(rest, extent))
        rest = torch.div(rest, extent, rounding_mode="floor")
    found = torch.stack(columns[::-1], 1)
    return torch.where((places < 0)[:, None], fill_value, found).to(torch.int64)


def _put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Writes at flat indices."""
    flat = x.reshape(-1)
    if index.numel() == 0:
        return x.clone()
    places = index.reshape(-1)
    places = torch.where(places < 0, places + flat.shape[0], places)
    values = source.reshape(-1).to(x.dtype)
    if accumulate:
        return flat.scatter_add(0, places, values).reshape(x.shape)
    return flat.scatter(0, places, values).reshape(x.shape)


# Middle elements


def _along_last(x: Tensor, dim: int | None) -> tuple[Tensor, int]:
    """Moves a dimension last; flattens the tensor if `dim` is None."""
    if dim is None:
        return x.reshape(-1), 0
    axis = axis_of(x, dim)
    return widened(x).movedim(axis, -1), axis


def _restore_axis(found: Tensor, x: Tensor, axis: int, keepdim: bool) -> Tensor:
    if x.dim() == 0:
        return found.reshape(())
    return found.unsqueeze(axis) if keepdim else found


def _median(x: Tensor) -> Tensor:
    """Lower median; NaN if any element is."""
    flat = x.reshape(-1)
    if not flat.shape[0]:
        return torch.full((), nan).to(x.dtype)
    found = torch.sort(flat).values[(flat.shape[0] - 1) // 2]
    return torch.where(torch.isnan(flat).any(), nan, found) if x.dtype.is_floating_point else found


def _nan_median(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """Lower median of the non-NaN elements, and its index."""
    last, axis = _along_last(x, dim)
    if last.dtype.is_floating_point:
        missing = torch.isnan(last)
        count = last.shape[-1] - missing.to(torch.int32).sum(-1, keepdim=True)
        ordered, indices = torch.sort(torch.where(missing, inf, last), dim=-1, stable=True)
        middle = torch.div(count - 1, 2, rounding_mode="floor").clamp(min=0).to(torch.int64)
        value = ordered.gather(-1, middle)
        value = torch.where(count == 0, nan, value).squeeze(-1)
        index = indices.gather(-1, middle).squeeze(-1)
    else:
        ordered, indices = torch.sort(last, dim=-1, stable=True)
        place = (last.shape[-1] - 1) // 2
        value, index = ordered[..., place], indices[..., place]
    if dim is None:
        return value
    return _restore_axis(value, x, axis, keepdim), _restore_axis(index, x, axis, keepdim)


def _mode(x: Tensor, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Most frequent element, the lowest of several, and its last index."""
    last, axis = _along_last(x, dim)
    same = last.unsqueeze(-1) == last.unsqueeze(-2)
    counts = same.to(torch.int32).sum(-1)
    frequent = counts == counts.amax(-1, keepdim=True)
    number = last.to(torch.int32) if last.dtype == torch.bool else last
    most = inf if number.dtype.is_floating_point else torch.iinfo(number.dtype).max
    value = torch.where(frequent, number, most).amin(-1, keepdim=True)
    places = torch.arange(last.shape[-1], dtype=torch.int32)
    index = torch.where(number == value, places, -1).amax(-1)
    value = value.squeeze(-1).to(x.dtype)
    return _restore_axis(value, x, axis, keepdim), _restore_axis(
        index.to(torch.int64), x, axis, keepdim
    )


# Counts


def _histc(x: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Histogram with bins of equal width; the last bin includes its upper end."""
    values = computed(x.reshape(-1))
    low, high = _range_of(values, min, max)
    inside = ((values >= low) & (values <= high)).to(values.dtype)
    if x.dtype != values.dtype and x.is_floating_point() and values.numel():
        # For 16-bit types, each step is rounded, as torch does.
        if isinstance(low, torch.Tensor):
            low, high = low.to(x.dtype), high.to(x.dtype)
        position = (x.reshape(-1) - low) * bins / (high - low)
        places = torch.clamp(torch.floor(position), max=bins - 1)[:, None]
        chosen = places == torch.arange(bins, dtype=x.dtype)
        return torch.where(chosen, inside[:, None], 0).sum(0).to(x.dtype)
    edges = low + (high - low) * torch.arange(1, bins, dtype=values.dtype) / bins
    return _counted(values, edges, inside, bins).to(x.dtype)


def _range_of(values: Tensor, low: Any, high: Any, more: float = 1) -> tuple[Any, Any]:
    """Range of a histogram, by default that of the elements, widened if empty."""
    if low != high:
        return float(low), float(high)
    if not values.numel():
        return float(low) - more, float(high) + more
    least, most = values.amin(), values.amax()
    same = least == most
    return torch.where(same, least - more, least), torch.where(same, most + more, most)


def _counted(values: Tensor, edges: Tensor, weights: Tensor, bins: int) -> Tensor:
    """Sum of weights per histogram bin."""
    if not values.numel():
        return torch.zeros(bins, dtype=weights.dtype)
    above = values[:, None] >= edges
    place = above.to(torch.int32).sum(1, keepdim=True)
    chosen = place == torch.arange(bins, dtype=torch.int32)
    return torch.where(chosen, weights[:, None], 0).sum(0)


def _histogram(
    x: Tensor, bins: int, *, range: Any = None, weight: Any = None, density: bool = False
) -> tuple[Tensor, Tensor]:
    values = x.reshape(-1)
    low, high = range if range is not None else _range_of(values, 0, 0, 0.5)
    if range is not None and low == high:
        low, high = low - 0.5, high + 0.5
    edges = low + (high - low) * torch.arange(bins + 1, dtype=x.dtype) / bins
    return _histogram_of(values, edges, low, high, weight, density)


def _histogram_of_edges(
    x: Tensor, edges: Tensor, *, weight: Any = None, density: bool = False
) -> tuple[Tensor, Tensor]:
    return _histogram_of(x.reshape(-1), edges, edges[0], edges[-1], weight, density)


def _histogram_of(
    values: Tensor, edges: Tensor, low: Any, high: Any, weight: Any, density: bool
) -> tuple[Tensor, Tensor]:
    inside = ((values >= low) & (values <= high)).to(values.dtype)
    weights = inside if weight is None else torch.where(inside > 0, weight.reshape(-1), 0)
    counts = _counted(values, edges[1:-1], weights, edges.shape[0] - 1)
    if density:
        counts = counts / (counts.sum() * (edges[1:] - edges[:-1]))
    return counts, edges.clone()


def _bincount(x: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    raise CompileError(
        "the length of 'bincount' depends on the values of its input",
        remedy=f"use torch.zeros(n).scatter_add(0, x, weights) with a number n of {minlength} or "
        "more",
    )


# Reductions by index


def _index_reduce(
    x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Reduces source rows into the tensor rows that an index selects."""
    if x.dim() == 0:
        found = _index_reduce(
            x.reshape(1), 0, widened(index), widened(source), reduce, include_self=include_self
        )
        return found.reshape(())
    axis = axis_of(x, dim)
    shape = [1] * x.dim()
    shape[axis] = index.numel()
    places = index.reshape(shape).to(torch.int64).expand(source.shape)
    if source.numel() == 0:
        return x.clone()
    return torch.scatter_reduce(x, axis, places, source, reduce, include_self=include_self)


def _segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: Any = None,
) -> Tensor:
    """Segment reductions along one dimension by masks."""
    if offsets is not None:
        begins, ends = offsets[..., :-1], offsets[..., 1:]
    elif lengths is not None:
        ends = torch.cumsum(lengths, -1)
        begins = ends - lengths
    else:
        raise CompileError("segment_reduce by indices is not supported")
    axis = axis_of(data, axis)
    rest = data.dim() - axis - 1
    places = torch.arange(data.shape[axis])
    chosen = (places >= begins.unsqueeze(-1)) & (places < ends.unsqueeze(-1))
    chosen = chosen.reshape([*chosen.shape, *[1] * rest])
    values = data.unsqueeze(axis)
    neutral = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -inf, "min": inf}[reduce]
    start = neutral if initial is None else initial
    kept = torch.where(chosen, values, neutral)
    along = axis + 1
    if reduce == "prod":
        return kept.prod(along) * start
    if reduce in ("max", "min"):
        bound = torch.maximum if reduce == "max" else torch.minimum
        found = kept.amax(along) if reduce == "max" else kept.amin(along)
        return bound(found, torch.full_like(found, start))
    total = kept.sum(along) + (start if reduce == "sum" or initial is not None else 0.0)
    if reduce == "sum":
        return total
    count = chosen.to(data.dtype).sum(along)
    empty = nan if initial is None else initial
    return torch.where(count == 0, empty, total / count)


# Windows of storage


def _storage_places(x: Tensor) -> Tensor:
    """Flattens a tensor in storage order; raises CompileError if its storage has gaps."""
    order = sorted(range(x.dim()), key=lambda axis: (-x.stride(axis), axis))
    turned = x.permute(order)
    if not turned.is_contiguous():
        raise CompileError(
            "as_strided of a tensor with gaps in its storage is not supported",
            remedy="call contiguous() before",
        )
    return turned.reshape(-1)


def _offsets_of(size: Any, stride: Any, offset: int) -> Tensor:
    places = torch.full([1] * len(size), offset, dtype=torch.int64)
    for axis, (extent, step) in enumerate(zip(size, stride, strict=True)):
        shape = [-1 if axis == other else 1 for other in range(len(size))]
        places = places + (torch.arange(extent) * step).reshape(shape)
    return places.reshape(-1)


def _as_strided(x: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """Elements at strided storage offsets, which must be inside the tensor."""
    places = _offsets_of(size, stride, _offset_in(x, storage_offset))
    _require_inside(x, size, stride, _offset_in(x, storage_offset))
    return _storage_places(x).index_select(0, places).reshape(size)


def _offset_in(x: Tensor, storage_offset: int | None) -> int:
    return 0 if storage_offset is None else storage_offset - x.storage_offset()


def _require_inside(x: Tensor, size: Any, stride: Any, offset: int) -> None:
    last = offset + sum((extent - 1) * step for extent, step in zip(size, stride, strict=True))
    if prod(size) and not 0 <= offset <= last < max(x.numel(), 1):
        raise CompileError("as_strided beyond the elements of its operand is not supported")


def _as_strided_scatter(
    x: Tensor, source: Tensor, size: Any, stride: Any, storage_offset: int | None = None
) -> Tensor:
    offset = _offset_in(x, storage_offset)
    _require_inside(x, size, stride, offset)
    places = _offsets_of(size, stride, offset)
    if not places.shape[0]:
        return x.clone()
    written = _storage_places(x).scatter(0, places, source.reshape(-1))
    order = sorted(range(x.dim()), key=lambda axis: (-x.stride(axis), axis))
    turned = written.reshape([x.shape[axis] for axis in order])
    return turned.permute([order.index(axis) for axis in range(x.dim())])


def _resized(x: Tensor, size: Any, *_: Any, **__: Any) -> Tensor:
    """Flat prefix of the elements in another shape, padded with zeros."""
    flat, count = x.reshape(-1), prod(size)
    if count > flat.shape[0]:
        flat = torch.cat([flat, flat.new_zeros(count - flat.shape[0])])
    return flat[:count].reshape(size)


def _resized_as(x: Tensor, other: Tensor, *_: Any, **__: Any) -> Tensor:
    return _resized(x, list(other.shape))


def _of_unknown_length(name: str, remedy: str) -> Decomposition:
    def decomposition(*_: Any, **__: Any) -> Any:
        raise CompileError(
            f"the shape of the result of '{name}' depends on the values of its input",
            remedy=remedy,
        )

    return decomposition


DECOMPOSITIONS: Decompositions = {
    "masked_scatter": _masked_scatter,
    "take": _take,
    "nonzero_static": _nonzero_static,
    "put": _put,
    "median": _median,
    "nanmedian": _nan_median,
    "mode": _mode,
    "histc": _histc,
    "histogram.bin_ct": _histogram,
    "histogram.bins_tensor": _histogram_of_edges,
    "bincount": _bincount,
    "index_reduce": _index_reduce,
    "segment_reduce": _segment_reduce,
    "as_strided": _as_strided,
    "as_strided_copy": _as_strided,
    "as_strided_scatter": _as_strided_scatter,
    "resize": _resized,
    "resize_as": _resized_as,
    "nonzero": _of_unknown_length(
        "nonzero", "use torch.nonzero_static(x, size=n), or torch.where with a mask"
    ),
    "masked_select": _of_unknown_length(
        "masked_select", "use torch.where with a mask, or torch.nonzero_static and index_select"
    ),
    **{
        name: _of_unknown_length(name, "compute it before or after the model")
        for name in ("_unique2", "_unique", "unique_dim", "unique_consecutive")
    },
}


# Random numbers of other distributions, from those that are uniform between 0 and 1.

_MIN_UNIFORM = 2.0**-24
"""Positive lower bound of a logarithm's argument."""


def _uniform(shape: Any) -> Tensor:
    return torch.rand(list(shape), dtype=torch.float32)


def _normal(shape: Any) -> Tensor:
    """Normal samples by the Box-Muller transform."""
    size = torch.sqrt(-2.0 * torch.log(_uniform(shape).clamp(min=_MIN_UNIFORM)))
    return size * torch.cos(2 * pi * _uniform(shape))


def _float_dtype(dtype: Any) -> Any:
    return dtype or torch.get_default_dtype()


def _randn(size: Any, *, dtype: Any = None, **_: Any) -> Tensor:
    return _normal(size).to(_float_dtype(dtype))


def _rand_like(x: Tensor, *, dtype: Any = None, **_: Any) -> Tensor:
    return _uniform(x.shape).to(dtype or x.dtype)


def _randn_like(x: Tensor, *, dtype: Any = None, **_: Any) -> Tensor:
    return _normal(x.shape).to(dtype or x.dtype)


def _integers(shape: Any, low: int, high: int, dtype: Any) -> Tensor:
    """Random integers in [low, high); float32 distinguishes at most 2^24 of them."""
    drawn = torch.floor(_uniform(shape) * (high - low)).clamp(max=high - low - 1)
    return (drawn.to(torch.int64) + low).to(dtype)


def _randint(high: int, size: Any, *, dtype: Any = None, **_: Any) -> Tensor:
    return _integers(size, 0, high, dtype or torch.int64)


def _randint_from(low: int, high: int, size: Any, *, dtype: Any = None, **_: Any) -> Tensor:
    return _integers(size, low, high, dtype or torch.int64)


def _randint_like(x: Tensor, high: int, *, dtype: Any = None, **_: Any) -> Tensor:
    return _integers(x.shape, 0, high, dtype or x.dtype)


def _randint_like_from(x: Tensor, low: int, high: int, *, dtype: Any = None, **_: Any) -> Tensor:
    return _integers(x.shape, low, high, dtype or x.dtype)


def _randperm(n: int, *, dtype: Any = None, **_: Any) -> Tensor:
    return torch.argsort(_uniform([n])).to(dtype or torch.int64)


def _bernoulli(x: Tensor, p: Any = None, **_: Any) -> Tensor:
    """Bernoulli samples, with one probability or one per element."""
    return (_uniform(x.shape) < (x if p is None else p)).to(x.dtype)


def _uniform_between(x: Tensor, low: float = 0.0, high: float = 1.0, **_: Any) -> Tensor:
    return (_uniform(x.shape) * (high - low) + low).to(x.dtype)


def _normal_of(x: Tensor, mean: float = 0.0, std: float = 1.0, **_: Any) -> Tensor:
    return (_normal(x.shape) * std + mean).to(x.dtype)


def _normal_with(mean: Any, std: Any = 1.0, size: Any = None, **_: Any) -> Tensor:
    """Normal samples with a mean and a standard deviation, numbers or tensors."""
    tensors = [each for each in (mean, std) if isinstance(each, torch.Tensor)]
    shape = size if size is not None else torch.broadcast_shapes(*(t.shape for t in tensors))
    dtype = tensors[0].dtype if tensors else torch.get_default_dtype()
    return (_normal(shape) * std + mean).to(dtype)


def _exponential(x: Tensor, rate: float = 1.0, **_: Any) -> Tensor:
    return (-torch.log(_uniform(x.shape).clamp(min=_MIN_UNIFORM)) / rate).to(x.dtype)


def _log_normal(x: Tensor, mean: float = 1.0, std: float = 2.0, **_: Any) -> Tensor:
    return torch.exp(_normal(x.shape) * std + mean).to(x.dtype)


def _cauchy(x: Tensor, median: float = 0.0, sigma: float = 1.0, **_: Any) -> Tensor:
    return (median + sigma * torch.tan(pi * (_uniform(x.shape) - 0.5))).to(x.dtype)


def _geometric(x: Tensor, p: float, **_: Any) -> Tensor:
    """Geometric samples by inversion: trials up to the first success."""
    if p >= 1:
        return torch.ones_like(x)
    trials = torch.ceil(torch.log(_uniform(x.shape).clamp(min=_MIN_UNIFORM)) / log1p(-p))
    return trials.clamp(min=1).to(x.dtype)


def _multinomial(p: Tensor, count: int, replacement: bool = False, **_: Any) -> Tensor:
    """Multinomial samples by exponential races."""
    if replacement:
        weights = p.to(torch.float32).unsqueeze(-2).expand([*p.shape[:-1], count, p.shape[-1]])
        return _races(weights).argmin(-1)
    return torch.topk(_races(p.to(torch.float32)), count, largest=False).indices


def _races(weights: Tensor) -> Tensor:
    times = -torch.log(_uniform(weights.shape).clamp(min=_MIN_UNIFORM))
    return torch.where(weights > 0, times / torch.where(weights > 0, weights, 1.0), float("inf"))


def _native_dropout(x: Tensor, p: float, train: bool | None = None) -> tuple[Tensor, Tensor]:
    if train is False or p == 0:
        return x.clone(), torch.ones_like(x, dtype=torch.bool)
    kept = _uniform(x.shape) >= p
    scaled = x * (0.0 if p == 1 else 1 / (1 - p))
    return torch.where(kept, scaled, 0.0).to(x.dtype), kept


RANDOM_DECOMPOSITIONS: Decompositions = {
    "randn": _randn,
    "rand_like": _rand_like,
    "randn_like": _randn_like,
    "randint": _randint,
    "randint.low": _randint_from,
    "randint_like": _randint_like,
    "randint_like.low_dtype": _randint_like_from,
    "randperm": _randperm,
    "bernoulli": _bernoulli,
    "uniform": _uniform_between,
    "normal_functional": _normal_of,
    "normal": _normal_with,
    "exponential": _exponential,
    "log_normal": _log_normal,
    "cauchy": _cauchy,
    "geometric": _geometric,
    "multinomial": _multinomial,
    "native_dropout": _native_dropout,
}
