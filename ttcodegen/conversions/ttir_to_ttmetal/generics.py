"""Wraps the ops of each device program in a `ttir.generic`.

    %sums = ttir.generic {grid = #ttcore.grid<8x8>, indexing_maps = [...], iterator_types = [...]}
        ins(%x, %bias : ...) outs(%0 : ...) {
    ^bb0(%x: tensor<64x96xbf16>, %bias: tensor<96xbf16>, %out: tensor<64x96xbf16>):
      ...
      ttir.yield %sum : tensor<64x96xbf16>
    } : tensor<64x96xbf16>

The region computes with whole tensors; splats are constants in it. Between generics there are only
constants, calls of CPU functions, and reshapes that leave all elements in their tiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    ModuleOp,
    i32,
    i64,
)
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ttcodegen.conversions.ttir_to_ttmetal.cpu_hoist import check_coverage
from ttcodegen.conversions.ttir_to_ttmetal.generic_regions import (
    Loops,
    NoProgram,
    complete,
    loops_of,
)
from ttcodegen.conversions.ttir_to_ttmetal.grouping.grouping import (
    DIVIDE,
    Group,
    Kind,
    form_groups,
    is_fill,
    is_free_reshape,
)
from ttcodegen.conversions.ttir_to_ttmetal.grouping.index_maps import REORDERINGS
from ttcodegen.conversions.ttir_to_ttmetal.grouping.tile_operations import (
    REDUCTIONS,
    is_elementwise,
)
from ttcodegen.dialects.core.datatypes import shape_of
from ttcodegen.dialects.operations.functions import GENERIC, body_of, is_generic_function
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.dialect import system_of
from ttcodegen.dialects.ttcore.layouts import Grid, GridAttr, Shape
from ttcodegen.dialects.ttcore.shards import CoreRange
from ttcodegen.dialects.ttir.generic import GenericOp, YieldOp
from ttcodegen.foundation.diagnostics import CompileError, copy_source_offset
from ttcodegen.ops.core.builder import splat_of
from ttcodegen.systems.cards import default_system
from ttcodegen.systems.description import DEFAULT_ARCHITECTURE
from ttcodegen.transforms.functions import is_entry
from ttcodegen.transforms.rewriting import erase, functions
from ttcodegen.transforms.ttir.outline_generics import (
    STREAMED,
    outline_generics,
    region_fault,
    replace_generic,
    streamed_operands,
)


@dataclass(frozen=True)
class TTIRToTTIRGeneric(ModulePass):
    """Divides each entry function into generics; generics of the source are kept.

    Raises:
        CompileError: if ops have no program, which it lists, or if a generic of the source cannot
            be a program.
    """

    name = "ttir-to-ttir-generic"
    columns: int = 0
    """Columns of cores to use; 0 for all of the module's system."""
    rows: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        outline_generics(op)
        check_coverage(op)
        system = system_of(op) or default_system(DEFAULT_ARCHITECTURE)
        most = system.chip.grid
        rows, columns = self.rows or most[0], self.columns or most[1]
        if not (0 < rows <= most[0] and 0 < columns <= most[1]):
            raise CompileError(
                f"there is no grid of {rows}x{columns} cores",
                remedy=f"the chip has {most[0]}x{most[1]} of them",
            )
        grid = GridAttr(Grid((rows, columns)))
        regions = {f.sym_name.data: f for f in functions(op) if is_generic_function(f)}
        for function in functions(op):
            if is_entry(function):
                _Wrapping(ctx, function, grid, regions).run()
        for function in regions.values():
            erase(function)


