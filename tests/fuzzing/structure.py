"""Mutants of modules that still read: operands, results and attributes that contradict."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from typing import Any, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    TensorType,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, OpResult, ParametrizedAttribute, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ttcodegen.dialects.core.datatypes import bf16, f32, i1, si32, ui8, ui32
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.parsing import parse_module
from ttcodegen.transforms.module_text import module_text

_INTEGERS = (-(2**63), -(2**31), -2, -1, 0, 1, 2, 3, 7, 31, 33, 65536, 2**31 - 1, 2**31, 2**62)
_SIZES = (0, 1, 2, 3, 31, 32, 33, 64, 100_000)
_ELEMENTS = (bf16, f32, i1, si32, ui8, ui32)


def mutated_structure(text: str, numbers: random.Random) -> str:
    """A module with one to three of its ops changed; the text itself where a changed module has no
    text, as one whose op lacks what its format prints."""
    with contextlib.suppress(CompileError):
        module = parse_module(Source("seed.mlir", text))
        for _ in range(numbers.choice((1, 1, 1, 2, 3))):
            ops = [op for op in module.walk() if not isinstance(op, ModuleOp | FuncOp)]
            if ops:
                # Not every value is one that an attribute can have.
                with contextlib.suppress(Exception):
                    numbers.choice(_CHANGES)(numbers.choice(ops), numbers)
        with contextlib.suppress(Exception):
            return module_text(module)
    return text


def _values_of(op: Operation) -> list[SSAValue]:
    """The arguments and results of the function around an op, also those after it."""
    function: Operation | None = op
    while function is not None and not isinstance(function, FuncOp):
        function = function.parent_op()
    if function is None or not function.body.blocks:
        return []
    found: list[SSAValue] = list(function.body.blocks[0].args)
    for inner in function.walk():
        found += inner.results
    return found


def _drop_operand(op: Operation, numbers: random.Random) -> None:
    place = numbers.randrange(len(op.operands))
    op.operands = [value for index, value in enumerate(op.operands) if index != place]


def _repeat_operand(op: Operation, numbers: random.Random) -> None:
    op.operands = [*op.operands, numbers.choice(op.operands)]


def _swap_operands(op: Operation, numbers: random.Random) -> None:
    operands = list(op.operands)
    numbers.shuffle(operands)
    op.operands = operands


def _replace_operand(op: Operation, numbers: random.Random) -> None:
    op.operands[numbers.randrange(len(op.operands))] = numbers.choice(_values_of(op))


def _change_result(op: Operation, numbers: random.Random) -> None:
    result = numbers.choice(op.results)
    Rewriter.replace_value_with_new_type(result, _changed(result.type, numbers))


def _change_argument(op: Operation, numbers: random.Random) -> None:
    value = numbers.choice([each for each in _values_of(op) if not isinstance(each, OpResult)])
    Rewriter.replace_value_with_new_type(value, _changed(value.type, numbers))


def _change_attribute(op: Operation, numbers: random.Random) -> None:
    given = numbers.choice([each for each in (op.properties, op.attributes) if each])
    name = numbers.choice(sorted(given))
    given[name] = _changed(given[name], numbers)


def _drop_attribute(op: Operation, numbers: random.Random) -> None:
    given = numbers.choice([each for each in (op.properties, op.attributes) if each])
    del given[numbers.choice(sorted(given))]


def _duplicate(op: Operation, numbers: random.Random) -> None:
    Rewriter.insert_op(op.clone(), InsertPoint.after(op))


def _move(op: Operation, numbers: random.Random) -> None:
    block = op.parent
    assert block is not None
    others = [each for each in block.ops if each is not op]
    op.detach()
    block.insert_op_before(op, numbers.choice(others))


_CHANGES: tuple[Callable[[Operation, random.Random], None], ...] = (
    *(_drop_operand, _repeat_operand, _swap_operands, _replace_operand, _duplicate, _move),
    *(_change_result, _change_argument, _drop_attribute),
    *(_change_attribute, _change_attribute, _change_attribute),
)


def _changed(attribute: Attribute, numbers: random.Random) -> Attribute:
    """Another value of the kind of an attribute or type; the same where there is none."""
    match attribute:
        case IntegerAttr():
            number = cast("IntegerAttr[Any]", attribute)
            return IntegerAttr(numbers.choice(_INTEGERS), number.type)
        case FloatAttr():
            value = numbers.choice((0.0, -1.0, 1e30, -9e18, float("nan"), float("inf")))
            return FloatAttr(value, cast("FloatAttr[Any]", attribute).type)
        case StringAttr():
            return StringAttr(numbers.choice(("", "x", "nearest", "../x", "a\nb")))
        case TensorType():
            return _changed_tensor(attribute, numbers)
        case DenseArrayBase():
            array = cast("DenseArrayBase[Any]", attribute)
            values = list(array.get_values())
            return DenseArrayBase.from_list(array.elt_type, _changed_list(values, numbers))
        case ArrayAttr():
            parts = list(attribute)
            place = numbers.randrange(len(parts))
            if numbers.random() < 0.3:
                del parts[place]
            else:
                parts[place] = _changed(parts[place], numbers)
            return ArrayAttr(parts)
        case ParametrizedAttribute():
            parameters = list(attribute.parameters)
            place = numbers.randrange(len(parameters))
            parameters[place] = _changed(parameters[place], numbers)
            return type(attribute).new(parameters)
        case _:
            return attribute


def _changed_tensor(type_: TensorType[Attribute], numbers: random.Random) -> Attribute:
    if numbers.random() < 0.3:
        element = numbers.choice(_ELEMENTS)
        return TensorType(element, type_.get_shape(), type_.encoding)
    shape = list(type_.get_shape())
    match numbers.randrange(4):
        case 0 if shape:
            del shape[numbers.randrange(len(shape))]
        case 1:
            shape.insert(numbers.randrange(len(shape) + 1), numbers.choice((1, 2, 32)))
        case 2:
            numbers.shuffle(shape)
        case _ if shape:
            shape[numbers.randrange(len(shape))] = numbers.choice(_SIZES)
        case _:
            shape = [1]
    return TensorType(type_.element_type, shape, type_.encoding)


def _changed_list(values: list[Any], numbers: random.Random) -> list[Any]:
    place = numbers.randrange(len(values) + 1)
    if place == len(values) or numbers.random() < 0.2:
        values.insert(place, numbers.choice((0, 1, 2, *values)))
    elif numbers.random() < 0.2:
        del values[place]
    else:
        values[place] = numbers.choice((*_INTEGERS[2:-2], *values))
    return values
