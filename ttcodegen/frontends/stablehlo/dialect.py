"""The operations of StableHLO and of the dialects that come with it, as they are read.

`mhlo` and `chlo` spell many operations of StableHLO under names of their own; all of them are
`StableHLOOp`s here, and `short_name` says what they compute. What an operation says besides its
operands is read by name, whichever of its forms it was written in (`StableHLOOp.get`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar, cast

from xdsl.context import Context
from xdsl.dialects.builtin import (
    ArrayAttr,
    ComplexType,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    SymbolRefAttr,
    UnregisteredAttr,
)
from xdsl.ir import Attribute, Dialect, Operation, OpTraits
from xdsl.parser import Parser

from ttcodegen.dialects.constants import constant_array
from ttcodegen.ops.context import load_dialects

DIALECTS = ("stablehlo", "mhlo", "chlo", "sdy")

_STABLEHLO = """
    abs add after_all all_gather all_reduce all_to_all and atan2 batch_norm_grad
    batch_norm_inference batch_norm_training bitcast_convert broadcast broadcast_in_dim case
    cbrt ceil cholesky clamp collective_broadcast collective_permute compare complex composite
    concatenate constant convert convolution copy cosine count_leading_zeros create_token
    cross_replica_sum cross-replica-sum custom_call divide domain dot dot_general
    dynamic_broadcast_in_dim dynamic_conv dynamic_gather dynamic_iota dynamic_pad
    dynamic_reshape dynamic_slice dynamic_update_slice einsum erf exponential
    exponential_minus_one fft floor gather get_dimension_size get_tuple_element if imag infeed
    iota is_finite log log_plus_one logistic map maximum minimum multiply negate not
    optimization_barrier or outfeed pad partition_id popcnt power ragged_dot real
    real_dynamic_slice recv reduce reduce_precision reduce_scatter reduce_window remainder
    replica_id reshape return reverse rng rng_bit_generator round_nearest_afz round_nearest_even
    rsqrt scatter select select_and_scatter send set_dimension_size shift_left
    shift_right_arithmetic shift_right_logical sign sine slice sort sqrt subtract tan tanh topk
    torch_index_select transpose triangular_solve tuple unary_einsum uniform_dequantize
    uniform_quantize while xla.rng_get_and_update_state xor trace
""".split()
_CHLO_UNARY = """
    acos acosh asin asin_acos_kernel asinh atan atanh bessel_i1e conj cosh digamma erf erf_inv erfc
    is_inf is_neg_inf is_pos_inf lgamma sinh square tan
""".split()
_CHLO = [
    *_CHLO_UNARY,
    *"""
    _asin_acos_kernel broadcast_acos broadcast_add broadcast_and broadcast_atan2 broadcast_compare
    broadcast_complex broadcast_divide broadcast_maximum broadcast_minimum broadcast_multiply
    broadcast_next_after broadcast_or broadcast_polygamma broadcast_power broadcast_remainder
    broadcast_select broadcast_shift_left broadcast_shift_right_arithmetic
    broadcast_shift_right_logical broadcast_subtract broadcast_xor broadcast_zeta constant
    constant_like dynamic_reshape mulhi next_after polygamma ragged_dot scan top_k zeta
    """.split(),
]
_SDY = """
    all_gather all_reduce all_slice all_to_all collective_permute constant data_flow_edge
    manual_computation mesh named_computation propagation_barrier reduce_scatter reshard return
    sharding_constraint sharding_group
