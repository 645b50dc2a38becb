"""Compiles PyTorch modules.

- `__main__`: `python -m ttcodegen.torch`: compiles a text model from its folder
- `dynamic_shapes`: Dynamic dimensions of PyTorch models, as `torch.export` or an exported program
  declares them
- `exporting`: Export of modules by torch: errors, functions of a project, and their reference
  values
- `flex_attention`: `flex_attention` as ordinary operations: its scores and masks are functions of
  single elements
- `generation`: Compiles decoders of transformers: prefill of several lengths, decode steps and
  sampling
- `gradients`: Export of modules that compute gradients, with `torch.func.grad` for instance
- `pretrained`: Loading of transformers models from folders with a configuration and *.safetensors

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
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack, cast

from ttcodegen.bucketing import DynamicShapes, Lengths
from ttcodegen.emission.interface_description import default_module_name
from ttcodegen.emission.structure import Structure, static
from ttcodegen.foundation.diagnostics import CompileError, Source, SourceLocation
from ttcodegen.framework import (
    CheckError,
    FrameworkFunction,
    FrameworkModel,
    called_at,
    compile_to_project,
    framework,
    refusals_in_full,
)
from ttcodegen.frontends.torch.graph import operation_name, source_of
from ttcodegen.frontends.torch.importing import Imported, has_complex_rule, import_graph
from ttcodegen.frontends.torch.rules import rule_of
from ttcodegen.project.running import Reference, write_module
from ttcodegen.project.settings import Check, ProjectOptions, ProjectSettings
from ttcodegen.torch.dynamic_shapes import bucket_functions, is_dynamic
from ttcodegen.torch.exporting import (
    Example,
    ExportedFunction,
    exported_program,
    references_of,
    shared_buffers,
    state_of,
    taking_apart,
)
from ttcodegen.torch.flex_attention import without_flex_attention
from ttcodegen.torch.gradients import ordinary_module
from ttcodegen.transforms.module_text import module_text

__all__ = ["CheckError", "CompileError", "compile", "export"]

FUNCTION = "forward"


def compile(
    module: Any,
    example_args: Any = (),
    example_kwargs: Mapping[str, Any] | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    name: str | None = None,
    target: str = "ttnn",
    arch: str = "",
    system_desc: str | None = None,
    build: bool = False,
    check: Check = False,
    golden: str | os.PathLike[str] | None = None,
    force: bool = False,
    seed: int | None = None,
    steps: Sequence[Sequence[Any]] = (),
    dynamic_shapes: Any = None,
    lengths: Lengths | None = None,
    padding: Mapping[str, float] | None = None,
    **settings: Unpack[ProjectSettings],
) -> Path:
    """Compiles a module, or several as the functions of one project.

    Parameters become weights in `out`/data by their names in the state dictionary, buffers become
    constants. The program takes tensors of the shapes and types of the example. Functions of one
    project share the weights that are the same tensors, and the buffers that one of them changes.

    Args:
        module: a `torch.nn.Module`, in evaluation mode, or a `torch.export.ExportedProgram`; or a
            dictionary of functions by their names, each a tuple of such a module and its example:
            `{"prefill": (module, args), "decode": (module, args, kwargs)}`.
        example_args: arguments of its `forward`; of several functions, the project's folder.
        example_kwargs: those that are given by name.
        out: the project's folder.
        name: name of the C++ module; by default that of the module's class.
        target: ttnn or ttmetal.
        arch: the card, wormhole_b0 if not given.
        system_desc: the system, as a .ttsys file or the name of a card.
        build: build the project.
        check: build it, run it on the example and compare it with the other meanings, one of them
            what the module itself computes. Functions that share buffers run one after the other,
            each on what those before it left there. `edges`: on inputs from the edges of what
            arguments may hold, too.
        golden: a folder that the example and what the module computes of it are written to, as
            `ttcodegen --check --golden` reads it.
        force: write into an unrelated folder, or overwrite edits.
        seed: the seed of random inputs, for arguments that the example does not give.
        steps: calls that the check makes after one of each function, on what those left in the
            buffers: names of functions, each with arguments, `[("decode", (token,)), ...]`.
        dynamic_shapes: dimensions of arguments that have any size within a range, as
            `torch.export.export` takes them: `{"x": {1: torch.export.Dim("length", max=512)}}`. The
            project has a function for each bucket, and a call takes the smallest that fits. The
            module is refused if its results depend on the padding. An exported program has its own.
        lengths: sizes of buckets, of the only dynamic dimension or by name; if not given, the
            largest size and halves of it.
        padding: values that arguments are padded with, by their names; 0 for others.
        settings: further options of the command line: optimize, weights, overrides, trace, mesh,
            kind and others; see `ttcodegen.project.settings.ProjectSettings`.

    Returns:
        The project's folder, for `ttcodegen.load`.

    Raises:
        CompileError: if the module is not supported, with all that is not, by lines of its code.
        CheckError: if the check finds a difference.
    """
    if isinstance(module, Mapping) and isinstance(example_args, str | os.PathLike):
        out, example_args = cast("str | os.PathLike[str]", example_args), ()
    if out is None:
        raise TypeError("compile() needs the folder of the project, out=...")
    functions = functions_of(module, example_args, example_kwargs)
    called = name or default_module_name(_name(functions))
    run = bool(check) or golden is not None
    dynamic = DynamicShapes(dynamic_shapes, lengths, padding)
    if dynamic.are_given or _is_dynamic(functions):
        if steps:
            raise TypeError("steps are of functions on the buffers of a module, not of buckets")
        model = _bucket_model(functions, dynamic, run=run)
    else:
        model = model_of(functions, run=run, steps=steps if check else ())
    if golden is not None:
        model.write_reference(Path(golden))
    options = ProjectOptions(target, arch, system_desc, build, check, force, seed=seed, **settings)
    return compile_to_project(model, Path(out), called, options)


def _is_dynamic(functions: Mapping[str, Example]) -> bool:
    return any(is_dynamic(framework("torch"), each.module) for each in functions.values())


@refusals_in_full()
def _bucket_model(
    functions: Mapping[str, Example], dynamic: DynamicShapes, *, run: bool
) -> FrameworkModel:
    """Model with dynamic dimensions, as the functions of its buckets."""
    dynamic.refuse_several(len(functions))
    ((name, example),) = functions.items()
    found, buckets, calls = bucket_functions(framework("torch"), name, example, dynamic)
    model = model_of(found, run=run)
    if model.state:
        raise CompileError(
            "dynamic dimensions of a module that changes its buffers are not supported",
            called_at(),
            remedy="give a fixed example, or take what changes as an argument",
        )
    return replace(model, buckets=buckets, bucket_calls=tuple(calls) if run else ())


def export(
    module: Any,
    example_args: Sequence[Any] = (),
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
    model = model_of(functions_of(module, example_args, example_kwargs), run=run)
    if golden is not None:
        model.write_reference(Path(golden))
    if out is not None:
        write_module(Path(out), model.source, model.write_reference)
    return model.source.text


@refusals_in_full()
def functions_of(
    module: Any, args: Sequence[Any], kwargs: Mapping[str, Any] | None
) -> dict[str, Example]:
    """Functions to compile, by name.

    Raises:
        CompileError: if a dictionary is empty or has invalid entries, or named arguments are no
            dictionary.
    """
    if kwargs is not None and not isinstance(cast("object", kwargs), Mapping):
        raise CompileError(
            f"expected a dictionary of arguments by name, found {type(kwargs).__name__}",
            called_at(),
            remedy="a file or folder is given by name: out=...",
        )
    if not isinstance(module, Mapping) or not isinstance(args, tuple) or args:
        arguments = tuple(args) if isinstance(args, (tuple, list)) else (args,)
        return {FUNCTION: Example(module, arguments, dict(kwargs or {}))}
    found: dict[str, Example] = {}
    for name, given in cast("Mapping[Any, Any]", module).items():
        match given:
            case (each, tuple() | list(), *rest) if len(rest) < 2:
                named: dict[str, Any] = dict(rest[0] if rest else {})
                found[str(name)] = Example(each, tuple(cast("Any", given)[1]), named)
            case _:
                raise CompileError(
                    f"function '{name}': expected a module and a tuple of its arguments, found "
                    f"{type(given).__name__}",
                    called_at(),
                    remedy='{"prefill": (module, (tokens,)), "decode": (module, (token,))}',
                )
    if not found:
        raise CompileError("there are no functions to compile", called_at())
    return found


def _name(functions: Mapping[str, Example]) -> str:
    """Class name of the modules; of the first one if they differ."""
    module = next(iter(functions.values())).module
    return type(getattr(module, "graph_module", module)).__name__.lower()


@refusals_in_full()
def model_of(
    functions: Mapping[str, Example], *, run: bool, steps: Sequence[Sequence[Any]] = ()
) -> FrameworkModel:
    torch = framework("torch")
    functions = {
        name: replace(each, module=ordinary_module(torch, each.module))
        for name, each in functions.items()
    }
    exported = [_exported_function(torch, name, each) for name, each in functions.items()]
    state = shared_buffers(exported)
    imported = [
        import_graph(each.program, each.name, each.outputs, state[each.name]) for each in exported
    ]
    calls = [*functions.items(), *(_step(functions, each) for each in steps)] if run else []
    computed = references_of(torch, exported, imported, state, calls)
    references = dict(zip(functions, computed, strict=False))
    further = zip((name for name, _ in calls), computed, strict=True)
    taken = [
        _taken_out(each, found, references.get(each.name, Reference()))
        for each, found in zip(exported, imported, strict=True)
    ]
    module = imported[0].module
    for other in imported[1:]:
        for op in list(other.module.ops):
            op.detach()
            module.body.block.add_op(op)
    source = Source(f"{_name(functions)}.mlir", module_text(module, locations=True))
    return FrameworkModel(
        source,
        tuple(taken),
        state_of(exported, imported, state),
        tuple(further)[len(functions) :],
    )


def _step(functions: Mapping[str, Example], step: Sequence[Any]) -> tuple[str, Example]:
    match step:
        case (str() as name, tuple() | list(), *rest) if name in functions:
            named: dict[str, Any] = dict(rest[0] if rest else {})
            return name, Example(functions[name].module, tuple(step[1]), named)
        case _:
            raise CompileError(
                "a step is not the name of a function and a tuple of its arguments",
                called_at(),
                remedy=f"the functions are {', '.join(functions)}",
            )


def _exported_function(torch: Any, name: str, example: Example) -> ExportedFunction:
    program = exported_program(torch, example.module, example.args, example.kwargs)
    with taking_apart(example.module):
        program = _functional(torch, program)
    given, returned = _structures(torch, program)
    outputs = [each or "output" for _, each in sorted(returned.names(""))]
    given = _renumbered(given, _tensor_places(program))
    return ExportedFunction(name, example, program, given, returned, outputs)


def _taken_out(
    exported: ExportedFunction, imported: Imported, reference: Reference
) -> FrameworkFunction:
    structure = exported.given, exported.returned
    if imported.changed or imported.buffers:
        structure = _with_changes(*structure, imported, len(exported.outputs))
    return FrameworkFunction(exported.name, imported.weights, structure, reference)


def _functional(torch: Any, program: Any) -> Any:
    """Program in functional form, with operations without a rule decomposed as far as possible."""
    program = without_flex_attention(torch, program)
    calls = _calls(program)
    changes = [n for n in calls if getattr(getattr(n.target, "_schema", None), "is_mutable", False)]
    # Decomposition applies function transforms, such as `torch.vmap`.
    transforms = [
        n
        for n in calls
        if "functorch" in str(getattr(n.target, "__module__", ""))
        and rule_of(*operation_name(n.target)) is None
    ]
    # Decomposition makes the conversions of an autocast explicit.
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
    """Indices of the results of an operation that are used."""
    return {user.args[1] for user in node.users if user.target is operator.getitem and user.users}


def _decompositions() -> Any:
    """Module of the project's decompositions, which need torch."""
    return importlib.import_module("ttcodegen.frontends.torch.decompositions")


