"""`run --emitc`: builds the translated C++ of a program and compares it with its flatbuffer."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ttcodegen.compilation import CompiledModule, CompileOptions, emit_module
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.emission.description import ModuleDescription
from ttcodegen.flatbuffer.modules import module_of
from ttcodegen.flatbuffer.program import Program
from ttcodegen.flatbuffer.reader import read_ttnn_file
from ttcodegen.flatbuffer.system import system_of
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.numerics.comparison import (
    MOST_UNDECIDED,
    Agreement,
    Tolerance,
    compare,
    compare_decided,
    compare_drawn,
)
from ttcodegen.numerics.interpreter import golden_agreement
from ttcodegen.numerics.lowered import coarse_outputs, undecided_places
from ttcodegen.numerics.tolerances import EQUAL, SIXTEEN_BITS
from ttcodegen.numerics.tolerances import Tolerance as OutputTolerance
from ttcodegen.ops.core.definition import TTNN
from ttcodegen.ops.dialects import load_dialects
from ttcodegen.project.building import build_project
from ttcodegen.project.sources import project_files
from ttcodegen.project.toolchain import find_toolchain
from ttcodegen.project.writer import write_project
from ttcodegen.runtime.executable import (
    Executable,
    FlatbufferExecutable,
    ProgramInfo,
    TensorInfo,
)
from ttcodegen.transforms.pass_runner import PassRunner

# How the outputs of a run are judged.


@dataclass(frozen=True)
class Check:
    """Check of an output: its kind and its result."""

    name: str
    """golden, flatbuffer, identity or non-zero."""
    agreement: Agreement

    def to_json(self) -> dict[str, Any]:
        """Entry of a result file."""
        agreement = self.agreement
        return {
            "check": self.name,
            "passed": agreement.passed,
            "measure": agreement.measure,
            "value": _number(agreement.value),
            "max_abs_err": _number(agreement.max_abs_err),
            "reason": agreement.reason or None,
        }


def _number(value: float | None) -> float | None:
    """Replaces infinities, which JSON lacks, by None."""
    return value if value is not None and math.isfinite(value) else None


def device_data_type(tensor: TensorInfo) -> DataType:
    """The data type of a tensor."""
    return DataType[tensor.data_type.upper()]


def check_golden(
    arguments: Mapping[str, Any], tensor: TensorInfo, actual: np.ndarray, golden: np.ndarray
) -> Check:
    """Compares an output with its golden value, by default tolerances or --pcc, --rtol and
    --atol."""
    if tensor.source_dtype == "bool" and golden.dtype.kind != "b":
        golden = golden != 0
    if has_element_bounds(arguments):
        return Check("golden", within(arguments, actual, golden))
    return Check("golden", golden_agreement(actual, golden, arguments["pcc"]))


def has_element_bounds(arguments: Mapping[str, Any]) -> bool:
    """Returns whether the command line bounds elementwise errors."""
    return arguments["rtol"] is not None or arguments["atol"] is not None


def within(
    arguments: Mapping[str, Any], actual: np.ndarray, expected: np.ndarray, default: float = 0.0
) -> Agreement:
    """Compares elementwise: |actual - expected| <= atol + rtol * |expected|."""
    if actual.shape != expected.shape:
        reason = f"the shape is {actual.shape} instead of {expected.shape}"
        return Agreement(False, "none", None, math.inf, reason)
    rtol = default if arguments["rtol"] is None else arguments["rtol"]
    atol = default if arguments["atol"] is None else arguments["atol"]
    a, e = actual.astype(np.float64), expected.astype(np.float64)
    with np.errstate(invalid="ignore"):
        errors = np.abs(a - e)
        close = (errors <= atol + rtol * np.abs(e)) | (a == e) | (np.isnan(a) & np.isnan(e))
    largest = float(np.nanmax(errors, initial=0.0))
    part = float(close.mean()) if close.size else 1.0
    reason = "" if close.all() else f"{int((~close).sum())} elements are further away than allowed"
    return Agreement(bool(close.all()), "agreement", part, largest, reason)


def check_identity(arguments: Mapping[str, Any], actual: np.ndarray, given: np.ndarray) -> Check:
    """Compares an output with the input of the same index."""
    return Check("identity", within(arguments, actual, given, default=1e-5))


def check_non_zero(actual: np.ndarray) -> Check:
    """Checks that an output is not zero everywhere."""
    passed = actual.size == 0 or bool(np.any(actual != 0))
    reason = "" if passed else "all elements are zero"
    return Check("non-zero", Agreement(passed, "none", None, 0.0, reason))


def check_against_flatbuffer(
    arguments: Mapping[str, Any],
    actual: np.ndarray,
    expected: np.ndarray,
    tolerance: Tolerance,
) -> Check:
    """Compares an output of a shared object with that of the flatbuffer."""
    if has_element_bounds(arguments):
        return Check("flatbuffer", within(arguments, actual, expected))
    return Check("flatbuffer", compare(actual, expected, tolerance))


# `run --emitc`: the C++ of a program beside its flatbuffer.


def compare_with_flatbuffer(
    arguments: Mapping[str, Any],
    flatbuffer: FlatbufferExecutable,
    library: Executable,
    index: int,
    inputs: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
) -> list[Check]:
    """Runs a program of a shared object on the inputs of a flatbuffer run, and compares.

    Differences that perturbed rounding of the flatbuffer run also causes are accepted. Args:
    arguments: those of the command. flatbuffer: the file that was run. library: its shared object.
    index: the program in the flatbuffer. inputs: the inputs of the run. expected: its outputs.

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
    """Outputs of the shared object's function for a program of a flatbuffer.

    Args:
        flatbuffer: the file.
        library: its shared object.
        index: the program in the flatbuffer.
        inputs: inputs of the program, in its order.

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
    ordered = [inputs[place] for place in _argument_order(flatbuffer.programs[index], function)]
    return library.run(names.index(program.name), ordered)


def _same_signature(program: ProgramInfo, function: ProgramInfo) -> bool:
    """Returns whether inputs, weights and outputs have the same names and shapes in order."""

    def signature(tensors: Iterable[TensorInfo]) -> list[tuple[str, tuple[int, ...]]]:
        return [(tensor.name, tensor.shape) for tensor in tensors]

    def parts(info: ProgramInfo) -> list[list[tuple[str, tuple[int, ...]]]]:
        inputs = (tensor for tensor in info.arguments if not tensor.is_weight)
        weights = (tensor for tensor in info.arguments if tensor.is_weight)
        return [signature(tensors) for tensors in (inputs, weights, info.outputs)]

    return parts(program) == parts(function)


def _argument_order(program: ProgramInfo, function: ProgramInfo) -> Iterator[int]:
    """Index of the program's argument for each argument of a function.

    A library without manifest lists its inputs before its weights.
    """
    arguments = program.arguments
    weights = iter([place for place, t in enumerate(arguments) if t.is_weight])
    inputs = iter([place for place, t in enumerate(arguments) if not t.is_weight])
    for argument in function.arguments:
        yield next(weights if argument.is_weight else inputs)


class _Comparison:
    """Outputs of a flatbuffer run, with their data dependences."""

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
        """Checks each output of another run."""
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
                # Ties of integers that select among floats are resolved before.
                most = MOST_UNDECIDED if self._expected[i].dtype.kind == "b" else 0.0
                agreement = compare_decided(given, self._expected[i], EQUAL, places, most)
                found[i] = Check("flatbuffer", agreement)
        return found

    def _check(
        self, index: int, actual: np.ndarray, tolerance: OutputTolerance | None = None
    ) -> Check:
        expected = self._expected[index]
        tolerance = tolerance or self._tolerances[index]
        if expected.dtype.kind == "b":
            tolerance = EQUAL
        return check_against_flatbuffer(self._arguments, actual, expected, tolerance)

    def _perturbed(self) -> Iterator[list[np.ndarray]]:
        return self._flatbuffer.perturbed_runs(self._index, self._inputs)


def drawn_outputs(functions: Mapping[str, Program], program: Program) -> set[int]:
    """Outputs that depend on random numbers: no two generators agree."""
    return _outputs_computed_by(functions, program, _draws)


def _outputs_computed_by(
    functions: Mapping[str, Program], program: Program, matters: Callable[[str], bool]
) -> set[int]:
    """Outputs that depend on ops with matching names."""
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


# Builds the shared object of C++ that was translated beside its flatbuffer.
#
# Tests write both from one module, by `ttcodegen-translate --ttnn-to-flatbuffer` and
# `--mlir-to-cpp`. What a project has around such a file follows from the flatbuffer.

_NAMESPACE = re.compile(r"^namespace (\w+) \{$", re.MULTILINE)


def build_translated(flatbuffer: Path, source: Path, out: Path) -> Path:
    """Builds the shared object of a C++ file.

    Args:
        flatbuffer: the `.ttnn` file of the same module.
        source: the C++, as one file.
        out: the folder of the generated project.

    Raises:
        CompileError: if the C++ cannot be read, is not the tools' translation, does not belong to
            the flatbuffer, or does not build.
    """
    try:
        text = source.read_text("utf-8")
    except (OSError, ValueError) as error:
        raise CompileError(f"cannot read '{source}': {error}") from None
    namespace = _NAMESPACE.search(text)
    if namespace is None:
        raise CompileError(f"'{source}' has no namespace of a module")
    compiled = _compiled(flatbuffer, namespace[1])
    # The header holds the C++; the project's source file stays empty.
    header, body = f"src/{namespace[1]}.hpp", f"src/{namespace[1]}.cpp"
    files = {header: f"#pragma once\n{text}", body: f"// {source.name} is in the header.\n"}
    description = _without_tuning(compiled.description)
    compiled = replace(compiled, description=description, files=files, lines=())
    out.mkdir(parents=True, exist_ok=True)
    made = project_files(compiled, formatted=False)
    write_project(compiled.description, out, made, force=True)
    built = build_project(out, compiled.description.name, find_toolchain(), "so").library
    assert built is not None
    return built


def _without_tuning(module: ModuleDescription) -> ModuleDescription:
    """Clears the tuned weight types, which would come from the missing src/tuning.hpp."""
    functions = tuple(
        replace(function, arguments=tuple(replace(a, tuned_type="") for a in function.arguments))
        for function in module.functions
    )
    return replace(module, functions=functions)


def _compiled(flatbuffer: Path, name: str) -> CompiledModule:
    binary = read_ttnn_file(flatbuffer)
    options = CompileOptions(
        name, arch=binary.arch, release=binary.release, system=system_of(binary)
    )
    dtypes = {p.name: _source_dtypes(p) for p in binary.programs if p.kind == "entry"}
    runner = PassRunner(load_dialects())
    return emit_module(module_of(binary), options, runner, binary.input_hash, dtypes)


def _source_dtypes(program: Program) -> tuple[list[str], list[str]]:
    """numpy dtypes of arguments and results; the device's if unknown."""

    def name(tensor: int, known: str | None) -> str:
        return known or program.tensors[tensor].type.placement.data_type.numpy

    return (
        [name(entry.tensor, entry.element_type) for entry in program.inputs],
        [name(entry.tensor, entry.element_type) for entry in program.outputs],
    )
