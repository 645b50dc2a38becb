"""Frontend locations: the layer and source line of an operation.

jax writes name stacks (`jit(main)/Block_0/attn/dot_general`), torch module paths and names of
arguments as Python spells them (`v['params']['Dense_0']['kernel']`).
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    CallSiteLoc,
    FileLineColLoc,
    FusedLoc,
    LocationAttr,
    NameLoc,
    NoneAttr,
    StringAttr,
    UnknownLoc,
)
from xdsl.ir import Attribute

from ttcodegen.foundation.diagnostics import SourceLocation

# What jax puts around the name of a function: `jit(f)`, `jvp(f)`, `transpose(jvp(f))`.
_TRANSFORMED = re.compile(r"^(?:jit|pjit|jvp|vmap|transpose|remat|checkpoint|custom_\w+)\((.*)\)$")
_PRIMITIVES = frozenset(
    """
    abs acos acosh add add_any and approx_top_k argmax argmin asin asinh atan atan2 atanh
    bitcast_convert_type broadcast_in_dim cbrt ceil clamp clz concatenate conv_general_dilated
    convert_element_type copy cos cosh cumlogsumexp cummax cummin cumprod cumsum div
    dot_general dynamic_slice dynamic_update_slice eq erf erf_inv erfc exp exp2 expm1 floor gather
    ge gt integer_pow iota is_finite le log log1p logistic lt max min mul ne neg nextafter not or
    pad population_count pow reduce_and reduce_max reduce_min reduce_or reduce_precision
    reduce_prod reduce_sum reduce_window reduce_window_max reduce_window_sum rem reshape rev round
    rsqrt scatter scatter-add scatter_add scatter_max scatter_min scatter_mul select_n
    shift_left shift_right_arithmetic shift_right_logical sign sin sinh slice sort split sqrt
    square squeeze stop_gradient sub tan tanh top_k transpose while xor
    """.split()
)
"""Primitives of jax, the last component of its name stacks.

They name the operation, not its role in the model. Source: jax/_src/lax.
"""
_EQUATION = re.compile(r"^[a-zA-Z.,]*->[a-zA-Z.]*$")
_KEY = re.compile(r"\[(?:'([^']*)'|\"([^\"]*)\"|(\d+))\]")
_NAMELESS = re.compile(r"^(?:cst|c|arg|v|tmp|input|output|iterArg)?_?\d*(?:_\d+)*$")
_WEIGHT_NAME = re.compile(
    r"(?i)[._](?:kernel|weights?|bias|scale|gamma|beta|embedding|running_mean|running_var)$"
)
_WEIGHTS = re.compile(
    r"(?i)(?:^|[._])(?:params|parameters|batch_stats|state_dict|buffers)(?:[._]|$)"
)


def parts_of(location: FusedLoc) -> list[Attribute]:
    """Returns the locations that a fused location joins."""
    return list(cast("ArrayAttr[Attribute]", location.locations).data)


def is_meaningful(hint: str | None) -> bool:
    """Returns whether a value name is more than a position, such as `%0` or `%arg1`."""
    return hint is not None and _NAMELESS.match(hint) is None


def name_of(location: Attribute) -> str | None:
    """Returns the name in a location, None if it has none."""
    match location:
        case NameLoc():
            return location.desc.data or None
        case CallSiteLoc():
            return name_of(location.callee)
        case FusedLoc():
            names = (name_of(part) for part in parts_of(location))
            return next((name for name in names if name), None)
        case _:
            return None


def argument_name(location: Attribute | None) -> str | None:
    """Name of an argument from its location: `params.Dense_0.kernel` for
    `v['params']['Dense_0']['kernel']`."""
    name = name_of(location) if location is not None else None
    if name is None or name == "unknown":
        return None
    found = _KEY.sub(lambda match: "." + next(g for g in match.groups() if g is not None), name)
    if found != name:
        head, _, rest = found.partition(".")
        # Drop the variable that holds the tree if the keys are names.
        found = rest if not rest[:1].isdigit() and "." in rest else f"{head}.{rest}"
    return found.strip(".") or None


def is_weight_name(name: str) -> bool:
    """Returns whether an argument of that name is a model parameter."""
    return bool(_WEIGHTS.search(name) or _WEIGHT_NAME.search(name))


def layer_path(name: str) -> str:
    """Strips a name stack of frontend additions: `jit(f)/Block_0/ab,bc->ac/dot_general` is
    `Block_0/dot_general`."""
    kept: list[str] = []
    for part in _segments(name):
        while (match := _TRANSFORMED.match(part)) is not None:
            # The outermost transform names the whole program, not a layer.
            part = match.group(1) if kept else ""
        if part and not _EQUATION.match(part) and part not in ("<module>", "main"):
            kept.append(part)
    return "/".join(kept)


def _segments(name: str) -> list[str]:
    """Splits a path at slashes outside of parentheses."""
    parts, depth = [""], 0
    for character in name.rstrip(":"):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "/" and depth <= 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def within(location: LocationAttr, scope: Attribute) -> LocationAttr:
    """Returns the location of an operation in a function called at `scope`."""
    outer, inner = name_of(scope), name_of(location)
    if outer is None or (inner is not None and "/" in inner):
        return location
    path = outer if inner is None else f"{outer}/{inner}"
    nested = location if not isinstance(location, UnknownLoc) else NoneAttr()
    return NameLoc(StringAttr(path), nested)


def named_location(location: LocationAttr) -> LocationAttr:
    """Returns the location named by its layer path, without a trailing jax primitive."""
    name = name_of(location)
    if name is None:
        return location
    path = _without_primitive(layer_path(name))
    return NameLoc(StringAttr(path), NoneAttr()) if path else UnknownLoc()


def _without_primitive(path: str) -> str:
    """Strips the jax primitive at the end of a path; the trailing `/` marks a layer."""
    layer, slash, last = path.rpartition("/")
    return layer + slash if last in _PRIMITIVES else path


_HERE = str(Path(__file__).parents[3]) + os.sep


def origin_in_frontend(location: Attribute) -> SourceLocation | None:
    """Returns the source location in the user's program, None if there is none."""
    match location:
        case FileLineColLoc():
            file, line, column = location.filename.data, location.line.data, location.column.data
            if not line or file.startswith(_HERE):
                return None
            # Frameworks count columns as Python does, from 0.
            return SourceLocation(
                file, line, column + 1 if file.endswith(".py") else max(column, 1)
            )
        case NameLoc():
            return origin_in_frontend(location.location)
        case CallSiteLoc():
            return origin_in_frontend(location.callee) or origin_in_frontend(location.caller)
        case FusedLoc():
            found = (origin_in_frontend(part) for part in parts_of(location))
            return next((each for each in found if each is not None), None)
        case _:
            return None
