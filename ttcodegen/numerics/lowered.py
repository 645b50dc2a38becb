"""Lowered programs of any target: how they are read and run in numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from ttcodegen.flatbuffer.program import Binary
from ttcodegen.flatbuffer.reader import read_ttnn
from ttcodegen.flatbuffer.ttm_program import DeviceBinary
from ttcodegen.flatbuffer.ttm_reader import is_ttm, read_ttm
from ttcodegen.numerics.device_interpreter import DeviceInterpreter
from ttcodegen.numerics.execution import Observer
from ttcodegen.numerics.interpreter import Interpreter
from ttcodegen.numerics.tolerances import Tolerance

LoweredBinary = Binary | DeviceBinary


class LoweredInterpreter(Protocol):
    """Runs the functions of a flatbuffer."""

    def run(self, name: str, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The outputs of a function in the numpy dtypes of their data types."""
        ...

    def output_tolerances(self, name: str) -> list[Tolerance]:
        """How closely another run of a function that computes the same, in other orders of
        summation, meets each output."""
        ...


def read_flatbuffer(data: bytes | memoryview) -> LoweredBinary:
    """The contents of a .ttnn or .ttm file; raises CompileError if it is neither, or damaged."""
    return read_ttm(data) if is_ttm(data) else read_ttnn(data)


def interpreter_of(
    binary: LoweredBinary,
    observe: Observer | None = None,
    perturbation: np.random.Generator | None = None,
    rounds: bool = True,
) -> LoweredInterpreter:
    """What runs a file; the arguments are those of the interpreters."""
    if isinstance(binary, DeviceBinary):
        return DeviceInterpreter(binary, observe, perturbation, rounds)
    return Interpreter(binary, observe, perturbation, rounds)
