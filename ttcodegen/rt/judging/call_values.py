"""Comparison of the results of ttnn calls with the interpreter's for the same operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ttcodegen.flatbuffer import program as file
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.numerics.comparison import compare
from ttcodegen.numerics.execution import ExecutionError, Executor, Function, Observation, Step
from ttcodegen.numerics.interpreter import Interpreter
from ttcodegen.numerics.tolerances import tensor_tolerance
from ttcodegen.rt.judging.python_calls import NO_CALLS

_PREPARED = "prepare_"
"""Ops whose results are in a form of the library's own."""


@dataclass(frozen=True)
class TensorNumber:
    """A tensor of a program among those of programs that run one after another."""

    program: str
    tensor: int


class CallValues:
    """Values of programs in numpy, and of their calls on a device.

    Args:
        binary: the file of the programs.
        programs: those that run one after another, an entry last.
        inputs: the values of the entry's inputs.
        folder: where the two processes leave arrays to each other.

    Raises:
        CompileError: if a program cannot be run in numpy.
    """

    def __init__(
        self,
        binary: file.Binary,
        programs: Sequence[file.Program],
        inputs: Sequence[np.ndarray],
        folder: Path,
    ) -> None:
        self._programs = programs
        self._folder = folder
        self._arrays: dict[TensorNumber, np.ndarray] = {}
        """Values in numpy, as they are when an op has just made them."""
        interpreter = Interpreter(binary, self._observe)
        self._functions = interpreter.functions
        entry = programs[-1]
        for given, array in zip(entry.inputs, inputs, strict=True):
            rounded = self._functions[entry.name].tensors[given.tensor].rounded(array)
            self._arrays[TensorNumber(entry.name, given.tensor)] = rounded
        try:
            interpreter.run(entry.name, inputs)
        except ExecutionError as error:
            raise CompileError(f"'{entry.name}' cannot be run in numpy: {error}") from None
        self._pass_arguments(entry)

    def _observe(self, observation: Observation) -> None:
        for tensor, array in zip(observation.step.results, observation.results, strict=True):
            self._arrays[TensorNumber(observation.function.name, tensor)] = array

    def _pass_arguments(self, entry: file.Program) -> None:
        called = {each.name: each for each in self._programs}
        for operation in entry.operations:
            if operation.callee in called:
                callee = called[operation.callee]
                for given, passed in zip(callee.inputs, operation.operands, strict=True):
                    array = self._arrays.get(TensorNumber(entry.name, passed))
                    if array is not None:
                        self._arrays[TensorNumber(callee.name, given.tensor)] = array

    def give(self, joined: Sequence[Sequence[dict[str, Any]]]) -> None:
        """Writes the values of what no call makes, and asks for those of the calls' results."""
        for program, steps in zip(self._programs, joined, strict=True):
            function = self._functions[program.name]
            numbers: dict[int, int] = {}
            made = [tuple(each.tensor for each in program.inputs)]
            made += [operation.results for operation in program.operations]
            for index, (step, tensors) in enumerate(zip(steps, made, strict=True)):
                for result, tensor in zip(step["results"], tensors, strict=True):
                    numbers[tensor] = result["id"]
                    array = self._arrays.get(TensorNumber(program.name, tensor))
                    if array is not None:
                        path = self._folder / f"given-{result['id']}.npy"
                        np.save(path, _plain(array))
                        result["values"] = str(path)
                if step["callee"] not in NO_CALLS:
                    step["read"] = str(self._folder)
                    step["index"] = index
                    changed = _changed(function.steps[index - 1])
                    step["changed"] = [numbers[tensor] for tensor in changed]

    def differences(
        self, joined: Sequence[Sequence[dict[str, Any]]]
    ) -> dict[str, list[tuple[int, str | None]]]:
        """By program, each call whose values were read with what differs, None if they agree.

        A call is compared with ours for the operands that it had on the device.
        """
        found: dict[str, list[tuple[int, str | None]]] = {}
        for program, steps in zip(self._programs, joined, strict=True):
            function = self._functions[program.name]
            device = dict(self._device_values(program, function, steps))
            found[program.name] = []
            for index, step in enumerate(steps[1:], 1):
                op = function.steps[index - 1]
                read = self._read(function, op, step) if _is_compared(op, step) else None
                if read is not None and all(tensor in device for tensor in op.operands):
                    difference = self._difference(function, op, device, read)
                    found[program.name].append((index, difference))
                device.update(read or {})
        return found

    def _device_values(
        self, program: file.Program, function: Function, steps: Sequence[dict[str, Any]]
    ) -> Mapping[int, np.ndarray]:
        """Values of tensors on the device before any call has changed them in place."""
        found = {
            number.tensor: array
            for number, array in self._arrays.items()
            if number.program == program.name
        }
        for op, step in zip(function.steps, steps[1:], strict=True):
            if not _is_compared(op, step):
                continue
            for tensor, result in zip(op.results, step["results"], strict=True):
                path = self._folder / f"{result['id']}.npy"
                if path.is_file():
                    found[tensor] = self._loaded(function, tensor, path)
        return found

    def _loaded(self, function: Function, tensor: int, path: Path) -> np.ndarray:
        info = function.tensors[tensor]
        return info.rounded(np.load(path).reshape(info.shape))

    def _read(
        self, function: Function, op: Step, step: dict[str, Any]
    ) -> dict[int, np.ndarray] | None:
        """Values of the results and of the operands that a call changed, None if none was read."""
        results = zip(op.results, step["results"], strict=True)
        names = {tensor: f"{result['id']}.npy" for tensor, result in results}
        for tensor, number in zip(_changed(op), step["changed"], strict=True):
            names[tensor] = f"{number}-of-{step['index']}.npy"
        paths = {tensor: self._folder / name for tensor, name in names.items()}
        if not paths or not all(path.is_file() for path in paths.values()):
            return None
        return {tensor: self._loaded(function, tensor, path) for tensor, path in paths.items()}

    def _difference(
        self,
        function: Function,
        op: Step,
        device: Mapping[int, np.ndarray],
        read: Mapping[int, np.ndarray],
    ) -> str | None:
        operands = tuple(dict.fromkeys(op.operands))
        alone = Function.of(
            function.name,
            function.tensors,
            [(str(tensor), tensor) for tensor in operands],
            [op],
            op.results,
        )
        functions = {function.name: alone}
        results, overwritten = Executor(functions).run_carried(
            function.name, [device[tensor] for tensor in operands]
        )
        expected = dict(zip(op.results, results, strict=True))
        expected |= {operands[place]: array for place, array in overwritten.items()}
        for tensor, actual in read.items():
            if tensor not in expected:
                continue
            tolerance = tensor_tolerance(functions, function.name, tensor)
            agreement = compare(actual, expected[tensor], tolerance)
            if not agreement.passed:
                return f"{agreement.reason}; largest error {agreement.max_abs_err:.3g}"
        return None


def _is_compared(op: Step, step: Mapping[str, Any]) -> bool:
    """True if a call's values mean the same in numpy: neither prepared for the library alone nor
    drawn at random."""
    if step["callee"] in NO_CALLS or op.definition is None or op.definition.draws:
        return False
    return not op.name.partition(".")[2].startswith(_PREPARED)


def _changed(op: Step) -> tuple[int, ...]:
    """Operands that an op overwrites."""
    definition = op.definition
    if definition is None or definition.in_place is None:
        return ()
    return op.groups()[definition.in_place]


def _plain(array: np.ndarray) -> np.ndarray:
    """Elements in a dtype that numpy knows by itself."""
    return array.astype(np.float32) if array.dtype.kind not in "biuf" else array
