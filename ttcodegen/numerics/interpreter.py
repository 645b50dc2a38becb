"""Interpreter of `.ttnn` programs in numpy with the data types of the device, with op events.

Every op computes in float32 (integers in their own type), and its result is rounded to the data
type of its tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes  # registers bfloat16 with numpy
import numpy as np

import ttcodegen.ops as catalogue
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.operations.compute_config import Arithmetic, ComputeConfig, default_config
from ttcodegen.dialects.ttcore.shards import Memory
from ttcodegen.flatbuffer import program as file
from ttcodegen.flatbuffer.program import Constant, Program
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.numerics.comparison import Agreement, compare, golden_tolerance
from ttcodegen.numerics.execution import (
    ExecutionError,
    Executor,
    Function,
    Observation,
    Observer,
    Step,
)
from ttcodegen.numerics.result_sizes import oversize_reason
from ttcodegen.numerics.rounding import DeviceTensor, in_storage_dtype
from ttcodegen.numerics.tolerances import Tolerance, output_tolerances, tensor_tolerance
from ttcodegen.ops.core.calls import COMPUTE_CONFIG_ATTRIBUTE
from ttcodegen.ops.core.definition import REQUIRED, TTNN, Definition, TTNNDefinition

assert ml_dtypes is not None


@dataclass(frozen=True)
class PerturbedTensor(DeviceTensor):
    """A tensor whose floats are rounded as if summed in another order."""

    generator: np.random.Generator

    def rounded(self, array: np.ndarray) -> np.ndarray:
        """Returns the array perturbed by less than half a unit in the last place, then rounded.

        Integers are not perturbed.
        """
        data_type = self.placement.data_type
        if not data_type.is_float:
            return super().rounded(array)
        strength = _F32_PERTURBATION if data_type is DataType.FLOAT32 else _BF16_PERTURBATION
        wide = np.asarray(array, dtype=np.float32)
        noise = self.generator.uniform(1.0 - strength, 1.0 + strength, wide.shape)
        moved = np.where(np.rint(wide) == wide, wide, wide * noise.astype(np.float32))
        return super().rounded(moved)


@dataclass(frozen=True)
class UnroundedTensor(DeviceTensor):
    """A tensor whose floats are float32, whatever its data type."""

    @property
    def dtype(self) -> str:
        return "float32" if self.placement.data_type.is_float else super().dtype

    def rounded(self, array: np.ndarray) -> np.ndarray:
        """Returns the array as float32; integers in their data type."""
        if not self.placement.data_type.is_float:
            return super().rounded(array)
        return array.astype(np.float32, copy=False)

    def keeps(self, moved: DeviceTensor) -> bool:
        """Returns whether both have one dtype: nothing is rounded between floats."""
        return self.dtype == moved.dtype


_BF16_PERTURBATION = 2.0**-10
_F32_PERTURBATION = 2.0**-20


class FileInterpreter:
    """Runs the functions read from a file."""

    def __init__(
        self,
        functions: Mapping[str, Function],
        records: Iterable[file.Program],
        observe: Observer | None,
        rounds: bool,
    ) -> None:
        self.functions = functions
        self._executor = Executor(functions, observe)
        self._records = {record.name: record for record in records}
        self._rounds = rounds

    def run(self, name: str, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Returns the outputs of a function in the numpy dtypes of their data types.

        These are ml_dtypes bfloat16 for bf16, and float32 for block floats and for all unrounded
        floats. Inputs are rounded to the data types of the function; they are not modified.

        Raises:
            CompileError: if there is no such function, or the inputs do not fit it.
            ExecutionError: if an op fails or gives another shape than the file declares.
        """
        results = self._executor.run(name, inputs)
        if not self._rounds:
            return results
        record = self._records[name]
        types = [record.tensors[output.tensor].type for output in record.outputs]
        return [
            in_storage_dtype(array, DataType.from_mlir(type_.data_type))
            for array, type_ in zip(results, types, strict=True)
        ]

    def output_tolerances(self, name: str) -> list[Tolerance]:
        """Returns the tolerance of each output of `run` against a run in other orders of
        summation."""
        return output_tolerances(self.functions, name)

    def tensor_tolerance(self, name: str, tensor: int) -> Tolerance:
        """Returns the tolerance of an intermediate tensor; EQUAL if it is the same in both runs."""
        return tensor_tolerance(self.functions, name, tensor)

    def run_carried(
        self, name: str, inputs: Sequence[np.ndarray]
    ) -> tuple[list[np.ndarray], dict[int, np.ndarray]]:
        """Runs a function on inputs that are rounded for its tensors already.

        Returns the outputs rounded likewise, and the overwritten inputs by position.

        Raises:
            CompileError, ExecutionError: as `run`.
        """
        return self._executor.run_carried(name, inputs)


