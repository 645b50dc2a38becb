"""Says which arguments of a function are inputs, and which are weights."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.passes import ModulePass

from ttcodegen.dialects.ttcore.dialect import ArgumentType, ArgumentTypeAttr
from ttcodegen.foundation.diagnostics import CompileError


@dataclass(frozen=True)
class PopulateArgumentTypes(ModulePass):
    """Sets `ttcore.argument_type` of the arguments of functions, by `function=kind,kind,...`.

    Several functions are divided by semicolons. Raises CompileError if the module has no such
    function, or not as many arguments, or there is no such kind.
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
