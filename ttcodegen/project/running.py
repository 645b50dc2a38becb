"""Runs of a project's functions on the CPU backend, and reference outputs of a framework."""

from __future__ import annotations

import math
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from ttcodegen.cost import memory_use
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.emission.description import FunctionDescription
from ttcodegen.emitc.spelling import identifier
from ttcodegen.flatbuffer.program import Binary
from ttcodegen.foundation.array_files import load_array
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.numerics.comparison import Agreement, OutputCheck, compare, reference_tolerance
from ttcodegen.numerics.lowered import (
    ChosenValues,
    LoweredBinary,
    has_block_floats,
    interpreter_of,
    read_flatbuffer,
    without_four_bits,
)
from ttcodegen.numerics.tolerances import Tolerance
from ttcodegen.project.processes import run_program
from ttcodegen.project.writer import save_array

if TYPE_CHECKING:
    from ttcodegen.compilation import CompiledModule
    from ttcodegen.emission.description import ModuleDescription, TensorDescription


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
    """Arguments and results of one run of a function, by their names in the source."""

    inputs: Mapping[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    outputs: Mapping[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])


def read_reference(folder: Path, module: ModuleDescription) -> dict[str, Reference]:
    """Reads a framework's reference outputs, by function.

    Raises:
        CompileError: if the folder or its outputs are missing, an argument of a function with
            outputs is missing, or a file matches no tensor, cannot be read or has another shape.
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
    """Raises CompileError for missing arguments: the reference has no results for random ones."""
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
    """Converts an array to the source's dtype; .npy files store bfloat16 as float32, or as raw
    bytes."""
    import ml_dtypes

    dtype = np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)
    if array.dtype.kind == "V" and array.dtype.itemsize == dtype.itemsize:
        return array.view(dtype)
    return array.astype(dtype, copy=False)


def write_reference(folder: Path, reference: Reference) -> None:
    """Writes reference arrays in the form that `--golden` reads.

    Raises:
        CompileError: if they cannot be written.
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
    """Folder of a framework's reference arrays for a module."""
    return module.with_suffix(".golden")


