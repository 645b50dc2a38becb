"""Comparison of the results of ttnn calls with the interpreter's for the same operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ttcodegen.flatbuffer import program as file
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.judging.python_calls import NO_CALLS
from ttcodegen.numerics.comparison import compare
from ttcodegen.numerics.execution import ExecutionError, Executor, Function, Observation, Step
from ttcodegen.numerics.interpreter import Interpreter
from ttcodegen.numerics.tolerances import SIXTEEN_BITS, Tolerance, tensor_tolerance
from ttcodegen.ops.core.definition import traits_of
from ttcodegen.ops.core.traits import Trait

_PREPARED = "prepare_"
"""Prefix of ops whose results have an opaque layout."""


@dataclass(frozen=True)
class TensorNumber:
    """Tensor of one of several consecutive programs."""

    program: str
    tensor: int


class CallValues:
    """Values of programs in numpy, and of their calls on a device.

    Args:
        binary: the file of the programs.
        programs: consecutive programs, an entry last.
        inputs: the values of the entry's inputs.
        folder: exchange folder of the two processes.

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
        """numpy values, as ops produced them."""
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
        """Writes the values of tensors that no call produces, and requests those of the calls'
        results."""
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
                        np.save(path, _to_native(array))
                        result["values"] = str(path)
                if step["callee"] not in NO_CALLS:
                    step["read"] = str(self._folder)
                    step["index"] = index
                    changed = _changed(function.steps[index - 1])
                    step["changed"] = [numbers[tensor] for tensor in changed]

    def differences(
        self, joined: Sequence[Sequence[dict[str, Any]]]
    ) -> dict[str, list[tuple[int, str | None]]]:
        """By program, each call with read values, and its difference or None.

        A call is compared with numpy on the operands that it had on the device.
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
        """Device values of tensors before calls overwrite them."""
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
        """Values of the results and overwritten operands of a call, None if none were read."""
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
            tolerance = _on_cards(op, tensor_tolerance(functions, function.name, tensor))
            agreement = compare(
                _accept_equivalent(function, op, device, actual, expected[tensor]),
                expected[tensor],
                tolerance,
            )
            if not agreement.passed:
                return f"{agreement.reason}; largest error {agreement.max_abs_err:.3g}"
        return None


_ACCURACY = {
    "ttnn.softmax": replace(
        SIXTEEN_BITS, correlation=0.99, range_error=0.06, relative_error=0.06, rounding=2.0**-4
    )
}
"""Tolerances of calls whose kernels are less exact than the model (docs/numbers.md, Edges of the
kernels).

16-bit softmax accumulates a row in 16 bits in a different order.
"""


def _on_cards(op: Step, tolerance: Tolerance) -> Tolerance:
    """Tolerance of a call's result on the device."""
    known = _ACCURACY.get(op.name)
    return known if known is not None and tolerance == SIXTEEN_BITS else tolerance


def _accept_equivalent(
    function: Function,
    op: Step,
    device: Mapping[int, np.ndarray],
    actual: np.ndarray,
    expected: np.ndarray,
) -> np.ndarray:
    """Result of a call with equivalent deviations replaced by the expected values.

    These are 16-bit infinities in place of NaN, which the device lacks, and indices of equal
    values.
    """
    if actual.shape != expected.shape:
        return actual
    if expected.dtype.kind == "f":
        narrow = all(function.tensors[each].dtype == "bfloat16" for each in op.results)
        is_none = np.isnan(expected) & np.isinf(actual)
        return np.where(is_none, expected, actual) if narrow else actual
    return _accept_equal_indices(op, device[op.operands[0]], actual, expected)


def _accept_equal_indices(
    op: Step, values: np.ndarray, actual: np.ndarray, expected: np.ndarray
) -> np.ndarray:
    """Indices that a call selected; the expected ones where the values are equal."""
    attributes = op.attributes or {}
    if op.name == "ttnn.max_pool2d_with_indices":
        batch, channels = attributes["batch_size"], attributes["channels"]
        values, shape, axis = values.reshape(batch, -1, channels), (batch, -1, channels), 1
    elif op.definition is not None and Trait.ORDERS in traits_of(op.definition):
        shape, axis = actual.shape, int(attributes.get("dim", -1))
    else:
        return actual
    places, wanted = (each.astype(np.int64).reshape(shape) for each in (actual, expected))
    if places.ndim != values.ndim or not places.size:
        return actual
    if places.min() < 0 or places.max() >= values.shape[axis]:
        return actual
    found, chosen = (np.take_along_axis(values, each, axis) for each in (places, wanted))
    settled = np.where(found == chosen, wanted, places)
    return settled.reshape(actual.shape).astype(actual.dtype)


def _is_compared(op: Step, step: Mapping[str, Any]) -> bool:
    """Returns whether a call's values can be compared: neither opaque nor random."""
    if step["callee"] in NO_CALLS or op.definition is None or op.definition.draws:
        return False
    return not op.name.partition(".")[2].startswith(_PREPARED)


def _changed(op: Step) -> tuple[int, ...]:
    """Operands that an op overwrites."""
    definition = op.definition
    if definition is None or definition.in_place is None:
        return ()
    return op.groups()[definition.in_place]


def _to_native(array: np.ndarray) -> np.ndarray:
    """Converts elements to a dtype that numpy has natively."""
    return array.astype(np.float32) if array.dtype.kind not in "biuf" else array
