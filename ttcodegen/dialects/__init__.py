"""The dialects of the compiler."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.dialects.func import Func
from xdsl.ir import Dialect


def load_dialects() -> Context:
    """A context with builtin, func, ttcore, ttir, ttnn and emitc; unregistered ops are kept."""
    from ttcodegen.dialects.ttcore import TTCore
    from ttcodegen.dialects.ttir import ttir_dialect
    from ttcodegen.dialects.ttnn import ttnn_dialect

    context = Context(allow_unregistered=True)
    for dialect in (Builtin, Func, TTCore, ttir_dialect(), ttnn_dialect()):
        context.load_dialect(dialect)
    context.register_dialect("emitc", _emitc)
    return context


def _emitc() -> Dialect:
    """The dialect of the output, loaded when a module has it."""
    from ttcodegen.emitc.dialect import EmitC

    return EmitC
