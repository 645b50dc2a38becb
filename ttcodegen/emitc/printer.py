"""EmitC to C++: `print_module` returns the text of each file.

The text is indented as clang-format would; long lines are left to it. A file is printed completely
or not at all: the first op without a rule raises a CompileError at that op."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from xdsl.dialects.builtin import (
    DictionaryAttr,
    ModuleOp,
    StringAttr,
)
from xdsl.dialects.emitc import EmitC_OpaqueAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ttcodegen.emitc.expressions import CallOp, CallOpaqueOp, YieldOp
from ttcodegen.emitc.inlining import (
    ASSIGNS,
    FIXED_NAME,
    NAME,
    NAMES,
    InliningPlan,
    constant_globals,
    has_effects,
    mentioned_names,
    mentions,
    origins_of,
)
from ttcodegen.emitc.operators import (
    COMPARISON_SYNTAX,
    OPERATOR_SYNTAX,
    CastOp,
    CmpOp,
    ComparisonPredicate,
    ConditionalOp,
)
from ttcodegen.emitc.spelling import (
    Expression,
    NameScope,
    Precedence,
    declaration,
    identifier,
    snake_case,
)
from ttcodegen.emitc.statements import (
    AssignOp,
    ClassOp,
    DeclareFuncOp,
    DoOp,
    FieldOp,
    FileOp,
    ForOp,
    FuncOp,
    GlobalOp,
    IfOp,
    IncludeOp,
    ReturnOp,
    ScopeOp,
    SwitchOp,
    VariableOp,
    VerbatimOp,
)
from ttcodegen.emitc.values import (
    INITIALIZERS,
    ValueTable,
    array_texts,
    require_identifier,
    spelled_type,
    spelled_value,
)
from ttcodegen.foundation.diagnostics import CompileError

_INDENT = "    "

_MAX_OPERATION_LENGTH = 160
_MAX_CALL_LENGTH = 4000
"""Maximum lengths of inlined operations and calls.

