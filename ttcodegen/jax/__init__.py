"""Compiles functions of JAX.

import ttcodegen.jax

ttcodegen.jax.compile(function, example, params=params, out="out/", check=True)
model = ttcodegen.load("out/")

Needs jax, which the extra `jax` brings.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack, cast

import numpy as np

from ttcodegen.bucketing import DynamicShapes, Lengths
from ttcodegen.emission.interface_description import default_module_name
from ttcodegen.emission.structure import Structure, static
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.framework import (
    CheckError,
    FrameworkFunction,
    FrameworkModel,
    called_at,
    compile_to_project,
    defined_at,
    framework,
    joined_models,
    refusals_in_full,
    refusing,
)
from ttcodegen.jax.dynamic_shapes import (
    FORWARD,
    DynamicExample,
    bucket_examples,
    has_symbolic_dimensions,
)
from ttcodegen.project.running import Reference, write_module
from ttcodegen.project.settings import Check, ProjectOptions, ProjectSettings

__all__ = ["CheckError", "CompileError", "compile", "export"]

_FUNCTION = "main"


def compile(
    function: Any,
    *example_args: Any,
    out: str | os.PathLike[str] | None = None,
    static: Sequence[int] = (),
    params: Any = None,
    name: str | None = None,
    target: str = "ttnn",
    arch: str = "",
    system_desc: str | None = None,
    build: bool = False,
    check: Check = False,
    golden: str | os.PathLike[str] | None = None,
    force: bool = False,
    seed: int | None = None,
    dynamic_shapes: Any = None,
    lengths: Lengths | None = None,
    padding: Mapping[str, float] | None = None,
    **settings: Unpack[ProjectSettings],
) -> Path:
    """Compiles a function, or several, to a C++ project.

    The program takes and gives what the function does, in tuples, lists and dictionaries; its
    arrays have the shapes and types of the example.

    Args:
        function: a function of arrays; with `params`, these are its first argument. Or a dictionary
            of functions by their names, each a tuple of a function and its arguments:
            `{"prefill": (prefill, args), "decode": (decode, args)}`, which share the parameters.
        example_args: the other arguments, in order; of several functions, the project's folder.
            Where nothing is run (neither `check` nor `golden`), shapes and types suffice:
            `jax.ShapeDtypeStruct`.
        out: the project's folder.
        static: which of `example_args`, counted from 0, are no arrays: the program is compiled for
            their values.
        params: a tree of parameters. They become weights in `out`/data, called by their paths in
            the tree: `Dense_0.kernel`.
        name: name of the C++ module; by default that of the function.
        target: ttnn or ttmetal.
        arch: the card, wormhole_b0 if not given.
        system_desc: the system, as a .ttsys file or the name of a card.
        build: build the project.
        check: build it, run it on the example and compare it with the other meanings, one of them
            what the function itself computes; `edges`: on inputs from the edges, too.
        golden: a folder that arguments and results are written to, as `ttcodegen --check --golden`
            reads it.
        force: write into an unrelated folder, or overwrite edits.
        seed: the seed of random inputs, for arguments that the example does not give.
        dynamic_shapes: dimensions of `example_args` that have any size within a range: for each
            argument, as `jax.export.symbolic_args_specs` takes them, `("batch, length", None)`. Or
            the example has symbolic dimensions of `jax.export.symbolic_shape` itself. The project
            has a function for each bucket, and a call takes the smallest that fits. The function is
            refused if its results depend on the padding.
        lengths: sizes of buckets, of the only dynamic dimension or by name; if not given, the
            largest size that a constraint allows, and halves of it.
        padding: values that arguments are padded with, by their names; 0 for others.
        settings: further options of the command line: optimize, weights, overrides, trace, mesh,
            kind and others; see `ttcodegen.project.settings.ProjectSettings`.

    Returns:
        The project's folder, for `ttcodegen.load`.

    Raises:
        CompileError: if the function is not supported, with all that is not.
        CheckError: if the check finds a difference.
    """
    if isinstance(function, Mapping) and len(example_args) == 1:
        (out,), example_args = example_args, ()
    if out is None:
        raise TypeError("compile() needs the folder of the project, out=...")
    run = bool(check) or golden is not None
    dynamic = DynamicShapes(dynamic_shapes, lengths, padding)
    if isinstance(function, Mapping):
        functions = cast("Mapping[str, Any]", function)
        if dynamic.are_given or has_symbolic_dimensions(framework("jax"), functions):
            dynamic.refuse_several(2)
        model = _models(functions, tuple(static), params, run=run)
        first: Any = next(iter(functions.values()))[0]
    elif dynamic.are_given or has_symbolic_dimensions(framework("jax"), example_args):
        model = _bucket_model(function, example_args, tuple(static), params, dynamic, run=run)
        first = function
    else:
        model, first = _model(function, example_args, tuple(static), params, run=run), function
    if golden is not None:
        model.write_reference(Path(golden))
    function_name = re.sub(r"\W+", "", getattr(first, "__name__", ""))
    called = name or default_module_name(function_name or "model")
    options = ProjectOptions(target, arch, system_desc, build, check, force, seed=seed, **settings)
    return compile_to_project(model, Path(out), called, options)


def export(
    function: Any,
    *example_args: Any,
    static: Sequence[int] = (),
    params: Any = None,
    golden: str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] | None = None,
) -> str:
    """The StableHLO of a function, with names for arguments and results, as `compile` reads it.

    Args:
        function: as for `compile`.
        example_args: the other arguments, in order.
        static: which of them are no arrays.
        params: a tree of parameters.
        golden: a folder for weights, example and results, as `ttcodegen --check --golden` reads it.
        out: a file for the text; weights, example and results are written beside it, where
            `ttcodegen --check` finds them: MODEL.golden of MODEL.mlir.

    Raises:
        CompileError: if jax cannot lower the function.
    """
    run = golden is not None or out is not None
    model = _model(function, example_args, tuple(static), params, run=run)
    if golden is not None:
        model.write_reference(Path(golden))
    if out is not None:
        write_module(Path(out), model.source, model.write_reference)
    return model.source.text


@refusals_in_full()
def _models(
    functions: Mapping[str, Any], static_places: tuple[int, ...], params: Any, *, run: bool
) -> FrameworkModel:
    """Several functions as one module.

    Raises:
        CompileError: if one has no arguments, or is not supported.
    """
    models: dict[str, FrameworkModel] = {}
    for name, given in functions.items():
        match given:
            case (function, tuple() | list()):
                args: tuple[Any, ...] = tuple(cast("Any", given)[1])
                models[str(name)] = _model(function, args, static_places, params, run=run)
            case _:
                raise CompileError(
                    f"function '{name}': expected a function and a tuple of its arguments, found "
                    f"{type(given).__name__}",
                    called_at(),
                    remedy='{"prefill": (prefill, (tokens,)), "decode": (decode, (token,))}',
                )
    if not models:
        raise CompileError("there are no functions to compile", called_at())
    return joined_models(models)


@refusals_in_full()
def _bucket_model(
    function: Any,
    args: tuple[Any, ...],
    static_places: tuple[int, ...],
    params: Any,
    dynamic: DynamicShapes,
    *,
    run: bool,
) -> FrameworkModel:
    """Function with dynamic dimensions, as the functions of its buckets."""
    jax = framework("jax")
    given = {place: value for place, value in enumerate(args) if place not in static_places}
    names = _argument_names(jax, function, args, given, params)
    example = DynamicExample(args, tuple(given), names)

    def called(arguments: Sequence[Any]) -> Any:
        return function(*arguments) if params is None else function(params, *arguments)

    place = defined_at(function) if callable(function) else called_at()
    found, buckets, calls = bucket_examples(jax, FORWARD, called, example, dynamic, place)
    models = {
        name: _model(function, each, static_places, params, run=run) for name, each in found.items()
    }
    return replace(joined_models(models), buckets=buckets, bucket_calls=tuple(calls) if run else ())


@refusals_in_full()
def _model(
    function: Any,
    args: tuple[Any, ...],
    static_places: tuple[int, ...],
    params: Any,
    *,
    run: bool,
) -> FrameworkModel:
    jax = framework("jax")
    if not callable(function):
        raise CompileError(
            f"expected a function, found {type(function).__name__}",
            called_at(),
            remedy="give a function of arrays; of a module of flax, its method `apply`",
        )
    given = {place: value for place, value in enumerate(args) if place not in static_places}

    def called(params: Any, *arrays: Any) -> Any:
        rest = iter(arrays)
        all_ = [next(rest) if place in given else value for place, value in enumerate(args)]
        return function(*all_) if params is None else function(params, *all_)

    arrays = tuple(given.values())
    exported, result = _exported(jax, function, called, params, arrays)
    returned = _numbered(jax, result)
    labels = [label or "output" for _, label in sorted(returned.names(""))]
    if not labels:
        raise CompileError(
            "the function returns no arrays",
            defined_at(function),
            remedy="return the results of the program",
        )
    names = _argument_names(jax, function, args, given, params)
    weights = {
        _unambiguous(_path(path), names): _array(jax, leaf)
        for path, leaf in jax.tree_util.tree_flatten_with_path(params)[0]
    }
    structure = (_inputs_structure(jax, args, given), returned)
    text = _named(exported, [*weights, *names], len(weights), labels)
    reference = Reference()
    if run:
        inputs = [_array(jax, leaf) for leaf in jax.tree_util.tree_leaves(arrays)]
        outputs = _outputs(jax, function, called, params, arrays)
        reference = Reference(
            dict(zip(names, inputs, strict=True)), dict(zip(labels, outputs, strict=True))
        )
    source = Source(f"{getattr(function, '__name__', 'model')}.mlir", text)
    taken = FrameworkFunction(_FUNCTION, weights, structure, reference)
    return FrameworkModel(source, (taken,))


def _exported(
    jax: Any, function: Any, called: Any, params: Any, arrays: tuple[Any, ...]
) -> tuple[str, Any]:
    """Lowers the function; returns its StableHLO with locations, and its result tree."""
    remedy = (
        "see what jax.jit(function).lower(...) says; arguments that decide about shapes or the "
        "flow of control have to be static"
    )
    with refusing("jax cannot lower the function", function, remedy):
        lowered = jax.jit(called, keep_unused=True).lower(params, *arrays)
        return str(lowered.as_text(debug_info=True)), lowered.out_info


def _outputs(
    jax: Any, function: Any, called: Any, params: Any, arrays: tuple[Any, ...]
) -> list[np.ndarray]:
    """Computes the outputs of the function for the example."""
    remedy = "compile without check and golden, which compare with what jax computes"
    with refusing("jax cannot run the function", function, remedy):
        return [_array(jax, leaf) for leaf in jax.tree_util.tree_leaves(called(params, *arrays))]


def _array(jax: Any, leaf: Any) -> np.ndarray:
    """Elements of a leaf; for a random key, its integers.

    Raises:
        CompileError: if only the shape is given.
    """
    dtype = getattr(leaf, "dtype", None)
    if dtype is not None and jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    if isinstance(leaf, jax.ShapeDtypeStruct):
        raise CompileError(
            f"an array is needed, found the shape and type of one: {leaf}",
            called_at(),
            remedy="give arrays as parameters, and as example where the program is checked",
        )
    if np.ma.is_masked(leaf):
        raise CompileError(
            "elements of an array are masked", called_at(), remedy="fill them (.filled(value))"
        )
    return np.asarray(leaf)


def _path(path: Sequence[Any]) -> str:
    """Dotted path of a leaf, without flax's collection `params`."""
    keys = [str(getattr(k, "key", getattr(k, "name", getattr(k, "idx", k)))) for k in path]
    if len(keys) > 1 and keys[0] == "params":
        keys = keys[1:]
    return ".".join(keys) or "params"


