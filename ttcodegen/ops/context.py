"""The context that modules are read in: all dialects of the compiler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.dialects.func import Func
from xdsl.ir import Dialect

if TYPE_CHECKING:
    from collections.abc import Callable, Container


def load_dialects(without: Container[str] = ()) -> Context:
    """A context with all dialects that modules are made of; unregistered ops are kept.

    Those of the stages after TTIR and TTNN are loaded when a module has them.

    Args:
        without: Names of such later dialects for which the caller loads its own.
    """
    from ttcodegen.dialects.ttcore.dialect import TTCore
    from ttcodegen.ops.ttir import ttir_dialect
    from ttcodegen.ops.ttnn import ttnn_dialect

    context = Context(allow_unregistered=True)
    for dialect in (Builtin, Func, TTCore, ttir_dialect(), ttnn_dialect()):
        context.load_dialect(dialect)
    for name, factory in _LOWER_DIALECTS.items():
        if name not in without:
            context.register_dialect(name, factory)
    return context


def _arith() -> Dialect:
    from xdsl.dialects.arith import Arith

    return Arith


def _emitc() -> Dialect:
    from ttcodegen.emitc.dialect import EmitC

    return EmitC


def _math() -> Dialect:
    from xdsl.dialects.math import Math

    return Math


def _memref() -> Dialect:
    from xdsl.dialects.memref import MemRef

    return MemRef


def _scf() -> Dialect:
    from xdsl.dialects.scf import Scf

    return Scf


def _tensor() -> Dialect:
    from xdsl.dialects.tensor import Tensor

    return Tensor


def _ttkernel() -> Dialect:
    from ttcodegen.dialects.ttkernel import ttkernel_dialect

    return ttkernel_dialect()


def _ttmetal() -> Dialect:
    from ttcodegen.dialects.ttmetal.dialect import ttmetal_dialect

    return ttmetal_dialect()


_LOWER_DIALECTS: dict[str, Callable[[], Dialect]] = {
    "arith": _arith,
    "emitc": _emitc,
    "math": _math,
    "memref": _memref,
    "scf": _scf,
    "tensor": _tensor,
    "ttkernel": _ttkernel,
    "ttmetal": _ttmetal,
}
