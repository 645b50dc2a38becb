"""Rows of the vector engine's ops (SFPU), which read and write destination registers.

Operand names are those of the reference dialect (2026), C++ calls those of tt-metal
(tt_metal/hw/inc/api/compute).
"""

from __future__ import annotations

from ttcodegen.dialects.ttkernel.definition import Engine, KernelFunction, KernelOp, calls, row

_API = "api/compute/"
_KERNEL_API = "compute_kernel_api.h"
_ONE = "dst_index:dst"
_TWO_TO_ONE = "dst0_index:dst dst1_index:dst odst_index:dst"


def _sfpu(
    name: str, operands: str, cpp: KernelFunction, init: str | None, attributes: str = ""
) -> KernelOp:
    return row(name, operands, cpp, attributes=attributes, engine=Engine.SFPU, init=init)


def _init(
    name: str, header: str, operands: str = "", template_words: str = "", attributes: str = ""
) -> KernelOp:
    cpp = calls(_API + header, template_words=template_words)
    return row(name, operands, cpp, attributes=attributes, engine=Engine.INIT)


_UNARY_HEADERS: dict[str, str] = {
    "abs": _KERNEL_API,
    "acos": "eltwise_unary/trigonometry.h",
    "acosh": "eltwise_unary/trigonometry.h",
    "asin": "eltwise_unary/trigonometry.h",
    "asinh": "eltwise_unary/trigonometry.h",
    "atan": "eltwise_unary/trigonometry.h",
    "atanh": "eltwise_unary/trigonometry.h",
    "bitwise_not": "eltwise_unary/bitwise_not.h",
    "cbrt": "eltwise_unary/cbrt.h",
    "cos": "eltwise_unary/trigonometry.h",
    "cosh": "eltwise_unary/trigonometry.h",
    "eqz": "eltwise_unary/comp.h",
    "erfc": "eltwise_unary/erf_erfc.h",
    "erfinv": "eltwise_unary/erfinv.h",
    "exp2": _KERNEL_API,
    "gez": "eltwise_unary/comp.h",
    "gtz": "eltwise_unary/comp.h",
    "hardmish": "eltwise_unary/hardmish.h",
    "hardsigmoid": "eltwise_unary/activations.h",
    "i0": "eltwise_unary/i0.h",
    "i1": "eltwise_unary/i1.h",
    "identity": "eltwise_unary/identity.h",
    "isfinite": "eltwise_unary/isinf_isnan.h",
    "isinf": "eltwise_unary/isinf_isnan.h",
    "isnan": "eltwise_unary/isinf_isnan.h",
    "isneginf": "eltwise_unary/isinf_isnan.h",
    "isposinf": "eltwise_unary/isinf_isnan.h",
    "lez": "eltwise_unary/comp.h",
    "ltz": "eltwise_unary/comp.h",
    "negative": "eltwise_unary/negative.h",
    "nez": "eltwise_unary/comp.h",
    "relu": "eltwise_unary/relu.h",
    "sign": _KERNEL_API,
    "signbit": _KERNEL_API,
    "silu": _KERNEL_API,
    "sin": "eltwise_unary/trigonometry.h",
    "sinh": "eltwise_unary/trigonometry.h",
    "softsign": "eltwise_unary/activations.h",
    "square": _KERNEL_API,
    "tan": "eltwise_unary/trigonometry.h",
    "tiled_prod": _KERNEL_API,
}
"""Functions of one register without further arguments, with their headers."""

_APPROXIMATING_HEADERS: dict[str, tuple[str, str]] = {
    "erf": ("eltwise_unary/erf_erfc.h", "fast_and_approx=true"),
    "expm1": (_KERNEL_API, "approx=false"),
    "gelu": ("eltwise_unary/gelu.h", "fast_and_approx=true"),
    "gelu_derivative": ("eltwise_unary/gelu.h", "fast_and_approx=false"),
    "log": (_KERNEL_API, "fast_and_approx=false"),
    "log1p": ("eltwise_unary/log1p.h", "fast_and_approx=false"),
    "recip": ("eltwise_unary/recip.h", "legacy_compat=true"),
    "tanh": (_KERNEL_API, "fast_and_approx=false"),
    "tanh_derivative": ("eltwise_unary/tanh_derivative.h", "fast_and_approx=false"),
}
"""Functions of one register with a template argument that trades precision for speed.

Init and function both take the argument.
"""