def _unambiguous(weight: str, names: Sequence[str]) -> str:
    """Weight name without a clash with arguments."""
    return f"params.{weight}" if weight in names else weight


def _argument_names(
    jax: Any, function: Any, args: tuple[Any, ...], given: Mapping[int, Any], params: Any
) -> list[str]:
    """Names of the array arguments, after the function's parameters."""
    import inspect

    try:
        parameters = [p.name for p in inspect.signature(function).parameters.values()
                      if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]  # fmt: skip
    except (TypeError, ValueError):
        parameters = []
    parameters = parameters[0 if params is None else 1 :]
    names: list[str] = []
    for place in given:
        base = parameters[place] if place < len(parameters) else f"arg{place}"
        for path, _ in jax.tree_util.tree_flatten_with_path(given[place])[0]:
            rest = _path(path) if path else ""
            names.append(f"{base}.{rest}" if rest else base)
    return names


def _numbered(jax: Any, tree: Any, first: int = 0) -> Structure:
    """Structure of a jax tree, with leaves numbered in jax's order."""
    leaves, shape = jax.tree_util.tree_flatten(tree)
    numbered = jax.tree_util.tree_unflatten(shape, [_Leaf(first + i) for i in range(len(leaves))])
    return Structure.of(numbered, _leaf)


