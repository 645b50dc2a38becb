"""Constants and weights of host functions: hoisting, and block float types."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue, Use
from xdsl.passes import ModulePass

from ttcodegen.dialects.core.datatypes import DataType, shape_of
from ttcodegen.dialects.operations.functions import argument_attribute, argument_type, body_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.dialect import ArgumentType
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.dialects.ttmetal.device_module import functions_of, is_host_function
from ttcodegen.dialects.ttnn.placement import TensorPlacement, declared_data_type, placed_type
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.ops.core.definition import TTIRDefinition
from ttcodegen.ops.device_constants import device_constants
from ttcodegen.transforms.functions import is_entry
from ttcodegen.transforms.rewriting import functions, set_type

# Hoisting of constant computations to the front of host functions.


@dataclass(frozen=True)
class ConstantsFirst(ModulePass):
    """Moves what depends on weights and constants alone to the start of each host function, in its
    order.

    The C++ has it in a function that runs once. In this order, later passes account for memory as
    the C++ needs it: all constants are there while the rest runs.
    """

    name = "ttmetal-constants-first"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions_of(op):
            if not is_host_function(function) or not function.body.blocks:
                continue
            block = body_of(function)
            ops = device_constants(function).ops
            first = block.first_op
            if not ops or first is None:
                continue
            for each in ops:
                each.detach()
            if block.first_op is None:
                block.add_ops(ops)
            else:
                block.insert_ops_before(ops, block.first_op)


# Keeps weights in DRAM as block floats, where the programs that read them take such tiles.
#
# A block float takes half the memory of a bf16 or a quarter of it, and as much less time to
# bring. Which weights are kept so is said by their argument, `ttcore.weight_dtype = "bfp_bf8"`,
# or for all of them by the option `target-dtype`, as in the reference compiler (tt-mlir, 2026).
# Kernels that move single elements cannot read them: such weights stay what they are.

WEIGHT_TYPE = "ttcore.weight_dtype"
BLOCK_FLOATS = ("bfp_bf8", "bfp_bf4")


@dataclass(frozen=True)
class TTMetalWeightTypes(ModulePass):
    """Gives arguments the device types that they are asked to have.

    Raises CompileError if a requested type is not a block float format.
    """

    name = "ttmetal-weight-dtype-conversion"
    target_dtype: str = ""
    """bfp_bf8 or bfp_bf4 for all weights; without it only for those that say so."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            if not is_entry(function):
                continue
            for argument in function.body.block.args:
                wanted = self._wanted(function, argument.index)
                if wanted and _reads_tiles(argument):
                    data_type = DataType.from_mlir(wanted)
                    placement = TensorPlacement(shape_of(argument.type), data_type)
                    set_type(argument, placed_type(placement))
            function.function_type = FunctionType.from_lists(
                [argument.type for argument in function.body.block.args],
                list(function.function_type.outputs.data),
            )

    def _wanted(self, function: FuncOp, index: int) -> str:
        said = argument_attribute(function, index, WEIGHT_TYPE)
        kind = argument_type(function, index)
        is_weight = kind is ArgumentType.PARAMETER or kind is ArgumentType.CONSTANT
        wanted = said.data if isinstance(said, StringAttr) else self.target_dtype * is_weight
        if wanted and wanted not in BLOCK_FLOATS:
            raise CompileError(
                f"weights cannot be kept as {wanted}",
                getattr(function, "source_offset", None),
                remedy=f"the types are {' and '.join(BLOCK_FLOATS)}",
            )
        return wanted


def _reads_tiles(value: SSAValue) -> bool:
    """True if all programs read whole tiles of the value and no single elements."""
    if not declared_data_type(value).is_float or not shape_of(value.type):
        return False
    uses = list(value.uses)
    return bool(uses) and all(_reads_whole_tiles(use, value) for use in uses)


def _reads_whole_tiles(use: Use, value: SSAValue) -> bool:
    op = use.operation
    if not isinstance(op, CatalogueOp):
        return False
    shape = shape_of(value.type)
    if op.name == "ttir.matmul":
        inner = shape_of(op.operands[0].type)[-1]
        return inner % TILE_SIDE == 0
    definition = op.definition
    is_elementwise = isinstance(definition, TTIRDefinition) and definition.tile is not None
    return is_elementwise and shape[-2:] == op.result_shape[-2:]
