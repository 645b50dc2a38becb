"""Tensors of torch as arrays and element types of this project."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.ir import Attribute

from ttcodegen.dialects.core.datatypes import element_type_of
from ttcodegen.foundation.diagnostics import CompileError

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
