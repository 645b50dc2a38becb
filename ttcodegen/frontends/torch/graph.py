"""Values of a torch.export graph, torch tensors, and higher-order operations.

Regions are inlined. Loops are unrolled, or outlined to functions if their trip count is known only
at run time. Branches with a run-time predicate are both computed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import (
    TensorType,
)
from xdsl.ir import Attribute, SSAValue

from ttcodegen.dialects.core.datatypes import (
    element_of,
    element_type_of,
    i1,
    numpy_name,
    shape_of,
    tensor_type,
)
from ttcodegen.foundation.diagnostics import CompileError, SourceLocation
from ttcodegen.foundation.messages import is_of_user
from ttcodegen.frontends.translation import Translator
from ttcodegen.transforms.const_eval import known_elements

# Types of a graph's values, shared by the rules of ATen operations.

Number = bool | int | float
Scalar = SSAValue | Number
Rule = Callable[..., "SSAValue | Sequence[SSAValue]"]
"""Translates an operation: takes the graph and the operation's arguments, tensors as values.

Results of another element type than the graph's are converted.
"""


Iterate = Callable[[Sequence[SSAValue]], Sequence[SSAValue]]
"""Translates an iteration: from the carried values to the condition and the next ones."""
MakeLoop = Callable[[SSAValue, Sequence[SSAValue], Iterate], Sequence[SSAValue]]
"""Makes a loop from its first condition, its initial values and an iteration."""


class Graph(Translator):
    """Builder that replaces one operation of the graph after the other."""

    results: Sequence[TensorType[Attribute]] = ()
    """Result types of the current operation, by the graph."""
    _seed = 0

    def next_seed(self) -> int:
        """Returns the seed of the next random operation: 1, 2, ..."""
        self._seed += 1
        return self._seed

    make_loop: MakeLoop | None = None
    """Makes a loop whose trip count is known only at run time."""

    overwritten: SSAValue | None = None
    """Argument that the operation's result overwrites, if nothing else reads it."""

    @property
    def type(self) -> TensorType[Attribute]:
        """The type of the first result."""
        return self.results[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the first result."""
        return shape_of(self.type)

    @property
    def element(self) -> Attribute:
        """The element type of the first result."""
        return self.type.element_type

    def value(self, operand: Scalar, element: Attribute | None = None, rank: int = 0) -> SSAValue:
        """Converts an operand to an element type, by default the result's.

        Numbers become tensors of the given rank.
        """
        element = element or self.element
        if isinstance(operand, SSAValue):
            return self.typecast(operand, element)
        kind = kind_of(element)
        number = float(operand) if kind == "f" else int(operand)
        return self.full([1] * rank, number, element)

    def together(self, *operands: Scalar) -> list[SSAValue]:
        """Converts operands to one element type by PyTorch's promotion."""
        element = promoted(operands)
        rank = max(len(shape_of(o.type)) for o in operands if isinstance(o, SSAValue))
        return [self.value(operand, element, rank) for operand in operands]

    def apply(self, name: str, *operands: Scalar, **attributes: Any) -> SSAValue:
        """Emits an elementwise op on operands converted to the result's element type."""
        ranks = [len(shape_of(o.type)) for o in operands if isinstance(o, SSAValue)]
        values = [self.value(operand, rank=max(ranks, default=0)) for operand in operands]
        return self.broadcasting(name, *values, **attributes)

    def dim(self, dim: int, rank: int) -> int:
        """Normalizes a dimension index; a scalar has one dimension."""
        return dim % max(rank, 1)

    def dims(self, dim: int | Sequence[int] | None, value: SSAValue) -> list[int]:
        """Normalizes dimension indices, sorted; None means all."""
        rank = len(shape_of(value.type))
        if dim is None or (not isinstance(dim, int) and not dim):
            return list(range(rank))
        return sorted(self.dim(d, rank) for d in ([dim] if isinstance(dim, int) else dim))

    def reduced(self, name: str, value: SSAValue, dims: Sequence[int], keep: bool) -> SSAValue:
        """Emits a reduction; the identity for a scalar."""
        if not shape_of(value.type):
            return value
        return self.reduce(name, value, list(dims), keep)

    def logical(self, value: SSAValue) -> SSAValue:
        """Converts to boolean: true for nonzero elements."""
        return self.typecast(value, i1)

    def expanded(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """Broadcasts `value` to a shape."""
        return self.repeat(self.aligned(value, shape), shape)

    def part(self, value: SSAValue, dim: int, begin: int, end: int, step: int = 1) -> SSAValue:
        """Slices every `step`-th element from `begin` to `end` of one dimension."""
        shape = shape_of(value.type)
        begins = [begin if axis == dim else 0 for axis in range(len(shape))]
        ends = [end if axis == dim else size for axis, size in enumerate(shape)]
        steps = [step if axis == dim else 1 for axis in range(len(shape))]
        return self.slice(value, begins, ends, steps)

    def swapped(self, value: SSAValue, first: int, second: int) -> SSAValue:
        """Swaps two dimensions."""
        order = list(range(len(shape_of(value.type))))
        order[first], order[second] = order[second], order[first]
        return self.permute(value, order)

    def nothing(self, type_: TensorType[Attribute]) -> SSAValue:
        """Empty tensor."""
        return self.constant(np.zeros(shape_of(type_), np.float32), type_.element_type)

    def repeat(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """Repeats a value to a shape, which may be empty."""
        if 0 in shape and shape_of(value.type) != tuple(shape):
            return self.nothing(tensor_type(element_of(value.type), shape))
        return super().repeat(value, shape)

    def array(self, array: np.ndarray, element: Attribute | None = None) -> SSAValue:
        """Constant, by default of the result's element type."""
        return self.constant(array, element or self.element)


def of_scalars(rule: Rule) -> Rule:
    """Adapts a rule along dimensions to scalars, for which PyTorch accepts dimension 0 or -1."""

    def lifted(
        graph: Graph, x: SSAValue, *arguments: Any, **named: Any
    ) -> SSAValue | Sequence[SSAValue]:
        if shape_of(x.type):
            return rule(graph, x, *arguments, **named)
        results = graph.results
        graph.results = [tensor_type(t.element_type, shape_of(t) or [1]) for t in results]
        x = graph.reshape(x, [1])
        given = [_as_vector(graph, each) for each in arguments]
        options = {key: _as_vector(graph, each) for key, each in named.items()}
        made = rule(graph, x, *given, **options)
        graph.results = results
        values = [made] if isinstance(made, SSAValue) else list(made)
        return [graph.reshape(v, shape_of(t)) for v, t in zip(values, results, strict=False)]

    return lifted


def _as_vector(graph: Graph, argument: Any) -> Any:
    if not isinstance(argument, SSAValue):
        return argument
    value = cast("SSAValue", argument)
    return value if shape_of(value.type) else graph.reshape(value, [1])


def kind_of(element: Attribute) -> str:
    """Kind of an element type: `f`, `i`, `u` or `b`."""
    name = numpy_name(element) or "float32"
    return "f" if name == "bfloat16" else np.dtype(name).kind


def limits(element: Attribute) -> tuple[float, float]:
    """Smallest and largest value of an element type."""
    if kind_of(element) == "f":
        return -inf, inf
    if kind_of(element) == "b":
        return False, True
    found = np.iinfo(np.dtype(numpy_name(element) or "int32"))
    return found.min, found.max


_ORDER = ("bool", "uint8", "int8", "int16", "int32", "int64", "bfloat16", "float16", "float32",
          "float64")  # fmt: skip


def promoted(operands: Sequence[Scalar]) -> Attribute:
    """Promoted element type of operands.

    Numbers count only if of a higher kind (integers above booleans, floats above integers).
    """
    elements = [element_of(o.type) for o in operands if isinstance(o, SSAValue)]
    names = [numpy_name(element) or "float32" for element in elements]
    found = elements[max(range(len(names)), key=lambda i: _ORDER.index(names[i]))]
    if {"bfloat16", "float16"} <= set(names):
        found = element_type_of("float32")
    numbers = [operand for operand in operands if not isinstance(operand, SSAValue)]
    if any(isinstance(n, float) for n in numbers) and kind_of(found) != "f":
        return element_type_of("float32")
    if kind_of(found) == "b" and any(type(n) is int for n in numbers):
        return element_type_of("int64")
    return found


def unsupported_argument(operation: str, name: str, found: object) -> CompileError:
    """Error for an unsupported argument of an operation."""
    return CompileError(f"{operation} with {name} = {found} is not supported")


# Tensors of torch as arrays and element types of this project.

Tensor = Any  # torch's own classes are not known where it is not installed.

_PARTS = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}
"""Type of the parts of each complex dtype."""


def is_complex(value: Any) -> bool:
    """Returns whether a tensor, or the first of several, is complex."""
    several = cast("Sequence[Any]", value if isinstance(value, (tuple, list)) else [value])
    first = several[0] if several else None
    return str(getattr(first, "dtype", "")).startswith("torch.complex")


def element_of_dtype(dtype: Any) -> Attribute:
    """Element type of a `torch.dtype`; for complex types, that of the parts."""
    name = str(dtype).removeprefix("torch.")
    name = _PARTS.get(name, name)
    try:
        return element_type_of(name)
    except KeyError:
        raise CompileError(
            f"elements of type {name} are not supported",
            remedy="convert the model to float32 or bfloat16",
        ) from None


def tensor_array(tensor: Tensor) -> np.ndarray:
    """Elements of a torch tensor, complex ones as pairs in a last dimension.

    bfloat16 uses ml_dtypes, as numpy lacks it.
    """
    import ml_dtypes

    held = plain(tensor).detach().cpu().contiguous()
    if is_complex(held):
        import importlib

        held = importlib.import_module("torch").view_as_real(held.resolve_conj()).contiguous()
    if str(held.dtype) == "torch.bfloat16":
        import importlib

        torch: Any = importlib.import_module("torch")
        return held.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return held.numpy()


def plain(tensor: Tensor) -> Tensor:
    """Unwraps a tensor from functorch transforms."""
    if type(tensor).__module__.partition(".")[0] != "torch":
        return tensor
    import importlib

    functorch: Any = importlib.import_module("torch")._C._functorch
    while functorch.is_functorch_wrapped_tensor(tensor):
        tensor = functorch.get_unwrapped(tensor)
    return tensor


Region = Callable[[Any, Sequence[Any]], list[Any]]
"""Translates a subgraph with the given arguments; returns its results."""
RegionRule = Callable[..., list[Any]]
"""Translates a higher-order operation: takes the graph, the subgraph translator and arguments."""

MOST_ITERATIONS = 4096
"""Limit on the unrolled iterations of a loop."""
CHECKS = frozenset({"_assert_async", "_assert_scalar", "_assert_tensor_metadata",
                    "_linalg_check_errors", "sym_constrain_range",
                    "sym_constrain_range_for_size"})  # fmt: skip
"""Runtime checks of torch programs that a graph of fixed shapes satisfies."""


def _under_gradients(_: Graph, region: Region, __: bool, inside: Any, *operands: Any) -> list[Any]:
    return region(inside, operands)


def _under_autocast(
    _: Graph, region: Region, device: str, dtype: Any, is_on: bool, __: Any, inside: Any,
    *operands: Any,
) -> list[Any]:  # fmt: skip
    """Inlines an autocast region; its conversions are already part of the graph."""
    return region(inside, operands)


def _called(_: Graph, region: Region, inside: Any, *operands: Any) -> list[Any]:
    return region(inside, operands)


def _named(_: Graph, region: Region, inside: Any, __: Any, *operands: Any) -> list[Any]:
    return region(inside, operands)


def _with_hints(
    _: Graph, region: Region, inside: Any, operands: Sequence[Any], *__: Any
) -> list[Any]:
    return region(inside, operands)


def _cond(
    graph: Graph,
    region: Region,
    predicate: SSAValue | bool,
    first: Any,
    second: Any,
    operands: Sequence[Any],
) -> list[Any]:
    if not isinstance(predicate, SSAValue):
        return region(first if predicate else second, operands)
    known = known_elements(predicate)
    if known is not None:
        return region(first if known.all() else second, operands)
    origin = graph.origin
    branches = [region(inside, operands) for inside in (first, second)]
    graph.origin = origin
    return [_chosen(graph, predicate, *pair) for pair in zip(*branches, strict=True)]


def _chosen(
    graph: Graph, predicate: SSAValue, first: SSAValue | None, second: SSAValue | None
) -> SSAValue | None:
    if first is None or second is None or first is second:
        return first
    shape = shape_of(first.type)
    one = graph.reshape(graph.typecast(predicate, i1), [1] * len(shape))
    return graph.emit("where", [graph.repeat(one, shape), first, second], first.type)


def _while_loop(
    graph: Graph,
    region: Region,
    condition: Any,
    body: Any,
    carried: Sequence[Any],
    others: Sequence[Any] = (),
) -> list[Any]:
    values = list(carried)
    for _ in range(MOST_ITERATIONS + 1):
        found: list[SSAValue | bool] = region(condition, [*values, *others])
        (going,) = found
        if isinstance(going, SSAValue):
            known = known_elements(going)
            if known is None:
                break
            going = bool(known.all())
        if not going:
            return values
        values = [_fold_scalar(graph, value) for value in region(body, [*values, *others])]

    def iterate(values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        following = region(body, [*values, *others])
        return [holds(following), *following]

    def holds(values: Sequence[Any]) -> SSAValue:
        found: list[SSAValue | bool] = region(condition, [*values, *others])
        (going,) = found
        return going if isinstance(going, SSAValue) else graph.full([], float(going), i1)

    if graph.make_loop is None or not all(isinstance(value, SSAValue) for value in carried):
        raise CompileError(
            "the trip count of the loop is only known at run time, and it carries numbers that are "
            "no tensors",
            remedy="give the loop tensors, or a fixed length",
        )
    return list(graph.make_loop(holds(carried), list(carried), iterate))


def _too_long() -> CompileError:
    return CompileError(
        f"the loop runs more than {MOST_ITERATIONS} times, and its body would be repeated as often",
        remedy="compile the body of the loop, and call it from a loop of your own",
    )


def _fold_scalar(graph: Graph, value: SSAValue | None) -> SSAValue | None:
    """Folds a known scalar, such as a loop counter, to a constant."""
    if value is None or shape_of(value.type):
        return value
    known = known_elements(value)
    if known is None or getattr(value.owner, "name", "") == "ttir.constant":
        return value
    return graph.constant(known, element_of(value.type))


def _scan(
    graph: Graph,
    region: Region,
    body: Any,
    carried: Sequence[Any],
    rows: Sequence[SSAValue],
    others: Sequence[Any] = (),
) -> list[Any]:
    """Scan: the body on one row after the other; final carried values and stacked outputs."""
    values = list(carried)
    given: list[list[Any]] = []
    for inputs in _rows(graph, rows):
        found = region(body, [*values, *inputs, *others])
        values = found[: len(values)]
        given.append(found[len(values) :])
    return [*values, *_stacked(graph, given)]


def _map(
    graph: Graph, region: Region, body: Any, rows: Sequence[SSAValue], others: Sequence[Any] = ()
) -> list[Any]:
    return _stacked(
        graph, [region(body, [*inputs, *others]) for inputs in _rows(graph, rows)]
    )  # fmt: skip


def _rows(graph: Graph, values: Sequence[SSAValue]) -> list[list[SSAValue]]:
    """Splits tensors along their first dimension."""
    count = shape_of(values[0].type)[0]
    if count > MOST_ITERATIONS:
        raise _too_long()
    return [
        [graph.reshape(graph.part(v, 0, i, i + 1), shape_of(v.type)[1:]) for v in values]
        for i in range(count)
    ]


def _stacked(graph: Graph, rows: Sequence[Sequence[SSAValue]]) -> list[SSAValue]:
    columns = zip(*rows, strict=True)
    return [
        graph.concat([graph.reshape(v, [1, *shape_of(v.type)]) for v in column], 0)
        for column in columns
    ]


REGION_RULES: Mapping[str, RegionRule] = {
    "cond": _cond,
    "hints_wrapper": _with_hints,
    "invoke_subgraph": _named,
    "map_impl": _map,
    "scan": _scan,
    "strict_mode": _with_hints,
    "tag_activation_checkpoint": _called,
    "while_loop": _while_loop,
    "wrap": _called,
    "wrap_activation_checkpoint": _called,
    "wrap_with_autocast": _under_autocast,
    "wrap_with_set_grad_enabled": _under_gradients,
}
"""Region rules by operation name."""


_SIZE_REMEDIES = {
    "index": "choose with torch.where, multiply by the mask, or give indices of a known number",
    "repeat_interleave": "give output_size=, the sum of the repeats",
    "slice": "slice by numbers that follow from shapes",
}
"""Remedy by operation, for results whose size depends on values."""


def refuse_unknown_size(name: str, result: Any, operands: Sequence[Any]) -> None:
    """Raises CompileError if an operation makes a size depend on values.

    Args:
        name: its name.
        result: a tensor that it returns.
        operands: its operands.

    Raises:
        CompileError: if the result has an unknown size and no operand has one.
    """
    if _has_known_size(result) or not all(map(_has_known_size, operands)):
        return
    raise CompileError(
        f"the shape of the result of '{name}' depends on the values of a tensor",
        remedy=_SIZE_REMEDIES.get(name, "use operations whose results have a known size"),
    )


def _has_known_size(value: Any) -> bool:
    return all(isinstance(size, int) for size in getattr(value, "shape", ()))


_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')


def operation_name(target: Any) -> tuple[str, str]:
    """Name of an operation without its namespace, and its overload."""
    schema = getattr(target, "_schema", None)
    if schema is None:
        return getattr(target, "__name__", str(target)), ""
    return str(schema.name).partition("::")[2], str(schema.overload_name) or "default"


_COUNTER = re.compile(r"_\d+$")


def location_of(node: Any) -> str:
    """Location name of an operation: module path and the operation's name in it.

    Nothing follows the last `/` if the name only repeats the kind of the operation.
    """
    modules: Mapping[str, Any] = node.meta.get("nn_module_stack") or {}
    stack = list(modules.values())
    path, kind = (str(stack[-1][0]), str(stack[-1][1])) if stack else ("", "")
    name = str(node.name)
    if _COUNTER.sub("", name) == operation_name(node.target)[0].rstrip("_"):
        name = ""  # `to_2` is just the third conversion.
    # A module of torch.nn is one operation or a few: use its name for them.
    leaf = path.rpartition(".")[2]
    if "torch.nn.modules" in kind and leaf and not leaf.isdigit():
        name = leaf
    return f"{path}/{name}" if path else name


def source_of(node: Any) -> SourceLocation | None:
    """Source line of an operation in the user's code, or else in an installed package."""
    frames: list[tuple[str, str, str]] = _FRAME.findall(node.meta.get("stack_trace") or "")
    if not frames:
        return None
    own = [frame for frame in frames if is_of_user(frame[0])]
    file, line, _ = (own or frames)[-1]
    return SourceLocation(file, int(line), 1)
