"""Faster equivalents of hot xDSL methods, together a fifth of the compile time of a large module.

xDSL is pinned to one release (pyproject.toml), and `REPLACED` lists the replaced methods: a test
compares their sources with those that the replacements were written for.
"""

# The replacements access private members of xDSL classes.
# pyright: reportPrivateUsage=false, reportIncompatibleMethodOverride=false

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr, TensorType
from xdsl.ir import (
    Attribute,
    Block,
    Data,
    Operation,
    OpResult,
    ParametrizedAttribute,
    Region,
    SSAValue,
    Use,
)
from xdsl.ir.core import BlockOps, SSAValues, _IRNode
from xdsl.irdl import AnyAttr, BaseAttr, ParamAttrDef

_walk_in_any_order = Operation.walk
_walk_block_in_any_order = Block.walk
_walk_region_in_any_order = Region.walk


def _operations(block: Block) -> Iterator[Operation]:
    op = block._first_op
    while op is not None:
        # Read before the op is yielded: the caller may erase it.
        following = op._next_op
        yield op
        op = following


def _iterate(self: BlockOps) -> Iterator[Operation]:
    return _operations(self.block)


def _blocks_inside(op: Operation) -> Iterator[Block]:
    for region in op.regions:
        yield from region.blocks


def _walk_blocks(blocks: Iterable[Block]) -> Iterator[Operation]:
    """Walks nested ops in one generator, instead of three per op."""
    pending: list[Block | Operation] = [*blocks]
    pending.reverse()
    while pending:
        place = pending.pop()
        op = place._first_op if isinstance(place, Block) else place
        while op is not None:
            following = op._next_op
            yield op
            if op.regions:
                if following is not None:
                    pending.append(following)
                pending += reversed([*_blocks_inside(op)])
                break
            op = following


def _walk_inside(op: Operation) -> Iterator[Operation]:
    yield op
    yield from _walk_blocks(_blocks_inside(op))


def _walk(
    self: Operation, *, reverse: bool = False, region_first: bool = False
) -> Iterator[Operation]:
    if reverse or region_first:
        return iter(_walk_in_any_order(self, reverse=reverse, region_first=region_first))
    return _walk_inside(self) if self.regions else iter((self,))


def _walk_block(
    self: Block, *, reverse: bool = False, region_first: bool = False
) -> Iterator[Operation]:
    if reverse or region_first:
        return iter(_walk_block_in_any_order(self, reverse=reverse, region_first=region_first))
    return _walk_blocks([self])


def _walk_region(
    self: Region, *, reverse: bool = False, region_first: bool = False
) -> Iterator[Operation]:
    if reverse or region_first:
        return iter(_walk_region_in_any_order(self, reverse=reverse, region_first=region_first))
    return _walk_blocks(self.blocks)


def _initialize(
    self: Operation,
    *,
    operands: Sequence[SSAValue] = (),
    result_types: Sequence[Attribute] = (),
    properties: Mapping[str, Attribute] = {},
    attributes: Mapping[str, Attribute] = {},
    location: LocationAttr | None = None,
    successors: Sequence[Block] = (),
    regions: Sequence[Region] = (),
) -> None:
    # Class-level defaults, such as empty operands and successors, are not set again.
    if operands:
        _set_operands(self, operands)
    if result_types:
        self.results = SSAValues(
            [OpResult(type_, self, index) for index, type_ in enumerate(result_types)]
        )
    self.properties = dict(properties)
    self.attributes = dict(attributes)
    self.location = UNKNOWN_LOC if location is None else location
    if successors:
        self.successors = list(successors)
    for region in regions:
        self.add_region(region)
    self.__post_init__()


def _attach(self: Block, operation: Operation) -> None:
    if operation.parent:
        raise ValueError("Can't add to a block an operation already attached to a block.")
    # An op without regions contains nothing.
    if operation.regions and operation.is_ancestor(self):
        raise ValueError("Can't add an operation to a block contained in the operation.")
    operation.parent = self


_verify_all_parameters = ParamAttrDef.verify


def _verify_parameters(self: ParamAttrDef, attr: ParametrizedAttribute) -> None:
    """Verifies parameters without a constraint context where only their base classes matter."""
    for field, definition in self.parameters:
        constraint = definition.constr
        kind = type(constraint)
        if kind is AnyAttr:
            continue
        expected: Any = getattr(constraint, "attr", None)
        if kind is not BaseAttr or not isinstance(getattr(attr, field), expected):
            _verify_all_parameters(self, attr)
            return


_attribute_classes: set[Any] = set()
"""Classes known to derive from Data or ParametrizedAttribute."""


def _check(self: Attribute) -> None:
    self._verify()
    if type(self) not in _attribute_classes:
        if not issubclass(type(self), Data | ParametrizedAttribute):
            raise TypeError("Attributes should only be Data or ParametrizedAttribute")
        _attribute_classes.add(type(self))


def _initialize_use(self: Use, operation: Operation, index: int) -> None:
    # The neighbours default to None in the class.
    self._operation = operation
    self._index = index


