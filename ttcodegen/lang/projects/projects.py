"""Projects of operations: written, built, run, and compared with the simulator."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ttcodegen.compilation import CompiledModule, CompileOptions, emit_module
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttcore.dialect import set_system
from ttcodegen.dialects.ttcore.layouts import Grid, GridAttr
from ttcodegen.dialects.ttir.generic import GenericOp
from ttcodegen.emission.description import ProjectKind
from ttcodegen.emitc.spelling import identifier
from ttcodegen.foundation.diagnostics import CompileError, Diagnostics, Source
from ttcodegen.lang.compiler.operations import CompiledOperation, compile_operation
from ttcodegen.lang.compiler.outlining import NotRegularError, whole_function
from ttcodegen.lang.simulator.context import Launch, current
from ttcodegen.lang.simulator.recording import record
from ttcodegen.lang.simulator.tensors import Tensor
from ttcodegen.numerics.comparison import Agreement, compare
from ttcodegen.numerics.golden_values import Golden
from ttcodegen.numerics.tolerances import MATRIX_ENGINE, SIXTEEN_BITS
from ttcodegen.ops.dialects import load_dialects
from ttcodegen.parsing.module import parse_module
from ttcodegen.project.building import build_project, build_with_tt_metal
from ttcodegen.project.processes import simulator_environment
from ttcodegen.project.running import TIMEOUT, FunctionInputs, run_executable
from ttcodegen.project.sources import project_files
from ttcodegen.project.toolchain import find_toolchain
from ttcodegen.project.writer import write_project
from ttcodegen.systems.releases import DEFAULT_RELEASE
from ttcodegen.transforms.module_text import module_text
from ttcodegen.transforms.pass_runner import PassRunner
from ttcodegen.transforms.registry import passes_of

# Uniform operations as modules of `ttir.generic`


@dataclass(frozen=True)
class GenericModule:
    """An operation as a function of whole tensors."""

    name: str
    source: Source
    """The function, with TTIR ops."""
    text: str
    """The function with a `ttir.generic` for each device program, on the operation's grid."""
    outputs: tuple[str, ...]
    """Names of the results."""

    def run(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Evaluates the function with numpy."""
        return Golden(parse_module(self.source)).run(self.name, inputs)


def generic_module(launch: Launch, operation: CompiledOperation) -> GenericModule:
    """Converts an operation to a module of generics.

    Args:
        launch: the operation, after it ran and was recorded.
        operation: the same operation, compiled.

    Raises:
        NotRegularError: if it is not a function of whole tensors, or the device has no programs for
            that function.
    """
    given = {id(value): identifier(name) for name, value in launch.arguments.items()}
    names = {
        id(tensor): given.get(id(tensor), f"tensor{number}")
        for number, tensor in enumerate(operation.tensors)
    }
    inputs, outputs = (
        {names[id(tensor)]: tensor for tensor in tensors}
        for tensors in (operation.inputs, operation.outputs)
    )
    if inputs.keys() & outputs.keys():
        raise NotRegularError("it reads what it writes")
    text = whole_function(launch, operation.name, inputs, outputs)
    source = Source(f"{operation.name}.mlir", text)
    return GenericModule(operation.name, source, _with_generics(source, launch), tuple(outputs))


def _with_generics(source: Source, launch: Launch) -> str:
    module = parse_module(source)
    system = current.system
    set_system(module, system)
    try:
        PassRunner(load_dialects()).run(module, passes_of("ttir-to-ttmetal-fe-pipeline"))
    except CompileError as error:
        raise NotRegularError(error.diagnostics[0].message) from None
    columns, rows = (*launch.grid, 1)[:2]
    if rows <= system.chip.grid[0] and columns <= system.chip.grid[1]:
        for op in module.walk():
            if isinstance(op, GenericOp):
                op.properties["grid"] = GridAttr(Grid((rows, columns)))
    return module_text(module)


# Projects of operations: C++ code that is written, built, run on the emulated device and compared
# with the simulator


@dataclass(frozen=True)
class OutputComparison:
    """Comparison of an emulated output with the simulator's."""

    operation: str
    output: str
    agreement: Agreement
    found: np.ndarray
    """Output of the emulated device."""


@dataclass(frozen=True)
class _Run:
    """A run of an operation on one device."""

    operation: CompiledOperation
    inputs: tuple[np.ndarray, ...]
    """Contents of the inputs before the run."""
    outputs: tuple[np.ndarray, ...]
    """Contents of the outputs after simulation."""
    launch: Launch


@dataclass
class Projects:
    """Creates a project for each operation that a program calls, and checks it.

    Calls with tensors of the same shapes and types share a project.
    """

    source_hash: str
    out: Path | None = None
    """Parent folder of the projects; None if they are only checked."""
    checks: bool = False
    force: bool = False
    builds: bool = False
    """True if written projects are built, both as a shared object and as an executable."""
    has_modules: bool = False
    """True if projects include the operation as MLIR.

    It is a module of TTKernel and TTMetal, and for uniform operations one of `ttir.generic`, too.
    """
    release: str = DEFAULT_RELEASE
    """Release of tt-metal that the projects target."""
    simulator: Path | None = None
    """Vendor's simulator that runs the projects with tt-metal; the emulated device if not given."""
    notes: list[str] = field(default_factory=list[str])
    """Notes on operations that are not functions of whole tensors."""
    diagnostics: Diagnostics = field(default_factory=Diagnostics)
    """Warnings about what the projects leave out of the program."""
    comparisons: list[OutputComparison] = field(default_factory=list[OutputComparison])
    written: list[Path] = field(default_factory=list[Path])
    _known: set[tuple[object, ...]] = field(default_factory=set[tuple[object, ...]])
    _names: dict[str, int] = field(default_factory=dict[str, int])
    _runs: dict[tuple[object, ...], list[_Run]] = field(
        default_factory=dict[tuple[object, ...], "list[_Run]"]
    )
    """Recorded runs of a call, by operation: one for each device of a mesh."""

    def watch(self, launch: Launch) -> Callable[[], None]:
        """Compiles an operation before its simulation; returns the function that finishes it.

        On a mesh, projects are created after all devices have run.
        """
        if self.has_modules:
            record(launch)
        launch.is_compiled = True
        operation = compile_operation(launch)
        key = (launch.name, launch.grid, str(operation.module))
        if key in self._known:
            return lambda: self._end(launch)
        reported = self.diagnostics.diagnostics
        reported += [each for each in operation.warnings if each not in reported]
        before = {id(tensor): tensor.stored().copy() for tensor in operation.tensors}

        def finish() -> None:
            partly = {tensor for tensor, units in launch.written.items() if not units.is_all}
            final = compile_operation(launch, partly) if partly else operation
            inputs = tuple(before[id(tensor)] for tensor in final.inputs)
            outputs = tuple(tensor.elements().copy() for tensor in final.outputs)
            runs = self._runs.setdefault(key, [])
            runs.append(_Run(final, inputs, outputs, launch))
            self._end(launch)

        return finish

    def _end(self, launch: Launch) -> None:
        """Creates the projects of a call, once all devices have run."""
        if launch.remaining_devices:
            return
        pending, self._runs = self._runs, {}
        self._known.update(pending)
        for runs in pending.values():
            self._finish(runs)

    def _generic_files(self, runs: Sequence[_Run]) -> dict[str, str]:
        """Module of generics by file name; its results are compared if projects are checked."""
        operation = runs[0].operation
        try:
            module = generic_module(runs[0].launch, operation)
        except NotRegularError as reason:
            self.notes.append(f"{operation.name} is no ttir.generic: {reason}")
            return {}
        for run in runs if self.checks else ():
            found = module.run(run.inputs)
            self.comparisons += [
                _compare(
                    operation.name, f"{output} as ttir.generic", found[index], tensor, simulated
                )
                for index, (output, tensor, simulated) in enumerate(
                    zip(module.outputs, run.operation.outputs, run.outputs, strict=True)
                )
            ]
        return {f"{operation.name}.generic.mlir": module.text}

    def _emit(self, operation: CompiledOperation) -> CompiledModule:
        kind: ProjectKind = "exe" if self.out is None else "both"
        return emit(operation, self.source_hash, kind, self.release)

    def _finish(self, runs: Sequence[_Run]) -> None:
        """Creates a project for the runs of a call.

        There are several if some devices write a tensor partially that others write as a whole.
        """
        by_module: dict[str, list[_Run]] = {}
        for run in runs:
            by_module.setdefault(str(run.operation.module) + "\n", []).append(run)
        for module, same in by_module.items():
            self._write_project(self._emit(same[0].operation), module, same)

    def _write_project(self, compiled: CompiledModule, module: str, runs: Sequence[_Run]) -> None:
        name = runs[0].operation.name
        with ExitStack() as stack:
            if self.out is None:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tt-lang-")))
            else:
                folder = self.out
            count = self._names[name] = self._names.get(name, 0) + 1
            project = folder / (name if count == 1 else f"{name}_{count}")
            files = dict(project_files(compiled, formatted=True))
            if self.has_modules:
                files[f"{name}.mlir"] = module
                files |= self._generic_files(runs)
            project.parent.mkdir(parents=True, exist_ok=True)
            write_project(compiled.description, project, files, force=self.force)
            self.written.append(project)
            if self.builds:
                build_project(project, compiled.description.name, find_toolchain(), "both")
            if self.checks:
                self.comparisons += check(compiled, project, runs, self.simulator)


def emit(
    operation: CompiledOperation,
    source_hash: str,
    kind: ProjectKind = "exe",
    release: str = DEFAULT_RELEASE,
) -> CompiledModule:
    """Emits the C++ code of an operation, for a release of tt-metal."""
    system = current.system
    set_system(operation.module, system)
    options = CompileOptions(
        operation.name, "ttmetal", arch=system.arch, system=system, kind=kind, release=release
    )
    dtypes = {operation.name: (_dtypes(operation.inputs), _dtypes(operation.outputs))}
    runner = PassRunner(load_dialects())
    return emit_module(operation.module, options, runner, source_hash, dtypes)


def _dtypes(tensors: tuple[Tensor, ...]) -> list[str]:
    return [tensor.data_type.numpy for tensor in tensors]


def check(
    compiled: CompiledModule, project: Path, runs: Sequence[_Run], vendor: Path | None = None
) -> list[OutputComparison]:
    """Builds a project, runs it on the emulated device, and compares it with the simulator.

    Args:
        compiled: the operation.
        project: folder of the project.
        runs: inputs and simulated outputs, one run for each device of a mesh.
        vendor: the vendor's simulator, to run on instead of the emulated device.

    Raises:
        CompileError: if the build or a run fails.
    """
    (function,) = compiled.description.functions
    module = compiled.description.name
    if vendor is None:
        built = build_project(project, module, find_toolchain(), "exe").executable
        assert built is not None
    else:
        built = build_with_tt_metal(project, module, f"{module}_main") / f"{module}_main"
    environment = None if vendor is None else simulator_environment(vendor)
    device_text = "the emulated device" if vendor is None else "the vendor's simulator"
    comparisons: list[OutputComparison] = []
    for device, run in enumerate(runs):
        name = run.operation.name
        where = f" for device {device}" if len(runs) > 1 else ""
        given = FunctionInputs(function, run.inputs)
        outputs, failure = run_executable(
            built, [given], built.parent, TIMEOUT, environment=environment
        )
        if failure is not None:
            raise CompileError(f"the operation '{name}' fails on {device_text}{where}: {failure}")
        found = outputs[function.name]
        comparisons += [
            _compare(name, f"{described.name}{where}", found[described.field], tensor, simulated)
            for described, tensor, simulated in zip(
                function.outputs, run.operation.outputs, run.outputs, strict=True
            )
        ]
    return comparisons


def _compare(
    operation: str, name: str, found: np.ndarray, tensor: Tensor, simulated: np.ndarray
) -> OutputComparison:
    """Compares outputs; tolerant, because the matrix engine reads float32 with 10 mantissa bits."""
    tolerance = MATRIX_ENGINE if tensor.data_type is DataType.FLOAT32 else SIXTEEN_BITS
    wide = found if found.dtype.kind in "iu" else found.astype(np.float32)
    return OutputComparison(operation, name, compare(wide, simulated, tolerance), wide)
