"""Which ops have no program, and why."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation

from ttcodegen.conversions.ttir_to_ttmetal.grouping.grouping import (
    INDEXED,
    SCATTER,
    WINDOWS,
    is_fill,
)
from ttcodegen.conversions.ttir_to_ttmetal.grouping.index_maps import is_movement
from ttcodegen.conversions.ttir_to_ttmetal.grouping.reductions import REDUCTIONS
from ttcodegen.conversions.ttir_to_ttmetal.grouping.tile_chains import (
    is_elementwise,
    unsupported_on_tiles,
)
from ttcodegen.conversions.ttir_to_ttmetal.movement.order_programs import unsupported_order
from ttcodegen.conversions.ttir_to_ttmetal.movement.programs import INDEX_OPERANDS
from ttcodegen.conversions.ttir_to_ttmetal.movement.scatter_programs import unsupported_scatter
from ttcodegen.dialects.core.datatypes import DataType, shape_of
from ttcodegen.dialects.operations.functions import CPU_CALL, GENERIC, is_cpu_function
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.tile import TILE_FORMATS
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.foundation.diagnostics import CompileError, Diagnostic
from ttcodegen.ops.attention.forms import ATTENTION, is_one_program
from ttcodegen.ops.core.constant_values import splat_of
from ttcodegen.ops.core.definition import has_trait
from ttcodegen.ops.core.traits import Trait
from ttcodegen.ops.reduction.reduce import is_on_integer_tiles
from ttcodegen.ops.tt_lang import CALLED_OPERATION
from ttcodegen.transforms.rewriting import functions

_INDICES = (DataType.INT32, DataType.UINT32)
MOST_ELEMENTS = 2**32
"""Kernels count elements with 32 bits."""


def unsupported_reason(op: Operation) -> str | None:
    """Why there is no program for an op, None if there is one."""
    if not isinstance(op, CatalogueOp):
        is_call = CPU_CALL in op.attributes or GENERIC in op.attributes
        return (
            None if isinstance(op, ReturnOp | FuncOp) or is_call else f"'{op.name}' has no lowering"
        )
    if any(size == 0 for value in (*op.operands, *op.results) for size in shape_of(value.type)):
        return f"'{op.name}' of a tensor without elements has no lowering"
    if is_elementwise(op):
        return unsupported_on_tiles(op)
    if op.name in REDUCTIONS and is_on_integer_tiles(op):
        return None
    if op.name in REDUCTIONS or op.name == "ttir.matmul":
        integers = [v for v in op.operands if not declared_data_type(v).is_float]
        return f"'{op.name}' of integers has no lowering" if integers else None
    if op.name in WINDOWS:
        floats = all(declared_data_type(v).is_float for v in (*op.operands, *op.results))
        return None if floats else f"'{op.name}' of integers has no lowering"
    if op.name == ATTENTION and is_one_program(op):
        return None
    if has_trait(op, Trait.ORDERS):
        return unsupported_order(op)
    if op.name == SCATTER:
        return unsupported_scatter(op)
    if op.definition.in_place is not None:
        return _unsupported_cache(op)
    if is_movement(op) or op.name in INDEXED:
        return _unsupported_movement(op)
    if is_fill(op) or op.name == CALLED_OPERATION:
        return None
    return f"'{op.name}' has no lowering"


def _unsupported_movement(op: CatalogueOp) -> str | None:
    largest = max(prod(shape_of(value.type)) for value in (*op.operands, *op.results))
    if largest > MOST_ELEMENTS:
        return f"'{op.name}' of more than {MOST_ELEMENTS} elements has no lowering"
    if op.name in INDEXED:
        index = declared_data_type(op.operand(INDEX_OPERANDS[op.name]))
        if index not in _INDICES:
            return f"'{op.name}' has no lowering for {index.mlir} indices"
    data_type = declared_data_type(op.results[0])
    if TILE_FORMATS[data_type.mlir].shares_exponent:
        return f"'{op.name}' of {data_type.mlir} has no lowering"
    return None


def _unsupported_cache(op: CatalogueOp) -> str | None:
    cache = op.operand("cache")
    data_type = declared_data_type(cache)
    if TILE_FORMATS[data_type.mlir].shares_exponent or prod(shape_of(cache.type)) > MOST_ELEMENTS:
        return f"'{op.name}' of {data_type.mlir} has no lowering"
    if declared_data_type(op.operand("input")) is not data_type:
        return f"'{op.name}' of other elements than those of the cache has no lowering"
    if splat_of(cache) is not None:
        return f"'{op.name}' of a constant has no lowering"
    if op.name == "ttir.paged_update_cache" and op.parameter("share_cache"):
        # Cores would write rows of one tile at the same time.
        return f"'{op.name}' of a shared cache has no lowering"
    for value in op.operands:
        index = declared_data_type(value)
        if not index.is_float and index not in _INDICES:
            return f"'{op.name}' has no lowering for {index.mlir} indices"
    return None


def check_coverage(module: ModuleOp) -> None:
    """Raises CompileError with one diagnostic for each kind of op that there is no program for."""
    found: dict[str, list[Operation]] = {}
    hosts = [function for function in functions(module) if not is_cpu_function(function)]
    for op in (op for function in hosts for op in function.walk()):
        if _is_dead(op):
            continue
        reason = unsupported_reason(op)
        if reason is not None:
            found.setdefault(reason, []).append(op)
    if found:
        raise CompileError.from_diagnostics(
            [
                Diagnostic(
                    f"{reason} for --target ttmetal" + _times(len(ops)),
                    getattr(ops[0], "source_offset", None),
                    "compile for --target ttnn",
                )
                for reason, ops in found.items()
            ]
        )


def _is_dead(op: Operation) -> bool:
    """True if nothing becomes of an op: a number that kernels know."""
    if not is_fill(op) or not op.results or 0 in shape_of(op.results[0].type):
        return False
    return splat_of(op.results[0]) is not None


def _times(count: int) -> str:
    return f" ({count} times)" if count > 1 else ""