def group_of(op: GenericOp, most: CoreRange) -> Group:
    """Moves the ops of a generic out of its region, and derives the program that they form.

    Args:
        op: a generic on whole tensors; it is replaced by the ops.
        most: the available cores.

    Raises:
        CompileError: at the generic, if it cannot be a program.
    """
    if (fault := region_fault(op)) is not None:
        raise CompileError.from_diagnostics([fault])
    cores = _cores_of(op.grid.data, Grid((most.rows, most.columns)), op)
    block = op.bodies[0].block
    shapes = [shape_of(value.type) for value in (*op.inputs, *op.outputs)]
    for old, new in zip(block.args, (*op.inputs, *op.destinations), strict=True):
        old.replace_all_uses_with(new)
    moved = list(block.ops)
    for inner in moved:
        inner.detach()
    end = moved.pop()
    assert isinstance(end, YieldOp)
    results = list(end.values)
    for old, new in zip(op.outputs, results, strict=True):
        new.name_hint = old.name_hint
    end.drop_all_references()
    given = op.iterator_types, op.indexing_maps
    inputs = list(op.inputs)
    operands = [*inputs, *(results or op.destinations)]
    streamed = frozenset(operands[place] for place in streamed_operands(op))
    replace_generic(op, moved, results)
    ops = [
        each
        for each in moved
        if isinstance(each, CatalogueOp)
        and (not is_fill(each) or any(result in results for result in each.results))
    ]
    group = Group(0, Kind.TILES, (), ops, cores=cores, streamed=streamed)
    _complete(group, op)
    _check_loops(op, loops_of(group, inputs, results), given, shapes)
    return group


def _complete(group: Group, place: Operation) -> None:
    """Completes the group of a generic of the source; raises CompileError at `place` on failure."""
    try:
        complete(group)
    except NoProgram as error:
        message = f"this ttir.generic is no program: {error}"
        raise CompileError(message, place, remedy=DIVIDE) from None


def _cores_of(grid: Grid, most: Grid, place: Operation) -> CoreRange:
    """Cores of a generic; raises CompileError at `place` if the chip has no such grid."""
    rows, columns = grid.shape if len(grid.shape) == 2 else (0, 0)
    if not (0 < rows <= most.shape[0] and 0 < columns <= most.shape[1]):
        raise CompileError(
            f"this ttir.generic is no program: its grid is {grid}, that of the chip {most}", place
        )
    return CoreRange(0, 0, columns - 1, rows - 1)


def _check_loops(
    op: Operation,
    loops: Loops,
    given: tuple[ArrayAttr[Attribute], ArrayAttr[Attribute]],
    shapes: Sequence[Sequence[int]],
    given_shapes: Sequence[Sequence[int]] | None = None,
) -> None:
    if given[1].data and not loops.agrees_with(*given, shapes, given_shapes or shapes):
        expected = ", ".join(str(map_) for map_ in loops.indexing_maps.data)
        types = ", ".join(type_.value for type_ in loops.types)
        raise CompileError(
            "the loops that this ttir.generic declares do not match its region: "
            + (f"which has [{expected}] over [{types}]" if loops.maps else "which moves elements"),
            op,
            remedy="leave indexing_maps and iterator_types empty, or describe the computation",
        )


