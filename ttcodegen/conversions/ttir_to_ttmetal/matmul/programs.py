"""Products of matrices over a grid of cores, perhaps with elementwise ops after them.

Each core computes a block of the result. The blocks of the operands that it needs are read once by
the first core of a row (left operand) and of a column (right operand) and sent to the others, one
part of the inner dimension after the other.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import SSAValue

from ttcodegen.conversions.ttir_to_ttmetal.grouping.grouping import Group
from ttcodegen.conversions.ttir_to_ttmetal.matmul.compute import MatmulCompute
from ttcodegen.conversions.ttir_to_ttmetal.matmul.movement import MatmulMovement
from ttcodegen.conversions.ttir_to_ttmetal.matmul.plan import MatmulPlan
from ttcodegen.conversions.ttir_to_ttmetal.parts.program_parts import Lowered, purpose_of
from ttcodegen.dialects.ttcore.cores import CoreRange
from ttcodegen.dialects.ttmetal.programs import ComputeSettings


def lower_matmul(
    group: Group, names: Mapping[SSAValue, str], name: str, cores: CoreRange
) -> Lowered:
    """The program of a group that is built around a product of matrices."""
    plan = MatmulPlan(group, names, name, cores)
    movement = MatmulMovement(plan)
    return plan.parts.program(
        name,
        purpose_of(group),
        plan.cores,
        (*movement.left_kernels(), MatmulCompute(plan).kernel(), *movement.right_kernels()),
        plan.costs(),
        ComputeSettings(fp32_destination=True, unpack_to_fp32=plan.full_width()),
        semaphores=plan.semaphores("left") + plan.semaphores("right"),
    )
