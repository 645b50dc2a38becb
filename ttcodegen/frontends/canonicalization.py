"""Canonical form of an input module, and of the regions of `ttir.generic`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects.builtin import (
    DenseArrayBase,
    MemRefType,
    ModuleOp,
    UnitAttr,
    UnregisteredOp,
    i32,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from ttcodegen.compat.ttmetal_programs import KERNEL, kernel_op
from ttcodegen.compat.ttnn_modules import check_counts
from ttcodegen.dialects.core.datatypes import element_of, shape_of, without_encoding
from ttcodegen.dialects.operations.operation import CatalogueOp, operation_name
from ttcodegen.dialects.ttcore.shards import LAYOUTS_WANTED
from ttcodegen.dialects.ttir.generic import GenericOp, YieldOp, elements_of
from ttcodegen.dialects.ttmetal.programs import RUN_PROGRAM
from ttcodegen.foundation.diagnostics import CompileError, Diagnostics, copy_source_offset
from ttcodegen.frontends.linalg.forms import INPUTS
from ttcodegen.frontends.translation import Translator, source_operation
from ttcodegen.ops.core.builder import splat_of
from ttcodegen.transforms.rewriting import erase, is_unused

# Canonical form of an input module: the spelling, mesh and device programs that passes rely on.
#
# Each step is a pass with a name. `canonicalize_input` runs those that a module needs, which its
# operations decide, before anything is verified or lowered.

Step = Callable[[ModuleOp, Diagnostics], None]


def _canonical_calls(module: ModuleOp, diagnostics: Diagnostics) -> None:
    from ttcodegen.frontends.ttnn import normalize_ttnn

    normalize_ttnn(module, diagnostics)


def _counted(module: ModuleOp, diagnostics: Diagnostics) -> None:
    for function in module.ops:
        if isinstance(function, FuncOp):
            check_counts(function)


def _implied_mesh(module: ModuleOp, diagnostics: Diagnostics) -> None:
    from ttcodegen.ops.collectives.mesh_sharding import imply_mesh

    imply_mesh(module)


def _lifted_programs(module: ModuleOp, diagnostics: Diagnostics) -> None:
    from ttcodegen.compat.ttmetal_programs import lift_programs

    lift_programs(module)


def _completed_programs(module: ModuleOp, diagnostics: Diagnostics) -> None:
    from ttcodegen.transforms.ttmetal.device_programs import complete_programs

    complete_programs(module)


def _lifted_regions(module: ModuleOp, diagnostics: Diagnostics) -> None:

    lift_regions(module)


def _outlined_generics(module: ModuleOp, diagnostics: Diagnostics) -> None:
    from ttcodegen.transforms.ttir.outline_generics import outline_generics

    outline_generics(module)


@dataclass(frozen=True)
class _Canonicalization:
    """Canonicalization step and the ops that require it: full names, or dialect prefixes with a
    dot."""

    step: Step
    ops: tuple[str, ...]
    """Empty for a step that runs on every module."""

    def applies(self, names: Collection[str]) -> bool:
        """Returns whether a module with ops of these names needs the step."""
        return not self.ops or any(
            name == op or (op.endswith(".") and name.startswith(op))
            for op in self.ops
            for name in names
        )


_LIFT_REGIONS = _Canonicalization(_lifted_regions, ("ttir.generic",))
_CALLS = _Canonicalization(_canonical_calls, ("ttnn.",))

CANONICALIZATIONS = (
    _CALLS,
    _Canonicalization(_counted, ("ttir.",)),
    _Canonicalization(_implied_mesh, ()),
    _Canonicalization(_lifted_programs, ("ttmetal.dispatch",)),
    _Canonicalization(_completed_programs, (RUN_PROGRAM,)),
    _LIFT_REGIONS,
    _Canonicalization(_outlined_generics, ("ttir.generic",)),
)
"""Canonicalizations, in the order in which they run."""


def names_of_ops(module: ModuleOp) -> set[str]:
    """Returns the full names of all ops of a module."""
    return {operation_name(op) for op in module.walk()}


def canonicalize_input(module: ModuleOp, diagnostics: Diagnostics) -> None:
    """Canonicalizes a module in place.

    Raises:
        CompileError: at an op without a canonical form, with the reason.
    """
    names = names_of_ops(module)
    for each in CANONICALIZATIONS:
        if each.applies(names):
            each.step(module, diagnostics)


def canonicalize_for_passes(module: ModuleOp, diagnostics: Diagnostics) -> None:
    """Canonicalizes a module for tools that run single passes.

    Canonical calls and device programs stay unchanged.

    Raises:
        CompileError: as `canonicalize_input`.
    """
    names = names_of_ops(module)
    if _CALLS.applies(names) and not has_canonical_calls(module):
        _canonical_calls(module, diagnostics)
        if not _CALLS.applies(names_of_ops(module)):
            # Without a TTNN call left, only the mark selects the passes that lower to calls.
            module.attributes[LAYOUTS_WANTED] = UnitAttr()
    if _LIFT_REGIONS.applies(names):
        _lifted_regions(module, diagnostics)


def has_canonical_calls(module: ModuleOp) -> bool:
    """Returns whether all TTNN calls of a module have the catalogue's form."""
    for op in module.walk():
        if isinstance(op, UnregisteredOp):
            if operation_name(op).startswith("ttnn."):
                return False
        elif op.name == "ttcore.load_cached":
            return False
        elif isinstance(op, CatalogueOp) and op.definition.dialect == "ttnn":
            if op.results and not op.properties.keys() <= _known_properties(type(op)):
                return False
            try:
                op.verify_()
            except VerifyException:
                return False
    return True


