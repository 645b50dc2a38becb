"""Canonical form of an input module: the spelling, mesh and device programs that passes rely on.

Each step is a pass with a name. `canonicalize_input` runs those that a module needs, which its
operations decide, before anything is verified or lowered.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnregisteredOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.operations.operation import CatalogueOp, operation_name
from ttcodegen.dialects.ttmetal.programs import RUN_PROGRAM
from ttcodegen.foundation.diagnostics import Diagnostics

Step = Callable[[ModuleOp, Diagnostics], None]


def _canonical_calls(module: ModuleOp, diagnostics: Diagnostics) -> None:
    from ttcodegen.frontends.ttnn import normalize_ttnn

    normalize_ttnn(module, diagnostics)


def _implied_mesh(module: ModuleOp, diagnostics: Diagnostics) -> None:
    from ttcodegen.ops.implied_mesh import imply_mesh

    imply_mesh(module)


def _lifted_programs(module: ModuleOp, diagnostics: Diagnostics) -> None:
    from ttcodegen.compat.ttmetal_programs import lift_programs

    lift_programs(module)


def _completed_programs(module: ModuleOp, diagnostics: Diagnostics) -> None:
    from ttcodegen.transforms.ttmetal.written_programs import complete_programs

    complete_programs(module)


def _lifted_regions(module: ModuleOp, diagnostics: Diagnostics) -> None:
    from ttcodegen.frontends.generic_regions import lift_regions

    lift_regions(module)


def _outlined_generics(module: ModuleOp, diagnostics: Diagnostics) -> None:
    from ttcodegen.transforms.ttir.outline_generics import outline_generics

    outline_generics(module)


@dataclass(frozen=True)
class _Canonicalization:
    """A step, and the ops that call for it: full names, or a dialect and a dot."""

    step: Step
    ops: tuple[str, ...]
    """None of them: every module."""

    def applies(self, names: Collection[str]) -> bool:
        """True if a module with ops of these names needs the step."""
        return not self.ops or any(
            name == op or (op.endswith(".") and name.startswith(op))
            for op in self.ops
            for name in names
        )


_LIFT_REGIONS = _Canonicalization(_lifted_regions, ("ttir.generic",))
_CALLS = _Canonicalization(_canonical_calls, ("ttnn.",))

CANONICALIZATIONS = (
    _CALLS,
    _Canonicalization(_implied_mesh, ()),
    _Canonicalization(_lifted_programs, ("ttmetal.dispatch",)),
    _Canonicalization(_completed_programs, (RUN_PROGRAM,)),
    _LIFT_REGIONS,
    _Canonicalization(_outlined_generics, ("ttir.generic",)),
)
"""In the order in which they run."""


def names_of_ops(module: ModuleOp) -> set[str]:
    """The full names of all ops of a module."""
    return {operation_name(op) for op in module.walk()}


def canonicalize_input(module: ModuleOp, diagnostics: Diagnostics) -> None:
    """Gives a module the canonical form.

    Raises:
        CompileError: at what no step can spell, with the reason.
    """
    names = names_of_ops(module)
    for each in CANONICALIZATIONS:
        if each.applies(names):
            each.step(module, diagnostics)


def canonicalize_for_passes(module: ModuleOp, diagnostics: Diagnostics) -> None:
    """Gives a module that passes are to run on one by one the spelling that they rely on: calls
    that are spelled as the catalogue has them stay as they are, as do device programs.

    Raises:
        CompileError: as `canonicalize_input`.
    """
    names = names_of_ops(module)
    if _CALLS.applies(names) and not has_canonical_calls(module):
        _canonical_calls(module, diagnostics)
    if _LIFT_REGIONS.applies(names):
        _lifted_regions(module, diagnostics)


def has_canonical_calls(module: ModuleOp) -> bool:
    """True if all calls of TTNN in a module are spelled as the catalogue has them."""
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
    """Spells calls of TTNN as the catalogue does, whichever tool printed them; a call in a form
    that the library does not take becomes the op of TTIR that it means. Raises CompileError at a
    call that has no such spelling."""

    name = "ttnn-canonicalize-calls"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        names = names_of_ops(op)
        # Ops of TTIR among calls are those that stand for calls: it was done before.
        done = any(name.startswith("ttir.") for name in names)
        if _CALLS.applies(names) and not done:
            _canonical_calls(op, Diagnostics())


@dataclass(frozen=True)
class ImplyMesh(ModulePass):
    """Makes a module that names no mesh say the one that its collectives need."""

    name = "ttcore-imply-mesh"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        _implied_mesh(op, Diagnostics())


@dataclass(frozen=True)
class CompletePrograms(ModulePass):
    """Completes hand-written device programs: places tensors without a layout, and marks the
    functions that programs name as their meanings. Raises CompileError at an operand with a layout
    of another kind."""

    name = "ttmetal-complete-programs"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        _completed_programs(op, Diagnostics())


@dataclass(frozen=True)
class LiftGenericRegions(ModulePass):
    """Turns regions of `ttir.generic` on elements or buffers into regions of ops on whole tensors.
    Raises CompileError at what a region computes that no op does."""

    name = "ttir-lift-generic-regions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        _lifted_regions(op, Diagnostics())
