"""Operations whose nodes all do the same, as modules of `ttir.generic`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ttcodegen.dialects.ttcore.dialect import set_system
from ttcodegen.dialects.ttcore.layouts import Grid, GridAttr
from ttcodegen.dialects.ttir.generic import GenericOp
from ttcodegen.emitc.spelling import identifier
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.lang.compiler.operations import CompiledOperation
from ttcodegen.lang.compiler.tensors.outlining import NotRegularError, whole_function
from ttcodegen.lang.simulator.context import Launch, current
from ttcodegen.numerics.golden_values import Golden
from ttcodegen.ops.dialects import load_dialects
from ttcodegen.parsing.module import parse_module
from ttcodegen.transforms.module_text import module_text
from ttcodegen.transforms.pass_runner import PassRunner
from ttcodegen.transforms.registry import passes_of


@dataclass(frozen=True)
class GenericModule:
    """An operation as a function of whole tensors."""

    name: str
    source: Source
    """The function with ops of TTIR."""
    text: str
    """The same with a `ttir.generic` for each program of the device, on the operation's grid."""
    outputs: tuple[str, ...]
    """The names of its results."""

    def run(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Evaluates the function in numpy."""
        return Golden(parse_module(self.source)).run(self.name, inputs)


def generic_module(launch: Launch, operation: CompiledOperation) -> GenericModule:
    """An operation as a module of generics.

    Args:
        launch: the operation, after it ran and was recorded.
        operation: the same, compiled.

    Raises:
        NotRegularError: if it is no function of whole tensors, or none that the device has programs
            for.
    """
    given = {id(value): identifier(name) for name, value in launch.arguments.items()}
    names = {
        id(tensor): given.get(id(tensor), f"tensor{number}")
        for number, tensor in enumerate(operation.tensors)
    }
    inputs, outputs = (
        {names[id(tensor)]: tensor for tensor in tensors}
        for tensors in (operation.inputs, operation.outputs)
    )
    if inputs.keys() & outputs.keys():
        raise NotRegularError("it reads what it writes")
    text = whole_function(launch, operation.name, inputs, outputs)
    source = Source(f"{operation.name}.mlir", text)
    return GenericModule(operation.name, source, _with_generics(source, launch), tuple(outputs))


def _with_generics(source: Source, launch: Launch) -> str:
    module = parse_module(source)
    system = current.system
    set_system(module, system)
    try:
        PassRunner(load_dialects()).run(module, passes_of("ttir-to-ttmetal-fe-pipeline"))
    except CompileError as error:
        raise NotRegularError(error.diagnostics[0].message) from None
    columns, rows = (*launch.grid, 1)[:2]
    if rows <= system.chip.grid[0] and columns <= system.chip.grid[1]:
        for op in module.walk():
            if isinstance(op, GenericOp):
                op.properties["grid"] = GridAttr(Grid((rows, columns)))
    return module_text(module)
