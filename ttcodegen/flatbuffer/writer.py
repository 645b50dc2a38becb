"""Makes a `.ttnn` file of a module of TTNN functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ttcodegen.flatbuffer import program
from ttcodegen.flatbuffer.encoding import encode
from ttcodegen.flatbuffer.functions import (
    Constants,
    callees_first,
    function_record,
    program_kinds,
)
from ttcodegen.flatbuffer.schema import load_schema
from ttcodegen.naming.modules import FunctionNames, names_of_module, tensor_names
from ttcodegen.version import __version__


@dataclass(frozen=True)
class Origin:
    """What a file was made from and for."""

    input_hash: str
    """Of the text that was compiled, in hexadecimal digits."""
    arch: str
    release: str
    """The release of tt-metal, as in `0.70.1`."""
    system: bytes = b""
    """The .ttsys file of the system; empty for what the architecture has by default."""


def write_ttnn(
    module: ModuleOp, origin: Origin, names: Sequence[FunctionNames] | None = None
) -> bytes:
    """The file of a module whose functions hold TTNN ops with layouts assigned.

    The same module and version give the same bytes.

    Args:
        module: the TTNN functions.
        origin: what they were made from and for.
        names: what its functions call their tensors, if that is known already.

    Raises:
        CompileError: if the constants are too large, an attribute has no form in the file, or
            functions call each other in a circle.
    """
    constants = Constants()
    functions = callees_first([op for op in module.ops if isinstance(op, FuncOp)])
    kinds = program_kinds(functions)
    called = tensor_names(names_of_module(functions) if names is None else names)
    programs = tuple(
        function_record(function, kinds[function.sym_name.data], constants, called)
        for function in functions
    )
    binary = program.Binary(
        program.MAJOR,
        program.MINOR,
        __version__,
        origin.input_hash,
        origin.arch,
        origin.release,
        programs,
        tuple(constants.records),
        origin.system,
    )
    return encode(load_schema("ttnn.fbs"), binary, constants.size)
