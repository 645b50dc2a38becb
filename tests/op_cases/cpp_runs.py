"""Programs that are built against the CPU backend and run on the inputs of a run in numpy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import ml_dtypes
import numpy as np

from ttcodegen.compilation import CompiledModule
from ttcodegen.project.building import BUILD_FOLDER, build_project
from ttcodegen.project.checking import run_executable
from ttcodegen.project.running import FunctionRuns
from ttcodegen.project.sources import project_files
from ttcodegen.project.toolchain import Toolchain
from ttcodegen.project.writer import write_project

LIMIT = 1200.0
"""Seconds that a program may take."""


def run_cpp(
    compiled: CompiledModule, runs: Sequence[FunctionRuns], out: Path, toolchain: Toolchain
) -> list[list[np.ndarray]]:
    """Outputs of the C++ of each run, in the order of the results."""
    write_project(compiled.description, out, project_files(compiled, formatted=False))
    built = build_project(out, compiled.description.name, toolchain, "exe")
    assert built.executable is not None
    outputs, failure = run_executable(built.executable, runs, out / BUILD_FOLDER, LIMIT)
    assert failure is None
    return [
        [_as_numpy(outputs[run.function.name][output.field]) for output in run.function.outputs]
        for run in runs
    ]


def _as_numpy(array: np.ndarray) -> np.ndarray:
    """An output as numpy reads it: bfloat16 comes as records of two bytes."""
    return array.view(ml_dtypes.bfloat16) if array.dtype.kind == "V" else array
