"""What the passes share that make C++ files of a module."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects.builtin import DictionaryAttr, ModuleOp
from xdsl.ir import Attribute, Operation
from xdsl.passes import ModulePass

from ttcodegen.conversions.host_functions.cpp_interface import ConstantFile
from ttcodegen.conversions.host_functions.interface import Entry, module_name
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttcore.dialect import DataTypeAttr
from ttcodegen.emitc.identifiers import identifier
from ttcodegen.emitc.statements import FileOp, FuncOp
from ttcodegen.systems.releases import DEFAULT_RELEASE
from ttcodegen.transforms.module_text import module_text

CONSTANTS = "ttcodegen.constants"
"""Attribute of a module of EmitC: the constants that its code reads from files, by name."""


@dataclass(frozen=True)
class FileEmission(ModulePass):
    """A pass that makes one `emitc.file` per source file of functions of a module."""

    module_name: str = ""
    """The namespace and the stem of the files; the module's own name if empty."""
    input_hash: str = ""
    """What the header line of the files says about their origin; that of the module if empty."""
    release: str = DEFAULT_RELEASE
    trace: bool = field(default=False, compare=False, repr=False)
    """True if calls are captured as traces of the device: src/tuning.hpp then says how much of its
    memory is theirs; no option."""
    interface: Sequence[Entry] = field(default=(), compare=False, repr=False)
    """The entry functions of the module, where they are known already; no option."""

    def cpp_name(self, module: ModuleOp) -> str:
        """The namespace of the module, and the stem of its files."""
        return identifier(self.module_name or module_name(module) or "model")

    def source_hash(self, module: ModuleOp) -> str:
        """What the files say about their origin."""
        return self.input_hash or hashlib.sha256(module_text(module).encode()).hexdigest()


def replace_content(module: ModuleOp, content: Iterable[Operation]) -> None:
    """Replaces the ops of a module by others, which may be among them or in another module."""
    kept = list(content)
    for new in kept:
        new.detach()
    for old in list(module.ops):
        module.body.block.erase_op(old, safe_erase=False)
    module.body.block.add_ops(kept)


def hold_constants(module: ModuleOp, constants: Sequence[ConstantFile]) -> None:
    """Leaves the constants that the code of a module reads from files in its attributes."""
    if not constants:
        return
    module.attributes[CONSTANTS] = DictionaryAttr(
        {
            constant.name: DictionaryAttr(
                {"value": constant.value, "data_type": DataTypeAttr(constant.data_type.mlir)}
            )
            for constant in constants
        }
    )


def constants_of(module: ModuleOp) -> list[ConstantFile]:
    """The constants that a module of EmitC reads from files."""
    kept = module.attributes.get(CONSTANTS)
    if not isinstance(kept, DictionaryAttr):
        return []
    found: list[ConstantFile] = []
    for name, entry in kept.data.items():
        if isinstance(entry, DictionaryAttr):
            data_type = cast(DataTypeAttr, entry.data["data_type"])
            value: Attribute = entry.data["value"]
            found.append(ConstantFile(name, value, DataType.from_mlir(data_type.value.data)))
    return found


def functions_in_files(module: ModuleOp) -> set[str]:
    """The names of the functions that the files of a module of EmitC declare or define."""
    return {
        op.sym_name.data
        for file in module.ops
        if isinstance(file, FileOp)
        for op in file.body.block.ops
        if isinstance(op, FuncOp)
    }
