"""Programs of one kind: those that the same C++ builds, from other files and for other sizes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import cast

from ttcodegen.emission.program_texts import BufferText, KernelText, ProgramText

_VARIANT = "variant."
"""What the functions of a kind call what distinguishes its programs."""
_OF_EACH = ("name", "head", "made", "taken", "returned", "purpose", "has_kernel_functions")
"""What is written for each program, whatever its kind, or is alike in what is alike."""


@dataclass(frozen=True)
class ProgramKind:
    """Some programs that the same functions build and start."""

    row: ProgramText
    """What templates say of all of them: where they differ, the name of a field of `Variant`."""
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
    """What may differ between programs of a kind."""

    name: str
    type: str
    value: str


def _fields(program: ProgramText) -> Iterator[_Field]:
    """What may differ between a program and others of its kind."""
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
    """What templates say of a program, with the names of these fields in the place of values."""

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
    """What of a program is the same in programs of one kind, to be compared."""
    if is_dataclass(part):
        names = (field.name for field in fields(part))
        return tuple((n, _frozen(getattr(part, n))) for n in names if n not in _OF_EACH)
    if isinstance(part, list | tuple):
        return tuple(map(_frozen, cast("Sequence[object]", part)))
    return part
