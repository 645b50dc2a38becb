"""More ops of TTIR with the options and element types of the reference project's golden tests.

Elementwise ops of each type and with shapes that broadcast, convolutions of one and three
dimensions and transposed ones, attention, norms, slices, scatters, orders: as in
tests/judges/built.py, PyTorch computes what is expected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np

from tests.judges.case import Array, Case, element_of, type_of

_DRAW = np.random.default_rng(41)
_DTYPES = {
    "f32": np.dtype(np.float32),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "i1": np.dtype(np.bool_),
    "ui8": np.dtype(np.uint8),
    "ui16": np.dtype(np.uint16),
    "ui32": np.dtype(np.uint32),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
}
_NEAR = {"bf16": 2e-2, "f32": 5e-3}
_FLOATS = ("f32", "bf16")


def _draw(shape: Sequence[int], element: str = "f32", low: float = -2, high: float = 2) -> Array:
    dtype = _DTYPES[element]
    if element in _FLOATS:
        return _DRAW.uniform(low, high, shape).astype(dtype)
    if element == "i1":
        return _DRAW.integers(0, 2, shape).astype(dtype)
    limits = np.iinfo(dtype)
    least, most = max(limits.min, -(2**20)), min(limits.max, 2**20)
    return _DRAW.integers(least, most, shape, endpoint=True).astype(dtype)


def _tensor(array: Array) -> Any:
    import torch

    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.astype(np.float32)).bfloat16()
    # PyTorch computes little with the wider unsigned types.
    is_wide = array.dtype.kind == "u" and array.dtype.itemsize > 1
    return torch.from_numpy(array.astype(np.int64) if is_wide else array)


def _case(
    name: str,
    op: str,
    inputs: Sequence[Array],
    function: Callable[..., Any],
    options: str = "",
    result: str = "",
    near: float | None = None,
) -> Case:
    """One op on the inputs, and what a function of PyTorch gives for them, in the element type of
    the first input or in that of the `result`."""
    element = result or element_of(inputs[0])
    found = function(*map(_tensor, inputs)).contiguous()
    array = found.float().numpy() if found.is_floating_point() else found.numpy()
    expected = array.astype(_DTYPES[element])
    operands = ", ".join(f"%{i}" for i in range(len(inputs)))
    inside = f" <{{{options}}}>" if options else ""
    types = ", ".join(map(type_of, inputs))
    body = f'%r = "ttir.{op}"({operands}){inside} : ({types}) -> {type_of(expected)}'
    allowed = _NEAR.get(element, 0.0) if near is None else near
    return Case(name.replace("-", "m"), body, inputs, expected, allowed)


def _sizes(values: Sequence[int], type_: str = "i32") -> str:
    return f"array<{type_}: {', '.join(map(str, values))}>"


def _unary() -> Iterator[Case]:
    import torch
    from torch.nn import functional

    of_floats: dict[str, tuple[Callable[..., Any], float, float]] = {
        "abs": (torch.abs, -2, 2), "acos": (torch.acos, -0.9, 0.9),
        "asin": (torch.asin, -0.99, 0.99), "asinh": (torch.asinh, -2, 2),
        "atan": (torch.atan, -2, 2), "cbrt": (lambda x: x.sign() * x.abs() ** (1 / 3), -2, 2),
        "ceil": (torch.ceil, -3, 3), "cos": (torch.cos, -1.4, 1.4), "erf": (torch.erf, -2, 2),
        "erfc": (torch.erfc, -2, 2), "exp": (torch.exp, -2, 2), "expm1": (torch.expm1, -2, 2),
        "floor": (torch.floor, -3, 3), "gelu": (functional.gelu, -2, 2),
        "isfinite": (torch.isfinite, -2, 2), "log": (torch.log, 1.2, 4),
        "log1p": (torch.log1p, 0.2, 2), "logical_not": (torch.logical_not, -2, 2),
        "mish": (functional.mish, -2, 2), "neg": (torch.neg, -2, 2),
        "reciprocal": (torch.reciprocal, 0.1, 2), "relu": (torch.relu, -2, 2),
        "relu6": (functional.relu6, -8, 8), "rsqrt": (torch.rsqrt, 0.1, 3),
        "sigmoid": (torch.sigmoid, -4, 4), "sign": (torch.sign, -2, 2),
        "hardsigmoid": (functional.hardsigmoid, -4, 4), "silu": (functional.silu, -2, 2),
        "sin": (torch.sin, -2, 2), "sqrt": (torch.sqrt, 0, 4), "tan": (torch.tan, -1.4, 1.4),
        "tanh": (torch.tanh, -2, 2), "square": (torch.square, -2, 2), "exp2": (torch.exp2, -2, 2),
        "softsign": (functional.softsign, -2, 2), "signbit": (torch.signbit, -2, 2),
        "selu": (functional.selu, -2, 2), "frac": (torch.frac, -3, 3),
        "trunc": (torch.trunc, -3, 3),
    }  # fmt: skip
    for (op, (function, low, high)), element in product(of_floats.items(), _FLOATS):
        yield _case(f"{op}_{element}", op, [_draw((40, 33), element, low, high)], function)
    of_integers = {"abs": torch.abs, "neg": torch.neg, "relu": torch.relu, "sign": torch.sign,
                   "isfinite": torch.isfinite, "logical_not": torch.logical_not,
                   "bitwise_not": torch.bitwise_not}  # fmt: skip
    for op, function in of_integers.items():
        yield _case(f"{op}_i32", op, [_draw((40, 33), "i32")], function)
    for slope in (0.01, 0.1, 0.2):
        yield _case(f"leaky_relu_{str(slope)[2:]}", "leaky_relu", [_draw((40, 33))],
                    lambda x, s=slope: functional.leaky_relu(x, s),
                    f"parameter = {slope} : f32")  # fmt: skip


_BROADCASTING = [
    ((1, 1, 1), (8, 16, 32)), ((1, 1, 32), (8, 16, 32)), ((1, 16, 32), (8, 16, 32)),
    ((8, 16, 32), (1, 1, 1)), ((8, 16, 1), (1, 1, 32)), ((1, 1, 32), (8, 16, 1)),
    ((8, 1, 32), (8, 16, 1)), ((8, 16, 1), (8, 1, 32)),
]  # fmt: skip


def _binary() -> Iterator[Case]:
    import torch

    arithmetic = {"add": torch.add, "subtract": torch.sub, "multiply": torch.mul,
                  "maximum": torch.maximum, "minimum": torch.minimum}  # fmt: skip
    logical = {"logical_and": torch.logical_and, "logical_or": torch.logical_or,
               "logical_xor": torch.logical_xor}  # fmt: skip
    compared = {"eq": torch.eq, "ne": torch.ne, "gt": torch.gt, "ge": torch.ge, "lt": torch.lt,
                "le": torch.le}  # fmt: skip
    shape = (33, 40)
    for (op, function), element in product(arithmetic.items(), (*_FLOATS, "i32", "i64")):
        pair = [_draw(shape, element) // 1024 if element[0] == "i" else _draw(shape, element)
                for _ in range(2)]  # fmt: skip
        yield _case(f"{op}_{element}", op, pair, function, near=_NEAR.get(element, 0) * 2)
    for (op, function), element in product(compared.items(), (*_FLOATS, "i32", "i64", "ui8")):
        first, second = _draw(shape, element), _draw(shape, element)
        second[::3] = first[::3]
        yield _case(f"{op}_{element}", op, [first, second], function, result="i1")
    for (op, function), element in product(logical.items(), (*_FLOATS, "i32", "i64", "i1")):
        first, second = _draw(shape, element), _draw(shape, element)
        first[::2], second[:, ::2] = 0, 0
        yield _case(f"{op}_{element}", op, [first, second], function)
    for element in _FLOATS:
        positive = [_draw(shape, element, 0.1, 2) for _ in range(2)]
        yield _case(f"pow_{element}", "pow", positive, torch.pow)
        yield _case(f"div_{element}", "div", positive, torch.div)
        yield _case(f"atan2_{element}", "atan2", positive, torch.atan2)
        for kind in ("none", "tanh"):

            def backward(grad: Any, x: Any, kind: str = kind) -> Any:
                return torch.ops.aten.gelu_backward(grad, x, approximate=kind)

            yield _case(f"gelu_bw_{kind}_{element}", "gelu_bw",
                        [_draw(shape, element, 0.5, 2), _draw(shape, element, 0.2, 2)], backward,
                        f'approximate = "{kind}"')  # fmt: skip
    divided = [_draw(shape, "f32", -8, 8), _draw(shape, "f32", 1, 3)]
    yield _case("remainder_f32", "remainder", divided, torch.remainder)
    integers = [_draw(shape, "i32"), np.abs(_draw(shape, "i32")) + 1]
    yield _case("remainder_i32", "remainder", integers, torch.remainder)
    yield from _bitwise()
    for index, shapes in enumerate(_BROADCASTING):
        for (op, function), element in product(
            ({**arithmetic, "div": torch.div}).items(), ("f32", "i32")
        ):
            if (op, element) == ("div", "i32"):
                continue
            pair = [_draw(each, element, 0.5, 2) for each in shapes]
            yield _case(f"{op}_broadcast_{index}_{element}", op, pair, function)


def _bitwise() -> Iterator[Case]:
    import torch

    ops = {"bitwise_and": torch.bitwise_and, "bitwise_or": torch.bitwise_or,
           "bitwise_xor": torch.bitwise_xor}  # fmt: skip
    for (op, function), element in product(ops.items(), ("i32", "ui32", "ui16", "ui8")):
        pair = [_draw((33, 40), element) for _ in range(2)]
        yield _case(f"{op}_{element}", op, pair, function)
    for element in ("i32", "ui32", "ui16"):
        bits = 16 if element == "ui16" else 32
        given = _draw((33, 40), element)
        amounts = _DRAW.integers(0, bits, (33, 40)).astype(_DTYPES[element])
        pair = [given, amounts]

        def right(x: Any, y: Any, bits: int = bits) -> Any:
            return (x.long() & (2**bits - 1)) >> y.long()

        yield _case(f"shift_right_{element}", "logical_right_shift", pair, right)
        yield _case(f"shift_left_{element}", "logical_left_shift", pair,
                    lambda x, y: x.long() << y.long())  # fmt: skip


_TERNARY = [
    ((32, 32), (1, 32), (32, 32)), ((32, 64), (32, 64), (1, 64)), ((1, 32), (64, 32), (64, 1)),
    ((1, 16, 32), (8, 16, 32), (8, 16, 32)), ((8, 16, 32), (1, 1, 32), (1, 1, 32)),
    ((1, 1, 32), (1, 1, 32), (8, 16, 32)), ((1, 16, 32), (8, 1, 32), (8, 16, 1)),
    ((1, 4, 1), (1, 4, 68), (1, 1, 1)), ((1, 1, 1, 4), (1, 1, 1, 1), (1, 1, 1, 1)),
]  # fmt: skip


def _ternary() -> Iterator[Case]:
    import torch

    def where(condition: Any, x: Any, y: Any) -> Any:
        return torch.where(condition != 0, x, y)

    for index, shapes in enumerate(_TERNARY):
        for kinds in (("f32", "f32", "f32"), ("f32", "i32", "i32"), ("bf16", "bf16", "bf16")):
            given = [_draw(*pair) for pair in zip(shapes, kinds, strict=True)]
            given[0] = (given[0] > 0).astype(given[0].dtype)
            yield _case(f"where_{index}_{'_'.join(kinds)}", "where", given, where,
                        result=kinds[1], near=1e-6)  # fmt: skip
        for value, element in product((np.nan, np.inf, -np.inf), _FLOATS):
            condition = np.ones(shapes[0], _DTYPES[element])
            other = np.full(shapes[2], value, _DTYPES[element])
            yield _case(f"where_{index}_{value}_{element}", "where",
                        [condition, _draw(shapes[1], element), other], where,
                        near=1e-6)  # fmt: skip
    for element in (*_FLOATS, "i32", "i64"):
        given = [_draw((33, 40), element) for _ in range(3)]
        yield _case(f"clamp_tensor_{element}", "clamp_tensor", given, torch.clamp)
        low, high = ("-0.5 : f32", "0.8 : f32") if element in _FLOATS else ("-300 : i32", "3 : i32")
        bounds = (-0.5, 0.8) if element in _FLOATS else (-300, 3)
        yield _case(f"clamp_scalar_{element}", "clamp_scalar", given[:1],
                    lambda x, b=bounds: x.clamp(*b), f"min = {low}, max = {high}")  # fmt: skip


def _windows() -> Iterator[Case]:
    """Convolutions of one and three dimensions, and transposed ones."""
    from torch.nn import functional

    # Input (batch, length, channels), weight, bias, stride, padding, dilation, groups.
    lines = [
        ((1, 32, 24), (16, 24, 3), True, 1, (1, 1), 1, 1),
        ((1, 32, 24), (40, 24, 3), False, 1, (0, 0), 1, 1),
        ((1, 32, 16), (32, 16, 3), True, 2, (0, 0), 1, 1),
        ((1, 64, 32), (32, 32, 3), True, 1, (2, 2), 2, 1),
        ((1, 32, 16), (16, 16, 3), True, 1, (0, 1), 1, 1),
        ((1, 32, 24), (24, 1, 3), True, 1, (1, 1), 1, 24),
        ((4, 32, 32), (24, 32, 3), True, 1, (1, 1), 1, 1),
    ]
    for index, (shape, weight, biased, stride, padding, dilation, groups) in enumerate(lines):

        def line(
            x: Any, w: Any, b: Any = None, s: int = stride, p: Any = padding, d: int = dilation,
            g: int = groups,
        ) -> Any:  # fmt: skip
            padded = functional.pad(x.permute(0, 2, 1), p)
            bias = None if b is None else b.flatten()
            return functional.conv1d(padded, w, bias, s, 0, d, g).permute(0, 2, 1)

        inputs = [_draw(shape) + 4, _draw(weight) + 4]
        inputs += [_draw((1, 1, weight[0]))] if biased else []
        options = (
            f"stride = {stride} : i32, padding = {_sizes(padding)}, dilation = {dilation} : i32,"
            f" groups = {groups} : i32"
        )
        yield _case(f"conv1d_{index}", "conv1d", inputs, line, options)
    yield from _transposed()
    yield from _volumes()


def _transposed() -> Iterator[Case]:
    from torch.nn import functional

    # Input, weight (in, out, height, width), bias, stride, padding, output padding.
    images = [
        ((1, 4, 4, 24), (24, 16, 4, 4), True, 2, 1, 0),
        ((1, 8, 8, 16), (16, 3, 4, 4), False, 2, 1, 0),
        ((1, 8, 8, 24), (24, 16, 2, 2), True, 2, 0, 0),
        ((1, 7, 7, 24), (24, 24, 4, 4), True, 2, 1, 0),
        ((1, 8, 8, 16), (16, 21, 2, 2), True, 2, 0, 0),
        ((1, 8, 8, 16), (16, 24, 3, 3), True, 2, 1, 1),
        ((1, 4, 4, 16), (16, 24, 5, 5), True, 4, 2, 1),
        ((1, 6, 6, 8), (8, 8, 8, 8), True, 4, 2, 0),
        ((1, 8, 8, 24), (24, 16, 3, 3), True, 1, 1, 0),
        ((3, 8, 8, 16), (16, 8, 4, 4), True, 2, 1, 0),
    ]
    for index, (shape, weight, biased, stride, padding, more) in enumerate(images):

        def image(
            x: Any, w: Any, b: Any = None, s: int = stride, p: int = padding, o: int = more
        ) -> Any:
            bias = None if b is None else b.flatten()
            found = functional.conv_transpose2d(x.permute(0, 3, 1, 2), w, bias, s, p, o)
            return found.permute(0, 2, 3, 1)

        inputs = [_draw(shape) + 4, _draw(weight) + 4]
        inputs += [_draw((1, 1, 1, weight[1]))] if biased else []
        options = (
            f"stride = {stride} : i32, padding = {padding} : i32, output_padding = {more} : i32,"
            " dilation = 1 : i32, groups = 1 : i32"
        )
        yield _case(f"conv_transpose_{index}", "conv_transpose2d", inputs, image, options)


def _volumes() -> Iterator[Case]:
    from torch.nn import functional

    # Input (batch, depth, height, width, channels), weight, bias, stride, padding.
    volumes = [
        ((1, 4, 10, 10, 4), (16, 4, 3, 3, 3), False, [1, 1, 1], [0, 0, 0]),
        ((1, 4, 10, 10, 4), (16, 4, 3, 3, 3), True, [1, 1, 1], [0, 0, 0]),
        ((1, 4, 10, 10, 16), (32, 16, 3, 3, 3), True, [2, 2, 2], [1, 1, 1]),
        ((1, 4, 8, 8, 32), (32, 32, 3, 3, 3), True, [1, 1, 1], [1, 1, 1]),
        ((1, 6, 8, 8, 8), (32, 8, 5, 5, 5), False, [1, 1, 1], [0, 0, 0]),
        ((1, 4, 8, 8, 64), (48, 64, 1, 1, 1), True, [1, 1, 1], [0, 0, 0]),
        ((1, 5, 8, 8, 24), (24, 24, 3, 1, 1), False, [2, 1, 1], [0, 0, 0]),
        ((1, 4, 8, 8, 32), (16, 32, 2, 2, 2), False, [1, 1, 1], [0, 0, 0]),
    ]
    for index, (shape, weight, biased, strides, paddings) in enumerate(volumes):

        def volume(
            x: Any, w: Any, b: Any = None, s: Any = tuple(strides), p: Any = tuple(paddings)
        ) -> Any:
            bias = None if b is None else b.flatten()
            return functional.conv3d(x.permute(0, 4, 1, 2, 3), w, bias, s, p).permute(0, 2, 3, 4, 1)

        inputs = [_draw(shape) + 4, _draw(weight) + 4]
        inputs += [_draw((1, 1, 1, 1, weight[0]))] if biased else []
        options = f"stride = {_sizes(strides)}, padding = {_sizes(paddings)}, groups = 1 : i32"
        yield _case(f"conv3d_{index}", "conv3d", inputs, volume, options)


_SLICES = [
    ((4, 32, 40), [1, 0, 0], [3, 32, 40], [1, 1, 1]),
    ((6, 32, 40), [0, 0, 0], [4, 32, 40], [2, 1, 1]),
    ((4, 5, 32, 40), [1, 2, 0, 0], [3, 4, 32, 40], [1, 1, 1, 1]),
    ((2, 4, 3, 32, 40), [0, 1, 1, 0, 0], [2, 3, 2, 32, 40], [1, 1, 1, 1, 1]),
    ((64,), [0], [32], [1]), ((70,), [3], [62], [7]), ((2048,), [0], [2048], [3]),
    ((64, 64), [10, 20], [50, 60], [1, 1]), ((192, 64), [2, 0], [192, 64], [3, 1]),
    ((64, 192), [0, 2], [64, 192], [1, 3]), ((100, 100), [3, 2], [97, 93], [11, 13]),
    ((19, 160, 64), [0, 0, 0], [19, 96, 32], [1, 1, 1]),
    ((2, 64, 32), [0, 1, 0], [1, 64, 32], [1, 2, 2]),
    ((24, 34, 36), [5, 30, 12], [11, 34, 36], [3, 1, 4]),
    ((5, 65, 105), [0, 0, 1], [5, 64, 105], [1, 1, 1]),
    ((4, 3, 64, 96), [2, 1, 1, 0], [4, 2, 64, 96], [1, 1, 2, 3]),
    ((3, 4, 5, 32, 32), [1, 0, 3, 8, 16], [3, 4, 4, 24, 32], [1, 2, 1, 1, 1]),
    ((3, 20, 14, 8, 8), [1, 5, 6, 3, 4], [2, 6, 7, 4, 5], [1, 1, 1, 1, 1]),
]  # fmt: skip


def _movements() -> Iterator[Case]:
    from torch.nn import functional

    for index, (shape, begins, ends, steps) in enumerate(_SLICES):
        places = tuple(map(slice, begins, ends, steps))
        options = f"begins = {_list(begins)}, ends = {_list(ends)}, step = {_list(steps)}"
        for element in _FLOATS:
            yield _case(f"slice_{index}_{element}", "slice_static", [_draw(shape, element)],
                        lambda x, p=places: x[p], options, near=1e-6)  # fmt: skip
    shapes = ((1, 32, 32), (2, 16, 16), (1, 1, 64))
    for shape, factors, element in product(
        shapes, ([32, 1, 1], [1, 2, 2], [2, 3, 4], [1, 1, 1]), ("f32", "i32")
    ):
        name = f"repeat_{'_'.join(map(str, (*shape, *factors)))}_{element}"
        yield _case(name, "repeat", [_draw(shape, element)], lambda x, f=factors: x.repeat(f),
                    f"repeat_dimensions = {_sizes(factors, 'i64')}", near=1e-6)  # fmt: skip
    reshaped = [
        ((128, 128), (16384,)), ((24,), (2, 3, 4)), ((2, 3, 4), (6, 4)), ((1, 1, 1), (1,)),
        ((64, 33), (64, 1, 33)), ((256, 20), (512, 10)), ((4, 3, 22, 24), (4, 1584)),
        ((0, 32, 128), (0,)),
    ]  # fmt: skip
    for index, ((before, after), element) in enumerate(
        product(reshaped, ("f32", "i64", "i32", "ui8"))
    ):
        yield _case(f"reshape_{index}", "reshape", [_draw(before, element)],
                    lambda x, a=after: x.reshape(a), f"shape = {_list(after)}",
                    near=1e-6)  # fmt: skip
    for index, padding in enumerate(([0, 0, 0, 0, -4, -4, -4, -4], [2, 2, 2, 2, -1, -1, -1, -1])):
        pairs = [padding[i : i + 2] for i in range(0, len(padding), 2)]
        backwards = [number for pair in pairs[::-1] for number in pair]
        yield _case(f"pad_negative_{index}", "pad", [_draw((1, 8, 16, 16))],
                    lambda x, p=backwards: functional.pad(x, p),
                    f"padding = {_sizes(padding)}, value = 0.0 : f32", near=1e-6)  # fmt: skip
    casts = (("i32", "f32"), ("f32", "i32"), ("bf16", "f32"), ("f32", "bf16"))
    for before, after in casts:
        import torch

        to = {"f32": torch.float32, "i32": torch.int32, "bf16": torch.bfloat16}[after]
        given = _draw((33, 40), before, -300, 300)
        yield _case(f"typecast_{before}_{after}", "typecast", [given], lambda x, t=to: x.to(t),
                    result=after, near=1e-2)  # fmt: skip
    yield from _indexed()


def _list(values: Sequence[int]) -> str:
    return f"[{', '.join(f'{value} : i32' for value in values)}]"


def _indexed() -> Iterator[Case]:
    from torch.nn import functional

    scattered = [((8,), (3,), 0), ((32,), (300,), 0), ((512,), (284,), 0), ((32, 64), (4, 64), 0),
                 ((32, 64), (32, 16), -1)]  # fmt: skip
    for index, (shape, places, dim) in enumerate(scattered):
        for element in _FLOATS:
            at = _DRAW.integers(0, shape[dim], places).astype(np.int32)

            def added(x: Any, i: Any, s: Any, d: int = dim) -> Any:
                return x.float().scatter_add(d, i.long(), s.float())

            options = f"dim = {dim} : i32, scatter_reduce_type = #ttcore.reduce_type<sum>"
            given = [_draw(shape, element, 1, 2), at, _draw(places, element, 1, 2)]
            yield _case(f"scatter_{index}_{element}", "scatter", given, added, options)
    for index, (shape, places, dim) in enumerate(
        [((32, 64), (32, 16), 1), ((64, 32), (16, 32), 0), ((32, 64), (32, 16), -1)]
    ):
        at = _DRAW.integers(0, shape[dim], places).astype(np.uint32)
        yield _case(f"gather_{index}", "gather", [_draw(shape, "bf16"), at],
                    lambda x, i, d=dim: x.gather(d, i), f"dim = {dim} : si32",
                    near=1e-6)  # fmt: skip
    at = _DRAW.integers(0, 100, (1, 32)).astype(np.int32)

    def gradient(i: Any, table: Any, grad: Any) -> Any:
        table = table.clone().requires_grad_()
        functional.embedding(i, table).backward(grad)
        return table.grad

    yield _case("embedding_backward", "embedding_backward",
                [at, _draw((100, 64)), _draw((1, 32, 64), "f32", 1, 2)], gradient,
                result="f32")  # fmt: skip
    for dim, descending, element in product((0, 1, 2), (True, False), _FLOATS):
        found = _case(f"sort_{dim}_{descending}_{element}", "sort", [_draw((3, 16, 20), element)],
                      lambda x, d=dim, o=descending: x.sort(d, o).values,
                      f"dim = {dim} : si32, descending = {str(descending).lower()}, stable = true",
                      near=1e-6)  # fmt: skip
        yield _first_of_two(found)
    for shape, k, largest in product(((64, 128), (31, 243)), (1, 10, 32), (True, False)):
        found = _case(f"topk_{shape[1]}_{k}_{largest}", "topk", [_draw(shape, "bf16")],
                      lambda x, k=k, o=largest: x.topk(k, -1, o).values,
                      f"k = {k} : i32, dim = -1 : i32, largest = {str(largest).lower()},"
                      " sorted = true", near=1e-6)  # fmt: skip
        yield _first_of_two(found)


def _first_of_two(case: Case) -> Case:
    """The case of an op that gives places as well, which need not be the same for equal numbers."""
    values = type_of(case.expected)
    places = type_of(case.expected.astype(np.int32))
    body = case.body.replace("%r =", "%r, %places =", 1)
    body = body.replace(f"-> {values}", f"-> ({values}, {places})")
    return Case(case.name, body, case.inputs, case.expected, case.near)


def _several() -> Iterator[Case]:
    """Norms, attention, products, images and scans."""
    import torch
    from torch.nn import functional

    for (height, channels), groups, weighted in product(((4, 96), (6, 64)), (8, 32), (True, False)):
        inputs = [_draw((2, 1, height * height, channels))]
        inputs += [_draw((channels,), "f32", 0.5, 1)] if weighted else []
        # Without a bias, elements near zero would be compared with no more than they are.
        inputs += [_draw((channels,)) + 12]

        def normed(x: Any, *more: Any, g: int = groups) -> Any:
            weight, bias = (None, *more)[-2:]
            found = functional.group_norm(x.permute(0, 3, 1, 2), g, weight, bias, 1e-5)
            return found.permute(0, 2, 3, 1)

        segments = _sizes([1, 0, int(weighted), 1])
        options = f"num_groups = {groups} : i64, epsilon = 1.0e-5 : f32, operandSegmentSizes = "
        yield _case(f"group_norm_{height}_{groups}_{weighted}", "group_norm", inputs,
                    normed, options + segments, near=2e-2)  # fmt: skip
    channel = [_draw((24,), "f32", 0.5, 2) for _ in range(4)]
    yield _case("batch_norm", "batch_norm_inference", [_draw((1, 24, 8, 8)) + 8, *channel],
                lambda x, w, b, m, v: functional.batch_norm(x, m, v, w, b, eps=1e-5),
                "epsilon = 1.0e-5 : f32, dimension = 1 : i32")  # fmt: skip
    attended = [((2, 3, 40, 64), (2, 3, 40, 64), None), ((2, 4, 17, 80), (2, 4, 33, 80), None),
                ((2, 8, 18, 64), (2, 2, 33, 64), None), ((1, 7, 17, 64), (1, 1, 40, 64), None),
                ((1, 1, 256, 32), (1, 1, 4, 32), None),
                ((1, 4, 32, 64), (1, 4, 32, 64), (1, 1, 32, 32)),
                ((1, 4, 32, 64), (1, 4, 32, 64), (1, 4, 32, 32)),
                ((2, 4, 32, 64), (2, 4, 32, 64), (1, 4, 32, 32)),
                ((1, 8, 32, 64), (1, 2, 32, 64), (1, 8, 32, 32))]  # fmt: skip
    for index, (queries, keys, mask) in enumerate(attended):

        def attention(q: Any, k: Any, v: Any, m: Any = None) -> Any:
            return functional.scaled_dot_product_attention(
                q.float(), k.float(), v.float(), None if m is None else m.float(),
                scale=0.125, enable_gqa=True,
            )  # fmt: skip

        inputs = [_draw(queries, "bf16"), _draw(keys, "bf16"), _draw(keys, "bf16", 1, 3)]
        inputs += [_draw(mask, "bf16")] if mask else []
        options = "is_causal = false, scale = 0.125 : f32, operandSegmentSizes = " + _sizes(
            [1, 1, 1, int(mask is not None), 0]
        )
        # The library multiplies in two passes, and its exponentials are approximations.
        yield _case(f"attention_{index}", "scaled_dot_product_attention", inputs, attention,
                    options, near=6e-2)  # fmt: skip
    yield _case("dot_general", "dot_general",
                [_draw((4, 5, 3, 5, 7)) + 3, _draw((4, 5, 5, 7, 3)) + 3],
                lambda x, y: torch.einsum("abcde,afdgh->abcefgh", x, y),
                "batch_dims_lhs = array<i64: 0>, contract_dims_lhs = array<i64: 3>,"
                " batch_dims_rhs = array<i64: 0>, contract_dims_rhs = array<i64: 2>")  # fmt: skip
    yield _case("upsample", "upsample2d", [_draw((3, 16, 8, 3))],
                lambda x: x.repeat_interleave(2, 1).repeat_interleave(4, 2),
                "scale_factor = array<i32: 2, 4>", near=1e-6)  # fmt: skip
    for shape, dim in (((2, 3, 16, 20), 1), ((2, 3, 16, 20), -1), ((128,), 0), ((4, 40), 0)):
        yield _case(f"cumprod_{len(shape)}_{dim}", "cumprod", [_draw(shape, "f32", 0.8, 1.2)],
                    lambda x, d=dim: x.cumprod(d), f"dim = {dim} : i64", near=2e-2)  # fmt: skip
    for op, function in (("max", torch.amax), ("min", torch.amin), ("sum", torch.sum)):
        for dims in ([0], [2], [1, 2]):
            listed = ", ".join(f"{axis} : i32" for axis in dims)
            yield _case(f"{op}_i32_over_{'_'.join(map(str, dims))}", op,
                        [_draw((3, 32, 40), "i32")],
                        lambda x, f=function, d=dims: f(x, dim=d),
                        f"dim_arg = [{listed}], keep_dim = false")  # fmt: skip


def built_ops() -> list[Case]:
    """All of them, each under a name of its own; needs PyTorch."""
    kinds = (_unary, _binary, _ternary, _windows, _movements, _several)
    cases = [case for kind in kinds for case in kind()]
    assert len({case.name for case in cases}) == len(cases)
    return cases
