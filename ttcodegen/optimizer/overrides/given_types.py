"""Data types that are given for what calls make."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, SSAValue

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.shards import Layout
from ttcodegen.dialects.ttnn.placement import placed_type, placement_of
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.definition import TTNNDefinition, has_trait
from ttcodegen.ops.core.traits import Trait
from ttcodegen.ops.dialects import ttnn_op_classes
from ttcodegen.optimizer.overrides.overrides import FunctionOverrides
from ttcodegen.optimizer.rewrites.weight_types import TYPES, narrow
from ttcodegen.transforms.functions.const_eval_hoist import constant_values
from ttcodegen.transforms.rebuilding import body_of
from ttcodegen.transforms.rewriting import set_type

_FLOATS = ("bf16", "f32", "bfp_bf8", "bfp_bf4")


def give_data_types(function: FuncOp, overrides: FunctionOverrides) -> None:
    """Makes calls give the data types that overrides name. Products take them as factors; whatever
    else uses them gets what it got before, cast.

    Raises:
        CompileError: if the library's call gives no other data type, or no such one.
    """
    for op, entry in overrides.items():
        if (name := entry.get("data_type")) is None:
            continue
        placement = placement_of(op.results[0])
        if placement.data_type.mlir != name:
            _check(overrides.names[op], op, name)
            _give(body_of(function), op, DataType.from_mlir(name))


def give_weight_types(function: FuncOp, overrides: FunctionOverrides) -> None:
    """Makes weights of products the block floats that overrides name.

    Raises:
        CompileError: if the call is no product of weights.
    """
    asked = [(op, entry["weights"]) for op, entry in overrides.items() if "weights" in entry]
    constants = constant_values(function) if asked else set[SSAValue]()
    made: dict[str, dict[SSAValue, SSAValue]] = {name: {} for name in TYPES}
    for op, name in asked:
        product = has_trait(op, Trait.MATRIX_PRODUCT)
        if not product or not narrow(op, TYPES[name], constants, made[name]):
            raise CompileError(
                f"'{overrides.names[op]}' ({op.definition.short_name}) has no weights that could "
                f"become {name}",
                op,
                remedy="products have them whose right factor depends on weights alone, of bf16 "
                "or f32, in tiles",
            )


def _check(called: str, op: CatalogueOp, name: str) -> None:
    made, placement = op.definition.short_name, placement_of(op.results[0])
    definition, current = op.definition, placement.data_type.mlir
    takes = isinstance(definition, TTNNDefinition) and any(
        rule.data_type == "attribute" for rule in definition.result_rules
    )
    legal = _FLOATS if takes and placement.data_type.is_float else (current,)
    if placement.layout is not Layout.TILE:
        legal = tuple(word for word in legal if not word.startswith("bfp"))
    if name not in legal:
        rule = (
            "the library's call takes no data type: it follows from its operands"
            if not takes
            else "numbers stay floats or integers, and block floats need tiles"
        )
        raise CompileError(
            f"'{called}' ({made}) cannot give {name}: {rule}",
            op,
            remedy=f"it gives {', '.join(legal)}",
        )


def _give(block: Block, op: CatalogueOp, data_type: DataType) -> None:
    result = op.results[0]
    before = placement_of(result)
    uses = list(result.uses)
    set_type(result, placed_type(before.with_(data_type=data_type)))
    op.properties["dtype"] = op.definition.attribute("dtype").kind.encode(data_type)
    others = [use for use in uses if not _is_factor(use.operation, use.index)]
    if not others:
        return
    following = op.next_op
    assert following is not None

    builder = OpBuilder(ttnn_op_classes(), lambda made: block.insert_op_before(made, following))
    builder.origin = op
    restored = builder.emit("composite_to_layout", [result], placed_type(before))
    for use in others:
        use.operation.operands[use.index] = restored


def _is_factor(op: object, index: int) -> bool:
    return isinstance(op, CatalogueOp) and has_trait(op, Trait.MATRIX_PRODUCT) and index in (0, 1)
