"""Files of a project for its device programs.

The functions that build and run programs are rendered from templates; kernels were printed
before."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from ttcodegen.conversions.host_functions.cpp_interface import returned_type
from ttcodegen.conversions.mesh import EXCHANGE_KERNEL
from ttcodegen.conversions.ttmetal_to_emitc.recording import (
    TENSOR,
    KernelPaths,
    SharedProgram,
    SharedPrograms,
    creation_arguments,
)
from ttcodegen.dialects.ttcore.tile import TILE_FORMATS
from ttcodegen.dialects.ttmetal.device_module import DeviceProgram
from ttcodegen.dialects.ttmetal.programs import (
    BufferAddress,
    CircularBuffer,
    CoreArea,
    Costs,
    Kernel,
    NamedConstant,
    NocX,
    NocY,
    Place,
    Processor,
    Program,
    RuntimeValue,
)
from ttcodegen.emission.templates import (
    TUNING_HEADER,
    ArgumentLoop,
    ArgumentRow,
    BufferText,
    KernelText,
    MadeTensor,
    ProgramText,
    cpp_size,
    program_kinds,
    render_tuning,
    template_environment,
    template_text,
)
from ttcodegen.emitc.spelling import NameScope, comment_line, identifier, string_literal
from ttcodegen.naming.programs import (
    kernel_file_name,
    kernel_variables,
    named_shapes,
    operand_names,
    work_name,
)
from ttcodegen.transforms.ttmetal.device_programs import general_purpose

KERNELS = "kernels"
"""Folder of the kernels in a project."""

KINDS_IN_FILE = 24
"""Maximum number of kinds of programs per file."""

LONGEST_BUILD = 100
"""Approximate maximum number of lines of a function that builds a program with its kernels.

In longer ones each kernel has a function of its own."""

_BLOCK = re.compile(r'^#include "(blocks/[\w/]+\.hpp)"', re.MULTILINE)


@dataclass(frozen=True)
class ArgumentStyle:
    """Spelling of run-time arguments of kernels."""

    address: str
    """Member function of a tensor that returns its address."""
    number_suffix: str = ""


DEVICE_TENSORS = ArgumentStyle("address")
LIBRARY_TENSORS = ArgumentStyle("buffer", "U")
"""Tensors of ttnn: an argument is a buffer or an unsigned integer."""


@dataclass(frozen=True)
class KernelFiles:
    """Files of the kernels of a project."""

    files: dict[str, str]
    """Texts by path in the project, including headers that kernels include."""
    paths: dict[tuple[str, str], str]
    """File of each kernel, by the names of program and kernel."""


def kernel_files(programs: Sequence[DeviceProgram], texts: Mapping[str, str]) -> KernelFiles:
    """Returns the files of all kernels; kernels with equal text share one.

    Args:
        programs: the programs with their kernels.
        texts: C++ of the kernels, by the symbols of their functions.
    """
    files: dict[str, str] = {}
    paths: dict[tuple[str, str], str] = {}
    known: dict[str, str] = {}
    names = NameScope()
    for described in programs:
        program = described.program
        for kernel in program.kernels:
            text = texts[kernel.function]
            path = known.get(text)
            if path is None:
                stem = kernel_file_name(kernel.name, named_shapes(described), names)
                path = f"{KERNELS}/{stem}.cpp"
                known[text] = path
                files[path] = text
            paths[program.name, kernel.name] = path
    for path, text in _blocks(list(files.values())):
        files[path] = text
    return KernelFiles(files, paths)


@cache
def kernel_blocks() -> Path:
    """Folder of the building blocks of kernels, in the package or next to it."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "_kernels"
    return installed if installed.is_dir() else package.parent / KERNELS


