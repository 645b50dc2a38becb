"""Interpreter of `.ttm` programs in numpy with the data types of the device.

The semantics of a device program is a function of TTIR ops. Between its ops, values are in the
destination registers, as float32 or bfloat16; operands and results of the program are rounded to
the data types of their tensors. The matrix engine reads float32 with 10 mantissa bits (tf32).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

import ttcodegen.ops as catalogue
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttmetal.programs import (
    CREATE_BUFFER,
    DEALLOCATE_BUFFER,
    ENQUEUE_READ_BUFFER,
    ENQUEUE_WRITE_BUFFER,
    RUN_PROGRAM,
    VIEW,
)
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.flatbuffer import program as file
from ttcodegen.flatbuffer.program import PROGRAM, DeviceBinary, DeviceProgram
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.numerics.execution import ExecutionError, Function, Observer, Step
from ttcodegen.numerics.interpreter import (
    FileInterpreter,
    PerturbedTensor,
    UnroundedTensor,
    attribute_values,
    constant_array,
)
from ttcodegen.numerics.rounding import DeviceTensor
from ttcodegen.ops.core.definition import TTIR, TTIRDefinition
from ttcodegen.ops.core.traits import Trait

_COPIES = frozenset({VIEW, ENQUEUE_READ_BUFFER, ENQUEUE_WRITE_BUFFER})
"""Operations that copy the elements of a tensor to another one."""
_TF32_MASK = np.uint32(0xFFFFE000)
_TF32_STEP = 2.0**-10


@dataclass(frozen=True)
class Tf32Tensor(DeviceTensor):
    """A float32 tensor as read by the matrix engine."""

    def rounded(self, array: np.ndarray) -> np.ndarray:
        """Returns the array with mantissas truncated to 10 bits."""
        wide = np.asarray(super().rounded(array), order="C")
        return (wide.view(np.uint32) & _TF32_MASK).view(np.float32)

    def keeps(self, moved: DeviceTensor) -> bool:
        """Returns whether the moved tensor has a narrower type, which truncation keeps."""
        return moved.placement.data_type is not DataType.FLOAT32


@dataclass(frozen=True)
class PerturbedTf32Tensor(DeviceTensor):
    """A float32 tensor whose partial sums the matrix engine reads, in any order of summation."""

    generator: np.random.Generator

    def rounded(self, array: np.ndarray) -> np.ndarray:
        """Returns the array perturbed by up to one unit of 10 mantissa bits, except integers."""
        wide = super().rounded(array)
        noise = self.generator.uniform(1.0 - _TF32_STEP, 1.0 + _TF32_STEP, wide.shape)
        return np.where(np.rint(wide) == wide, wide, wide * noise.astype(np.float32))

    def keeps(self, moved: DeviceTensor) -> bool:
        """Returns False: every move is perturbed anew."""
        return False


class DeviceInterpreter(FileInterpreter):
    """Runs the functions of a `.ttm` file.

    `perturbation` perturbs the results of ops by as much as another order of summation would, which
    shows decisions (comparisons) that depend on it. Without `rounds` all floats are float32, which
    shows the error from the device's data types.

    Raises:
        CompileError: if the file calls unknown ops.
        ExecutionError: if a tensor is used after its deallocation.
    """

    def __init__(
        self,
        binary: DeviceBinary,
        observe: Observer | None = None,
        perturbation: np.random.Generator | None = None,
        rounds: bool = True,
    ) -> None:
        catalogue.load()
        constants = [constant_array(constant) for constant in binary.constants]
        programs = {program.meaning: program for program in binary.programs}
        reader = _FunctionReader(binary, constants, perturbation)
        functions = {
            function.name: reader.meaning(function, programs[function.name])
            if function.name in programs
            else reader.cpu_function(function)
            if function.kind == "private_"
            else reader.host_function(function)
            for function in binary.functions
        }
        if not rounds:
            functions = {name: _unrounded(function) for name, function in functions.items()}
        super().__init__(functions, binary.functions, observe, rounds)


class _FunctionReader:
    """Converts function records of a file to executable functions."""

    def __init__(
        self,
        binary: DeviceBinary,
        constants: Sequence[np.ndarray],
        perturbation: np.random.Generator | None,
    ) -> None:
        self._programs = binary.programs
        self._meanings = {function.name: function for function in binary.functions}
        self._constants = constants
        self._perturbation = perturbation

    def host_function(self, function: file.Program) -> Function:
        """Returns a function that launches programs; buffers come into being with their first
        write."""
        written = {tensor for op in function.operations for tensor in self._written(op)}
        tensors = [
            DeviceTensor(tensor.type.placement, is_packed=number in written)
            for number, tensor in enumerate(function.tensors)
        ]
        steps: list[Step] = []
        ended: set[int] = set()
        for operation in function.operations:
            if operation.name == DEALLOCATE_BUFFER:
                ended.update(operation.operands)
                continue
            if operation.name == CREATE_BUFFER:
                continue
            if used := sorted(ended.intersection(operation.operands)):
                raise ExecutionError(f"'{function.name}' uses tensor {used[0]} after its end")
            steps.append(self._host_step(operation))
        return _function(function, tensors, _inputs(function), steps)

    def cpu_function(self, function: file.Program) -> Function:
        """Returns a CPU function; results of ops are rounded to the data types of their tensors."""
        tensors = [DeviceTensor(tensor.type.placement) for tensor in function.tensors]
        if self._perturbation is not None:
            for tensor in (t for operation in function.operations for t in operation.results):
                tensors[tensor] = PerturbedTensor(tensors[tensor].placement, self._perturbation)
        steps = [self._step(operation) for operation in function.operations]
        return _function(function, tensors, _inputs(function), steps)

    def _written(self, operation: file.Operation) -> Sequence[int]:
        """Returns the tensors that a program writes."""
        if operation.name != RUN_PROGRAM:
            return ()
        return operation.operands[self._programs[_index(operation)].inputs :]

    def _host_step(self, operation: file.Operation) -> Step:
        if operation.callee is not None:
            return Step.of_call(operation)
        if operation.name == ENQUEUE_WRITE_BUFFER:
            source, target = operation.operands
            operation = replace(
                operation, operands=(source,), operand_sizes=(1,), results=(target,)
            )
        if operation.name == RUN_PROGRAM:
            program = self._programs[_index(operation)]
            meaning = self._meanings[program.meaning]
            inputs = operation.operands[: program.inputs]
            again = [inputs[position] for position in _cut_arguments(meaning, program)]
            return Step(
                f"{operation.name} {program.name}",
                operation.location,
                (*inputs, *again),
                operation.operands[program.inputs :],
                callee=program.meaning,
            )
        return self._step(operation, "reshape" if operation.name in _COPIES else None)

    def meaning(self, function: file.Program, program: DeviceProgram) -> Function:
        """Returns the semantics of a program; float32 arguments of the matrix engine are passed
        twice."""
        wide = DataType.FLOAT32 if program.fp32_destination else DataType.BFLOAT16
        computed = {tensor for operation in function.operations for tensor in operation.results}
        reduced = _read_by_matrix_engine(function)
        kept = _with_own_bits(function)
        tensors: list[DeviceTensor] = []
        for index, tensor in enumerate(function.tensors):
            placement = tensor.type.placement
            if index not in kept:
                placement = _in_registers(placement, wide)
            if self._perturbation is None or index not in computed:
                tensors.append(DeviceTensor(placement))
            elif placement.data_type is DataType.FLOAT32 and index in reduced:
                tensors.append(PerturbedTf32Tensor(placement, self._perturbation))
            else:
                tensors.append(PerturbedTensor(placement, self._perturbation))
        arguments = _inputs(function)
        cut: dict[int, int] = {}
        for position in _cut_arguments(function, program):
            argument = function.inputs[position]
            cut[argument.tensor] = len(tensors)
            arguments.append((f"{argument.name} as tf32", len(tensors)))
            placement = tensors[argument.tensor].placement
            tensors.append(
                Tf32Tensor(placement)
                if self._perturbation is None
                else PerturbedTf32Tensor(placement, self._perturbation)
            )
        steps = [
            _in_tiles(
                self._step(_with_cut(operation, cut) if _in_matrix_engine(operation) else operation)
            )
            for operation in function.operations
        ]
        return _function(function, tensors, arguments, steps)

    def _step(self, operation: file.Operation, name: str | None = None) -> Step:
        if operation.name == file.WHILE_LOOP:
            return Step.of_call(operation)
        dialect, _, short_name = operation.name.partition(".")
        definition = TTIR.get(name or short_name) if name or dialect == "ttir" else None
        if definition is None or len(operation.operand_sizes) != len(definition.operands):
            raise CompileError(
                f"the program calls '{operation.name}' in a way that this version does not know",
                remedy="compile the model again with this version of ttcodegen",
            )
        return Step(
            operation.name,
            operation.location,
            operation.operands,
            operation.results,
            definition,
            operation.operand_sizes,
            {} if name else attribute_values(operation, definition, self._constants),
        )


def _in_tiles(step: Step) -> Step:
    """Returns a step with the semantics that its op has in device programs."""
    definition = step.definition
    if not isinstance(definition, TTIRDefinition) or definition.tile_numpy is None:
        return step
    return replace(step, definition=replace(definition, numpy=definition.tile_numpy))


def _function(
    function: file.Program,
    tensors: Sequence[DeviceTensor],
    arguments: Sequence[tuple[str, int]],
    steps: Iterable[Step],
) -> Function:
    results = [output.tensor for output in function.outputs]
    return Function.of(function.name, tensors, arguments, steps, results)


def _unrounded(function: Function) -> Function:
    """Returns the function with float32 tensors, whatever their data types."""
    placements = [cast(DeviceTensor, tensor).placement for tensor in function.tensors]
    return replace(function, tensors=[UnroundedTensor(placement) for placement in placements])


def _inputs(function: file.Program) -> list[tuple[str, int]]:
    return [(entry.name, entry.tensor) for entry in function.inputs]


def _index(operation: file.Operation) -> int:
    """Returns the index of the enqueued program; the reader verified that there is one."""
    for attribute in operation.attributes:
        if attribute.name == PROGRAM and isinstance(attribute.value, file.Integer):
            return attribute.value.value
    raise ExecutionError(f"{operation.name} names no program")


def _in_registers(placement: TensorPlacement, wide: DataType) -> TensorPlacement:
    """Returns a placement with the data type of the destination registers."""
    return placement.with_(data_type=wide) if placement.data_type.is_float else placement


def _in_matrix_engine(operation: file.Operation) -> bool:
    definition = TTIR.get(operation.name.removeprefix("ttir."))
    return definition is not None and definition.matrix_engine


def _read_by_matrix_engine(meaning: file.Program) -> set[int]:
    return {
        tensor
        for operation in meaning.operations
        if _in_matrix_engine(operation)
        for tensor in operation.operands
    }


def _with_own_bits(meaning: file.Program) -> set[int]:
    """Returns the tensors that never pass through registers, because an op reads their bits."""
    return {
        tensor
        for operation in meaning.operations
        if (definition := TTIR.get(operation.name.removeprefix("ttir."))) is not None
        and Trait.READS_BITS in definition.traits
        for tensor in (*operation.operands, *operation.results)
    }


def _cut_arguments(meaning: file.Program, program: DeviceProgram) -> list[int]:
    """Returns the positions of the float32 arguments that the matrix engine reads."""
    if not program.fp32_destination:
        return []
    read = _read_by_matrix_engine(meaning)
    return [
        position
        for position, argument in enumerate(meaning.inputs)
        if argument.tensor in read
        and DataType.from_mlir(meaning.tensors[argument.tensor].type.data_type) is DataType.FLOAT32
    ]


def _with_cut(operation: file.Operation, cut: Mapping[int, int]) -> file.Operation:
    """Returns the operation on the tf32 counterparts of its operands."""
    operands = tuple(cut.get(tensor, tensor) for tensor in operation.operands)
    return file.Operation(
        operation.name,
        operands,
        operation.operand_sizes,
        operation.results,
        operation.attributes,
        operation.callee,
        operation.location,
    )
