"""Compiles models that come from Python: what `ttcodegen.torch` and `ttcodegen.jax` share."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any

from ttcodegen.compilation import CompiledModule, compile_module
from ttcodegen.foundation.diagnostics import (
    CompileError,
    Diagnostics,
    Source,
    SourceLocation,
    instruction_location,
)
from ttcodegen.foundation.user_files import is_of_user
from ttcodegen.project.reference import Reference
from ttcodegen.project.settings import ProjectOptions, write_compiled

if TYPE_CHECKING:
    import numpy as np

    from ttcodegen.emission.description import ModuleDescription, Structure


class CheckError(Exception):
    """Mismatch between the results of the C++ and of the model."""


@dataclass(frozen=True)
class FrameworkModel:
    """A model that was taken out of its framework."""

    source: Source
    function: str
    """The name of its only function."""
    weights: Mapping[str, np.ndarray]
    """By the names of arguments."""
    structure: tuple[Structure, Structure]
    """Nesting of inputs (positional and keyword) and outputs."""
    reference: Reference = field(default_factory=Reference)
    """The example, and what the framework computes of it."""

    def with_weights(self) -> Reference:
        """The reference with the weights among its inputs, as a golden folder has them."""
        return Reference({**self.weights, **self.reference.inputs}, self.reference.outputs)


def framework(name: str) -> Any:
    """The module of a framework, which is an extra of that name.

    Raises:
        CompileError: if it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError:
        raise CompileError(
            f"{name} is not installed", remedy=f"install it: pip install {name}"
        ) from None


@contextmanager
def refusals_in_full() -> Generator[None]:
    """While errors leave with all that they say as their message: a caller from Python sees that
    alone.

    Raises:
        CompileError: for each that was raised inside.
    """
    try:
        yield
    except CompileError as error:
        raise _rendered(error) from error.__cause__


@contextmanager
def refusing(what: str, function: Callable[..., Any] | None, remedy: str) -> Generator[None]:
    """While a framework works on a function of the user: what it raises is refused where the
    function causes it.

    Args:
        what: what the framework cannot do then.
        function: the user's, None if there is none.
        remedy: what the user can do about it.

    Raises:
        CompileError: for whatever was raised inside.
    """
    try:
        yield
    except CompileError:
        raise
    except Exception as error:  # Frameworks raise whatever they come across.
        lines = str(error).strip().splitlines()
        said = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
        place = _raised_at(error, function)
        raise CompileError(f"{what}: {said}", place, remedy=remedy) from error


def _raised_at(error: BaseException, function: Callable[..., Any] | None) -> SourceLocation | None:
    """The line of the user's program that a framework could not follow.

    The innermost frame that is neither of a package that is installed nor of Python; where there is
    none, as for wrong arguments, the line that `function` is defined in.
    """
    found = None
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if is_of_user(code.co_filename):
            found = instruction_location(code, trace.tb_lasti)
        trace = trace.tb_next
    return found or (None if function is None else defined_at(function))


def called_at() -> SourceLocation | None:
    """Source location of the user's call into this library, or None without a file."""
    frame = inspect.currentframe()
    while frame is not None and not is_of_user(frame.f_code.co_filename):
        frame = frame.f_back
    return None if frame is None else instruction_location(frame.f_code, frame.f_lasti)


def defined_at(function: Callable[..., Any]) -> SourceLocation | None:
    """The line that a function is defined in, None if it has none that is the user's."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if not isinstance(code, CodeType) or not is_of_user(code.co_filename):
        return None
    return SourceLocation(code.co_filename, code.co_firstlineno, 1)


def compile_to_project(
    model: FrameworkModel, out: Path, name: str, options: ProjectOptions
) -> Path:
    """Writes the project of a model, builds and checks it on request.

    Returns:
        The project's folder, as `ttcodegen.load` takes it.

    Raises:
        CompileError: if the model is not supported, or the project cannot be written or built; the
            message is complete.
        CheckError: if an output of the check differs.
    """
    try:
        return _compile_to_project(model, out, name, options)
    except CompileError as error:
        # The text is nothing that a user has seen; what it says about itself helps all the same.
        raise _rendered(error, model.source) from None


def _rendered(error: CompileError, source: Source | None = None) -> CompileError:
    rendered = CompileError(error.render(source))
    rendered.diagnostics = error.diagnostics
    return rendered


def _compile_to_project(
    model: FrameworkModel, out: Path, name: str, options: ProjectOptions
) -> Path:
    from ttcodegen.project.staging import locked_project
    from ttcodegen.project.writer import refuse_unrelated_folder

    options.refuse_contradictions()
    refuse_unrelated_folder(out, force=options.force, keep_edits=options.keep_edits)
    compiled = compile_framework_model(model, name, options)
    options.save_decisions(compiled.decisions)
    with locked_project(out):
        write_compiled(compiled, out, options)
        if options.build or options.check:
            _build_and_check(model, compiled, out, options)
    return out


def compile_framework_model(
    model: FrameworkModel, name: str, options: ProjectOptions
) -> CompiledModule:
    """The model compiled, with its weights and the structure of its arguments."""
    diagnostics = Diagnostics()
    compiled = compile_module(model.source, options.compile_options(name), diagnostics=diagnostics)
    diagnostics.write(sys.stderr, model.source)
    return replace(compiled, description=_described(model, compiled))


def _described(model: FrameworkModel, compiled: CompiledModule) -> ModuleDescription:
    from ttcodegen.emission.description import DataFile

    description = compiled.description
    files = [
        DataFile(description.weight_file(function, weight), model.weights[weight.name])
        for function in description.functions
        for weight in function.weights
        if weight.name in model.weights
    ]
    return replace(description, weights=tuple(files), structures={model.function: model.structure})


def _build_and_check(
    model: FrameworkModel, compiled: CompiledModule, out: Path, options: ProjectOptions
) -> None:
    from ttcodegen.project.building import build_project
    from ttcodegen.project.toolchain import find_toolchain

    toolchain = find_toolchain()
    if not options.check:
        build_project(out, compiled.description.name, toolchain, options.kind or "both")
        return
    from ttcodegen.project.checking import check_project

    checks = check_project(
        model.source,
        compiled,
        out,
        toolchain,
        kind=options.kind or ("both" if options.build else "exe"),
        seed=options.seed,
        reference={model.function: model.reference} if model.reference.outputs else None,
    )
    reasons = [reason for check in checks for reason in check.reasons]
    if reasons:
        raise CheckError("\n".join(reasons))
