"""Runs random functions in their three meanings and compares them."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, ModuleOp
from xdsl.dialects.func import FuncOp

from tests.random_programs.choices import Choices, SeededChoices, pick
from tests.random_programs.generator import Generator
from tests.random_programs.recipes import RECIPES
from tests.random_programs.witnesses import Argument, draw_argument
from ttcodegen.compilation import CompiledModule, CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.parsing import parse_module
from ttcodegen.project.building import BUILD_FOLDER, build_project
from ttcodegen.project.checking import check_function, run_executable, run_in_numpy
from ttcodegen.project.running import FunctionRuns
from ttcodegen.project.sources import project_files
from ttcodegen.project.toolchain import BuildError, Toolchain
from ttcodegen.project.writer import write_project

MOST_OPS = 20
TIMEOUT = 120.0
"""Seconds that the executable may run."""


def generate(
    choices: Choices, name: str, most: int = MOST_OPS, recipes: Collection[str] = RECIPES
) -> FuncOp:
    """A random function of up to `most` ops, made by the recipes of those names where there are
    such."""
    generator = Generator(choices)
    names = sorted(RECIPES.keys() & recipes)
    wanted = choices.integer(1, most)
    for _ in range(2 * wanted):
        if len(generator.ops) < wanted:
            generator.attempt(RECIPES[pick(choices, names)])
    if not generator.ops:
        generator.attempt(RECIPES["add"])
    return generator.function(name)


def seeded_module(seeds: Sequence[int]) -> str:
    """The text of a module with a random function for each seed."""
    return module_of([generate(SeededChoices(seed), f"f{seed}") for seed in seeds])


def module_of(functions: Sequence[FuncOp]) -> str:
    """The text of a module with copies of those functions."""
    return str(ModuleOp([function.clone() for function in functions])) + "\n"


def functions_of(module: ModuleOp) -> dict[str, FuncOp]:
    """The functions of a module by name."""
    return {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}


def inputs_of(function: FuncOp) -> tuple[np.ndarray, ...]:
    """The inputs as the attributes of the arguments say that they are drawn."""
    attributes_of = function.arg_attrs.data if function.arg_attrs is not None else ()
    inputs: list[np.ndarray] = []
    for argument, attributes in zip(function.args, attributes_of, strict=True):
        low, high, seed = (
            cast("FloatAttr | IntegerAttr", attributes.data[f"drawn.{name}"]).value.data
            for name in ("low", "high", "seed")
        )
        inputs.append(draw_argument(argument, Argument(low, high, int(seed))))
    return tuple(inputs)


@dataclass(frozen=True)
class Checked:
    """A module, compiled and run in numpy."""

    compiled: CompiledModule
    runs: tuple[FunctionRuns, ...]

    def reasons(self, run: FunctionRuns, cpp: Mapping[str, np.ndarray] | None = None) -> list[str]:
        """Failures of a function's outputs, and of those of the C++ if there are any."""
        written = cpp if cpp is not None else _as_written(run)
        checks = check_function(run, written, None)
        return [reason for check in checks for reason in check.reasons]


def _as_written(run: FunctionRuns) -> dict[str, np.ndarray]:
    """The outputs of the flatbuffer run by the fields that the C++ would have for them."""
    fields = (output.field for output in run.function.outputs)
    return dict(zip(fields, run.flatbuffer, strict=True))


def run_module(text: str, target: str = "ttnn", optimize: int = 0) -> Checked:
    """Compiles a module for a target and runs its source and its flatbuffer.

    Raises:
        CompileError: if it does not compile or run.
    """
    source = Source("random.mlir", text)
    options = CompileOptions("random_programs", target=target, optimize=optimize)
    compiled = compile_module(source, options)
    runs = run_in_numpy(source, compiled, lambda _, function: inputs_of(function))
    return Checked(compiled, tuple(runs))


def failures_in_numpy(text: str, optimize: int = 0) -> list[str]:
    """Failures of a module without its C++; empty if its outputs agree."""
    try:
        checked = run_module(text, optimize=optimize)
    except CompileError as error:
        return [str(error)]
    return [reason for run in checked.runs for reason in checked.reasons(run)]


def failures(text: str, toolchain: Toolchain) -> dict[str, list[str]]:
    """Failures of the functions of a module by name, of all three meanings.

    Functions that run in numpy are built and run together; more builds and runs are made only to
    find those that do not build or that end the program.
    """
    functions = functions_of(parse_module(Source("random.mlir", text)))
    texts = {name: module_of([function]) for name, function in functions.items()}
    found = {name: failures_in_numpy(alone) for name, alone in texts.items()}
    found = {name: reasons for name, reasons in found.items() if reasons}
    rest = [function for name, function in functions.items() if name not in found]
    return found | _failures_in_cpp(rest, toolchain)


def _failures_in_cpp(functions: Sequence[FuncOp], toolchain: Toolchain) -> dict[str, list[str]]:
    """One half after the other, if they do not build together."""
    if not functions:
        return {}
    try:
        return failures_built_together(module_of(functions), toolchain)
    except BuildError as error:
        if len(functions) == 1:
            return {functions[0].sym_name.data: [str(error)]}
    middle = len(functions) // 2
    return _failures_in_cpp(functions[:middle], toolchain) | _failures_in_cpp(
        functions[middle:], toolchain
    )


def failures_built_together(
    text: str, toolchain: Toolchain, target: str = "ttnn", optimize: int = 0
) -> dict[str, list[str]]:
    """Failures of the functions of a module by name, from a single build.

    Raises:
        BuildError: if the C++ does not build.
        CompileError: if the module does not compile or run in numpy.
    """
    checked = run_module(text, target, optimize)
    description = checked.compiled.description
    with tempfile.TemporaryDirectory(prefix="random-programs-") as folder:
        out = Path(folder, "out")
        write_project(description, out, project_files(checked.compiled, formatted=False))
        built = build_project(out, description.name, toolchain, "exe")
        assert built.executable is not None
        return _run_in_cpp(checked, built.executable, out / BUILD_FOLDER)


def _run_in_cpp(checked: Checked, executable: Path, folder: Path) -> dict[str, list[str]]:
    failures: dict[str, list[str]] = {}
    outputs, failure = run_executable(executable, checked.runs, folder, TIMEOUT)
    for run in checked.runs:
        name = run.function.name
        found = outputs[name]
        if failure is not None and len(found) < len(run.function.outputs):
            # The program ended here or before: which one it was shows when it runs alone.
            alone, why = run_executable(executable, [run], folder, TIMEOUT)
            found = alone[name]
            if why is not None:
                failures[name] = [why]
                continue
        if reasons := checked.reasons(run, found):
            failures[name] = reasons
    return failures