def write_module(path: Path, source: Source, write_values: Callable[[Path], None]) -> None:
    """Writes a module and a framework's reference arrays next to it.

    Args:
        path: the file of the module.
        source: its text.
        write_values: writes arguments and results into a folder.

    Raises:
        CompileError: if they cannot be written.
    """
    folder = folder_beside(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Remove arrays of a previous version, whose names may differ.
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
    """Reference outputs next to a module.

    Returns:
        None without any, a message if they are of another version of the module.

    Raises:
        CompileError: as `read_reference`.
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
    """Arguments with known values, by function and name: the project's weights and reference
    inputs."""
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
    """Adds comparisons of the C++ with the reference to checks."""
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
    narrow = has_block_floats(run.binary, function.name)
    for index, output in enumerate(function.outputs):
        wanted, actual = expected.get(output.name), outputs.get(output.field)
        if wanted is None or actual is None:
            continue
        decided = run.depends_on_floats[index]
        tolerance = reference_tolerance(wanted.dtype, decided, narrow)
        agreement = compare_with_framework(actual, wanted, tolerance)
        if not agreement.passed and (wide := run.with_wide_weights) is not None:
            agreement = compare_with_framework(wide[index], wanted, tolerance)
        found[function.name, output.name] = agreement
    return found


def compare_with_framework(
    actual: np.ndarray, expected: np.ndarray, tolerance: Tolerance
) -> Agreement:
    """Compares a result with a framework's.

    Correlation ignores offsets and scales, such as those of a wrong constant: so the mean and the
    deviation may differ by at most twice the error that the correlation allows, plus a relative
    error.
    """
    found = compare(actual, expected, tolerance)
    if not found.passed or found.measure != "correlation":
        return found
    a, e = (each.astype(np.float64)[np.isfinite(expected)] for each in (actual, expected))
    deviation, mean = float(e.std()), float(e.mean())
    error = 2 * math.sqrt(2 * (1 - tolerance.correlation)) * deviation
    said: list[str] = []
    for what, value, wanted in (("mean", float(a.mean()), mean),
                                ("deviation", float(a.std()), deviation)):  # fmt: skip
        if abs(value - wanted) > error + tolerance.relative_error * abs(wanted):
            said.append(f"the {what} is {value:.4g} instead of {wanted:.4g}")
    return replace(found, passed=False, reason=", ".join(said)) if said else found


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
    """Values among which the flatbuffer run selected indices."""
    binary: LoweredBinary
    """Flatbuffer that all functions share."""

    @cached_property
    def with_wide_weights(self) -> list[np.ndarray] | None:
        """Outputs of the flatbuffer run with bf16 in place of four-bit weights; None without such.

        They show errors of the program apart from those of its weights.
        """
        wide = without_four_bits(self.binary)
        if wide is None:
            return None
        with np.errstate(all="ignore"):
            return interpreter_of(wide).run(self.function.name, self.inputs)


# Work beside other work, in a thread that does not keep the program from ending.

T = TypeVar("T")


class Background(Generic[T]):
    """Function that runs in a daemon thread.

    Unlike `concurrent.futures`, the interpreter does not wait for it at exit, so that an interrupt
    ends the program at once.
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
        """Waits for the run; returns its result, or raises its error."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._result[0]


TIMEOUT = 1800.0
"""Time limit of a C++ run in seconds."""

Executed = tuple[Mapping[str, Mapping[str, np.ndarray]], str | None]
"""Outputs of the C++ by function and name, and the reason for which it failed, if any."""


# Limits of the machine that emulates the devices.


def refuse_too_large(compiled: CompiledModule) -> None:
    """Raises CompileError if the tensors of all devices need more memory than the machine has."""
    mesh = compiled.description.mesh
    needed, present = _minimum_memory(compiled), _memory_of_machine()
    if present is not None and needed > present:
        on_mesh = f" on a mesh of {'x'.join(map(str, mesh))}" if math.prod(mesh) > 1 else ""
        raise CompileError(
            f"the check{on_mesh} takes at least {_gibibytes(needed)} of memory, and this machine "
            f"has {_gibibytes(present)}",
            remedy="leave the check out, or check the model with smaller shapes or on a smaller "
            "mesh",
        )


def _minimum_memory(compiled: CompiledModule) -> int:
    """Lower bound of a check's memory in bytes: peak tensors of all emulated devices, and numpy
    arrays."""
    chips = math.prod(compiled.description.mesh)
    binary = read_flatbuffer(compiled.flatbuffer)
    programs = binary.programs if isinstance(binary, Binary) else binary.functions
    peak = max(
        (
            sum(step.allocated.values())
            for program in programs
            for step in memory_use(program, _emulated_bytes).steps
        ),
        default=0,
    )
    arrays = max(
        (
            sum(
                math.prod(tensor.shape) * _element_bytes(tensor.data_type.numpy)
                for tensor in (*function.arguments, *function.outputs)
            )
            for function in compiled.description.functions
        ),
        default=0,
    )
    return chips * peak + arrays


def _emulated_bytes(placement: TensorPlacement) -> int:
    """Size of the elements: the CPU backend does not pad tensors of ttnn calls."""
    return math.prod(placement.shape) * _element_bytes(placement.data_type.numpy)


def _element_bytes(numpy_name: str) -> int:
    return 2 if numpy_name == "bfloat16" else np.dtype(numpy_name).itemsize


def _memory_of_machine() -> int | None:
    """Memory and swap in bytes, limited by the container; None if unknown."""
    try:
        pairs = (line.split()[:2] for line in Path("/proc/meminfo").read_text("ascii").splitlines())
        sizes = {name: int(kibibytes) << 10 for name, kibibytes in pairs}
    except (OSError, ValueError):
        return None
    total = sizes.get("MemTotal:", 0) + sizes.get("SwapTotal:", 0)
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):
            total = min(total, int(Path(limit).read_text("ascii")))
    return total or None


def _gibibytes(size: int) -> str:
    return f"{size / (1 << 30):.1f} GiB"


# Runs of a built program.


def run_executable(
    executable: Path,
    runs: Sequence[FunctionInputs],
    folder: Path,
    timeout: float,
    launcher: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> Executed:
    """Runs functions in the executable on the inputs of the numpy runs.

    Args:
        executable: the built program.
        runs: the functions and their inputs.
        folder: folder of temporary files.
        timeout: time limit in seconds.
        launcher: command that starts it as several processes.
        environment: additional environment variables.

    Returns:
        The available outputs by function and name; and the reason for which the program failed, or
        None.
    """
    with tempfile.TemporaryDirectory(prefix="check-", dir=folder) as scratch:
        inputs, results = Path(scratch, "inputs"), Path(scratch, "outputs")
        for run in runs:
            arrays = zip(run.function.arguments, run.inputs, strict=True)
            _write_inputs(inputs / run.function.cpp_name, {a.field: v for a, v in arrays})
        command = [*launcher, str(executable), "--outputs", str(results)]
        if any(run.inputs for run in runs):
            # The program refuses an empty folder of inputs.
            command += ["--inputs", str(inputs)]
        command += [f"--function={run.function.cpp_name}" for run in runs]
        failure = run_program(command, timeout, environment or {})
        outputs = {
            run.function.name: _read_outputs(results / run.function.cpp_name, run.function)
            for run in runs
        }
    return outputs, failure


def _write_inputs(folder: Path, arrays: Mapping[str, np.ndarray]) -> None:
    folder.mkdir(parents=True)
    for name, array in arrays.items():
        # numpy stores bfloat16 as two-byte records, which the program reads as what they are.
        np.save(folder / f"{name}.npy", array, allow_pickle=False)


def _read_outputs(folder: Path, function: FunctionDescription) -> dict[str, np.ndarray]:
    files = {output.field: folder / f"{output.field}.npy" for output in function.outputs}
    return {
        field: np.load(file, allow_pickle=False) for field, file in files.items() if file.is_file()
    }
