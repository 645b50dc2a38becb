"""Compiles PyTorch modules.

import ttcodegen.torch

ttcodegen.torch.compile(module, (example,), out="out/", check=True)
model = ttcodegen.load("out/")

Needs torch, which the extra `torch` brings.
"""

from __future__ import annotations

import importlib
import operator
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Unpack

from ttcodegen.emission.description import Structure, static
from ttcodegen.foundation.diagnostics import CompileError, Source, SourceLocation
from ttcodegen.framework import (
    CheckError,
    FrameworkModel,
    called_at,
    compile_to_project,
    framework,
    refusals_in_full,
    refusing,
)
from ttcodegen.frontends.torch.graph import tensor_array
from ttcodegen.frontends.torch.importing import (
    Imported,
    changed_label,
    has_complex_rule,
    import_graph,
    operation_name,
    source_of,
)
from ttcodegen.frontends.torch.rules import rule_of
from ttcodegen.project.reference import Reference, write_module, write_reference
from ttcodegen.project.settings import ProjectOptions, ProjectSettings
from ttcodegen.transforms.module_text import module_text

__all__ = ["CheckError", "CompileError", "compile", "export"]

FUNCTION = "forward"


def compile(
    module: Any,
    example_args: Sequence[Any],
    example_kwargs: Mapping[str, Any] | None = None,
    *,
    out: str | os.PathLike[str],
    name: str | None = None,
    target: str = "ttnn",
    arch: str = "",
    system_desc: str | None = None,
    build: bool = False,
    check: bool = False,
    golden: str | os.PathLike[str] | None = None,
    force: bool = False,
    seed: int = 0,
    **settings: Unpack[ProjectSettings],
) -> Path:
    """Compiles a module to a C++ project.

    Parameters become weights in `out`/data by their names in the state dictionary, buffers become
    constants. The program takes tensors of the shapes and types of the example.

    Args:
        module: a `torch.nn.Module`, in evaluation mode, or a `torch.export.ExportedProgram`.
        example_args: arguments of its `forward`.
        example_kwargs: those that are given by name.
        out: the project's folder.
        name: what the C++ module is called; the name of the module's class if not given.
        target: ttnn or ttmetal.
        arch: the card, wormhole_b0 if not given.
        system_desc: the system, as a .ttsys file or the name of a card.
        build: build the project.
        check: build it, run it on the example and compare it with the other meanings, one of them
            what the module itself computes.
        golden: a folder that the example and what the module computes of it are written to, as
            `ttcodegen --check --golden` reads it.
        force: write into a folder of others, or overwrite edits.
        seed: the seed of random inputs, for arguments that the example does not give.
        settings: further options of the command line: optimize, weights, overrides, trace, mesh,
            kind and others; see `ttcodegen.project.settings.ProjectSettings`.

    Returns:
        The project's folder, for `ttcodegen.load`.

    Raises:
        CompileError: if the module is not supported, with all that is not, by lines of its code.
        CheckError: if the check finds a difference.
    """
    model = _model(module, example_args, example_kwargs, run=check or golden is not None)
    if golden is not None:
        write_reference(Path(golden), model.with_weights())
    options = ProjectOptions(target, arch, system_desc, build, check, force, seed=seed, **settings)
    return compile_to_project(model, Path(out), name or _name(module), options)


def export(
    module: Any,
    example_args: Sequence[Any],
    example_kwargs: Mapping[str, Any] | None = None,
    *,
    golden: str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] | None = None,
) -> str:
    """The module as text of TTIR, for the programs of the command line.

    Args:
        module: as for `compile`.
        example_args: arguments of its `forward`.
        example_kwargs: those that are given by name.
        golden: a folder for weights, example and results, as `ttcodegen --check --golden` reads it.
        out: a file for the text; weights, example and results are written beside it, where
            `ttcodegen --check` finds them: MODEL.golden of MODEL.mlir.

    Raises:
        CompileError: if the module is not supported.
    """
    run = golden is not None or out is not None
    model = _model(module, example_args, example_kwargs, run=run)
    if golden is not None:
        write_reference(Path(golden), model.with_weights())
    if out is not None:
        write_module(Path(out), model.source, model.with_weights())
    return model.source.text


def _name(module: Any) -> str:
    return type(getattr(module, "graph_module", module)).__name__.lower()


@refusals_in_full()
def _model(
    module: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None,
    *,
    run: bool,
) -> FrameworkModel:
    torch = framework("torch")
    arguments = tuple(args) if isinstance(args, (tuple, list)) else (args,)
    named = dict(kwargs or {})
    program = _exported(torch, module, arguments, named)
    with _taking_apart(module):
        program = _functional(torch, program)
    given, returned = _structures(torch, program)
    outputs = [name or "output" for _, name in sorted(returned.names(""))]
    imported = import_graph(program, FUNCTION, outputs)
    given = _renumbered(given, _tensor_places(program))
    reference = Reference()
    if run:
        reference = _run(torch, module, arguments, named, given, imported, outputs, returned)
    if imported.changed:
        given, returned = _with_changes(given, returned, imported, len(outputs))
    name = _name(module)
    source = Source(f"{name}.mlir", module_text(imported.module, locations=True))
    return FrameworkModel(source, FUNCTION, imported.weights, (given, returned), reference)


