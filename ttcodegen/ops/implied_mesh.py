"""The mesh that a module needs which names none: as many chips along each axis as its ops between
chips put together, divide among or name.

The reference system gets the mesh as an option of its pipelines, so modules that it prints and
tests may leave it out.
"""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import ModuleOp, UnregisteredOp

from ttcodegen.dialects.ttcore.device import MESHES, MeshShape, set_mesh
from ttcodegen.ops.core.definition import TTIR
from ttcodegen.ops.dialects import ttir_op_classes


def imply_mesh(module: ModuleOp) -> None:
    """Makes a module that names no mesh say the one that its ops between chips need."""
    if MESHES in module.attributes:
        return
    shape = implied_mesh(module)
    if prod(shape) > 1:
        set_mesh(module, shape)


def implied_mesh(module: ModuleOp) -> MeshShape:
    """Rows and columns of chips that the ops of a module, of TTIR or TTNN, need; (1, 1) if they
    need no more than one chip."""
    ttir_op_classes()
    along = [1, 1]
    chips = 1
    for op in module.walk():
        name = op.op_name.data if isinstance(op, UnregisteredOp) else op.name
        dialect, _, short = name.rpartition(".")
        definition = TTIR.get(short) if dialect in ("ttir", "ttnn") else None
        if definition is None or definition.needed_chips is None or not op.operands:
            continue
        needed = definition.needed_chips(op)
        if needed.whole_mesh:
            return needed.along
        along = [max(known, count) for known, count in zip(along, needed.along, strict=True)]
        chips = max(chips, needed.total)
    if chips > prod(along) and chips % prod(along) == 0:
        # The other axis has the rest.
        along[0 if along[1] > 1 else 1] *= chips // prod(along)
    return along[0], along[1]