@dataclass
class _Wrapping:
    """Divides a function into generics."""

    context: Context
    function: FuncOp
    grid: GridAttr
    regions: dict[str, FuncOp]
    """Functions that the generics of the source were outlined to."""
    _mapping: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    _ops: list[Operation] = field(default_factory=list[Operation])
    _yielded: dict[CallOp, list[SSAValue]] = field(default_factory=dict[CallOp, list[SSAValue]])
    """Results of the ops that replaced a call, before a reshape."""
    _given_shapes: dict[SSAValue, Shape] = field(default_factory=dict[SSAValue, Shape])
    """Shape that a result has in a generic of the source, if its program changes it."""

    def run(self) -> None:
        """Replaces the ops of the function."""
        block = body_of(self.function)
        generics = self._expand(block)
        for argument in block.args:
            self._mapping[argument] = argument
        for op in block.ops:
            if is_fill(op) and splat_of(op.results[0]) is None:
                self._copy(op)
        for group in form_groups(self.function, block, generics):
            if group.call is not None:
                self._copy(group.call)
            elif not group.is_dead:
                self._wrap(group)
        end = block.last_op
        assert isinstance(end, ReturnOp)
        self._copy(end)
        for op in reversed(list(block.ops)):
            op.detach()
            op.drop_all_references()
        block.add_ops(self._ops)

    def _expand(self, block: Block) -> dict[Operation, CallOp]:
        """Inlines the generics of the source; returns the call of each inlined op."""
        found: dict[Operation, CallOp] = {}
        for call in [op for op in block.ops if isinstance(op, CallOp) and GENERIC in op.attributes]:
            inner = body_of(self.regions[call.callee.string_value()])
            values: dict[SSAValue, SSAValue] = dict(zip(inner.args, call.operands, strict=True))
            for op in inner.ops:
                if isinstance(op, ReturnOp):
                    given = [values.get(value, value) for value in op.operands]
                    self._yielded[call] = [self._before_reshape(value, found) for value in given]
                    for old, new in zip(call.results, given, strict=True):
                        old.replace_all_uses_with(new)
                    continue
                copy = op.clone(values)
                copy_source_offset(op, copy)
                block.insert_op_before(copy, call)
                permutes = any(operand in inner.args for operand in op.operands)
                if not (permutes and _is_transposed(op.results[0])):
                    found[copy] = call
            call.detach()
        return found

    def _before_reshape(self, value: SSAValue, generics: dict[Operation, CallOp]) -> SSAValue:
        """Returns the operand of a final reshape that only drops dimensions of size 1.

        The reshaped result may have other tiles, so the reshape becomes a program of its own."""
        op = value.owner
        if not isinstance(op, CatalogueOp) or op.name != "ttir.reshape" or value.first_use:
            return value
        before, call = op.operands[0], generics.get(op)
        made = before.owner
        if call is None or not isinstance(made, CatalogueOp) or generics.get(made) is not call:
            return value
        longer, shorter = (
            [size for size in shape_of(each.type) if size != 1] for each in (before, value)
        )
        if longer != shorter or not (made.name in REDUCTIONS or is_elementwise(made)):
            return value
        del generics[op]
        self._given_shapes[before] = shape_of(value.type)
        return before

    def _copy(self, op: Operation) -> None:
        operands = [self._value(value) for value in op.operands]
        made = op.clone(dict(zip(op.operands, operands, strict=True)))
        for old, new in zip(op.results, made.results, strict=True):
            self._mapping[old] = new
        self._add(made, op)

    def _value(self, value: SSAValue) -> SSAValue:
        """Returns the replacement of a value, created on demand for a free reshape."""
        chain: list[SSAValue] = []
        while value not in self._mapping:
            op = value.owner
            assert isinstance(op, CatalogueOp)
            assert is_free_reshape(op), op.name
            chain.append(value)
            value = op.operands[0]
        for view in reversed(chain):
            assert isinstance(view.owner, Operation)
            self._copy(view.owner)
        return self._mapping[chain[0] if chain else value]

    def _wrap(self, group: Group) -> None:
        origin = group.generic
        attributes: DictionaryAttr | None = None
        if origin is not None:
            attributes = self._attributes_of(origin)
            _complete(group, origin)
        overwritten = group.overwritten
        inputs = [value for value in group.inputs() if value is not overwritten]
        if origin is not None:
            # Inputs keep the order of the source, to which its maps refer.
            places = {value: place for place, value in enumerate(origin.operands)}
            inputs.sort(key=lambda value: places.get(value, len(places)))
        outputs = group.outputs()
        loops = loops_of(group, inputs, outputs)
        place = origin or group.root or group.ops[-1]
        grid = self.grid
        if attributes is not None:
            grid = attributes.data["grid"]
            assert isinstance(grid, GridAttr)
            _cores_of(grid.data, self.grid.data, place)
            self._check_attributes(place, attributes, loops, inputs, outputs)
        written = outputs if overwritten is None else [overwritten]
        destinations = [
            self._value(value) if value is overwritten else self._empty(value, place)
            for value in written
        ]
        properties: dict[str, Attribute] = {
            "grid": grid,
            "indexing_maps": loops.indexing_maps,
            "iterator_types": loops.iterator_types,
            "operandSegmentSizes": DenseArrayBase.from_list(i32, [len(inputs), len(written)]),
        }
        if origin is not None and attributes is not None:
            operands = [*origin.operands, *self._yielded[origin]]
            properties |= _buffer_mapping(attributes, operands, [*inputs, *written])
        made = GenericOp.create(
            operands=[*(self._value(value) for value in inputs), *destinations],
            result_types=[value.type for value in outputs],
            properties=properties,
            regions=[self._region(group, inputs, written)],
        )
        for value, result in zip(outputs, made.results, strict=True):
            result.name_hint = value.name_hint
            self._mapping[value] = result
        self._add(made, place)

    def _attributes_of(self, call: CallOp) -> DictionaryAttr:
        attributes = self.regions[call.callee.string_value()].attributes[GENERIC]
        assert isinstance(attributes, DictionaryAttr)
        return attributes

    def _check_attributes(
        self,
        place: Operation,
        attributes: DictionaryAttr,
        loops: Loops,
        inputs: Sequence[SSAValue],
        outputs: Sequence[SSAValue],
    ) -> None:
        """Checks the declared maps against the region.

        Skipped if passes changed the operands, or transposed one of a matmul."""
        maps, types = attributes.data["indexing_maps"], attributes.data["iterator_types"]
        assert isinstance(maps, ArrayAttr)
        assert isinstance(types, ArrayAttr)
        declared_loops = cast("ArrayAttr[Attribute]", types), cast("ArrayAttr[Attribute]", maps)
        values = (*inputs, *outputs)
        shapes = [shape_of(value.type) for value in values]
        given_shapes = [self._given_shapes.get(value, shape_of(value.type)) for value in values]
        transposed = any(_is_transposed(value) for value in inputs)
        if len(declared_loops[1].data) == len(shapes) and not transposed:
            _check_loops(place, loops, declared_loops, shapes, given_shapes)

    def _empty(self, value: SSAValue, place: Operation) -> SSAValue:
        made = self.context.get_op("ttir.empty").create(result_types=[value.type])
        self._add(made, place)
        return made.results[0]

    def _region(
        self, group: Group, inputs: Sequence[SSAValue], written: Sequence[SSAValue]
    ) -> Region:
        """Region with the ops of a group, on arguments for its inputs and outputs."""
        body = Block(arg_types=[value.type for value in (*inputs, *written)])
        read = inputs if group.overwritten is None else [*inputs, *written]
        known: dict[SSAValue, SSAValue] = dict(zip(read, body.args, strict=False))
        for value, argument in zip(read, body.args, strict=False):
            argument.name_hint = value.name_hint
        for op in group.ops:
            for operand in op.operands:
                if operand not in known:
                    number = operand.owner
                    assert isinstance(number, Operation)
                    self._clone(number, known, body)
            self._clone(op, known, body)
        given = group.outputs()
        body.add_op(YieldOp.create(operands=[known[value] for value in given]))
        return Region(body)

    @staticmethod
    def _clone(op: Operation, known: dict[SSAValue, SSAValue], body: Block) -> None:
        made = op.clone(known)
        copy_source_offset(op, made)
        body.add_op(made)

    def _add(self, op: Operation, origin: Operation) -> None:
        copy_source_offset(origin, op)
        self._ops.append(op)


def _buffer_mapping(
    attributes: DictionaryAttr, given: Sequence[SSAValue], operands: Sequence[SSAValue]
) -> dict[str, Attribute]:
    """Property that marks streamed operands, if a generic of the source does.

    Streamed operands have numbers of circular buffers, others -1.

    Args:
        attributes: attributes of the generic of the source.
        given: operands of the generic of the source.
        operands: operands of the new generic.
    """
    places = attributes.data[STREAMED]
    streamed = {given[int(place)] for place in cast("Any", places).iter_values()}
    if not streamed:
        return {}
    numbers = count()
    mapping = [next(numbers) if value in streamed else -1 for value in operands]
    return {"operand_cb_mapping": DenseArrayBase.from_list(i64, mapping)}


def _is_transposed(value: SSAValue) -> bool:
    """Returns whether a value is a permuted or reshaped tensor that only matmuls read.

    If the matrix engine cannot transpose it, the op is a program before the matmul's."""
    op = value.owner
    return (
        isinstance(op, CatalogueOp)
        and op.name in REORDERINGS
        and all(use.operation.name == "ttir.matmul" for use in value.uses)
    )
