"""Decompositions of backward operations of layers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import inf, prod
from typing import Any

from ttcodegen.frontends.torch.decompositions.tracing import Decompositions, Tensor, torch


def _each(value: Sequence[int], count: int) -> list[int]:
    listed = list(value)
    return listed * count if len(listed) == 1 else listed


def _convolution(
    gradient: Tensor,
    x: Tensor,
    weight: Tensor,
    bias_sizes: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Gradients of input, weight and bias of a convolution."""
    spatial = x.dim() - 2
    stride, padding, dilation = (_each(each, spatial) for each in (stride, padding, dilation))
    of_input = of_weight = of_bias = None
    if output_mask[0]:
        if transposed:
            of_input = torch.ops.aten.convolution(
                gradient, weight, None, stride, padding, dilation, False, [0] * spatial, groups
            )
        else:
            # Elements of the input beyond the last window.
            rest = [
                x.shape[2 + i]
                - ((gradient.shape[2 + i] - 1) * stride[i] - 2 * padding[i])
                - dilation[i] * (weight.shape[2 + i] - 1)
                - 1
                for i in range(spatial)
            ]
            of_input = torch.ops.aten.convolution(
                gradient, weight, None, stride, padding, dilation, True, rest, groups
            )
    if output_mask[1]:
        # The roles of input and gradient swap for a transposed convolution.
        wide, narrow = (gradient, x) if transposed else (x, gradient)
        of_weight = _weight_gradient(
            wide, narrow, weight.shape, (stride, padding, dilation), groups
        )
    if output_mask[2]:
        of_bias = gradient.sum([0, *range(2, gradient.dim())])
    return of_input, of_weight, of_bias


def _weight_gradient(
    x: Tensor,
    gradient: Tensor,
    shape: Sequence[int],
    window: tuple[Sequence[int], Sequence[int], Sequence[int]],
    groups: int,
) -> Tensor:
    """Weight gradient: for each kernel position, the product of the gradient and its inputs.

    Args:
        x: the input, [batch, channels, ...].
        gradient: of the output.
        shape: of the weight.
        window: stride, padding and dilation of each dimension.
        groups: of channels.
    """
    stride, padding, dilation = window
    sizes = gradient.shape[2:]
    sides = [side for each in reversed(padding) for side in (each, each)]
    padded = torch.nn.functional.pad(x, sides) if any(padding) else x
    count = gradient.shape[0] * prod(sizes)
    rows = gradient.transpose(0, 1).reshape(groups, gradient.shape[1] // groups, count)
    found: list[Tensor] = []
    for place in product(*(range(size) for size in shape[2:])):
        part = padded
        for axis, (start, step, size) in enumerate(zip(place, stride, sizes, strict=True)):
            first = start * dilation[axis]
            part = torch.narrow(part, 2 + axis, first, (size - 1) * step + 1)
            part = part[(slice(None),) * (2 + axis) + (slice(None, None, step),)]
        columns = part.transpose(0, 1).reshape(groups, x.shape[1] // groups, count)
        found.append(torch.bmm(rows, columns.transpose(1, 2)))
    return torch.stack(found, -1).reshape(shape)


def _average_pool(
    gradient: Tensor,
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    """Distributes each window's gradient evenly over its elements."""
    spatial = len(gradient.shape[-2:])
    kernel = _each(kernel, spatial)
    stride = _each(stride or kernel, spatial)
    padding = _each(padding, spatial)
    sizes = x.shape[-spatial:]
    ones = torch.ones([1, 1, *kernel], dtype=x.dtype)
    flat = gradient.reshape([-1, 1, *gradient.shape[-spatial:]])
    area: Any = divisor_override or prod(kernel)
    if divisor_override is None and (ceil_mode or (any(padding) and not count_include_pad)):
        area = _window_areas(sizes, gradient.shape[-spatial:], (kernel, stride, padding),
                             count_include_pad).to(x.dtype)  # fmt: skip
    # Windows of ceil_mode may extend beyond the padding; crop them.
    whole = [
        (count - 1) * step + size
        for count, step, size in zip(flat.shape[-spatial:], stride, kernel, strict=True)
    ]
    distributed = torch.ops.aten.convolution(
        flat / area, ones, None, stride, [0] * spatial, [1] * spatial, True, [0] * spatial, 1
    )
    sides = [
        side
        for size, all_, pad in reversed(list(zip(sizes, whole, padding, strict=True)))
        for side in (-pad, size + pad - all_)
    ]
    return torch.nn.functional.pad(distributed, sides).reshape(x.shape)


def _window_areas(
    sizes: Sequence[int],
    counts: Sequence[int],
    window: tuple[Sequence[int], Sequence[int], Sequence[int]],
    count_include_pad: bool,
) -> Tensor:
    """Divisors of all windows: their elements inside of the (padded) input."""
    area: Any = 1
    for axis, (size, count) in enumerate(zip(sizes, counts, strict=True)):
        kernel, stride, padding = (each[axis] for each in window)
        first = torch.arange(count) * stride - padding
        last = torch.clamp(first + kernel, max=size + padding)
        if not count_include_pad:
            first, last = torch.clamp(first, min=0), torch.clamp(last, max=size)
        shape = [1] * len(sizes)
        shape[axis] = count
        area = area * (last - first).reshape(shape)
    return area


def _adaptive_average_pool(gradient: Tensor, x: Tensor) -> Tensor:
    """Distributes each adaptive window's gradient evenly over its elements."""
    found = gradient
    for axis in (-2, -1):
        size, count = x.shape[axis], gradient.shape[axis]
        first = torch.arange(count) * size // count
        last = -(-(torch.arange(count) + 1) * size // count)
        places = torch.arange(size)
        inside = (places[None] >= first[:, None]) & (places[None] < last[:, None])
        share = inside / (last - first)[:, None]
        found = torch.matmul(found.transpose(axis, -1), share.to(x.dtype)).transpose(axis, -1)
    return found


def _attention(
    gradient: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    _output: Tensor,
    _logsumexp: Tensor,
    _dropout: float,
    is_causal: bool,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of query, key and value; recomputes the attention weights."""
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    scores = torch.matmul(query, key.transpose(-2, -1)) * factor
    if is_causal:
        rows, columns = (torch.arange(size) for size in scores.shape[-2:])
        scores = torch.where(columns[None] <= rows[:, None], scores, -inf)
    if attn_mask is not None:
        scores = scores + attn_mask
    weights = torch.softmax(scores, -1)
    of_weights = torch.matmul(gradient, value.transpose(-2, -1))
    of_scores = weights * (of_weights - (of_weights * weights).sum(-1, keepdim=True)) * factor
    return (
        torch.matmul(of_scores, key),
        torch.matmul(of_scores.transpose(-2, -1), query),
        torch.matmul(weights.transpose(-2, -1), gradient),
    )


DECOMPOSITIONS: Decompositions = {
    "_scaled_dot_product_flash_attention_for_cpu_backward": _attention,
    "convolution_backward": _convolution,
    "avg_pool2d_backward": _average_pool,
    "_adaptive_avg_pool2d_backward": _adaptive_average_pool,
}
