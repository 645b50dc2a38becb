"""Common interface of flatbuffers and built shared objects."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

import numpy as np

from ttcodegen.cost import Cost, cost_of
from ttcodegen.dialects.ttmetal.programs import CREATE_BUFFER, DEALLOCATE_BUFFER
from ttcodegen.flatbuffer.program import PROGRAM, Integer
from ttcodegen.flatbuffer.reader import read_ttm_file, read_ttnn_file
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.numerics.device_interpreter import DeviceInterpreter
from ttcodegen.numerics.execution import ExecutionError, Observer
from ttcodegen.numerics.interpreter import Interpreter, constant_array
from ttcodegen.numerics.lowered import PERTURBED_RUNS, with_expected_places
from ttcodegen.numerics.tolerances import Tolerance
from ttcodegen.project.manifest import read_manifest

if TYPE_CHECKING:
    from ttcodegen.flatbuffer.program import (
        Binary,
        DeviceBinary,
        DeviceProgram,
        Operation,
        Program,
    )
    from ttcodegen.runtime.library import LoadedFunction, TensorSignature

Result = TypeVar("Result")

ENDINGS = (".ttnn", ".ttm", ".so")
"""Endings of executable files."""


class Runner(Protocol):
    """Runs the functions of a flatbuffer."""

    def run(self, name: str, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Runs a function; returns its outputs."""
        ...

    def run_carried(
        self, name: str, inputs: Sequence[np.ndarray]
    ) -> tuple[list[np.ndarray], dict[int, np.ndarray]]:
        """Runs a function; returns outputs rounded to their data types, and overwritten inputs by
        index."""
        ...

    def output_tolerances(self, name: str) -> list[Tolerance]:
        """Tolerances of each output for runs with other summation orders."""
        ...


@dataclass(frozen=True)
class TensorInfo:
    """Input, weight or output of a program."""

    name: str
    kind: str
    """input, parameter, constant or output."""
    shape: tuple[int, ...]
    data_type: str
    """Device data type, such as `bfloat16`; block floats as `bfloat8_b`."""
    dtype: np.dtype[Any]
    """Dtype in which elements are passed."""
    source_dtype: str | None
    """numpy dtype of the source's element type, None if unknown."""
    layout: str | None = None
    """tile or row_major."""
    buffer_type: str | None = None
    """dram, l1 or system_memory."""
    memory_layout: str | None = None

    @property
    def is_weight(self) -> bool:
        """Returns whether it is constant between runs."""
        return self.kind in ("parameter", "constant")

    @property
    def is_float(self) -> bool:
        """Returns whether its elements are floats on the device and in the source."""
        return self.dtype.kind not in "biu" and self.source_dtype != "bool"

    def to_json(self) -> dict[str, Any]:
        """Entry of a result file."""
        return {
            "name": self.name,
            "kind": self.kind,
            "shape": list(self.shape),
            "data_type": self.data_type,
            "source_dtype": self.source_dtype,
            "layout": self.layout,
            "buffer_type": self.buffer_type,
            "memory_layout": self.memory_layout,
        }


@dataclass(frozen=True)
class ProgramInfo:
    """Callable program, with inputs and weights in the source's order."""

    name: str
    arguments: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]


class Executable(Protocol):
    """File that can be run."""

    @property
    def path(self) -> Path:
        """Its placement."""
        ...

    @property
    def programs(self) -> tuple[ProgramInfo, ...]:
        """Callable programs, in order."""
        ...

    def run(
        self, program: int, arguments: Sequence[np.ndarray], observe: Observer | None = None
    ) -> list[np.ndarray]:
        """Runs a program; returns its outputs.

        Raises:
            CompileError: if the arguments do not fit, or the run fails.
        """
        ...

    def goldens(self, program: int) -> dict[int, np.ndarray]:
        """Golden values of a program in the file, by tensor index."""
        ...

    def close(self) -> None:
        """Releases the file's resources."""
        ...