@cache
def _known_properties(op_type: type[CatalogueOp]) -> AbstractSet[str]:
    return {spec.name for spec in op_type.definition.attributes} | {"operandSegmentSizes"}


@dataclass(frozen=True)
class CanonicalCalls(ModulePass):
    """Rewrites TTNN calls printed by any tool to the catalogue's form.

    A call in a form that the library does not accept becomes the equivalent TTIR op. Raises
    CompileError at a call without an equivalent.
    """

    name = "ttnn-canonicalize-calls"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        names = names_of_ops(op)
        # Ops of TTIR among calls are those that stand for calls: it was done before.
        done = any(name.startswith("ttir.") for name in names)
        if _CALLS.applies(names) and not done:
            _canonical_calls(op, Diagnostics())


@dataclass(frozen=True)
class ImplyMesh(ModulePass):
    """Records on a module without a mesh the mesh that its collectives imply."""

    name = "ttcore-imply-mesh"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        _implied_mesh(op, Diagnostics())


@dataclass(frozen=True)
class CompletePrograms(ModulePass):
    """Completes hand-written device programs.

    Adds layouts to tensors without one and marks the functions that programs name as their
    reference semantics. Raises CompileError at an operand with a layout of another kind.
    """

    name = "ttmetal-complete-programs"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        _completed_programs(op, Diagnostics())


@dataclass(frozen=True)
class LiftGenericRegions(ModulePass):
    """Lifts regions of `ttir.generic` from elements or buffers to whole tensors.

    Raises CompileError at a computation without a tensor op.
    """

    name = "ttir-lift-generic-regions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        _lifted_regions(op, Diagnostics())


# Regions of `ttir.generic` that compute elements, as those of linalg.generic do, or that run
# kernels on buffers, as in 2024: they become regions of ops on whole tensors.


def lift_regions(module: ModuleOp) -> None:
    """Lifts regions of `ttir.generic` on elements or buffers; leaves other generics unchanged.

    Raises:
        CompileError: at a computation without a tensor op.
    """
    for op in [each for each in module.walk() if isinstance(each, GenericOp)]:
        block = _single_block(op)
        values = [*op.inputs, *op.destinations]
        if block is None or any(elements_of(value) is None for value in values):
            continue
        types = [argument.type for argument in block.args]
        if len(types) != len(values):
            continue
        if types == [element_of(value.type) for value in values]:
            _replace(op, block, _lift_elements(op, block))
        elif all(isinstance(type_, MemRefType) for type_ in types):
            _replace(op, block, _lift_buffers(op, block))


def _single_block(op: GenericOp) -> Block | None:
    """Returns the single block of a generic with one region inside a function, else None."""
    if not isinstance(op.parent_op(), FuncOp) or len(op.bodies) != 1 or not op.outputs:
        return None
    blocks = list(op.bodies[0].blocks)
    return blocks[0] if len(blocks) == 1 and blocks[0].last_op is not None else None


def _replace(op: GenericOp, old: Block, new: Block) -> None:
    """Replaces a block on elements or buffers with its lifted form, without unused ops."""
    for made in reversed(list(new.ops)):
        if is_unused(made):
            erase(made)
    if old.parent is op.bodies[0]:
        op.bodies[0].detach_block(old)
    op.bodies[0].add_block(new)


def _block_of_tensors(op: GenericOp, old: Block) -> Block:
    types = [without_encoding(value.type) for value in (*op.inputs, *op.destinations)]
    block = Block(arg_types=types)
    for argument, before in zip(block.args, old.args, strict=True):
        argument.name_hint = before.name_hint
    return block


