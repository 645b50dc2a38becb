"""Options of custom calls and composites, from attributes or text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from ttcodegen.dialects.core.datatypes import element_of, shape_of, tensor_type
from ttcodegen.foundation.lazy_numpy import np
from ttcodegen.frontends.stablehlo.reading.operations import StableHLOOp


def called_computations(op: StableHLOOp) -> list[str]:
    """The names of the functions that a custom call is given, such as a comparator."""
    found = op.get("called_computations")
    return [str(name) for name in cast("list[Any]", found)] if isinstance(found, list) else []


def flag(attributes: Mapping[str, Any], name: str, default: bool = False) -> bool:
    """A truth value, which may be written as Python prints it."""
    value = attributes.get(name, default)
    return value.strip().lower() in ("true", "1") if isinstance(value, str) else bool(value)


def number(attributes: Mapping[str, Any], name: str) -> float | None:
    """A number, None if there is none; raises ValueError for what is no number."""
    value = attributes.get(name)
    if value in (None, "", "None"):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"'{name}' has to be a number, found '{value}'") from None


def integer(attributes: Mapping[str, Any], name: str, default: int | None = None) -> int | None:
    """An integer, `default` if there is none; raises ValueError for what is none."""
    value = number(attributes, name)
    if value is not None and not value.is_integer():
        raise ValueError(f"'{name}' has to be an integer, found '{attributes[name]}'")
    return default if value is None else int(value)


def integers(value: Any) -> list[int]:
    """A list of integers, as an array or as text."""
    if isinstance(value, str):
        return [int(each) for each in re.findall(r"-?\d+", value)]
    return [int(each) for each in np.asarray(value).flat]


def like_result(op: StableHLOOp, index: int = 0) -> Any:
    """The type of a result, without what a dialect adds to it."""
    type_ = op.results[index].type
    return tensor_type(element_of(type_), shape_of(type_))