class FlatbufferExecutable(ABC):
    """Flatbuffer that is run in numpy."""

    kind: ClassVar[str]

    def __init__(self, path: Path, binary: Binary | DeviceBinary, functions: Sequence[Program]):
        self.path = path
        self.header = binary
        """Metadata of the file: versions, architecture, system."""
        self.functions = tuple(functions)
        """All functions of the file."""
        self.constants = binary.constants
        self.entries = tuple(p for p in functions if p.kind == "entry")
        self.programs = tuple(_program_info(program) for program in self.entries)
        self._runner: Runner | None = None

    @abstractmethod
    def _make_runner(
        self, observe: Observer | None = None, perturbation: np.random.Generator | None = None
    ) -> Runner:
        """Creates an interpreter of the functions."""

    @abstractmethod
    def reference(self, program: int, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Runs a program with all floats as float32, whatever their data types.

        Raises:
            CompileError: as `run`.
        """

    def run(
        self, program: int, arguments: Sequence[np.ndarray], observe: Observer | None = None
    ) -> list[np.ndarray]:
        """Runs a program; returns its outputs.

        Raises:
            CompileError: if the arguments do not fit, or an op cannot be run.
        """
        if observe is not None:
            return self._run(lambda: self._make_runner(observe), program, arguments)
        runner = self._reused_runner()
        return self._run(lambda: runner, program, arguments)

    def run_carried(
        self, program: int, arguments: Sequence[np.ndarray]
    ) -> tuple[list[np.ndarray], dict[int, np.ndarray]]:
        """Runs a program with rounding to data types; also returns overwritten arguments by
        position.

        Raises:
            CompileError: as `run`.
        """
        runner, name = self._reused_runner(), self.entries[program].name
        return self._guard(lambda: runner.run_carried(name, arguments))

    def output_tolerances(self, program: int) -> list[Tolerance]:
        """Tolerances of each output of `run` for runs with other summation orders.

        Raises:
            CompileError: as `run`.
        """
        runner, name = self._reused_runner(), self.entries[program].name
        return self._guard(lambda: runner.output_tolerances(name))

    def _reused_runner(self) -> Runner:
        if self._runner is None:
            self._runner = self._guard(self._make_runner)
        return self._runner

    def perturbed_runs(
        self, program: int, arguments: Sequence[np.ndarray]
    ) -> Iterator[list[np.ndarray]]:
        """Outputs of runs with perturbed rounding, as by other summation orders."""
        for seed in range(PERTURBED_RUNS):
            generator = np.random.default_rng(seed)
            yield self._run(
                lambda generator=generator: self._make_runner(None, generator), program, arguments
            )

    def with_expected_places(
        self,
        program: int,
        arguments: Sequence[np.ndarray],
        expected: Sequence[np.ndarray],
        found: Mapping[int, np.ndarray | None],
    ) -> dict[int, np.ndarray | None]:
        """Outputs of another run with this run's indices where both select equal values.

        Source: `numerics.lowered`.
        """
        name = self.entries[program].name
        return self._guard(
            lambda: with_expected_places(self.header, name, arguments, expected, found)
        )

    def operations(self, function: Program) -> Sequence[Operation]:
        """Operations of a function in order of execution and observation.

        Empty if the caller is timed instead.
        """
        return function.operations

    def work(self, function: str, operation: Operation) -> tuple[str, Cost]:
        """Name and cost of an operation of a function."""
        owner = next(f for f in self.functions if f.name == function)
        return operation.name, cost_of(owner, operation)

    def cost(self, function: str) -> Cost:
        """Cost of a whole function."""
        owner = next(f for f in self.functions if f.name == function)
        works = [self.work(function, operation)[1] for operation in self.operations(owner)]
        return sum(works, Cost(0, 0))

    def goldens(self, program: int) -> dict[int, np.ndarray]:
        """Embedded golden values of a program, by tensor index."""
        return {
            golden.tensor: constant_array(self.constants[golden.constant])
            for golden in self.entries[program].goldens
        }

    def close(self) -> None:
        """Releases the interpreter and its constants."""
        self._runner = None

    def _run(
        self, runner: Callable[[], Runner], program: int, arguments: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        name = self.entries[program].name
        return self._guard(lambda: runner().run(name, arguments))

    def _guard(self, action: Callable[[], Result]) -> Result:
        """Runs `action`; converts failures to a CompileError about the file."""
        try:
            return action()
        except ExecutionError as error:
            raise CompileError(
                f"'{self.path}' cannot be run: {error}",
                remedy="the file was made by another version or changed: compile the model again",
            ) from error


class TTNNExecutable(FlatbufferExecutable):
    """`.ttnn` file."""

    kind = "ttnn"

    def __init__(self, path: Path) -> None:
        self.binary: Binary = read_ttnn_file(path)
        super().__init__(path, self.binary, self.binary.programs)

    def _make_runner(
        self, observe: Observer | None = None, perturbation: np.random.Generator | None = None
    ) -> Runner:
        return Interpreter(self.binary, observe, perturbation)

    def reference(self, program: int, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Runs a program without rounding."""
        return self._run(lambda: Interpreter(self.binary, rounds=False), program, arguments)


class TTMExecutable(FlatbufferExecutable):
    """`.ttm` file."""

    kind = "ttm"

    def __init__(self, path: Path) -> None:
        self.binary: DeviceBinary = read_ttm_file(path)
        super().__init__(path, self.binary, self.binary.functions)

    def _make_runner(
        self, observe: Observer | None = None, perturbation: np.random.Generator | None = None
    ) -> Runner:
        return DeviceInterpreter(self.binary, observe, perturbation)

    def reference(self, program: int, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Runs a program without rounding."""
        return self._run(lambda: DeviceInterpreter(self.binary, rounds=False), program, arguments)

    def operations(self, function: Program) -> Sequence[Operation]:
        """Launches and views of a host function; empty for a device program's reference
        function."""
        if any(program.meaning == function.name for program in self.binary.programs):
            return ()
        placing = (CREATE_BUFFER, DEALLOCATE_BUFFER)
        return [op for op in function.operations if op.name not in placing]

    def work(self, function: str, operation: Operation) -> tuple[str, Cost]:
        """Name and cost of the program that an operation launches."""
        name, cost = super().work(function, operation)
        program = self.launched(operation)
        if program is None:
            return name, cost
        meaning = self.binary.function(program.meaning)
        flops = sum(cost_of(meaning, op).flops for op in meaning.operations)
        return program.name, Cost(cost.moved, flops)

    def launched(self, operation: Operation) -> DeviceProgram | None:
        """Program that an operation launches, if any."""
        for attribute in operation.attributes:
            value = attribute.value
            if attribute.name == PROGRAM and isinstance(value, Integer):
                return self.binary.programs[value.value]
        return None


def _program_info(program: Program) -> ProgramInfo:
    def info(tensor: int, name: str, kind: str, source: str | None) -> TensorInfo:
        type_ = program.tensors[tensor].type
        placement = type_.placement
        return TensorInfo(
            name,
            kind,
            type_.shape,
            placement.data_type.name.lower(),
            _dtype(placement.data_type.numpy),
            source,
            type_.layout,
            type_.buffer_type,
            placement.memory_layout,
        )

    return ProgramInfo(
        program.name,
        tuple(info(e.tensor, e.name, e.kind, e.element_type) for e in program.inputs),
        tuple(info(e.tensor, e.name, "output", e.element_type) for e in program.outputs),
    )


def _dtype(name: str) -> np.dtype[Any]:
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


class LibraryExecutable:
    """Built shared object, run through its C API."""

    kind = "so"

    def __init__(self, path: Path) -> None:
        from ttcodegen.runtime.library import ModuleError, load_library

        self.path = path
        try:
            self.module = load_library(path)
        except ModuleError as error:
            raise CompileError(str(error)) from None
        self.programs = tuple(_function_info(function) for function in self.module.functions)

    def run(
        self, program: int, arguments: Sequence[np.ndarray], observe: Observer | None = None
    ) -> list[np.ndarray]:
        """Runs a function; outputs have the device's dtypes.

        Raises:
            CompileError: if the arguments do not fit, or the library fails.
        """
        from ttcodegen.runtime.library import ModuleError

        function = self.module.functions[program]
        weights = [
            array
            for info, array in zip(self.programs[program].arguments, arguments, strict=True)
            if info.is_weight
        ]
        try:
            for index, array in enumerate(weights):
                function.set_weight(index, array)
        except ModuleError as error:
            raise CompileError(f"'{self.path}' cannot be run: {error}") from None
        return self.run_again(program, arguments)

    def run_again(self, program: int, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Runs on other inputs with the weights of the previous run, without repeating const-eval.

        Raises:
            CompileError: as `run`.
        """
        from ttcodegen.runtime.library import ModuleError

        inputs = [
            array
            for info, array in zip(self.programs[program].arguments, arguments, strict=True)
            if not info.is_weight
        ]
        try:
            return self.module.functions[program].run(inputs)
        except ModuleError as error:
            raise CompileError(f"'{self.path}' cannot be run: {error}") from None

    def goldens(self, program: int) -> dict[int, np.ndarray]:
        """Empty: golden values are in the project's flatbuffer."""
        return {}

    def close(self) -> None:
        """Closes the device."""
        self.module.close()


def _function_info(function: LoadedFunction) -> ProgramInfo:
    def info(signature: TensorSignature) -> TensorInfo:
        return TensorInfo(
            signature.name,
            signature.kind,
            signature.shape,
            signature.data_type,
            signature.computed_dtype,
            signature.dtype.name,
            signature.layout,
            signature.buffer_type,
        )

    return ProgramInfo(
        function.name,
        tuple(info(signature) for signature in function.arguments),
        tuple(info(signature) for signature in function.outputs),
    )


def open_executable(path: Path) -> Executable:
    """Opens a file by its ending.

    Raises:
        CompileError: if it cannot be read, is damaged, or of another version.
    """
    match path.suffix:
        case ".ttnn":
            return TTNNExecutable(path)
        case ".ttm":
            return TTMExecutable(path)
        case ".so":
            return LibraryExecutable(path)
        case _:
            raise CompileError(
                f"'{path}' cannot be run: its ending is none of {', '.join(ENDINGS)}"
            )


def open_flatbuffer(path: Path) -> FlatbufferExecutable:
    """Opens a flatbuffer by its ending.

    Raises:
        CompileError: as `open_executable`.
    """
    return TTMExecutable(path) if path.suffix == ".ttm" else TTNNExecutable(path)


def flatbuffer_beside(library: Path) -> Path | None:
    """Flatbuffer of a shared object: its project's, or one of the same name in its folder, else
    None."""
    name = library.name.removeprefix("lib").removesuffix(".so")
    folder = library.absolute().parent
    project = folder.parent
    manifest = read_manifest(project)
    if manifest is not None and manifest.get("module") == name:
        candidates = [project / "model.ttnn", project / "model.ttm"]
    else:
        candidates = [folder / f"{name}{ending}" for ending in (".ttnn", ".ttm")]
    return next((path for path in candidates if path.is_file()), None)


def library_beside(flatbuffer: Path) -> Path | None:
    """Shared object of a flatbuffer: its project's, or one of the same name in its folder, else
    None."""
    folder = flatbuffer.absolute().parent
    manifest = read_manifest(folder)
    if manifest is not None and flatbuffer.stem == "model":
        name = str(manifest.get("module"))
        candidates = [folder / build / f"lib{name}.so" for build in ("build", "build-cpu")]
    else:
        names = (f"lib{flatbuffer.stem}.so", f"{flatbuffer.stem}.so")
        candidates = [folder / name for name in names]
    return next((path for path in candidates if path.is_file()), None)


def find_files(path: Path, endings: Sequence[str]) -> list[Path]:
    """File at `path`, or all files below the folder with one of the endings, sorted.

    Raises:
        CompileError: if there are none, or the file has another ending.
    """
    if path.is_dir():
        found = sorted(_files_below(path, endings))
        if not found:
            raise CompileError(f"there is no file in '{path}' that ends in {', '.join(endings)}")
        return found
    if not path.exists():
        raise CompileError(f"cannot read '{path}': No such file or directory")
    if path.suffix not in endings:
        raise CompileError(f"'{path}' does not end in {', '.join(endings)}")
    return [path]


def _files_below(folder: Path, endings: Sequence[str]) -> Iterator[Path]:
    # A folder that goes while others are searched has no files.
    for place, _, names in os.walk(folder):
        for path in (Path(place, name) for name in names):
            # Projects have build folders with objects that are no module of ours.
            if path.suffix in endings and path.is_file() and "CMakeFiles" not in path.parts:
                yield path