def _calls(program: Any) -> list[Any]:
    """Calls of a program, including those in subgraphs."""
    graphs = [module.graph for module in program.graph_module.modules() if hasattr(module, "graph")]
    return [node for graph in graphs for node in graph.nodes if node.op == "call_function"]


def parts_of(
    torch: Any, known: Mapping[Any, Any], target: Any, place: SourceLocation | None = None
) -> Any:
    """Decomposition of an ATen operation, or None if there is none.

    It is this project's, torch's for exports (`known`) or for its own compiler, or the composition.
    """
    if getattr(target, "_schema", None) is None:
        return None
    if str(target.namespace) in ("aten", "transformers", "torch_nn"):
        own = _decompositions().decomposition_of(*operation_name(target))
        if own is not None:
            return _refusing_at(place, own)
    if target in known:
        return known[target]
    parts = torch._decomp.decomposition_table.get(target)
    # Those of torch._refs end in another compiler's primitives.
    if getattr(parts, "__module__", "").startswith("torch._decomp"):
        return parts
    composed = torch._C._dispatch_has_kernel_for_dispatch_key(
        target.name(), "CompositeImplicitAutograd"
    )
    return target.decompose if composed else None


def _refusing_at(
    place: SourceLocation | None, decomposition: Callable[..., Any]
) -> Callable[..., Any]:
    """Adds the user's source line to the errors of a decomposition."""

    def located(*arguments: Any, **named: Any) -> Any:
        try:
            return decomposition(*arguments, **named)
        except CompileError as error:
            raise CompileError(
                error.diagnostics[0].message, place, remedy=error.diagnostics[0].remedy
            ) from None

    return located


def _structures(torch: Any, program: Any) -> tuple[Structure, Structure]:
    """Structures of inputs and outputs, with tensors numbered among all leaves."""
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
    """Index of a leaf, distinct from integers of the model."""


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
    """Renumbers the tensors among themselves."""
    if structure.kind == "tensor":
        return Structure("tensor", index=places.index(structure.index))
    parts = tuple(_renumbered(part, places) for part in structure.parts)
    return Structure(structure.kind, 0, structure.value, structure.keys, parts)


def _with_changes(
    given: Structure, returned: Structure, imported: Imported, results: int
) -> tuple[Structure, Structure]:
    """Adds the mutated buffers as the argument `buffers`, by name, and as a second result."""
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
