"""Conversion of kernels and host functions of device programs, TT-Lang ops included, to C++ files.

Sources: ttnn/cpp/ttnn/operations/generic of tt-metal, and program_descriptors.hpp.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from ttcodegen.conversions.host_functions.cpp_interface import (
    FileEmission,
    hold_constants,
    replace_content,
    title_of,
)
from ttcodegen.conversions.host_functions.interface import required
from ttcodegen.conversions.mesh import share_on_host
from ttcodegen.conversions.ttir_to_ttnn import cpu_functions
from ttcodegen.conversions.ttkernel_to_emitc.functions import write_kernel
from ttcodegen.conversions.ttmetal_to_emitc.functions import (
    convert_ttmetal_to_emitc,
    device_entries,
)
from ttcodegen.conversions.ttmetal_to_emitc.recording import share_programs
from ttcodegen.dialects.operations.operation import CatalogueOp, operation_name
from ttcodegen.dialects.ttcore.dialect import system_of
from ttcodegen.dialects.ttcore.shards import CoreRange
from ttcodegen.dialects.ttmetal.device_module import (
    DeviceProgram,
    device_programs,
    functions_of,
    is_host_function,
)
from ttcodegen.dialects.ttmetal.program_verification import verify_programs
from ttcodegen.dialects.ttmetal.programs import CONSTANT
from ttcodegen.dialects.ttnn.placement import TensorPlacement, placement_of
from ttcodegen.emission.program_sources import (
    LIBRARY_TENSORS,
    kernel_files,
    program_text,
    render_programs,
)
from ttcodegen.emission.templates import (
    CalledText,
    WrittenTensor,
    cpu_support_files,
    template_environment,
)
from ttcodegen.emitc.builder import open_file
from ttcodegen.emitc.printer import print_file, print_module
from ttcodegen.emitc.spelling import NameScope, comment_line, identifier
from ttcodegen.emitc.statements import FileOp
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.naming.programs import run_name
from ttcodegen.ops.tt_lang import (
    LIBRARY_CALL,
    PROGRAMS_HEADER,
    CalledProgram,
    called_name,
    called_program,
    called_tensors,
    tensor_places,
)
from ttcodegen.systems.cards import default_system
from ttcodegen.systems.description import DEFAULT_ARCHITECTURE
from ttcodegen.systems.releases import release_named
from ttcodegen.systems.releases.release import Release
from ttcodegen.transforms.rewriting import body_of

# Pass that converts kernels of device programs to C++ files.

KERNELS = "ttcodegen.kernels"
"""Attribute of a module whose kernels are C++ files: their paths, by program and kernel name."""


@dataclass(frozen=True)
class ConvertTTKernelToEmitC(FileEmission):
    """Adds an `emitc.file` for each kernel, and for the headers that kernels include.

    Host functions are kept. Kernels with equal text share a file.

    Raises:
        CompileError: if no program is launched, or an op has no C++.
    """

    name = "convert-ttkernel-to-emitc"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lift_programs_of_2024(op)
        verify_programs(op)
        hosts = [function for function in functions_of(op) if is_host_function(function)]
        for host in hosts:
            _require_lowered(host)
        title = title_of(self.cpp_name(op), self.source_hash(op), self.release)
        programs = device_programs(hosts)
        functions = {function.sym_name.data: function for function in functions_of(op)}
        kernels = kernel_files(
            programs, kernel_cpp(functions, programs, title, release_named(self.release))
        )
        paths: dict[str, dict[str, str]] = {}
        for (program, kernel), path in kernels.paths.items():
            paths.setdefault(program, {})[kernel] = path
        for path, text in kernels.files.items():
            open_file(op, path).verbatim(text.removesuffix("\n"))
        op.attributes[KERNELS] = DictionaryAttr(
            {
                program: DictionaryAttr({kernel: StringAttr(p) for kernel, p in found.items()})
                for program, found in paths.items()
            }
        )


def _require_lowered(function: FuncOp) -> None:
    """Raises CompileError at an op that has not been lowered to device programs."""
    for op in body_of(function).ops:
        if operation_name(op) != CONSTANT and op.dialect_name() in ("ttir", "ttnn"):
            raise CompileError(
                f"'{operation_name(op)}' does not launch a program of the device",
                op,
                remedy="run --ttir-to-ttmetal-pipeline on the module of TTIR first",
            )


def lift_programs_of_2024(module: ModuleOp) -> None:
    """Converts modules that dispatch programs of the 2024 dialect; keeps other modules.

    Raises:
        CompileError: at a program that does not compute exactly one builtin.
    """
    from ttcodegen.compat.ttmetal_programs import lift_programs
    from ttcodegen.ops.dialects import load_dialects
    from ttcodegen.transforms.pass_runner import PassRunner
    from ttcodegen.transforms.registry import Step, passes_of

    if lift_programs(module):
        PassRunner(load_dialects()).run(module, passes_of(Step("ttir-to-ttmetal-pipeline")))


def kernel_cpp(
    functions: Mapping[str, FuncOp],
    programs: Sequence[DeviceProgram],
    title: str,
    release: Release,
) -> dict[str, str]:
    """Returns the C++ of the kernels of programs, by the symbols of their functions.

    Args:
        functions: functions by symbol, including those of the kernels.
        programs: the programs.
        title: the lines at the head of each file.
        release: the tt-metal release whose kernel API is called.
    """
    holder = ModuleOp([])
    paths: dict[str, str] = {}
    for program in (device_program.program for device_program in programs):
        for kernel in program.kernels:
            if kernel.function not in paths:
                path = paths[kernel.function] = f"kernels/{len(paths)}.cpp"
                file = open_file(holder, path)
                write_kernel(file, functions[kernel.function], kernel, program, title, release)
    texts = print_module(holder)
    return {symbol: texts[path] for symbol, path in paths.items()}


def kernel_paths(module: ModuleOp) -> dict[tuple[str, str], str]:
    """File of each kernel of a module, by the names of program and kernel."""
    paths: dict[tuple[str, str], str] = {}
    kept = cast("DictionaryAttr", module.attributes[KERNELS])
    for program, kernels in kept.data.items():
        for kernel, path in cast("DictionaryAttr", kernels).data.items():
            paths[program, kernel] = cast("StringAttr", path).data
    return paths


def kernel_texts(module: ModuleOp) -> dict[tuple[str, str], str]:
    """C++ of each kernel of a module, by the names of program and kernel."""
    texts = {op.id.data: print_file(op) for op in module.ops if isinstance(op, FileOp)}
    return {key: texts[path] for key, path in kernel_paths(module).items()}


# Pass that converts host functions of device programs to C++ files.


@dataclass(frozen=True)
class ConvertTTMetalToEmitC(FileEmission):
    """Replaces a module of device programs by one `emitc.file` per source file.

    Kernels that are not files yet are converted first (`convert-ttkernel-to-emitc`). Host functions
    become EmitC ops; the functions that build programs are rendered from a template and kept as
    text.

    Raises:
        CompileError: if there is no entry function, or an op has no C++.
    """

    name = "convert-ttmetal-to-emitc"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        name, source_hash = self.cpp_name(op), self.source_hash(op)
        if KERNELS not in op.attributes:
            ConvertTTKernelToEmitC(name, source_hash, self.release).apply(ctx, op)
        share_on_host(op)
        entries = self.interface or required(device_entries(op))
        programs = share_programs([entry.function for entry in entries], kernel_paths(op))
        host = convert_ttmetal_to_emitc(
            name, entries, source_hash, self.release, programs, cpu_functions(op)
        )
        title = title_of(name, source_hash, self.release)
        texts = render_programs(name, programs, title, host.exchanges, self.trace)
        for path, text in texts.items():
            open_file(host.module, path).verbatim(text.removesuffix("\n"))
        for path, text in cpu_support_files(host.cpu_headers).items():
            open_file(op, path).verbatim(text.removesuffix("\n"))
        others = [inner for inner in op.ops if isinstance(inner, FileOp)]
        replace_content(op, [*host.module.ops, *others])
        op.attributes.pop(KERNELS)
        hold_constants(op, host.constants)


_MEMORIES = {"dram": "ttnn::DRAM_MEMORY_CONFIG", "l1": "ttnn::L1_MEMORY_CONFIG"}


@dataclass(frozen=True)
class _Called:
    """Program for calls of an operation on tensors with equal placements."""

    program: CalledProgram
    placements: tuple[TensorPlacement, ...]
    """Placements of the operation's tensors."""
    read: int
    """Number of tensors that it reads."""

    @property
    def device_program(self) -> DeviceProgram:
        """The program with the placements of its operands."""
        places = self.program.inputs + self.program.outputs
        placements = tuple(self.placements[place] for place in places)
        return DeviceProgram(self.program.program, placements, "")


