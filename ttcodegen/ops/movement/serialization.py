"""Ops that write tensors to files and read them back."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.operations.attribute_kinds import STRING
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.foundation.lazy_numpy import Array
from ttcodegen.ops.core.calls import Argument, CppCalls, Text, cpp_text
from ttcodegen.ops.core.definition import (
    Call,
    Layout,
    Memory,
    OperandSpec,
    ResultRule,
    TTNNDefinition,
    attribute,
    register,
)
from ttcodegen.ops.core.traits import CallKind, Trait, no_flops

_HEADER = "ttnn/tensor/serialization.hpp"
_EXTENSION = ".tensorbin"
_PATH = attribute("file_path", STRING)


def _verify_path(op: CatalogueOp) -> None:
    """The file has the extension of the library's files (tt-mlir: TTNNOps.cpp)."""
    path = op.parameter("file_path")
    if not path.endswith(_EXTENSION):
        raise VerifyException(f"{op.name}: expected a file_path *{_EXTENSION}, found '{path}'")


def _verify_load(op: CatalogueOp) -> None:
    """A file that the module writes has the shape that is read."""
    _verify_path(op)
    if op.operands and op.shape("written") != op.result_shape:
        raise VerifyException(
            f"{op.name}: expected the shape {op.shape('written')} of the tensor that was dumped to "
            f"'{op.parameter('file_path')}', found {op.result_shape}"
        )


def _dumped(call: Call) -> Sequence[Array]:
    return []


def _loaded(call: Call) -> Array:
    """The tensor that the module wrote before: no file is read."""
    written = call.optional("written")
    if written is None:
        path = call["file_path"]
        raise CompileError(
            f"'ttnn.load_tensor' reads '{path}', which nothing before it in its function writes: "
            "there is nothing to compare it with",
            remedy="dump the tensor in the same function, or take it as an argument",
        )
    return written.copy()


def _cpp_dump(calls: CppCalls, op: CatalogueOp) -> None:
    calls.include(_HEADER)
    path = Text(cpp_text(op.parameter("file_path")))
    calls.run("tt::tt_metal::dump_tensor_flatbuffer", path, calls[op.operands[0]])


def _cpp_load(calls: CppCalls, op: CatalogueOp) -> None:
    from ttcodegen.dialects.ttnn.placement import placement_of

    calls.include(_HEADER)
    arguments: list[Argument] = [Text(cpp_text(op.parameter("file_path")))]
    if placement_of(op.results[0]).memory is Memory.DEVICE:
        arguments.append(calls.device_pointer)
    value = calls.call("tt::tt_metal::load_tensor_flatbuffer", *arguments)
    calls.bind(op.results[0], value)


register(
    TTNNDefinition(
        "ttnn.dump_tensor",
        (OperandSpec("input", layout=None, memory=None),),
        (_PATH,),
        results=0,
        verify=_verify_path,
        numpy=_dumped,
        cpp=_cpp_dump,
        pure=False,
        flops=no_flops,
        traits=Trait.USES_HOST,
        call_kind=CallKind.COPY,
    )
)

# `written` is the tensor that the module dumped to the file before, where it did: what the file
# holds is known then. The call reads the file all the same.
register(
    TTNNDefinition(
        "ttnn.load_tensor",
        (OperandSpec("written", layout=None, memory=None, count="optional"),),
        (_PATH,),
        verify=_verify_load,
        numpy=_loaded,
        result_rules=(ResultRule("declared", Layout.TILE, stored=True),),
        cpp=_cpp_load,
        pure=False,
        flops=no_flops,
        traits=Trait.USES_HOST,
        call_kind=CallKind.COPY,
    )
)
