"""Runs text of StableHLO in numpy: the import, then the golden meaning of TTIR."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from ttcodegen.dialects.operations.verification import verify_module
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.frontends import read_module
from ttcodegen.numerics.golden_values import Golden
from ttcodegen.parsing import check_supported


def imported(text: str) -> ModuleOp:
    """The module of TTIR that a text means, verified."""
    module = read_module(Source("in.mlir", text))
    check_supported(module)
    verify_module(module)
    return module


def run_text(text: str, inputs: Sequence[np.ndarray], function: str = "main") -> list[np.ndarray]:
    """The results of a function for these inputs."""
    return Golden(imported(text)).run(function, inputs)
