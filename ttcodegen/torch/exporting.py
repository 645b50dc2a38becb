"""Export of modules by torch: errors, functions of a project, and their reference values."""

from __future__ import annotations

import io
import logging
import re
import sys
import warnings
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, redirect_stderr
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from ttcodegen.emission.description import StateTensor
from ttcodegen.emission.structure import Structure, StructureError
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.framework import called_at, raised_at, refusing
from ttcodegen.frontends.torch.graph import plain, source_of, tensor_array
from ttcodegen.frontends.torch.importing import Imported, changed_label
from ttcodegen.project.running import Reference
from ttcodegen.torch.gradients import computes_gradients, traced_module

_CHOSEN_BY_VALUES = (
    "choose values with torch.where or torch.cond, slice by numbers that follow from shapes, or "
    "compute the number before the model"
)
_SAYINGS = (
    (
        r"data-dependent|DataDependentOutput|_local_scalar_dense",
        "the flow of control, or a number that is no tensor, depends on the values of a tensor",
        _CHOSEN_BY_VALUES,
    ),
    (
        r"\.numpy\(\) is not supported|can't convert .* to numpy|to a numpy array",
        "a tensor is converted to numpy, whose functions torch cannot record",
        "compute it with functions of torch, or before or after the model",
    ),
    (
        r"Constant \S+ is mutated",
        "the module changes a tensor that is neither an argument nor a buffer",
        "keep it as a buffer of the module: self.register_buffer(name, tensor)",
    ),
)
"""Patterns of torch.export's errors, with their meaning for the model's author."""


