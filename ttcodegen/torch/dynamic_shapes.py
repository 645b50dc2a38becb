"""Dynamic dimensions of PyTorch models, as `torch.export` or an exported program declares them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from ttcodegen.bucketing import (
    ArrayFunctions,
    BucketCall,
    DynamicModel,
    DynamicShapes,
    GivenDimension,
    buckets_of,
    dynamic_dimensions,
    linear,
)
from ttcodegen.emission.buckets import Buckets, Extent
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.framework import called_at, defined_at
from ttcodegen.frontends.torch.graph import plain, tensor_array
from ttcodegen.torch.exporting import Example

_NAMED = "torch.export.Dim('length', max=512)"


@dataclass(frozen=True)
class _Dimensions:
    """Sizes of the input tensors, and their dynamic dimensions by name."""

    extents: list[tuple[Extent, ...]]
    given: dict[str, GivenDimension]


def is_dynamic(torch: Any, module: Any) -> bool:
    """Returns whether a module is an exported program with dynamic dimensions."""
    if not isinstance(module, torch.export.ExportedProgram):
        return False
    return any(not isinstance(size, int) for value in _input_values(module) for size in value.shape)


def bucket_functions(
    torch: Any,
    name: str,
    example: Example,
    given: DynamicShapes,
) -> tuple[dict[str, Example], Buckets, list[BucketCall]]:
    """Functions of a model with dynamic dimensions, one per bucket.

    Args:
        torch: the framework.
        name: the function's name, the prefix of those of buckets.
        example: the module and an example of any size.
        given: shapes in `torch.export.export`'s form, none for an exported program.

    Raises:
        CompileError: if dimensions are declared incorrectly, or outputs depend on padding.
    """
    pytree = torch.utils._pytree
    leaves, tree = pytree.tree_flatten((example.args, example.kwargs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    module = example.module
    if isinstance(module, torch.export.ExportedProgram):
        if given.shapes is not None:
            raise CompileError(
                "the dynamic shapes of an exported program are those that it was exported with",
                called_at(),
                remedy="leave dynamic_shapes out",
            )
        found = _of_program(module)
        module = module.module()
    else:
        found = _of_arguments(torch, example, given.shapes)
    if not found.given:
        raise CompileError(
            "dynamic_shapes names no dynamic dimension", called_at(), remedy=f"use {_NAMED}"
        )
    place = defined_at(getattr(example.module, "forward", example.module)) or called_at()
    dimensions = dynamic_dimensions(list(found.given.values()), given.lengths, place)

    def arguments(tensors: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        changed = list(leaves)
        for index, tensor in zip(places, tensors, strict=True):
            changed[index] = tensor
        args, kwargs = pytree.tree_unflatten(changed, tree)
        return args, kwargs

    def run(tensors: Sequence[Any]) -> list[Any]:
        args, kwargs = arguments(tensors)
        with torch.no_grad():
            try:
                result = module(*args, **kwargs)
            except Exception as error:  # Whatever the module comes across.
                lines = str(error).strip().splitlines() or [""]
                raise CompileError(
                    f"the module fails on its example in another size: {type(error).__name__}: "
                    f"{lines[0]}",
                    place,
                    remedy="declare the sizes that it takes: torch.export.Dim(name, min=, max=)",
                ) from error
        return [each for each in pytree.tree_leaves(result) if isinstance(each, torch.Tensor)]

    names = _tensor_names(torch, example)
    model = DynamicModel(
        name,
        run,
        [plain(leaves[i]) for i in places],
        names,
        found.extents,
        _array_functions(torch),
        place,
    )
    buckets, calls = buckets_of(model, dimensions, given.padding or {})
    functions: dict[str, Example] = {}
    for bucket in buckets.all_buckets():
        args, kwargs = arguments(model.inputs(bucket))
        functions[buckets.function(bucket)] = Example(module, args, kwargs)
    return functions, buckets, calls


def _array_functions(torch: Any) -> ArrayFunctions:
    def resize(tensor: Any, axis: int, size: int) -> Any:
        return tensor.index_select(axis, torch.arange(size) % max(tensor.shape[axis], 1))

    def pad(tensor: Any, axis: int, size: int, value: float) -> Any:
        shape = [*tensor.shape]
        shape[axis] = size - shape[axis]
        return torch.cat([tensor, torch.full(shape, value, dtype=tensor.dtype)], axis)

    def to_numpy(tensor: Any) -> np.ndarray:
        return np.array(tensor_array(tensor))

    return ArrayFunctions(lambda tensor: tuple(map(int, tensor.shape)), resize, pad, to_numpy)


def _tensor_names(torch: Any, example: Example) -> list[str]:
    """Names of the tensor arguments, by their parameters."""
    if isinstance(example.module, torch.export.ExportedProgram):
        specs = example.module.graph_signature.input_specs
        inputs = [spec.arg for spec in specs if spec.kind.name == "USER_INPUT"]
        return [each.name for each in inputs if not hasattr(each, "value")]
    pytree = torch.utils._pytree
    named = _named_arguments(example)
    return [
        key if not path else f"{key}{pytree.keystr(path)}"
        for key, value in named.items()
        for path, leaf in pytree.tree_flatten_with_path(value)[0]
        if isinstance(leaf, torch.Tensor)
    ]


def _named_arguments(example: Example) -> dict[str, Any]:
    """Arguments by parameter name, in order."""
    module = example.module
    forward = getattr(module, "forward", None)
    names: list[str] = []
    if forward is not None:
        parameters = inspect.signature(forward).parameters.values()
        names = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    names += [f"args_{i}" for i in range(len(names), len(example.args))]
    return {**dict(zip(names, example.args, strict=False)), **example.kwargs}


def _of_arguments(torch: Any, example: Example, shapes: Any) -> _Dimensions:
    """Dimensions in `torch.export.export`'s form."""
    named = _named_arguments(example)
    if isinstance(shapes, Mapping):
        declared: dict[Any, Any] = dict(cast("Mapping[Any, Any]", shapes))
    elif isinstance(shapes, tuple | list):
        given = cast("Sequence[Any]", shapes)
        if len(given) != len(named):
            raise _wrong(f"expected {len(named)} entries, one for each argument")
        declared = dict(zip(named, given, strict=True))
    else:
        raise _wrong(f"expected a dictionary or a tuple, found {type(shapes).__name__}")
    if unknown := [each for each in declared if each not in named]:
        raise _wrong(f"there is no argument '{unknown[0]}', only {', '.join(named)}")
    found = _Dimensions([], {})
    for name, value in named.items():
        _add_tensors(torch, found, name, value, declared.get(name))
    return found


