"""Lowered programs in numpy: outputs that depend on rounding, and indices of ties."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Protocol

import numpy as np

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.flatbuffer.program import Binary, DeviceBinary, Tensor
from ttcodegen.flatbuffer.reader import is_ttm, read_ttm, read_ttnn
from ttcodegen.numerics.comparison import compare
from ttcodegen.numerics.device_interpreter import DeviceInterpreter
from ttcodegen.numerics.execution import Executor, Function, Observation, Observer, Step
from ttcodegen.numerics.interpreter import FileInterpreter, Interpreter
from ttcodegen.numerics.tolerances import EQUAL, Tolerance
from ttcodegen.ops.core.definition import Definition, TTIRDefinition, TTNNDefinition
from ttcodegen.ops.core.traits import Trait

# Reading and running of lowered programs of any target.

LoweredBinary = Binary | DeviceBinary


class LoweredInterpreter(Protocol):
    """Interpreter of a flatbuffer's functions."""

    def run(self, name: str, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Returns the outputs of a function in the numpy dtypes of their data types."""
        ...

    def output_tolerances(self, name: str) -> list[Tolerance]:
        """Returns the tolerance of each output against a run in other orders of summation."""
        ...


def read_flatbuffer(data: bytes | memoryview) -> LoweredBinary:
    """Parses a .ttnn or .ttm file; raises CompileError if it is neither, or damaged."""
    return read_ttm(data) if is_ttm(data) else read_ttnn(data)


def has_block_floats(binary: LoweredBinary, program: str) -> bool:
    """True if a call of a program, other than of const-eval functions, returns block floats."""
    return isinstance(binary, Binary) and any(
        each.tensors[result].type.data_type.startswith("bfp")
        for each in binary.programs
        if each.name == program
        for operation in each.operations
        if operation.callee is None
        for result in operation.results
    )


FOUR_BITS = DataType.BFLOAT4_B.mlir
"""Weight type whose rounding alone may move results as far as an error of the program would."""


def without_four_bits(binary: LoweredBinary) -> LoweredBinary | None:
    """Returns the file with bf16 in place of four-bit block floats; None if it has none."""
    programs = binary.programs if isinstance(binary, Binary) else binary.functions
    if all(each.type.data_type != FOUR_BITS for program in programs for each in program.tensors):
        return None
    wide = tuple(replace(program, tensors=_widened(program.tensors)) for program in programs)
    if isinstance(binary, Binary):
        return replace(binary, programs=wide)
    return replace(binary, functions=wide)


def _widened(tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    bf16 = DataType.BFLOAT16.mlir
    return tuple(
        replace(tensor, type=replace(tensor.type, data_type=bf16))
        if tensor.type.data_type == FOUR_BITS
        else tensor
        for tensor in tensors
    )


def interpreter_of(
    binary: LoweredBinary,
    observe: Observer | None = None,
    perturbation: np.random.Generator | None = None,
    rounds: bool = True,
) -> LoweredInterpreter:
    """Returns the interpreter of a file; the arguments are those of the interpreters."""
    if isinstance(binary, DeviceBinary):
        return DeviceInterpreter(binary, observe, perturbation, rounds)
    return Interpreter(binary, observe, perturbation, rounds)


# Outputs that depend on rounding, found by runs with perturbed results.

PERTURBED_RUNS = 8
"""Number of perturbed runs of a program."""


def perturbed_runs(
    binary: LoweredBinary, program: str, inputs: Sequence[np.ndarray]
) -> Iterator[list[np.ndarray]]:
    """Yields the outputs of perturbed runs, each computed on demand."""
    for seed in range(PERTURBED_RUNS):
        interpreter = interpreter_of(binary, perturbation=np.random.default_rng(seed))
        with np.errstate(all="ignore"):
            yield interpreter.run(program, inputs)


def undecided_places(
    expected: Sequence[np.ndarray],
    found: Mapping[int, np.ndarray | None],
    runs: Iterable[Sequence[np.ndarray]],
) -> dict[int, np.ndarray]:
    """Returns masks of the integers and booleans of a run that depend on rounding, by output.

    Args:
        expected: the outputs of the run.
        found: outputs of another run, by number.
        runs: perturbed runs, used until they explain all elements at which `found` differs; none if
            it does not differ.
    """
    undecided = {i: np.zeros(expected[i].shape, dtype=bool) for i in found}
    differing = {
        i: actual != expected[i]
        for i, actual in found.items()
        if actual is not None and actual.shape == expected[i].shape
    }
    remaining = iter(runs)
    while any((places & ~undecided[i]).any() for i, places in differing.items()):
        results = next(remaining, None)
        if results is None:
            break
        for i, places in undecided.items():
            places |= results[i] != expected[i]
    return undecided


def coarse_outputs(
    expected: Sequence[np.ndarray],
    outputs: Mapping[int, Tolerance],
    runs: Iterable[Sequence[np.ndarray]],
) -> set[int]:
    """Returns the outputs that rounding changes by more than their tolerances.

    They depend on decisions (an argmax, a comparison) that rounding may flip.
    """
    found: set[int] = set()
    for results in runs:
        found |= {
            i
            for i, tolerance in outputs.items()
            if not compare(results[i], expected[i], tolerance).passed
        }
        if len(found) == len(outputs):
            break
    return found


def unsteady_places(
    binary: LoweredBinary,
    program: str,
    inputs: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    outputs: Iterable[int],
) -> dict[int, np.ndarray]:
    """Returns masks of float outputs that are finite, infinite or NaN depending on rounding, by
    output.

    For example a logarithm of nearly zero. Outputs of zeros and ones are truth values, which
    rounding may flip, and integers are compared for equality. A run without rounding is compared
    with `expected`, the outputs of the run with rounding.
    """
    with np.errstate(all="ignore"):
        unrounded = interpreter_of(binary, rounds=False).run(program, inputs)
    return {
        i: unrounded[i] != expected[i]
        if expected[i].dtype.kind in "iu" or holds_truth(expected[i])
        else _kinds_of_number(unrounded[i]) != _kinds_of_number(expected[i])
        for i in outputs
    }


def holds_truth(array: np.ndarray) -> bool:
    """Returns whether all elements are 0 or 1."""
    return bool(((array == 0) | (array == 1)).all())


def _kinds_of_number(array: np.ndarray) -> np.ndarray:
    """Classifies elements: 0 finite, 1 and -1 infinite, 2 NaN."""
    signs = np.where(np.isposinf(array), 1, np.where(np.isneginf(array), -1, 0))
    return np.where(np.isnan(array), 2, signs)


# Indices of maxima (argmax, topk, sort) under ties.
#
# Values that differ by less than the tolerance between two runs may be chosen in either order. An
# index is right if its value equals the expected one within the tolerance of its tensor.

_MOST_ROWS = 1 << 16
"""Upper bound on rows whose numbers all index types represent."""


@dataclass(frozen=True)
class _Choice:
    function: str
    values: int
    """Tensor of that function whose elements are ordered."""
    axis: int
    tolerance: Tolerance
    """Tolerance of these values between two runs."""
    moves: tuple[Function, ...]
    """Data movement from the indices to the output, in order."""


@dataclass(frozen=True)
class _Argument:
    """An argument of a function whose moved elements a tensor holds."""

    position: int
    moves: tuple[Function, ...]


class ChosenValues:
    """Records the values among which a program chooses indices.

    `observe` is passed to the interpreter; `watch` selects the functions to record.
    """

    def __init__(self) -> None:
        self._choices: dict[str, dict[int, _Choice]] = {}
        self._values: dict[tuple[str, int], np.ndarray] = {}
        self._wanted: set[tuple[str, int]] = set()

    def observe(self, observed: Observation) -> None:
        """Records the watched results of an op."""
        name = observed.function.name
        for tensor, array in zip(observed.step.results, observed.results, strict=True):
            if (name, tensor) in self._wanted:
                self._values[name, tensor] = array

    def watch(
        self, interpreter: LoweredInterpreter, program: str, outputs: Iterable[int] | None = None
    ) -> bool:
        """Finds the ops that choose the indices in outputs of a function; all outputs by default.

        Returns whether there are any.
        """
        self._choices[program] = {}
        if outputs is not None and not (outputs := tuple(outputs)):
            return False
        assert isinstance(interpreter, FileInterpreter)
        function = interpreter.functions[program]
        numbers = range(len(function.results)) if outputs is None else outputs
        found = {
            index: _choice(interpreter, function, function.results[index]) for index in numbers
        }
        # Runs that choose among equal values give equal indices.
        choices = {
            index: choice
            for index, choice in found.items()
            if choice is not None and choice.tolerance is not EQUAL
        }
        self._choices[program] = choices
        self._wanted.update((choice.function, choice.values) for choice in choices.values())
        return bool(choices)

    def settled(
        self,
        program: str,
        expected: Sequence[np.ndarray],
        found: Mapping[int, np.ndarray | None],
    ) -> dict[int, np.ndarray | None]:
        """Returns outputs of another run with equivalent indices replaced by the expected ones.

        Indices are equivalent if their values are equal within tolerance. `expected` are the
        outputs of the observed run.
        """
        settled = dict(found)
        for index, actual in found.items():
            choice = self._choices.get(program, {}).get(index)
            if choice is None or actual is None or actual.shape != expected[index].shape:
                continue
            computed = self._values.get((choice.function, choice.values))
            if computed is not None:
                good = _as_large(choice, computed, actual, expected[index])
                settled[index] = np.where(good, expected[index], actual)
        return settled


def with_expected_places(
    binary: LoweredBinary,
    program: str,
    inputs: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    found: Mapping[int, np.ndarray | None],
) -> dict[int, np.ndarray | None]:
    """Returns outputs of another run with equivalent indices replaced by the expected ones.

    The program is run again to record the values.

    Args:
        binary: the lowered program.
        program: the function that was run.
        inputs: its inputs.
        expected: its outputs.
        found: outputs of the other run, by number.
    """
    chosen = ChosenValues()
    interpreter = interpreter_of(binary, chosen.observe)
    if chosen.watch(interpreter, program, found):
        interpreter.run(program, inputs)
    return chosen.settled(program, expected, found)


def _choice(interpreter: FileInterpreter, function: Function, output: int) -> _Choice | None:
    """Returns the op that chose the indices in a tensor of a function, or None."""
    source = _source(interpreter, function, output)
    return source if isinstance(source, _Choice) else None


def _source(
    interpreter: FileInterpreter, function: Function, output: int
) -> _Choice | _Argument | None:
    """Returns the source of a tensor, in this function or a callee; None if it is computed
    otherwise."""
    tensor = target = output
    moves: list[Step] = []
    later: tuple[Function, ...] = ()

    def moved() -> tuple[Function, ...]:
        arguments = [("places", tensor)]
        here = Function.of(function.name, function.tensors, arguments, reversed(moves), [target])
        return (here, *later)

    for step in reversed(function.steps):
        if tensor not in step.results:
            continue
        if step.is_loop:
            return None
        if step.callee is not None:
            inner = interpreter.functions[step.callee]
            source = _source(interpreter, inner, inner.results[step.results.index(tensor)])
            if source is None:
                return None
            later = (*source.moves, *moved())
            if isinstance(source, _Choice):
                return _outside(interpreter, function, step, replace(source, moves=later))
            moves.clear()
            tensor = target = step.operands[source.position]
        elif (definition := step.definition) and Trait.ORDERS in _traits(definition):
            if tensor != step.results[-1]:
                return None
            values = step.operands[0]
            tolerance = interpreter.tensor_tolerance(function.name, values)
            # Device programs sort along rows.
            axis = int((step.attributes or {}).get("dim", -1))
            return _Choice(function.name, values, axis, tolerance, moved())
        elif definition and len(step.operands) == 1 and _is_move(definition):
            moves.append(step)
            tensor = step.operands[0]
        else:
            return None
    if tensor not in function.arguments:
        return None
    return _Argument(function.arguments.index(tensor), moved())


def _traits(definition: Definition) -> Trait:
    if isinstance(definition, TTIRDefinition | TTNNDefinition):
        return definition.traits
    return Trait.NONE


def _is_move(definition: Definition) -> bool:
    """Returns whether an op of one operand only moves elements."""
    if isinstance(definition, TTIRDefinition):
        return definition.moves
    return (
        isinstance(definition, TTNNDefinition)
        and not definition.computes
        and definition.chips is None
    )


def _outside(
    interpreter: FileInterpreter, caller: Function, call: Step, choice: _Choice
) -> _Choice | None:
    """Returns a choice in a callee from the caller's view; None if the callee has several call
    sites."""
    inner = interpreter.functions[choice.function]
    if choice.function == call.callee and choice.values in inner.arguments:
        values = call.operands[inner.arguments.index(choice.values)]
        tolerance = interpreter.tensor_tolerance(caller.name, values)
        return replace(choice, function=caller.name, values=values, tolerance=tolerance)
    calls = (step for each in interpreter.functions.values() for step in each.steps)
    return choice if sum(step.callee == call.callee for step in calls) == 1 else None


def _as_large(
    choice: _Choice, computed: np.ndarray, actual: np.ndarray, expected: np.ndarray
) -> np.ndarray:
    """Returns the mask of indices whose values equal the expected ones within tolerance.

    No index may occur more often than an expected one does.
    """
    axis = choice.axis % computed.ndim
    length = computed.shape[axis]
    places, wanted = (each.astype(np.int64) for each in (actual, expected))
    if not places.size or places.min() < 0 or places.max() >= length:
        return np.zeros(expected.shape, dtype=bool)
    rows, moved = _rows(choice.moves, computed.shape, axis)
    values = np.moveaxis(computed, axis, -1).reshape(-1, length)
    finite = computed[np.isfinite(computed)].astype(np.float64)
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    allowed = choice.tolerance.between(low, high).range_error * (high - low)
    # isclose takes equal infinities for close, although their difference is NaN.
    close = np.isclose(
        *(values[rows, each].astype(np.float64) for each in (places, wanted)),
        rtol=0.0,
        atol=allowed,
        equal_nan=True,
    )
    often, most = (_occurrences(rows * length + each) for each in (places, wanted))
    return moved & close & (often <= most.max())


def _rows(
    moves: Sequence[Function], shape: tuple[int, ...], axis: int
) -> tuple[np.ndarray, np.ndarray]:
    """Returns for each output element the row of the ordered tensor, and whether it is an index.

    Moves may also fill in other elements.
    """
    of_choice = moves[0].tensors[moves[0].arguments[0]].shape
    count = prod(shape) // shape[axis]
    numbers = np.arange(count).reshape(*shape[:axis], 1, *shape[axis + 1 :])
    each = [*shape[:axis], prod(of_choice) // count, *shape[axis + 1 :]]
    numbers = np.broadcast_to(numbers, each).reshape(of_choice)
    first, second = (_moved(moves, numbers + more) for more in (0, 1))
    rows = first.astype(np.int64)
    moved = (second == rows + 1) & (count < _MOST_ROWS)
    return np.where(moved, rows, 0), moved


def _moved(moves: Iterable[Function], array: np.ndarray) -> np.ndarray:
    for function in moves:
        (array,) = Executor({function.name: function}).run(function.name, [array])
    return array


def _occurrences(keys: np.ndarray) -> np.ndarray:
    """Returns the number of occurrences of each element of an array."""
    _, places, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return counts[places].reshape(keys.shape)