def _blocks(texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yields the building blocks that kernels include, directly or indirectly."""
    open_: list[str] = sorted({name for text in texts for name in _BLOCK.findall(text)})
    seen: set[str] = set()
    while open_:
        name = open_.pop(0)
        if name in seen:
            continue
        seen.add(name)
        text = kernel_blocks().joinpath(name).read_text("utf-8")
        yield f"{KERNELS}/{name}", text
        # Blocks include each other without the name of their common folder.
        inner = re.findall(r'^#include "(\w+\.hpp)"', text, re.MULTILINE)
        open_ += sorted({*_BLOCK.findall(text), *(f"blocks/{other}" for other in inner)})


def render_programs(
    name: str,
    shared: SharedPrograms,
    title: str,
    exchanges: int = 0,
    trace: bool = False,
) -> dict[str, str]:
    """Renders `src/programs.hpp`, `src/programs.cpp` and `src/tuning.hpp`, by path.

    Each program has a function that runs it; programs of a kind share the functions that build
    them. Many kinds are divided among several files: `programs_2.cpp` and so on. `exchanges` is the
    number of exchanges between devices of a mesh. With `trace`, calls become traces."""
    environment = template_environment()
    programs = shared.programs
    kinds = program_kinds([_shared_text(program, shared.paths) for program in programs])
    texts = [text for kind in kinds for text in kind.programs]
    lines = [comment_line(line) for line in title.splitlines()]
    context = {"name": name, "title": lines, "exchanges": exchanges}
    context["uses_array"] = any(len(program.made) > 1 for program in programs)
    header = environment.get_template("ttmetal/programs.hpp.jinja")
    source = environment.get_template("ttmetal/programs.cpp.jinja")
    files = {
        "src/programs.hpp": header.render({**context, "programs": texts}),
        TUNING_HEADER: render_tuning(name, [found.program for found in programs], title, trace),
    }
    for start in range(0, max(1, len(kinds)), KINDS_IN_FILE):
        number = start // KINDS_IN_FILE + 1
        path = "src/programs.cpp" if number == 1 else f"src/programs_{number}.cpp"
        part = kinds[start : start + KINDS_IN_FILE]
        files[path] = source.render({**context, "kinds": part, "is_first": number == 1})
    if exchanges:
        kernel = f"{KERNELS}/{EXCHANGE_KERNEL}"
        files[kernel] = kernel_blocks().joinpath(EXCHANGE_KERNEL).read_text("utf-8")
        files["support/fabric/exchange.hpp"] = template_text("support_fabric/exchange.hpp")
    return files


def _shared_text(shared: SharedProgram, paths: KernelPaths) -> ProgramText:
    """Template text of a program, and of the tensors that its run function creates."""
    placements = shared.described.placements
    text = program_text(shared.program, len(placements), paths)
    names = text.operands
    made = [
        MadeTensor(
            names[place],
            ", ".join(each.text for each in creation_arguments(placements[place])),
        )
        for place in shared.made
    ]
    taken = [name for place, name in enumerate(names) if place not in shared.made]
    returned = returned_type([TENSOR] * len(made)) or "void"
    return replace(text, made=made, taken=taken, returned=returned)


def _uses_noc(program: Program) -> bool:
    values = (a.value for kernel in program.kernels for a in kernel.arguments)
    return any(isinstance(value, NocX | NocY) for value in values)


def program_text(
    program: Program,
    tensors: int,
    paths: Mapping[tuple[str, str], str],
    style: ArgumentStyle = DEVICE_TENSORS,
) -> ProgramText:
    """Template text of a program.

    Args:
        program: the program.
        tensors: number of tensors that it reads and writes.
        paths: file of each kernel, by the names of program and kernel.
        style: spelling of run-time arguments.
    """
    constants = _shared_constants(program)
    variables = kernel_variables(program)
    names = operand_names(program, tensors)
    kernels = [
        _kernel(kernel, program, paths[program.name, kernel.name], variable, constants, names)
        for kernel, variable in zip(program.kernels, variables, strict=True)
    ]
    return ProgramText(
        name=identifier(program.name),
        head=_head(program),
        computes=comment_line(f"Computes {program.purpose}."),
        operands=names,
        used_to_build=frozenset(names[operand] for operand in _built_with(program)),
        cores=_core_range(program.cores),
        work_units=program.work_units,
        work=work_name(program),
        buffers=[_buffer(buffer, names) for buffer in program.circular_buffers],
        constants=[(name, str(value)) for name, value in sorted(constants.items())],
        semaphores=[(identifier(s), program.initial_value(s)) for s in program.semaphores],
        kernels=kernels,
        loops=_argument_loops(program, variables, names, style),
        uses_noc=_uses_noc(program),
        has_kernel_functions=_lines_to_build(program) > LONGEST_BUILD,
    )


def _lines_to_build(program: Program) -> int:
    """Estimates the lines of C++ that build a program."""
    lines = 12 + 2 * len(program.circular_buffers) + len(program.semaphores)
    for kernel in program.kernels:
        is_compute = kernel.processor is Processor.COMPUTE
        lines += 6 + len(kernel.constants) + len(kernel.semaphores) + (7 if is_compute else 0)
    return lines


def _built_with(program: Program) -> Iterator[int]:
    """Operands whose placement is needed when the program is built."""
    for kernel in program.kernels:
        yield from kernel.accessors
    yield from (buffer.operand for buffer in program.circular_buffers if buffer.is_alias)


def _head(program: Program) -> list[str]:
    lines = [program.title]
    if program.work_units:
        count = program.work_units
        what = program.work_unit if count == 1 else program.work_unit_plural
        lines.append(f"{count} {what}, divided among the cores.")
    costs = program.costs
    if costs != Costs():
        lines.append(
            f"As generated, it reads {costs.dram_read_bytes} bytes from DRAM and writes "
            f"{costs.dram_write_bytes}; the minimum is {costs.least_dram_read_bytes} and "
            f"{costs.least_dram_write_bytes}."
        )
    return [comment_line(line) for line in lines]


_SCOPE = "Tuning::"
"""Qualifier of the names of settings in the functions of a program."""


def _core_range(area: CoreArea) -> str:
    first_column, first_row, last_column, last_row = (
        cpp_size(size, _SCOPE)
        for size in (area.first_column, area.first_row, area.last_column, area.last_row)
    )
    return f"{{{first_column}, {first_row}}}, {{{last_column}, {last_row}}}"


def _buffer(buffer: CircularBuffer, operands: Sequence[str]) -> BufferText:
    return BufferText(
        buffer.constant,
        operands[buffer.operand] if buffer.is_alias else "",
        buffer.index,
        f"DataFormat::{TILE_FORMATS[buffer.data_type.mlir].cpp}",
        cpp_size(buffer.pages, _SCOPE),
        str(buffer.page_size),
    )


def _shared_constants(program: Program) -> dict[str, int]:
    """Compile-time arguments with one value in all kernels, other than circular buffers."""
    values: dict[str, set[int]] = {}
    for kernel in program.kernels:
        buffers = program.buffers_of(kernel)
        for constant in kernel.constants:
            if isinstance(constant.value, int) and constant.name not in buffers:
                values.setdefault(constant.name, set()).add(constant.value)
    return {name: found.pop() for name, found in values.items() if len(found) == 1}


_CONFIGURATIONS = {
    Processor.READER: "ReaderDataMovementConfig",
    Processor.WRITER: "WriterDataMovementConfig",
    Processor.COMPUTE: "ComputeConfig",
}


def _kernel(
    kernel: Kernel,
    program: Program,
    path: str,
    variable: str,
    shared: Mapping[str, int],
    operands: Sequence[str],
) -> KernelText:
    buffers = program.buffers_of(kernel)

    def value(constant: NamedConstant) -> str:
        if not isinstance(constant.value, int):
            return cpp_size(constant.value, _SCOPE)
        if constant.name in buffers:
            return buffers[constant.name].constant
        return identifier(constant.name) if constant.name in shared else str(constant.value)

    named = [(string_literal(c.name), value(c)) for c in kernel.constants]
    named += [(string_literal(f"{s}_semaphore"), f"{identifier(s)}_semaphore")
              for s in kernel.semaphores]  # fmt: skip
    names = {buffer.index: buffer.constant for buffer in program.circular_buffers}
    accessed = [operands[operand] for operand in kernel.accessors]
    return KernelText(
        variable=variable,
        file=string_literal(path.removeprefix(f"{KERNELS}/")),
        purpose=comment_line(kernel.purpose),
        general_purpose=comment_line(general_purpose(kernel)),
        is_compute=kernel.processor is Processor.COMPUTE,
        config=_CONFIGURATIONS[kernel.processor],
        cores="" if kernel.cores == program.cores else _core_range(kernel.cores),
        named=named,
        semaphores=[f"{identifier(s)}_semaphore" for s in kernel.semaphores],
        unpack_to_fp32=[names[index] for index in program.compute.unpack_to_fp32],
        accessors=", ".join(f"&{name}" for name in accessed),
        tensors=list(dict.fromkeys(accessed)),
    )


def _argument_loops(
    program: Program, variables: Sequence[str], operands: Sequence[str], style: ArgumentStyle
) -> list[ArgumentLoop]:
    """Loops over cores that set run-time arguments.

    Kernels with the same cores and the same dependence on the core share a loop."""
    found: dict[tuple[str, str], list[ArgumentRow]] = {}
    for kernel, variable in zip(program.kernels, variables, strict=True):
        if not kernel.arguments:
            continue
        values = [argument.value for argument in kernel.arguments]
        kind = _loop_kind(values)
        texts = [_argument_text(value, kind, operands, style) for value in values]
        rows = found.setdefault((kind, _loop_cores(kernel, program)), [])
        rows.append(ArgumentRow(variable, texts))
    return [ArgumentLoop(kind, cores, rows) for (kind, cores), rows in found.items()]


def _loop_cores(kernel: Kernel, program: Program) -> str:
    return "cores" if kernel.cores == program.cores else f"CoreRange({_core_range(kernel.cores)})"


def _loop_kind(values: Iterable[RuntimeValue]) -> str:
    """Dependence of arguments on the core.

    `work` for shares of linear work, `grid` for positions, `all` if all cores get the same."""
    places = {place for value in values for place in _places(value)}
    if not places.isdisjoint((Place.FIRST, Place.COUNT)):
        return "work"
    return "all" if places.isdisjoint((Place.COLUMN, Place.ROW)) else "grid"


def _places(value: RuntimeValue) -> Iterator[int | Place | BufferAddress]:
    """Operands of an expression."""
    if isinstance(value, NocX | NocY):
        yield from (value.column, value.row)
    else:
        yield value


def _argument_text(
    value: RuntimeValue, kind: str, operands: Sequence[str], style: ArgumentStyle
) -> str:
    """C++ of a run-time argument."""
    match value:
        case BufferAddress(operand):
            return f"{operands[operand]}.{style.address}()"
        case NocX(column, row) | NocY(column, row):
            places = f"{_coordinate(column, kind)}, {_coordinate(row, kind)}"
            return f"support::{value.mnemonic}(device, {places})"
        case Place.FIRST | Place.COUNT:
            return f"share.{value}"
        case Place():
            return f"static_cast<std::uint32_t>({_coordinate(value, kind)})"
        case _:
            return f"{value}{style.number_suffix}"


def _coordinate(place: int | Place, kind: str) -> str:
    """C++ of the column or the row of a core."""
    core = "share.core" if kind == "work" else "core"
    match place:
        case Place.COLUMN:
            return f"{core}.x"
        case Place.ROW:
            return f"{core}.y"
        case Place.LAST_COLUMN:
            return "cores.end_coord.x"
        case Place.LAST_ROW:
            return "cores.end_coord.y"
        case _:
            return str(int(place))
