"""Names that come from the source: values, and the layer that an op belongs to."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import takewhile
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, CallSiteLoc, FusedLoc, NameLoc
from xdsl.ir import Attribute, Operation, SSAValue

from ttcodegen.dialects.operations.operation import CatalogueOp, operation_name
from ttcodegen.emitc.spelling import identifier
from ttcodegen.ops.core.definition import TTIR, TTNN

# Layers of ops, and common paths of layers.

_PARTS = re.compile(r"[./]")
_WORDS = re.compile(r"([._/])")
_WEIGHT = re.compile(r"(?i)[._/]*(weights?|bias|kernel|gamma|beta|scale|running_mean|running_var)$")
_PARAMETRIZED = re.compile(r"(?i)[._/]parametrizations([._/]\w+)[._/]original\d*$")
"""Weight that torch computes from another one: `fc.parametrizations.weight.original`."""
_ROOT = re.compile(r"(?i)^(?:getattr_)?(?:l__self_+|self_+|model\.)")
_TRACED = re.compile(r"^(?:jit\([^/]*\)/)+")
"""Functions that JAX traces, around the layers of their locations."""
_LOCATION_PARTS = 1000
_FEWEST_WORDS = 2
"""Minimum number of words after a number that identify a layer."""


def location_name(location: Attribute) -> str | None:
    """Returns the first name in a location; None if it has none.

    Only a limited number of parts of a location is searched."""
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
    """Strips framework prefixes from the name of an argument.

    For example `fc.weight` for `model.fc.parametrizations.weight.original`."""
    return _ROOT.sub("", _PARAMETRIZED.sub(r"\1", name)) or name


def stem_of_weight(name: str) -> str:
    """Strips the kind of weight from a name: `conv1.weight` -> `conv1`."""
    return _WEIGHT.sub("", _PARAMETRIZED.sub(r"\1", name))


def layer_of_weight(name: str) -> str | None:
    """Layer of a weight, by its name: `layer1.conv1.weight` -> `layer1.conv1`."""
    stripped = stem_of_weight(name)
    if stripped == name or not stripped:
        return None
    return _ROOT.sub("", stripped)


_HEADS = ("q", "k", "v")
"""Initials of queries, keys and values in the names of projection weights."""


def joined_weight(names: Sequence[str]) -> str | None:
    """Name of weights that are concatenated into one.

    For example `self.qkv.weight` for `self.query.weight`, `self.key.weight` and
    `self.value.weight`. None if their layers differ in more than one word, or their kinds
    differ."""
    stems = [stem_of_weight(name) for name in names]
    kinds = {name[len(stem) :] for name, stem in zip(names, stems, strict=True)}
    if len(set(names)) < 2 or len(kinds) > 1 or any(not stem for stem in stems):
        return None
    words = [_WORDS.split(stem) for stem in stems]
    if len({len(each) for each in words}) > 1:
        return None
    differing = [i for i, same in enumerate(zip(*words, strict=True)) if len(set(same)) > 1]
    if len(differing) != 1:
        return None
    (index,) = differing
    found = [each[index] for each in words]
    start, end = ("".join(part) for part in (words[0][:index], words[0][index + 1 :]))
    if tuple(word[0].lower() for word in found) == _HEADS:
        return f"{start}qkv{kinds.pop()}"
    return f"{start}{'_'.join(found)}{end}{kinds.pop()}"


def layer(op: Operation, weight_names: Mapping[SSAValue, str]) -> str | None:
    """Layer of an op: the scope of its location, or else that of a weight it uses."""
    name = location_name(op.location)
    if name is not None and (layers := _TRACED.sub("", name).rpartition("/")[0]):
        return layers
    for operand in op.operands:
        weight = weight_names.get(operand)
        if weight is not None and (found := layer_of_weight(weight)) is not None:
            return found
    return None


def short_layer(name: str) -> str:
    """Last parts of a layer's path, which distinguish it from its neighbours.

    Two parts, preceded by further ones while the first is a number. A number at the end is dropped:
    a position in a sequence does not describe the layer."""
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
    """Innermost layer of a path with its number: `m.1` for `model.2.m.1.conv`; None otherwise."""
    parts = _PARTS.split(name)
    for index in range(len(parts) - 1, 0, -1):
        if parts[index].isdigit() and not parts[index - 1].isdigit():
            return f"{parts[index - 1]}.{parts[index]}"
    return None


def _after_number(name: str) -> str:
    """Short form of a path with underscores.

    For example `attention_query` for `encoder_layer_0_attention_query`."""
    words = name.split("_")
    number = max((index for index, word in enumerate(words) if word.isdigit()), default=0)
    start = number - 1 if len(words) - number - 1 < _FEWEST_WORDS else number + 1
    return "_".join(words[start:]) if number and start > 0 and words[start:] else name


def common_parts(first: str, second: str) -> int:
    """Number of leading parts that two layers share."""
    pairs = zip(_PARTS.split(first), _PARTS.split(second), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1] != "", pairs))


def common_layer(layers: Sequence[str]) -> str | None:
    """Common prefix of the layers of most ops; None if there is none."""
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
    """Longest path that contains more than half of the ops."""
    inside: Counter[str] = Counter()
    for name, count in counts.items():
        parts = _PARTS.split(name)
        for length in range(1, len(parts) + 1):
            inside[".".join(parts[:length])] += count
    half = counts.total() / 2
    return max((path for path, count in inside.items() if count > half), key=len, default=None)


def whole_layer(layers: Sequence[str]) -> str | None:
    """Path of the layer that consists of these, without their numbers.

    For example `encoder.1` for `encoder.1.linear.0` and `encoder.1.linear.1`."""
    title = common_layer(layers)
    while title is not None and any(_PARTS.split(title)[1:]):
        outside = [each for each in layers if each and not _is_inside(each, title)]
        # Many small modules outside count as much as a large one.
        if _SHARE_OUTSIDE * len(outside) < len(layers):
            break
        parts = _PARTS.split(title)
        if parts[-1].isdigit():
            break
        title = title[: -len(parts[-1]) - 1]
    if title is not None and any(re.match(r"[./]\d", each.removeprefix(title)) for each in layers):
        return title.rpartition(".")[0] or title
    return title


_SHARE_OUTSIDE = 8
"""Inverse of the minimum share of statements outside of a module that make the layer larger."""


def _is_inside(layer: str, title: str) -> bool:
    return layer == title or layer.startswith((f"{title}.", f"{title}/"))


def name_in_layer(name: str, title: str | None) -> str:
    """Name of a value of a layer without the path of the layer."""
    if title is None:
        return name
    for path in (title, identifier(title)):
        position = name.find(path)
        rest = name[position + len(path) :].lstrip("._/")
        if position >= 0 and rest and name[position + len(path)] in "._/":
            return rest
    return name


# Names of values in the source, and which of them are informative.


# Counters of a frontend (`dot.31`, `add_5`) carry no information beyond the order of the code.
_COUNTER = re.compile(r"[._]\d+$")
GENERIC = frozenset(
    "arg args input output out result res tmp val value v x y cst const constant".split()
)
_NUMBER = re.compile(r"(?:_?\d+)+$")
_INSTRUCTION = re.compile(r"([a-z][a-z-]*)\.\d+(_\w+)?$")
"""HLO instruction named after its opcode, with suffixes of passes.

