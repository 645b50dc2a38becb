"""Calls that overrides give in place of others: built, and checked to mean the same."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, NameLoc, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import (
    DataType,
    element_of,
    normalized_data_type,
    shape_of,
    tensor_type,
)
from ttcodegen.dialects.operations.operation import REQUIRED, CatalogueOp
from ttcodegen.dialects.ttnn.placement import given_placement, placed_type
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.foundation.messages import closest
from ttcodegen.naming.sources import location_name
from ttcodegen.ops.core.builder import broadcast_shapes, builder_before
from ttcodegen.ops.core.definition import ResultRule, TTNNDefinition
from ttcodegen.ops.core.traits import Trait
from ttcodegen.ops.dialects import ttnn_op_classes
from ttcodegen.optimizer.overrides.meanings import (
    TRANSPOSED,
    KnownCall,
    is_norm,
    known_definition,
    same_meaning,
    swapped,
)
from ttcodegen.optimizer.overrides.overrides import (
    CallNames,
    Entry,
    FunctionOverrides,
    Overrides,
    check_names,
    keep_names,
    read_overrides,
)
from ttcodegen.optimizer.overrides.refusals import Refusals
from ttcodegen.transforms.rewriting import InPlaceWrites, body_of, erase_dead

_OPERAND = re.compile(r"(.+):(\d{1,9})")
_Operand = SSAValue | str | None
"""Value of the function, name of a call, or None for an absent operand."""
_MOST_REPLACED = 64
"""Limit on the calls that one entry replaces."""


@dataclass(frozen=True)
class ReplaceCalls(ModulePass):
    """Replaces calls by those of the same meaning that overrides give."""

    name = "ttnn-replace-calls"

    overrides: str = ""
    """The text of a file of overrides."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not self.overrides:
            return
        given = read_overrides(self.overrides)
        functions = [each for each in op.walk() if isinstance(each, FuncOp) and each.body.blocks]
        self._replace(functions, given)
        for function in functions:
            keep_names(function, FunctionOverrides(given, CallNames(function)))

    def _replace(self, functions: Sequence[FuncOp], given: Overrides) -> None:
        replaced = {
            function: found
            for function, entries in given.items()
            if (found := {name: entry for name, entry in entries.items() if "calls" in entry})
        }
        if not replaced:
            return
        named = [CallNames(function) for function in functions]
        check_names(replaced, named)
        refused = Refusals()
        for function, names in zip(functions, named, strict=True):
            overrides = FunctionOverrides(replaced, names)
            entries = list(overrides.items())
            for call, entry in entries:
                with refused.collected(overrides.entries_of(call)):
                    _Replacement(function, names, call, entry).run()
            if entries:
                erase_dead(function)
                _keep_names(function, names)
        refused.raise_all()


def _keep_names(function: FuncOp, before: CallNames) -> None:
    """Names the calls that are left as before, where names are numbers of a kind of op."""
    after = CallNames(function)
    for op in body_of(function).ops:
        if op in before and op in after and before[op] != after[op]:
            _set_name(op, before[op])


def _set_name(op: Operation, name: str) -> None:
    if op.results[0].name_hint != name:
        op.results[0].name_hint = None
        op.location = NameLoc(StringAttr(name), op.location)


