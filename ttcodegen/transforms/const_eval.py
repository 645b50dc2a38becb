"""Const-eval hoisting, roles and names of arguments, and evaluation of ops in numpy."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    ModuleOp,
    StringAttr,
    UnitAttr,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ttcodegen.dialects.core.datatypes import element_of, numpy_name, shape_of
from ttcodegen.dialects.operations.functions import (
    CONST_EVAL,
    CONST_EVAL_SUFFIX,
    argument_type,
    attributes_at,
    is_loop_body,
)
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.dialect import (
    ArgumentType,
    ArgumentTypeAttr,
    LoadCachedOp,
)
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.foundation.lazy_numpy import np
from ttcodegen.naming.arguments import TITLE, argument_names, argument_titles
from ttcodegen.naming.modules import name_values
from ttcodegen.naming.sources import name_in_text
from ttcodegen.ops.core.definition import Call, ResultInfo, TTNNDefinition
from ttcodegen.transforms.functions import is_entry, merge_common_subexpressions
from ttcodegen.transforms.rewriting import body_of, functions, is_repeatable

if TYPE_CHECKING:
    import numpy


# Hoists ops that depend only on weights and constants into functions that run once.


def is_const_eval(function: FuncOp) -> bool:
    """Returns whether a function computes constants for another function."""
    return CONST_EVAL in function.attributes


@dataclass(frozen=True)
class ConstEvalHoist(ModulePass):
    """Makes one const-eval function per entry function, called through `ttcore.load_cached`."""

    name = "const-eval-hoist-transform"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in list(op.walk()):
            if isinstance(function, FuncOp) and not is_const_eval(function):
                # Loop bodies have no constants of their own: loop invariants were hoisted before.
                if not is_loop_body(function):
                    _hoist(function)


def _hoist(function: FuncOp) -> None:
    # Lowering makes a constant for each op that needs one.
    merge_common_subexpressions(function, constant_calls(function))
    constants = constant_values(function)
    hoisted = [
        op
        for op in body_of(function).ops
        if isinstance(op, CatalogueOp) and op.results and op.results[0] in constants
    ]
    if not hoisted:
        return
    inside = set(hoisted)
    # Values that only hoisted ops use stay inside the const-eval function.
    outputs = [
        result
        for op in hoisted
        for result in op.results
        if any(use.operation not in inside for use in result.uses)
    ]
    inputs = list(
        dict.fromkeys(
            operand
            for op in hoisted
            for operand in op.operands
            if not (isinstance(operand.owner, Operation) and operand.owner in inside)
        )
    )
    made = _const_eval_function(function, hoisted, inputs, outputs)
    parent = function.parent
    assert parent is not None
    parent.insert_op_before(made, function)
    load = LoadCachedOp(made.sym_name.data, inputs, [value.type for value in outputs])
    block = body_of(function)
    first = block.first_op
    if first is None:
        block.add_op(load)
    else:
        block.insert_op_before(load, first)
    for value, loaded in zip(outputs, load.outputs, strict=True):
        loaded.name_hint = value.name_hint
        for use in list(value.uses):
            if use.operation.parent is block:
                use.operation.operands[use.index] = loaded


def constant_values(function: FuncOp) -> set[SSAValue]:
    """Returns the values that are the same in every call."""
    block = body_of(function)
    overwritten = overwritten_values(block)
    return computed_from(
        block,
        {
            argument
            for argument in block.args
            if argument_type(function, argument.index)
            in (ArgumentType.PARAMETER, ArgumentType.CONSTANT)
            and argument not in overwritten
        },
    )


def computed_from(block: Block, known: Collection[SSAValue]) -> set[SSAValue]:
    """Returns the known values and the results of pure ttnn calls on such values only."""
    overwritten = overwritten_values(block)
    constants = set(known)
    for op in block.ops:
        if not isinstance(op, CatalogueOp) or not isinstance(op.definition, TTNNDefinition):
            continue
        fixed = op.definition.pure and op.definition.in_place is None
        if (
            fixed
            and all(o in constants for o in op.operands)
            and overwritten.isdisjoint(op.results)
        ):
            constants.update(op.results)
    return constants


def constant_calls(function: FuncOp) -> set[Operation]:
    """Returns the calls that depend on weights and constants alone."""
    constants = constant_values(function)
    ops = body_of(function).ops
    return {op for op in ops if op.results and all(r in constants for r in op.results)}


def overwritten_values(block: Block) -> set[SSAValue]:
    """Returns the values that ops write in place, and the values whose buffer these may alias."""
    found: set[SSAValue] = set()
    for op in reversed(list(block.ops)):
        if not isinstance(op, CatalogueOp) or not isinstance(op.definition, TTNNDefinition):
            continue
        if op.definition.in_place is not None:
            found.add(op.operand(op.definition.in_place))
        if op.definition.may_alias and not found.isdisjoint(op.results):
            found.add(op.operands[0])
    return found


def _const_eval_function(
    function: FuncOp,
    hoisted: Sequence[Operation],
    inputs: Sequence[SSAValue],
    outputs: Sequence[SSAValue],
) -> FuncOp:
    block = Block(arg_types=[value.type for value in inputs])
    for argument, value in zip(block.args, inputs, strict=True):
        argument.name_hint = value.name_hint
    replacement = dict(zip(inputs, block.args, strict=True))
    for op in hoisted:
        op.detach()
        op.operands = [replacement.get(value, value) for value in op.operands]
    block.add_ops(hoisted)
    block.add_op(ReturnOp(*outputs))
    name = f"{function.sym_name.data}{CONST_EVAL_SUFFIX}"
    made = FuncOp(
        name,
        FunctionType.from_lists(
            [value.type for value in inputs], [value.type for value in outputs]
        ),
        Region(block),
        "private",
        arg_attrs=ArrayAttr(
            [
                DictionaryAttr({"ttir.name": StringAttr(name_in_text(value, f"arg{index}"))})
                for index, value in enumerate(inputs)
            ]
        ),
    )
    made.attributes[CONST_EVAL] = UnitAttr()
    return made


# Argument types: inputs, parameters and constants.


@dataclass(frozen=True)
class PopulateArgumentTypes(ModulePass):
    """Sets `ttcore.argument_type` of function arguments, given as `function=kind,kind,...`.

    Several functions are separated by semicolons. Raises CompileError for an unknown function or
    kind, or if the number of kinds differs from the number of arguments.
    """

    name = "populate-argument-types"

    argument_types: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = {f.sym_name.data: f for f in op.walk() if isinstance(f, FuncOp)}
        for entry in filter(None, (part.strip() for part in self.argument_types.split(";"))):
            name, _, kinds = entry.partition("=")
            function = functions.get(name.strip())
            if function is None:
                raise CompileError(
                    f"argument-types: the module has no function '{name.strip()}'",
                    remedy=f"it has {', '.join(functions) or 'none'}",
                )
            _set(function, [kind.strip() for kind in kinds.split(",") if kind.strip()])


def _set(function: FuncOp, kinds: list[str]) -> None:
    count = len(function.function_type.inputs)
    if len(kinds) != count:
        raise CompileError(
            f"argument-types names {len(kinds)} arguments, but the function has {count}", function
        )
    known = [kind.value for kind in ArgumentType]
    present = function.arg_attrs.data if function.arg_attrs is not None else ()
    attributes: list[DictionaryAttr] = []
    for index, kind in enumerate(kinds):
        if kind not in known:
            raise CompileError(
                f"argument-types: there is no kind '{kind}'", remedy=f"there are {', '.join(known)}"
            )
        before = dict(present[index].data) if index < len(present) else dict[str, Attribute]()
        declared = ArgumentTypeAttr(ArgumentType(kind))
        attributes.append(DictionaryAttr({**before, "ttcore.argument_type": declared}))
    function.arg_attrs = ArrayAttr(attributes)


# Names and roles of values, kept through lowering as attributes.


@dataclass(frozen=True)
class NameArguments(ModulePass):
    """Names arguments and values without a name in the source, after the TTIR ops that use them.

    Runs before lowering: device programs no longer have the ops that the names come from.
    """

    name = "ttmetal-name-arguments"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            if is_entry(function):
                _record(function)
                name_values(function)


def _record(function: FuncOp) -> None:
    names, titles = argument_names(function), argument_titles(function, lambda _: None)
    if names == titles:
        return
    attributes = [attributes_at(function.arg_attrs, index) for index in range(len(names))]
    for found, name, title in zip(attributes, names, titles, strict=True):
        if title != name:
            found[TITLE] = StringAttr(title)
    function.arg_attrs = ArrayAttr(map(DictionaryAttr, attributes))


def evaluate(
    op: CatalogueOp,
    operands: Sequence[numpy.ndarray],
    shapes: Sequence[tuple[int, ...]] | None = None,
) -> list[numpy.ndarray]:
    """Returns the results of the op for these operands, each rounded to the result's dtype.

    Floats are float32. `shapes` replaces the shapes of the op's results, for example to evaluate an
    elementwise op on one element. Raises ValueError if the op has no numpy meaning.
    """
    meaning = op.definition.numpy
    if meaning is None:
        raise ValueError(f"{op.name} has no numpy meaning")
    groups: dict[str, list[numpy.ndarray]] = {}
    dtypes: dict[str, list[str]] = {}
    start = 0
    for spec, size in zip(op.definition.operands, op.segments(), strict=True):
        groups[spec.name] = list(operands[start : start + size])
        dtypes[spec.name] = [_dtype(value) for value in op.operands[start : start + size]]
        start += size
    if shapes is None:
        shapes = [shape_of(result.type) for result in op.results]
    infos = [
        ResultInfo(shape, _dtype(result)) for shape, result in zip(shapes, op.results, strict=True)
    ]
    with np.errstate(all="ignore"):
        found = meaning(Call(op.name, groups, op.parameters(), infos, dtypes))
        arrays = [found] if isinstance(found, np.ndarray | np.generic) else list(found)
        return [
            rounded(np.asarray(array), info.dtype)
            for array, info in zip(arrays, infos, strict=True)
        ]


def known_elements(value: SSAValue, most_elements: int = 2**20) -> numpy.ndarray | None:
    """Returns the elements of a value that depends on constants alone (floats as float32).

    Returns None if it depends on anything else, or if evaluating it takes too many ops or elements.
    """
    budget = [_MOST_OPS]
    known: dict[SSAValue, numpy.ndarray | None] = {}

    def found(value: SSAValue) -> numpy.ndarray | None:
        if value not in known:
            known[value] = computed(value)
        return known[value]

    def computed(value: SSAValue) -> numpy.ndarray | None:
        op = value.owner
        budget[0] -= 1
        if budget[0] < 0 or not isinstance(op, CatalogueOp) or len(op.results) != 1:
            return None
        if prod(shape_of(value.type)) > most_elements or not is_repeatable(op):
            return None
        operands: list[numpy.ndarray] = []
        for operand in op.operands:
            array = found(operand)
            if array is None:
                return None
            operands.append(array)
        try:
            return evaluate(op, operands)[0]
        except ValueError:
            return None

    return found(value)


_MOST_OPS = 128


def rounded(array: numpy.ndarray, dtype: str) -> numpy.ndarray:
    """Returns the array rounded to a dtype; bf16 and f16 values are returned as float32."""
    if dtype in ("bfloat16", "float16"):
        import ml_dtypes  # registers bfloat16 with numpy

        assert ml_dtypes is not None
        return array.astype(np.dtype(dtype)).astype(np.float32)
    return array.astype(np.dtype(dtype))


def _dtype(value: SSAValue) -> str:
    name = numpy_name(element_of(value.type))
    if name is None:
        raise ValueError(f"tensors of {element_of(value.type)} have no numpy meaning")
    return name
