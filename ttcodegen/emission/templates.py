"""Templates of the package, template texts of device programs, and their src/tuning.hpp."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ttcodegen.conversions.host_functions.tuning_constants import TRACE_REGION_COMMENT
from ttcodegen.dialects.ttmetal.programs import (
    FP32_DESTINATION,
    L1_BYTES,
    MATH_APPROX_MODE,
    MATH_FIDELITY,
    CircularBuffer,
    Program,
)
from ttcodegen.dialects.ttmetal.tuning import Name, Operation, Operator, Size, names_in
from ttcodegen.emitc.spelling import comment_line, identifier, string_literal
from ttcodegen.naming.modules import TRACE_REGION

if TYPE_CHECKING:
    from jinja2 import Environment


# Rendering of the package's templates, and files that are copied from them.

TEMPLATES = Path(__file__).parent.parent / "templates"

_CPU_INCLUDE = re.compile(r'^#include "support/cpu/(\w+)\.hpp"', re.MULTILINE)


def template_text(path: str) -> str:
    """Text of a file, by its path in the folder of templates."""
    return TEMPLATES.joinpath(path).read_text("utf-8")


@cache
def template_environment() -> Environment:
    """Jinja environment of the package's templates."""
    # Imported on demand: a run that ends in a diagnostic does not need it.
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    return Environment(
        loader=FunctionLoader(template_text),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        # The output is C++, CMake and Markdown: texts from the input are escaped accordingly when
        # the context is built.
        autoescape=False,
    )


@cache
def clang_format_style() -> str:
    """Text of the .clang-format file that is shipped with each project."""
    return template_text(".clang-format")


@cache
def _cpu_header(name: str) -> str:
    return template_text(f"support_cpu/{name}.hpp")


def cpu_support_files(headers: Iterable[str]) -> dict[str, str]:
    """Returns the headers of CPU functions, with those that they include, by path.

    Args:
        headers: stems of the headers that sources include; may be empty.
    """
    pending = list(headers)
    found: set[str] = set()
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += _CPU_INCLUDE.findall(_cpu_header(name))
    return {f"support/cpu/{name}.hpp": _cpu_header(name) for name in sorted(found)}


# src/tuning.hpp of a project of device programs: a struct of constants for each program.

TUNING_HEADER = "src/tuning.hpp"

_INFIX = {
    Operator.PRODUCT: ("*", 5),
    Operator.QUOTIENT: ("/", 5),
    Operator.REMAINDER: ("%", 5),
    Operator.SUM: ("+", 4),
    Operator.DIFFERENCE: ("-", 4),
    Operator.AT_MOST: ("<=", 3),
    Operator.AT_LEAST: (">=", 3),
    Operator.EQUAL: ("==", 2),
}
"""Operators of C++, and their precedence."""
_CONDITIONAL = 1
_ATOM = 6
_COMMUTATIVE = (Operator.PRODUCT, Operator.SUM)
_FIDELITY_REMARK = (
    "Mantissa bits that the matrix engine multiplies: LoFi, HiFi2, HiFi3 or HiFi4, in one to four "
    "passes."
)
_FP32_REMARK = "32-bit destination registers, which hold half as many tiles."
_APPROXIMATE_REMARK = "Faster, less precise functions of the vector engine."


def cpp_size(size: Size, scope: str = "") -> str:
    """C++ of a size; `scope` qualifies the names of settings."""
    return _cpp(size, scope)[0]


def _cpp(size: Size, scope: str) -> tuple[str, int]:
    match size:
        case Name(name):
            return scope + identifier(name), _ATOM
        case Operation(Operator.CEIL_QUOTIENT, operands):
            arguments = ", ".join(cpp_size(operand, scope) for operand in operands)
            return f"support::ceil_quotient({arguments})", _ATOM
        case Operation(Operator.SELECT, operands):
            condition, then, otherwise = (_side(o, _CONDITIONAL + 1, scope) for o in operands)
            return f"{condition} ? {then} : {otherwise}", _CONDITIONAL
        case Operation(operator, (left, right)):
            symbol, binding = _INFIX[operator]
            # A chain of one associative operator needs no parentheses.
            chains = operator in _COMMUTATIVE
            after = _side(right, binding + (not chains), scope)
            return f"{_side(left, binding, scope)} {symbol} {after}", binding
        case _:
            return str(size), _ATOM


