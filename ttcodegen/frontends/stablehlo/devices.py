"""What a module says of devices: it must be meant for one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation

from ttcodegen.diagnostics import CompileError
from ttcodegen.frontends.stablehlo.dialect import StableHLOOp

_COUNTS = ("mhlo.num_partitions", "mhlo.num_replicas")
_REMEDY = "lower the model for one device: without a mesh and without shardings"
_DEVICES = re.compile(r"devices=\[([\d,]*)\](?:<=\[[\d,]*\](?:T\([\d,]*\))?|[\d,]*)"
                      r"(\s*last_tile_dim_replicate)?")  # fmt: skip
_MESH = re.compile(r"mesh<\[([^\]]*)\]")


def refuse_several_devices(operations: Sequence[Operation]) -> None:
    """Raises CompileError at what first says that a module is for several devices."""
    for operation in operations:
        for op in operation.walk():
            count = _devices(op)
            if count > 1:
                raise CompileError(
                    f"the program is for several devices ({count}), and programs are compiled for "
                    "one",
                    op,
                    remedy=_REMEDY,
                )


def _devices(op: Operation) -> int:
    """How many devices an operation speaks of; 1 if of none."""
    if isinstance(op, StableHLOOp) and op.name == "sdy.mesh":
        return _mesh_size(op)
    found = 1
    if isinstance(op, ModuleOp):
        for name in _COUNTS:
            value = op.attributes.get(name)
            if isinstance(value, IntegerAttr):
                found = max(found, value.value.data)
        return max([found, *map(_in_mesh_text, _texts(op.attributes.get(_FRONTEND)))])
    sharding = op.attributes.get("mhlo.sharding")
    if isinstance(sharding, StringAttr):
        found = max(found, sharded_devices(sharding.data))
    if isinstance(op, FuncOp):
        for arguments in (op.arg_attrs, op.res_attrs):
            for text in _shardings(arguments):
                found = max(found, sharded_devices(text))
    return found


_FRONTEND = "mhlo.frontend_attributes"


def _mesh_size(op: StableHLOOp) -> int:
    total = 1
    for size in op.get("axes", {}).values():
        total *= int(size)
    if "axes" not in op.given:
        total = max([1, *map(_in_mesh_text, [str(op.properties.get("mesh", ""))])])
    return total


def _in_mesh_text(text: str) -> int:
    """How many devices a mesh that is written in a text has."""
    total = 1
    match = _MESH.search(text)
    if match is not None:
        for size in re.findall(r"=(\d+)", match.group(1)):
            total *= int(size)
    return total


def _texts(attribute: Attribute | None) -> Iterator[str]:
    if isinstance(attribute, DictionaryAttr):
        for value in attribute.data.values():
            if isinstance(value, StringAttr):
                yield value.data


def _shardings(attributes: ArrayAttr[DictionaryAttr] | None) -> Iterator[str]:
    for dictionary in attributes.data if attributes is not None else ():
        value = dictionary.data.get("mhlo.sharding")
        if isinstance(value, StringAttr):
            yield value.data


def sharded_devices(text: str) -> int:
    """Over how many devices a sharding divides or repeats a tensor."""
    found = 1
    for sizes, _ in _DEVICES.findall(text):
        total = 1
        for size in filter(None, sizes.split(",")):
            total *= int(size)
        found = max(found, total)
    return found