def _wrong(text: str) -> CompileError:
    return CompileError(
        f"dynamic_shapes: {text}",
        called_at(),
        remedy="give them as torch.export.export takes them: {'tokens': {1: " + _NAMED + "}}",
    )


def _add_tensors(torch: Any, found: _Dimensions, name: str, value: Any, shapes: Any) -> None:
    """Adds the tensors of an argument recursively."""
    match value:
        case torch.Tensor():
            found.extents.append(_tensor_extents(torch, found, name, value, shapes))
        case tuple() | list():
            parts = cast("Sequence[Any]", value)
            given = [None] * len(parts) if shapes is None else list(shapes)
            if len(given) != len(parts):
                raise _wrong(f"'{name}' has {len(parts)} parts, found {len(given)}")
            for index, (part, each) in enumerate(zip(parts, given, strict=True)):
                _add_tensors(torch, found, f"{name}[{index}]", part, each)
        case dict():
            parts_by_name = cast("dict[Any, Any]", value)
            for key in parts_by_name:
                each = None if shapes is None else shapes.get(key)
                _add_tensors(torch, found, f"{name}[{key!r}]", parts_by_name[key], each)
        case _:
            if torch.utils._pytree.tree_leaves(value) != [value]:
                raise _wrong(f"'{name}' is a {type(value).__name__}, not a tuple, list or dict")


