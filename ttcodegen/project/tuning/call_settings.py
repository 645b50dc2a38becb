"""Settings of library calls in C++: where the catalogue writes them among the arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from xdsl.ir import Block, SSAValue

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttnn.placement import TensorPlacement, placed_type
from ttcodegen.emitc.spelling import Text
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.calls import NULLOPT, Argument, CppCalls
from ttcodegen.ops.dialects import ttnn_op_classes
from ttcodegen.optimizer.overrides.meanings import TRANSPOSED, KnownCall

_MEMORY = Text("memory_config")
_DATA_TYPE = Text("dtype")
_SHAPE = (1, 1, 32, 32)


def _value(*_: object, **__: object) -> Argument:
    return Text("value")


class _Recorder:
    """Records the arguments of the one call that an op is written as."""

    def __init__(self) -> None:
        self.arguments: Sequence[Argument] = ()

    def __getitem__(self, value: SSAValue) -> Argument:
        return Text("operand")

    def __getattr__(self, name: str) -> Any:
        return _value

    def memory_config(self, placement: TensorPlacement) -> Argument:
        return _MEMORY

    def call(self, callee: str, *arguments: Argument, **_: str) -> Argument:
        self.arguments = arguments
        return Text(callee)

    def list(self, type: str, elements: Iterable[Argument]) -> Argument:
        return Text(type)


def with_settings(
    call: KnownCall, arguments: Sequence[str], settings: Mapping[str, str]
) -> list[str] | None:
    """Arguments of a call with a memory config or data type for its result.

    Args:
        call: the call.
        arguments: the positional arguments that it has.
        settings: values by parameter: memory_config, dtype.

    Returns:
        the arguments; None if the call does not take one of the settings.
    """
    written = _arguments(call)
    marks = {"memory_config": _MEMORY, "dtype": _DATA_TYPE}
    found = list(arguments)
    for parameter, value in settings.items():
        place = next((i for i, each in enumerate(written) if each == marks[parameter]), None)
        if place is None:
            return None
        for each in written[len(found) : place + 1]:
            found.append(each.text if isinstance(each, Text) and each not in marks.values() else "")
            found[-1] = found[-1] or NULLOPT.text
        found[place] = value
    return found


def _arguments(call: KnownCall) -> Sequence[Argument]:
    """Arguments as the catalogue writes them, with marks for the settings; empty if it writes no
    single call."""
    if TRANSPOSED in call.attributes:
        # ttnn::transpose has two dimensions where permute has a list, and then the same settings.
        attributes = {"permutation": list(range(len(_SHAPE)))}
        first, *others = _arguments(replace(call, attributes=attributes))
        return [first, Text("dim"), *others]
    definition = call.definition
    placed = placed_type(TensorPlacement(_SHAPE, DataType.BFLOAT16, buffer_type="l1"))
    block = Block(arg_types=[placed for name in call.operands if name is not None])
    values = iter(block.args)
    operands = [None if name is None else next(values) for name in call.operands]
    attributes: Mapping[str, Any] = call.attributes
    if any(spec.name == "dtype" for spec in definition.attributes):
        attributes = {**attributes, "dtype": DataType.BFLOAT8_B}
    made = OpBuilder(ttnn_op_classes(), block.add_op).emit_op(
        definition.short_name, operands, placed, **attributes
    )
    recorder = _Recorder()
    if definition.cpp is not None:
        definition.cpp(cast("CppCalls", recorder), made)
    of_type = Text(f"ttnn::DataType::{DataType.BFLOAT8_B.cpp}")
    return [_DATA_TYPE if each == of_type else each for each in recorder.arguments]
