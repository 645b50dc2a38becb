"""What the source calls values, and what of it says anything."""

from __future__ import annotations

import re
from functools import cache

from xdsl.ir import Operation, SSAValue

from ttcodegen.dialects.operations.operation import operation_name
from ttcodegen.naming.layers import location_name
from ttcodegen.ops.core.definition import TTIR, TTNN

# A frontend's counters (`dot.31`, `add_5`) say nothing that the order of the code does not.
_COUNTER = re.compile(r"[._]\d+$")
GENERIC = frozenset(
    "arg args input output out result res tmp val value v x y cst const constant".split()
)
_NUMBER = re.compile(r"(?:_?\d+)+$")
_INSTRUCTION = re.compile(r"([a-z][a-z-]*)\.\d+(_\w+)?$")
"""An instruction of HLO, which is called after its opcode, and what a pass made of it: `dot.31`,
`gather.62_reshapeStartIndices`."""
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
"""The opcodes of HLO. Source: xla/hlo/ir/hlo_opcode.h."""
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
"""The primitives of JAX, which its locations end in. Source: the names that jax._src.lax gives."""
_PRINTED = frozenset(
    """
    broadcasted cast collapsed concat dim expanded extracted extracted_slice from_elements generated
    inserted inserted_slice mapped padded reduced reshape splat transposed
    """.split()
)
"""How MLIR prints results of the dialects `tensor` and `linalg` that have no name. Source: their
functions `getAsmResultNames`."""
_MADE_BY_PASS = re.compile(
    r"(?:_(?:permute|reshape|broadcast|transpose|squeeze|unsqueeze|slice|pad|typecast)[A-Z]\w*?)+$"
)
"""What passes add to the name of an op that they take apart: `_permuteSource_reshapeSource`."""


@cache
def _op_names() -> frozenset[str]:
    return frozenset((*TTIR, *TTNN)) | _PRIMITIVES


def given_name(value: SSAValue) -> str | None:
    """What the source calls a value, None if that says nothing."""
    hint = value.name_hint and _MADE_BY_PASS.sub("", value.name_hint)
    if hint and not is_generic(hint) and not _is_printed(hint) and hint not in _op_names():
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


def _is_printed(hint: str) -> bool:
    return _NUMBER.sub("", hint) in _PRINTED


_DEFAULT_CONSTANT = re.compile(r"c(m?)(\d+)(?:_\w+)?$")
"""How MLIR prints numbers without a name: `%c32`, `%c0_i32`, `%cm1`."""


def constant_name(value: SSAValue, number: int) -> str | None:
    """What the text of a module calls a number, None if that is how MLIR prints any such number."""
    name = value.name_hint
    default = _DEFAULT_CONSTANT.match(name) if name else None
    if default is not None and int(default[2]) == (-number if default[1] else number):
        return None
    return name


def is_generic(name: str) -> bool:
    """True if a name is one that any value could have: `x`, `arg10`."""
    return _NUMBER.sub("", name) in GENERIC


def name_in_text(value: SSAValue, otherwise: str) -> str:
    """What the text of a module calls a value, else that: for values that are not replaced,
    as those of kernels do."""
    return value.name_hint or otherwise


def name_or_kind(op: Operation) -> str:
    """What the source calls the result of an op, else what the op is."""
    hint = op.results[0].name_hint if op.results else None
    return hint or operation_name(op).rpartition(".")[2]
