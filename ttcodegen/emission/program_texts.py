"""Texts of device programs in templates, and program kinds that share their C++."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import cast

# What templates say of a program of the device: pieces of C++, and how often which is written.


@dataclass(frozen=True)
class BufferText:
    """A circular buffer of a program."""

    name: str
    """The constant with its number."""
    tensor: str
    """The tensor whose shards hold it; empty for none."""
    index: int
    format: str
    pages: str
    page_size: str


@dataclass(frozen=True)
class KernelText:
    """A kernel of a program."""

    variable: str
    file: str
    purpose: str
    """A comment on what it does."""
    general_purpose: str
    """The same for any program."""
    is_compute: bool
    config: str
    """The type of its configuration."""
    cores: str
    """Cores that it runs on; empty for all cores of the program."""
    named: Sequence[tuple[str, str]]
    """Its compile-time arguments: names as literals, and values."""
    semaphores: Sequence[str]
    unpack_to_fp32: Sequence[str]
    accessors: str
    """Addresses of the tensors that it has accessors of, as arguments."""
    tensors: Sequence[str]
    """These tensors, each once."""
    uses_variant: bool = False
    """True if it differs between programs of a kind."""


@dataclass(frozen=True)
class ArgumentRow:
    """The run-time arguments of a kernel."""

    kernel: str
    """Its variable."""
    values: Sequence[str]


@dataclass(frozen=True)
class ArgumentLoop:
    """A loop over cores that sets run-time arguments."""

    kind: str
    """`work`, `grid` or `all`: how arguments depend on the core."""
    cores: str
    rows: Sequence[ArgumentRow]


@dataclass(frozen=True)
class MadeTensor:
    """A tensor that the function makes which runs a program."""

    name: str
    arguments: str
    """Those of what creates it."""


@dataclass(frozen=True, kw_only=True)
class ProgramText:
    """A program."""

    name: str
    head: Sequence[str]
    """Comments on what it computes, and what that takes."""
    computes: str
    """The first of them."""
    operands: Sequence[str]
    """Names of its tensors."""
    used_to_build: frozenset[str]
    """Those that say where they are when the program is built."""
    cores: str
    work_units: int
    """Number of linear work units that are divided among the cores; 0 for none."""
    work: str
    """The constant with their number."""
    buffers: Sequence[BufferText]
    constants: Sequence[tuple[str, str]]
    """Compile-time arguments that mean one thing in all kernels, and their values."""
    semaphores: Sequence[tuple[str, int]]
    """Their names and initial values."""
    kernels: Sequence[KernelText]
    loops: Sequence[ArgumentLoop]
    uses_noc: bool
    """True if run-time arguments are positions on the NoC."""
    has_kernel_functions: bool
    """True if each kernel is created by a function of its own."""
    made: Sequence[MadeTensor] = ()
    taken: Sequence[str] = ()
    """The operands that the function takes which runs it."""
    returned: str = ""
    """The type of what that function returns."""
    variant: Sequence[tuple[str, str]] = ()
    """Fields and values that distinguish it from others of its kind."""
    variant_in_arguments: bool = False
    """True if the run-time arguments of programs of a kind differ."""

    @property
    def aliases(self) -> list[BufferText]:
        """The circular buffers in shards of tensors."""
        return [buffer for buffer in self.buffers if buffer.tensor]


@dataclass(frozen=True)
class WrittenTensor:
    """A tensor that a call of `ttnn::generic_op` makes."""

    name: str
    shape: str
    data_type: str
    memory: str


@dataclass(frozen=True, kw_only=True)
class CalledText(ProgramText):
    """A program that `ttnn::generic_op` runs."""

    tensors: Sequence[str]
    """In the order of the call."""
    read: Sequence[str]
    written: Sequence[WrittenTensor]
    fidelity: str
    fp32_destination: str
    approximate: str


# Programs of one kind: those that the same C++ builds, from other files and for other sizes.

_VARIANT = "variant."
"""Parameter name of the variant in the functions of a kind."""
_OF_EACH = ("name", "head", "made", "taken", "returned", "purpose", "has_kernel_functions")
"""Texts written for each program, whatever its kind, or alike in equal ones."""


@dataclass(frozen=True)
class ProgramKind:
    """Some programs that the same functions build and start."""

    row: ProgramText
    """Template text of all of them: where they differ, the name of a field of `Variant`."""
    programs: tuple[ProgramText, ...]
    fields: tuple[tuple[str, str], ...] = ()
    """The types and names of the fields of `Variant`."""

    @property
    def is_shared(self) -> bool:
        """True if it has several programs."""
        return len(self.programs) > 1


def program_kinds(programs: Sequence[ProgramText]) -> list[ProgramKind]:
    """The kinds of some programs, in the order of their first ones."""
    found: dict[object, list[ProgramText]] = {}
    for program in programs:
        everything = {field.name for field in _fields(program)}
        found.setdefault(_frozen(_with_fields(program, everything)), []).append(program)
    return [_kind(members) for members in found.values()]


def _kind(programs: Sequence[ProgramText]) -> ProgramKind:
    first = programs[0]
    if len(programs) == 1:
        return ProgramKind(first, (first,))
    values = [{field.name: field.value for field in _fields(program)} for program in programs]
    found = [
        (field.type, field.name)
        for field in _fields(first)
        if len({each[field.name] for each in values}) > 1
    ]
    members = [
        replace(program, variant=[(name, each[name]) for _, name in found])
        for program, each in zip(programs, values, strict=True)
    ]
    common = _with_fields(first, [name for _, name in found])
    kernels = [
        _common_kernel(kernel, others)
        for kernel, *others in zip(common.kernels, *(p.kernels for p in programs), strict=True)
    ]
    in_arguments = common.work.startswith(_VARIANT)
    common = replace(common, kernels=kernels, variant_in_arguments=in_arguments)
    return ProgramKind(common, tuple(members), tuple(found))


def _common_kernel(kernel: KernelText, others: Sequence[KernelText]) -> KernelText:
    """A kernel of all programs of a kind."""
    texts = (kernel.file, *(value for _, value in kernel.named))
    is_same = len({other.purpose for other in others}) == 1
    return replace(
        kernel,
        uses_variant=any(text.startswith(_VARIANT) for text in texts),
        purpose=kernel.purpose if is_same else kernel.general_purpose,
    )


@dataclass(frozen=True)
class _Field:
    """Field that may differ between programs of a kind."""

    name: str
    type: str
    value: str


def _fields(program: ProgramText) -> Iterator[_Field]:
    """Fields that may differ between a program and others of its kind."""
    for kernel in program.kernels:
        yield _Field(_file_field(kernel), "const char*", kernel.file)
    if program.work_units:
        yield _Field(program.work, "std::uint32_t", str(program.work_units))
    for name, value in program.constants:
        yield _Field(name, "std::uint32_t", value)
    for buffer in program.buffers:
        yield _Field(_buffer_field(buffer, "format"), "DataFormat", buffer.format)
        yield _Field(_buffer_field(buffer, "page_size"), "std::uint32_t", buffer.page_size)
        if buffer.pages.isdigit():
            yield _Field(_buffer_field(buffer, "pages"), "std::uint32_t", buffer.pages)
    for kernel in program.kernels:
        for key, value in kernel.named:
            if value.isdigit():
                yield _Field(_argument_field(kernel, key), "std::uint32_t", value)


def _file_field(kernel: KernelText) -> str:
    return f"{kernel.variable}_file"


def _buffer_field(buffer: BufferText, what: str) -> str:
    return f"{buffer.name.removeprefix('cb_')}_{what}"


def _argument_field(kernel: KernelText, key: str) -> str:
    return f"{kernel.variable}_{key.strip(chr(34))}"


def _with_fields(program: ProgramText, names: Collection[str]) -> ProgramText:
    """Template text of a program, with the names of these fields in place of values."""

    def chosen(name: str, value: str) -> str:
        return _VARIANT + name if name in names else value

    constants = {name for name, _ in program.constants}
    return replace(
        program,
        work=chosen(program.work, program.work),
        work_units=0 if program.work in names else program.work_units,
        constants=[each for each in program.constants if each[0] not in names],
        buffers=[_buffer(buffer, chosen) for buffer in program.buffers],
        kernels=[_kernel(kernel, constants, chosen) for kernel in program.kernels],
    )


def _buffer(buffer: BufferText, chosen: Callable[[str, str], str]) -> BufferText:
    return replace(
        buffer,
        format=chosen(_buffer_field(buffer, "format"), buffer.format),
        pages=chosen(_buffer_field(buffer, "pages"), buffer.pages),
        page_size=chosen(_buffer_field(buffer, "page_size"), buffer.page_size),
    )


def _kernel(
    kernel: KernelText, constants: Collection[str], chosen: Callable[[str, str], str]
) -> KernelText:
    named = [
        (key, chosen(value if value in constants else _argument_field(kernel, key), value))
        for key, value in kernel.named
    ]
    return replace(kernel, file=chosen(_file_field(kernel), kernel.file), named=named)


def _frozen(part: object) -> object:
    """Hashable part of a program that is the same in all programs of its kind."""
    if is_dataclass(part):
        names = (field.name for field in fields(part))
        return tuple((n, _frozen(getattr(part, n))) for n in names if n not in _OF_EACH)
    if isinstance(part, list | tuple):
        return tuple(map(_frozen, cast("Sequence[object]", part)))
    return part
