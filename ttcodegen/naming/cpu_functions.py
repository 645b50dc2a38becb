"""What functions are called that run on the CPU, between programs of the device."""

from __future__ import annotations

import re

from xdsl.dialects.func import FuncOp

from ttcodegen.dialects.core.datatypes import shape_of
from ttcodegen.emitc.identifiers import NameScope, identifier
from ttcodegen.naming.functions import shape_text, without_shapes

_HOISTED = re.compile(r"cpu_hoisted_(?:ttir_)?(\w+?)_[0-9a-f]{8,64}")


def cpu_function_symbol(op: str, digest: str) -> str:
    """The symbol of a function, as tt-mlir has it: equal functions have the same.

    Args:
        op: the short name of the op that it computes.
        digest: hexadecimal digits of what distinguishes it.
    """
    return f"cpu_hoisted_ttir_{op}_{digest}"


def cpu_function_name(symbol: str) -> str:
    """What a function for the CPU computes, by its symbol: `argmax` of
    `cpu_hoisted_ttir_argmax_83172da1`."""
    found = _HOISTED.fullmatch(symbol)
    return found[1] if found is not None else symbol


def cpu_function_title(function: FuncOp, scope: NameScope) -> str:
    """The C++ name of a function for the CPU: after what it computes, with the shape of the result
    where another function computes the same."""
    title = identifier(f"cpu_{cpu_function_name(function.sym_name.data)}")
    results = function.function_type.outputs.data
    if scope.is_taken(title) and results:
        title = f"{title}_{shape_text(shape_of(results[0]))}"
    return scope.unique(title)


def purpose_of_cpu_function(name: str) -> str:
    """What a function for the CPU does, by its C++ name, which may have a shape and a number:
    `reshape_on_cpu`."""
    return f"{without_shapes(name).removeprefix('cpu_')}_on_cpu"
