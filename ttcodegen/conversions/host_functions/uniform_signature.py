"""A second function for each entry function: a vector of tensors in, a vector of tensors out.

Programs that load a library and know nothing of the model call all of its functions alike, the way
the reference system's shared objects are called.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ttcodegen.conversions.host_functions.interface import Entry, InterfaceTensor
from ttcodegen.emitc.builder import EmitCBuilder
from ttcodegen.emitc.text import Text
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.naming.interface import prepare_name

UNIFORM_SIGNATURE = "ttcodegen.uniform_signature"
"""Marks an entry function that gets a second one."""

_TENSOR = "ttnn::Tensor"
_TENSORS = "std::vector<ttnn::Tensor>"
_DEVICE = "device"
_PARAMETERS = [("arguments", f"const {_TENSORS}&"), (_DEVICE, "ttnn::MeshDevice&")]


@dataclass(frozen=True)
class ModifySignaturesForDylib(ModulePass):
    """Gives every public function `f` a second C++ function `call_f`, of vectors.

    Raises CompileError if the module has a function of that name.
    """

    name = "ttnn-modify-signatures-for-dylib"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = {f.sym_name.data: f for f in op.body.block.ops if isinstance(f, FuncOp)}
        for name, function in functions.items():
            if f"call_{name}" in functions:
                raise CompileError(
                    f"the name 'call_{name}' is needed for a function with another signature",
                    functions[f"call_{name}"],
                    remedy="give the function another name",
                )
            visibility = function.sym_visibility
            if visibility is None or visibility.data != "private":
                function.attributes[UNIFORM_SIGNATURE] = UnitAttr()


def has_uniform_signature(entry: Entry) -> bool:
    """True if an entry function gets a second one."""
    return UNIFORM_SIGNATURE in entry.function.attributes


def uniform_name(entry: Entry) -> str:
    """The C++ name of the second function."""
    return f"call_{entry.cpp_name}"


def declare_uniform(header: EmitCBuilder, entry: Entry) -> None:
    """Declares the function in the header of the module."""
    header.comment(
        f"{entry.cpp_name} for callers that know no structures: all arguments in order, all "
        "results in order."
    )
    header.declare(uniform_name(entry), _PARAMETERS, _TENSORS)


def define_uniform(file: EmitCBuilder, entry: Entry) -> None:
    """Defines the function: it puts the arguments into the structures of the other one.

    Constants are computed in every call: the caller does not say when the weights change.
    """
    body = file.function(uniform_name(entry), _PARAMETERS, _TENSORS, fixed_names=[_DEVICE])
    arguments, device = body.arguments[0], Text(_DEVICE)
    passed: list[SSAValue | Text] = []
    weights: list[SSAValue] = []
    for suffix, tensors in (("Inputs", entry.inputs), ("Weights", entry.weights)):
        if tensors:
            struct = _structure(body, entry, suffix, tensors, arguments)
            passed.append(struct)
            weights = [struct] if suffix == "Weights" else []
    if entry.has_constants:
        constants = body.call(
            prepare_name(entry.cpp_name),
            *weights,
            device,
            type=entry.struct("Constants"),
            name="constants",
        )
        passed.append(constants)
    passed.append(device)
    if not entry.results:
        body.call_void(entry.cpp_name, *passed)
        body.return_(body.braced(_TENSORS))
        return
    outputs = body.call(entry.cpp_name, *passed, type=entry.struct("Outputs"), name="outputs")
    results = [body.member(outputs, tensor.field, _TENSOR) for tensor in entry.results]
    body.return_(body.braced(_TENSORS, *results))


def _structure(
    body: EmitCBuilder,
    entry: Entry,
    suffix: str,
    tensors: Sequence[InterfaceTensor],
    arguments: SSAValue,
) -> SSAValue:
    """A variable that holds the arguments that belong into one of the structures."""
    fields: dict[str, SSAValue] = {}
    for tensor in tensors:
        place = Text(str(entry.arguments.index(tensor)))
        value = body.call_method(arguments, "at", place, type=_TENSOR, pure=True)
        assert value is not None
        fields[tensor.field] = value
    return body.aggregate(entry.struct(suffix), fields, name=suffix.lower())
