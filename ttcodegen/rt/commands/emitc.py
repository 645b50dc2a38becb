"""`run --emitc`: the C++ of a program beside its flatbuffer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ttcodegen.flatbuffer.program import Program
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.numerics.comparison import MOST_UNDECIDED, compare_decided, compare_drawn
from ttcodegen.numerics.perturbation import coarse_outputs, undecided_places
from ttcodegen.numerics.tolerances import EQUAL, SIXTEEN_BITS, Tolerance
from ttcodegen.ops.core.definition import TTNN
from ttcodegen.rt.commands.output_checks import (
    Check,
    check_against_flatbuffer,
    has_element_bounds,
)
from ttcodegen.runtime.executable import (
    Executable,
    FlatbufferExecutable,
    ProgramInfo,
    TensorInfo,
)


def compare_with_flatbuffer(
    arguments: Mapping[str, Any],
    flatbuffer: FlatbufferExecutable,
    library: Executable,
    index: int,
    inputs: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
) -> list[Check]:
    """Runs a program of a shared object on the inputs of a flatbuffer run, and compares.

    As in the compiler's check, what other roundings move in the flatbuffer run is no error.

    Args:
        arguments: those of the command.
        flatbuffer: the file that was run.
        library: the shared object that belongs to it.
        index: the program in the flatbuffer.
        inputs: what it was run on.
        expected: what it gave.

    Returns:
        A check for each output.

    Raises:
        CompileError: if the shared object has no such function, or the run fails.
    """
    actual = run_library(flatbuffer, library, index, inputs)
    return _Comparison(arguments, flatbuffer, index, inputs, expected).checks(actual)


def run_library(
    flatbuffer: FlatbufferExecutable,
    library: Executable,
    index: int,
    inputs: Sequence[np.ndarray],
) -> list[np.ndarray]:
    """The outputs of the function of a shared object that is a program of a flatbuffer.

    Args:
        flatbuffer: the file.
        library: the shared object that belongs to it.
        index: the program in the flatbuffer.
        inputs: those of that program, in its order.

    Raises:
        CompileError: if the shared object has no such function, or the run fails.
    """
    program = flatbuffer.entries[index]
    names = [p.name for p in library.programs]
    if program.name not in names:
        raise CompileError(f"'{library.path}' has no function '{program.name}'")
    function = library.programs[names.index(program.name)]
    if not _same_signature(flatbuffer.programs[index], function):
        raise CompileError(f"'{library.path}' and '{flatbuffer.path}' are not the same program")
    ordered = [inputs[place] for place in _places(flatbuffer.programs[index], function)]
    return library.run(names.index(program.name), ordered)


def _same_signature(program: ProgramInfo, function: ProgramInfo) -> bool:
    """True if a function takes and gives the tensors of a program, in its order among the inputs,
    the weights and the outputs."""

    def signature(tensors: Iterable[TensorInfo]) -> list[tuple[str, tuple[int, ...]]]:
        return [(tensor.name, tensor.shape) for tensor in tensors]

    def parts(info: ProgramInfo) -> list[list[tuple[str, tuple[int, ...]]]]:
        inputs = (tensor for tensor in info.arguments if not tensor.is_weight)
        weights = (tensor for tensor in info.arguments if tensor.is_weight)
        return [signature(tensors) for tensors in (inputs, weights, info.outputs)]

    return parts(program) == parts(function)


def _places(program: ProgramInfo, function: ProgramInfo) -> Iterator[int]:
    """For each argument of a function, the index of the program's that it is: a library that has
    no manifest lists its inputs before its weights."""
    arguments = program.arguments
    weights = iter([place for place, t in enumerate(arguments) if t.is_weight])
    inputs = iter([place for place, t in enumerate(arguments) if not t.is_weight])
    for argument in function.arguments:
        yield next(weights if argument.is_weight else inputs)


class _Comparison:
    """The outputs of a flatbuffer run, and what is known of them."""

    def __init__(
        self,
        arguments: Mapping[str, Any],
        flatbuffer: FlatbufferExecutable,
        index: int,
        inputs: Sequence[np.ndarray],
        expected: Sequence[np.ndarray],
    ) -> None:
        self._arguments = arguments
        self._flatbuffer = flatbuffer
        self._index = index
        self._outputs = flatbuffer.programs[index].outputs
        self._inputs = inputs
        self._expected = [
            array != 0 if tensor.source_dtype == "bool" else array
            for tensor, array in zip(self._outputs, expected, strict=True)
        ]
        self._raw = expected
        self._tolerances = flatbuffer.output_tolerances(index)

    def checks(self, actual: Sequence[np.ndarray]) -> list[Check]:
        """A check of each output of another run."""
        functions = {function.name: function for function in self._flatbuffer.functions}
        drawn = drawn_outputs(functions, self._flatbuffer.entries[self._index])
        found = [
            Check("flatbuffer", compare_drawn(array, self._raw[i]))
            if i in drawn
            else self._check(i, array)
            for i, array in enumerate(actual)
        ]
        failed = [i for i, check in enumerate(found) if not check.agreement.passed]
        doubtful = (
            [] if has_element_bounds(self._arguments) else [i for i in failed if i not in drawn]
        )
        exact = [i for i in doubtful if self._expected[i].dtype.kind in "biu"]
        floats = {
            i: self._tolerances[i]
            for i in doubtful
            if i not in exact and self._tolerances[i].allows_less_than(SIXTEEN_BITS)
        }
        if floats:
            for i in coarse_outputs(self._raw, floats, self._perturbed()):
                found[i] = self._check(i, actual[i], SIXTEEN_BITS)
        if exact:
            written = self._flatbuffer.with_expected_places(
                self._index, self._inputs, self._raw, {i: actual[i] for i in exact}
            )
            for i, places in undecided_places(self._raw, written, self._perturbed()).items():
                given = written[i]
                assert given is not None
                # Where integers are chosen among floats, ties are settled before this.
                most = MOST_UNDECIDED if self._expected[i].dtype.kind == "b" else 0.0
                agreement = compare_decided(given, self._expected[i], EQUAL, places, most)
                found[i] = Check("flatbuffer", agreement)
        return found

    def _check(self, index: int, actual: np.ndarray, tolerance: Tolerance | None = None) -> Check:
        expected = self._expected[index]
        tolerance = tolerance or self._tolerances[index]
        if expected.dtype.kind == "b":
            tolerance = EQUAL
        return check_against_flatbuffer(self._arguments, actual, expected, tolerance)

    def _perturbed(self) -> Iterator[list[np.ndarray]]:
        return self._flatbuffer.perturbed_runs(self._index, self._inputs)


def drawn_outputs(functions: Mapping[str, Program], program: Program) -> set[int]:
    """The outputs that random numbers took part in computing: no two generators draw the same."""
    return _outputs_computed_by(functions, program, _draws)


def _outputs_computed_by(
    functions: Mapping[str, Program], program: Program, matters: Callable[[str], bool]
) -> set[int]:
    """The outputs that were computed with ops whose names matter."""
    found: set[int] = set()
    for operation in program.operations:
        callee = None if operation.callee is None else functions[operation.callee]
        concerned = matters(operation.name) or (
            callee is not None and bool(_outputs_computed_by(functions, callee, matters))
        )
        if concerned or not found.isdisjoint(operation.operands):
            found.update(operation.results)
    return {i for i, entry in enumerate(program.outputs) if entry.tensor in found}


def _draws(name: str) -> bool:
    definition = TTNN.get(name.partition(".")[2])
    return definition is not None and definition.draws