_INT32_HEADERS: dict[str, str] = {
    "abs": _KERNEL_API,
    "eqz": "eltwise_unary/comp.h",
    "gez": "eltwise_unary/comp.h",
    "gtz": "eltwise_unary/comp.h",
    "lez": "eltwise_unary/comp.h",
    "ltz": "eltwise_unary/comp.h",
    "negative": "eltwise_unary/negative.h",
    "nez": "eltwise_unary/comp.h",
    "relu": "eltwise_unary/relu.h",
    "signbit": _KERNEL_API,
}
"""Functions with an integer variant, which uses the same init unless it has its own."""


def _unary(name: str, header: str, template: str = "") -> tuple[KernelOp, KernelOp]:
    cpp = calls(_API + header, template_words=template)
    attributes = template.partition("=")[0] + "?:bool" if template else ""
    init = f"{name}_tile_init"
    return (
        row(init, "", cpp, attributes=attributes, engine=Engine.INIT),
        _sfpu(f"{name}_tile", _ONE, cpp, init, attributes),
    )


def _int32(name: str, header: str) -> KernelOp:
    init = "signbit_tile_int32_init" if name == "signbit" else f"{name}_tile_init"
    return _sfpu(f"{name}_tile_int32", _ONE, calls(_API + header), init)


_EXP = "eltwise_unary/exp.h"
_CLAMPING = "InputClamping::ClampToNegative"

UNARY: tuple[KernelOp, ...] = (
    *(op for name, header in _UNARY_HEADERS.items() for op in _unary(name, header)),
    *(op for name, (h, words) in _APPROXIMATING_HEADERS.items() for op in _unary(name, h, words)),
    *(_int32(name, header) for name, header in _INT32_HEADERS.items()),
    _init("signbit_tile_int32_init", _KERNEL_API),
    _init(
        "exp_tile_init",
        _EXP,
        template_words=f"approx=false scale=0x3F800000 input_clamping={_CLAMPING}",
        attributes="approx?:bool scale?:i32 input_clamping?:input_clamping",
    ),
    _sfpu(
        "exp_tile",
        _ONE,
        calls(
            _API + _EXP,
            template_words=f"approx=false scale_en=false input_clamping={_CLAMPING} iterations=8",
        ),
        "exp_tile_init",
        "approx?:bool scale_en?:bool input_clamping?:input_clamping iterations?:positive",
    ),
    _init("sqrt_tile_init", "eltwise_unary/sqrt.h"),
    _sfpu(
        "sqrt_tile",
        _ONE,
        calls(_API + "eltwise_unary/sqrt.h", template_words="fast_and_approx=false"),
        "sqrt_tile_init",
        "fast_and_approx?:bool",
    ),
    _init(
        "rsqrt_tile_init",
        "eltwise_unary/rsqrt.h",
        template_words="legacy_compat=false",
        attributes="legacy_compat?:bool",
    ),
    _sfpu(
        "rsqrt_tile",
        _ONE,
        calls(
            _API + "eltwise_unary/rsqrt.h",
            template_words="legacy_compat=false fast_and_approx=false",
        ),
        "rsqrt_tile_init",
        "legacy_compat?:bool fast_and_approx?:bool",
    ),
    _init(
        "sigmoid_tile_init",
        _KERNEL_API,
        template_words="fast_and_approx=false",
        attributes="fast_and_approx?:bool",
    ),
    _sfpu(
        "sigmoid_tile",
        _ONE,
        calls(_API + _KERNEL_API, template_words="=VectorMode::RC fast_and_approx=false"),
        "sigmoid_tile_init",
        "fast_and_approx?:bool",
    ),
    _init("logical_not_tile_init", "eltwise_unary/logical_not.h"),
    _sfpu(
        "logical_not_tile",
        _ONE,
        calls(_API + "eltwise_unary/logical_not.h", template_words="dtype"),
        "logical_not_tile_init",
        "dtype:dtype",
    ),
    _init("rounding_op_tile_init", "eltwise_unary/rounding.h"),
    *(
        _sfpu(name, _ONE, calls(_API + "eltwise_unary/rounding.h"), "rounding_op_tile_init")
        for name in ("ceil_tile", "floor_tile", "frac_tile", "trunc_tile", "stochastic_round_tile")
    ),
    _sfpu(
        "round_tile",
        f"{_ONE} decimals:int",
        calls(_API + "eltwise_unary/rounding.h"),
        "rounding_op_tile_init",
    ),
)