class Interpreter(FileInterpreter):
    """Runs the programs of a `.ttnn` file.

    `perturbation` perturbs the results of ops by as much as the order of summation may, which shows
    decisions (argmax, comparisons) that depend on it. Without `rounds` floats are float32
    throughout, which shows the error from the device's data types.

    Raises:
        CompileError: if the file calls unknown ops.
        ExecutionError: if operands of an op are not in the memory that the library needs.
    """

    def __init__(
        self,
        binary: file.Binary,
        observe: Observer | None = None,
        perturbation: np.random.Generator | None = None,
        rounds: bool = True,
    ) -> None:
        catalogue.load()
        tensor_class = DeviceTensor if rounds else UnroundedTensor
        constants = [constant_array(constant) for constant in binary.constants]
        functions = {
            program.name: _function(
                program, constants, tensor_class, perturbation, binary.arch if rounds else None
            )
            for program in binary.programs
        }
        super().__init__(functions, binary.programs, observe, rounds)


def constant_array(constant: file.Constant) -> np.ndarray:
    """Returns the elements of a constant; a splat is broadcast without copying."""
    values = np.frombuffer(constant.elements, dtype=np.dtype(constant.element_type))
    if values.size == 1:
        # Only a scalar broadcasts to the shape of a scalar.
        return np.broadcast_to(values[0], constant.shape)
    return values.reshape(constant.shape)


def _function(
    program: file.Program,
    constants: Sequence[np.ndarray],
    tensor_class: type[DeviceTensor],
    perturbation: np.random.Generator | None,
    arch: str | None,
) -> Function:
    """Returns a program as a function for `arch`; None for exact arithmetic."""
    placements = {tensor.type: tensor.type.placement for tensor in program.tensors}
    tensors = [tensor_class(placements[tensor.type]) for tensor in program.tensors]
    for tensor in _computed_on_device(program):
        if tensors[tensor].placement.memory is Memory.DEVICE:
            tensors[tensor] = replace(tensors[tensor], is_packed=True)
    if perturbation is not None:
        computed = {tensor for operation in program.operations for tensor in operation.results}
        for tensor in computed:
            tensors[tensor] = PerturbedTensor(
                tensors[tensor].placement, perturbation, is_packed=tensors[tensor].is_packed
            )
    deallocated: set[int] = set()
    steps: list[Step] = []
    for operation in program.operations:
        step = _step(operation, tensors, constants)
        if arch is not None:
            step = replace(step, arithmetic=_arithmetic(step, tensors, arch))
        for tensor in step.operands:
            if tensor in deallocated:
                raise ExecutionError(f"{step} in '{program.name}': an operand was deallocated")
        if operation.name == "ttnn.deallocate":
            deallocated.update(operation.operands)
        steps.append(step)
    return Function.of(
        program.name,
        tensors,
        [(entry.name, entry.tensor) for entry in program.inputs],
        steps,
        [output.tensor for output in program.outputs],
    )


def _computed_on_device(program: file.Program) -> set[int]:
    """Returns the results of ops that cores compute; the host creates constants and fills."""
    found: set[int] = set()
    for operation in program.operations:
        definition = TTNN.get(operation.name.partition(".")[2])
        if definition is not None and (operation.operands or definition.draws):
            found.update(operation.results)
    return found


def _step(
    operation: file.Operation, tensors: Sequence[DeviceTensor], constants: Sequence[np.ndarray]
) -> Step:
    if operation.callee is not None:
        return Step.of_call(operation)
    dialect, _, name = operation.name.partition(".")
    definition = TTNN.get(name) if dialect == "ttnn" else None
    if definition is None or len(operation.operand_sizes) != len(definition.operands):
        raise CompileError(
            f"the program calls '{operation.name}' in a way that this version does not know",
            remedy="compile the model again with this version of ttcodegen",
        )
    step = Step(
        operation.name,
        operation.location,
        operation.operands,
        operation.results,
        definition,
        operation.operand_sizes,
        attribute_values(operation, definition, constants),
    )
    _check_memory(step, definition, tensors)
    operands = [tensors[tensor].shape for tensor in step.operands]
    results = [tensors[tensor].shape for tensor in step.results]
    if (reason := oversize_reason(name, step.attributes or {}, operands, results)) is not None:
        raise ExecutionError(f"{step}: {reason}")
    return step


def _arithmetic(step: Step, tensors: Sequence[DeviceTensor], arch: str) -> Arithmetic | None:
    """Returns the arithmetic of an op on an architecture, or None for ops without compute
    config."""
    definition = step.definition
    attributes = step.attributes or {}
    if not isinstance(definition, TTNNDefinition):
        return None
    row = definition.compute_row(attributes.__getitem__)
    if row is None:
        return None
    config: ComputeConfig | None = attributes.get(COMPUTE_CONFIG_ATTRIBUTE.name)
    if config is None:
        config = default_config(
            row,
            [tensors[tensor].placement.data_type for tensor in step.operands],
            tensors[(*step.results, *step.operands)[0]].placement.data_type,
            arch,
        )
    return Arithmetic.of(config)


