"""3D convolution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import DataType, element_of, shape_of
from ttcodegen.dialects.operations.attribute_kinds import INTEGER, INTEGERS, STRING
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.lazy_numpy import np
from ttcodegen.ops.convolution.convolution import (
    CONVOLUTION_OPERANDS,
    dims,
    expect_channels,
    is_of_floats,
    kernel_of,
    output_channels,
    with_bias,
)
from ttcodegen.ops.convolution.device_windows import Convolved, convolved, window_axes_of
from ttcodegen.ops.convolution.sliding_window import (
    Window,
    array_text,
    convolution,
    window_attributes,
    window_on_cpu,
)
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.calls import (
    COMPUTE_CONFIG_ATTRIBUTE,
    NULLOPT,
    Argument,
    CppCalls,
    Default,
    Text,
    compute_config,
    cpp_text,
    trimmed,
)
from ttcodegen.ops.core.definition import (
    Call,
    Layout,
    Memory,
    OperandSpec,
    ResultRule,
    TTIRDefinition,
    TTNNDefinition,
    attribute,
    register,
)
from ttcodegen.ops.core.dimensions import expect_rank, expect_shape, require
from ttcodegen.ops.core.lowering import cpu_call
from ttcodegen.ops.core.traits import Trait, convolution_flops
from ttcodegen.ops.movement.data_movement import inverse_permutation

if TYPE_CHECKING:
    import numpy

CHANNEL_BLOCK = 32
"""Input channels per block of the library's default config, which must be whole.