For example `dot.31`, `gather.62_reshapeStartIndices`."""
_OPCODES = frozenset(
    """
    abs add and atan2 batch-norm-inference batch-norm-training bitcast bitcast-convert broadcast
    call cbrt ceil clamp compare complex concatenate conditional constant convert convolution copy
    cosine custom-call divide dot dynamic-slice dynamic-update-slice erf exponential
    exponential-minus-one floor fusion gather get-tuple-element imag iota is-finite log
    log-plus-one logistic map maximum minimum multiply negate not or pad parameter popcnt power
    real reduce reduce-precision reduce-window remainder reshape reverse rng rng-bit-generator
    round-nearest-afz round-nearest-even rsqrt scatter select select-and-scatter set-dimension-size
    shift-left shift-right-arithmetic shift-right-logical sign sine slice sort sqrt subtract tan
    tanh topk transpose triangular-solve tuple while xor
    """.split()
)
"""Opcodes of HLO. Source: xla/hlo/ir/hlo_opcode.h."""
_PRIMITIVES = frozenset(
    """
    add add_any and broadcast_in_dim clamp concatenate conv_general_dilated convert_element_type
    cos cumsum custom_jvp_call custom_vjp_call div dot_general dynamic_slice dynamic_update_slice
    eq erf exp exp2 expm1 floor ge gt integer_pow iota jit le log log1p logistic lt max min mul ne
    neg not or pjit pow reduce reduce_max reduce_min reduce_prod reduce_sum reduce_window_max
    reduce_window_sum rem rev rsqrt select_and_gather_add select_and_scatter select_and_scatter_add
    select_n sign sin sqrt square squeeze stop_gradient sub tanh transpose xor
    """.split()
)
"""Primitives of JAX, the last parts of its locations. Source: names in jax._src.lax."""
_PRINTED = frozenset(
    """
    broadcasted cast collapsed concat dim expanded extracted extracted_slice from_elements generated
    inserted inserted_slice mapped padded reduced reshape splat transposed
    """.split()
)
"""Default names of MLIR for results of `tensor` and `linalg` ops.

