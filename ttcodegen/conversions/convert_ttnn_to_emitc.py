"""The conversion to EmitC as a pass, for modules that are kept as text between two programs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.passes import ModulePass

from ttcodegen.conversions.interface import entries, module_name
from ttcodegen.conversions.ttnn_to_emitc import ConstantFile, convert_ttnn_to_emitc
from ttcodegen.diagnostics import CompileError
from ttcodegen.dialects.datatypes import DataType
from ttcodegen.dialects.operation import CatalogueOp
from ttcodegen.dialects.placement import TTNNLayoutAttr
from ttcodegen.dialects.ttcore import DataTypeAttr
from ttcodegen.emitc.naming import identifier
from ttcodegen.systems.releases import DEFAULT_RELEASE
from ttcodegen.transforms.decompose_layouts import DecomposeLayouts
from ttcodegen.transforms.module_text import module_text
from ttcodegen.transforms.rebuilding import body_of
from ttcodegen.transforms.ttnn_layout import assign_wanted_layouts

CONSTANTS = "ttcodegen.constants"
"""Attribute of a module of EmitC: the constants that its code reads from files, by name."""


@dataclass(frozen=True)
class ConvertTTNNToEmitC(ModulePass):
    """Makes one `emitc.file` per source file of what was a module of TTNN functions.

    Constants that the code reads from files go along in the module's attribute
    `ttcodegen.constants`.

    Raises CompileError if there is nothing to call, or the functions are not those of TTNN with
    layouts.
    """

    name = "convert-ttnn-to-emitc"

    module_name: str = ""
    """The namespace and the stem of the files; the module's own name if empty."""
    input_hash: str = ""
    """What the header line of the files says about their origin; that of the module if empty."""
    release: str = DEFAULT_RELEASE

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        assign_wanted_layouts(ctx, op)
        require_ttnn(op)
        if any(inner.name == "ttnn.composite_to_layout" for inner in op.walk()):
            # Only the pieces of a change of layout are calls of the library.
            DecomposeLayouts().apply(ctx, op)
        functions = entries(op)
        if not functions:
            raise CompileError(
                "the module has no public function",
                remedy="remove 'private' from the function that is to be called",
            )
        name = identifier(self.module_name or module_name(op) or "model")
        input_hash = self.input_hash or hashlib.sha256(module_text(op).encode()).hexdigest()
        program = convert_ttnn_to_emitc(name, functions, input_hash, self.release)
        for old in list(op.ops):
            op.body.block.erase_op(old, safe_erase=False)
        for new in list(program.module.ops):
            new.detach()
            op.body.block.add_op(new)
        if program.constants:
            op.attributes[CONSTANTS] = constants_attribute(program.constants)


def require_ttnn(module: ModuleOp) -> None:
    """Raises CompileError if a function has ops of TTIR, or tensors without layouts."""
    for op in module.walk():
        if isinstance(op, FuncOp):
            for argument in body_of(op).args:
                if not isinstance(getattr(argument.type, "encoding", None), TTNNLayoutAttr):
                    raise CompileError(
                        f"an argument of '{op.sym_name.data}' has no layout",
                        op,
                        remedy="run --convert-ttir-to-ttnn and --ttnn-layout first",
                    )
            continue
        if op.name.startswith("ttir."):
            raise CompileError(
                f"'{op.name}' has to be lowered before it becomes EmitC",
                op,
                remedy="run --convert-ttir-to-ttnn and --ttnn-layout first",
            )
        if isinstance(op, CatalogueOp):
            for value in (*op.operands, *op.results):
                encoding = getattr(value.type, "encoding", None)
                if not isinstance(encoding, TTNNLayoutAttr):
                    raise CompileError(
                        f"a tensor of '{op.name}' has no layout",
                        op,
                        remedy="run --ttnn-layout first",
                    )


def constants_attribute(constants: Sequence[ConstantFile]) -> DictionaryAttr:
    """The attribute `ttcodegen.constants` for these constants."""
    return DictionaryAttr(
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
