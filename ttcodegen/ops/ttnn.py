"""The `ttnn` dialect: one op per call of the library."""

from __future__ import annotations

from functools import cache

from xdsl.ir import Attribute, Dialect

from ttcodegen.dialects.operations.compute_config import ComputeConfigAttr
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttnn.placement import TTNNLayoutAttr
from ttcodegen.dialects.ttnn.program_configs import PROGRAM_CONFIG_ATTRIBUTES
from ttcodegen.ops.core.definition import TTNN


class TTNNOp(CatalogueOp):
    """Base of the ops of the `ttnn` dialect."""


@cache
def ttnn_op_classes() -> dict[str, type[TTNNOp]]:
    """One op class per entry of the catalogue, by short name."""
    import ttcodegen.ops as catalogue

    catalogue.load()
    return {
        name: type(_class_name(name), (TTNNOp,), {"name": d.name, "definition": d})
        for name, d in TTNN.items()
    }


def _class_name(name: str) -> str:
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
