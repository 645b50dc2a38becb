"""Translation of named linalg operations and of the tensor dialect to TTIR."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import shape_of, tensor_type
from ttcodegen.dialects.operations.operation import operation_name
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.frontends.linalg.bodies import (
    ELEMENTWISE,
    IGNORING_NAN,
    Body,
    Loops,
    device_element,
    returned_by,
    scalar_of,
)
from ttcodegen.frontends.linalg.forms import body_of, inputs_and_outputs, integers
from ttcodegen.frontends.linalg.generics import combining, generic, neutral_element, reduced
from ttcodegen.frontends.special_functions import number_or
from ttcodegen.frontends.translation import Rule, SourceOp, Translator
from ttcodegen.ops.core.builder import splat_of


def _add_initial(build: Translator, op: SourceOp, value: SSAValue) -> SSAValue:
    """Adds the initial value of an accumulation, such as a bias, if there is one."""
    start = op.operands[inputs_and_outputs(op)]
    return value if splat_of(start) == 0 else build.like("add", value, start)


def _fill(build: Translator, op: SourceOp) -> SSAValue:
    number = scalar_of(op.operands[0])
    element = device_element(op.result_element)
    if number is None:
        raise CompileError("linalg.fill with a number that is computed is not supported")
    return build.full(op.result_shape, number, element)


def _empty(build: Translator, op: SourceOp) -> SSAValue:
    """Fills an empty tensor with zeros: its contents are never read."""
    return build.full(op.result_shape, 0, device_element(op.result_element))


def _matmul(transpose_a: bool = False, transpose_b: bool = False) -> Rule:
    def rule(build: Translator, op: SourceOp) -> SSAValue:
        a, b = op.operands[:2]
        product = build.matmul(a, b, transpose_a=transpose_a, transpose_b=transpose_b)
        return _add_initial(build, op, product)

    return rule


def _matvec(build: Translator, op: SourceOp) -> SSAValue:
    a, b = op.operands[:2]
    product = build.matmul(a, build.reshape(b, [*shape_of(b.type), 1]))
    return _add_initial(build, op, build.reshape(product, op.result_shape))


def _vecmat(build: Translator, op: SourceOp) -> SSAValue:
    a, b = op.operands[:2]
    product = build.matmul(build.reshape(a, [1, *shape_of(a.type)]), b)
    return _add_initial(build, op, build.reshape(product, op.result_shape))


def _dot(build: Translator, op: SourceOp) -> SSAValue:
    a, b = op.operands[:2]
    (size,) = shape_of(a.type)
    product = build.matmul(build.reshape(a, [1, size]), build.reshape(b, [size, 1]))
    return _add_initial(build, op, build.reshape(product, op.result_shape))


def _elementwise(name: str) -> Rule:
    def rule(build: Translator, op: SourceOp) -> SSAValue:
        inputs = op.operands[: inputs_and_outputs(op)]
        return build.emit(name, list(inputs), op.result_type)

    return rule


def _transpose(build: Translator, op: SourceOp) -> SSAValue:
    return build.permute(op.operands[0], integers(op.given("permutation")))


def _broadcast(build: Translator, op: SourceOp) -> SSAValue:
    added = integers(op.given("dimensions"))
    sizes = [1 if axis in added else size for axis, size in enumerate(op.result_shape)]
    factors = [size if axis in added else 1 for axis, size in enumerate(op.result_shape)]
    value = build.reshape(op.operands[0], sizes)
    return build.emit("broadcast", [value], op.result_type, broadcast_dimensions=factors)


def _copy(build: Translator, op: SourceOp) -> SSAValue:
    return build.typecast(op.operands[0], op.result_element)


def _reduce(build: Translator, op: SourceOp) -> SSAValue:
    """Reduction of one tensor whose body is a single operation."""
    block = body_of(op)
    given = op.given("combiner")
    name = given.data if isinstance(given, StringAttr) else ""
    if block is not None:
        steps = list(block.ops)[:-1]
        name = operation_name(steps[0]) if len(steps) == 1 else ""
        if len(steps) == 1 and set(steps[0].operands) != set(block.args):
            name = ""
    combine = combining(name)
    if combine not in ("add", "multiply", "maximum", "minimum") or len(op.operands) != 2:
        raise CompileError("linalg.reduce with such a body is not supported")
    value, start = op.operands
    shape = shape_of(value.type)
    if name in IGNORING_NAN:
        value = number_or(build, value, neutral_element([name]))
    dims = integers(op.given("dimensions"))
    kept: list[int | None] = [axis for axis in range(len(shape)) if axis not in dims]
    return reduced(Loops(build, shape, dims), value, combine, start, kept)


def _softmax(build: Translator, op: SourceOp) -> SSAValue:
    dim = cast("IntegerAttr", op.given("dimension")).value.data
    return build.like("softmax", op.operands[0], dimension=dim, numericStable=True)


def _batched_vector(matrix: int) -> Rule:
    """Product of a matrix and a vector per batch; `matrix` is the operand index of the matrix."""

    def rule(build: Translator, op: SourceOp) -> SSAValue:
        vector = op.operands[1 - matrix]
        batch, size = shape_of(vector.type)
        column = build.reshape(vector, [batch, size, 1] if matrix == 0 else [batch, 1, size])
        factors = (op.operands[0], column) if matrix == 0 else (column, op.operands[1])
        return _add_initial(build, op, build.reshape(build.matmul(*factors), op.result_shape))

    return rule


def _map(build: Translator, op: SourceOp) -> SSAValue:
    """Elementwise body, or a single operation, on tensors of one shape."""
    inputs = op.operands[: inputs_and_outputs(op)]
    block = body_of(op)
    if block is None:
        given = op.given("combiner")
        name = ELEMENTWISE.get(given.data if isinstance(given, StringAttr) else "")
        if name is None:
            raise CompileError("linalg.map of such an operation is not supported")
        return build.like(name, *inputs)
    loops = Loops(build, op.result_shape, [])
    body = Body(loops, dict(zip(block.args, inputs, strict=False)))
    for inner in list(block.ops)[:-1]:
        body.run(inner)
    (value,) = returned_by(block)
    full = loops.tensor(body[value], device_element(op.result_element))
    return build.repeat(full, loops.sizes)


# Windows. Padding is an operation of its own there.

_NHWC, _NCHW = (0, 1, 2, 3), (0, 2, 3, 1)


def _as_nhwc(build: Translator, value: SSAValue, layout: Sequence[int]) -> SSAValue:
    return build.permute(value, layout)


def _from_nhwc(build: Translator, value: SSAValue, layout: Sequence[int]) -> SSAValue:
    return build.permute(value, [list(layout).index(axis) for axis in range(4)])


def _in_layout(shape: Sequence[int], layout: Sequence[int]) -> list[int]:
    return [shape[axis] for axis in layout]


def _convolution(layout: Sequence[int], kernel: Sequence[int]) -> Rule:
    """Convolution; `kernel` lists the kernel's output channel, input channel, height and width
    dimensions."""
    return lambda build, op: _convolved(build, op, layout, build.permute(op.operands[1], kernel))


def _depthwise(layout: Sequence[int], kernel: Sequence[int]) -> Rule:
    """Depthwise convolution; `kernel` lists the kernel's channel, height and width dimensions."""

    def rule(build: Translator, op: SourceOp) -> SSAValue:
        weight = build.permute(op.operands[1], kernel)
        channels, height, width = shape_of(weight.type)
        weight = build.reshape(weight, [channels, 1, height, width])
        return _convolved(build, op, layout, weight, groups=channels)

    return rule