_TYPECAST = "eltwise_unary/typecast.h"

CASTS_AND_FILLS: tuple[KernelOp, ...] = (
    _init(
        "typecast_tile_init",
        _TYPECAST,
        template_words="in_dtype out_dtype",
        attributes="in_dtype:dtype_number out_dtype:dtype_number",
    ),
    _sfpu(
        "typecast_tile",
        "dst0_index:dst",
        calls(_API + _TYPECAST, template_words="in_dtype out_dtype"),
        "typecast_tile_init",
        "in_dtype:dtype_number out_dtype:dtype_number",
    ),
    _init("fill_tile_init", "eltwise_unary/fill.h"),
    _sfpu(
        "fill_tile",
        f"{_ONE} value:f32",
        calls(_API + "eltwise_unary/fill.h"),
        "fill_tile_init",
    ),
    _sfpu(
        "fill_tile_int",
        f"{_ONE} value:int",
        calls(_API + "eltwise_unary/fill.h", template_words="dtype!=DataFormat::Int32"),
        "fill_tile_init",
        "dtype?:integer_dtype",
    ),
    _sfpu(
        "fill_tile_bitcast",
        f"{_ONE} value:int",
        calls(_API + "eltwise_unary/fill.h"),
        "fill_tile_init",
    ),
    _init("rand_tile_init", "eltwise_unary/rand.h", "seed?:int"),
    _sfpu(
        "rand_tile",
        "tile_index:dst from:int scale:int",
        calls(_API + "eltwise_unary/rand.h"),
        "rand_tile_init",
    ),
    _init("dropout_kernel_init", "eltwise_unary/dropout.h", "seed?:int"),
    _sfpu(
        "dropout_tile",
        f"{_ONE} probability:int scale_factor:int",
        calls(_API + "eltwise_unary/dropout.h"),
        "dropout_kernel_init",
    ),
    _init("copy_dest_values_init", "copy_dest_values.h"),
    _sfpu(
        "copy_dest_values",
        "idst_in:dst idst_out:dst",
        calls(_API + "copy_dest_values.h", template_words="data_format"),
        "copy_dest_values_init",
        "data_format:dtype",
    ),
)

_SCALAR_HEADERS: dict[str, str] = {
    "elu": "eltwise_unary/elu.h",
    "hardshrink": "eltwise_unary/activations.h",
    "heaviside": _KERNEL_API,
    "leaky_relu": "eltwise_unary/relu.h",
    "left_shift": "eltwise_unary/left_shift.h",
    "power": _KERNEL_API,
    "power_iterative": _KERNEL_API,
    "prelu": "eltwise_unary/prelu.h",
    "rdiv": "eltwise_unary/rdiv.h",
    "relu_max": "eltwise_unary/relu.h",
    "relu_min": "eltwise_unary/relu.h",
    "right_shift": "eltwise_unary/right_shift.h",
    "rpow": "eltwise_unary/rpow.h",
    "softshrink": "eltwise_unary/activations.h",
    "unary_eq": "eltwise_unary/comp.h",
    "unary_ge": "eltwise_unary/comp.h",
    "unary_gt": "eltwise_unary/comp.h",
    "unary_le": "eltwise_unary/comp.h",
    "unary_lt": "eltwise_unary/comp.h",
    "unary_max": _KERNEL_API,
    "unary_min": _KERNEL_API,
    "unary_ne": "eltwise_unary/comp.h",
}
"""Functions of one register and one scalar (the bits of a float, or an integer)."""


