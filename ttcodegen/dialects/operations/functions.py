"""Functions: their body, the names and types of their arguments and results, and whom they call."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    ModuleOp,
    NameLoc,
    StringAttr,
    SymbolRefAttr,
    UnknownLoc,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from ttcodegen.dialects.ttcore.dialect import ArgumentType, ArgumentTypeAttr
from ttcodegen.foundation.diagnostics import CompileError

CALLS = ("func.call", "ttcore.load_cached", "ttcore.while_loop")
"""The ops that run another function of the module."""

CONST_EVAL = "ttcodegen.const_eval"
"""Marks a function that runs once, before the first call of the function it belongs to."""

FUNCTION_TYPE = "tt.function_type"
"""The attribute of a function that says what it is for."""
CPU_FUNCTION = StringAttr("forward_cpu")
"""`FUNCTION_TYPE` of a function that runs on the CPU, between device programs."""
LOOP_BODY = "ttcodegen.loop_body"
"""Marks a function that is the body of a `ttcore.while_loop`, and is called by that alone: with
`CONDITIONAL` or `COUNTED`."""
CONDITIONAL = StringAttr("conditional")
"""The body of a loop returns first whether there is another iteration."""
COUNTED = StringAttr("counted")
"""The trip count of a loop is known."""
KERNEL_THREAD = "ttkernel.thread"
"""The attribute of a function that makes it a device kernel: which processors run it."""
CPU_CALL = "ttir.cpu_hoisted_call"
"""Marks a call of such a function."""

GENERIC = "ttir.generic"
"""The attribute of a function that is the region of a `ttir.generic`, with what that op says; marks
the call of such a function as well."""

SOURCE_TYPES = "ttcodegen.source_types"
"""The attribute of a function with the type that it had in the source."""


def has_kernels(module: ModuleOp) -> bool:
    """True if functions of a module are kernels of the device."""
    return any(KERNEL_THREAD in op.attributes for op in module.ops)


def body_of(function: FuncOp) -> Block:
    """The only block of a function; raises CompileError if it has several or none."""
    blocks = function.body.blocks
    block = blocks.first
    if block is None or block.next_block is not None:
        raise CompileError(
            f"function '{function.sym_name.data}' should have one block",
            getattr(function, "source_offset", None),
        )
    return block


def change_types(function: FuncOp, change: Callable[[Attribute], Attribute]) -> bool:
    """Changes the types of a function and of all values in it; whether any became another."""
    type_ = function.function_type
    changed = FunctionType.from_lists(
        [change(each) for each in type_.inputs], [change(each) for each in type_.outputs]
    )
    found = changed != type_
    function.function_type = changed
    values: list[SSAValue] = [result for op in function.walk() for result in op.results]
    for block in function.body.blocks:
        values += block.args
    for value in values:
        if (new := change(value.type)) != value.type:
            found = True
            Rewriter.replace_value_with_new_type(value, new)
    return found


def argument_type(function: FuncOp, index: int) -> ArgumentType:
    """Declared kind of an argument."""
    declared = attributes_at(function.arg_attrs, index).get("ttcore.argument_type")
    if not isinstance(declared, ArgumentTypeAttr):
        return ArgumentType.DEFAULT
    return ArgumentType(declared.data)  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]


def argument_attribute(function: FuncOp, index: int, name: str) -> Attribute | None:
    """Attribute of an argument by name, None if there is none."""
    return attributes_at(function.arg_attrs, index).get(name)


def callee_of(op: Operation) -> str | None:
    """The function that an op runs, None if it is no call."""
    if op.name not in CALLS:
        return None
    callee = op.properties.get("callee", op.attributes.get("callee"))
    return callee.string_value() if isinstance(callee, SymbolRefAttr) else None


def is_cpu_function(function: FuncOp) -> bool:
    """True if a function runs on the CPU."""
    return function.attributes.get(FUNCTION_TYPE) == CPU_FUNCTION


def is_loop_body(function: FuncOp) -> bool:
    """True if a function is the body of a loop."""
    return LOOP_BODY in function.attributes


def flags_of_loop(function: FuncOp) -> int:
    """The number of results of the body of a loop that say whether there is another iteration."""
    return 0 if function.attributes.get(LOOP_BODY) == COUNTED else 1


def is_generic_function(function: FuncOp) -> bool:
    """True if a function is the region of a `ttir.generic`."""
    return GENERIC in function.attributes


def location_text(op: Operation) -> str | None:
    """The location that the source gives an op: its name, or without `loc(...)` around it."""
    location = op.location
    if isinstance(location, UnknownLoc):
        return None
    if isinstance(location, NameLoc):
        return location.desc.data
    return str(location).removeprefix("loc(").removesuffix(")")


def attributes_at(
    dictionaries: ArrayAttr[DictionaryAttr] | None, index: int
) -> dict[str, Attribute]:
    """The attributes of the argument or the result of that index."""
    if dictionaries is None or index >= len(dictionaries.data):
        return {}
    return dict(dictionaries.data[index].data)