def _tensor_extents(
    torch: Any, found: _Dimensions, name: str, tensor: Any, shapes: Any
) -> tuple[Extent, ...]:
    declared: dict[int, Any] = {}
    if isinstance(shapes, Mapping):
        declared = {int(k): v for k, v in cast("Mapping[Any, Any]", shapes).items()}
    elif isinstance(shapes, tuple | list):
        declared = dict(enumerate(cast("Sequence[Any]", shapes)))
    elif shapes is not None:
        raise _wrong(f"'{name}': expected a dictionary of dimensions, found {shapes!r}")
    if wrong := [axis for axis in declared if not 0 <= axis < tensor.ndim]:
        raise _wrong(f"'{name}' has {tensor.ndim} dimensions, found dimension {wrong[0]}")
    extents: list[Extent] = []
    for axis, size in enumerate(map(int, tensor.shape)):
        extent = _declared_extent(torch, found, name, declared.get(axis), size)
        if extent.dimension and extent.dimension_size(size) is None:
            raise _wrong(f"'{name}': dimension {axis} is {size} in the example, not {extent}")
        extents.append(extent)
    return tuple(extents)


def _declared_extent(torch: Any, found: _Dimensions, name: str, given: Any, size: int) -> Extent:
    """Extent of a declared dimension: a Dim, one derived from it, or fixed."""
    if given is None or given is torch.export.Dim.STATIC:
        return Extent(size)
    if given == size:
        return Extent(size)
    if isinstance(given, int):
        raise _wrong(f"'{name}' has a dimension of {size}, declared as {given}")
    root: Any = getattr(given, "root", given)
    least: Any = getattr(root, "min", None)
    most: Any = getattr(root, "max", None)
    if least is None or not hasattr(root, "__name__"):
        raise _wrong(f"'{name}': {given} has neither a name nor a largest size")
    bound = int(most) if isinstance(most, int) else None
    _add(found, GivenDimension(str(root.__name__), max(1, int(least)), bound))
    if root is given:
        return Extent(0, str(root.__name__), 1)
    # Derived dimensions are linear in their root.
    offset = int(given.fn(0))
    return Extent(offset, str(root.__name__), int(given.fn(1)) - offset)


def _add(found: _Dimensions, given: GivenDimension) -> None:
    known = found.given.setdefault(given.name, given)
    if known != given:
        raise _wrong(f"there are two dimensions '{given.name}' of other ranges")


def _input_values(program: Any) -> list[Any]:
    """Values of a program's input tensors, with symbolic sizes."""
    values = {n.name: n.meta.get("val") for n in program.graph.nodes if n.op == "placeholder"}
    inputs = [s.arg for s in program.graph_signature.input_specs if s.kind.name == "USER_INPUT"]
    found = [values.get(getattr(each, "name", "")) for each in inputs]
    return [each for each in found if hasattr(each, "shape")]


def _of_program(program: Any) -> _Dimensions:
    """Dimensions of an exported program: its symbols with their ranges."""
    found = _Dimensions([], {})
    ranges = {str(symbol): each for symbol, each in program.range_constraints.items()}
    for value in _input_values(program):
        extents: list[Extent] = []
        for size in value.shape:
            if isinstance(size, int):
                extents.append(Extent(size))
                continue
            symbol, offset, scale = linear(str(size))
            each = ranges.get(symbol)
            least = max(1, int(each.lower)) if each is not None else 1
            try:
                most = int(each.upper) if each is not None else None
            except (OverflowError, TypeError, ValueError):  # It has no bound.
                most = None
            most = None if most is not None and most >= 1 << 31 else most
            _add(found, GivenDimension(symbol, least, most))
            extents.append(Extent(offset, symbol, scale))
        found.extents.append(tuple(extents))
    return found
