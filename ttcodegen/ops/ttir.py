"""The `ttir` dialect, put together from the catalogue."""

from __future__ import annotations

from functools import cache

from xdsl.ir import Dialect

from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttir.generic import ThreadAttr, generic_ops
from ttcodegen.ops.core.definition import TTIR


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