class _Leaf(int):
    """Index of a leaf, distinct from integers of the tree."""


def _leaf(value: Any) -> Structure:
    if isinstance(value, _Leaf):
        return Structure("tensor", index=int(value))
    raise CompileError(
        f"arguments and results of type {type(value).__name__} are not supported",
        called_at(),
        remedy="use tuples, lists and dictionaries of arrays",
    )


def _inputs_structure(jax: Any, args: tuple[Any, ...], given: Mapping[int, Any]) -> Structure:
    parts: list[Structure] = []
    count = 0
    for place, value in enumerate(args):
        if place not in given:
            parts.append(Structure("value") if value is None else static(value))
            continue
        parts.append(_numbered(jax, value, count))
        count += len(jax.tree_util.tree_leaves(value))
    return Structure("tuple", parts=(Structure("tuple", parts=tuple(parts)), Structure("dict")))


_MAIN = re.compile(r"func\.func public @main\((.*?)\) -> \((.*?)\) \{\s*$", re.MULTILINE)
_ARGUMENT = re.compile(r"(%arg\d+: tensor<(?:[^<>]|<[^<>]*>)*>)(?: \{((?:[^{}\"]|\"[^\"]*\")*)\})?")
_RESULT = re.compile(r"(tensor<(?:[^<>]|<[^<>]*>)*>)(?: \{((?:[^{}\"]|\"[^\"]*\")*)\})?")


def _named(text: str, names: Sequence[str], weights: int, outputs: Sequence[str]) -> str:
    """Adds names and kinds of arguments, and names of results, to the text."""
    match = _MAIN.search(text)
    if match is None:
        raise CompileError("the StableHLO of the function has no @main")
    labels = iter(enumerate(names))

    def argument(found: re.Match[str]) -> str:
        index, name = next(labels)
        kind = "parameter" if index < weights else "input"
        return (
            f"{found.group(1)} {{ttcore.argument_type = #ttcore.argument_type<{kind}>, "
            f'ttir.name = "{name}"}}'
        )

    results = iter(outputs)
    head = text[: match.start(1)]
    arguments = _ARGUMENT.sub(argument, match.group(1))
    returned = _RESULT.sub(lambda f: f'{f.group(1)} {{ttir.name = "{next(results)}"}}',
                           match.group(2))  # fmt: skip
    middle = text[match.end(1) : match.start(2)]
    return f"{head}{arguments}{middle}{returned}{text[match.end(2) :]}"