@dataclass
class _Replacement:
    """Calls in place of one call, and of those that only it reads."""

    function: FuncOp
    names: CallNames
    op: CatalogueOp
    entry: Entry

    def run(self) -> None:
        """Replaces the call.

        Raises:
            CompileError: if a value or op is unknown, or the calls do not mean the same.
        """
        calls: Sequence[Mapping[str, Any]] = self.entry["calls"]
        operands = [self._values(calls, number) for number in range(len(calls))]
        for call in calls:
            self._check_attributes(call)
        self._check_meaning(calls, operands)
        builder = builder_before(self.op, ttnn_op_classes())
        name = self.names[self.op]
        results: dict[str, SSAValue] = {}
        for number, call in enumerate(calls):
            given = [results[each] if isinstance(each, str) else each for each in operands[number]]
            values = [each for each in given if each is not None]
            is_last = number == len(calls) - 1
            definition = self._definition(call["op"])
            attributes = self._attributes(definition, call, values)
            result = self._type(definition, call["op"], values, attributes, is_last)
            try:
                made = builder.emit_op(definition.short_name, given, result, **attributes)
                made.verify_()
            except (VerifyException, TypeError, ValueError) as error:
                raise self._refused(f"'{call['op']}' cannot be called so: {error}") from error
            if is_last:
                made.results[0].name_hint = self.op.results[0].name_hint
                self._replace(made, name)
            else:
                made.results[0].name_hint = call["name"]
                results[call["name"]] = made.results[0]

    def _replace(self, made: CatalogueOp, name: str) -> None:
        self.op.results[0].replace_all_uses_with(made.results[0])
        kind = self.op.definition.short_name
        if name.partition("#")[0] == kind and location_name(self.op.location) != name:
            # Named after its kind, which is another one now.
            _set_name(made, name)
        block = self.op.parent
        assert block is not None
        block.erase_op(self.op)

    def _values(self, calls: Sequence[Mapping[str, Any]], number: int) -> list[_Operand]:
        """Operands of a call: values of the function, names of calls before it, or absent ones."""
        known = [call["name"] for call in calls[:number] if "name" in call]
        if number < len(calls) - 1 and "name" not in calls[number]:
            raise self._refused(f"call {number + 1} of {len(calls)} has no name that others read")
        return [
            each if each is None or each in known else self._value(each)
            for each in calls[number]["operands"]
        ]

    def _value(self, name: str) -> SSAValue:
        value = self._named(name)
        if value is None:
            there = [*self.names.known, *self._arguments()]
            close = closest(name, there)
            raise self._refused(
                f"nothing before it is called '{name}'",
                f"did you mean '{close}'?" if close else "NAME:0 is operand 0 of the call NAME",
            )
        owner = value.owner
        if isinstance(owner, Operation) and not owner.is_before_in_block(self.op):
            raise self._refused(f"'{name}' is made after it")
        return value

    def _named(self, name: str) -> SSAValue | None:
        op = self.names.named(name)
        if op is not None and op.parent is not None:
            return op.results[0]
        if name in (arguments := self._arguments()):
            return arguments[name]
        found = _OPERAND.fullmatch(name)
        op = None if found is None else self.names.named(found[1])
        if found is None or op is None or op.parent is None:
            return None
        index = int(found[2])
        return op.operands[index] if index < len(op.operands) else None

    def _arguments(self) -> dict[str, SSAValue]:
        arguments = body_of(self.function).args
        return {each.name_hint: each for each in arguments if each.name_hint is not None}

    def _definition(self, name: str) -> TTNNDefinition:
        definition = known_definition("permute" if name == "transpose" else name)
        if definition is None:
            import ttcodegen.ops as catalogue
            from ttcodegen.ops.core.definition import TTNN

            catalogue.load()
            known = [each for each in TTNN if known_definition(each) is not None]
            close = closest(name, known)
            raise self._refused(
                f"what '{name}' means is not known",
                f"did you mean '{close}'?"
                if close
                else "elementwise ops, products of matrices, permutations and norms of rows are",
            )
        return definition

    def _check_attributes(self, call: Mapping[str, Any]) -> None:
        names = [spec.name for spec in self._definition(call["op"]).attributes]
        if call["op"] == "transpose":
            names = [TRANSPOSED]
        for name in call.get("attributes", {}):
            if name not in names:
                close = closest(name, names)
                raise self._refused(
                    f"'{call['op']}' has no attribute '{name}'",
                    f"did you mean '{close}'?" if close else None,
                )

    def _attributes(
        self, definition: TTNNDefinition, call: Mapping[str, Any], values: Sequence[SSAValue]
    ) -> dict[str, Any]:
        given = dict(call.get("attributes", {}))
        if call["op"] == "transpose":
            dims = given.pop(TRANSPOSED, ())
            permutation = swapped(len(shape_of(values[0].type)), dims)
            if permutation is None:
                raise self._refused(f"its operand has no dimensions {list(dims)}")
            given["permutation"] = permutation
        for spec in definition.attributes:
            if spec.default is REQUIRED and spec.name not in given:
                raise self._refused(f"'{call['op']}' needs an attribute '{spec.name}'")
        return given

    def _type(
        self,
        definition: TTNNDefinition,
        name: str,
        values: Sequence[SSAValue],
        attributes: Mapping[str, Any],
        is_last: bool,
    ) -> Any:
        wanted = self.op.results[0].type
        shape = result_shape(definition, [shape_of(each.type) for each in values], attributes)
        if shape is None:
            shapes = " and ".join(str(shape_of(each.type)) for each in values)
            raise self._refused(f"'{name}' does not take operands of the shapes {shapes}")
        element = element_of(wanted)
        rule: ResultRule = definition.result_rule(0)
        if rule.data_type == "first":
            element = element_of(values[0].type)
        elif isinstance(rule.data_type, DataType) and not is_last:
            element = element_of(values[0].type)
        made: Any = tensor_type(element, shape)
        if is_last and (shape != shape_of(wanted) or element != element_of(wanted)):
            raise self._refused(f"'{name}' makes {made}, not {wanted}")
        if is_last:
            return wanted
        placed = given_placement(self.op.results[0])
        if placed is None:
            return made
        return placed_type(placed.with_(shape=shape, data_type=normalized_data_type(element)))

    def _check_meaning(
        self,
        calls: Sequence[Mapping[str, Any]],
        operands: Sequence[Sequence[_Operand]],
    ) -> None:
        """Raises CompileError unless the calls compute what they replace."""
        leaves = {each for group in operands for each in group if isinstance(each, SSAValue)}
        cone = self._cone(leaves)
        names: dict[SSAValue, str] = {}

        def name_of(value: _Operand) -> str | None:
            if value is None:
                return None
            if isinstance(value, str):
                return f"made {value}"
            return names.setdefault(value, f"value {len(names)}")

        before: list[KnownCall] = []
        for op in cone:
            known = known_definition(op.definition.short_name)
            if known is None or known is not op.definition:
                made = op.definition.short_name
                raise self._refused(f"what '{made}' means is not known")
            groups = [group[0] if group else None for group in op.operand_groups().values()]
            read = tuple(map(name_of, groups))
            result = names.setdefault(op.results[0], f"value {len(names)}")
            before.append(KnownCall(known, read, op.parameters(), result))
        after: list[KnownCall] = []
        for call, group in zip(calls, operands, strict=True):
            definition = self._definition(call["op"])
            most = len(definition.operands)
            if len(group) > most:
                raise self._refused(f"'{call['op']}' has {most} operands at most")
            absent = (None,) * (len(definition.operands) - len(group))
            read = (*map(name_of, group), *absent)
            result = f"made {call['name']}" if "name" in call else "made last"
            given = dict(call.get("attributes", {}))
            after.append(KnownCall(definition, read, given, result))
        if not same_meaning(before, after):
            made = ", ".join(call["op"] for call in calls)
            was = ", ".join(op.definition.short_name for op in cone)
            raise self._refused(
                f"{made} would not compute what {was} does", f"without the entry, {was} is called"
            )
        writes = InPlaceWrites(body_of(self.function))
        for op in cone:
            if op is not self.op and not writes.may_recompute(op, self.op):
                raise self._refused(f"what '{self.names[op]}' reads is overwritten before")

    def _cone(self, leaves: set[SSAValue]) -> list[CatalogueOp]:
        """Calls between the values that the new calls read and the result, in order."""
        found: dict[CatalogueOp, None] = {self.op: None}
        waiting = [self.op]
        while waiting and len(found) <= _MOST_REPLACED:
            for value in waiting.pop().operands:
                owner = value.owner
                if value in leaves or not isinstance(owner, CatalogueOp) or owner in found:
                    continue
                if known_definition(owner.definition.short_name) is owner.definition:
                    found[owner] = None
                    waiting.append(owner)
        block = body_of(self.function)
        return [op for op in block.ops if isinstance(op, CatalogueOp) and op in found]

    def _refused(self, reason: str, remedy: str | None = None) -> CompileError:
        made = self.op.definition.short_name
        return CompileError(
            f"'{self.names[self.op]}' ({made}) cannot be made by the calls that its override "
            f"gives: {reason}",
            self.op,
            remedy=remedy,
        )


def result_shape(
    definition: TTNNDefinition, shapes: Sequence[tuple[int, ...]], attributes: Mapping[str, Any]
) -> tuple[int, ...] | None:
    """Shape of the result of a call whose meaning is known; None if it takes no such operands."""
    if Trait.MATRIX_PRODUCT in definition.traits:
        return _shape_of_product(shapes, attributes)
    if is_norm(definition):
        return shapes[0]
    if "permutation" in attributes:
        permutation: list[int] = attributes["permutation"]
        (shape,) = shapes
        if sorted(permutation) != list(range(len(shape))):
            return None
        return tuple(shape[axis] for axis in permutation)
    return broadcast_shapes(shapes)


def _shape_of_product(
    shapes: Sequence[tuple[int, ...]], attributes: Mapping[str, Any]
) -> tuple[int, ...] | None:
    if len(shapes) < 2 or any(len(shape) < 2 for shape in shapes[:2]):
        return None
    (*outer, rows, left), (*others, right, columns) = shapes[:2]
    if attributes.get("transpose_a"):
        rows, left = left, rows
    if attributes.get("transpose_b"):
        right, columns = columns, right
    batch = broadcast_shapes([outer, others])
    return None if left != right or batch is None else (*batch, rows, columns)
