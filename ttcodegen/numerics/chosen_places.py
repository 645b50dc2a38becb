"""Places of the largest of computed values, which another run may find elsewhere.

Where values differ by less than two runs of a program do, either may be found to be the largest. A
place is right if the value there is as large as the one that was expected to be chosen, but for the
error that its tensor may have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from ttcodegen.numerics.execution import Executor, Function, Observation, Step
from ttcodegen.numerics.interpreter import Interpreter
from ttcodegen.numerics.lowered import LoweredBinary, LoweredInterpreter, interpreter_of
from ttcodegen.numerics.tolerances import EQUAL, Tolerance
from ttcodegen.ops.definition import TTNN
from ttcodegen.ops.traits import Trait

_MOST_ROWS = 1 << 16
"""Rows whose numbers every type of places holds."""


@dataclass(frozen=True)
class _Choice:
    step: Step
    tolerance: Tolerance
    """What two runs may differ in the values that it chooses among."""
    moves: Function
    """Brings its places to where the output has them."""


class ChosenValues:
    """The values among which a program chooses places, kept from a run of it.

    `observe` goes to the interpreter; `watch` says of which functions it keeps them.
    """

    def __init__(self) -> None:
        self._choices: dict[str, dict[int, _Choice]] = {}
        self._values: dict[tuple[str, int], np.ndarray] = {}
        self._wanted: set[tuple[str, int]] = set()

    def observe(self, observed: Observation) -> None:
        """Keeps what is wanted of the results of an op."""
        name = observed.function.name
        for tensor, array in zip(observed.step.results, observed.results, strict=True):
            if (name, tensor) in self._wanted:
                self._values[name, tensor] = array

    def watch(
        self, interpreter: LoweredInterpreter, program: str, outputs: Iterable[int] | None = None
    ) -> bool:
        """Looks for what chose the places that outputs of a function hold, of all of them by
        default; whether anything did. Of programs of device kernels nothing is known."""
        if not isinstance(interpreter, Interpreter):
            return False
        function = interpreter.functions[program]
        numbers = range(len(function.results)) if outputs is None else outputs
        choices = {
            index: choice
            for index in numbers
            if (choice := _choice(interpreter, function, function.results[index])) is not None
        }
        self._choices[program] = choices
        self._wanted.update((program, choice.step.operands[0]) for choice in choices.values())
        return bool(choices)

    def settled(
        self,
        program: str,
        expected: Sequence[np.ndarray],
        found: Mapping[int, np.ndarray | None],
    ) -> dict[int, np.ndarray | None]:
        """What another run found, with the expected places where those that it found hold values as
        large; `expected` are the outputs of the run that was observed."""
        settled = dict(found)
        for index, actual in found.items():
            choice = self._choices.get(program, {}).get(index)
            if choice is None or actual is None or actual.shape != expected[index].shape:
                continue
            computed = self._values.get((program, choice.step.operands[0]))
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
    """What another run found, with the expected places where those that it found hold values as
    large; the program is run again for these values.

    Args:
        binary: the lowered program.
        program: the function that was run.
        inputs: what it was run on.
        expected: its outputs.
        found: what the other run gave for the outputs in question, by their number.
    """
    chosen = ChosenValues()
    interpreter = interpreter_of(binary, chosen.observe)
    if chosen.watch(interpreter, program, found):
        interpreter.run(program, inputs)
    return chosen.settled(program, expected, found)


def _choice(interpreter: Interpreter, function: Function, output: int) -> _Choice | None:
    """What chose the places that an output holds; None if nothing did, or if both runs choose among
    the same."""
    tensor = output
    moves: list[Step] = []
    for step in reversed(function.steps):
        if tensor not in step.results:
            continue
        call = TTNN.get(step.name.partition(".")[2])
        if call is None:
            return None
        if Trait.ORDERS in call.traits:
            tolerance = interpreter.tensor_tolerance(function.name, step.operands[0])
            if tolerance is EQUAL or tensor != step.results[-1]:
                return None
            steps = reversed(moves)
            arguments = [("places", tensor)]
            found = Function.of(function.name, function.tensors, arguments, steps, [output])
            return _Choice(step, tolerance, found)
        if call.computes or call.chips is not None or len(step.operands) != 1:
            return None
        moves.append(step)
        tensor = step.operands[0]
    return None


def _as_large(
    choice: _Choice, computed: np.ndarray, actual: np.ndarray, expected: np.ndarray
) -> np.ndarray:
    """Where an output holds other places of values as large as the expected ones, none of them more
    often than is expected of one."""
    axis = int((choice.step.attributes or {}).get("dim", -1)) % computed.ndim
    length = computed.shape[axis]
    places, wanted = (each.astype(np.int64) for each in (actual, expected))
    if not places.size or places.min() < 0 or places.max() >= length:
        return np.zeros(expected.shape, dtype=bool)
    rows, moved = _rows(choice.moves, computed.shape, axis)
    values = np.moveaxis(computed, axis, -1).reshape(-1, length)
    finite = computed[np.isfinite(computed)].astype(np.float64)
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    allowed = choice.tolerance.between(low, high).range_error * (high - low)
    # Infinities differ by no number, but are as large.
    close = np.isclose(
        *(values[rows, each].astype(np.float64) for each in (places, wanted)),
        rtol=0.0,
        atol=allowed,
        equal_nan=True,
    )
    often, most = (_occurrences(rows * length + each) for each in (places, wanted))
    return moved & close & (often <= most.max())


def _rows(moves: Function, shape: tuple[int, ...], axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Of each element of an output, the row of the tensor of that shape in which it is a place, and
    whether it is one: moves may also fill in others."""
    of_choice = moves.tensors[moves.arguments[0]].shape
    count = prod(shape) // shape[axis]
    numbers = np.arange(count).reshape(*shape[:axis], 1, *shape[axis + 1 :])
    each = [*shape[:axis], prod(of_choice) // count, *shape[axis + 1 :]]
    numbers = np.broadcast_to(numbers, each).reshape(of_choice)
    run = Executor({moves.name: moves})
    first, second = (run.run(moves.name, [numbers + more])[0] for more in (0, 1))
    rows = first.astype(np.int64)
    moved = (second == rows + 1) & (count < _MOST_ROWS)
    return np.where(moved, rows, 0), moved


def _occurrences(keys: np.ndarray) -> np.ndarray:
    """How often an array holds each of its elements."""
    _, places, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return counts[places].reshape(keys.shape)
