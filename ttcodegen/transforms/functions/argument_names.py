"""Attributes that keep names and roles of values through lowering."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from ttcodegen.dialects.operations.functions import attributes_at
from ttcodegen.naming.arguments import TITLE, argument_names, argument_titles
from ttcodegen.naming.modules import name_values
from ttcodegen.transforms.functions.inline import is_entry
from ttcodegen.transforms.rewriting import functions


@dataclass(frozen=True)
class NameArguments(ModulePass):
    """Records the names of arguments and values that the source does not name, or a compiler did:
    after what the ops of TTIR do with them. Programs of the device no longer say it."""

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
