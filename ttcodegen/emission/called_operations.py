"""Operations of TT-Lang that calls of the library surround: their kernels, and functions that run
them with `ttnn::generic_op`.

Sources: ttnn/cpp/ttnn/operations/generic of tt-metal, and program_descriptors.hpp.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from ttcodegen.conversions.host_functions.cpp_interface import FileEmission, title_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.dialect import system_of
from ttcodegen.dialects.ttcore.shards import CoreRange
from ttcodegen.dialects.ttmetal.device_module import DeviceProgram
from ttcodegen.dialects.ttnn.placement import TensorPlacement, placement_of
from ttcodegen.emission.convert_to_emitc import kernel_cpp
from ttcodegen.emission.program_sources import LIBRARY_TENSORS, kernel_files, program_text
from ttcodegen.emission.program_texts import CalledText, WrittenTensor
from ttcodegen.emission.templates import template_environment
from ttcodegen.emitc.builder import open_file
from ttcodegen.emitc.spelling import NameScope, comment_line, identifier
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

_MEMORIES = {"dram": "ttnn::DRAM_MEMORY_CONFIG", "l1": "ttnn::L1_MEMORY_CONFIG"}


@dataclass(frozen=True)
class _Called:
    """A program that calls of one operation on tensors of the same kinds run."""

    program: CalledProgram
    placements: tuple[TensorPlacement, ...]
    """Of what the operation is called with."""
    read: int
    """Number of these that it reads."""

    @property
    def device_program(self) -> DeviceProgram:
        """The program with what it is launched on."""
        places = self.program.inputs + self.program.outputs
        placements = tuple(self.placements[place] for place in places)
        return DeviceProgram(self.program.program, placements, "")


@dataclass(frozen=True)
class CalledOperations:
    """The operations that the functions of a module call."""

    programs: tuple[DeviceProgram, ...]
    paths: Mapping[tuple[str, str], str]
    """The file of each kernel, by the names of its program and its own."""
    launches: Mapping[str, int]
    """Number of launches per program in a call of all functions, by its name."""


@dataclass(frozen=True)
class ConvertTTLangToEmitC(FileEmission):
    """Makes C++ files of the operations that TTNN functions call: one of each kernel, and
    src/programs.cpp with a function that runs each program. Leaves other modules alone.

    Raises CompileError if an operation is not known, or is no program for its tensors.
    """

    name = "convert-tt-lang-to-emitc"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        write_called_operations(op, self.cpp_name(op), self.source_hash(op), self.release)


def write_called_operations(
    module: ModuleOp, name: str, source_hash: str, release: str
) -> CalledOperations:
    """Adds the C++ files of the operations that a module of TTNN functions calls, and names their
    functions in the calls.

    Args:
        module: TTNN functions with layouts.
        name: the namespace of the module.
        source_hash: identifies the input in the header line of each file.
        release: the tt-metal release that the files are written for.

    Raises:
        CompileError: if an operation is not known, or is no program for its tensors.
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