def _convolved(
    build: Translator, op: SourceOp, layout: Sequence[int], weight: SSAValue, groups: int = 1
) -> SSAValue:
    result = build.emit(
        "conv2d",
        [_as_nhwc(build, op.operands[0], layout), weight, None],
        tensor_type(op.result_element, _in_layout(op.result_shape, layout)),
        stride=integers(op.given("strides"), [1, 1]),
        padding=[0, 0, 0, 0],
        dilation=integers(op.given("dilations"), [1, 1]),
        groups=groups,
    )
    return _add_initial(build, op, _from_nhwc(build, result, layout))


def _pooling(layout: Sequence[int], name: str) -> Rule:
    """Pooling; the second input only provides the window's shape."""

    def rule(build: Translator, op: SourceOp) -> SSAValue:
        window = list(shape_of(op.operands[1].type))
        value = _as_nhwc(build, op.operands[0], layout)
        options: dict[str, object] = {} if name == "max_pool2d" else {"count_include_pad": True}
        result = build.emit(
            name,
            [value],
            tensor_type(op.result_element, _in_layout(op.result_shape, layout)),
            kernel=window,
            stride=integers(op.given("strides"), [1, 1]),
            padding=[0, 0, 0, 0],
            dilation=integers(op.given("dilations"), [1, 1]),
            **options,
        )
        start = op.operands[2]
        if name == "max_pool2d":
            result = _from_nhwc(build, result, layout)
            is_neutral = (splat_of(start) or 0) <= -3e38
            return result if is_neutral else build.like("maximum", result, start)
        count = build.number(window[0] * window[1], result)
        result = _from_nhwc(build, build.like("multiply", result, count), layout)
        return _add_initial(build, op, result)

    return rule