Source: ttnn/operations/experimental/conv3d/conv3d.cpp of tt-metal.
"""

_VOLUME_DIMS = tuple(
    attribute(f"{name}_dim", INTEGER, position)
    for position, name in enumerate(("batch", "depth", "height", "width", "channel"))
)
_MODE = attribute("padding_mode", STRING, "zeros")


def _expect_mode(op: CatalogueOp) -> None:
    mode = op.parameter("padding_mode")
    require(op, mode in ("zeros", "replicate"), "padding_mode zeros or replicate", mode)


def _verify_conv3d(op: CatalogueOp) -> None:
    """Weight (Co, Ci/groups, kernel depth, height, width); the result's size follows."""
    order = dims(op, _VOLUME_DIMS)
    n, *sizes, channels = (op.shape("input")[axis] for axis in order)
    outputs = output_channels(op, order)
    if len(op.parameter("padding")) not in (1, 3):
        raise VerifyException(
            f"{op.name}: expected 1 or 3 numbers in 'padding', found {len(op.parameter('padding'))}"
        )
    _expect_mode(op)
    window = Window.of(op, kernel_of(op, 3), dilated=False)
    expect_channels(op, channels, outputs, (outputs, channels // max(op.parameter("groups"), 1)))
    expected = (n, *window.output_sizes(op, sizes), outputs)
    expect_shape(op, [expected[order.index(axis)] for axis in range(5)])


def _convolution_on_cpu(op: CatalogueOp) -> dict[str, Any]:
    """Returns the fields of `cpu::Convolution`."""
    window = Window.of(op, op.shape("weight")[2:], dilated=False)
    order = [op.parameter(spec.name) for spec in _VOLUME_DIMS]
    groups = op.parameter("groups")
    return {
        **window_on_cpu(window),
        "groups": groups if groups != 1 else None,
        "order": order if order != sorted(order) else None,
        "replicate": op.parameter("padding_mode") == "replicate" or None,
    }


def _window(call: Call) -> Window:
    return Window.of(call, call.array("weight").shape[2:], dilated=False)


def _conv3d(call: Call) -> numpy.ndarray:
    order = [call[spec.name] for spec in _VOLUME_DIMS]
    volume = np.transpose(call.array("input"), order)
    replicate = call["padding_mode"] == "replicate"
    result = convolution(volume, call.array("weight"), _window(call), call["groups"], replicate)
    return np.transpose(with_bias(call, result), np.argsort(order))


def _lower_conv3d(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Pads the channels to whole blocks, as the library does with the weight."""
    order = dims(op, _VOLUME_DIMS)
    volume = builder.permute(builder.operand(op, "input"), order)
    channels, groups = shape_of(volume.type)[-1], op.parameter("groups")
    missing = -channels % CHANNEL_BLOCK
    if (channels + missing) % groups == 0:
        result = _library_call(builder, op, volume, slice(None), groups)
    else:
        result = _group_by_group(builder, op, volume, groups)
    return builder.permute(result, inverse_permutation(order))


def _group_by_group(builder: OpBuilder, op: CatalogueOp, volume: SSAValue, groups: int) -> SSAValue:
    """One call per group: the library refuses groups that do not divide the padded channels."""
    width = shape_of(volume.type)[-1] // groups
    outputs = op.shape("weight")[0] // groups
    parts = [
        _library_call(
            builder,
            op,
            builder.slice_dim(volume, 4, group * width, (group + 1) * width),
            slice(group * outputs, (group + 1) * outputs),
            1,
        )
        for group in range(groups)
    ]
    return builder.concat(parts, 4)


def _library_call(
    builder: OpBuilder, op: CatalogueOp, volume: SSAValue, outputs: slice, groups: int
) -> SSAValue:
    """Emits the convolution of a volume with a slice of the weight's outputs."""
    element = element_of(volume.type)
    weight = builder.typecast(builder.operand(op, "weight"), element)
    begin, end, _ = outputs.indices(shape_of(weight.type)[0])
    weight = builder.slice_dim(weight, 0, begin, end)
    bias = builder.optional(op, "bias")
    if bias is not None:
        bias = builder.reshape(builder.typecast(bias, element), [1, op.shape("weight")[0]])
        bias = builder.slice_dim(bias, 1, begin, end)
    window = Window.of(op, kernel_of(op, 3), dilated=False)
    n, *sizes, channels = shape_of(volume.type)
    volume = builder.pad(volume, [(0, -channels % CHANNEL_BLOCK)])
    shape = [n, *window.output_sizes(op, sizes), end - begin]
    return builder.emit(
        "conv3d",
        [volume, weight, bias],
        TensorType(element_of(op.result_type), shape),
        kernel_size=list(window.kernel),
        stride=list(window.stride),
        padding=[before for before, _ in window.padding],
        padding_mode=op.parameter("padding_mode"),
        groups=groups,
    )


def _conv3d_program(builder: OpBuilder, op: CatalogueOp) -> SSAValue | None:
    """Window product of a volume; None for padding that replicates the edges."""
    window = Window.of(op, kernel_of(op, 3), dilated=False)
    repeats = op.parameter("padding_mode") == "replicate" and any(map(any, window.padding))
    if repeats or not is_of_floats(op):
        return None
    order = dims(op, _VOLUME_DIMS)
    volume = builder.permute(builder.operand(op, "input"), order)
    source = Convolved(
        volume,
        builder.operand(op, "weight"),
        builder.optional(op, "bias"),
        window_axes_of(window, shape_of(volume.type)[1:-1]),
        op.parameter("groups"),
        element_of(op.result_type),
    )
    return builder.permute(convolved(builder, source), inverse_permutation(order))


register(
    TTIRDefinition(
        "ttir.conv3d",
        CONVOLUTION_OPERANDS,
        (
            *window_attributes(dilation=False),
            attribute("groups", INTEGER, 1),
            *_VOLUME_DIMS,
            _MODE,
        ),
        verify=_verify_conv3d,
        numpy=_conv3d,
        program=_conv3d_program,
        lower=_lower_conv3d,
        traits=Trait.OWN_NAN_IN_TILES,
        cpu=cpu_call("convolution", _convolution_on_cpu, function="convolution"),
    )
)


def _library_conv3d(call: Call) -> numpy.ndarray:
    weight = call.array("weight")
    volume = call.array("input")[..., : weight.shape[1] * call["groups"]]
    replicate = call["padding_mode"] == "replicate"
    result = convolution(volume, weight, _window(call), call["groups"], replicate, call.arithmetic)
    return with_bias(call, result)


def _verify_library_conv3d(op: CatalogueOp) -> None:
    """Weight in the source's form (Co, Ci/groups, depth, height, width): the call prepares it."""
    shape = op.shape("weight")
    if len(shape) != 5:
        raise VerifyException(
            f"{op.name}: expected weights of rank 5, as (outputs, inputs, depth, height, width), "
            f"found {tuple(shape)}: weights that were prepared for the call are not read back"
        )
    expect_rank(op, 5, "input")
    _expect_mode(op)
    n, *sizes, channels = op.shape("input")
    outputs, groups = shape[0], op.parameter("groups")
    require(op, groups >= 1, "1 or more groups", groups)
    window = Window.of(op, kernel_of(op, 3), dilated=False)
    kernel = tuple(op.parameter("kernel_size"))
    require(op, kernel == window.kernel, f"a kernel_size of {window.kernel}", kernel)
    # Channels may be padded to whole blocks.
    fits = outputs % groups == 0 and 0 < shape[1] * groups <= channels
    require(op, fits, f"a weight for {channels} channels in {groups} groups at most", shape)
    bias = op.optional_operand("bias")
    if bias is not None:
        found = shape_of(bias.type)
        require(op, found == (1, outputs), f"a bias of shape {(1, outputs)}", found)
    expect_shape(op, (n, *window.output_sizes(op, sizes), outputs))


def _cpp_conv3d(calls: CppCalls, op: CatalogueOp) -> None:
    from ttcodegen.dialects.ttnn.placement import placement_of

    calls.include("ttnn/operations/experimental/conv3d/conv3d.hpp")
    placement = placement_of(op.results[0])
    bias = op.optional_operand("bias")
    arguments: list[Argument] = [
        calls[op.operand("input")],
        calls[op.operand("weight")],
        calls.device_pointer,
        NULLOPT if bias is None else calls[bias],
        NULLOPT,
        Text(cpp_text(placement.data_type)),
        Text(str(placement.shape[-1])),
        array_text(op.parameter("kernel_size")),
        array_text(op.parameter("stride")),
        array_text(op.parameter("padding")),
    ]
    mode, groups = op.parameter("padding_mode"), op.parameter("groups")
    arguments += [
        Default(array_text([1, 1, 1]).text),
        Default(cpp_text(mode)) if mode == "zeros" else Text(cpp_text(mode)),
        Default("1") if groups == 1 else Text(str(groups)),
        NULLOPT,  # memory config
        compute_config(calls, op),
    ]
    calls.bind(op.results[0], calls.call("ttnn::experimental::conv3d", *trimmed(arguments)))


# Input, weight and bias must have the same data type, which the lowering ensures.
_TYPES = (DataType.BFLOAT16, DataType.FLOAT32)

register(
    TTNNDefinition(
        "ttnn.conv3d",
        (
            OperandSpec("input", layout=Layout.ROW_MAJOR, data_types=_TYPES),
            OperandSpec("weight", layout=Layout.ROW_MAJOR, memory=Memory.HOST, data_types=_TYPES),
            OperandSpec("bias", "optional", data_types=_TYPES),
        ),
        (
            attribute("kernel_size", INTEGERS),
            attribute("stride", INTEGERS, [1, 1, 1]),
            attribute("padding", INTEGERS, [0, 0, 0]),
            _MODE,
            attribute("groups", INTEGER, 1),
            COMPUTE_CONFIG_ATTRIBUTE,
        ),
        verify=_verify_library_conv3d,
        numpy=_library_conv3d,
        compute="convolution3d",
        result_rules=(ResultRule("declared", Layout.ROW_MAJOR),),
        cpp=_cpp_conv3d,
        flops=convolution_flops,
    )
)
