"""Functions: bodies, names and types of arguments and results, and callees."""

from __future__ import annotations

from collections.abc import Callable, Container

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
"""Ops that call another function of the module."""

CONST_EVAL = "ttcodegen.const_eval"
"""Attribute of a function that runs once, before the first call of the function that uses it."""
CONST_EVAL_SUFFIX = "_const_eval"
"""End of the name of a function that computes what depends on weights alone."""

FUNCTION_TYPE = "tt.function_type"
"""Attribute with the purpose of a function."""
CPU_FUNCTION = StringAttr("forward_cpu")
"""`FUNCTION_TYPE` of a function that runs on the CPU, between device programs."""
LOOP_BODY = "ttcodegen.loop_body"
"""Attribute of the body of a `ttcore.while_loop`, its only caller: `CONDITIONAL` or `COUNTED`."""
CONDITIONAL = StringAttr("conditional")
"""Kind of a loop body whose first result is the condition of the next iteration."""
COUNTED = StringAttr("counted")
"""Kind of a loop body with a known trip count."""
KERNEL_THREAD = "ttkernel.thread"
"""Attribute of a device kernel, with the processors that run it."""
CPU_CALL = "ttir.cpu_hoisted_call"
"""Attribute of a call of a CPU function."""

GENERIC = "ttir.generic"
"""Attribute of an outlined region of `ttir.generic`, with the properties of the op.

Calls of such functions have it as well.
"""

SOURCE_TYPES = "ttcodegen.source_types"
"""Attribute with the type of a function in the source."""


def has_kernels(module: ModuleOp) -> bool:
    """Returns whether a module has device kernels."""
    return any(KERNEL_THREAD in op.attributes for op in module.ops)


def body_of(function: FuncOp) -> Block:
    """Returns the only block of a function; raises CompileError if it has several or none."""
    blocks = function.body.blocks
    block = blocks.first
    if block is None or block.next_block is not None:
        raise CompileError(
            f"function '{function.sym_name.data}' should have one block",
            getattr(function, "source_offset", None),
        )
    return block


def change_types(
    function: FuncOp, change: Callable[[Attribute], Attribute], kept: Container[SSAValue] = ()
) -> bool:
    """Changes the types of a function and of all its values but the op results in `kept`.

    Returns whether any type changed.
    """
    type_ = function.function_type
    changed = FunctionType.from_lists(
        [change(each) for each in type_.inputs], [change(each) for each in type_.outputs]
    )
    found = changed != type_
    function.function_type = changed
    values: list[SSAValue] = [
        result for op in function.walk() for result in op.results if result not in kept
    ]
    for block in function.body.blocks:
        values += block.args
    for value in values:
        if (new := change(value.type)) != value.type:
            found = True
            Rewriter.replace_value_with_new_type(value, new)
    return found


def argument_type(function: FuncOp, index: int) -> ArgumentType:
    """Returns the declared kind of an argument."""
    declared = attributes_at(function.arg_attrs, index).get("ttcore.argument_type")
    if not isinstance(declared, ArgumentTypeAttr):
        return ArgumentType.DEFAULT
    return ArgumentType(declared.data)  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]


def argument_attribute(function: FuncOp, index: int, name: str) -> Attribute | None:
    """Returns an attribute of an argument by name, or None."""
    return attributes_at(function.arg_attrs, index).get(name)


def callee_of(op: Operation) -> str | None:
    """Returns the function that an op calls, or None if it is no call."""
    if op.name not in CALLS:
        return None
    callee = op.properties.get("callee", op.attributes.get("callee"))
    return callee.string_value() if isinstance(callee, SymbolRefAttr) else None


def is_cpu_function(function: FuncOp) -> bool:
    """Returns whether a function runs on the CPU."""
    return function.attributes.get(FUNCTION_TYPE) == CPU_FUNCTION


def is_loop_body(function: FuncOp) -> bool:
    """Returns whether a function is the body of a loop."""
    return LOOP_BODY in function.attributes


def flags_of_loop(function: FuncOp) -> int:
    """Returns the number of condition results of a loop body: one, or none if the trip count is
    known."""
    return 0 if function.attributes.get(LOOP_BODY) == COUNTED else 1


def is_generic_function(function: FuncOp) -> bool:
    """Returns whether a function is an outlined region of `ttir.generic`."""
    return GENERIC in function.attributes


def location_text(op: Operation) -> str | None:
    """Returns the source location of an op: its name, or its text without `loc(...)`."""
    location = op.location
    if isinstance(location, UnknownLoc):
        return None
    if isinstance(location, NameLoc):
        return location.desc.data
    return str(location).removeprefix("loc(").removesuffix(")")


def attributes_at(
    dictionaries: ArrayAttr[DictionaryAttr] | None, index: int
) -> dict[str, Attribute]:
    """Returns the attributes of an argument or result by index."""
    if dictionaries is None or index >= len(dictionaries.data):
        return {}
    return dict(dictionaries.data[index].data)