def _with_scalar(name: str, header: str) -> tuple[KernelOp, KernelOp]:
    init = f"{name}_tile_init"
    operands = f"{_ONE} param:int"
    return _init(init, header), _sfpu(f"{name}_tile", operands, calls(_API + header), init)


_BINOP = "eltwise_unary/binop_with_scalar.h"
_TWO_PARAMETERS = f"{_ONE} min_param:int max_param:int"

SCALARS: tuple[KernelOp, ...] = (
    *(op for name, header in _SCALAR_HEADERS.items() for op in _with_scalar(name, header)),
    *(
        _sfpu(
            f"unary_{comparison}_tile_int32",
            f"{_ONE} param:int",
            calls(_API + "eltwise_unary/comp.h"),
            f"unary_{comparison}_tile_init",
        )
        for comparison in ("eq", "ge", "gt", "le", "lt", "ne")
    ),
    _init("unary_max_int32_tile_init", _KERNEL_API),
    _sfpu(
        "unary_max_int32_tile",
        f"{_ONE} param:int",
        calls(_API + _KERNEL_API),
        "unary_max_int32_tile_init",
    ),
    _init("unary_min_int32_tile_init", _KERNEL_API),
    _sfpu(
        "unary_min_int32_tile",
        f"{_ONE} param:int",
        calls(_API + _KERNEL_API),
        "unary_min_int32_tile_init",
    ),
    _init("binop_with_scalar_tile_init", _BINOP),
    *(
        _sfpu(
            f"{verb}_unary_tile",
            "dst0_index:dst param:int",
            calls(_API + _BINOP),
            "binop_with_scalar_tile_init",
        )
        for verb in ("add", "sub", "mul", "div", "rsub")
    ),
    *(
        _sfpu(
            f"{verb}_unary_tile_int32",
            "dst0_index:dst param:int",
            calls(_API + _BINOP),
            "binop_with_scalar_tile_init",
        )
        for verb in ("add", "sub")
    ),
    _init("clamp_tile_init", "eltwise_unary/clamp.h"),
    _sfpu(
        "clamp_tile",
        _TWO_PARAMETERS,
        calls(_API + "eltwise_unary/clamp.h"),
        "clamp_tile_init",
    ),
    _sfpu(
        "clamp_tile_int32",
        _TWO_PARAMETERS,
        calls(_API + "eltwise_unary/clamp.h"),
        "clamp_tile_init",
    ),
    _init("hardtanh_tile_init", "eltwise_unary/hardtanh.h"),
    _sfpu(
        "hardtanh_tile",
        _TWO_PARAMETERS,
        calls(_API + "eltwise_unary/hardtanh.h"),
        "hardtanh_tile_init",
    ),
    _init("celu_tile_init", "eltwise_unary/activations.h"),
    _sfpu(
        "celu_tile",
        f"{_ONE} alpha:int alpha_reciprocal:int",
        calls(_API + "eltwise_unary/activations.h"),
        "celu_tile_init",
    ),
    _init("selu_tile_init", "eltwise_unary/selu.h"),
    _sfpu(
        "selu_tile",
        "tile_index:dst scale:int alpha:int",
        calls(_API + "eltwise_unary/selu.h"),
        "selu_tile_init",
    ),
    _init("softplus_tile_init", "eltwise_unary/softplus.h"),
    _sfpu(
        "softplus_tile",
        f"{_ONE} beta:int beta_reciprocal:int threshold:int",
        calls(_API + "eltwise_unary/softplus.h"),
        "softplus_tile_init",
    ),
    _init("threshold_tile_init", "eltwise_unary/threshold.h"),
    _sfpu(
        "threshold_tile",
        f"{_ONE} threshold:int value:int",
        calls(_API + "eltwise_unary/threshold.h"),
        "threshold_tile_init",
    ),
    *(
        op
        for name in ("fmod", "remainder")
        for op in (
            _init(f"{name}_tile_init", f"eltwise_unary/{name}.h", "value:int value_reciprocal:int"),
            _sfpu(
                f"{name}_tile",
                f"{_ONE} value:int value_reciprocal:int",
                calls(f"{_API}eltwise_unary/{name}.h"),
                f"{name}_tile_init",
            ),
        )
    ),
)

