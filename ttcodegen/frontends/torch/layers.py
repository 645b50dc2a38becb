"""Matmuls, convolutions, normalizations, attention.

Images are (N, C, H, W) here and (N, H, W, C) in TTIR; permutations of neighbouring ops cancel
during compilation.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod, sqrt
from typing import Any

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import element_of, i1, numpy_name, shape_of, tensor_type
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.frontends.torch.graph import Graph, Rule, kind_of, unsupported_argument

Optional = SSAValue | None


def _linear(graph: Graph, x: SSAValue, weight: SSAValue, bias: Optional = None) -> SSAValue:
    x = graph.value(x)
    return graph.emit("linear", [x, weight, bias], graph.type, transpose_b=True)


def _matmul(graph: Graph, a: SSAValue, b: SSAValue) -> SSAValue:
    """Matmul; vectors become matrices and batches broadcast.

    Narrow integers are multiplied as i32 and truncated.
    """
    element = graph.element
    if numpy_name(element) in ("uint8", "int8", "int16"):
        element = i32
    a, b = graph.value(a, element), graph.value(b, element)
    return graph.emit("matmul", [a, b], tensor_type(element, graph.shape))


def _addmm(
    graph: Graph, bias: SSAValue, a: SSAValue, b: SSAValue, beta: float = 1, alpha: float = 1
) -> SSAValue:
    product = _matmul(graph, a, b)
    if alpha != 1:
        product = graph.apply("multiply", product, alpha)
    if beta == 0:
        return product
    return graph.apply("add", bias if beta == 1 else graph.apply("multiply", bias, beta), product)


def _bilinear(
    graph: Graph, x: SSAValue, y: SSAValue, weight: SSAValue, bias: Optional = None
) -> SSAValue:
    """Bilinear layer: x W y for each matrix W of the weight."""
    outputs, rows, columns = shape_of(weight.type)
    x, y = graph.value(x), graph.value(y)
    *batch, _ = shape_of(x.type)
    count = prod(batch)
    matrix = graph.reshape(graph.permute(weight, [1, 0, 2]), [rows, outputs * columns])
    products = graph.matmul(graph.reshape(x, [count, rows]), matrix)
    products = graph.reshape(products, [count, outputs, columns])
    other = graph.reshape(y, [count, columns, 1])
    found = graph.reshape(graph.matmul(products, other), [*batch, outputs])
    return found if bias is None else graph.apply("add", found, bias)


# Convolutions


def each_of(values: int | Sequence[int], count: int) -> list[int]:
    listed = [values] if isinstance(values, int) else list(values)
    return listed * count if len(listed) == 1 else listed


def _convolution(
    graph: Graph,
    x: SSAValue,
    weight: SSAValue,
    bias: Optional = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> SSAValue:
    """Convolution over one, two or three dimensions, by the rank of its kernel."""
    spatial = len(shape_of(weight.type)) - 2
    stride, dilation = each_of(stride, spatial), each_of(dilation, spatial)
    before, after = _padding(padding, shape_of(weight.type)[2:], dilation)
    attributes: dict[str, Any] = {"stride": stride, "padding": [*before, *after], "groups": groups}
    if spatial == 3:
        weight = _dilated(graph, weight, dilation)
        if before != after:
            outer = [(0, 0)] * (len(shape_of(x.type)) - spatial)
            x = graph.pad(x, [*outer, *zip(before, after, strict=True)])
            before = [0] * spatial
        attributes["padding"] = before
    else:
        attributes["dilation"] = dilation
    others = (weight, _bias(graph, bias, spatial))
    return emit_on_images(graph, f"conv{spatial}d", x, spatial, *others, **attributes)


def _dilated(graph: Graph, x: SSAValue, steps: Sequence[int]) -> SSAValue:
    """Inserts zeros between elements of the last dimensions, by their steps."""
    for axis, step in enumerate(steps, start=len(shape_of(x.type)) - len(steps)):
        *outer, size = shape_of(x.type)[: axis + 1]
        inner = shape_of(x.type)[axis + 1 :]
        if step == 1 or size == 1:
            continue
        apart = graph.reshape(x, [*outer, size, 1, *inner])
        widths = [(0, 0)] * len(shape_of(apart.type))
        widths[axis + 1] = (0, step - 1)
        apart = graph.reshape(graph.pad(apart, widths), [*outer, size * step, *inner])
        x = graph.part(apart, axis, 0, (size - 1) * step + 1)
    return x


def _conv_transpose3d(
    graph: Graph,
    x: SSAValue,
    weight: SSAValue,
    bias: Optional = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> SSAValue:
    """3-D transposed convolution: a convolution of the dilated input with the flipped kernel."""
    inputs, outputs, *kernel = shape_of(weight.type)
    dilation = each_of(dilation, 3)
    turned = graph.reshape(weight, [groups, inputs // groups, outputs, *kernel])
    turned = graph.permute(turned, [0, 2, 1, 3, 4, 5])
    turned = graph.reshape(turned, [groups * outputs, inputs // groups, *kernel])
    turned = _dilated(graph, graph.like("reverse", turned, dimensions=[2, 3, 4]), dilation)
    dilated = _dilated(graph, x, each_of(stride, 3))
    widths = [(0, 0)] * (len(shape_of(x.type)) - 3)
    for k, d, p, more in zip(
        kernel, dilation, each_of(padding, 3), each_of(output_padding, 3), strict=True
    ):
        widths.append((d * (k - 1) - p, d * (k - 1) - p + more))
    return _convolution(graph, graph.pad(dilated, widths), turned, bias, groups=groups)


def _padding(
    padding: Any, kernel: Sequence[int], dilation: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Padding before and after each dimension; "same" puts the odd element after."""
    if padding == "valid":
        padding = 0
    if padding == "same":
        total = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
        return [t // 2 for t in total], [t - t // 2 for t in total]
    widths = each_of(padding, len(kernel))
    return widths, widths


def _bias(graph: Graph, bias: Optional, spatial: int) -> Optional:
    if bias is None:
        return None
    return graph.reshape(bias, [*[1] * (spatial + 1), shape_of(bias.type)[0]])


def channels_last(graph: Graph, x: SSAValue) -> SSAValue:
    rank = len(shape_of(x.type))
    return graph.permute(x, [0, *range(2, rank), 1])


def channels_first(graph: Graph, x: SSAValue) -> SSAValue:
    rank = len(shape_of(x.type))
    return graph.permute(x, [0, rank - 1, *range(1, rank - 1)])


def emit_on_images(
    graph: Graph,
    name: str,
    x: SSAValue,
    spatial: int,
    *others: Optional,
    one_row: bool = False,
    **attributes: Any,
) -> SSAValue:
    """Emits a channels-last op on channels-first images, with an optional batch.

    With `one_row`, 1-D signals are images of one row.
    """
    given, made = list(shape_of(x.type)), list(graph.shape)
    if len(given) == spatial + 1:
        given, made = [1, *given], [1, *made]
    if one_row:
        given.insert(2, 1)
        made.insert(2, 1)
    image = channels_last(graph, graph.reshape(x, given))
    result = tensor_type(graph.element, [made[0], *made[2:], made[1]])
    found = graph.emit(name, [image, *others], result, **attributes)
    return graph.reshape(channels_first(graph, found), graph.shape)


def _conv_transpose(
    graph: Graph,
    x: SSAValue,
    weight: SSAValue,
    bias: Optional = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> SSAValue:
    spatial = len(shape_of(weight.type)) - 2
    if spatial == 1:
        inputs, outputs, columns = shape_of(weight.type)
        weight = graph.reshape(weight, [inputs, outputs, 1, columns])
        stride, padding, dilation = (
            [each, each_of(value, 1)[0]]
            for each, value in ((1, stride), (0, padding), (1, dilation))
        )
        output_padding = [0, each_of(output_padding, 1)[0]]
    before = each_of(padding, 2)
    return emit_on_images(
        graph,
        "conv_transpose2d",
        x,
        spatial,
        weight,
        _bias(graph, bias, 2),
        one_row=spatial == 1,
        stride=each_of(stride, 2),
        padding=[*before, *before],
        dilation=each_of(dilation, 2),
        output_padding=each_of(output_padding, 2),
        groups=groups,
    )


def _any_convolution(
    graph: Graph,
    x: SSAValue,
    weight: SSAValue,
    bias: Optional,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    *_: Any,
) -> SSAValue:
    if not transposed:
        return _convolution(graph, x, weight, bias, stride, padding, dilation, groups)
    rule = _conv_transpose3d if len(shape_of(weight.type)) > 4 else _conv_transpose
    return rule(graph, x, weight, bias, stride, padding, output_padding, groups, dilation)


# Normalizations


def _checked_epsilon(epsilon: float) -> float:
    """Returns a norm's epsilon; raises CompileError if it is negative."""
    if epsilon < 0:
        raise unsupported_argument("a norm", "eps", epsilon)
    return epsilon


def _layer_norm(
    graph: Graph,
    x: SSAValue,
    shape: Sequence[int],
    weight: Optional = None,
    bias: Optional = None,
    epsilon: float = 1e-5,
    *_: Any,
) -> list[SSAValue]:
    value = graph.emit(
        "layer_norm",
        [x, weight, bias],
        x.type,
        normalized_shape=list(shape),
        epsilon=_checked_epsilon(epsilon),
    )
    return [value]


def _rms_norm(
    graph: Graph,
    x: SSAValue,
    shape: Sequence[int],
    weight: Optional = None,
    epsilon: float | None = None,
) -> SSAValue:
    if epsilon is None:
        name = element_of(x.type).name
        epsilon = float(np.finfo(np.float32).eps) if name == "f32" else 2.0**-7
    epsilon = _checked_epsilon(epsilon)
    return graph.emit(
        "rms_norm", [x, weight], x.type, normalized_shape=list(shape), epsilon=epsilon
    )


def _batch_norm(
    graph: Graph,
    x: SSAValue,
    weight: Optional,
    bias: Optional,
    mean: Optional,
    variance: Optional,
    training: bool,
    momentum: float,
    epsilon: float,
    *_: Any,
) -> list[SSAValue]:
    if mean is None or variance is None:
        mean, variance = _statistics(graph, x)
    elif training:
        raise CompileError(
            "a batch norm that keeps the statistics of its input is not compiled",
            remedy="call module.eval() before",
        )
    channels = shape_of(mean.type)
    element = element_of(x.type)
    scale = weight if weight is not None else graph.full(channels, 1.0, element)
    offset = bias if bias is not None else graph.full(channels, 0.0, element)
    operands = [x, *(graph.typecast(v, element) for v in (scale, offset, mean, variance))]
    epsilon = _checked_epsilon(epsilon)
    return [graph.emit("batch_norm_inference", operands, x.type, epsilon=epsilon, dimension=1)]


def _statistics(graph: Graph, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Mean and variance of each channel, for norms without running statistics."""
    axes = [axis for axis in range(len(shape_of(x.type))) if axis != 1]
    mean = graph.reduce("mean", x, axes)
    apart = graph.like("square", graph.broadcasting("subtract", x, mean))
    channels = [shape_of(x.type)[1]]
    variance = graph.reduce("mean", apart, axes)
    return graph.reshape(mean, channels), graph.reshape(variance, channels)


def _batch_norm_of_input(
    graph: Graph,
    x: SSAValue,
    weight: Optional,
    bias: Optional,
    training: bool,
    momentum: float,
    epsilon: float,
) -> list[SSAValue]:
    return _batch_norm(graph, x, weight, bias, None, None, training, momentum, epsilon)


def _weight_norm(graph: Graph, v: SSAValue, g: SSAValue, dim: int = 0) -> list[SSAValue]:
    """Weight norm: v / |v| * g, the norm over all dimensions but `dim`."""
    kept = graph.dim(dim, len(shape_of(v.type)))
    axes = [axis for axis in range(len(shape_of(v.type))) if axis != kept]
    norm = graph.like("sqrt", graph.reduce("sum", graph.like("square", v), axes))
    return [graph.broadcasting("multiply", v, graph.like("div", g, norm)), norm]


def _batch_norm_of_inference(
    graph: Graph,
    x: SSAValue,
    weight: Optional,
    bias: Optional,
    mean: SSAValue,
    variance: SSAValue,
    momentum: float,
    epsilon: float,
) -> list[SSAValue]:
    return _batch_norm(graph, x, weight, bias, mean, variance, False, momentum, epsilon)


def _group_norm(
    graph: Graph,
    x: SSAValue,
    groups: int,
    weight: Optional = None,
    bias: Optional = None,
    epsilon: float = 1e-5,
    *_: Any,
) -> list[SSAValue]:
    shape = shape_of(x.type)
    image = x if len(shape) >= 4 else graph.reshape(x, [*shape, *[1] * (4 - len(shape))])
    value = graph.emit(
        "group_norm",
        [image, None, weight, bias],
        image.type,
        num_groups=groups,
        epsilon=_checked_epsilon(epsilon),
        channel_dim=1,
    )
    return [graph.reshape(value, shape)]


def _native_group_norm(
    graph: Graph,
    x: SSAValue,
    weight: Optional,
    bias: Optional,
    n: int,
    c: int,
    size: int,
    groups: int,
    epsilon: float,
) -> list[SSAValue]:
    return _group_norm(graph, x, groups, weight, bias, epsilon)


def _instance_norm(
    graph: Graph,
    x: SSAValue,
    weight: Optional,
    bias: Optional,
    mean: Optional,
    variance: Optional,
    use_input_stats: bool,
    momentum: float,
    epsilon: float,
    *_: Any,
) -> list[SSAValue]:
    if not use_input_stats:
        return _batch_norm(graph, x, weight, bias, mean, variance, False, momentum, epsilon)
    return _group_norm(graph, x, shape_of(x.type)[1], weight, bias, epsilon)


# Attention


def _attention(
    graph: Graph,
    query: SSAValue,
    key: SSAValue,
    value: SSAValue,
    mask: Optional = None,
    dropout: float = 0.0,
    is_causal: bool = False,
    *_: Any,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> SSAValue:
    """Scaled dot-product attention; a missing batch is added and boolean masks become additive."""
    if dropout:
        raise CompileError("attention is not compiled for training", remedy="call module.eval()")
    if not enable_gqa:
        batch = graph.shape[:-2]
        query, key, value = (
            graph.expanded(v, [*batch, *shape_of(v.type)[-2:]]) for v in (query, key, value)
        )
    shape = shape_of(query.type)
    query, key, value = (_as_rank_4(graph, v) for v in (query, key, value))
    queries, size = shape_of(query.type)[2:]
    heads, keys = shape_of(key.type)[1:3]
    if shape_of(value.type)[1] != heads:
        key, value = (_repeat_heads(graph, v, shape_of(query.type)[1]) for v in (key, value))
    added = _added(graph, mask)
    if is_causal and queries != keys:
        visible = np.tril(np.ones((1, 1, queries, keys), dtype=bool))
        added, is_causal = _additive_mask(graph, graph.constant(visible, i1)), False
    if added is not None:
        added = graph.aligned(added, (1, 1, queries, keys))
        if len(shape_of(added.type)) > 4:
            raise CompileError("attention masks of more than four dimensions are not supported")
    result = graph.emit(
        "scaled_dot_product_attention",
        [query, key, value, added],
        tensor_type(graph.element, [*shape_of(query.type)[:3], shape_of(value.type)[3]]),
        is_causal=is_causal,
        scale=1.0 / sqrt(size) if scale is None else float(scale),
    )
    return graph.reshape(result, [*shape[:-1], shape_of(value.type)[-1]])


def _as_rank_4(graph: Graph, x: SSAValue) -> SSAValue:
    """Reshapes to rank 4 with a single batch dimension."""
    shape = shape_of(x.type)
    if len(shape) > 4:
        return graph.reshape(x, [prod(shape[:-3]), *shape[-3:]])
    return graph.aligned(x, (1, 1, 1, 1))


def _added(graph: Graph, mask: Optional) -> Optional:
    if mask is None:
        return None
    return (
        _additive_mask(graph, mask) if kind_of(element_of(mask.type)) == "b" else graph.value(mask)
    )


def _additive_mask(graph: Graph, visible: SSAValue) -> SSAValue:
    """Additive mask of a boolean one: 0 for visible keys, -inf for hidden ones."""
    rank = len(shape_of(visible.type))
    shown, unseen = (
        graph.full([1] * rank, number, graph.element) for number in (0.0, float("-inf"))
    )
    result = tensor_type(graph.element, shape_of(visible.type))
    return graph.emit("where", [visible, shown, unseen], result)


def _repeat_heads(graph: Graph, x: SSAValue, heads: int) -> SSAValue:
    """Repeats keys or values for the query heads that share them."""
    batch, groups, keys, size = shape_of(x.type)
    apart = graph.reshape(x, [batch, groups, 1, keys, size])
    repeated = graph.repeat(apart, [batch, groups, heads // groups, keys, size])
    return graph.reshape(repeated, [batch, heads, keys, size])


RULES: dict[str, Rule] = {
    "linear": _linear,
    **dict.fromkeys("matmul mm bmm mv dot".split(), _matmul),
    "addmm": _addmm,
    "bilinear": _bilinear,
    "baddbmm": _addmm,
    "conv1d": _convolution,
    "conv2d": _convolution,
    "conv3d": _convolution,
    "convolution": _any_convolution,
    "_convolution": _any_convolution,
    "conv_transpose1d": _conv_transpose,
    "conv_transpose2d": _conv_transpose,
    "conv_transpose3d": _conv_transpose3d,
    "layer_norm": _layer_norm,
    "native_layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "batch_norm": _batch_norm,
    "_native_batch_norm_legit": _batch_norm,
    "_native_batch_norm_legit.no_stats": _batch_norm_of_input,
    "_weight_norm_interface": _weight_norm,
    "_native_batch_norm_legit_no_training": _batch_norm_of_inference,
    "group_norm": _group_norm,
    "native_group_norm": _native_group_norm,
    "instance_norm": _instance_norm,
    "scaled_dot_product_attention": _attention,
}
"""Rules by operation name, for all overloads."""
