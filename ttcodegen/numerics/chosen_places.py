"""Places of the largest of computed values, which another run may find elsewhere.

Where values differ by less than two runs of a program do, either may be found to be the largest. A
place is right if the value there is as large as the one that was expected to be chosen, but for the
error that its tensor may have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ttcodegen.flatbuffer import program as file
from ttcodegen.numerics.execution import Function, Observation, Step
from ttcodegen.numerics.interpreter import Interpreter
from ttcodegen.numerics.lowered import LoweredBinary
from ttcodegen.numerics.tolerances import EQUAL, Tolerance
from ttcodegen.ops.definition import TTNN, TTNNDefinition
from ttcodegen.ops.traits import Trait


@dataclass(frozen=True)
class _Choice:
    step: Step
    tolerance: Tolerance
    """What two runs may differ in the values that it chooses among."""


def with_expected_places(
    binary: LoweredBinary,
    program: str,
    inputs: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    found: Mapping[int, np.ndarray | None],
) -> dict[int, np.ndarray | None]:
    """What another run found, with the expected places where those that it found hold values as
    large.

    Args:
        binary: the lowered program.
        program: the function that was run.
        inputs: what it was run on.
        expected: its outputs.
        found: what the other run gave for the outputs in question, by their number.
    """
    if not isinstance(binary, file.Binary):
        return dict(found)
    interpreter = Interpreter(binary)
    function = interpreter.functions[program]
    choices = {
        index: choice
        for index in found
        if (choice := _choice(interpreter, function, function.results[index])) is not None
    }
    wanted = {choice.step.operands[0] for choice in choices.values()}
    values: dict[int, np.ndarray] = {}

    def keep(observed: Observation) -> None:
        if observed.function.name == program:
            for tensor, array in zip(observed.step.results, observed.results, strict=True):
                if tensor in wanted:
                    values[tensor] = array

    if wanted:
        Interpreter(binary, keep).run(program, inputs)
    settled = dict(found)
    for index, choice in choices.items():
        actual, computed = found[index], values.get(choice.step.operands[0])
        if actual is not None and computed is not None and actual.shape == expected[index].shape:
            good = _as_large(choice, computed, actual, expected[index])
            settled[index] = np.where(good, expected[index], actual)
    return settled


def _choice(interpreter: Interpreter, function: Function, tensor: int) -> _Choice | None:
    """What chose the places that a tensor holds; None if nothing did, or if both runs choose among
    the same."""
    for step in reversed(function.steps):
        if tensor not in step.results:
            continue
        call = TTNN.get(step.name.partition(".")[2])
        if call is not None and _keeps_order(call):
            tensor = step.operands[0]
        elif call is not None and Trait.ORDERS in call.traits and tensor == step.results[-1]:
            tolerance = interpreter.tensor_tolerance(function.name, step.operands[0])
            return None if tolerance is EQUAL else _Choice(step, tolerance)
        else:
            return None
    return None


def _keeps_order(call: TTNNDefinition) -> bool:
    """Whether a call leaves the elements of its operand in their order: it moves them, or gives
    them another shape."""
    return Trait.PLACES in call.traits or (call.rearranges and call.may_alias)


def _as_large(
    choice: _Choice, computed: np.ndarray, actual: np.ndarray, expected: np.ndarray
) -> np.ndarray:
    axis = int((choice.step.attributes or {}).get("dim", -1)) % computed.ndim
    at_actual, at_expected = (
        _values_at(computed, places.astype(np.int64), axis) for places in (actual, expected)
    )
    finite = computed[np.isfinite(computed)].astype(np.float64)
    if at_actual is None or at_expected is None or not finite.size:
        return np.zeros(expected.shape, dtype=bool)
    tolerance = choice.tolerance.between(float(finite.min()), float(finite.max()))
    allowed = tolerance.range_error * float(finite.max() - finite.min())
    with np.errstate(invalid="ignore"):
        close = np.abs(at_actual - at_expected) <= allowed
    return close.reshape(expected.shape)


def _values_at(computed: np.ndarray, places: np.ndarray, axis: int) -> np.ndarray | None:
    """The values at places along a dimension; None if there are no such places."""
    around = [*computed.shape[:axis], -1, *computed.shape[axis + 1 :]]
    if places.size % max(1, computed.size // computed.shape[axis]):
        return None
    ordered = places.reshape(around)
    if ordered.size and (ordered.min() < 0 or ordered.max() >= computed.shape[axis]):
        return None
    return np.take_along_axis(computed, ordered, axis).astype(np.float64)
