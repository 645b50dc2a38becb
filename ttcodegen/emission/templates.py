"""Templates of the package, and src/tuning.hpp of device programs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from ttcodegen.naming.tuning import TRACE_REGION

if TYPE_CHECKING:
    from jinja2 import Environment


# The templates of the package: how they are rendered, and the files that are copied from them.

TEMPLATES = Path(__file__).parent.parent / "templates"

_CPU_INCLUDE = re.compile(r'^#include "support/cpu/(\w+)\.hpp"', re.MULTILINE)


def template_text(path: str) -> str:
    """The text of a file, by its path in the folder of templates."""
    return TEMPLATES.joinpath(path).read_text("utf-8")


@cache
def template_environment() -> Environment:
    """Jinja environment of the package's templates."""
    # Imported here: who only gets a diagnostic must not wait for it.
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    return Environment(
        loader=FunctionLoader(template_text),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        # What is rendered is C++, CMake and Markdown: texts from the input are escaped for each of
        # them where the context is made.
        autoescape=False,
    )


@cache
def clang_format_style() -> str:
    """The text of the .clang-format file that is shipped with each project."""
    return template_text(".clang-format")


@cache
def _cpu_header(name: str) -> str:
    return template_text(f"support_cpu/{name}.hpp")


def cpu_support_files(headers: Iterable[str]) -> dict[str, str]:
    """Headers of CPU functions, with those that they include, by path.

    Args:
        headers: the stems of the headers that they name; if there are none, nothing is needed.
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
"""The operators of C++, and how tightly they bind."""
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
    """A size in C++; `scope` qualifies the names of settings."""
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
            # A chain of one operator needs no parentheses where its order does not matter.
            chains = operator in _COMMUTATIVE
            after = _side(right, binding + (not chains), scope)
            return f"{_side(left, binding, scope)} {symbol} {after}", binding
        case _:
            return str(size), _ATOM


def _side(size: Size, least: int, scope: str) -> str:
    text, binding = _cpp(size, scope)
    return text if binding >= least else f"({text})"


def render_tuning(name: str, programs: Sequence[Program], title: str, trace: bool = False) -> str:
    """The text of src/tuning.hpp of the model `name`; with `trace`, its calls become traces."""
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
    """Template text of each program's struct; one with the settings of an earlier equal one refers
    to that."""
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
        # First, so that these are what a compiler says of a setting that nothing follows from.
        "rules_of_settings": rules[True],
        "rules": rules[False],
    }


def _condition(condition: Size) -> str:
    """The C++ of a condition; a flag is not compared with a number."""
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
    """The bytes of each core's L1 that the circular buffers take."""
    terms = [_buffer_bytes(buffer) for buffer in program.circular_buffers if not buffer.is_alias]
    return " + ".join(terms) or "0"


def _buffer_bytes(buffer: CircularBuffer) -> str:
    if buffer.pages == 1:
        return str(buffer.page_size)
    return f"{_side(buffer.pages, _INFIX[Operator.PRODUCT][1], '')} * {buffer.page_size}"