_BINARY = "eltwise_binary_sfpu.h"
_BINARY_HEADERS: dict[str, str] = {
    **{
        f"{verb}_binary": _BINARY for verb in "add div eq ge gt le lt mul ne power rsub sub".split()
    },
    "atan2_binary": "atan2.h",
    "binary_max": "binary_max_min.h",
    "binary_max_int32": "binary_max_min.h",
    "binary_max_uint32": "binary_max_min.h",
    "binary_min": "binary_max_min.h",
    "binary_min_int32": "binary_max_min.h",
    "binary_min_uint32": "binary_max_min.h",
    "div_int32": "div_int32_sfpu.h",
    "div_int32_floor": "div_int32_floor.h",
    "div_int32_trunc": "div_int32_floor.h",
    "fmod_binary": "binary_fmod.h",
    "fmod_int32": "binary_fmod.h",
    "gcd": "gcd.h",
    "lcm": "lcm.h",
    "logsigmoid": "logsigmoid.h",
    "remainder_binary": "binary_remainder.h",
    "remainder_int32": "binary_remainder.h",
    "xlogy_binary": "xlogy.h",
}
"""Functions of two registers, each with its own init."""


def _binary(name: str, header: str) -> tuple[KernelOp, KernelOp]:
    init = f"{name}_tile_init"
    return _init(init, header), _sfpu(f"{name}_tile", _TWO_TO_ONE, calls(_API + header), init)


def _integers(name: str, header: str, init: str) -> KernelOp:
    """Row of a function of two integer registers, with the format as a template argument."""
    cpp = calls(_API + header, template_words="dtype")
    return _sfpu(name, _TWO_TO_ONE, cpp, init, "dtype:integer_dtype")


BINARY: tuple[KernelOp, ...] = (
    *(op for name, header in _BINARY_HEADERS.items() for op in _binary(name, header)),
    _init("add_int_tile_init", "add_int_sfpu.h"),
    _integers("add_int_tile", "add_int_sfpu.h", "add_int_tile_init"),
    _init("sub_int_tile_init", "sub_int_sfpu.h"),
    _integers("sub_int_tile", "sub_int_sfpu.h", "sub_int_tile_init"),
    _init("rsub_int_tile_init", "sub_int_sfpu.h"),
    _integers("rsub_int_tile", "sub_int_sfpu.h", "rsub_int_tile_init"),
    _init(
        "mul_int_tile_init",
        "mul_int_sfpu.h",
        template_words="dtype",
        attributes="dtype:integer_dtype",
    ),
    _integers("mul_int_tile", "mul_int_sfpu.h", "mul_int_tile_init"),
    *(
        op
        for comparison in ("lt", "gt", "le", "ge")
        for op in (
            _init(
                f"{comparison}_int_tile_init",
                "binary_comp.h",
                template_words="dtype",
                attributes="dtype:integer_dtype",
            ),
            _integers(f"{comparison}_int_tile", "binary_comp.h", f"{comparison}_int_tile_init"),
        )
    ),
    _init("binary_bitwise_tile_init", "binary_bitwise_sfpu.h"),
    *(
        _integers(
            f"bitwise_{verb}_binary_tile", "binary_bitwise_sfpu.h", "binary_bitwise_tile_init"
        )
        for verb in ("and", "or", "xor")
    ),
    _init("binary_shift_tile_init", "binary_shift.h"),
    *(
        _integers(f"binary_{shift}_tile", "binary_shift.h", "binary_shift_tile_init")
        for shift in ("left_shift", "right_shift", "logical_right_shift")
    ),
    _init("where_tile_init", "eltwise_unary/where.h"),
    _sfpu(
        "where_tile",
        "dst_cond_index:dst dst_true_index:dst dst_false_index:dst odst_index:dst",
        calls(_API + "eltwise_unary/where.h", template_words="dtype"),
        "where_tile_init",
        "dtype:dtype",
    ),
    _init("lerp_tile_init", "eltwise_unary/lerp.h"),
    _sfpu(
        "lerp_tile",
        "dst0_index:dst dst1_index:dst dst2_index:dst odst_index:dst",
        calls(_API + "eltwise_unary/lerp.h", template_words="dtype"),
        "lerp_tile_init",
        "dtype:dtype",
    ),
    _init("mask_tile_init", "mask.h"),
    _sfpu("mask_tile", "dst_index:dst mask_index:dst", calls(_API + "mask.h"), "mask_tile_init"),
    _sfpu(
        "mask_posinf_tile", "dst_index:dst mask_index:dst", calls(_API + "mask.h"), "mask_tile_init"
    ),
)


