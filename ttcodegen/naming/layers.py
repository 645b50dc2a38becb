"""The layer that an op belongs to, and what layers have in common."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, CallSiteLoc, FusedLoc, NameLoc
from xdsl.ir import Attribute, Operation, SSAValue

from ttcodegen.emitc.identifiers import identifier

_PARTS = re.compile(r"[./]")
_WEIGHT = re.compile(r"(?i)[._/]*(weights?|bias|kernel|gamma|beta|scale|running_mean|running_var)$")
_PARAMETRIZED = re.compile(r"(?i)[._/]parametrizations([._/]\w+)[._/]original\d*$")
"""A weight that torch computes from another one: `fc.parametrizations.weight.original`."""
_ROOT = re.compile(r"(?i)^(?:getattr_)?(?:l__self_+|self_+|model\.)")
_TRACED = re.compile(r"^(?:jit\([^/]*\)/)+")
"""The functions that JAX traces, around the layers of their locations."""
_LOCATION_PARTS = 1000
_FEWEST_WORDS = 2
"""Words after a number that say by themselves what a layer is."""


def location_name(location: Attribute) -> str | None:
    """The name in a location, the first one in its text; None if it has none.

    Of a location with more parts than a person looks at, the first ones count.
    """
    rest: list[Attribute] = [location]
    for _ in range(_LOCATION_PARTS):
        if not rest:
            return None
        match part := rest.pop():
            case NameLoc() if part.desc.data:
                return part.desc.data
            case CallSiteLoc():
                rest.append(part.callee)
            case FusedLoc():
                inner = cast("ArrayAttr[Attribute]", part.locations)
                rest.extend(reversed(inner.data))
            case _:
                pass
    return None


def plain_name(name: str) -> str:
    """The name of an argument without what frameworks put around it: `fc.weight` for
    `model.fc.parametrizations.weight.original`."""
    return _ROOT.sub("", _PARAMETRIZED.sub(r"\1", name)) or name


def stem_of_weight(name: str) -> str:
    """The name of a weight without what says that it is one: `conv1.weight` -> `conv1`."""
    return _WEIGHT.sub("", _PARAMETRIZED.sub(r"\1", name))


def layer_of_weight(name: str) -> str | None:
    """The layer that a weight belongs to by its name: `layer1.conv1.weight` -> `layer1.conv1`."""
    stripped = stem_of_weight(name)
    if stripped == name or not stripped:
        return None
    return _ROOT.sub("", stripped)


def layer(op: Operation, weight_names: Mapping[SSAValue, str]) -> str | None:
    """The layer an op belongs to: the scope of its location, or else that of a weight it uses."""
    name = location_name(op.location)
    if name is not None and (layers := _TRACED.sub("", name).rpartition("/")[0]):
        return layers
    for operand in op.operands:
        weight = weight_names.get(operand)
        if weight is not None and (found := layer_of_weight(weight)) is not None:
            return found
    return None


def short_layer(name: str) -> str:
    """The end of a layer's path that distinguishes it from its neighbours: two parts of it,
    and those before that if the first of them is a number. A number at the end, the position in a
    sequence, says nothing of what the layer is."""
    parts = _PARTS.split(name)
    if len(parts) == 1:
        return _after_number(name)
    if parts[-1].isdigit():
        parts.pop()
    start = max(len(parts) - 2, 0)
    while start and parts[start][:1].isdigit():
        start -= 1
    return ".".join(parts[start:])


def numbered_layer(name: str) -> str | None:
    """The innermost layer of a path that has a number, with that: `m.1` of `model.2.m.1.conv`; None
    if there is none."""
    parts = _PARTS.split(name)
    for index in range(len(parts) - 1, 0, -1):
        if parts[index].isdigit() and not parts[index - 1].isdigit():
            return f"{parts[index - 1]}.{parts[index]}"
    return None


def _after_number(name: str) -> str:
    """The same of a path that is one word: `encoder_layer_0_attention_query` is
    `attention_query`."""
    words = name.split("_")
    number = max((index for index, word in enumerate(words) if word.isdigit()), default=0)
    start = number - 1 if len(words) - number - 1 < _FEWEST_WORDS else number + 1
    return "_".join(words[start:]) if number and start > 0 and words[start:] else name


def common_parts(first: str, second: str) -> int:
    """How many of their first parts two layers share."""
    pairs = zip(_PARTS.split(first), _PARTS.split(second), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1] != "", pairs))


def common_layer(layers: Sequence[str]) -> str | None:
    """What the layers of most ops have in common, None if nothing."""
    counts = Counter(layer for layer in layers if layer)
    if not counts:
        return None
    named = [name for name, count in counts.items() if count * 20 >= len(layers)]
    first, *others = named or list(counts)
    shared = min((common_parts(first, other) for other in others), default=None)
    if shared is None:
        return first
    return ".".join(_PARTS.split(first)[:shared]) or _most_common(counts)


def _most_common(counts: Counter[str]) -> str | None:
    """The longest path that more than half of the ops are in."""
    inside: Counter[str] = Counter()
    for name, count in counts.items():
        parts = _PARTS.split(name)
        for length in range(1, len(parts) + 1):
            inside[".".join(parts[:length])] += count
    half = counts.total() / 2
    return max((path for path, count in inside.items() if count > half), key=len, default=None)


def whole_layer(layers: Sequence[str]) -> str | None:
    """The path of the layer that consists of these; what they are numbered by is not part of it:
    `encoder.1` for `encoder.1.linear.0` and `encoder.1.linear.1`."""
    title = common_layer(layers)
    if title is not None and any(re.match(r"[./]\d", each.removeprefix(title)) for each in layers):
        return title.rpartition(".")[0] or title
    return title


def name_in_layer(name: str, title: str | None) -> str:
    """The name of a value of a layer without the path of the layer."""
    if title is None:
        return name
    for path in (title, identifier(title)):
        position = name.find(path)
        rest = name[position + len(path) :].lstrip("._/")
        if position >= 0 and rest and name[position + len(path)] in "._/":
            return rest
    return name
