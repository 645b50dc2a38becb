"""Runs what front ends read in numpy, as `--check` does for the source."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.dialects.operations.verification import verify_module
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.frontends import read_module
from ttcodegen.numerics.golden_values import Golden
from ttcodegen.parsing import check_supported


def read(text: str) -> ModuleOp:
    """The module of TTIR that a text means, which has to be right and supported."""
    module = read_module(Source("in.mlir", text))
    check_supported(module)
    verify_module(module)
    return module


def ops_of(module: ModuleOp) -> list[str]:
    """The short names of the ops of the first function, without the return."""
    function = next(op for op in module.ops if isinstance(op, FuncOp))
    return [op.name.partition(".")[2] for op in function.body.block.ops][:-1]


def run(text: str, *inputs: np.ndarray) -> list[np.ndarray]:
    """Outputs of the first function in numpy; the module must compile as well."""
    module = read(text)
    name = next(op for op in module.ops if isinstance(op, FuncOp)).sym_name.data
    results = Golden(module).run(name, inputs)
    compile_module(Source("in.mlir", text), CompileOptions("model"))
    return results


def refusals(text: str) -> Sequence[str]:
    """The messages with which a text is refused."""
    try:
        read(text)
    except CompileError as error:
        return [str(each.message) for each in error.diagnostics]
    raise AssertionError("it was not refused")
