"""Operations of TT-Lang that a model calls.

`ttir.tt_lang_op` names an operation of a Python program; its kernels are not part
of the module. The caller of the compiler registers the available operations (`calling`): the
catalogue does not know how they are run or compiled.

The form of the op follows tt-mlir (2026, TTIROps.td). There the operation also takes its output
tensors as operands; `ttir.empty` outputs are removed when the module is read.

The library runs custom programs with `ttnn::generic_op`. `ttnn.tt_lang_op` calls a function of the
project that describes such a program: `function` is its name, set once the operation is compiled
(`emission.called_operations`).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import DataType, shape_of
from ttcodegen.dialects.operations.attribute_kinds import STRING
from ttcodegen.dialects.operations.operation import Call, CatalogueOp
from ttcodegen.dialects.ttcore.shards import CoreRange
from ttcodegen.dialects.ttmetal.programs import Program
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.foundation.lazy_numpy import Array
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.calls import CppCalls, bind_elements
from ttcodegen.ops.core.definition import (
    ResultRule,
    TTIRDefinition,
    TTNNDefinition,
    attribute,
    register,
    variadic,
)

CALLED_OPERATION = "ttir.tt_lang_op"
LIBRARY_CALL = "ttnn.tt_lang_op"
PROGRAMS_HEADER = "programs.hpp"
"""Project header that declares the functions which run custom device programs."""


@dataclass(frozen=True)
class GivenTensor:
    """A tensor argument of an operation."""

    shape: tuple[int, ...]
    data_type: DataType
    elements: Array | None = None
    """Contents; None for tensors that are never read."""


@dataclass(frozen=True)
class CalledProgram:
    """Device program of an operation."""

    program: Program
    kernels: tuple[FuncOp, ...]
    inputs: tuple[int, ...]
    """Indices of the tensors it reads, among the arguments of the operation."""
    outputs: tuple[int, ...]
    """Indices of the tensors it writes."""


class Operations(Protocol):
    """Registry of the TT-Lang operations that a module may call."""

    def refusal(self, kernel_id: str) -> str | None:
        """Returns why there is no operation of this name, None if there is one."""
        ...

    def run(self, kernel_id: str, tensors: Sequence[GivenTensor]) -> list[Array]:
        """Runs an operation and returns the contents of its tensors."""
        ...

    def program(self, kernel_id: str, tensors: Sequence[GivenTensor], name: str) -> CalledProgram:
        """Compiles an operation for tensors of these shapes and data types.

        Raises:
            CompileError: if the TT-Lang compiler rejects it.
        """
        ...

    def writes_all(self, kernel_id: str, tensors: Sequence[GivenTensor], place: int) -> bool:
        """True if an operation writes every element of the tensor with index `place`."""
        ...


class _NoOperations:
    """Empty registry: every call is refused."""

    def refusal(self, kernel_id: str) -> str | None:
        return (
            f"no program is given that has the operation '{kernel_id}' "
            "(ttcodegen --tt-lang PROGRAM)"
        )

    def run(self, kernel_id: str, tensors: Sequence[GivenTensor]) -> list[Array]:
        raise VerifyException(f"{CALLED_OPERATION}: {self.refusal(kernel_id)}")

    def program(self, kernel_id: str, tensors: Sequence[GivenTensor], name: str) -> CalledProgram:
        raise VerifyException(f"{CALLED_OPERATION}: {self.refusal(kernel_id)}")

    def writes_all(self, kernel_id: str, tensors: Sequence[GivenTensor], place: int) -> bool:
        return False


_callable: list[Operations] = [_NoOperations()]


def operations() -> Operations:
    """Returns the innermost registry of operations."""
    return _callable[-1]


@contextmanager
def calling(known: Operations) -> Generator[None]:
    """Registers operations that modules may call, for the duration of the context."""
    _callable.append(known)
    try:
        yield
    finally:
        _callable.pop()


def roles_of(text: str) -> list[str]:
    """Parses `arg_roles`: "in" or "out" for each tensor of an operation."""
    return [role.strip() for role in text.split(",")] if text.strip() else []


def tensor_places(op: CatalogueOp) -> tuple[int, int]:
    """Counts the tensors that an operation reads and those that it writes."""
    roles = roles_of(op.parameter("arg_roles"))
    return roles.count("in"), roles.count("out")


def _verify(op: CatalogueOp) -> None:
    """`arg_roles` lists "in" for each operand that is read, then "out" for each result; operands
    for the results may follow.
    """
    if not op.parameter("kernel_id"):
        raise VerifyException(f"{op.name}: the kernel_id is empty")
    roles = roles_of(op.parameter("arg_roles"))
    read, written = roles.count("in"), roles.count("out")
    if roles != ["in"] * read + ["out"] * written or not written:
        raise VerifyException(
            f"{op.name}: arg_roles is a list of 'in', then of one 'out' or more, not "
            f'"{op.parameter("arg_roles")}"'
        )
    if written != len(op.results):
        raise VerifyException(
            f"{op.name}: arg_roles says 'out' {written} times, but there are {len(op.results)} "
            "results"
        )
    if len(op.operands) not in (read, read + written):
        raise VerifyException(
            f"{op.name}: arg_roles is of {read + written} tensors, {read} of which are read; there "
            f"are {len(op.operands)} operands"
        )
    for given, result in zip(op.operands[read:], op.results, strict=False):
        if given.type != result.type:
            raise VerifyException(
                f"{op.name}: the result has the type of the operand for it, {given.type}, not "
                f"{result.type}"
            )


def _refused(op: CatalogueOp) -> str | None:
    return operations().refusal(op.parameter("kernel_id"))


def called_name(op: CatalogueOp) -> str:
    """Name of the operation that an op calls."""
    return op.parameter("kernel_id").partition("::")[0].split(".")[-1].strip("_")


def called_program(op: CatalogueOp, cores: CoreRange, name: str) -> CalledProgram:
    """Compiles the program of the operation that an op calls.

    Args:
        op: TTIR or TTNN op; the operands that it reads come first.
        cores: Available cores.
        name: Name of the program.

    Raises:
        CompileError: if there is no such operation, it is not a program, its grid exceeds the
            cores, or it reads and writes other tensors than `arg_roles` says.
    """
    values = called_tensors(op)
    read, _ = tensor_places(op)
    tensors = [GivenTensor(shape_of(v.type), declared_data_type(v)) for v in values]
    kernel_id = op.parameter("kernel_id")
    if (refusal := operations().refusal(kernel_id)) is not None:
        raise CompileError(refusal, op)
    called = operations().program(kernel_id, tensors, name)
    used = called.program.core_range
    if used.last_column > cores.last_column or used.last_row > cores.last_row:
        raise CompileError(
            f"the operation '{kernel_id}' has a grid of {used.columns}x{used.rows} nodes, but "
            f"there are {cores.columns}x{cores.rows} cores",
            op,
            remedy="give the operation a smaller grid",
        )
    for place in range(len(values)):
        role, found = ("in", called.inputs) if place < read else ("out", called.outputs)
        fault = "" if place in found else f"does not {'read' if role == 'in' else 'write'}"
        if role == "in" and place in called.outputs:
            fault = "writes"
        if fault:
            raise CompileError(
                f"the operation '{kernel_id}' {fault} tensor {place}, which arg_roles says is "
                f"'{role}'",
                op,
                remedy="list what the operation reads first, then what it writes",
            )
    return called


def called_tensors(op: CatalogueOp) -> list[SSAValue]:
    """Returns the tensor arguments of the operation: inputs, then outputs."""
    read, _ = tensor_places(op)
    return [*op.operands[:read], *op.results]


def _without_destinations(builder: OpBuilder, op: CatalogueOp) -> Sequence[SSAValue] | None:
    """Drops the operands that the operation overwrites.

    Raises:
        CompileError: if the operation leaves elements of one of them unwritten.
    """
    read, _ = tensor_places(op)
    if len(op.operands) == read:
        return None
    values = [*op.operands[:read], *op.results]
    tensors = [GivenTensor(shape_of(v.type), declared_data_type(v)) for v in values]
    name = op.parameter("kernel_id")
    for place in range(read, len(values)):
        if not operations().writes_all(name, tensors, place):
            raise CompileError(
                f"the operation '{name}' does not write all elements of tensor {place}: the others "
                "would be those that it is given",
                op,
                remedy="give it ttir.empty there, or let it write all elements",
            )
    types = [result.type for result in op.results]
    operands = [list(op.operands[:read])]
    return builder.emit_op(op.definition.short_name, operands, types, **op.parameters()).results


_DATA_TYPES = {each.numpy: each for each in DataType if not each.is_block_float}


def _data_type(dtype: str) -> DataType:
    """Device data type of a numpy dtype of the program."""
    if dtype in _DATA_TYPES:
        return _DATA_TYPES[dtype]
    return DataType.FLOAT32 if "float" in dtype else DataType.INT32


def _run(call: Call) -> Sequence[Array]:
    """Simulates the operation and returns its outputs."""
    roles = roles_of(call["arg_roles"])
    given = [
        GivenTensor(array.shape, _data_type(dtype), array)
        for array, dtype in zip(call.inputs, call.operand_dtypes["inputs"], strict=True)
    ]
    made = [
        GivenTensor(result.shape, _data_type(result.dtype))
        for result in call.results[len(given) - roles.count("in") :]
    ]
    return operations().run(call["kernel_id"], [*given, *made])[roles.count("in") :]


_ATTRIBUTES = (
    attribute("kernel_id", STRING),
    attribute("version_tag", STRING, ""),
    attribute("arg_roles", STRING),
    attribute("shard_spec", STRING, ""),
)


def _lower(builder: OpBuilder, op: CatalogueOp) -> Sequence[SSAValue]:
    operands = [[builder[value] for value in op.operands]]
    types = [result.type for result in op.results]
    return builder.emit_op("tt_lang_op", operands, types, **op.parameters()).results


register(
    TTIRDefinition(
        CALLED_OPERATION,
        (variadic("inputs"),),
        _ATTRIBUTES,
        results=-1,
        nouns=("result",),
        verify=_verify,
        numpy=_run,
        decompose=_without_destinations,
        lower=_lower,
        refused_form=_refused,
    )
)


def _cpp(calls: CppCalls, op: CatalogueOp) -> None:
    """Calls the function of the project that runs the program."""
    function = op.parameter("function")
    if not function:
        raise CompileError(
            f"the operation '{op.parameter('kernel_id')}' is not compiled",
            op,
            remedy="run --convert-tt-lang-to-emitc first",
        )
    calls.include_source(PROGRAMS_HEADER)
    arguments = [*(calls[operand] for operand in op.operands), calls.device]
    if len(op.results) == 1:
        calls.bind(op.results[0], calls.call(function, *arguments))
        return
    several = calls.call(function, *arguments, type="std::vector<ttnn::Tensor>")
    bind_elements(calls, op, several)


register(
    TTNNDefinition(
        LIBRARY_CALL,
        (variadic("inputs"),),
        (*_ATTRIBUTES, attribute("function", STRING, "")),
        results=-1,
        nouns=("result",),
        verify=_verify,
        numpy=_run,
        function="generic_op",
        result_rules=(ResultRule("declared"),),
        cpp=_cpp,
    )
)
