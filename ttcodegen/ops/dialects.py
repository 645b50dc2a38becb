"""The `ttir` and `ttnn` dialects of the catalogue, and the context of modules."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.dialects.func import Func
from xdsl.ir import Attribute, Dialect

from ttcodegen.dialects.operations.compute_config import ComputeConfigAttr
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttir.generic import ThreadAttr, generic_ops
from ttcodegen.dialects.ttnn.placement import TTNNLayoutAttr
from ttcodegen.dialects.ttnn.program_configs import PROGRAM_CONFIG_ATTRIBUTES
from ttcodegen.ops.core.definition import TTIR, TTNN

if TYPE_CHECKING:
    from collections.abc import Callable, Container


# The `ttir` dialect, assembled from the catalogue.


class TTIROp(CatalogueOp):
    """Base of the ops of the `ttir` dialect."""


@cache
def ttir_op_classes() -> dict[str, type[TTIROp]]:
    """One op class per entry of the catalogue, by short name."""
    import ttcodegen.ops as catalogue

    catalogue.load()
    return {
        name: type(_class_name(name), (TTIROp,), {"name": d.name, "definition": d})
        for name, d in TTIR.items()
    }


def _class_name(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_")) + "Op"


@cache
def ttir_dialect() -> Dialect:
    """The dialect with all ops of the catalogue, and those of `ttir.generic`."""
    return Dialect("ttir", [*ttir_op_classes().values(), *generic_ops()], [ThreadAttr])


# The `ttnn` dialect: one op per ttnn call.


class TTNNOp(CatalogueOp):
    """Base of the ops of the `ttnn` dialect."""


@cache
def ttnn_op_classes() -> dict[str, type[TTNNOp]]:
    """One op class per entry of the catalogue, by short name."""
    import ttcodegen.ops as catalogue

    catalogue.load()
    return {
        name: type(_ttnn_class_name(name), (TTNNOp,), {"name": d.name, "definition": d})
        for name, d in TTNN.items()
    }


def _ttnn_class_name(name: str) -> str:
    return "".join(part.capitalize() for part in name.replace(".", "_").split("_")) + "Op"


@cache
def ttnn_dialect() -> Dialect:
    """The dialect with all ops of the catalogue."""
    attributes: list[type[Attribute]] = [
        TTNNLayoutAttr,
        ComputeConfigAttr,
        *PROGRAM_CONFIG_ATTRIBUTES,
    ]
    return Dialect("ttnn", list(ttnn_op_classes().values()), attributes)


# The context that modules are read in: all dialects of the compiler.


def load_dialects(without: Container[str] = ()) -> Context:
    """Creates a context with all dialects of the compiler; unregistered ops are kept.

    Dialects below TTIR and TTNN are loaded when a module first uses them.

    Args:
        without: Names of lower dialects for which the caller loads its own version.
    """
    from ttcodegen.dialects.ttcore.dialect import TTCore

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
    from ttcodegen.emitc.statements import EmitC

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
