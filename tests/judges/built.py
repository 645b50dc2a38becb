"""Ops of TTIR with the options that the reference project's golden tests build them with.

Its tests (tt-mlir, `test/python/golden/ttir_ops`) compute what they expect with PyTorch, and so
does this: names of ops, options and ranks of shapes are theirs, sizes are smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from tests.judges.case import Array, Case, type_of

_DRAW = np.random.default_rng(39)


def _draw(*shape: int) -> Array:
    return _DRAW.uniform(-2, 2, shape).astype(np.float32)


def _case(
    name: str,
    op: str,
    options: str,
    inputs: Sequence[Array],
    function: Callable[..., Any],
    near: float = 5e-3,
) -> Case:
    """One op on the inputs, and what a function of PyTorch gives for them."""
    import torch

    expected = function(*(torch.from_numpy(each) for each in inputs)).contiguous().numpy()
    if expected.dtype == np.int64:
        expected = expected.astype(np.int32)
    operands = ", ".join(f"%{i}" for i in range(len(inputs)))
    types = ", ".join(map(type_of, inputs))
    inside = f" <{{{options}}}>" if options else ""
    body = f'%r = "ttir.{op}"({operands}){inside} : ({types}) -> {type_of(expected)}'
    return Case(name, body, inputs, expected, 0.0 if expected.dtype.kind in "biu" else near)


def _sizes(values: Sequence[int], type_: str = "i32") -> str:
    return f"array<{type_}: {', '.join(map(str, values))}>"


def _reductions() -> Iterator[Case]:
    import torch

    given = _draw(3, 32, 40)
    kinds = {"max": torch.amax, "min": torch.amin, "mean": torch.mean, "sum": torch.sum}
    for kind, dims, keep in product(kinds, ([0], [2], [1, 2], [-1], None), (True, False)):
        axes = [0, 1, 2] if dims is None else dims

        def reduced(x: Any, kind: str = kind, axes: Any = axes, keep: bool = keep) -> Any:
            return kinds[kind](x, dim=axes, keepdim=keep)

        listed = ", ".join(f"{axis} : i32" for axis in axes)
        chosen = "" if dims is None else f"dim_arg = [{listed}], "
        name = f"{kind}_over_{'all' if dims is None else '_'.join(map(str, dims))}_{keep}"
        options = f"{chosen}keep_dim = {str(keep).lower()}"
        # Sums of numbers of both signs cancel.
        yield _case(name.replace("-", "minus_"), kind, options, [given + 4], reduced)
    for axis, keep in product((0, 2), (True, False)):
        options = f"dim_arg = [{axis} : i32], keep_dim = {str(keep).lower()}"
        yield _case(f"argmax_over_{axis}_{keep}", "argmax", options, [given],
                    lambda x, a=axis, k=keep: x.argmax(a, keepdim=k))  # fmt: skip
        yield _case(f"prod_over_{axis}_{keep}", "prod", options, [given / 8 + 1],
                    lambda x, a=axis, k=keep: x.prod(a, keepdim=k))  # fmt: skip


_POOLS = [
    ([3, 3], [1, 1], [1, 1], [0, 0, 0, 0], False),
    ([2, 2], [2, 2], [1, 1], [0, 0, 0, 0], False),
    ([4, 4], [2, 2], [1, 1], [2, 2, 2, 2], False),
    ([3, 3], [2, 2], [2, 2], [0, 0, 0, 0], False),
    ([3, 3], [2, 2], [2, 2], [1, 1, 1, 1], True),
    ([3, 3], [2, 2], [1, 1], [1, 1, 1, 1], True),
    ([3, 3], [2, 2], [1, 1], [0, 0, 0, 0], True),
]
"""Kernel, stride, dilation, padding, rounding of sizes up."""


def _pools() -> Iterator[Case]:
    from torch.nn import functional

    image = _draw(1, 16, 18, 8)

    def first(x: Any) -> Any:
        return x.permute(0, 3, 1, 2)

    for index, (kernel, stride, dilation, padding, up) in enumerate(_POOLS):
        options = (
            f"kernel = {_sizes(kernel)}, stride = {_sizes(stride)}, dilation = {_sizes(dilation)},"
            f" padding = {_sizes(padding)}, ceil_mode = {str(up).lower()}"
        )

        def largest(
            x: Any,
            k: Any = kernel,
            s: Any = stride,
            d: Any = dilation,
            p: Any = padding,
            u: Any = up,
        ) -> Any:
            return functional.max_pool2d(first(x), k, s, p[:2], d, u).permute(0, 2, 3, 1)

        yield _case(f"max_pool_{index}", "max_pool2d", options, [image], largest)
        for counted in (True, False) if dilation == [1, 1] else ():

            def mean(
                x: Any, k: Any = kernel, s: Any = stride, p: Any = padding, u: Any = up,
                c: bool = counted,
            ) -> Any:  # fmt: skip
                found = functional.avg_pool2d(first(x), k, s, p[:2], u, c)
                return found.permute(0, 2, 3, 1)

            more = f"{options}, count_include_pad = {str(counted).lower()}"
            yield _case(f"avg_pool_{index}_{counted}", "avg_pool2d", more, [image + 4], mean, 1e-2)


_CONVOLUTIONS = [
    # Input, weight, has a bias, stride, padding, dilation, groups.
    ((1, 14, 14, 3), (8, 3, 7, 7), True, 2, 3, 1, 1),
    ((1, 8, 8, 16), (24, 16, 3, 3), False, 1, 1, 1, 1),
    ((1, 7, 7, 32), (64, 32, 1, 1), True, 1, 0, 1, 1),
    ((1, 12, 12, 16), (16, 1, 3, 3), True, 1, 1, 1, 16),
    ((1, 12, 12, 16), (16, 1, 3, 3), True, 2, 1, 1, 16),
    ((1, 16, 16, 3), (12, 3, 4, 4), True, 4, 0, 1, 1),
    ((2, 12, 12, 8), (16, 8, 3, 3), True, 1, 2, 2, 1),
    ((1, 10, 10, 16), (32, 4, 3, 3), False, 1, 1, 1, 4),
]


def _convolutions() -> Iterator[Case]:
    from torch.nn import functional

    for index, (shape, weight, biased, stride, pad, dilation, groups) in enumerate(_CONVOLUTIONS):
        inputs = [_draw(*shape) + 4, _draw(*weight) + 4]
        inputs += [_draw(1, 1, 1, weight[0])] if biased else []
        options = (
            f"stride = {_sizes([stride] * 2)}, padding = {_sizes([pad] * 4)},"
            f" dilation = {_sizes([dilation] * 2)}, groups = {groups} : i32"
        )

        def convolved(
            x: Any, w: Any, b: Any = None, s: int = stride, p: int = pad, d: int = dilation,
            g: int = groups,
        ) -> Any:  # fmt: skip
            bias = None if b is None else b.flatten()
            found = functional.conv2d(x.permute(0, 3, 1, 2), w, bias, s, p, d, g)
            return found.permute(0, 2, 3, 1)

        yield _case(f"conv_{index}", "conv2d", options, inputs, convolved)


def _products() -> Iterator[Case]:
    import torch

    shapes = [((16, 24), (24, 8)), ((4, 16, 24), (4, 24, 8)), ((4, 2, 16, 24), (1, 1, 24, 8))]
    for index, (first, second) in enumerate(shapes):
        for turned, also in product((False, True), (False, True)):
            a, b = np.abs(_draw(*first)), np.abs(_draw(*second))
            a, b = a.swapaxes(-1, -2) if turned else a, b.swapaxes(-1, -2) if also else b
            options = f"transpose_a = {str(turned).lower()}, transpose_b = {str(also).lower()}"

            def multiplied(x: Any, y: Any, t: bool = turned, u: bool = also) -> Any:
                return torch.matmul(x.mT if t else x, y.mT if u else y)

            inputs = [np.ascontiguousarray(a), np.ascontiguousarray(b)]
            name = f"matmul_{index}_{turned}_{also}"
            yield _case(name, "matmul", options, inputs, multiplied)


def _normalizations() -> Iterator[Case]:
    from torch.nn import functional

    for axis in (0, 1, 2):
        yield _case(f"softmax_{axis}", "softmax", f"dimension = {axis} : si32",
                    [_draw(4, 33, 40)], lambda x, a=axis: x.softmax(a))  # fmt: skip
    for shape, weighted in product(((32, 40), (2, 4, 64)), (True, False)):
        x, weight, bias = _draw(*shape), _draw(shape[-1]), _draw(shape[-1]) + 12
        options = f"normalized_shape = array<i64: {shape[-1]}>, epsilon = 1.0e-5 : f32"
        weights = [weight] if weighted else []
        name = f"norm_{len(shape)}_{weighted}"

        def rms(x: Any, w: Any = None) -> Any:
            return functional.rms_norm(x, x.shape[-1:], w, 1e-5)

        def layer(x: Any, *others: Any) -> Any:
            return functional.layer_norm(x, x.shape[-1:], *((None, *others)[-2:]))

        segments = f"operandSegmentSizes = {_sizes([1, len(weights), 0])}"
        yield _case(f"rms_{name}", "rms_norm", f"{options}, {segments}", [x, *weights], rms)
        segments = f"operandSegmentSizes = {_sizes([1, len(weights), 1])}"
        inputs = [x, *weights, bias]
        yield _case(f"layer_{name}", "layer_norm", f"{options}, {segments}", inputs, layer)


def _movements() -> Iterator[Case]:
    import torch
    from torch.nn import functional

    for index, (shapes, dim) in enumerate(
        [([(4, 6), (4, 64)], 1), ([(2, 3, 4, 32), (2, 3, 4, 8), (2, 3, 4, 6)], 3),
         ([(3, 3, 4, 4), (2, 3, 4, 4), (1, 3, 4, 4)], 0)]
    ):  # fmt: skip
        yield _case(f"concat_{index}", "concat", f"dim = {dim} : si32",
                    [_draw(*shape) for shape in shapes],
                    lambda *x, d=dim: torch.cat(x, d), 1e-6)  # fmt: skip
    for index, (shape, padding) in enumerate(
        [((1, 8, 6, 6), [0, 1, 2, 3, 4, 5, 6, 7]),
         ((1, 4, 8, 8, 6), [0, 0, 1, 1, 1, 1, 1, 1, 0, 0]),
         ((2, 6, 4, 4, 5), [1, 1, 1, 1, 1, 1, 0, 0, 0, 0])]
    ):  # fmt: skip
        pairs = [padding[i : i + 2] for i in range(0, len(padding), 2)]
        backwards = [number for pair in pairs[::-1] for number in pair]
        yield _case(f"pad_{index}", "pad", f"padding = {_sizes(padding)}, value = 0.0 : f32",
                    [_draw(*shape)], lambda x, p=backwards: functional.pad(x, p), 1e-6)  # fmt: skip
    given = _draw(2, 3, 4, 5)
    yield _case("permute", "permute", "permutation = array<i64: 2, 0, 3, 1>", [given],
                lambda x: x.permute(2, 0, 3, 1), 1e-6)  # fmt: skip
    yield _case("reverse", "reverse", "dimensions = array<i64: 1, 3>", [given],
                lambda x: x.flip(1, 3), 1e-6)  # fmt: skip
    yield _case("repeat", "repeat", "repeat_dimensions = array<i64: 1, 2, 1, 3>", [given],
                lambda x: x.repeat(1, 2, 1, 3), 1e-6)  # fmt: skip
    for dim in (0, 1, 3):
        yield _case(f"repeat_interleave_{dim}", "repeat_interleave",
                    f"repeats = 2 : ui32, dim = {dim} : si32", [given],
                    lambda x, d=dim: x.repeat_interleave(2, d), 1e-6)  # fmt: skip
        yield _case(f"cumsum_{dim}", "cumsum", f"dim = {dim} : i64", [given + 4],
                    lambda x, d=dim: x.cumsum(d))  # fmt: skip
    for dim, descending in product((-1, 0), (True, False)):
        name = f"sort_{'last' if dim else 'first'}_{descending}"
        case = _case(name, "sort", f"dim = {dim} : si32, descending = {str(descending).lower()},"
                     " stable = false", [_draw(8, 20)],
                     lambda x, d=dim, o=descending: x.sort(d, o).values, 1e-6)  # fmt: skip
        values = type_of(case.expected)
        body = case.body.replace("%r =", "%r, %places =", 1)
        yield Case(name, body.replace(f"-> {values}", f"-> ({values}, tensor<8x20xi32>)"),
                   case.inputs, case.expected, case.near)  # fmt: skip


def built() -> list[Case]:
    """All of them; needs PyTorch."""
    kinds = (_reductions, _pools, _convolutions, _products, _normalizations, _movements)
    return [case for kind in kinds for case in kind()]
