"""Compilation of models from Python frameworks; shared by `ttcodegen.torch` and `ttcodegen.jax`."""

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

    from ttcodegen.emission.buckets import Buckets
    from ttcodegen.emission.description import ModuleDescription, StateTensor
    from ttcodegen.emission.structure import Structure


@dataclass(frozen=True)
class BucketCall:
    """A call with sizes between those of buckets, and the outputs of the framework."""

    inputs: tuple[np.ndarray, ...]
    outputs: tuple[np.ndarray, ...]


class CheckError(Exception):
    """Mismatch between the results of the C++ and of the model."""


@dataclass(frozen=True)
class FrameworkFunction:
    """An entry function exported from a framework."""

    name: str
    weights: Mapping[str, np.ndarray]
    """Weights by argument name."""
    structure: tuple[Structure, Structure]
    """Structure of inputs (positional and keyword) and outputs."""
    reference: Reference = field(default_factory=Reference)
    """Example inputs, and the outputs of the framework."""

    def with_weights(self) -> Reference:
        """Returns the reference with weights among its inputs, as in a golden folder."""
        return Reference({**self.weights, **self.reference.inputs}, self.reference.outputs)


@dataclass(frozen=True)
class FrameworkModel:
    """A model exported from a framework."""

    source: Source
    functions: tuple[FrameworkFunction, ...]
    state: tuple[StateTensor, ...] = ()
    """Tensors that functions share and update in place."""
    steps: tuple[tuple[str, Reference], ...] = ()
    """Further calls for the check, after one call of each function; they continue on its state."""
    generation: Mapping[str, Any] | None = None
    """Functions of a decoder by role, as in the manifest."""
    buckets: Buckets | None = None
    """Functions by the sizes of dynamic dimensions."""
    bucket_calls: tuple[BucketCall, ...] = ()
    """Calls with sizes between those of buckets, for the check."""

    def write_reference(self, folder: Path) -> None:
        """Writes weights, examples and results in the format of `ttcodegen --check --golden`.

        Raises:
            CompileError: if they cannot be written.
        """
        for function in self.functions:
            place = folder / function.name if len(self.functions) > 1 else folder
            write_reference(place, function.with_weights())


def joined_models(models: Mapping[str, FrameworkModel]) -> FrameworkModel:
    """Joins single-function models into one model; functions are named by the keys of `models`.

    Raises:
        CompileError: if a model is not supported.
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
    """Renames the entry function of a module; prefixes all other functions with the new name."""
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
    """Imports a framework, which is an extra of the same name.

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
    """Renders all diagnostics of errors into their messages, for callers in Python.

    Raises:
        CompileError: for each CompileError raised inside.
    """
    try:
        yield
    except CompileError as error:
        raise _rendered(error) from error.__cause__


@contextmanager
def refusing(what: str, function: Callable[..., Any] | None, remedy: str) -> Generator[None]:
    """Converts errors of a framework on a user's function into located CompileErrors.

    Args:
        what: what the framework cannot do.
        function: function of the user; None if there is none.
        remedy: what the user can do.

    Raises:
        CompileError: for any exception raised inside.
    """
    try:
        yield
    except CompileError:
        raise
    except Exception as error:  # Frameworks raise exceptions of any type.
        lines = str(error).strip().splitlines()
        said = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
        place = raised_at(error, function)
        raise CompileError(f"{what}: {said}", place, remedy=remedy) from error


def raised_at(error: BaseException, function: Callable[..., Any] | None) -> SourceLocation | None:
    """Returns the location in the user's program that caused a framework's error.

    This is the innermost frame outside of installed packages and Python itself; without one, as for
    wrong arguments, the definition of `function`.
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
    """Returns the location of the user's call into this library; None without a file."""
    frame = inspect.currentframe()
    while frame is not None and not is_of_user(frame.f_code.co_filename):
        frame = frame.f_back
    return None if frame is None else instruction_location(frame.f_code, frame.f_lasti)