@dataclass(frozen=True)
class CalledOperations:
    """Operations that the functions of a module call."""

    programs: tuple[DeviceProgram, ...]
    paths: Mapping[tuple[str, str], str]
    """File of each kernel, by the names of program and kernel."""
    launches: Mapping[str, int]
    """Number of launches per program in a call of all functions."""


@dataclass(frozen=True)
class ConvertTTLangToEmitC(FileEmission):
    """Adds C++ files for the operations that TTNN functions call.

    These are one per kernel, and src/programs.cpp with a function that runs each program. Other
    modules are unchanged.

    Raises:
        CompileError: if an operation is unknown, or cannot be a program for its tensors.
    """

    name = "convert-tt-lang-to-emitc"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        write_called_operations(op, self.cpp_name(op), self.source_hash(op), self.release)


def write_called_operations(
    module: ModuleOp, name: str, source_hash: str, release: str
) -> CalledOperations:
    """Adds the C++ files of called operations, and sets the C++ function of each call.

    Args:
        module: TTNN functions with layouts.
        name: the namespace of the module.
        source_hash: identifies the input in the header line of each file.
        release: the tt-metal release that the files are written for.

    Raises:
        CompileError: if an operation is unknown, or cannot be a program for its tensors.
    """
    calls = list(_calls(module))
    if not calls:
        return CalledOperations((), {}, {})
    known: dict[tuple[object, ...], _Called] = {}
    launches: dict[str, int] = {}
    names = NameScope(["main", "forward"])
    for op in calls:
        placements = tuple(placement_of(value) for value in called_tensors(op))
        key = (op.parameter("kernel_id"), op.parameter("arg_roles"), placements)
        if key not in known:
            program = names.unique(identifier(called_name(op)))
            known[key] = _compiled(op, program, placements, _cores(module))
        program = known[key].program.program.name
        op.properties["function"] = StringAttr(run_name(program))
        launches[program] = launches.get(program, 0) + 1
    title = title_of(name, source_hash, release)
    called = list(known.values())
    programs = tuple(each.device_program for each in called)
    functions = {f.sym_name.data: f for each in called for f in each.program.kernels}
    kernels = kernel_files(programs, kernel_cpp(functions, programs, title, release_named(release)))
    for path, text in {**kernels.files, **_sources(name, called, kernels.paths, title)}.items():
        open_file(module, path).verbatim(text.removesuffix("\n"))
    return CalledOperations(programs, kernels.paths, launches)