def attribute_values(
    operation: file.Operation, definition: Definition, constants: Sequence[np.ndarray]
) -> dict[str, Any]:
    """Returns the Python values of the attributes, as the definition's semantics expects them."""
    values = {spec.name: spec.default for spec in definition.attributes}
    for attribute in operation.attributes:
        values[attribute.name] = file.plain_value(attribute.value, constants)
    missing = [name for name, value in values.items() if value is REQUIRED]
    if missing:
        raise CompileError(f"a '{operation.name}' of the program has no '{missing[0]}'")
    return values


def _check_memory(step: Step, definition: TTNNDefinition, tensors: Sequence[DeviceTensor]) -> None:
    """Verifies that operands are on the device or the host, as the library needs them."""
    groups = step.groups()
    for spec in definition.operands:
        for tensor in groups[spec.name]:
            found = tensors[tensor].placement.memory
            if spec.prepared is not None and found is Memory.DEVICE:
                continue
            if spec.memory is not None and found is not spec.memory:
                raise ExecutionError(
                    f"{step}: the operand '{spec.name}' should be on the {spec.memory.value}, "
                    f"found on the {found.value}"
                )


class RunStopped(Exception):
    """A callback requested the end of the run."""


@dataclass(frozen=True)
class OpEvent:
    """An op of a flatbuffer that has just run."""

    program: str
    """The running program, or one that it calls."""
    index: int
    """Index of the op in its program."""
    name: str
    """Name with dialect, such as `ttnn.matmul`."""
    location: str | None
    """Location in the source."""
    outputs: tuple[np.ndarray, ...]
    """Outputs in the dtypes of the device."""
    goldens: tuple[np.ndarray | None, ...]
    """Golden value of each output, None where the file has none."""

    def agreements(self, pcc: float | None = None) -> list[Agreement | None]:
        """Returns the agreement of each output with its golden value; None where there is none.

        Args:
            pcc: the lowest accepted correlation of outputs that vary, if not the default.
        """
        return [
            None if golden is None else golden_agreement(output, golden, pcc)
            for output, golden in zip(self.outputs, self.goldens, strict=True)
        ]

    @property
    def drifts(self) -> bool:
        """Returns whether an output does not agree with its golden value."""
        return any(a is not None and not a.passed for a in self.agreements())


Callback = Callable[[OpEvent], "bool | None"]
"""Called after each op. False ends the run; exceptions do too, and reach the caller."""


def golden_agreement(output: np.ndarray, golden: np.ndarray, pcc: float | None = None) -> Agreement:
    """Returns the agreement of a device value with its golden value."""
    exact = golden.dtype.kind in "biu"
    data_type = DataType.FLOAT32 if output.dtype == np.float32 else DataType.BFLOAT16
    tolerance = golden_tolerance(data_type, exact, depends_on_floats=True)
    if pcc is not None and not exact:
        tolerance = with_correlation(tolerance, pcc)
    if exact and output.dtype.kind not in "biu" and golden.dtype.kind != "b":
        output = output.astype(np.float64)
    return compare(output, golden, tolerance)


def with_correlation(tolerance: Tolerance, pcc: float) -> Tolerance:
    """Returns the tolerance with another minimum correlation."""
    return Tolerance(
        pcc,
        tolerance.range_error,
        tolerance.relative_error,
        tolerance.deviation,
        tolerance.rounding,
        tolerance.agreement,
    )


def observer(
    functions: Sequence[Program], constants: Sequence[Constant], callback: Callback
) -> Observer:
    """Returns an observer that converts observations of a run to op events."""
    programs = {function.name: _Goldens(function, constants) for function in functions}

    def observe(observation: Observation) -> None:
        known = programs[observation.function.name]
        step = observation.step
        event = OpEvent(
            observation.function.name,
            known.index(observation),
            step.name,
            step.location,
            known.outputs(step.results, observation.results),
            known.values(step.results),
        )
        if callback(event) is False:
            raise RunStopped

    return observe


class _Goldens:
    """Golden values of a program, and the indices of its ops."""

    def __init__(self, program: Program, constants: Sequence[Constant]) -> None:
        self._program = program
        self._arrays = constants
        self._constants: Mapping[int, int] = {g.tensor: g.constant for g in program.goldens}
        self._next = 0

    def index(self, observation: Observation) -> int:
        """Returns the index of an op; ops are observed in order in each run."""
        index, steps = self._next, observation.function.steps
        if steps[index] is not observation.step:
            index = next(i for i, step in enumerate(steps) if step is observation.step)
        self._next = (index + 1) % len(steps)
        return index

    def outputs(
        self, tensors: Sequence[int], arrays: Sequence[np.ndarray]
    ) -> tuple[np.ndarray, ...]:
        types = [self._program.tensors[tensor].type.placement.data_type for tensor in tensors]
        return tuple(in_storage_dtype(a, type_) for a, type_ in zip(arrays, types, strict=True))

    def values(self, tensors: Sequence[int]) -> tuple[np.ndarray | None, ...]:
        return tuple(
            None
            if (constant := self._constants.get(tensor)) is None
            else constant_array(self._arrays[constant])
            for tensor in tensors
        )
