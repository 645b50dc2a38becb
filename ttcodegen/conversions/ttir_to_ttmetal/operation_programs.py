"""Programs that are operations of TT-Lang: who knows the operation compiles it."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import SSAValue

from ttcodegen.conversions.ttir_to_ttmetal.groups import Group
from ttcodegen.conversions.ttir_to_ttmetal.program_parts import Lowered
from ttcodegen.diagnostics import CompileError
from ttcodegen.dialects.cores import CoreRange
from ttcodegen.dialects.datatypes import shape_of
from ttcodegen.dialects.placement import declared_data_type
from ttcodegen.ops.tt_lang import GivenTensor, operations, tensor_places


def lower_operation(
    group: Group, names: Mapping[SSAValue, str], name: str, cores: CoreRange
) -> Lowered:
    """The program of a group that calls an operation.

    Raises:
        CompileError: if the operation is no program, does not fit onto the cores, or reads and
            writes other tensors than the call says.
    """
    op = group.root
    assert op is not None
    read, _ = tensor_places(op)
    values = [*op.operands[:read], *op.results]
    tensors = [GivenTensor(shape_of(v.type), declared_data_type(v)) for v in values]
    kernel_id = op.parameter("kernel_id")
    called = operations().program(kernel_id, tensors, name)
    used = called.program.core_range
    if used.last_column > cores.last_column or used.last_row > cores.last_row:
        raise CompileError(
            f"the operation '{kernel_id}' has a grid of {used.columns}x{used.rows} nodes, but "
            f"there are {cores.columns}x{cores.rows} cores",
            op,
            remedy="give the operation a smaller grid",
        )
    for place in range(len(values)):
        role, used = ("in", called.inputs) if place < read else ("out", called.outputs)
        fault = "" if place in used else f"does not {'read' if role == 'in' else 'write'}"
        if role == "in" and place in called.outputs:
            fault = "writes"
        if fault:
            raise CompileError(
                f"the operation '{kernel_id}' {fault} tensor {place}, which arg_roles says is "
                f"'{role}'",
                op,
                remedy="list what the operation reads first, then what it writes",
            )
    return Lowered(
        called.program,
        called.kernels,
        tuple(values[place] for place in called.inputs),
        tuple(values[place] for place in called.outputs),
    )