def _calls(module: ModuleOp) -> Iterator[CatalogueOp]:
    for function in module.ops:
        if isinstance(function, FuncOp):
            for op in function.walk():
                if op.name == LIBRARY_CALL and isinstance(op, CatalogueOp):
                    yield op


def _cores(module: ModuleOp) -> CoreRange:
    system = system_of(module) or default_system(DEFAULT_ARCHITECTURE)
    rows, columns = system.chip.grid
    return CoreRange(0, 0, columns - 1, rows - 1)


def _compiled(
    op: CatalogueOp, name: str, placements: tuple[TensorPlacement, ...], cores: CoreRange
) -> _Called:
    if len(placements) < 2:
        raise CompileError(
            f"the operation '{op.parameter('kernel_id')}' has no tensor but its result: the "
            "library runs programs that have at least two",
            op,
            remedy="let the operation read a tensor",
        )
    program = called_program(op, cores, name)
    read, _ = tensor_places(op)
    return _Called(program, placements, read)


def _sources(
    name: str, called: Sequence[_Called], paths: Mapping[tuple[str, str], str], title: str
) -> dict[str, str]:
    environment = template_environment()
    texts = [_text(each, paths) for each in called]
    context = {
        "name": name,
        "title": [comment_line(line) for line in title.splitlines()],
        "programs": texts,
        "several": any(len(text.written) > 1 for text in texts),
    }
    return {
        f"src/{path}": environment.get_template(f"ttnn/{path}.jinja").render(context)
        for path in (PROGRAMS_HEADER, "programs.cpp")
    }


def _text(called: _Called, paths: Mapping[tuple[str, str], str]) -> CalledText:
    """Template text of a program, with its tensors in the order of the call."""
    program = called.program.program.settled()
    places = called.program.inputs + called.program.outputs
    text = program_text(program, len(places), paths, LIBRARY_TENSORS)
    names = dict(zip(places, text.operands, strict=True))
    tensors = [names[place] for place in range(len(called.placements))]
    written = [
        WrittenTensor(
            tensors[place],
            ", ".join(map(str, called.placements[place].shape)),
            called.placements[place].data_type.cpp,
            _MEMORIES[called.placements[place].buffer_type],
        )
        for place in range(called.read, len(tensors))
    ]
    returned = "ttnn::Tensor" if len(written) == 1 else "std::vector<ttnn::Tensor>"
    parts: dict[str, Any] = {**vars(text), "returned": returned}
    return CalledText(
        **parts,
        tensors=tensors,
        read=tensors[: called.read],
        written=written,
        fidelity=program.compute.fidelity.cpp,
        fp32_destination=str(program.compute.fp32_destination).lower(),
        approximate=str(program.compute.approximate).lower(),
    )
