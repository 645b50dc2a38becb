"""Functions of one project: their modules, the buffers that they share, and what torch computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ttcodegen.emission.description import StateTensor, Structure, StructureError
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.framework import called_at
from ttcodegen.frontends.torch.graph import plain, tensor_array
from ttcodegen.frontends.torch.importing import Imported, changed_label
from ttcodegen.project.running import Reference


@dataclass(frozen=True)
class Example:
    """A module, and what it is exported for."""

    module: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass(frozen=True)
class ExportedFunction:
    """A function, exported and in operations that are known."""

    name: str
    example: Example
    program: Any
    given: Structure
    returned: Structure
    outputs: Sequence[str]

    def changed(self) -> list[str]:
        """Names of the buffers that it changes."""
        specs = self.program.graph_signature.output_specs
        return [spec.target for spec in specs if spec.kind.name == "BUFFER_MUTATION"]

    def buffers(self) -> dict[str, Any]:
        """All buffers by their names."""
        held = {**self.program.constants, **self.program.state_dict}
        specs = self.program.graph_signature.input_specs
        return {s.target: held[s.target] for s in specs if s.kind.name == "BUFFER"}


def shared_buffers(functions: Sequence[ExportedFunction]) -> dict[str, dict[str, str]]:
    """The buffers that one of the functions changes: for each function the names that all of them
    have for its own ones."""
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
    """The memory that a tensor is in, equal for two that are the same."""
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
    """The tensors that the functions keep between calls."""
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
        imported: what became of it.
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
