"""Operations, values and regions.

The head of a generic operation, `%r = "dialect.op"(%a, %b)`, is parsed by a regular expression, and
its signature by another one if it is known; other forms take the general path. Every operation
keeps the offset of its name. Values that are undefined, defined twice, used before their definition
or with another type are reported at their use.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple, cast

from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType, ModuleOp, UnregisteredOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.parser.core import ForwardDeclaredValue
from xdsl.traits import IsolatedFromAbove
from xdsl.utils.lexer import Span
from xdsl.utils.mlir_lexer import MLIRTokenKind

from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.diagnostics import (
    CompileError,
    Diagnostic,
    Diagnostics,
    Note,
    Source,
    plural,
    set_source_offset,
)
from ttcodegen.parsing.attributes import Signature
from ttcodegen.parsing.elements import ConstantParser
from ttcodegen.parsing.emitc_forms import CUSTOM_FORMS
from ttcodegen.parsing.structure import refused, unsupported
from ttcodegen.parsing.tokens import SUFFIX_ID, current_operation_name

_USE = rf"%{SUFFIX_ID}(?:\s*#[0-9]++)?+"
_HEAD = re.compile(
    rf'(?:(%{SUFFIX_ID})(?:\s*:\s*([0-9]++))?+\s*=\s*)?+"([\w.$-]++)"\s*'
    rf"\(\s*((?:{_USE}(?:\s*,\s*{_USE})*+)?+)\s*\)"
)
_USES = re.compile(rf"%({SUFFIX_ID})(?:\s*#([0-9]++))?+")


class Use(NamedTuple):
    """An operand as written: the name without `%`, the number after `#`, the offset."""

    name: str
    number: int
    offset: int


class Binding(NamedTuple):
    """A result name as written, with the number of results it names."""

    name: str
    size: int
    offset: int


class OperationParser(ConstantParser):
    """Parser of operations."""

    def __init__(self, context: Context, source: Source, diagnostics: Diagnostics) -> None:
        super().__init__(context, source, diagnostics)
        self._op_types: list[type[Operation]] = []
        self._blocks_in_progress: list[Block] = []
        self._definition_offsets: dict[SSAValue, int] = {}
        self._forward_uses: dict[tuple[str, int], int] = {}

    def parse_top_level(self) -> list[Operation]:
        """Parses the whole text: operations, aliases and metadata."""
        operations: list[Operation] = []
        while True:
            match self._current_token.kind:
                case MLIRTokenKind.EOF:
                    break
                case MLIRTokenKind.HASH_IDENT | MLIRTokenKind.EXCLAMATION_IDENT:
                    self._parse_alias_def()
                case MLIRTokenKind.FILE_METADATA_BEGIN:
                    self._parse_file_metadata_dictionary()
                case _:
                    operation = self.parse_optional_operation()
                    if operation is None:
                        self.raise_error("expected an operation")
                    operations.append(operation)
        self._report_undefined_values()
        return operations

    @property
    def offset(self) -> int:
        """Returns the offset of the current token."""
        return self._current_token.start

    def knows(self, name: str, *, in_custom_form: bool) -> bool:
        """Returns whether an operation of that name is known, in custom form if requested."""
        if in_custom_form and name in CUSTOM_FORMS:
            return True
        op_type = self.ctx.get_optional_op(current_operation_name(name))
        if op_type is None or refused(name) is not None:
            return False
        return not issubclass(op_type, UnregisteredOp)

    # Operations

    def parse_operation(self) -> Operation:
        start = self._current_token.start
        head = _HEAD.match(self.source.text, start)
        if head is None:
            return self._parse_operation_in_general(start)
        bindings: list[Binding] = []
        if (name := head.group(1)) is not None:
            size = head.group(2)
            bindings.append(Binding(name[1:], 1 if size is None else int(size), start))
        first = head.start(4)
        uses = [
            Use(use.group(1), int(use.group(2) or 0), first + use.start())
            for use in _USES.finditer(head.group(4))
        ]
        signature = self.known_signature(head.end())
        if signature is None:
            self._resume_from(head.end())
            op = self._parse_generic(head.group(3), head.start(3) - 1, uses)
        else:
            op = self._with_signature(head.group(3), head.start(3) - 1, uses, signature)
        self._bind(op, bindings, start)
        return op

    def _parse_operation_in_general(self, start: int) -> Operation:
        bindings = [
            Binding(span.text[1:], size, span.start) for span, size in self._parse_op_result_list()
        ]
        token = self._current_token
        match token.kind:
            case MLIRTokenKind.BARE_IDENT:
                self._consume_token()
                op = self._parse_custom(token.text, token.start)
            case MLIRTokenKind.STRING_LIT:
                name = self.parse_str_literal()
                uses = [
                    Use(operand.operand_name, operand.index, operand.span.start)
                    for operand in self.parse_op_args_list()
                ]
                op = self._parse_generic(name, token.start, uses)
            case _:
                self.raise_error("expected an operation")
        self._bind(op, bindings, start)
        return op

    def _parse_generic(self, name: str, offset: int, uses: list[Use]) -> Operation:
        """Parses the rest of a generic operation after its operands."""
        op_type = self._op_type(name, offset)
        self._op_types.append(op_type)
        self._parser_state.dialect_stack.append(name.partition(".")[0])
        successors = self.parse_optional_successors() or ()
        properties = self.parse_optional_properties_dict()
        regions = self.parse_region_list()
        attributes = self.parse_optional_attr_dict()
        self.parse_punctuation(":", " before the type of the operation")
        token = self._current_token
        function_type = self.parse_function_type()
        location = self.parse_optional_location()
        self._parser_state.dialect_stack.pop()
        self._op_types.pop()
        self._check_types(name, uses, function_type, token.start)
        op = op_type.create(
            operands=self._operands(uses, function_type),
            result_types=function_type.outputs.data,
            properties=self._properties(properties, attributes, op_type),
            attributes=attributes,
            location=location,
            successors=successors,
            regions=regions,
        )
        set_source_offset(op, offset)
        return op

    def _with_signature(
        self, name: str, offset: int, uses: list[Use], signature: Signature
    ) -> Operation:
        """Creates an operation without regions and successors from a known signature."""
        op_type = self._op_type(name, offset)
        self._resume_from(signature.end)
        location = self.parse_optional_location()
        self._check_types(name, uses, signature.type, signature.type_offset)
        attributes = signature.attributes
        op = op_type.create(
            operands=self._operands(uses, signature.type),
            result_types=signature.type.outputs.data,
            properties=self._properties(signature.properties, attributes, op_type),
            attributes=attributes,
            location=location,
        )
        set_source_offset(op, offset)
        return op

    def _properties(
        self,
        properties: dict[str, Attribute],
        attributes: dict[str, Attribute],
        op_type: type[Operation],
    ) -> dict[str, Attribute]:
        if attributes or op_type is FuncOp or op_type is CallOp:
            return _with_inherent(properties, attributes, op_type)
        return properties

    def _check_types(self, name: str, uses: Sequence[Use], type_: FunctionType, at: int) -> None:
        count = len(type_.inputs.data)
        if count != len(uses):
            self.raise_error(
                f"'{name}' has {plural(len(uses), 'operand')}, but its type lists {count}", at
            )

    def _operands(self, uses: Sequence[Use], type_: FunctionType) -> list[SSAValue]:
        types = type_.inputs.data
        return [self._resolve(use, type_) for use, type_ in zip(uses, types, strict=True)]

    def _parse_custom(self, name: str, offset: int) -> Operation:
        """Parses an operation in custom form after its name."""
        custom = CUSTOM_FORMS.get(name)
        if custom is None:
            op_type = self._op_type(name, offset)
            if issubclass(op_type, UnregisteredOp) or refused(name) is not None:
                raise UnknownCustomForm(name, offset)
        else:
            op_type = self._op_type(custom.op_name, offset)
        self._op_types.append(op_type)
        self._parser_state.dialect_stack.append(op_type.dialect_name())
        op = op_type.parse(self) if custom is None else custom.parse(self, op_type)
        self._parser_state.dialect_stack.pop()
        self._op_types.pop()
        if (location := self.parse_optional_location()) is not None:
            op.location = location
        set_source_offset(op, offset)
        return op

    def _op_type(self, name: str, offset: int) -> type[Operation]:
        name = current_operation_name(name)
        op_type = self.ctx.get_optional_op(name, dialect_stack=self._parser_state.dialect_stack)
        if op_type is None:
            self.raise_error(f"unknown operation '{name}'", offset)
        return op_type

    # Values

    def _bind(self, op: Operation, bindings: Sequence[Binding], start: int) -> None:
        """Names the results of `op`."""
        results = op.results
        if not bindings:
            return
        bound = sum(binding.size for binding in bindings)
        if bound != len(results):
            self.raise_error(
                f"the operation has {plural(len(results), 'result')}, but {bound} named here", start
            )
        first = 0
        for name, size, offset in bindings:
            self._define(name, results[first : first + size], offset, op)
            first += size

    def _register_ssa_definition(
        self, name: str, values: Sequence[SSAValue], span: Span[str]
    ) -> None:
        self._define(name, values, span.start, None)

    def _define(
        self, name: str, values: Sequence[SSAValue], offset: int, op: Operation | None
    ) -> None:
        """Binds `%name` to `values`, and resolves forward uses."""
        if (earlier := self.ssa_values.get(name)) is not None:
            first = self._definition_offsets.get(earlier[0]) if earlier else None
            notes = [] if first is None else [Note("first defined here", first)]
            raise CompileError(f"value %{name} is defined twice", offset, notes=notes)
        self.ssa_values[name] = tuple(values)
        for value in values:
            self._definition_offsets[value] = offset
            if op is None:
                set_source_offset(value, offset)
        if name in self.forward_ssa_references:
            self._settle_forward_uses(name, values, offset, op)
        # Fast path: numbers are no name hints.
        if not name[0].isdigit() and SSAValue.is_valid_name(name):
            for value in values:
                value.name_hint = name

    def _settle_forward_uses(
        self, name: str, values: Sequence[SSAValue], offset: int, op: Operation | None
    ) -> None:
        for index, placeholder in self.forward_ssa_references.pop(name).items():
            use_offset = self._forward_uses.pop((name, index))
            spelled = f"%{name}" if len(values) == 1 and index == 0 else f"%{name}#{index}"
            note = Note("defined here", offset)
            if index >= len(values):
                message = f"{spelled} does not exist: %{name} names {plural(len(values), 'value')}"
                raise CompileError(message, use_offset, notes=[note])
            value = values[index]
            if placeholder.type != value.type:
                raise CompileError(
                    f"{spelled} is used with type {placeholder.type}, but its type is {value.type}",
                    use_offset,
                    notes=[note],
                )
            if self._in_order() and any(
                self._precedes(use.operation, op) for use in placeholder.uses
            ):
                raise CompileError(
                    f"{spelled} is used before it is defined", use_offset, notes=[note]
                )
            placeholder.replace_all_uses_with(value)

    def _in_order(self) -> bool:
        """Returns whether operations of the current block execute in order.

        Those of a module do not, and regions of unknown operations may be graph regions.
        """
        return bool(self._op_types) and not issubclass(
            self._op_types[-1], ModuleOp | UnregisteredOp
        )

    def _precedes(self, user: Operation, definition: Operation | None) -> bool:
        """Returns whether `user`, or an operation around it, precedes `definition` in its block."""
        block = self._blocks_in_progress[-1] if self._blocks_in_progress else None
        ancestor: Operation | None = user
        while ancestor is not None:
            if ancestor is definition or (block is not None and ancestor.parent is block):
                return True
            ancestor = ancestor.parent_op()
        return False

    def resolve_operand(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, operand: UnresolvedOperand, type: Attribute
    ) -> SSAValue:
        return self._resolve(Use(operand.operand_name, operand.index, operand.span.start), type)

    def _resolve(self, use: Use, type: Attribute) -> SSAValue:
        """Returns the value of a use, or a placeholder for a forward use."""
        name, index, offset = use
        values = self.ssa_values.get(name)
        if values is None:
            placeholders = self.forward_ssa_references.setdefault(name, {})
            value = placeholders.get(index)
            if value is None:
                value = placeholders[index] = ForwardDeclaredValue(type)
                self._forward_uses[name, index] = offset
        elif index < len(values):
            value = values[index]
        else:
            self.raise_error(
                f"%{name}#{index} does not exist: %{name} names {plural(len(values), 'value')}",
                offset,
            )
        # Types are memoized, so that equal ones are mostly identical.
        if value.type is not type and value.type != type:
            spelled = f"%{name}" if values is None or len(values) == 1 else f"%{name}#{index}"
            defined = self._definition_offsets.get(value, self._forward_uses.get((name, index)))
            what = "first used here" if values is None else "defined here"
            notes = [] if defined is None else [Note(what, defined)]
            raise CompileError(
                f"{spelled} is used with type {type}, but its type is {value.type}",
                offset,
                notes=notes,
            )
        return value

    def _report_undefined_values(self) -> None:
        """Raises CompileError with all undefined values of the scope, at their first uses."""
        undefined = sorted(
            (self._forward_uses[name, index], name)
            for name, placeholders in self.forward_ssa_references.items()
            for index in placeholders
        )
        if undefined:
            raise CompileError.from_diagnostics(
                [Diagnostic(f"value %{name} is not defined", offset) for offset, name in undefined]
            )

    # Regions

    def parse_optional_region(
        self, arguments: Iterable[Parser.Argument] | None = None
    ) -> Region | None:
        if self._current_token.kind is not MLIRTokenKind.L_BRACE:
            return None
        isolated = bool(self._op_types) and self._op_types[-1].has_trait(
            IsolatedFromAbove, value_if_unregistered=False
        )
        if not isolated:
            return super().parse_optional_region(arguments)
        outer = self.ssa_values, self.forward_ssa_references, self._forward_uses
        self.ssa_values, self.forward_ssa_references, self._forward_uses = {}, {}, {}
        region = super().parse_optional_region(arguments)
        self._report_undefined_values()
        self.ssa_values, self.forward_ssa_references, self._forward_uses = outer
        return region

    def _parse_block_body(self, block: Block) -> None:
        self._blocks_in_progress.append(block)
        super()._parse_block_body(block)
        self._blocks_in_progress.pop()

    def _parse_block(self) -> Block:
        if self._current_token.kind is MLIRTokenKind.EOF:
            self.raise_error("expected '}' at the end of a region: the end of file comes first")
        if self._current_token.kind is not MLIRTokenKind.CARET_IDENT:
            self.raise_error("expected an operation or '}'")
        return super()._parse_block()


def _with_inherent(
    properties: dict[str, Attribute], attributes: dict[str, Attribute], op_type: type[Operation]
) -> dict[str, Attribute]:
    """Returns the properties, with inherent attributes that older texts have in `attributes`."""
    if issubclass(op_type, CatalogueOp):
        names = {spec.name for spec in op_type.definition.attributes}
    elif issubclass(op_type, IRDLOperation):
        names = set(op_type.get_irdl_definition().properties)
        if issubclass(op_type, FuncOp | CallOp):
            # Properties of other versions, such as no_inline, are kept as attributes.
            for name in [name for name in properties if name not in names]:
                attributes[name] = properties.pop(name)
    elif isinstance(known := getattr(op_type, "property_names", None), frozenset):
        names = set(cast("frozenset[str]", known))
    else:
        return properties
    names.add("operandSegmentSizes")
    for name in [name for name in attributes if name in names and name not in properties]:
        properties[name] = attributes.pop(name)
    return properties


class UnknownCustomForm(CompileError):
    """An unknown operation in custom form, after which parsing cannot continue."""

    def __init__(self, name: str, offset: int) -> None:
        super().__init__(
            unsupported(name),
            offset,
            remedy="operations of other dialects can be read in generic form only",
        )
        self.op_name = name
        self.offset = offset
