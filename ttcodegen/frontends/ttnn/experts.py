"""Expert ops of TTNN with prepared weights.

The order depends on the cores beside the banks of a chip, which the library finds out when it
runs. `ttir.moe_compute` takes weights as models have them: the calls that put them in order say
which these are, in the same function or in one whose results are computed once.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue
from xdsl.rewriter import Rewriter

from ttcodegen.compat.ttnn_modules import is_device, name_of
from ttcodegen.dialects.core.datatypes import element_of, shape_of, tensor_type
from ttcodegen.dialects.operations.attribute_kinds import ENUMERATOR, INTEGER, INTEGERS
from ttcodegen.dialects.operations.functions import callee_of
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.frontends.ttnn.call_parts import divided_operands, given
from ttcodegen.ops.core.builder import builder_before
from ttcodegen.ops.dialects import ttir_op_classes, ttnn_op_classes

_CALL = "ttnn.moe_compute"
_FIRST_WEIGHTS = "ttnn.prepare_moe_compute_w0_w1_weights"
_SECOND_WEIGHTS = "ttnn.prepare_moe_compute_w2_weights"
_CONVERSIONS = ("ttnn.to_layout", "ttnn.to_memory_config", "ttnn.to_device", "ttnn.from_device")
_NUMBERS = ("layer_id", "output_height_shard_dim", "intermediate_size", "cluster_axis")


def expand_experts(module: ModuleOp) -> None:
    """Puts `ttir.moe_compute` of the weights as the model has them in place of each call.

    Raises:
        CompileError: if the module does not say how a call came by its weights.
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
        elif (returned := _returned(functions, value)) is not None:
            assert isinstance(owner, Operation)
            entered.append(owner)
            value = returned
        else:
            return value


def _returned(functions: Mapping[str, FuncOp], value: SSAValue) -> SSAValue | None:
    """Value that a called function returns, or None if nothing is called."""
    owner = value.owner
    function = functions.get(callee_of(owner) or "") if isinstance(owner, Operation) else None
    if function is None or function.is_declaration or not isinstance(value, OpResult):
        return None
    terminator = function.body.block.last_op
    return terminator.operands[value.index] if isinstance(terminator, ReturnOp) else None


def _drop(op: Operation) -> None:
    """Takes a call out whose result nothing needs; a function that still returns it, unused by its
    callers, has zeros."""
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