def _initialize_result(self: OpResult, type_: Attribute, op: Operation, index: int) -> None:
    self._type = type_
    self.op = op
    self.index = index


def _drop_references(self: Operation) -> None:
    self.parent = None
    if self._operands:
        for operand, use in zip(self._operands, self._operand_uses, strict=True):
            operand.remove_use(use)
        self._operand_uses = ()
    if self._successors:
        for successor, use in zip(self._successors, self._successor_uses, strict=True):
            successor.remove_use(use)
        self._successor_uses = ()
        self._successors = ()
    for region in self.regions:
        region.drop_all_references()


_item = tuple[Any, ...].__getitem__


def _get_value(self: SSAValues, idx: int | slice) -> Any:
    found = _item(self, idx)
    return SSAValues(found) if type(idx) is slice else found


_hash_of_fields = TensorType.__hash__


def _hash_once(self: TensorType[Attribute]) -> int:
    """Caches the hash of a type: types are immutable and often used as keys."""
    found: int | None = getattr(self, "_hash", None)
    if found is None:
        found = _hash_of_fields(self)
        # Setting it through `__dict__` would slow down all attribute accesses of the object.
        object.__setattr__(self, "_hash", found)
    return found


class _Operands(SSAValues[SSAValue]):
    """Operands of an op as an immutable tuple, instead of a new view on each access.

    Operands are read far more often than they change.
    """

    op: Operation

    def __setitem__(self, idx: int, operand: SSAValue) -> None:
        op = self.op
        values = list(op._operands)
        use = op._operand_uses[idx]
        values[idx].remove_use(use)
        operand.add_use(use)
        values[idx] = operand
        op._operands = _operands_of(op, values)


def _operands_of(op: Operation, values: Sequence[SSAValue]) -> _Operands:
    operands = _Operands(values)
    operands.op = op
    return operands


def _property(of: object, attribute: str) -> property:
    """Returns the property with a getter that runs no Python code."""
    assert isinstance(of, property)
    return property(attrgetter(attribute), of.fset, of.fdel, of.__doc__)


def _set_operands(self: Operation, new: Sequence[SSAValue]) -> None:
    values = _operands_of(self, new)
    if self._operands:
        for value, use in zip(self._operands, self._operand_uses, strict=True):
            value.remove_use(use)
    uses: list[Use] = []
    for index, value in enumerate(values):
        use = Use(self, index)
        # Inlined `add_use`; a new use has no neighbours.
        following = value.first_use
        if following is not None:
            use._next_use = following
            following._prev_use = use
        value.first_use = use
        uses.append(use)
    self._operands = values
    self._operand_uses = tuple(uses)


REPLACED: Mapping[type, Mapping[str, Any]] = {
    Attribute: {"__post_init__": _check},
    Block: {
        "_attach_op": _attach,
        "first_op": _property(Block.first_op, "_first_op"),
        "last_op": _property(Block.last_op, "_last_op"),
        "walk": _walk_block,
    },
    BlockOps: {"__iter__": _iterate},
    Operation: {
        "__init__": _initialize,
        "drop_all_references": _drop_references,
        "next_op": _property(Operation.next_op, "_next_op"),
        "operands": property(attrgetter("_operands"), _set_operands),
        "prev_op": _property(Operation.prev_op, "_prev_op"),
        "walk": _walk,
    },
    ParamAttrDef: {"verify": _verify_parameters},
    OpResult: {"__init__": _initialize_result},
    Region: {"walk": _walk_region},
    # Identity semantics are Python's defaults.
    SSAValue: {
        "__hash__": object.__hash__,
        "__eq__": object.__eq__,
        "name_hint": _property(SSAValue.name_hint, "_name"),
        "type": _property(SSAValue.type, "_type"),
    },
    SSAValues: {"__getitem__": _get_value},
    TensorType: {"__hash__": _hash_once},
    Use: {
        "__init__": _initialize_use,
        "__hash__": object.__hash__,
        "__eq__": object.__eq__,
        "index": _property(Use.index, "_index"),
        "operation": _property(Use.operation, "_operation"),
    },
    _IRNode: {"__hash__": object.__hash__, "__eq__": object.__eq__},
}
"""Replacements of methods of xDSL's classes."""


class _Plain(ABCMeta):
    """Metaclass without registered virtual subclasses: instance checks only look at bases.

    The interpreter does that without calling Python code.
    """

    __instancecheck__ = type.__instancecheck__
    __subclasscheck__ = type.__subclasscheck__


def _make_plain(class_: type) -> None:
    if type(class_) is ABCMeta:
        class_.__class__ = _Plain
    for subclass in class_.__subclasses__():
        _make_plain(subclass)


def replace_methods() -> None:
    """Replaces the xDSL methods in this process."""
    for class_ in (Attribute, SSAValue, _IRNode):
        _make_plain(class_)
    for class_, methods in REPLACED.items():
        for name, method in methods.items():
            setattr(class_, name, method)
