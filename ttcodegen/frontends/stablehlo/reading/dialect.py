"""Operations of StableHLO and its companion dialects.

`mhlo` and `chlo` spell many operations of StableHLO under names of their own; all of them are
`StableHLOOp`s, and `short_name` says what they compute.
"""

from __future__ import annotations

from functools import cache
from typing import cast

from xdsl.context import Context
from xdsl.ir import Dialect, Operation

from ttcodegen.frontends.stablehlo.reading.assembly import parse_form
from ttcodegen.frontends.stablehlo.reading.operations import StableHLOOp
from ttcodegen.ops.dialects import load_dialects

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


@cache
def _dialect(name: str, short_names: tuple[str, ...]) -> Dialect:
    classes: list[type[Operation]] = [
        type(
            f"{name}_{short}",
            (StableHLOOp,),
            {"name": f"{name}.{short}", "short_name": short, "parse": classmethod(parse_form)},
        )
        for short in dict.fromkeys(short_names)
    ]
    return Dialect(name, classes, [])


def operation_class(name: str) -> type[StableHLOOp] | None:
    """Returns the operation class of a full name, None if there is none."""
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
    """Creates a context with the dialects of StableHLO files."""
    context = load_dialects()
    for dialect in _dialects():
        context.load_dialect(dialect)
    return context
