"""Op events of callbacks: source location, computed value and golden value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.flatbuffer.program import Constant, Program
from ttcodegen.numerics.comparison import Agreement, Tolerance, compare, golden_tolerance
from ttcodegen.numerics.execution import Observation, Observer
from ttcodegen.numerics.interpreter import constant_array
from ttcodegen.numerics.rounding import in_storage_dtype


class RunStopped(Exception):
    """A callback requested the end of the run."""


@dataclass(frozen=True)
class OpEvent:
    """An op of a flatbuffer that was just run."""

    program: str
    """The program it belongs to: that which runs, or one that it calls."""
    index: int
    """Its index among the ops of the program."""
    name: str
    """As `ttnn.matmul`."""
    location: str | None
    """Location in the source."""
    outputs: tuple[np.ndarray, ...]
    """In the dtypes of the device."""
    goldens: tuple[np.ndarray | None, ...]
    """Golden value of each output, None where the file has none."""

    def agreements(self, pcc: float | None = None) -> list[Agreement | None]:
        """Agreement of each output with its golden value; None where there is none.

        Args:
            pcc: the lowest accepted correlation of outputs that vary, if not the usual one.
        """
        return [
            None if golden is None else golden_agreement(output, golden, pcc)
            for output, golden in zip(self.outputs, self.goldens, strict=True)
        ]

    @property
    def drifts(self) -> bool:
        """True if an output does not meet its golden value."""
        return any(a is not None and not a.passed for a in self.agreements())


Callback = Callable[[OpEvent], "bool | None"]
"""Called after each op. False ends the run; what it raises does too, and reaches the caller."""


def golden_agreement(output: np.ndarray, golden: np.ndarray, pcc: float | None = None) -> Agreement:
    """Agreement of a device value with the golden."""
    exact = golden.dtype.kind in "biu"
    data_type = DataType.FLOAT32 if output.dtype == np.float32 else DataType.BFLOAT16
    tolerance = golden_tolerance(data_type, exact, depends_on_floats=True)
    if pcc is not None and not exact:
        tolerance = with_correlation(tolerance, pcc)
    if exact and output.dtype.kind not in "biu" and golden.dtype.kind != "b":
        output = output.astype(np.float64)
    return compare(output, golden, tolerance)


def with_correlation(tolerance: Tolerance, pcc: float) -> Tolerance:
    """The tolerance with another least correlation."""
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
    """Observer that turns the observations of a run of functions of a file into events."""
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
    """The golden values of a program, and the indices of its ops."""

    def __init__(self, program: Program, constants: Sequence[Constant]) -> None:
        self._program = program
        self._arrays = constants
        self._constants: Mapping[int, int] = {g.tensor: g.constant for g in program.goldens}
        self._next = 0

    def index(self, observation: Observation) -> int:
        """The index of an op. Ops are observed in order, from the first one on in each run."""
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