Source: their `getAsmResultNames`."""
_MADE_BY_PASS = re.compile(
    r"(?:_(?:permute|reshape|broadcast|transpose|squeeze|unsqueeze|slice|pad|typecast)[A-Z]\w*?)+$"
)
"""Suffixes that passes add to the name of an op they decompose: `_permuteSource_reshapeSource`."""


@cache
def _op_names() -> frozenset[str]:
    return frozenset((*TTIR, *TTNN)) | _PRIMITIVES


def given_name(value: SSAValue) -> str | None:
    """Name of a value in the source; None if it is uninformative."""
    hint = hinted_name(value)
    if hint is not None:
        return hint
    owner = value.owner
    if not isinstance(owner, Operation):
        return None
    name = location_name(owner.location)
    if name is None:
        return None
    end = name.rpartition("/")[2]
    if (instruction := _INSTRUCTION.match(end)) and instruction[1] in _OPCODES:
        return None
    last = _COUNTER.sub("", _MADE_BY_PASS.sub("", end))
    named = last and not last.isdigit() and not is_generic(last) and last not in _op_names()
    return last if named else None


def is_named_as_layer(value: SSAValue) -> bool:
    """Returns whether the source names a value only by the layer that computes it.

    For example `q_proj` in `layers.0.self_attn.q_proj/q_proj`."""
    if hinted_name(value) is not None or not isinstance(value.owner, Operation):
        return False
    path, _, end = (location_name(value.owner.location) or "").rpartition("/")
    return bool(path) and _PARTS.split(path)[-1] == end


def hinted_name(value: SSAValue) -> str | None:
    """Name of a value in the text of the module; None if it is uninformative."""
    hint = value.name_hint and _MADE_BY_PASS.sub("", value.name_hint)
    if not hint or is_generic(hint) or _NUMBER.sub("", hint) in _PRINTED or hint in _op_names():
        return None
    return hint


_DEFAULT_CONSTANT = re.compile(r"c(m?)(\d+)(?:_\w+)?$")
"""Default names of MLIR for constants: `%c32`, `%c0_i32`, `%cm1`."""


def constant_name(value: SSAValue, number: int) -> str | None:
    """Name of a constant in the text of a module; None for a default name of MLIR."""
    name = value.name_hint
    default = _DEFAULT_CONSTANT.match(name) if name else None
    if default is not None and int(default[2]) == (-number if default[1] else number):
        return None
    return name


def is_generic(name: str) -> bool:
    """Returns whether a name fits any value: `x`, `arg10`."""
    return _NUMBER.sub("", name) in GENERIC


def name_in_text(value: SSAValue, otherwise: str) -> str:
    """Name of a value in the text of a module, or a default.

    For values that are not replaced, such as those of kernels."""
    return value.name_hint or otherwise


def name_or_kind(op: Operation) -> str:
    """Name of an op's result in the source, or else the kind of op."""
    hint = op.results[0].name_hint if op.results else None
    return hint or operation_name(op).rpartition(".")[2]


# Names of replacements: a name of the source is passed on.


def name_replacement(value: SSAValue, replaced: SSAValue) -> None:
    """Passes a value's name to its replacement, unless that has a name or is an argument."""
    if value.name_hint is None and isinstance(value.owner, Operation):
        value.name_hint = replaced.name_hint


def name_intermediates(ops: Sequence[Operation], origin: Operation) -> None:
    """Passes the name of an op to the ops it is decomposed into.

    Ops that only rearrange operands do not get it."""
    hint = origin.results[0].name_hint if origin.results else None
    if hint is None:
        return
    computed: set[SSAValue] = set()
    for op in ops:
        rearranges = isinstance(op, CatalogueOp) and op.definition.rearranges
        if rearranges and computed.isdisjoint(op.operands):
            continue
        for result in op.results:
            computed.add(result)
            if result.name_hint is None:
                result.name_hint = hint