def exported_program(torch: Any, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Exports a module; returns an exported program unchanged.

    Raises:
        CompileError: if torch cannot export the module, with the source line.
    """
    if isinstance(module, torch.export.ExportedProgram):
        return module
    if not isinstance(module, torch.nn.Module):
        raise CompileError(
            f"expected a torch.nn.Module, found {type(module).__name__}",
            called_at(),
            remedy="put functions into the forward method of a module",
        )
    with torch.no_grad():
        args, kwargs = _in_separate_memory(torch, (args, kwargs))
        try:
            with _without_messages_of_torch():
                with _sizes_by_values(torch, module) as sizes:
                    program = _recorded(torch, module, args, kwargs)
            _refuse_changing(sizes.used, program)
            _restore_buffers(torch, program)
            return program
        except CompileError:
            raise
        except Exception as error:  # Of any kind, also from the module.
            with _exporting(module):
                _raise_known_error(error, None)
                _refuse_failing(lambda: module(*args, **kwargs))
                raise


def _recorded(torch: Any, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    try:
        program = torch.export.export(module, args, kwargs)
        # Tensors that gradients are taken by become constants without values.
        if not any(
            type(plain(each)).__name__ == "FakeTensor" for each in program.constants.values()
        ):
            return program
    except Exception as error:
        if not computes_gradients(error):
            raise
    return torch.export.export(traced_module(torch, module, args, kwargs), args, kwargs)


def _restore_buffers(torch: Any, program: Any) -> None:
    """Replaces constants of a program that are buffers of the module.

    torch does not recognize a buffer that the module reads through another object, such as the
    layers of a transformers cache, and loses writes to it.
    """
    kinds = torch.export.graph_signature.InputKind
    specs: list[Any] = program.graph_signature.input_specs
    places = [node for node in program.graph.nodes if node.op == "placeholder"]
    values = {**program.state_dict, **program.constants}
    given = [
        (spec, node, _elements_of(values.get(spec.target)))
        for spec, node in zip(list(specs), places, strict=True)
    ]
    buffers = {key: node for spec, node, key in given if spec.kind is kinds.BUFFER and key}
    for spec, node, key in given:
        if spec.kind is not kinds.CONSTANT_TENSOR or key not in buffers:
            continue
        node.replace_all_uses_with(buffers[key])
        program.graph.erase_node(node)
        specs.remove(spec)
        program.constants.pop(spec.target)
    program.graph_module.recompile()


def _elements_of(tensor: Any) -> tuple[Any, ...] | None:
    """Identity of a tensor's elements in memory; None if there are none."""
    if tensor is None or not hasattr(tensor, "data_ptr") or not tensor.data_ptr():
        return None
    return tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride()


_CHANGES = re.compile(r"(?!__)\w+_|__setitem__|__i\w+__")
"""Names of functions that may mutate their first argument."""


@contextmanager
def _without_messages_of_torch() -> Generator[None]:
    """Context that suppresses torch's messages about a failing module.

    The error has all that is useful to the user.
    """
    handlers = [
        handler
        for name, logger in logging.root.manager.loggerDict.items()
        if name.partition(".")[0] == "torch" and isinstance(logger, logging.Logger)
        for handler in logger.handlers
    ]
    said = io.StringIO()

    def keep(_: logging.LogRecord) -> bool:
        return False

    for handler in handlers:
        handler.addFilter(keep)
    try:
        with redirect_stderr(said), warnings.catch_warnings():
            # torch's own use of what it has deprecated.
            warnings.filterwarnings("ignore", r".*treespec", FutureWarning)
            yield
        sys.stderr.write(said.getvalue())
    finally:
        for handler in handlers:
            handler.removeFilter(keep)


def _sizes_by_values(torch: Any, module: Any) -> Any:
    """Mode that computes sizes from the values of buffers and literal tensors during the export.

    torch.export itself makes these sizes unknown.
    """
    buffers = {
        name: each.detach().numpy()
        for name, each in module.named_buffers()
        if each.device.type == "cpu" and not each.is_floating_point() and not each.is_complex()
    }

    mode: Any = torch.overrides.TorchFunctionMode

    class Sizes(mode):
        """Completes calls whose results have value-dependent sizes."""

        def __init__(self) -> None:
            super().__init__()  # pyright: ignore[reportUnknownMemberType]
            self.used: set[str] = set()
            """Buffers whose values determined a size."""
            self.numbers: dict[int, tuple[Any, Any]] = {}
            """Literal tensors by identity, with their values."""

        def __torch_function__(
            self, function: Any, _: Any, args: tuple[Any, ...] = (), kwargs: Any = None
        ) -> Any:
            kwargs = dict(kwargs or {})
            name = getattr(function, "__name__", "")
            if name == "repeat_interleave":
                self.complete_repetition(*args, **kwargs, given=kwargs)
            elif name == "__getitem__" and len(args) == 2:
                args = (args[0], self.without_masks(args[1]))
            made = function(*args, **kwargs)
            if function is torch.tensor:
                self.numbers[id(made)] = made, (args or (kwargs.get("data"),))[0]
            elif args and _CHANGES.fullmatch(name):
                self.numbers.pop(id(args[0]), None)
            return made

        def complete_repetition(
            self, x: Any = None, repeats: Any = None, dim: Any = None, *, given: dict[str, Any],
            **_: Any,
        ) -> None:  # fmt: skip
            """Adds the result's size to the arguments of `repeat_interleave`."""
            counts = self.elements(x if repeats is None else repeats)
            if given.get("output_size") is not None or counts is None:
                return
            length = x.numel() if dim is None else x.shape[dim]
            each = 1 if repeats is None or counts.size > 1 else length
            given["output_size"] = int(counts.sum()) * each

        def without_masks(self, index: Any) -> Any:
            """Replaces masks in an index by the indices that they select."""
            found: list[Any] = []
            parts = cast("tuple[Any, ...]", index) if isinstance(index, tuple) else (index,)
            for part in parts:
                mask = self.elements(part) if _is_mask(torch, part) else None
                if mask is None:
                    found.append(part)
                else:
                    found += (torch.tensor(places.tolist()) for places in np.nonzero(mask))
            return tuple(found) if isinstance(index, tuple) or len(found) > 1 else found[0]

        def elements(self, tensor: Any) -> np.ndarray | None:
            """Elements of a tensor, None if unknown."""
            if not isinstance(tensor, torch.Tensor):
                return None
            if id(tensor) in self.numbers:
                return np.asarray(self.numbers[id(tensor)][1])
            name = next((name for name, each in module.named_buffers() if each is tensor), None)
            if name is not None:
                self.used.add(name)
                return buffers.get(name)
            if type(tensor) is not torch.Tensor or tensor.device.type != "cpu":
                return None
            with torch.utils._python_dispatch._disable_current_modes():
                return tensor.detach().numpy()

    return Sizes()


def _is_mask(torch: Any, index: Any) -> bool:
    return isinstance(index, torch.Tensor) and index.dtype == torch.bool and index.ndim > 0


def _refuse_changing(names: Collection[str], program: Any) -> None:
    """Raises CompileError if the program mutates buffers that determined sizes."""
    inputs = program.graph_signature.inputs_to_buffers
    buffers: dict[Any, str] = {}
    """Nodes that are such a buffer or a view of it."""
    for node in program.graph.nodes:
        if node.op == "placeholder" and inputs.get(node.name) in names:
            buffers[node] = inputs[node.name]
        schema: Any = getattr(node.target, "_schema", None)
        if schema is None or not (operands := node.all_input_nodes):
            continue
        # A call mutates its first operand, and its result may be a view of it.
        name = buffers.get(operands[0])
        if name is not None and schema.is_mutable:
            raise CompileError(
                f"a size depends on the values of '{name}', which the model changes",
                source_of(node),
                remedy="make the size one that does not depend on values",
            )
        if name is not None and schema.returns and schema.returns[0].alias_info is not None:
            buffers[node] = name


def _raise_known_error(error: Exception, function: Callable[..., Any] | None) -> None:
    """Raises CompileError for a known error of torch.export, at its source line or the function."""
    if isinstance(error, CompileError):
        return
    text = f"{type(error).__name__}: {error}"
    for pattern, message, remedy in _SAYINGS:
        if re.search(pattern, text):
            raise CompileError(message, raised_at(error, function), remedy=remedy) from error


def _refuse_failing(call: Callable[[], Any]) -> None:
    """Raises CompileError if a module fails on its example without torch.export as well."""
    try:
        call()
    except Exception as error:  # Whatever the module comes across.
        lines = str(error).strip().splitlines() or [""]
        raise CompileError(
            f"the module fails on its example: {type(error).__name__}: {lines[0]}",
            raised_at(error, None),
            remedy="call module(*example) in Python, and correct the module or the example",
        ) from error


def _exporting(module: Any) -> AbstractContextManager[None]:
    """Context that reports torch's errors at the line of `forward` that causes them."""
    return refusing(
        "torch.export cannot export the module",
        getattr(module, "forward", None),
        "see what torch.export.export(module, args) says; flow of control that depends on the "
        "values of tensors cannot be exported",
    )


@contextmanager
def taking_apart(module: Any) -> Generator[None]:
    """Context of the decomposition of an exported program, with its own error message."""
    refused = refusing(
        "the module was exported, but torch cannot take its operations apart",
        getattr(module, "forward", None),
        "see what torch.export.export(module, args).run_decompositions({}) says",
    )
    with refused, _without_messages_of_torch():
        try:
            yield
        except Exception as error:  # Of any kind.
            _raise_known_error(error, getattr(module, "forward", None))
            raise


def _in_separate_memory(torch: Any, arguments: Any) -> Any:
    """Example arguments in separate memory.

    Views are copied, as torch's guards on their base tensor fail during decomposition. Tensors
    passed twice are copied, as torch.export would merge the two arguments.
    """
    seen: set[int] = set()

    def own(argument: Any) -> Any:
        if not isinstance(argument, torch.Tensor):
            return argument
        copied = argument._base is not None or id(argument) in seen
        seen.add(id(argument))
        return argument.clone() if copied else argument

    return torch.utils._pytree.tree_map(own, arguments)


@dataclass(frozen=True)
class Example:
    """Module with its example arguments."""

    module: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass(frozen=True)
class ExportedFunction:
    """Exported function in supported operations."""

    name: str
    example: Example
    program: Any
    given: Structure
    returned: Structure
    outputs: Sequence[str]

    def changed(self) -> list[str]:
        """Names of the buffers that it mutates."""
        specs = self.program.graph_signature.output_specs
        return [spec.target for spec in specs if spec.kind.name == "BUFFER_MUTATION"]

    def buffers(self) -> dict[str, Any]:
        """All buffers by name."""
        held = {**self.program.constants, **self.program.state_dict}
        specs = self.program.graph_signature.input_specs
        return {s.target: held[s.target] for s in specs if s.kind.name == "BUFFER"}


def shared_buffers(functions: Sequence[ExportedFunction]) -> dict[str, dict[str, str]]:
    """Shared names of the buffers that a function mutates, by function and its own name."""
    names: dict[Any, str] = {}
    for function in functions:
        buffers = function.buffers()
        for target in function.changed():
            place = _place(buffers[target])
            if place not in names:
                taken = target in names.values()
                names[place] = f"{function.name}.{target}" if taken else target
    return {
        function.name: {
            target: names[place]
            for target, tensor in function.buffers().items()
            if (place := _place(tensor)) in names
        }
        for function in functions
    }


def _place(tensor: Any) -> tuple[Any, ...]:
    """Identity of a tensor's memory."""
    held = plain(tensor)
    if type(held).__name__ == "FakeTensor":
        return (id(held),)
    memory = held.untyped_storage().data_ptr() or id(held)
    return memory, held.storage_offset(), tuple(held.shape), held.stride(), held.dtype


def state_of(
    functions: Sequence[ExportedFunction],
    imported: Sequence[Imported],
    names: Mapping[str, Mapping[str, str]],
) -> tuple[StateTensor, ...]:
    """State tensors that the functions keep between calls."""
    arrays: dict[str, Any] = {}
    inputs: dict[str, dict[str, str]] = {}
    outputs: dict[str, dict[str, str]] = {}
    for function, found in zip(functions, imported, strict=True):
        buffers = function.buffers()
        for buffer in found.buffers:
            name = names[function.name][buffer]
            arrays.setdefault(name, buffers[buffer])
            inputs.setdefault(name, {})[function.name] = buffer
            changes = outputs.setdefault(name, {})
            if buffer in found.changed:
                changes[function.name] = changed_label(buffer)
    return tuple(
        StateTensor(name, tensor_array(array), inputs[name], outputs[name])
        for name, array in arrays.items()
    )


def references_of(
    torch: Any,
    functions: Sequence[ExportedFunction],
    imported: Sequence[Imported],
    state: Mapping[str, Mapping[str, str]],
    calls: Sequence[tuple[str, Example]],
) -> list[Reference]:
    """References of calls in sequence, each on the buffers that the calls before it left."""
    values: dict[str, Any] = {}
    found: list[Reference] = []
    pairs = zip(functions, imported, strict=True)
    by_name = {function.name: (function, each) for function, each in pairs}
    for name, example in calls:
        function, each = by_name[name]
        names = state[name]
        given = {buffer: values[names[buffer]] for buffer in names if names[buffer] in values}
        reference, left = _run(torch, replace(function, example=example), each, given)
        found.append(reference)
        values |= {names[buffer]: value for buffer, value in left.items()}
    return found


def _run(
    torch: Any, function: ExportedFunction, imported: Imported, given: Mapping[str, Any]
) -> tuple[Reference, dict[str, Any]]:
    """Runs the module on the example and restores the state that it mutates.

    Args:
        torch: the framework.
        function: the function with its example.
        imported: its translation.
        given: values of buffers for this run.

    Returns:
        Arguments and results, and the values of buffers after the run.
    """
    example, returned = function.example, function.returned
    exported = isinstance(example.module, torch.export.ExportedProgram)
    runnable = example.module.module() if exported else example.module
    arguments = (example.args, example.kwargs)
    try:
        changing = {imported.inputs[i]: value for i, value in function.given.tensors(arguments)}
    except StructureError as error:
        raise CompileError(f"a step of '{function.name}': {error}", called_at()) from None
    buffers = {
        name: value
        for name, value in runnable.named_buffers(remove_duplicate=False)
        if name in imported.buffers
    }
    changing |= buffers
    before = {name: changing[name].clone() for name in {*imported.changed, *buffers}}
    with torch.no_grad():
        for name in buffers.keys() & given.keys():
            buffers[name].copy_(given[name])
        arrays = {name: tensor_array(value).copy() for name, value in changing.items()}
        result = runnable(*example.args, **example.kwargs)
        results = {
            function.outputs[index]: tensor_array(value).copy()
            for index, value in returned.tensors(result)
        }
        for name in imported.changed:
            results[changed_label(name)] = tensor_array(changing[name]).copy()
        left = {name: value.clone() for name, value in buffers.items()}
        for name, value in before.items():
            changing[name].copy_(value)
    return Reference(arrays, results), left