def _side(size: Size, least: int, scope: str) -> str:
    text, binding = _cpp(size, scope)
    return text if binding >= least else f"({text})"


def render_tuning(name: str, programs: Sequence[Program], title: str, trace: bool = False) -> str:
    """Renders src/tuning.hpp of the model `name`; with `trace`, its calls become traces."""
    template = template_environment().get_template("ttmetal/tuning.hpp.jinja")
    return template.render(
        name=name,
        title=[comment_line(line) for line in title.splitlines()],
        programs=list(_structs(programs)),
        trace_region=TRACE_REGION if trace else "",
        trace_region_comment=comment_line(TRACE_REGION_COMMENT),
        has_fidelity=any(program.has_compute for program in programs),
    )


def _structs(programs: Sequence[Program]) -> Iterator[dict[str, Any]]:
    """Yields the template text of each program's struct.

    A struct with the settings of an earlier equal program derives from that one."""
    known: dict[str, str] = {}
    for program in programs:
        struct = _struct(program)
        settings = {key: value for key, value in struct.items() if key not in ("name", "head")}
        base = known.setdefault(repr((program.purpose, settings)), struct["name"])
        if base == struct["name"]:
            yield {**struct, "base": ""}
        else:
            title = f"{program.title} Tuned as {base}; to tune it apart, give it its own constants."
            yield {**struct, "base": base, "head": comment_line(title)}


def _struct(program: Program) -> dict[str, Any]:
    tuning = program.tuning
    settings = [
        (_remark(s.remark), "std::uint32_t", identifier(s.name), str(s.value))
        for s in tuning.settings
    ]
    derived = {each.name for each in tuning.derived}
    rules: dict[bool, list[tuple[str, str]]] = {True: [], False: []}
    for rule in tuning.rules:
        text = _condition(rule.condition), string_literal(rule.message)
        rules[derived.isdisjoint(names_in(rule.condition))].append(text)
    return {
        "name": identifier(program.name),
        "head": comment_line(program.title),
        "settings": [*settings, *(_compute_settings(program) if program.has_compute else ())],
        "derived": [(identifier(d.name), cpp_size(d.value)) for d in tuning.derived],
        L1_BYTES: _l1_bytes(program),
        # First, so that a compiler reports a violated setting before its consequences.
        "rules_of_settings": rules[True],
        "rules": rules[False],
    }


def _condition(condition: Size) -> str:
    """C++ of a condition; flags are not compared with numbers."""
    text = cpp_size(condition)
    flag, _, value = text.partition(" == ")
    if flag not in (FP32_DESTINATION, MATH_APPROX_MODE) or value not in ("0", "1"):
        return text
    return flag if value == "1" else f"!{flag}"


def _remark(text: str) -> str:
    return comment_line(text) if text else ""


def _compute_settings(program: Program) -> Iterator[tuple[str, str, str, str]]:
    compute = program.compute
    fidelity = f"MathFidelity::{compute.fidelity.cpp}"
    yield _remark(_FIDELITY_REMARK), "MathFidelity", MATH_FIDELITY, fidelity
    yield _remark(_FP32_REMARK), "bool", FP32_DESTINATION, _flag(compute.fp32_destination)
    yield _remark(_APPROXIMATE_REMARK), "bool", MATH_APPROX_MODE, _flag(compute.approximate)


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _l1_bytes(program: Program) -> str:
    """Bytes of L1 per core that the circular buffers take."""
    terms = [_buffer_bytes(buffer) for buffer in program.circular_buffers if not buffer.is_alias]
    return " + ".join(terms) or "0"


def _buffer_bytes(buffer: CircularBuffer) -> str:
    if buffer.pages == 1:
        return str(buffer.page_size)
    return f"{_side(buffer.pages, _INFIX[Operator.PRODUCT][1], '')} * {buffer.page_size}"


# Template texts of device programs: pieces of C++.


@dataclass(frozen=True)
class BufferText:
    """A circular buffer of a program."""

    name: str
    """Constant with its number."""
    tensor: str
    """Tensor whose shards it aliases; empty for none."""
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
    """Comment that describes it."""
    general_purpose: str
    """The same without names of a program."""
    is_compute: bool
    config: str
    """Type of its config."""
    cores: str
    """Cores that it runs on; empty for all cores of the program."""
    named: Sequence[tuple[str, str]]
    """Compile-time arguments: names as literals, and values."""
    semaphores: Sequence[str]
    unpack_to_fp32: Sequence[str]
    accessors: str
    """Addresses of the tensors that it has accessors of, as arguments."""
    tensors: Sequence[str]
    """These tensors without repetition."""
    uses_variant: bool = False
    """True if it differs between programs of a kind."""