def _column_or_row(verb: str, direction: str) -> tuple[KernelOp, KernelOp]:
    """Rows of a function of a register and the first column or row of another one."""
    name = f"sfpu_{verb}_bcast_{direction}"
    header = "sfpu_binary_bcast.h"
    return (
        _init(f"{name}_init", header),
        _sfpu(
            name, "dst_data_index:dst dst_vector_index:dst", calls(_API + header), f"{name}_init"
        ),
    )


_SFPU_REDUCE = "reduce_type data_format"
_SFPU_REDUCE_ATTRIBUTES = "reduce_type:reduce_type data_format:dtype"

REGISTER_WISE: tuple[KernelOp, ...] = (
    *(
        op
        for verb in ("add", "sub", "mul")
        for direction in ("col", "row")
        for op in _column_or_row(verb, direction)
    ),
    _init(
        "sfpu_reduce_init",
        _KERNEL_API,
        template_words=_SFPU_REDUCE,
        attributes=_SFPU_REDUCE_ATTRIBUTES,
    ),
    _sfpu(
        "sfpu_reduce",
        _ONE,
        calls(
            _API + _KERNEL_API,
            template_words=f"{_SFPU_REDUCE} reduce_dim=ReduceDim::REDUCE_COL",
        ),
        "sfpu_reduce_init",
        f"{_SFPU_REDUCE_ATTRIBUTES} reduce_dim?:reduce_dim",
    ),
    _init("cumsum_tile_init", "cumsum.h"),
    _sfpu("cumsum_tile", f"{_ONE} first?:flag", calls(_API + "cumsum.h"), "cumsum_tile_init"),
    _init("max_reduce_with_indices_init", _KERNEL_API),
    _sfpu(
        "max_reduce_with_indices",
        "idst:dst idst_idx:dst chunk:count",
        calls(
            _API + _KERNEL_API,
            template_words="num_rows=9 =ckernel::DataLayout::TILE accumulate=false",
        ),
        "max_reduce_with_indices_init",
        "num_rows?:positive accumulate?:bool",
    ),
    _init("topk_tile_init", _KERNEL_API),
    _sfpu(
        "topk_local_sort",
        "idst:dst idir:switch i_end_phase:count i_start_phase?:count",
        calls(_API + _KERNEL_API),
        "topk_tile_init",
    ),
    _sfpu(
        "topk_merge", "idst:dst m_iter:count k:count", calls(_API + _KERNEL_API), "topk_tile_init"
    ),
    _sfpu(
        "topk_rebuild",
        "idst:dst idir:switch m_iter:count k:count logk:count skip_second:switch",
        calls(_API + _KERNEL_API),
        "topk_tile_init",
    ),
    row("invoke_sfpi", has_region=True, engine=Engine.SFPU),
)

VECTOR_ROWS: tuple[KernelOp, ...] = (
    *UNARY,
    *CASTS_AND_FILLS,
    *SCALARS,
    *BINARY,
    *REGISTER_WISE,
)
