"""Types of a graph's values, and conversion of torch tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue

from ttcodegen.dialects.core.datatypes import (
    element_of,
    element_type_of,
    i1,
    numpy_name,
    shape_of,
    tensor_type,
)
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.frontends.translation import Translator

__all__ = [
    "Graph",
    "Number",
    "Rule",
    "Scalar",
    "kind_of",
    "limits",
    "of_scalars",
    "promoted",
    "tensor_type",
    "unsupported_argument",
]


# Types of a graph's values, shared by the rules of ATen operations.

Number = bool | int | float
Scalar = SSAValue | Number
Rule = Callable[..., "SSAValue | Sequence[SSAValue]"]
"""Gets the graph and the arguments of an operation in its order, tensors as values; gives its
results. Those of the wrong element type are converted to the one that the graph says."""


Iterate = Callable[[Sequence[SSAValue]], Sequence[SSAValue]]
"""Translates an iteration of what it takes: whether there is another one, and what that takes."""
MakeLoop = Callable[[SSAValue, Sequence[SSAValue], Iterate], Sequence[SSAValue]]
"""Gets whether there is an iteration and what it takes; gives what the last one makes."""


class Graph(Translator):
    """Makes ops in place of one operation of the graph after the other."""

    results: Sequence[TensorType[Attribute]] = ()
    """The types of the results of the operation, as the graph says."""
    _seed = 0

    def next_seed(self) -> int:
        """The seed of an operation that draws numbers: 1, 2 and so on in their order."""
        self._seed += 1
        return self._seed

    make_loop: MakeLoop | None = None
    """Makes a loop whose trip count is only known at run time."""

    overwritten: SSAValue | None = None
    """The argument whose place the result of the operation takes when the program has run, if
    nothing else reads it."""

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
        """An operand with elements of a type, that of the result if not given; numbers become
        tensors of that rank."""
        element = element or self.element
        if isinstance(operand, SSAValue):
            return self.typecast(operand, element)
        kind = kind_of(element)
        number = float(operand) if kind == "f" else int(operand)
        return self.full([1] * rank, number, element)

    def together(self, *operands: Scalar) -> list[SSAValue]:
        """Operands with elements of one type, that which PyTorch would compute with."""
        element = promoted(operands)
        rank = max(len(shape_of(o.type)) for o in operands if isinstance(o, SSAValue))
        return [self.value(operand, element, rank) for operand in operands]

    def apply(self, name: str, *operands: Scalar, **attributes: Any) -> SSAValue:
        """An elementwise op on operands with elements as the result has them."""
        ranks = [len(shape_of(o.type)) for o in operands if isinstance(o, SSAValue)]
        values = [self.value(operand, rank=max(ranks, default=0)) for operand in operands]
        return self.broadcasting(name, *values, **attributes)

    def dim(self, dim: int, rank: int) -> int:
        """A dimension counted from the start; those of a scalar count as one."""
        return dim % max(rank, 1)

    def dims(self, dim: int | Sequence[int] | None, value: SSAValue) -> list[int]:
        """Dimensions counted from the start; all of them if none is named."""
        rank = len(shape_of(value.type))
        if dim is None or (not isinstance(dim, int) and not dim):
            return list(range(rank))
        return sorted(self.dim(d, rank) for d in ([dim] if isinstance(dim, int) else dim))

    def reduced(self, name: str, value: SSAValue, dims: Sequence[int], keep: bool) -> SSAValue:
        """A reduction; one over nothing is the operand."""
        if not shape_of(value.type):
            return value
        return self.reduce(name, value, list(dims), keep)

    def logical(self, value: SSAValue) -> SSAValue:
        """True if elements are not zero."""
        return self.typecast(value, i1)

    def expanded(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """`value` repeated up to that shape, as broadcasting would."""
        return self.repeat(self.aligned(value, shape), shape)

    def part(self, value: SSAValue, dim: int, begin: int, end: int, step: int = 1) -> SSAValue:
        """Every `step`-th element from `begin` to `end` of one dimension."""
        shape = shape_of(value.type)
        begins = [begin if axis == dim else 0 for axis in range(len(shape))]
        ends = [end if axis == dim else size for axis, size in enumerate(shape)]
        steps = [step if axis == dim else 1 for axis in range(len(shape))]
        return self.slice(value, begins, ends, steps)

    def swapped(self, value: SSAValue, first: int, second: int) -> SSAValue:
        """`value` with two dimensions exchanged."""
        order = list(range(len(shape_of(value.type))))
        order[first], order[second] = order[second], order[first]
        return self.permute(value, order)

    def nothing(self, type_: TensorType[Attribute]) -> SSAValue:
        """A tensor without elements."""
        return self.constant(np.zeros(shape_of(type_), np.float32), type_.element_type)

    def repeat(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """As of any builder, also of a shape without elements."""
        if 0 in shape and shape_of(value.type) != tuple(shape):
            return self.nothing(tensor_type(element_of(value.type), shape))
        return super().repeat(value, shape)

    def array(self, array: np.ndarray, element: Attribute | None = None) -> SSAValue:
        """A constant, with elements as the result has them if not said otherwise."""
        return self.constant(array, element or self.element)


def of_scalars(rule: Rule) -> Rule:
    """A rule of an operation along dimensions which is for scalars as for vectors of one element:
    they have no dimension, and PyTorch takes 0 or -1 for one."""

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
    """`f`, `i`, `u` or `b`."""
    name = numpy_name(element) or "float32"
    return "f" if name == "bfloat16" else np.dtype(name).kind


def limits(element: Attribute) -> tuple[float, float]:
    """The smallest and the largest element of a type."""
    if kind_of(element) == "f":
        return -inf, inf
    if kind_of(element) == "b":
        return False, True
    found = np.iinfo(np.dtype(numpy_name(element) or "int32"))
    return found.min, found.max


_ORDER = ("bool", "uint8", "int8", "int16", "int32", "int64", "bfloat16", "float16", "float32",
          "float64")  # fmt: skip


def promoted(operands: Sequence[Scalar]) -> Attribute:
    """The element type that operands of several are converted to; a number counts only if it is of
    a higher kind (integers above booleans, floats above integers)."""
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
    """The refusal of an operation for one of its arguments."""
    return CompileError(f"{operation} with {name} = {found} is not supported")


# Tensors of torch as arrays and element types of this project.

Tensor = Any  # torch's own classes are not known where it is not installed.

_PARTS = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}
"""The types of both parts of complex numbers."""


def is_complex(value: Any) -> bool:
    """True if a tensor, or the first of several, holds complex numbers."""
    several = cast("Sequence[Any]", value if isinstance(value, (tuple, list)) else [value])
    first = several[0] if several else None
    return str(getattr(first, "dtype", "")).startswith("torch.complex")


def element_of_dtype(dtype: Any) -> Attribute:
    """The element type of a `torch.dtype`; that of the parts of complex numbers."""
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
    """The elements of a tensor of torch, complex ones as pairs in a last dimension; numpy has no
    bfloat16 of its own."""
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
    """The tensor that one stands for in a function which torch transforms."""
    if type(tensor).__module__.partition(".")[0] != "torch":
        return tensor
    import importlib

    functorch: Any = importlib.import_module("torch")._C._functorch
    while functorch.is_functorch_wrapped_tensor(tensor):
        tensor = functorch.get_unwrapped(tensor)
    return tensor
