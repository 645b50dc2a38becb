"""Time estimate of a function before layouts are assigned, for earlier passes."""

from __future__ import annotations

from collections.abc import Callable, Collection

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.dialect import system_of
from ttcodegen.optimizer.core.call import call_of
from ttcodegen.optimizer.cost.calls import CostModel
from ttcodegen.systems.cards import default_system
from ttcodegen.systems.description import DEFAULT_ARCHITECTURE
from ttcodegen.transforms.functions.const_eval_hoist import constant_calls
from ttcodegen.transforms.rebuilding import body_of
from ttcodegen.transforms.ttnn.layout import TTNNLayout


def apply_if_faster(
    context: Context, module: ModuleOp, names: Collection[str], change: Callable[[FuncOp], None]
) -> None:
    """Changes each function of a module that has calls of these names and in which the change saves
    time by the model of cost, with all tensors where they are without an optimizer."""
    system = system_of(module) or default_system(DEFAULT_ARCHITECTURE)
    model = CostModel(system.chip)
    for function in list(module.walk()):
        if isinstance(function, FuncOp) and _has_calls(function, names):
            changed = function.clone()
            change(changed)
            if _seconds(context, changed, model) <= _seconds(context, function.clone(), model):
                change(function)


def _has_calls(function: FuncOp, names: Collection[str]) -> bool:
    return any(
        isinstance(op, CatalogueOp) and op.definition.short_name in names
        for op in body_of(function).ops
    )


def _seconds(context: Context, function: FuncOp, model: CostModel) -> float:
    """The time of a function, which gets layouts; what is computed once is not counted."""
    TTNNLayout().apply(context, ModuleOp([function]))
    once = constant_calls(function)
    return sum(
        model.cost(call_of(op)).seconds
        for op in body_of(function).ops
        if isinstance(op, CatalogueOp) and op not in once
    )