def defined_at(function: Callable[..., Any]) -> SourceLocation | None:
    """Returns the location where a function of the user is defined; None for other functions."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if not isinstance(code, CodeType) or not is_of_user(code.co_filename):
        return None
    return SourceLocation(code.co_filename, code.co_firstlineno, 1)


def compile_to_project(
    model: FrameworkModel, out: Path, name: str, options: ProjectOptions
) -> Path:
    """Writes the project of a model; builds and checks it on request.

    Returns:
        The project folder, for `ttcodegen.load`.

    Raises:
        CompileError: if the model is not supported, or the project cannot be written or built; the
            message contains all diagnostics.
        CheckError: if an output of the check differs.
    """
    with refusals_in_full():
        # Errors about options have no location in the model's text.
        options.refuse_contradictions()
        options.compile_options(name)
    try:
        return _compile_to_project(model, out, name, options)
    except CompileError as error:
        # The exported text is unknown to the user; excerpts of it still help.
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
    if model.buckets is not None and options.stages:
        raise CompileError(
            "dynamic dimensions of a model in stages are not supported",
            remedy="give a fixed example, or leave out stages",
        )
    compiled = compile_framework_model(model, name, options)
    with locked_project(out):
        write_compiled(compiled, out, options)
        if options.build or options.check:
            _build_and_check(model, compiled, out, options)
    return out


def compile_framework_model(
    model: FrameworkModel, name: str, options: ProjectOptions
) -> CompiledModule:
    """Compiles a model; the result includes weights and the structure of arguments."""
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
        buckets=model.buckets,
    )


def _shared_files(
    module: ModuleDescription, values: Mapping[str, Mapping[str, np.ndarray]]
) -> dict[tuple[str, str], str]:
    """Returns the file names of weights that functions share, by function and weight name.

    Two functions share a weight if its arrays share memory, or have the same name and equal
    elements.
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
            place = _memory_key(array)
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
        # Weights within a function are not shared: each can be set on its own.
        by_memory = {**here, **by_memory}
    return found


def _equal(first: np.ndarray, second: np.ndarray) -> bool:
    import numpy as np

    if _memory_key(first) == _memory_key(second):
        return True
    return first.dtype == second.dtype and np.array_equal(first, second)


def _memory_key(array: np.ndarray) -> tuple[object, ...]:
    """Returns address, shape, strides and dtype of an array, equal for views of the same
    elements."""
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
    calls_buckets = bool(model.bucket_calls) and compiled.description.has_library
    checks = check_project(
        model.source,
        compiled,
        out,
        toolchain,
        kind="both" if model.state or calls_buckets else kind,
        seed=options.seed or 0,
        edges=options.check == "edges",
        reference={
            function.name: function.reference
            for function in model.functions
            if function.reference.outputs
        },
    )
    reasons = [reason for check in checks for reason in check.reasons]
    if not reasons and model.state and (len(model.functions) > 1 or model.steps):
        reasons = _check_calls(model, out, bool(options.activations))
    if not reasons and calls_buckets:
        reasons = _check_bucket_calls(model, out, bool(options.activations))
    if reasons:
        raise CheckError("\n".join(reasons))


def _check_calls(model: FrameworkModel, out: Path, block_floats: bool) -> list[str]:
    """Runs a sequence of calls on the shared state of the built project and compares with the
    framework.

    The calls are added to the report.

    Returns:
        Reasons of mismatches; empty if all outputs match.
    """
    from ttcodegen.runtime.library import load

    calls = [*((each.name, each.reference) for each in model.functions), *model.steps]
    checked = _CheckedCalls(block_floats)
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
                checked.compare(
                    f"call {place} of {len(calls)}, {name}",
                    {"call": place, "function": name},
                    each.name,
                    (actual, reference.outputs[each.name]),
                )
    return checked.reported(out)


def _check_bucket_calls(model: FrameworkModel, out: Path, block_floats: bool) -> list[str]:
    """Runs calls with sizes between those of buckets and compares with the framework.

    The calls are added to the report.

    Returns:
        Reasons of mismatches; empty if all outputs match.
    """
    from ttcodegen.runtime.library import load

    checked = _CheckedCalls(block_floats)
    with load(out) as loaded:
        for place, call in enumerate(model.bucket_calls):
            shapes = ", ".join(str(each.shape) for each in call.inputs)
            results = zip(
                loaded.buckets.outputs, loaded.buckets.run(call.inputs), call.outputs, strict=True
            )
            for output, actual, wanted in results:
                checked.compare(
                    f"call with inputs {shapes}",
                    {"call": place, "inputs": shapes},
                    output.name,
                    (actual, wanted),
                )
    return checked.reported(out)


@dataclass(frozen=True)
class _CheckedCalls:
    """Comparison of further calls, after the check of each function, with the framework."""

    block_floats: bool
    """True if activations are block floats."""
    entries: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    reasons: list[str] = field(default_factory=list[str])

    def compare(
        self,
        call: str,
        entry: Mapping[str, Any],
        name: str,
        arrays: tuple[np.ndarray, np.ndarray],
    ) -> None:
        """Compares an output of the C++ with that of the framework."""
        from ttcodegen.numerics.comparison import compare, reference_tolerance

        actual, wanted = arrays
        tolerance = reference_tolerance(wanted.dtype, True, self.block_floats)
        found = compare(actual, wanted, tolerance)
        self.entries.append({**entry, **found.to_json(name)})
        if not found.passed:
            self.reasons.append(f"{call}, output '{name}', C++ against reference: {found.reason}")

    def reported(self, out: Path) -> list[str]:
        """Adds the calls to the check report; returns the reasons of mismatches."""
        from ttcodegen.project.checking import add_calls

        add_calls(out, self.entries, passed=not self.reasons)
        return self.reasons
