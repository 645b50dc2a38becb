"""Programs that are operations of TT-Lang: who knows the operation compiles it."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import SSAValue

from ttcodegen.conversions.ttir_to_ttmetal.grouping.grouping import Group
from ttcodegen.conversions.ttir_to_ttmetal.parts.program_parts import Lowered
from ttcodegen.dialects.ttcore.cores import CoreRange
from ttcodegen.ops.tt_lang import called_program, called_tensors


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
    called = called_program(op, cores, name)
    values = called_tensors(op)
    return Lowered(
        called.program,
        called.kernels,
        tuple(values[place] for place in called.inputs),
        tuple(values[place] for place in called.outputs),
    )