def _yield(op: GenericOp, block: Block, results: Sequence[SSAValue]) -> Block:
    end = YieldOp.create(operands=list(results))
    copy_source_offset(op, end)
    block.add_op(end)
    return block


# Regions that compute elements


def _lift_elements(op: GenericOp, old: Block) -> Block:
    """Lifts a block on elements as a linalg.generic with the same indexing maps."""
    from ttcodegen.frontends.linalg.generics import generic  # with numpy

    block = _block_of_tensors(op, old)
    build = Translator(block.add_op)
    build.origin = op
    starts = [
        _initial_value(build, argument, destination)
        for argument, destination in zip(old.args[len(op.inputs) :], op.destinations, strict=True)
    ]
    attributes: dict[str, Attribute] = {
        "indexing_maps": op.indexing_maps,
        "iterator_types": op.iterator_types,
        INPUTS: DenseArrayBase.from_list(i32, [len(op.inputs), len(starts)]),
    }
    if not op.iterator_types.data:
        raise CompileError(
            "this ttir.generic computes elements, but does not say of which loops",
            op,
            remedy="give it indexing_maps and iterator_types",
        )
    source = source_operation("linalg.generic", None).create(
        operands=[*block.args[: len(op.inputs)], *starts],
        result_types=[without_encoding(result.type) for result in op.outputs],
        attributes=attributes,
    )
    region = op.bodies[0]
    region.detach_block(old)
    source.add_region(Region(old))
    try:
        results = generic(build, cast("Any", source))
    except CompileError as error:
        (found,) = error.diagnostics
        message = found.message.replace("linalg.generic", op.name)
        raise CompileError(message, op, remedy=found.remedy) from None
    return _yield(op, block, results)


def _initial_value(build: Translator, accumulated: SSAValue, destination: SSAValue) -> SSAValue:
    """Initial value of a result: the destination's fill value, or the neutral element."""
    number = splat_of(destination)
    owner = destination.owner
    if number is None and not (isinstance(owner, Operation) and owner.name == "ttir.empty"):
        raise CompileError(
            "a result starts from a tensor that is neither empty nor filled with a number",
            destination,
            remedy="add that tensor to the result",
        )
    if number is None:
        from ttcodegen.frontends.linalg.generics import neutral_element  # with numpy

        number = neutral_element([operation_name(use.operation) for use in accumulated.uses])
    return build.full(shape_of(destination.type), number, element_of(destination.type))


# Regions that run kernels on buffers


def _lift_buffers(op: GenericOp, old: Block) -> Block:
    """Lifts a block on buffers: a kernel's result becomes the value of its output buffer."""
    block = _block_of_tensors(op, old)
    build = Translator(block.add_op)
    held: dict[SSAValue, SSAValue] = dict(zip(old.args, block.args, strict=True))
    written = old.args[len(op.inputs) :]
    for inner in old.ops:
        build.origin = inner
        name = operation_name(inner)
        if name == KERNEL and len(inner.operands) > 1:
            *read, target = inner.operands
            values = [_held(value, held, inner) for value in read]
            made = build.emit(kernel_op(inner), values, _held(target, held, inner).type)
            held[target] = made
        elif not isinstance(inner, YieldOp):
            raise CompileError(
                f"a region on buffers runs kernels, not '{name}'",
                inner,
                remedy="use ttir.kernel, or ops of TTIR on tensors",
            )
    if any(held[buffer] in block.args for buffer in written):
        raise CompileError("a buffer of the region that is a result is not written", op)
    return _yield(op, block, [held[buffer] for buffer in written])


def _held(value: SSAValue, held: Mapping[SSAValue, SSAValue], place: Operation) -> SSAValue:
    if value not in held:
        raise CompileError("a kernel takes buffers of its region alone", place)
    return held[value]


class _ConversionWhenRead(ModulePass):
    """No-op pass: frontends convert modules of these dialects when they are read."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Leaves the module as it is."""


@dataclass(frozen=True)
class ConvertStableHLOToTTIR(_ConversionWhenRead):
    """StableHLO to TTIR."""

    name = "convert-stablehlo-to-ttir"


@dataclass(frozen=True)
class ConvertTosaToTTIR(_ConversionWhenRead):
    """TOSA to TTIR."""

    name = "convert-tosa-to-ttir"


@dataclass(frozen=True)
class ConvertLinalgToTTIR(_ConversionWhenRead):
    """linalg to TTIR."""

    name = "convert-linalg-to-ttir"