Chains of longer ones would be unreadable, and the text would grow quadratically. A call may be a
structure with many fields."""

_LAST_NAME_PART = re.compile(r"(\w+)\s*(?:<.*)?$", re.DOTALL)
_LOOP_COUNTERS = "ijk"


def print_module(module: ModuleOp) -> dict[str, str]:
    """The C++ text of each emitc.file in `module`, by its path, in the order of the module.

    Raises:
        CompileError: at the first op, type, attribute or name that cannot be written as C++.
    """
    return {path: print_file(file) for path, file in _files(module)}


def print_with_origins(module: ModuleOp) -> tuple[dict[str, str], dict[str, list[PrintedLines]]]:
    """Prints a module, and returns which lines of each file belong to which op."""
    files: dict[str, str] = {}
    printed: dict[str, list[PrintedLines]] = {}
    for path, file in _files(module):
        printer = _TracingPrinter(file)
        files[path] = printer.text()
        printed[path] = printer.printed
    return files, printed


def _files(module: ModuleOp) -> Iterator[tuple[str, FileOp]]:
    """Yields the files of a module by path."""
    seen: set[str] = set()
    for op in module.body.block.ops:
        if not isinstance(op, FileOp):
            raise CompileError(
                f"'{op.name}' is outside of the files of the module",
                op,
                remedy="lower it to EmitC, inside an emitc.file, before printing",
            )
        path = _checked_path(op)
        if path in seen:
            raise CompileError(f"the module has two files {path!r}", op)
        seen.add(path)
        yield path, op


def print_file(file: FileOp) -> str:
    """Returns the C++ text of one file; raises CompileError as `print_module` does."""
    return _FilePrinter(file).text()


@dataclass(frozen=True)
class PrintedLines:
    """Lines of a file that belong to a source op."""

    origin: Operation
    first: int
    end: int
    """Index of the line after the last one, counted from 0."""


def _checked_path(file: FileOp) -> str:
    path = PurePosixPath(file.id.data)
    parts_known = all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", part) for part in path.parts)
    if path.is_absolute() or not path.parts or not parts_known:
        raise CompileError(f"{file.id.data!r} is not a file inside the generated project", file)
    return str(path)


class _FilePrinter:
    """Prints one file: lines, names in scope, and texts of values."""

    def __init__(self, file: FileOp) -> None:
        self._file = file
        self._lines: list[str] = []
        self._depth = 0
        self._wants_blank_line = False
        self._scope: NameScope = NameScope(mentioned_names(file.body.walk()))
        self._values = ValueTable()
        self._constants = constant_globals(file.body.block.ops)
        self._plan: InliningPlan | None = None
        self._function = ""
        """Name of the current function."""
        self._variables: dict[str, str] = {}
        """Names of the variables of the function, by requested name."""

    def text(self) -> str:
        for op in self._file.body.block.ops:
            self._statement(op)
        return "\n".join(self._lines) + "\n" if self._lines else ""

    # --- Lines -----------------------------------------------------------------------------------

    def _emit(self, text: str) -> None:
        if self._wants_blank_line:
            self._wants_blank_line = False
            if self._lines and self._lines[-1]:
                self._lines.append("")
        self._lines.append(_INDENT * self._depth + text if text else "")

    def _begin_definition(self) -> None:
        """Writes an empty line before a function or a structure, and before its comment."""
        start = len(self._lines)
        while start and self._lines[start - 1].lstrip().startswith("//"):
            start -= 1
        before = self._lines[start - 1] if start else ""
        if before and not before.endswith("{"):
            self._lines.insert(start, "")

    @contextmanager
    def _block(self, opening: str, closing: str = "}") -> Generator[None]:
        self._emit(opening)
        outer = self._scope
        self._scope = outer.nested()
        self._depth += 1
        yield
        self._depth -= 1
        self._scope = outer
        self._wants_blank_line = False
        self._emit(closing)

    # --- Statements and values -------------------------------------------------------------------

    def _statement(self, op: Operation) -> None:
        rule = _RULES.get(type(op))
        if rule is not None:
            rule(self, op)
            return
        expression = self._values.evaluate(op)
        # The next iteration uses an assigned variable.
        is_carried = ASSIGNS in op.attributes and isinstance(op.parent_op(), ForOp)
        is_used = is_carried or any(result.first_use for result in op.results)
        if not op.results or not is_used:
            if has_effects(op):
                self._emit(f"{expression.text};")
            return
        if self._plan is not None and op in self._plan and not _is_too_long(op, expression):
            self._values.define(op.results[0], expression)
            return
        self._define(op, expression)

    def _define(self, op: Operation, expression: Expression) -> None:
        """Declares or assigns variables for the results of `op`."""
        assigned = op.attributes.get(ASSIGNS)
        if isinstance(assigned, StringAttr) and assigned.data in self._variables:
            name = self._variables[assigned.data]
            self._values.define(op.results[0], Expression(name))
            self._emit(f"{name} = {expression.text};")
            return
        names = self._names_of(op)
        for result, name in zip(op.results, names, strict=True):
            self._values.define(result, Expression(name))
        if len(names) > 1:
            self._emit(f"auto [{', '.join(names)}] = {expression.text};")
            return
        type_ = spelled_type(op.results[0].type, op)
        if isinstance(op, CallOpaqueOp) and INITIALIZERS in op.attributes:
            braces = expression.text.removeprefix(type_)
            if braces.startswith("{") and len(braces) < len(expression.text):
                self._emit(f"{type_} {names[0]}{braces};")
                return
        self._emit(f"{type_} {names[0]} = {expression.text};")

    def _names_of(self, op: Operation) -> list[str]:
        given: list[str | None] = [result.name_hint for result in op.results]
        single, several = op.attributes.get(NAME), op.attributes.get(NAMES)
        if isinstance(single, StringAttr) and len(given) == 1:
            given = [single.data]
        elif several is not None and len(names := array_texts(several)) == len(given):
            given = list(names)
        fallback = "" if all(given) else _fallback_name(op)
        wanted = [identifier(name or fallback) for name in given]
        # A variable must not shadow the current function.
        wanted = ["result" if name == self._function else name for name in wanted]
        names = [self._scope.unique(name) for name in wanted]
        self._variables.update((g, name) for g, name in zip(given, names, strict=True) if g)
        return names

    def _body(self, block: Block) -> None:
        for op in block.ops:
            self._statement(op)

    # --- Files and definitions -------------------------------------------------------------------

    def include(self, op: IncludeOp) -> None:
        path = op.include.data
        if self._lines and self._lines[-1].startswith("#include"):
            self._wants_blank_line = False
        if not path or any(c in path for c in '<>"\\\n\r'):
            raise CompileError(f"{op.name}: {path!r} is not a header", op)
        self._emit(f"#include <{path}>" if op.is_standard_include else f'#include "{path}"')
        self._wants_blank_line = True

    def verbatim(self, op: VerbatimOp) -> None:
        operands = iter(op.operands)
        text = "".join(
            # The surrounding text may contain `<<`.
            self._values.of(next(operands)).at_least(Precedence.ADDITIVE)
            if piece is None
            else piece
            for piece in op.pieces()
        )
        for line in text.split("\n"):
            # Preprocessor directives are not indented.
            if line.startswith("#"):
                self._lines.append(line.rstrip())
            elif line.strip() or not self._wants_blank_line:
                self._emit(line.rstrip())

    def declare_function(self, op: DeclareFuncOp) -> None:
        name = op.sym_name.root_reference.data
        for other in self._file.body.block.ops:
            if isinstance(other, FuncOp) and other.sym_name.data == name:
                self._emit(f"{self._signature(other, self._scope.nested())};")
                return
        raise CompileError(f"{op.name}: there is no function {name!r} in this file", op)

    def function(self, op: FuncOp) -> None:
        outer = self._scope
        if not op.body.blocks:
            self._emit(f"{self._signature(op, outer.nested())};")
            return
        self._begin_definition()
        self._scope = outer.nested()
        self._variables = {}
        self._plan = InliningPlan(op.body, self._constants)
        self._function = op.sym_name.data
        with self._block(f"{self._signature(op, self._scope)} {{"):
            self._body(op.body.block)
        self._function = ""
        self._plan = None
        self._scope = outer
        self._wants_blank_line = True

    def _signature(self, op: FuncOp, scope: NameScope) -> str:
        name = require_identifier(op.sym_name.data, op)
        outputs = op.function_type.outputs.data
        words = [] if op.specifiers is None else array_texts(op.specifiers)
        words.append(spelled_type(outputs[0], op) if outputs else "void")
        parameters = ", ".join(self._parameters(op, scope))
        return f"{' '.join(words)} {name}({parameters})"

    def _parameters(self, op: FuncOp, scope: NameScope) -> Iterator[str]:
        arguments = op.body.block.args if op.body.blocks else ()
        for index, type_ in enumerate(op.function_type.inputs.data):
            argument = arguments[index] if arguments else None
            given = _parameter_name(op, index, argument)
            name = identifier(given, "argument")
            fixed = _has_fixed_name(op, index)
            if fixed:
                scope.reserve(name)
            else:
                name = scope.unique(name)
            if argument is not None:
                self._variables[given] = name
                self._values.define(argument, Expression(name))
                used = argument.first_use is not None
                # An unused name would be a warning.
                if not used and not (fixed and mentions(op.body.walk(), name)):
                    name = f"/*{name}*/"
            text = declaration(type_, name)
            if text is None:
                raise CompileError(f"{op.name}: the type {type_} has no C++ spelling", op)
            yield text

    def class_(self, op: ClassOp) -> None:
        name = require_identifier(op.sym_name.data, op)
        self._begin_definition()
        final = " final" if op.final_specifier is not None else ""
        keyword = "struct" if op.is_struct else "class"
        with self._block(f"{keyword} {name}{final} {{", "};"):
            if not op.is_struct:
                self._lines.append(_INDENT * (self._depth - 1) + "  public:")
            self._body(op.body.block)
        self._wants_blank_line = True

    def field(self, op: FieldOp) -> None:
        self._variable(op, op.type, require_identifier(op.sym_name.data, op), op.initial_value)

    def global_(self, op: GlobalOp) -> None:
        specifiers = [
            word
            for word, specifier in (
                ("extern", op.extern_specifier),
                ("static", op.static_specifier),
                ("const", op.const_specifier),
            )
            if specifier is not None
        ]
        name = require_identifier(op.sym_name.data, op)
        self._variable(op, op.type, name, op.initial_value, specifiers)

    def variable(self, op: VariableOp) -> None:
        if FIXED_NAME in op.attributes and op.result.name_hint is not None:
            name = op.result.name_hint
        else:
            name = self._names_of(op)[0]
        self._values.define(op.result, Expression(name))
        self._variable(op, op.result.type, name, op.value)

    def _variable(
        self,
        op: Operation,
        type_: Attribute,
        name: str,
        value: Attribute | None,
        specifiers: list[str] | None = None,
    ) -> None:
        text = declaration(type_, name)
        if text is None:
            raise CompileError(f"{op.name}: the type {type_} has no C++ spelling", op)
        text = " ".join([*(specifiers or ()), text])
        if value is None or (isinstance(value, EmitC_OpaqueAttr) and not value.value.data):
            self._emit(f"{text};")
            return
        initial = spelled_value(value, op).text
        braced = isinstance(value, EmitC_OpaqueAttr) and initial.startswith("{")
        self._emit(f"{text}{initial};" if braced else f"{text} = {initial};")

    # --- Control flow ----------------------------------------------------------------------------

    def assign(self, op: AssignOp) -> None:
        self._emit(f"{self._values.of(op.var).text} = {self._values.of(op.value).text};")

    def return_(self, op: ReturnOp) -> None:
        if op.operand is not None:
            self._emit(f"return {self._values.of(op.operand).text};")

    def yield_(self, op: YieldOp) -> None:
        if op.operands:
            raise CompileError(f"{op.name}: a statement yields no value", op)

    def if_(self, op: IfOp, opening: str = "if") -> None:
        condition = self._values.of(op.condition).text
        otherwise = op.else_region.blocks.first
        repeated = _only_loop(op) if opening == "if" else None
        if repeated is not None and (
            self._values.evaluate_block(repeated.condition.block).text == condition
        ):
            with self._block(f"while ({condition}) {{"):
                self._body(repeated.body.block)
            return
        with self._block(f"{opening} ({condition}) {{", "}" if otherwise is None else ""):
            self._body(op.then_region.block)
        if otherwise is None:
            return
        # The closing brace and the `else` share a line.
        self._lines.pop()
        statements = [inner for inner in otherwise.ops if not isinstance(inner, YieldOp)]
        if len(statements) == 1 and isinstance(statements[0], IfOp):
            self.if_(statements[0], "} else if")
            return
        with self._block("} else {"):
            self._body(otherwise)

    def scope(self, op: ScopeOp) -> None:
        with self._block("{"):
            self._body(op.body.block)

    def for_(self, op: ForOp) -> None:
        counter = op.body.block.args[0]
        outer = self._scope
        self._scope = outer.nested()
        free = next((c for c in _LOOP_COUNTERS if not outer.is_taken(c)), "i")
        name = self._scope.unique(identifier(counter.name_hint or free))
        self._values.define(counter, Expression(name))
        start, bound, step = (self._values.of(operand) for operand in op.operands)
        advance = f"++{name}" if step.text in ("1", "1u") else f"{name} += {step.text}"
        with self._block(
            f"for ({spelled_type(counter.type, op)} {name} = {start.text}; "
            f"{name} < {bound.at_least(Precedence.SHIFT)}; {advance}) {{"
        ):
            self._body(op.body.block)
        self._scope = outer

    def do(self, op: DoOp) -> None:
        with self._block("do {", ""):
            self._body(op.body.block)
        self._lines.pop()
        condition = self._values.evaluate_block(op.condition.block)
        self._emit(f"}} while ({condition.text});")

    def switch(self, op: SwitchOp) -> None:
        self._emit(f"switch ({self._values.of(op.arg).text}) {{")
        self._depth += 1
        labels = [*(f"case {value}" for value in op.case_values()), "default"]
        regions = [*op.regions[1:], op.regions[0]]
        for label, region in zip(labels, regions, strict=True):
            with self._block(f"{label}: {{"):
                self._body(region.block)
                self._emit("break;")
        self._depth -= 1
        self._emit("}")


def _only_loop(op: IfOp) -> DoOp | None:
    """Returns the `do` loop that is the whole body of an `if` without `else`.

    Both may be a `while` loop."""
    inner = [each for each in op.then_region.block.ops if not isinstance(each, YieldOp)]
    alone = len(inner) == 1 and op.else_region.blocks.first is None
    return inner[0] if alone and isinstance(inner[0], DoOp) else None


class _TracingPrinter(_FilePrinter):
    """Also records which lines belong to which op."""

    def __init__(self, file: FileOp) -> None:
        super().__init__(file)
        self.printed: list[PrintedLines] = []
        self._silent: set[Operation] = set()
        """Ops whose text is part of the line of their user."""

    def _statement(self, op: Operation) -> None:
        first = len(self._lines)
        super()._statement(op)
        end = len(self._lines)
        if end == first:
            self._silent.add(op)
            return
        while first < end and not self._lines[first]:
            first += 1
        if op.regions:
            return  # The nested ops have lines of their own.
        waiting, seen = [op], {op}
        while waiting:
            each = waiting.pop()
            self.printed += [PrintedLines(origin, first, end) for origin in origins_of(each)]
            owners = [operand.owner for operand in each.operands]
            for owner in owners:
                if isinstance(owner, Operation) and owner in self._silent and owner not in seen:
                    seen.add(owner)
                    waiting.append(owner)


def _is_too_long(op: Operation, expression: Expression) -> bool:
    length = len(expression.text)
    if length <= _MAX_OPERATION_LENGTH:
        return False
    if isinstance(op, CallOpaqueOp):
        return length > _MAX_CALL_LENGTH
    return type(op) in OPERATOR_SYNTAX or isinstance(op, CmpOp | ConditionalOp | CastOp)


def _parameter_name(op: FuncOp, index: int, argument: SSAValue | None) -> str:
    attributes = op.arg_attrs.data[index] if op.arg_attrs is not None else None
    if isinstance(attributes, DictionaryAttr):
        name = attributes.data.get(NAME)
        if isinstance(name, StringAttr):
            return name.data
    return (argument.name_hint if argument is not None else None) or "argument"


def _has_fixed_name(op: FuncOp, index: int) -> bool:
    attributes = op.arg_attrs.data[index] if op.arg_attrs is not None else None
    return isinstance(attributes, DictionaryAttr) and FIXED_NAME in attributes.data


def _fallback_name(op: Operation) -> str:
    """Name of an unnamed value, after the op that computes it."""
    match op:
        case CallOpaqueOp():
            last = _LAST_NAME_PART.search(op.callee.data.strip())
            return snake_case(last[1] if last else "")
        case CallOp():
            return op.callee.root_reference.data
        case CmpOp():
            return COMPARISON_SYNTAX[ComparisonPredicate(op.predicate.value.data)].noun
        case _:
            syntax = OPERATOR_SYNTAX.get(type(op))
            return syntax.noun if syntax is not None else "value"


_RULES: Mapping[type[Operation], Callable[[_FilePrinter, Any], None]] = {
    IncludeOp: _FilePrinter.include,
    VerbatimOp: _FilePrinter.verbatim,
    DeclareFuncOp: _FilePrinter.declare_function,
    FuncOp: _FilePrinter.function,
    ClassOp: _FilePrinter.class_,
    FieldOp: _FilePrinter.field,
    GlobalOp: _FilePrinter.global_,
    VariableOp: _FilePrinter.variable,
    AssignOp: _FilePrinter.assign,
    ReturnOp: _FilePrinter.return_,
    YieldOp: _FilePrinter.yield_,
    IfOp: _FilePrinter.if_,
    ScopeOp: _FilePrinter.scope,
    ForOp: _FilePrinter.for_,
    DoOp: _FilePrinter.do,
    SwitchOp: _FilePrinter.switch,
}
"""Printing rules of statements; those of value ops are in `values`."""
