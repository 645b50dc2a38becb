"""Prepared weights of convolutions and experts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import prod

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue
from xdsl.rewriter import Rewriter

from ttcodegen.compat.ttnn_modules import is_device, name_of
from ttcodegen.dialects.core.datatypes import DataType, element_of, shape_of, tensor_type
from ttcodegen.dialects.operations.attribute_kinds import (
    DATA_TYPE,
    ENUMERATOR,
    INTEGER,
    INTEGERS,
)
from ttcodegen.dialects.operations.functions import callee_of
from ttcodegen.dialects.ttnn.placement import PLACEMENT, TensorPlacement
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.frontends.ttnn.arguments import Properties, divided_operands, given
from ttcodegen.ops.core.builder import OpBuilder, builder_before
from ttcodegen.ops.dialects import ttir_op_classes, ttnn_op_classes

# Weights of convolutions as matrices, which other tools have prepared ahead of the call.
#
# In such a matrix each column has the weights of an output channel, row by row of the window; of
# volumes, one block of input channels after the other. `conv2d` takes the matrix. Other calls that
# are made here take weights as models have them and prepare them by themselves, so that a prepared
# weight is put back in order: all of it depends on weights alone, and runs once.

_TRANSPOSED = "conv_transpose2d"
_CONVOLUTIONS = {_TRANSPOSED: 2, "conv3d": 3}
"""Window rank of the calls whose prepared weights are reversed."""
_OF_THE_IMAGE = ("input_memory_config", "input_tensor_layout", "input_dtype")
_IMPLIED_BY_THE_CALL = ("weights_format", "output_dtype", "conv2d_slice_config")
_BLOCK = re.compile(r"c_in_block\s*=\s*(\d+)")


def prepared_weight(
    builder: OpBuilder, op: Operation, operands: Sequence[SSAValue], properties: Properties
) -> SSAValue:
    """Prepares a weight (outputs, inputs, window...), or (inputs, outputs, window...), as
    a matrix."""
    (weight,) = operands
    inputs_first = _verify_preparation(op, shape_of(weight.type), properties)
    shape = shape_of(weight.type)
    inputs, outputs = (shape[0], shape[1]) if inputs_first else (shape[1], shape[0])
    if prod(shape_of(op.results[0].type)) != prod(shape):
        raise CompileError(
            "this weight becomes a matrix with other elements than it has, as those of groups and "
            "of channels that are filled up do",
            op,
            remedy="give the weight to the convolution as the model has it",
        )
    window = list(range(2, len(shape)))
    if len(window) == 2:
        order = [*window, 0, 1] if inputs_first else [*window, 1, 0]
        return builder.reshape(
            builder.permute(weight, order), [1, 1, prod(shape) // outputs, outputs]
        )
    block = _block(op, given(op, properties, "c_in_block", INTEGER) or 0, inputs)
    blocks = builder.reshape(weight, [outputs, inputs // block, block, *shape[2:]])
    matrix = builder.permute(blocks, [1, *(axis + 1 for axis in window), 2, 0])
    return builder.reshape(matrix, [prod(shape) // outputs, outputs])


def spell_preparation(op: Operation, properties: dict[str, Attribute]) -> None:
    """Normalizes a `conv2d` weight preparation to the catalogue's form, with the image's placement.

    Assumes tiles in DRAM: `ttnn-prepare-conv2d-weights-and-bias` replaces it by the call's
    placement, which is decided later.
    """
    if "image" in properties:
        return
    weight = shape_of(op.operands[0].type) if op.operands else ()
    if name_of(op) == "ttnn.prepare_conv2d_weights":
        if len(weight) != 4:
            raise CompileError(f"'{name_of(op)}' expects a weight of rank 4, found {weight}", op)
        _verify_preparation(op, weight, properties)
    else:
        _verify_bias(op, weight, properties)
    sizes = [
        given(op, properties, name, INTEGER) or 1
        for name in ("batch_size", "input_height", "input_width", "in_channels")
    ]
    data_type = given(op, properties, "input_dtype", DATA_TYPE) or DataType.BFLOAT16
    shape = (1, 1, prod(sizes[:3]), sizes[3])
    for name in (*_OF_THE_IMAGE, *_IMPLIED_BY_THE_CALL):
        properties.pop(name, None)
    properties["image"] = PLACEMENT.encode(TensorPlacement(shape, data_type))


def _verify_bias(op: Operation, shape: Sequence[int], properties: Properties) -> None:
    """Checks that a prepared bias is (1, 1, 1, output channels); raises CompileError if not."""
    inputs, outputs, groups = (
        given(op, properties, name, INTEGER) for name in ("in_channels", "out_channels", "groups")
    )
    channels = prod(shape) if outputs is None else outputs
    if len(shape) != 4 or shape[-1] != channels:
        raise CompileError(
            f"'{name_of(op)}' expects a bias (1, 1, 1, {channels}), found {tuple(shape)}", op
        )
    groups = 1 if groups is None else groups
    if groups < 1 or channels % groups or (inputs or 0) % groups:
        raise CompileError(
            f"'{name_of(op)}' expects groups that divide {inputs} inputs and {channels} outputs, "
            f"found {groups}",
            op,
        )


def _verify_preparation(op: Operation, shape: Sequence[int], properties: Properties) -> bool:
    """Returns whether the weight has its inputs first.

    Raises CompileError if the attributes of its preparation disagree with it.
    """
    window, transposed = len(shape) - 2, _TRANSPOSED in name_of(op)

    def require(condition: bool, expected: str, found: object) -> None:
        if not condition:
            raise CompileError(f"'{name_of(op)}' expects {expected}, found {found}", op)

    format_ = properties.get("weights_format")
    if isinstance(format_, StringAttr) and window == 2:
        wanted = "IOHW" if transposed else "OIHW"
        require(format_.data == wanted, f"weights_format {wanted}", format_.data)
    inputs_first = isinstance(format_, StringAttr) and format_.data.startswith("IO")
    groups = given(op, properties, "groups", INTEGER) or 1
    require(groups > 0, "positive groups", groups)
    inputs, outputs = (0, 1) if inputs_first else (1, 0)
    grouped, whole = (outputs, inputs) if inputs_first else (inputs, outputs)
    for name, axis in (("in_channels", inputs), ("out_channels", outputs)):
        channels = given(op, properties, name, INTEGER)
        size = shape[axis] * (groups if axis == grouped else 1)
        if channels is not None and axis in (grouped, whole):
            require(
                channels == size, f"{name} of {size}, as the weight {tuple(shape)} has", channels
            )
    for name, counts in (
        ("kernel_size", (window,)),
        ("stride", (window,)),
        ("dilation", (window,)),
        ("padding", (window, 2 * window)),
    ):
        numbers = given(op, properties, name, INTEGERS)
        if numbers is None:
            continue
        require(len(numbers) in counts, f"{window} numbers in '{name}'", tuple(numbers))
        if name == "kernel_size":
            kernel = tuple(shape[2:])
            require(tuple(numbers) == kernel, f"kernel_size {kernel}", tuple(numbers))
    return inputs_first


def _block(op: Operation, block: int, inputs: int) -> int:
    """Number of input channels per block of a 3D weight; all by default."""
    if block and inputs % block:
        raise CompileError(f"blocks of {block} channels do not divide {inputs}", op)
    return block or inputs


def with_plain_weight(op: Operation, name: str, operands: Sequence[SSAValue]) -> list[SSAValue]:
    """Operands of a convolution with the weight in the model's layout."""
    if name not in _CONVOLUTIONS or len(operands) < 2:
        return list(operands)
    window, weight = given(op, op.properties, "kernel_size", INTEGERS), operands[1]
    if window is None or len(window) != _CONVOLUTIONS[name]:
        return list(operands)
    matrix = shape_of(weight.type)
    outputs = matrix[-1] if matrix else 1
    inputs = prod(matrix) // max(outputs * prod(window), 1)
    is_matrix = prod(matrix[:-2]) == 1 and len(matrix) in (2, 4) and prod(matrix[-2:]) > 1
    if not is_matrix or prod((inputs, outputs, *window)) != prod(matrix):
        return list(operands)
    builder = builder_before(op, ttir_op_classes())
    if len(window) == 3:
        found = _BLOCK.search(str(op.properties.get("conv3d_config", "")))
        together = _block(op, int(found[1]) if found is not None else 0, inputs)
        weight = builder.reshape(weight, [inputs // together, *window, together, outputs])
        weight = builder.permute(weight, [5, 0, 4, 1, 2, 3])
        plain = builder.reshape(weight, [outputs, inputs, *window])
    else:
        weight = builder.reshape(weight, [*window, inputs, outputs])
        plain = builder.permute(weight, [2, 3, 0, 1])
    return [operands[0], plain, *operands[2:]]


# Expert ops of TTNN with prepared weights.
#
# The order depends on the cores beside the banks of a chip, which the library finds out when it
# runs. `ttir.moe_compute` takes weights as models have them: the calls that put them in order say
# which these are, in the same function or in one whose results are computed once.

_CALL = "ttnn.moe_compute"
_FIRST_WEIGHTS = "ttnn.prepare_moe_compute_w0_w1_weights"
_SECOND_WEIGHTS = "ttnn.prepare_moe_compute_w2_weights"
_CONVERSIONS = ("ttnn.to_layout", "ttnn.to_memory_config", "ttnn.to_device", "ttnn.from_device")
_NUMBERS = ("layer_id", "output_height_shard_dim", "intermediate_size", "cluster_axis")


def expand_experts(module: ModuleOp) -> None:
    """Replaces expert calls by `ttir.moe_compute` with the model's weights.

    Raises:
        CompileError: if the module does not show how the weights were prepared.
    """
    calls = [op for op in module.walk() if name_of(op) == _CALL]
    for op in calls:
        _replace(module, op)
    if not calls:
        return
    for op in [op for op in module.walk() if name_of(op) in (_FIRST_WEIGHTS, _SECOND_WEIGHTS)]:
        _drop(op)


def _replace(module: ModuleOp, op: Operation) -> None:
    operands = [value for value in op.operands if not is_device(value.type)]
    if len(operands) < 6:
        raise CompileError(f"'{_CALL}' takes six tensors, found {len(operands)}", op)
    # An output and a semaphore may follow, which the release makes itself.
    tokens, named, scores, owners, first, second = operands[:6]
    w0, w1, b0, b1 = _weights(module, op, first, _FIRST_WEIGHTS, 4)
    w2, b2 = _weights(module, op, second, _SECOND_WEIGHTS, 2)
    builder = builder_before(op, ttir_op_classes())
    numbers = {name: given(op, op.properties, name, INTEGER) for name in _NUMBERS}
    (result,) = op.results
    made = builder.emit(
        "moe_compute",
        [tokens, named, scores, owners, w0, w1, w2, b0, b1, b2],
        tensor_type(element_of(result.type), shape_of(result.type)),
        activation_function=given(op, op.properties, "activation_function", ENUMERATOR) or "silu",
        **{name: number for name, number in numbers.items() if number is not None},
    )
    placed = builder_before(op, ttnn_op_classes())
    value = placed.emit("composite_to_layout", [made], result.type)
    value.name_hint = result.name_hint
    Rewriter.replace_op(op, [], [value])


def _weights(
    module: ModuleOp, op: Operation, value: SSAValue, wanted: str, count: int
) -> list[SSAValue | None]:
    """Unprepared expert weights, as values of the call; None for absent biases."""
    functions = {each.sym_name.data: each for each in module.walk() if isinstance(each, FuncOp)}
    calls: list[Operation] = []
    maker = _origin(functions, value, calls).owner
    if not isinstance(maker, Operation) or name_of(maker) != wanted:
        raise CompileError(
            f"'{_CALL}' takes weights in the order of the cores, and the module does not say what "
            "they were before",
            op,
            remedy=f"give the module with its '{wanted}', or one of 'ttir.moe_compute'",
        )
    properties = dict(maker.properties)
    if "operandSegmentSizes" in properties:
        sizes = INTEGERS.decode(properties["operandSegmentSizes"])
        properties["operandSegmentSizes"] = INTEGERS.encode(list(sizes)[:count])
    tensors = [each for each in maker.operands if not is_device(each.type)]
    weights: list[SSAValue | None] = []
    for each in divided_operands(maker, tensors, properties, count):
        entered = list(calls)
        if each is not None and entered:
            each = _origin(functions, each, entered)
            if entered:
                raise CompileError(f"'{wanted}' takes what its function computes", maker)
        weights.append(each)
    return weights


def _origin(functions: Mapping[str, FuncOp], value: SSAValue, entered: list[Operation]) -> SSAValue:
    """Traces a value to its origin through layout conversions and calls.

    Args:
        functions: those of the module, by name.
        value: in the function that the last call entered.
        entered: the calls through which the value was reached; updated.
    """
    while True:
        owner = value.owner
        if isinstance(value, BlockArgument):
            if not entered:
                return value
            value = entered.pop().operands[value.index]
        elif isinstance(owner, Operation) and name_of(owner) in _CONVERSIONS:
            value = owner.operands[0]
        elif (returned := _callee_result(functions, value)) is not None:
            assert isinstance(owner, Operation)
            entered.append(owner)
            value = returned
        else:
            return value


def _callee_result(functions: Mapping[str, FuncOp], value: SSAValue) -> SSAValue | None:
    """Value that a called function returns, or None if nothing is called."""
    owner = value.owner
    function = functions.get(callee_of(owner) or "") if isinstance(owner, Operation) else None
    if function is None or function.is_declaration or not isinstance(value, OpResult):
        return None
    terminator = function.body.block.last_op
    return terminator.operands[value.index] if isinstance(terminator, ReturnOp) else None


def _drop(op: Operation) -> None:
    """Erases a call whose result is unused; a function that still returns it returns zeros."""
    if op.results[0].uses:
        shape = list(shape_of(op.results[0].type))
        builder = builder_before(op, ttnn_op_classes())
        Rewriter.replace_op(
            op,
            [],
            [builder.emit("full", [], op.results[0].type, shape=shape, fill_value=0)],
        )
    else:
        Rewriter.erase_op(op)