# Operations of tensor


def _reshape(build: Translator, op: SourceOp) -> SSAValue:
    return build.reshape(op.operands[0], op.result_shape)


def _cast(build: Translator, op: SourceOp) -> SSAValue:
    return op.operands[0]


def _pad(build: Translator, op: SourceOp) -> SSAValue:
    block = body_of(op)
    last = None if block is None else block.last_op
    number = None if last is None or not last.operands else scalar_of(last.operands[0])
    if number is None:
        raise CompileError("tensor.pad with values that are computed is not supported")
    widths = zip(integers(op.given("low")), integers(op.given("high")), strict=True)
    return build.pad(op.operands[0], list(widths), float(number))


def _extract_slice(build: Translator, op: SourceOp) -> SSAValue:
    begins, sizes, steps = (integers(op.given(n)) for n in ("offsets", "sizes", "strides"))
    ends = [b + (n - 1) * s + 1 for b, n, s in zip(begins, sizes, steps, strict=True)]
    return build.reshape(build.slice(op.operands[0], begins, ends, steps), op.result_shape)


def _extracted(build: Translator, op: SourceOp) -> None:
    """Translates nothing: bodies that use the element gather it themselves."""


def _concat(build: Translator, op: SourceOp) -> SSAValue:
    return build.concat(list(op.operands), cast("IntegerAttr", op.given("dim")).value.data)


_NAMED_ELEMENTWISE = {
    "abs": "abs", "add": "add", "ceil": "ceil", "div": "div", "erf": "erf", "exp": "exp",
    "floor": "floor", "log": "log", "max": "maximum", "min": "minimum", "mul": "multiply",
    "negf": "neg", "powf": "pow", "reciprocal": "reciprocal", "rsqrt": "rsqrt",
    "select": "where", "sqrt": "sqrt", "square": "square", "sub": "subtract", "tanh": "tanh",
}  # fmt: skip

LINALG: dict[str, Rule] = {
    **{name: _elementwise(op) for name, op in _NAMED_ELEMENTWISE.items()},
    "batch_matmul": _matmul(),
    "batch_matmul_transpose_a": _matmul(transpose_a=True),
    "batch_matmul_transpose_b": _matmul(transpose_b=True),
    "batch_matvec": _batched_vector(0),
    "batch_vecmat": _batched_vector(1),
    "broadcast": _broadcast,
    "conv_2d_nchw_fchw": _convolution(_NCHW, (0, 1, 2, 3)),
    "conv_2d_nhwc_fhwc": _convolution(_NHWC, (0, 3, 1, 2)),
    "conv_2d_nhwc_hwcf": _convolution(_NHWC, (3, 2, 0, 1)),
    "copy": _copy,
    "depthwise_conv_2d_nchw_chw": _depthwise(_NCHW, (0, 1, 2)),
    "depthwise_conv_2d_nhwc_hwc": _depthwise(_NHWC, (2, 0, 1)),
    "dot": _dot,
    "fill": _fill,
    "generic": generic,
    "map": _map,
    "matmul": _matmul(),
    "matmul_transpose_a": _matmul(transpose_a=True),
    "matmul_transpose_b": _matmul(transpose_b=True),
    "matvec": _matvec,
    "pooling_nchw_max": _pooling(_NCHW, "max_pool2d"),
    "pooling_nchw_sum": _pooling(_NCHW, "avg_pool2d"),
    "pooling_nhwc_max": _pooling(_NHWC, "max_pool2d"),
    "pooling_nhwc_sum": _pooling(_NHWC, "avg_pool2d"),
    "reduce": _reduce,
    "softmax": _softmax,
    "transpose": _transpose,
    "vecmat": _vecmat,
}
"""Operations of linalg."""

TENSOR: dict[str, Rule] = {
    "cast": _cast,
    "collapse_shape": _reshape,
    "concat": _concat,
    "empty": _empty,
    "expand_shape": _reshape,
    "extract": _extracted,
    "extract_slice": _extract_slice,
    "pad": _pad,
}
"""Operations of tensor."""
