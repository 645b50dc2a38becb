"""StableHLO, as jax, torch_xla, torch-mlir and tt-xla write it: text or portable bytecode.

- `bits`: Operations on the bits of elements
- `bodies`: Recognition of the bodies of reductions, sorts and scatters
- `collectives`: Manual computations on a mesh (`shard_map` of jax) and their collectives
- `complex_numbers`: Complex numbers of StableHLO: pairs of real tensors
- `composites`: Operations identified by name: custom calls, composites, normalisations,
  quantisation
- `control`: Loops, branches and calls, evaluated during conversion where their operands are known
- `conversion`: Conversion of a StableHLO module to TTIR by symbolic execution
- `custom_calls`: Custom calls of models: sparse attention, decode, caches, training, mixture of
  experts
- `elementwise`: Elementwise ops of StableHLO; those of complex numbers are in `complex_numbers`
- `indexing`: Gather and scatter
- `linear_algebra`: Fourier transforms, factorizations of matrices and solutions of triangular
  systems
- `matmuls`: Matmuls and convolutions
- `meshes`: Mesh and shardings of a StableHLO module, and attributes of its arguments
- `movement`: Creation and data movement ops, random numbers included
- `reading/`: Parsers of StableHLO: assembly, portable bytecode (VHLO), names in locations
- `reductions`: Reductions, sorts and other operations with a body
- `rules`: Table of all rules
- `windows`: Reductions over windows: pooling, cumulative sums, other bodies
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ttcodegen.foundation.diagnostics import (
    CompileError,
    Diagnostic,
    Diagnostics,
    Severity,
    Source,
    place_of,
)

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.dialects.func import FuncOp
    from xdsl.ir import BlockArgument, Operation

_LAYERS = frozenset({"ttir.matmul", "ttir.linear", "ttir.dot_general", "ttir.conv2d",
                     "ttir.convolution"})  # fmt: skip
_FORMS = frozenset({"ttir.reshape", "ttir.permute", "ttir.typecast", "ttir.transpose"})


def read(source: Source, diagnostics: Diagnostics) -> ModuleOp:
    """Translates a StableHLO module to TTIR.

    Converts all public functions and the functions that they call.

    Raises:
        CompileError: if the module cannot be parsed, its mesh is of no known system, or listing all
            operations without a translation.
    """
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.dialects.func import FuncOp

    from ttcodegen.dialects.operations.verification import verify_functions
    from ttcodegen.dialects.ttcore.device import set_mesh
    from ttcodegen.frontends.stablehlo.conversion import Conversion
    from ttcodegen.frontends.stablehlo.meshes import mesh_of_module
    from ttcodegen.frontends.stablehlo.rules import RULES
    from ttcodegen.parsing.module import express_quantized
    from ttcodegen.parsing.structure import flatten
    from ttcodegen.transforms.rewriting import erase_dead
    from ttcodegen.transforms.rewriting import functions as functions_of

    operations = _operations(source, diagnostics)
    mesh = mesh_of_module(operations)
    flat = flatten(operations, diagnostics)
    bodies = _bodies_of_calls(flat)
    # Of the source, for what is made of it has the types that it comes to have.
    verify_functions(flat)
    functions = {op.sym_name.data: op for op in flat.ops if isinstance(op, FuncOp)}
    conversion = Conversion(functions, RULES, mesh)
    module = ModuleOp([])
    module.sym_name = flat.sym_name
    for function in functions.values():
        private = function.sym_visibility is not None and function.sym_visibility.data == "private"
        if private or function.sym_name.data in bodies or not function.body.blocks:
            continue
        unknown = _dynamic_arguments(function)
        if unknown:
            # Everything that depends on them would only be refused for that.
            conversion.findings += unknown
        else:
            module.body.block.add_op(conversion.function(function))
    module.body.block.add_ops(conversion.loops)
    if conversion.findings:
        raise CompileError.from_diagnostics(conversion.findings)
    for function in functions_of(module):
        # Constants that were folded stay, and the device may have no room for them.
        erase_dead(function)
    if _uses_mesh(module):
        set_mesh(module, mesh.shape)
    elif mesh.chips > 1:
        diagnostics.warn(
            f"the module is for {mesh.chips} devices and says nothing of how tensors are divided "
            "among them: it is compiled for one; shardings of arguments (in_shardings of jax.jit) "
            "or sdy.manual_computation (shard_map) divide the work",
            operations[0],
        )
    _note_unmarked_weights(module, diagnostics)
    express_quantized(module)
    return module


def _bodies_of_calls(module: ModuleOp) -> set[str]:
    """Returns the functions that only describe custom calls, and gives them func's terminator.

    They end in stablehlo.return, as regions do, and are not called from outside.
    """
    from xdsl.dialects.func import FuncOp, ReturnOp
    from xdsl.rewriter import Rewriter

    from ttcodegen.frontends.stablehlo.reading.operations import StableHLOOp, called_computations

    named: set[str] = set()
    for op in module.walk():
        if isinstance(op, StableHLOOp) and op.short_name == "custom_call":
            named.update(called_computations(op))
    for function in [op for op in module.ops if isinstance(op, FuncOp) and op.body.blocks]:
        last = function.body.blocks[-1].last_op
        is_body = function.sym_name.data in named
        if is_body and isinstance(last, StableHLOOp) and last.short_name == "return":
            Rewriter.replace_op(last, [ReturnOp(*last.operands)], [])
    return named


def _note_unmarked_weights(module: ModuleOp, diagnostics: Diagnostics) -> None:
    """Notes functions with matmuls or convolutions by arguments where no argument is marked as a
    parameter.

    Without the mark, weights are prepared in each call instead of once.
    """
    from xdsl.dialects.func import FuncOp

    from ttcodegen.dialects.operations.functions import argument_attribute
    from ttcodegen.frontends.stablehlo.meshes import ARGUMENT_TYPE

    functions = [op for op in module.ops if isinstance(op, FuncOp) and op.body.blocks]
    marked = (
        argument_attribute(function, index, ARGUMENT_TYPE)
        for function in functions
        for index in range(len(function.args))
    )
    if any(kind is not None for kind in marked):
        return
    for function in functions:
        weights = _multiplied_arguments(function)
        if len(function.args) > 1 and weights:
            names = ", ".join(f"%{value.name_hint or f'arg{value.index}'}" for value in weights[:3])
            more = ", ..." if len(weights) > 3 else ""
            diagnostics.warn(
                f"no argument of @{function.sym_name.data} is marked as a weight: {names}{more} "
                "may be different in each call, so nothing made of them is computed once",
                weights[0],
                remedy="mark weights with {ttcore.argument_type = "
                "#ttcore.argument_type<parameter>} or @tt.mark_argument, and other arguments as "
                "<input>; ttcodegen.jax.compile does it for params",
                severity=Severity.NOTE,
            )


def _multiplied_arguments(function: FuncOp) -> list[BlockArgument]:
    """Returns the arguments that matmuls and convolutions take as their second operand."""
    from xdsl.ir import BlockArgument, OpResult

    found: dict[BlockArgument, None] = {}
    for op in function.body.block.ops:
        if op.name not in _LAYERS or len(op.operands) < 2:
            continue
        value = op.operands[1]
        while isinstance(value, OpResult) and value.op.name in _FORMS:
            value = value.op.operands[0]
        if isinstance(value, BlockArgument):
            found[value] = None
    return list(found)


def _uses_mesh(module: ModuleOp) -> bool:
    """Returns whether a module has collectives or shardings."""
    from xdsl.dialects.func import FuncOp

    from ttcodegen.dialects.ttir.annotations import says_shardings
    from ttcodegen.ops.core.definition import works_between_chips

    return any(
        works_between_chips(op) or (isinstance(op, FuncOp) and says_shardings(op))
        for op in module.walk()
    )


def _dynamic_arguments(function: FuncOp) -> list[Diagnostic]:
    """Returns a diagnostic for each argument of dynamic shape."""
    from ttcodegen.parsing.structure import FIXED_SHAPES, is_of_unknown_size

    return [
        Diagnostic(
            f"tensors of unknown size are not supported: {argument.type}",
            place_of(argument),
            FIXED_SHAPES,
        )
        for argument in function.body.blocks[0].args
        if is_of_unknown_size(argument.type)
    ]


def _operations(source: Source, diagnostics: Diagnostics) -> list[Operation]:
    if source.data:
        from ttcodegen.dialects.operations.verification import verify_definitions
        from ttcodegen.frontends.stablehlo.reading.vhlo import read_portable

        operations = read_portable(source.data)
        verify_definitions(operations)
        return operations
    from ttcodegen.frontends.stablehlo.reading.dialect import stablehlo_context
    from ttcodegen.parsing import parse_operations

    return parse_operations(source, diagnostics, stablehlo_context())
