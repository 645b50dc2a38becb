"""Programs of one kind: those that the same C++ builds, from other files and for other sizes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

Row = dict[str, Any]
"""What templates say of a program."""

_VARIANT = "variant."
"""What the functions of a kind call what distinguishes its programs."""
_OF_EACH = ("name", "head", "made", "taken", "returned", "purpose", "has_kernel_functions")
"""What is written for each program, whatever its kind, or is alike in what is alike."""


@dataclass(frozen=True)
class ProgramKind:
    """Some programs that the same functions build and start."""

    row: Row
    """What templates say of all of them: where they differ, the name of a field of `Variant`."""
    programs: tuple[Row, ...]
    fields: tuple[tuple[str, str], ...] = ()
    """The types and names of the fields of `Variant`."""

    @property
    def is_shared(self) -> bool:
        """Whether it has several programs."""
        return len(self.programs) > 1


def program_kinds(rows: Sequence[Row]) -> list[ProgramKind]:
    """The kinds of some programs, in the order of their first ones.

    Args:
        rows: what templates say of each program.
    """
    found: dict[object, list[Row]] = {}
    for row in rows:
        everything = {field.name for field in _fields(row)}
        found.setdefault(_frozen(_with_fields(row, everything)), []).append(row)
    return [_kind(programs) for programs in found.values()]


def _kind(programs: Sequence[Row]) -> ProgramKind:
    if len(programs) == 1:
        return ProgramKind(programs[0], tuple(programs))
    values = [{field.name: field.value for field in _fields(row)} for row in programs]
    fields = [
        (field.type, field.name)
        for field in _fields(programs[0])
        if len({each[field.name] for each in values}) > 1
    ]
    members = [
        {**row, "variant": [(name, each[name]) for _, name in fields]}
        for row, each in zip(programs, values, strict=True)
    ]
    row = _with_fields(programs[0], [name for _, name in fields])
    row["variant_in_arguments"] = row["work"].startswith(_VARIANT)
    for kernel in row["kernels"]:
        texts = (kernel["file"], *(value for _, value in kernel["named"]))
        kernel["uses_variant"] = any(text.startswith(_VARIANT) for text in texts)
    for kernel, *others in zip(*(each["kernels"] for each in (row, *programs)), strict=True):
        if len({other["purpose"] for other in others}) > 1:
            kernel["purpose"] = kernel["general_purpose"]
    return ProgramKind(row, tuple(members), tuple(fields))


@dataclass(frozen=True)
class _Field:
    """What may differ between programs of a kind."""

    name: str
    type: str
    value: str


def _fields(row: Row) -> Iterator[_Field]:
    """What may differ between a program and others of its kind."""
    for kernel in row["kernels"]:
        yield _Field(_file_field(kernel), "const char*", kernel["file"])
    if row["work_units"]:
        yield _Field(row["work"], "std::uint32_t", str(row["work_units"]))
    for name, value in row["constants"]:
        yield _Field(name, "std::uint32_t", str(value))
    for buffer in row["buffers"]:
        yield _Field(_buffer_field(buffer, "format"), "DataFormat", buffer["format"])
        yield _Field(_buffer_field(buffer, "page_size"), "std::uint32_t", str(buffer["page_size"]))
        if buffer["pages"].isdigit():
            yield _Field(_buffer_field(buffer, "pages"), "std::uint32_t", buffer["pages"])
    for kernel in row["kernels"]:
        for key, value in kernel["named"]:
            if value.isdigit():
                yield _Field(_argument_field(kernel, key), "std::uint32_t", value)


def _file_field(kernel: Row) -> str:
    return f"{kernel['variable']}_file"


def _buffer_field(buffer: Row, what: str) -> str:
    return f"{buffer['name'].removeprefix('cb_')}_{what}"


def _argument_field(kernel: Row, key: str) -> str:
    return f"{kernel['variable']}_{key.strip(chr(34))}"


def _with_fields(row: Row, names: Collection[str]) -> Row:
    """What templates say of a program, with the names of these fields in the place of values."""

    def chosen(name: str, value: str) -> str:
        return _VARIANT + name if name in names else value

    constants = {name for name, _ in row["constants"]}
    return {
        **row,
        "work": chosen(row["work"], row["work"]),
        "work_units": 0 if row["work"] in names else row["work_units"],
        "constants": [each for each in row["constants"] if each[0] not in names],
        "buffers": [_buffer(buffer, chosen) for buffer in row["buffers"]],
        "aliases": [_buffer(buffer, chosen) for buffer in row["aliases"]],
        "kernels": [_kernel(kernel, constants, chosen) for kernel in row["kernels"]],
    }


def _buffer(buffer: Row, chosen: Callable[[str, str], str]) -> Row:
    fields = ("format", "pages", "page_size")
    return {**buffer, **{f: chosen(_buffer_field(buffer, f), str(buffer[f])) for f in fields}}


def _kernel(kernel: Row, constants: Collection[str], chosen: Callable[[str, str], str]) -> Row:
    named = [
        (key, chosen(value if value in constants else _argument_field(kernel, key), value))
        for key, value in kernel["named"]
    ]
    return {**kernel, "file": chosen(_file_field(kernel), kernel["file"]), "named": named}


def _frozen(part: object) -> object:
    """What of a row is the same in programs of one kind, to be compared."""
    if isinstance(part, dict):
        items = cast("Row", part).items()
        return tuple((key, _frozen(value)) for key, value in items if key not in _OF_EACH)
    if isinstance(part, list | tuple):
        return tuple(map(_frozen, cast("Sequence[object]", part)))
    if isinstance(part, set):
        return frozenset(cast("set[object]", part))
    return part
