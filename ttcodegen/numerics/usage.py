"""How a function uses its arguments: which operands of which ops their elements reach."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from ttcodegen.dialects.core.datatypes import element_of, is_boolean, normalized_data_type
from ttcodegen.dialects.operations.functions import callee_of
from ttcodegen.dialects.operations.operation import CatalogueOp, Required
from ttcodegen.ops.core.builder import splat_of
from ttcodegen.ops.core.definition import (
    TTIR,
    Definition,
    OperandSpec,
    TTIRDefinition,
    TTNNDefinition,
    traits_of,
)
from ttcodegen.ops.core.traits import Trait

_NEGLIGIBLE = 0.01


@dataclass(frozen=True)
class Use:
    """An operand of an op that elements of an argument reach unchanged, or but for an offset."""

    op: CatalogueOp
    spec: OperandSpec
    as_float: bool
    """True if the elements were integers and are floats here."""

    @property
    def name(self) -> str:
        """The op without its dialect."""
        return _short_name(self.op)

    @property
    def traits(self) -> Trait:
        """Those of the op, or of the op of TTIR that it implements."""
        return traits_of(_meant(self.op))


def _short_name(op: Operation) -> str:
    return op.name.partition(".")[2]


class Usage:
    """Follows values through the ops and calls of a module."""

    def __init__(self, module: ModuleOp) -> None:
        self._functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}

    def moved(self, value: SSAValue) -> list[Use]:
        """The uses of `value` and of what is only moved elements of it, or those plus a small
        constant (the epsilon of a variance)."""
        return list(self._walk(value, _moves))

    def as_index(self, value: SSAValue) -> list[Use]:
        """The uses of `value` as an index, also of indices that are computed from it."""
        uses = self._walk(value, lambda use: _moves(use) or _shifts_index(use))
        return [use for use in uses if use.spec.input_kind == "index"]

    def _walk(self, value: SSAValue, follows: Callable[[Use], bool]) -> Iterator[Use]:
        was_float = _is_float(value)
        seen = {value}
        pending = [value]
        while pending:
            current = pending.pop()
            as_float = not was_float and _is_float(current)
            for use in current.uses:
                reached: list[SSAValue] = []
                op = use.operation
                if (callee := self._functions.get(callee_of(op) or "")) is not None:
                    if use.index < len(callee.args):
                        reached = [callee.args[use.index]]
                elif isinstance(op, CatalogueOp):
                    found = Use(op, _spec_of(op, use.index), as_float)
                    yield found
                    reached = list(op.results) if follows(found) else []
                for result in reached:
                    if result not in seen:
                        seen.add(result)
                        pending.append(result)


def _is_float(value: SSAValue) -> bool:
    data_type = normalized_data_type(element_of(value.type))
    return data_type is not None and data_type.is_float


def _spec_of(op: CatalogueOp, index: int) -> OperandSpec:
    """What the catalogue says of an operand; of a call of the library, what it says of
    the op of the source that the call implements."""
    for spec, size in zip(op.definition.operands, op.segments(), strict=True):
        if index < size:
            meant = _meant(op)
            return next((other for other in meant.operands if other.name == spec.name), spec)
        index -= size
    raise IndexError(f"{op.name} has no operand {index}")


def _meant(op: CatalogueOp) -> Definition:
    """The op of TTIR of that name; the op itself if there is none, or if that one is another op,
    which takes attributes that the call does not."""
    meant = TTIR.get(_short_name(op))
    if meant is None:
        return op.definition
    known = {spec.name for spec in op.definition.attributes}
    needed = {spec.name for spec in meant.attributes if spec.default is Required.REQUIRED}
    return meant if needed <= known else op.definition


def _moves(use: Use) -> bool:
    if _is_movement(use.op):
        return use.spec.name == use.op.definition.operands[0].name
    return use.name == "add" and any(map(_is_negligible, use.op.operands))


def _is_movement(op: CatalogueOp) -> bool:
    meant = _meant(op)
    if traits_of(op.definition) & Trait.PLACES:
        return True
    return isinstance(meant, TTIRDefinition) and meant.moves


def _is_negligible(value: SSAValue) -> bool:
    """True if all elements are one small number, however that was given its shape."""
    while isinstance(value.owner, CatalogueOp) and _is_movement(value.owner):
        value = value.owner.operands[0]
    splat = splat_of(value)
    return splat is not None and abs(splat) <= _NEGLIGIBLE


def comes_from_argument(value: SSAValue) -> bool:
    """True if elements of an argument are moved to be those of `value`."""
    while isinstance(value.owner, CatalogueOp) and _is_movement(value.owner):
        value = value.owner.operands[0]
    return isinstance(value, BlockArgument)


def weights_of(op: CatalogueOp) -> list[SSAValue]:
    """The operands that are weights of the op."""
    weights = {spec.name for spec in _meant(op).operands if spec.input_kind == "weight"}
    return [v for name, group in op.operand_groups().items() if name in weights for v in group]


def _shifts_index(use: Use) -> bool:
    return Trait.INDEX_ARITHMETIC in use.traits and use.spec.name != "condition"


def depends_on_floats(module: ModuleOp, function: FuncOp) -> list[bool]:
    """For each result of a function, whether any float took part in computing it."""
    return _reaching(module, function, lambda v: _is_float(v) and not _is_boolean(v))


def depends_on_draws(module: ModuleOp, function: FuncOp, *, in_programs: bool) -> list[bool]:
    """For each result of a function, whether random numbers took part in computing it that are
    others in each run: not those of device programs (`in_programs`), nor of the functions for the
    CPU that they do without."""

    def is_drawn(value: SSAValue) -> bool:
        owner = value.owner
        if not isinstance(owner, CatalogueOp):
            return False
        meant = _meant(owner)
        if in_programs and isinstance(meant, TTIRDefinition) and meant.tile is not None:
            return False
        return isinstance(meant, TTIRDefinition | TTNNDefinition) and meant.draws

    return _reaching(module, function, is_drawn)


def _reaching(module: ModuleOp, function: FuncOp, wanted: Callable[[SSAValue], bool]) -> list[bool]:
    """For each result of a function, whether it is computed from a value of that kind."""
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}
    block = function.body.blocks.first
    terminator = block.last_op if block is not None else None
    assert terminator is not None
    return [_reaches(value, functions, wanted) for value in terminator.operands]


def _reaches(
    value: SSAValue, functions: dict[str, FuncOp], wanted: Callable[[SSAValue], bool]
) -> bool:
    seen: set[SSAValue] = set()
    pending = [value]
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        if wanted(current):
            return True
        owner = current.owner
        if isinstance(owner, Operation):
            pending.extend(owner.operands)
            callee = functions.get(callee_of(owner) or "")
            block = callee.body.blocks.first if callee is not None else None
            if block is not None and block.last_op is not None:
                pending.extend(block.last_op.operands)
    return False


def _is_boolean(value: SSAValue) -> bool:
    return is_boolean(element_of(value.type))