@dataclass(frozen=True)
class ArgumentRow:
    """Run-time arguments of a kernel."""

    kernel: str
    """Variable of the kernel."""
    values: Sequence[str]


@dataclass(frozen=True)
class ArgumentLoop:
    """Loop over cores that sets run-time arguments."""

    kind: str
    """`work`, `grid` or `all`: dependence of arguments on the core."""
    cores: str
    rows: Sequence[ArgumentRow]


@dataclass(frozen=True)
class MadeTensor:
    """Tensor that the run function of a program creates."""

    name: str
    arguments: str
    """Arguments of its creation."""


@dataclass(frozen=True, kw_only=True)
class ProgramText:
    """A program."""

    name: str
    head: Sequence[str]
    """Comments on its purpose and costs."""
    computes: str
    """First of these comments."""
    operands: Sequence[str]
    """Names of its tensors."""
    used_to_build: frozenset[str]
    """Tensors whose placement is needed when the program is built."""
    cores: str
    work_units: int
    """Number of linear work units that are divided among the cores; 0 for none."""
    work: str
    """Constant with the number of work units."""
    buffers: Sequence[BufferText]
    constants: Sequence[tuple[str, str]]
    """Compile-time arguments with one value in all kernels."""
    semaphores: Sequence[tuple[str, int]]
    """Names and initial values."""
    kernels: Sequence[KernelText]
    loops: Sequence[ArgumentLoop]
    uses_noc: bool
    """True if run-time arguments are positions on the NoC."""
    has_kernel_functions: bool
    """True if each kernel is created by a function of its own."""
    made: Sequence[MadeTensor] = ()
    taken: Sequence[str] = ()
    """Operands of the run function."""
    returned: str = ""
    """Return type of the run function."""
    variant: Sequence[tuple[str, str]] = ()
    """Fields and values that distinguish it from others of its kind."""
    variant_in_arguments: bool = False
    """True if the run-time arguments of programs of a kind differ."""

    @property
    def aliases(self) -> list[BufferText]:
        """Circular buffers in shards of tensors."""
        return [buffer for buffer in self.buffers if buffer.tensor]


@dataclass(frozen=True)
class WrittenTensor:
    """Tensor that a call of `ttnn::generic_op` creates."""

    name: str
    shape: str
    data_type: str
    memory: str


@dataclass(frozen=True, kw_only=True)
class CalledText(ProgramText):
    """A program that `ttnn::generic_op` runs."""

    tensors: Sequence[str]
    """Tensors in the order of the call."""
    read: Sequence[str]
    written: Sequence[WrittenTensor]
    fidelity: str
    fp32_destination: str
    approximate: str


# Kinds of programs: the same C++ builds all programs of a kind, which differ in files and sizes.

_VARIANT = "variant."
"""Parameter name of the variant in the functions of a kind."""
_OF_EACH = ("name", "head", "made", "taken", "returned", "purpose", "has_kernel_functions")
"""Fields that are specific to a program, or equal in equal programs."""


@dataclass(frozen=True)
class ProgramKind:
    """Programs that the same functions build and start."""

    row: ProgramText
    """Template text of all programs: differing values are fields of `Variant`."""
    programs: tuple[ProgramText, ...]
    fields: tuple[tuple[str, str], ...] = ()
    """Types and names of the fields of `Variant`."""

    @property
    def is_shared(self) -> bool:
        """Returns whether it has several programs."""
        return len(self.programs) > 1


def program_kinds(programs: Sequence[ProgramText]) -> list[ProgramKind]:
    """Returns the kinds of some programs, in the order of their first ones."""
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
    """Yields the fields that may differ between a program and others of its kind."""
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
    """Replaces the values of these fields by their names."""

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
    """Hashable part of a program that is equal in all programs of its kind."""
    if is_dataclass(part):
        names = (field.name for field in fields(part))
        return tuple((n, _frozen(getattr(part, n))) for n in names if n not in _OF_EACH)
    if isinstance(part, list | tuple):
        return tuple(map(_frozen, cast("Sequence[object]", part)))
    return part