def _exported(torch: Any, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The program that was given, or that the module is."""
    if isinstance(module, torch.export.ExportedProgram):
        return module
    if not isinstance(module, torch.nn.Module):
        raise CompileError(
            f"expected a torch.nn.Module, found {type(module).__name__}",
            called_at(),
            remedy="put functions into the forward method of a module",
        )
    with _exporting(module), torch.no_grad():
        args, kwargs = _with_own_memory(torch, (args, kwargs))
        return torch.export.export(module, args, kwargs)


def _with_own_memory(torch: Any, arguments: Any) -> Any:
    """Example arguments, each of its own memory.

    Views are copied: guards of torch's on their base tensor fail when operations are taken apart,
    where there is none. So is a tensor that is given twice: torch.export would take the two for
    one argument, for all values that the program is called with.
    """
    seen: set[int] = set()

    def own(argument: Any) -> Any:
        if not isinstance(argument, torch.Tensor):
            return argument
        copied = argument._base is not None or id(argument) in seen
        seen.add(id(argument))
        return argument.clone() if copied else argument

    return torch.utils._pytree.tree_map(own, arguments)


def _exporting(module: Any) -> AbstractContextManager[None]:
    """While torch works on a module: what it raises is refused where `forward` causes it."""
    return refusing(
        "torch.export cannot export the module",
        getattr(module, "forward", None),
        "see what torch.export.export(module, args) says; flow of control that depends on the "
        "values of tensors cannot be exported",
    )


def _taking_apart(module: Any) -> AbstractContextManager[None]:
    """While torch takes the operations of an exported program apart: the export is no longer to
    blame."""
    return refusing(
        "the module was exported, but torch cannot take its operations apart",
        getattr(module, "forward", None),
        "see what torch.export.export(module, args).run_decompositions({}) says",
    )


def _functional(torch: Any, program: Any) -> Any:
    """The program without operations that change tensors in place; those that there is no rule for
    are taken apart, where torch says how, until nothing is left of them that it does."""
    calls = _calls(program)
    changes = [n for n in calls if getattr(getattr(n.target, "_schema", None), "is_mutable", False)]
    # What transforms functions, as `torch.vmap` does, is carried out.
    transforms = [
        n
        for n in calls
        if "functorch" in str(getattr(n.target, "__module__", ""))
        and rule_of(*operation_name(n.target)) is None
    ]
    # An autocast converts what operations inside of it are given.
    casts = [n for n in calls if operation_name(n.target)[0] == "wrap_with_autocast" and n.args[2]]
    if changes or transforms or casts:
        program = program.run_decompositions({})
    known = torch.export.default_decompositions()
    replaces_rule = _decompositions().replaces_rule
    tried: Counter[Any] = Counter()  # Others may be taken apart into what was taken apart before.
    while True:
        unknown = {
            node.target: parts
            for node in _calls(program)
            if tried[node.target] < 2
            and not has_complex_rule(node)
            and (
                rule_of(*operation_name(node.target)) is None
                or replaces_rule(*operation_name(node.target), node.args, _used_results(node))
            )
            and (parts := parts_of(torch, known, node.target, source_of(node))) is not None
        }
        if not unknown:
            return program
        tried.update(unknown.keys())
        program = program.run_decompositions(unknown)


def _used_results(node: Any) -> set[int]:
    """Indices of the results of an operation that are read."""
    return {user.args[1] for user in node.users if user.target is operator.getitem and user.users}


def _decompositions() -> Any:
    """This project's decompositions, written in torch."""
    return importlib.import_module("ttcodegen.frontends.torch.decompositions")


def _calls(program: Any) -> list[Any]:
    """The calls of a program, those of the graphs that operations hold among them."""
    graphs = [module.graph for module in program.graph_module.modules() if hasattr(module, "graph")]
    return [node for graph in graphs for node in graph.nodes if node.op == "call_function"]


def parts_of(
    torch: Any, known: Mapping[Any, Any], target: Any, place: SourceLocation | None = None
) -> Any:
    """Returns the decomposition of an ATen operation, or None if there is none.

    It is this project's, torch's for exports (`known`) or for its own compiler, or the composition.
    """
    if getattr(target, "_schema", None) is None:
        return None
    if str(target.namespace) in ("aten", "transformers"):
        own = _decompositions().decomposition_of(*operation_name(target))
        if own is not None:
            return _refusing_at(place, own)
    if target in known:
        return known[target]
    parts = torch._decomp.decomposition_table.get(target)
    # Those of torch._refs end in the primitives of another compiler.
    if getattr(parts, "__module__", "").startswith("torch._decomp"):
        return parts
    composed = torch._C._dispatch_has_kernel_for_dispatch_key(
        target.name(), "CompositeImplicitAutograd"
    )
    return target.decompose if composed else None


def _refusing_at(
    place: SourceLocation | None, decomposition: Callable[..., Any]
) -> Callable[..., Any]:
    """A decomposition that refuses what it cannot take apart at a line of the user."""

    def located(*arguments: Any, **named: Any) -> Any:
        try:
            return decomposition(*arguments, **named)
        except CompileError as error:
            raise CompileError(
                error.diagnostics[0].message, place, remedy=error.diagnostics[0].remedy
            ) from None

    return located


def _structures(torch: Any, program: Any) -> tuple[Structure, Structure]:
    """Nesting of inputs and outputs; tensors are counted with all other leaves."""
    pytree = torch.utils._pytree
    call = program.call_spec
    signature = program.graph_signature

    def structure(spec: Any, leaves: Sequence[Any]) -> Structure:
        tree = pytree.tree_unflatten([_Leaf(i) for i in range(spec.num_leaves)], spec)
        return Structure.of(tree, lambda leaf: _leaf(leaves, leaf))

    inputs = [s.arg for s in signature.input_specs if s.kind.name == "USER_INPUT"]
    outputs = [s.arg for s in signature.output_specs if s.kind.name == "USER_OUTPUT"]
    returned = structure(call.out_spec, outputs)
    places = [i for i, each in enumerate(outputs) if not hasattr(each, "value")]
    return structure(call.in_spec, inputs), _renumbered(returned, places)


class _Leaf(int):
    """The place of a leaf, distinct from integers of the model."""


def _leaf(arguments: Sequence[Any], leaf: Any) -> Structure:
    if not isinstance(leaf, _Leaf):
        raise CompileError(
            f"arguments and results of type {type(leaf).__name__} are not supported",
            called_at(),
            remedy="use tuples, lists and dictionaries of tensors",
        )
    argument = arguments[leaf]
    if hasattr(argument, "value"):
        return Structure("value") if argument.value is None else static(argument.value)
    return Structure("tensor", index=int(leaf))


def _tensor_places(program: Any) -> list[int]:
    """Indices of the input leaves that are tensors."""
    specs = program.graph_signature.input_specs
    inputs = [spec.arg for spec in specs if spec.kind.name == "USER_INPUT"]
    return [place for place, each in enumerate(inputs) if not hasattr(each, "value")]


def _renumbered(structure: Structure, places: Sequence[int]) -> Structure:
    """With the tensors counted by themselves."""
    if structure.kind == "tensor":
        return Structure("tensor", index=places.index(structure.index))
    parts = tuple(_renumbered(part, places) for part in structure.parts)
    return Structure(structure.kind, 0, structure.value, structure.keys, parts)


def _with_changes(
    given: Structure, returned: Structure, imported: Imported, results: int
) -> tuple[Structure, Structure]:
    """Buffers that change are the argument `buffers`, by their names; the result becomes a pair of
    the model's own and of all that changed."""
    buffers = imported.buffers
    args, kwargs = given.parts
    if "buffers" in kwargs.keys and buffers:
        raise CompileError(
            "a model that changes buffers has an argument 'buffers' of its own",
            remedy="rename that argument",
        )
    if buffers:
        leaves = tuple(Structure("tensor", index=imported.inputs.index(name)) for name in buffers)
        state = Structure("dict", keys=tuple(buffers), parts=leaves)
        kwargs = Structure("dict", keys=(*kwargs.keys, "buffers"), parts=(*kwargs.parts, state))
    leaves = tuple(Structure("tensor", index=results + i) for i in range(len(imported.changed)))
    changed = Structure("dict", keys=tuple(imported.changed), parts=leaves)
    return Structure("tuple", parts=(args, kwargs)), Structure("tuple", parts=(returned, changed))


def _run(
    torch: Any,
    module: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    given: Structure,
    imported: Imported,
    outputs: Sequence[str],
    returned: Structure,
) -> Reference:
    """Runs the module on the example and restores the state that it mutates."""
    exported = isinstance(module, torch.export.ExportedProgram)
    runnable = module.module() if exported else module
    changing = {imported.inputs[index]: value for index, value in given.tensors((args, kwargs))}
    changing |= {
        name: value for name, value in runnable.named_buffers() if name in imported.buffers
    }
    arrays = {name: tensor_array(value).copy() for name, value in changing.items()}
    before = {name: changing[name].clone() for name in imported.changed}
    with torch.no_grad():
        result = runnable(*args, **kwargs)
    results = {
        outputs[index]: tensor_array(value).copy() for index, value in returned.tensors(result)
    }
    for name in imported.changed:
        results[changed_label(name)] = tensor_array(changing[name]).copy()
    with torch.no_grad():
        for name, value in before.items():
            changing[name].copy_(value)
    return Reference(arrays, results)