""".split()

_ITEM = re.compile(r"([a-z_]\w*)\s*=\s*(\[[^\]]*\]|\"[^\"]*\"|-?[\w.]+)")
_ENUMERATION = re.compile(r"^<?\s*(?:[a-z_]+\s+)?([A-Za-z0-9_]+)\s*>?$")


class StableHLOOp(Operation):
    """An operation of one of the dialects."""

    traits = OpTraits(tuple)
    short_name: ClassVar[str]
    """What the operation computes: its name without the dialect."""
    source_offset: int = -1

    @property
    def given(self) -> dict[str, Any]:
        """What the form of its own says, as Python values."""
        found = getattr(self, "_given", None)
        if found is None:
            found = self._given = {}
        return cast("dict[str, Any]", found)

    def get(self, name: str, default: Any = None) -> Any:
        """What the operation says under a name, as a Python value; `default` if nothing."""
        given = self.given
        if name in given:
            return given[name]
        attribute = self.properties.get(name)
        if attribute is None:
            attribute = self.attributes.get(name)
        if attribute is None:
            return default
        value = given[name] = python_value(attribute)
        return value

    @property
    def direction(self) -> str:
        """The direction of a comparison: EQ, NE, GE, GT, LE or LT, in any spelling of it."""
        return str(self["comparison_direction"]).rpartition("_")[2].upper()

    def __getitem__(self, name: str) -> Any:
        value = self.get(name)
        if value is None:
            raise ValueError(f"'{self.name}' needs the attribute '{name}'")
        return value

    def ints(self, name: str, default: Sequence[int] | None = None) -> list[int]:
        """A list of integers; raises ValueError if there is none and no default."""
        value = self.get(name)
        if value is None and default is not None:
            return list(default)
        if value is None:
            raise ValueError(f"'{self.name}' needs the attribute '{name}'")
        return [int(each) for each in _flat(value)]

    @classmethod
    def parse(cls, parser: Parser) -> Operation:
        """Reads what follows the name of the operation."""
        from ttcodegen.frontends.stablehlo.assembly import parse_form

        return parse_form(cls, parser)


def _flat(value: Any) -> list[Any]:
    if hasattr(value, "ravel"):
        return list(value.ravel())
    return list(cast("list[Any]", value)) if isinstance(value, list | tuple) else [value]


def is_unsigned(element: Attribute) -> bool:
    """Whether an element type is an unsigned integer."""
    return str(element).startswith("ui")


def part_element(element: Attribute) -> Attribute:
    """The element type of the parts of complex numbers; any other one as it is."""
    if not isinstance(element, ComplexType):
        return element
    return cast("ComplexType[Any]", element).element_type


def python_value(attribute: Attribute) -> Any:
    """An attribute as a number, text, list, numpy array or dictionary; as it is if it is none."""
    match attribute:
        case IntegerAttr():
            one_bit = isinstance(attribute.type, IntegerType) and attribute.type.bitwidth == 1
            return bool(attribute.value.data) if one_bit else attribute.value.data
        case FloatAttr():
            return attribute.value.data
        case StringAttr():
            return attribute.data
        case SymbolRefAttr():
            return attribute.string_value()
        case DenseArrayBase():
            return list(cast("DenseArrayBase[Any]", attribute).iter_values())
        case DenseIntOrFPElementsAttr():
            return constant_array(cast("DenseIntOrFPElementsAttr[Any]", attribute))
        case ArrayAttr():
            return [python_value(each) for each in attribute.data]
        case DictionaryAttr():
            return {name: python_value(value) for name, value in attribute.data.items()}
        case UnregisteredAttr():
            return _structure(attribute)
        case _:
            return attribute


def _structure(attribute: UnregisteredAttr) -> Any:
    """What an attribute of the dialect says: a dictionary, or the name of an enumerator."""
    body = attribute.value.data.strip()
    name = attribute.attr_name.data.rpartition(".")[2]
    if name == "conv":
        return convolution_dimensions(body.removeprefix("<").removesuffix(">"))
    if "=" not in body:
        match = _ENUMERATION.match(body)
        return match.group(1) if match else body
    return structure(body)


def structure(body: str) -> dict[str, Any]:
    """`a = [0, 1], b = 2` as a dictionary."""
    found: dict[str, Any] = {}
    for name, text in _ITEM.findall(body):
        if text.startswith("["):
            found[name] = [int(number) for number in re.findall(r"-?\d+", text)]
        elif re.fullmatch(r"-?\d+", text):
            found[name] = int(text)
        else:
            found[name] = {"true": True, "false": False}.get(text, text.strip('"'))
    return found


def convolution_dimensions(text: str) -> dict[str, list[str]]:
    """`[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`: what each dimension of each tensor is."""
    lists = re.findall(r"\[([^\]]*)\]", text)
    if len(lists) != 3:
        raise ValueError(f"'{text}' does not give the dimensions of a convolution")
    names = ("input", "kernel", "output")
    return {
        name: [each.strip() for each in listed.split(",") if each.strip()]
        for name, listed in zip(names, lists, strict=True)
    }


@cache
def _dialect(name: str, short_names: tuple[str, ...]) -> Dialect:
    classes: list[type[Operation]] = [
        type(f"{name}_{short}", (StableHLOOp,), {"name": f"{name}.{short}", "short_name": short})
        for short in dict.fromkeys(short_names)
    ]
    return Dialect(name, classes, [])


def operation_class(name: str) -> type[StableHLOOp] | None:
    """The class of the operation of that full name, None if there is none."""
    return _classes().get(name)


@cache
def _classes() -> dict[str, type[StableHLOOp]]:
    return {
        cast("type[StableHLOOp]", each).name: cast("type[StableHLOOp]", each)
        for dialect in _dialects()
        for each in dialect.operations
    }


def _dialects() -> tuple[Dialect, ...]:
    return (
        _dialect("stablehlo", tuple(_STABLEHLO)),
        _dialect("mhlo", (*_STABLEHLO, *_CHLO_UNARY)),
        _dialect("chlo", tuple(_CHLO)),
        _dialect("sdy", tuple(_SDY)),
    )


def stablehlo_context() -> Context:
    """The dialects that a file of StableHLO may be in."""
    context = load_dialects()
    for dialect in _dialects():
        context.load_dialect(dialect)
    return context
