"""Compiles models that come from Python: what `ttcodegen.torch` and `ttcodegen.jax` share."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any

from ttcodegen.compilation import CompiledModule
from ttcodegen.foundation.diagnostics import (
    CompileError,
    Source,
    SourceLocation,
    instruction_location,
)
from ttcodegen.foundation.messages import is_of_user
from ttcodegen.project.running import Reference, write_reference
from ttcodegen.project.settings import ProjectOptions, write_compiled

if TYPE_CHECKING:
    import numpy as np
    from xdsl.dialects.builtin import ModuleOp

    from ttcodegen.emission.description import ModuleDescription, StateTensor, Structure


class CheckError(Exception):
    """Mismatch between the results of the C++ and of the model."""


@dataclass(frozen=True)
class FrameworkFunction:
    """An entry function that was taken out of its framework."""

    name: str
    weights: Mapping[str, np.ndarray]
    """By the names of arguments."""
    structure: tuple[Structure, Structure]
    """Nesting of inputs (positional and keyword) and outputs."""
    reference: Reference = field(default_factory=Reference)
    """The example, and what the framework computes of it."""

    def with_weights(self) -> Reference:
        """The reference with the weights among its inputs, as a golden folder has them."""
        return Reference({**self.weights, **self.reference.inputs}, self.reference.outputs)


@dataclass(frozen=True)
class FrameworkModel:
    """A model that was taken out of its framework."""

    source: Source
    functions: tuple[FrameworkFunction, ...]
    state: tuple[StateTensor, ...] = ()
    """Tensors that functions change in place and share."""
    steps: tuple[tuple[str, Reference], ...] = ()
    """Further calls for the check, after one of each function: on the state that those left."""
    generation: Mapping[str, Any] | None = None
    """Of a decoder: its functions by their roles, as the manifest has them."""

    def write_reference(self, folder: Path) -> None:
        """Writes weights, examples and results, as `ttcodegen --check --golden` reads them.

        Raises:
            CompileError: if that is not possible.
        """
        for function in self.functions:
            place = folder / function.name if len(self.functions) > 1 else folder
            write_reference(place, function.with_weights())


def joined_models(models: Mapping[str, FrameworkModel]) -> FrameworkModel:
    """Models of one function each as the functions of one model, by the names of the mapping.

    Raises:
        CompileError: if one of them is not supported.
    """
    from ttcodegen.frontends import read_module
    from ttcodegen.transforms.module_text import module_text

    joined: ModuleOp | None = None
    for name, model in models.items():
        (function,) = model.functions
        try:
            module = read_module(model.source)
        except CompileError as error:
            raise _rendered(error, model.source) from None
        _rename_symbols(module, function.name, name)
        if joined is None:
            joined = module
            continue
        for op in list(module.ops):
            op.detach()
            joined.body.block.add_op(op)
    assert joined is not None
    text = module_text(joined, locations=True)
    functions = (replace(model.functions[0], name=name) for name, model in models.items())
    return FrameworkModel(Source("model.mlir", text), tuple(functions))


def _rename_symbols(module: ModuleOp, entry: str, name: str) -> None:
    """Gives the entry function of a module another name, and all others names that start with
    it."""
    from xdsl.dialects.builtin import StringAttr, SymbolRefAttr
    from xdsl.dialects.func import FuncOp

    names = {
        op.sym_name.data: name if op.sym_name.data == entry else f"{name}_{op.sym_name.data}"
        for op in module.ops
        if isinstance(op, FuncOp)
    }
    for op in module.walk():
        if isinstance(op, FuncOp):
            op.sym_name = StringAttr(names[op.sym_name.data])
        for attributes in (op.properties, op.attributes):
            for key, value in attributes.items():
                if isinstance(value, SymbolRefAttr) and value.root_reference.data in names:
                    attributes[key] = SymbolRefAttr(names[value.root_reference.data])


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
        place = raised_at(error, function)
        raise CompileError(f"{what}: {said}", place, remedy=remedy) from error


def raised_at(error: BaseException, function: Callable[..., Any] | None) -> SourceLocation | None:
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
    with refusals_in_full():
        # Of the options, not of the model's text.
        options.refuse_contradictions()
        options.compile_options(name)
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

    refuse_unrelated_folder(out, force=options.force, keep_edits=options.keep_edits)
    compiled = compile_framework_model(model, name, options)
    with locked_project(out):
        write_compiled(compiled, out, options)
        if options.build or options.check:
            _build_and_check(model, compiled, out, options)
    return out


def compile_framework_model(
    model: FrameworkModel, name: str, options: ProjectOptions
) -> CompiledModule:
    """The model compiled, with its weights and the structure of its arguments."""
    compiled = options.compiled(model.source, name)
    return replace(compiled, description=_described(model, compiled))


def _described(model: FrameworkModel, compiled: CompiledModule) -> ModuleDescription:
    from ttcodegen.emission.description import DataFile

    description = compiled.description
    weights = {function.name: function.weights for function in model.functions}
    names = _shared_files(description, weights)
    description = replace(description, weight_files=names)
    files: dict[str, DataFile] = {}
    for function in description.functions:
        for weight in function.weights:
            if weight.name in weights[function.name]:
                name = description.weight_file(function, weight)
                files.setdefault(name, DataFile(name, weights[function.name][weight.name]))
    return replace(
        description,
        weights=tuple(files.values()),
        structures={function.name: function.structure for function in model.functions},
        state=model.state,
        generation=model.generation,
    )


def _shared_files(
    module: ModuleDescription, values: Mapping[str, Mapping[str, np.ndarray]]
) -> dict[tuple[str, str], str]:
    """File names of the weights that several functions have, by function and weight.

    Weights of two functions are one tensor if they are one array in memory, or have the same name
    and equal elements.
    """
    if len(module.functions) < 2:
        return {}
    found: dict[tuple[str, str], str] = {}
    by_name: dict[str, list[tuple[np.ndarray, str]]] = {}
    by_memory: dict[tuple[object, ...], str] = {}
    taken = {file.name for file in module.data}
    for function in module.functions:
        here: dict[tuple[object, ...], str] = {}
        for weight in function.weights:
            array = values[function.name].get(weight.name)
            if array is None:
                continue
            place = _place(array)
            same = (file for each, file in by_name.get(weight.name, ()) if _equal(each, array))
            file = next(same, None) or by_memory.get(place)
            if file is None:
                file = weight.field
                if file in taken:
                    file = f"{function.cpp_name}.{weight.field}"
                if file in taken:
                    file = f"{file}.weight"
                taken.add(file)
            by_name.setdefault(weight.name, []).append((array, file))
            here[place] = file
            found[function.name, weight.name] = file
        # Two weights of one function stay apart: each of them can be set.
        by_memory = {**here, **by_memory}
    return found


def _equal(first: np.ndarray, second: np.ndarray) -> bool:
    import numpy as np

    if _place(first) == _place(second):
        return True
    return first.dtype == second.dtype and np.array_equal(first, second)


def _place(array: np.ndarray) -> tuple[object, ...]:
    """Address, shape, strides and dtype of an array, which views of the same elements share."""
    return array.ctypes.data, array.shape, array.strides, array.dtype.str


def _build_and_check(
    model: FrameworkModel, compiled: CompiledModule, out: Path, options: ProjectOptions
) -> None:
    from ttcodegen.project.building import build_project
    from ttcodegen.project.toolchain import find_toolchain

    toolchain = find_toolchain()
    if not options.check:
        build_project(out, compiled.description.name, toolchain, options.project_kind)
        return
    from ttcodegen.project.checking import check_project

    kind = options.project_kind if options.build or options.kind else "exe"
    checks = check_project(
        model.source,
        compiled,
        out,
        toolchain,
        kind="both" if model.state else kind,
        seed=options.seed,
        edges=options.check == "edges",
        reference={
            function.name: function.reference
            for function in model.functions
            if function.reference.outputs
        },
    )
    reasons = [reason for check in checks for reason in check.reasons]
    if not reasons and model.state and (len(model.functions) > 1 or model.steps):
        reasons = _check_calls(model, out)
    if reasons:
        raise CheckError("\n".join(reasons))


def _check_calls(model: FrameworkModel, out: Path) -> list[str]:
    """Calls the functions one after the other on the state that the built project keeps, compares
    with the framework, and adds that to the report.

    Returns:
        Why outputs differ; nothing if all agree.
    """
    from ttcodegen.numerics.comparison import compare, reference_tolerance
    from ttcodegen.project.checking import add_calls
    from ttcodegen.runtime.library import load

    calls = [*((each.name, each.reference) for each in model.functions), *model.steps]
    entries: list[dict[str, Any]] = []
    reasons: list[str] = []
    with load(out) as loaded:
        for place, (name, reference) in enumerate(calls):
            function = loaded[name]
            kept = loaded.state.inputs_of(function)
            given = {
                index: reference.inputs[each.name]
                for index, each in enumerate(function.inputs)
                if index not in kept
            }
            results = loaded.state.run(function, given)
            state = loaded.state.values() if place == len(calls) - 1 else {}
            changed = loaded.state.outputs_of(function)
            for index, each in enumerate(function.outputs):
                actual = results[index]
                if actual is None:
                    actual = state.get(changed[index])
                if actual is None:
                    continue
                wanted = reference.outputs[each.name]
                found = compare(actual, wanted, reference_tolerance(wanted.dtype, True))
                entries.append({"call": place, "function": name, **found.to_json(each.name)})
                if not found.passed:
                    reasons.append(
                        f"call {place} of {len(calls)}, {name}, output '{each.name}', C++ against "
                        f"reference: {found.reason}"
                    )
    add_calls(out, entries, passed=not reasons)
    return reasons
