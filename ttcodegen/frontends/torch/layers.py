"""Layers: products, convolutions, pooling, normalizations, attention, resizing.

Images are (N, C, H, W) here and (N, H, W, C) in TTIR; the permutations around each op cancel
those of its neighbours when the program is compiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod, sqrt
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from ttcodegen.diagnostics import CompileError
from ttcodegen.dialects.datatypes import element_of, i1, shape_of, tensor_type
from ttcodegen.frontends.torch.graph import Graph, Rule, kind_of, unsupported_argument

Optional = SSAValue | None


def _linear(graph: Graph, x: SSAValue, weight: SSAValue, bias: Optional = None) -> SSAValue:
    x = graph.value(x)
    return graph.emit("linear", [x, weight, bias], graph.type, transpose_b=True)


def _matmul(graph: Graph, a: SSAValue, b: SSAValue) -> SSAValue:
    """Vectors become matrices of one row or column; batches broadcast."""
    a, b = graph.value(a), graph.value(b)
    return graph.emit("matmul", [a, b], graph.type)


def _addmm(
    graph: Graph, bias: SSAValue, a: SSAValue, b: SSAValue, beta: float = 1, alpha: float = 1
) -> SSAValue:
    product = _matmul(graph, a, b)
    if alpha != 1:
        product = graph.apply("multiply", product, alpha)
    if beta == 0:
        return product
    return graph.apply("add", bias if beta == 1 else graph.apply("multiply", bias, beta), product)


# Convolutions


def _each(values: int | Sequence[int], count: int) -> list[int]:
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
    """A convolution over one, two or three dimensions, by the rank of its kernel."""
    spatial = len(shape_of(weight.type)) - 2
    batched = len(shape_of(x.type)) == spatial + 2
    if not batched:
        x = graph.reshape(x, [1, *shape_of(x.type)])
    stride, dilation = _each(stride, spatial), _each(dilation, spatial)
    before, after = _padding(padding, shape_of(weight.type)[2:], dilation)
    image = _channels_last(graph, x)
    attributes: dict[str, Any] = {"stride": stride, "padding": [*before, *after], "groups": groups}
    if spatial == 3:
        if any(step != 1 for step in dilation) or before != after:
            raise unsupported_argument("conv3d", "dilation", dilation)
        attributes["padding"] = before
    else:
        attributes["dilation"] = dilation
    shape = graph.shape if batched else (1, *graph.shape)
    result = graph.emit(
        f"conv{spatial}d",
        [image, weight, _bias(graph, bias, spatial)],
        tensor_type(graph.element, [shape[0], *shape[2:], shape[1]]),
        **attributes,
    )
    return graph.reshape(_channels_first(graph, result), graph.shape)


def _padding(
    padding: Any, kernel: Sequence[int], dilation: Sequence[int]
) -> tuple[list[int], list[int]]:
    """What is put before and after each dimension; "same" puts what is odd after."""
    if padding == "valid":
        padding = 0
    if padding == "same":
        total = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
        return [t // 2 for t in total], [t - t // 2 for t in total]
    widths = _each(padding, len(kernel))
    return widths, widths


def _bias(graph: Graph, bias: Optional, spatial: int) -> Optional:
    if bias is None:
        return None
    return graph.reshape(bias, [*[1] * (spatial + 1), shape_of(bias.type)[0]])


def _channels_last(graph: Graph, x: SSAValue) -> SSAValue:
    rank = len(shape_of(x.type))
    return graph.permute(x, [0, *range(2, rank), 1])


def _channels_first(graph: Graph, x: SSAValue) -> SSAValue:
    rank = len(shape_of(x.type))
    return graph.permute(x, [0, rank - 1, *range(1, rank - 1)])


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
    if len(shape_of(x.type)) == spatial + 1:
        x = graph.reshape(x, [1, *shape_of(x.type)])
    channels, *sizes = graph.shape[-spatial - 1 :]
    if spatial == 1:
        # A signal is an image of one row.
        batch, inner, length = shape_of(x.type)
        x = graph.reshape(x, [batch, inner, 1, length])
        inputs, outputs, columns = shape_of(weight.type)
        weight = graph.reshape(weight, [inputs, outputs, 1, columns])
        stride, padding, dilation = (
            [each, _each(value, 1)[0]] for each, value in ((1, stride), (0, padding), (1, dilation))
        )
        output_padding = [0, _each(output_padding, 1)[0]]
        sizes = [1, *sizes]
    before = _each(padding, 2)
    result = graph.emit(
        "conv_transpose2d",
        [_channels_last(graph, x), weight, _bias(graph, bias, 2)],
        tensor_type(graph.element, [shape_of(x.type)[0], *sizes, channels]),
        stride=_each(stride, 2),
        padding=[*before, *before],
        dilation=_each(dilation, 2),
        output_padding=_each(output_padding, 2),
        groups=groups,
    )
    return graph.reshape(_channels_first(graph, result), graph.shape)


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
    if len(shape_of(weight.type)) > 4:
        raise CompileError("transposed convolutions are supported over one or two dimensions")
    return _conv_transpose(
        graph, x, weight, bias, stride, padding, output_padding, groups, dilation
    )


# Pooling


def _pooled(graph: Graph, name: str, x: SSAValue, spatial: int, **attributes: Any) -> SSAValue:
    """A pool over the last dimensions; images of one dimension are one high."""
    batched = len(shape_of(x.type)) == spatial + 2
    shape = graph.shape if batched else (1, *graph.shape)
    image = x if batched else graph.reshape(x, [1, *shape_of(x.type)])
    if spatial == 1:
        n, c, length = shape_of(image.type)
        image = graph.reshape(image, [n, c, 1, length])
        shape = (*shape[:2], 1, shape[2])
    image = _channels_last(graph, image)
    result = graph.emit(
        name, [image], tensor_type(graph.element, [shape[0], *shape[2:], shape[1]]), **attributes
    )
    return graph.reshape(_channels_first(graph, result), graph.shape)


def _pool_window(
    spatial: int, kernel: Any, stride: Any, padding: Any, dilation: Any = 1
) -> dict[str, Any]:
    kernel = _each(kernel, spatial)
    stride = _each(stride, spatial) if stride not in (None, []) else kernel
    padding, dilation = _each(padding, spatial), _each(dilation, spatial)
    if spatial == 1:
        kernel, stride, padding, dilation = (
            [1, *kernel],
            [1, *stride],
            [0, *padding],
            [1, *dilation],
        )
    return {"kernel": kernel, "stride": stride, "padding": [*padding, *padding],
            "dilation": dilation}  # fmt: skip


def _max_pool(spatial: int) -> Rule:
    def rule(
        graph: Graph,
        x: SSAValue,
        kernel: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> SSAValue:
        window = _pool_window(spatial, kernel, stride, padding, dilation)
        return _pooled(graph, "max_pool2d", x, spatial, ceil_mode=ceil_mode, **window)

    return rule


def _avg_pool(spatial: int) -> Rule:
    def rule(
        graph: Graph,
        x: SSAValue,
        kernel: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> SSAValue:
        if divisor_override is not None:
            raise unsupported_argument("avg_pool2d", "divisor_override", divisor_override)
        window = _pool_window(spatial, kernel, stride, padding)
        return _pooled(
            graph, "avg_pool2d", x, spatial, ceil_mode=ceil_mode,
            count_include_pad=count_include_pad, **window,
        )  # fmt: skip

    return rule


def _adaptive(name: str, spatial: int) -> Rule:
    """A pool whose windows are as large as the result is small."""

    def rule(graph: Graph, x: SSAValue, size: Any) -> SSAValue:
        found, wanted = shape_of(x.type)[-spatial:], graph.shape[-spatial:]
        if all(size == 1 for size in wanted):
            rank = len(shape_of(x.type))
            reduction = "max" if name == "max_pool2d" else "mean"
            return graph.reduce(reduction, x, list(range(rank - spatial, rank)))
        if any(a % b for a, b in zip(found, wanted, strict=True)):
            raise CompileError(
                f"adaptive pooling from {found} to {wanted} needs windows of different sizes",
                remedy="choose sizes that divide the input's",
            )
        kernel = [a // b for a, b in zip(found, wanted, strict=True)]
        return _pooled(graph, name, x, spatial, **_pool_window(spatial, kernel, None, 0))

    return rule


def _first(rule: Rule) -> Rule:
    """A pool that gives places as well, which nobody may use."""

    def wrapped(graph: Graph, *arguments: Any, **named: Any) -> list[SSAValue]:
        value = rule(graph, *arguments, **named)
        assert isinstance(value, SSAValue)
        return [value]

    return wrapped


# Normalizations


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
        "layer_norm", [x, weight, bias], x.type, normalized_shape=list(shape), epsilon=epsilon
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
    if training or mean is None or variance is None:
        raise CompileError(
            "a batch norm that takes the statistics of its input is not compiled",
            remedy="call module.eval() before",
        )
    channels = shape_of(mean.type)
    element = element_of(x.type)
    scale = weight if weight is not None else graph.full(channels, 1.0, element)
    offset = bias if bias is not None else graph.full(channels, 0.0, element)
    operands = [x, *(graph.typecast(v, element) for v in (scale, offset, mean, variance))]
    return [graph.emit("batch_norm_inference", operands, x.type, epsilon=epsilon, dimension=1)]


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
        epsilon=epsilon,
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
    """Heads that stand alone get a batch of one. A mask of booleans becomes what is added to the
    scores."""
    if dropout:
        raise CompileError("attention is not compiled for training", remedy="call module.eval()")
    shape = shape_of(query.type)
    query, key, value = (_four(graph, v) for v in (query, key, value))
    queries, size = shape_of(query.type)[2:]
    keys = shape_of(key.type)[2]
    if shape_of(value.type) != shape_of(key.type):
        return _spelled_out(graph, query, key, value, _added(graph, mask), is_causal, scale)
    added = _added(graph, mask)
    if is_causal and queries != keys:
        visible = np.tril(np.ones((1, 1, queries, keys), dtype=bool))
        added, is_causal = _hidden(graph, graph.constant(visible, i1)), False
    if added is not None:
        added = graph.aligned(added, (1, 1, queries, keys))
        if len(shape_of(added.type)) > 4:
            raise CompileError("attention masks of more than four dimensions are not supported")
    result = graph.emit(
        "scaled_dot_product_attention",
        [query, key, value, added],
        query.type,
        is_causal=is_causal,
        scale=1.0 / sqrt(size) if scale is None else float(scale),
    )
    return graph.reshape(result, [*shape[:-1], shape_of(value.type)[-1]])


def _four(graph: Graph, x: SSAValue) -> SSAValue:
    """Batch and heads as one dimension each."""
    shape = shape_of(x.type)
    if len(shape) > 4:
        return graph.reshape(x, [prod(shape[:-3]), *shape[-3:]])
    return graph.aligned(x, (1, 1, 1, 1))


def _added(graph: Graph, mask: Optional) -> Optional:
    if mask is None:
        return None
    return _hidden(graph, mask) if kind_of(element_of(mask.type)) == "b" else graph.value(mask)


def _hidden(graph: Graph, visible: SSAValue) -> SSAValue:
    """Zero where a key is visible, minus infinity where it is not."""
    rank = len(shape_of(visible.type))
    shown, unseen = (
        graph.full([1] * rank, number, graph.element) for number in (0.0, float("-inf"))
    )
    result = tensor_type(graph.element, shape_of(visible.type))
    return graph.emit("where", [visible, shown, unseen], result)


def _spelled_out(
    graph: Graph,
    query: SSAValue,
    key: SSAValue,
    value: SSAValue,
    added: Optional,
    is_causal: bool,
    scale: float | None,
) -> SSAValue:
    """By products and a softmax, for values of another size than the keys."""
    size = shape_of(query.type)[-1]
    scores = graph.matmul(query, key, transpose_b=True)
    factor = 1.0 / sqrt(size) if scale is None else scale
    scores = graph.like("multiply", scores, graph.number(factor, scores))
    if is_causal:
        visible = np.tril(np.ones((1, 1, *shape_of(scores.type)[-2:]), dtype=bool))
        added = _hidden(graph, graph.constant(visible, i1))
    if added is not None:
        scores = graph.broadcasting("add", scores, added)
    weights = graph.like("softmax", scores, dimension=3, numericStable=True)
    return graph.reshape(graph.matmul(weights, value), graph.shape)


# Resizing


RULES: dict[str, Rule] = {
    "linear": _linear,
    **dict.fromkeys("matmul mm bmm mv dot".split(), _matmul),
    "addmm": _addmm,
    "baddbmm": _addmm,
    "conv1d": _convolution,
    "conv2d": _convolution,
    "conv3d": _convolution,
    "convolution": _any_convolution,
    "_convolution": _any_convolution,
    "conv_transpose1d": _conv_transpose,
    "conv_transpose2d": _conv_transpose,
    "max_pool1d": _max_pool(1),
    "max_pool2d": _max_pool(2),
    "max_pool2d_with_indices": _first(_max_pool(2)),
    "avg_pool1d": _avg_pool(1),
    "avg_pool2d": _avg_pool(2),
    "adaptive_avg_pool1d": _adaptive("avg_pool2d", 1),
    "adaptive_avg_pool2d": _adaptive("avg_pool2d", 2),
    "_adaptive_avg_pool2d": _adaptive("avg_pool2d", 2),
    "adaptive_max_pool2d": _first(_adaptive("max_pool2d", 2)),
    "layer_norm": _layer_norm,
    "native_layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "batch_norm": _batch_norm,
    "_native_batch_norm_legit": _batch_norm,
    "_native_batch_norm_legit_no_training": _batch_norm_of_inference,
    "group_norm": _group_norm,
    "native_group_norm": _native_group_norm,
    "instance_norm": _instance_norm,
    "scaled_dot_product_attention": _attention,
}
"""Operations by their names, for all their overloads."""
