"""Reference outputs of a framework, and the runs of a project's functions."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from ttcodegen.emitc.spelling import identifier
from ttcodegen.foundation.array_files import load_array
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.numerics.comparison import Agreement, OutputCheck, compare, reference_tolerance
from ttcodegen.numerics.lowered import ChosenValues
from ttcodegen.numerics.tolerances import Tolerance
from ttcodegen.project.writer import save_array

if TYPE_CHECKING:
    from ttcodegen.emission.description import (
        FunctionDescription,
        ModuleDescription,
        TensorDescription,
    )


# What a framework computed: a fourth meaning for `--check`, from a folder of .npy files.
#
#     DIR/inputs/NAME.npy     arguments by name; weights with values in the project may lack
#     DIR/outputs/NAME.npy    results
#
# For a module with several functions these folders are in DIR/FUNCTION. Of a module MODEL.mlir
# that a framework wrote the folder is MODEL.golden beside it, with the digest of the module's
# text:
#
#     MODEL.golden/module.sha256

INPUTS = "inputs"
OUTPUTS = "outputs"
_DIGEST = "module.sha256"


@dataclass(frozen=True)
class Reference:
    """Arguments and results of one run of a function, by the names that the source gives them."""

    inputs: Mapping[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    outputs: Mapping[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])


def read_reference(folder: Path, module: ModuleDescription) -> dict[str, Reference]:
    """Reference outputs of a framework, by function.

    Raises:
        CompileError: if there is no such folder or no outputs in it, an argument of a function with
            outputs is missing, or a file is of no tensor of the module, cannot be read or has
            another shape.
    """
    if not folder.is_dir():
        raise CompileError(
            f"'{folder}' is no folder",
            remedy="--golden takes the folder with inputs/ and outputs/",
        )
    found: dict[str, Reference] = {}
    for function in module.functions:
        place = folder / function.cpp_name if len(module.functions) > 1 else folder
        inputs = _read(place / INPUTS, function.arguments)
        outputs = _read(place / OUTPUTS, function.outputs)
        if outputs:
            _refuse_missing(place / INPUTS, _unknown_arguments(module, function, inputs))
            found[function.name] = Reference(inputs, outputs)
    if not found:
        raise CompileError(
            f"'{folder}' holds no outputs",
            remedy=f"put the outputs of the model into {folder / OUTPUTS}/NAME.npy, and "
            f"its inputs into {folder / INPUTS}/NAME.npy",
        )
    return found


def _unknown_arguments(
    module: ModuleDescription, function: FunctionDescription, given: Mapping[str, np.ndarray]
) -> list[str]:
    files = {file.name for file in module.weights}
    return [
        each.field
        for each in function.arguments
        if each.name not in given
        and not (each.is_weight and module.weight_file(function, each) in files)
    ]


def _refuse_missing(folder: Path, names: Sequence[str]) -> None:
    """Of drawn arguments the framework computed nothing: all of them have to be given."""
    if names:
        raise CompileError(
            f"'{folder}' lacks {', '.join(f'{name}.npy' for name in names)}",
            remedy="put there the inputs that the framework was given",
        )


def _read(folder: Path, tensors: Sequence[TensorDescription]) -> dict[str, np.ndarray]:
    if not folder.is_dir():
        return {}
    names = {each.field: each for each in tensors} | {each.name: each for each in tensors}
    arrays: dict[str, np.ndarray] = {}
    for path in sorted(folder.glob("*.npy")):
        tensor = names.get(path.stem)
        if tensor is None:
            raise CompileError(
                f"'{path}' is of no tensor of the module",
                remedy=f"they are called {', '.join(each.field for each in tensors) or '(none)'}",
            )
        array = _load(path)
        if array.shape != tensor.shape:
            raise CompileError(f"'{path}': expected the shape {tensor.shape}, found {array.shape}")
        arrays[tensor.name] = _in_source_dtype(array, tensor.source_dtype)
    return arrays


def _load(path: Path) -> np.ndarray:
    array = load_array(path)
    if array.dtype.kind not in "biufV":
        raise CompileError(f"'{path}': expected numbers, found {array.dtype}")
    return array


def _in_source_dtype(array: np.ndarray, name: str) -> np.ndarray:
    """The array in the dtype of the source; .npy files hold bfloat16 as float32, or as two bytes
    that say nothing."""
    import ml_dtypes

    dtype = np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)
    if array.dtype.kind == "V" and array.dtype.itemsize == dtype.itemsize:
        return array.view(dtype)
    return array.astype(dtype, copy=False)


def write_reference(folder: Path, reference: Reference) -> None:
    """Writes what a framework computed, as `--golden` reads it.

    Raises:
        CompileError: if that is not possible.
    """
    try:
        for name, arrays in ((INPUTS, reference.inputs), (OUTPUTS, reference.outputs)):
            place = folder / name
            place.mkdir(parents=True, exist_ok=True)
            for key, array in arrays.items():
                save_array(place / f"{identifier(key)}.npy", array)
    except OSError as error:
        raise CompileError(f"cannot write '{folder}': {error.strerror or error}") from None


def folder_beside(module: Path) -> Path:
    """The folder with what a framework computed of a module that it wrote."""
    return module.with_suffix(".golden")


def write_module(path: Path, source: Source, write_values: Callable[[Path], None]) -> None:
    """Writes a module, and beside it what the framework computed of it.

    Args:
        path: the file of the module.
        source: its text.
        write_values: writes arguments and results into a folder.

    Raises:
        CompileError: if that is not possible.
    """
    folder = folder_beside(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Arrays of another version have other names, or none.
        for name in (INPUTS, OUTPUTS):
            for place in (folder / name, *folder.glob(f"*/{name}")):
                shutil.rmtree(place, ignore_errors=True)
        path.write_text(source.text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise CompileError(f"cannot write '{path}': {error.strerror or error}") from None
    write_values(folder)
    (folder / _DIGEST).write_text(f"{source.digest}\n", encoding="ascii")


def reference_beside(path: Path, source: Source, module: ModuleDescription) -> dict[
    str, Reference
] | str | None:  # fmt: skip
    """Reference outputs beside a module; None if there are none, and a text if they are of another
    version of the module.

    Raises:
        CompileError: as `read_reference` does.
    """
    folder = folder_beside(path)
    if not folder.is_dir():
        return None
    digest = folder / _DIGEST
    if digest.is_file() and digest.read_text(encoding="ascii").strip() != source.digest:
        return f"'{folder}' is of another version of '{path}', and not compared with"
    return read_reference(folder, module)


def given_arguments(
    module: ModuleDescription, reference: Mapping[str, Reference]
) -> dict[str, dict[str, np.ndarray]]:
    """The arguments with known values, by function and name: weights of the project, and the inputs
    of the reference."""
    files = {file.name: file.array for file in module.weights}
    given: dict[str, dict[str, np.ndarray]] = {}
    for function in module.functions:
        known = {
            weight.name: files[name]
            for weight in function.weights
            if (name := module.weight_file(function, weight)) in files
        }
        if function.name in reference:
            known |= reference[function.name].inputs
        given[function.name] = known
    return given


def against_reference(
    checks: Sequence[OutputCheck],
    runs: Sequence[FunctionRuns],
    outputs: Mapping[str, Mapping[str, np.ndarray]],
    reference: Mapping[str, Reference],
) -> list[OutputCheck]:
    """The checks, with what comes of comparing the C++ with the reference."""
    compared: dict[tuple[str, str], Agreement] = {}
    for run in runs:
        if run.function.name in reference:
            expected = reference[run.function.name].outputs
            compared |= _agreements(run.function, run, outputs[run.function.name], expected)
    return [
        replace(check, reference=compared.get((check.function, check.name))) for check in checks
    ]


def _agreements(
    function: FunctionDescription,
    run: FunctionRuns,
    outputs: Mapping[str, np.ndarray],
    expected: Mapping[str, np.ndarray],
) -> dict[tuple[str, str], Agreement]:
    found: dict[tuple[str, str], Agreement] = {}
    for index, output in enumerate(function.outputs):
        wanted, actual = expected.get(output.name), outputs.get(output.field)
        if wanted is None or actual is None:
            continue
        tolerance = reference_tolerance(wanted.dtype, run.depends_on_floats[index])
        found[function.name, output.name] = compare(actual, wanted, tolerance)
    return found


# What the functions of a project run on, and what their runs in numpy gave.


@dataclass(frozen=True)
class FunctionInputs:
    """Inputs of a function, in numpy and in C++."""

    function: FunctionDescription
    inputs: tuple[np.ndarray, ...]


@dataclass(frozen=True)
class FunctionRuns(FunctionInputs):
    """Results of the two numpy runs of a function."""

    golden: tuple[np.ndarray, ...]
    flatbuffer: tuple[np.ndarray, ...]
    depends_on_floats: tuple[bool, ...]
    drawn: tuple[bool, ...]
    tolerances: tuple[Tolerance, ...]
    """Tolerances of the C++ against the flatbuffer run."""
    chosen: ChosenValues
    """The values among which the flatbuffer run chose places."""


# Work beside other work, in a thread that does not keep the program from ending.

T = TypeVar("T")


class Background(Generic[T]):
    """A function that runs beside the caller.

    Unlike those of `concurrent.futures`, its thread is not waited for when the program ends: an
    interrupt from the keyboard need not wait for numpy.
    """

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function
        self._result: list[T] = []
        self._error: BaseException | None = None
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._result.append(self._function())
        except BaseException as error:
            self._error = error

    def result(self) -> T:
        """Waits for the end; returns what the function returned, or raises what it raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._result[0]
