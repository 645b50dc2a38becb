"""Training ops: backward of gelu, dropout, and the AdamW step."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import DataType, bf16, element_of, f32, shape_of
from ttcodegen.dialects.operations.attribute_kinds import BOOLEAN, INTEGER, NUMBER, STRING
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.calls import (
    Argument,
    CppCalls,
    Text,
    attribute_,
    cpp_call,
    cpp_text,
    operand_,
)
from ttcodegen.ops.core.definition import (
    Call,
    OperandSpec,
    TTIRDefinition,
    TTNNDefinition,
    attribute,
    operand,
    optional,
    register,
)
from ttcodegen.ops.core.dimensions import expect_element, expect_shape, require
from ttcodegen.ops.core.engine import are_kept, dropout_threshold
from ttcodegen.ops.core.lowering import Tile, TileBuilder, cpu_call
from ttcodegen.ops.core.traits import Trait
from ttcodegen.ops.elementwise.registration import require_floats, verify_broadcast
from ttcodegen.ops.elementwise.unary import erf

# gelu_bw


def _exact_slope(x: Array) -> Array:
    """Derivative of x * Phi(x), with the normal distribution function Phi."""
    density = np.exp(-0.5 * np.square(x)) / np.sqrt(2.0 * np.pi)
    return 0.5 * (1.0 + erf(x / np.sqrt(2.0))) + x * density


def _tanh_slope(x: Array) -> Array:
    """Derivative of 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))."""
    factor, cubic = np.sqrt(2.0 / np.pi), 0.044715
    t = np.tanh(factor * (x + cubic * x**3))
    inner = factor * (1.0 + 3.0 * cubic * np.square(x))
    return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - np.square(t)) * inner


SLOPES = {"none": _exact_slope, "tanh": _tanh_slope}


def _gelu_bw(call: Call) -> Array:
    return call.array("lhs") * SLOPES[call["approximate"]](call.array("rhs"))


def _verify_gelu_bw(op: CatalogueOp) -> None:
    """Floats; gradient and input broadcast to the result."""
    found = op.parameter("approximate")
    if found not in SLOPES:
        raise VerifyException(
            f"{op.name}: expected approximate to be {' or '.join(SLOPES)}, found {found!r}"
        )
    require_floats(op)
    verify_broadcast(op)


def _gelu_bw_on_cpu(op: CatalogueOp) -> str:
    return "gelu_tanh_bw" if op.parameter("approximate") == "tanh" else "gelu_bw"


def _lower_gelu_bw(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Brings both operands to one shape and data type, as the library requires."""
    element = element_of(op.result_type)
    computed = element if element in (bf16, f32) else f32
    shape = op.result_shape
    operands: list[SSAValue] = []
    for name in ("lhs", "rhs"):
        value = builder.typecast(builder.operand(op, name), computed)
        value = builder.reshape(value, [1] * (len(shape) - len(op.shape(name))) + [*op.shape(name)])
        operands.append(builder.repeat(value, shape))
    approximate = op.parameter("approximate")
    result = builder.emit("gelu_bw", operands, TensorType(computed, shape), approximate=approximate)
    return builder.typecast(result, element)


def _gelu_bw_tiles(builder: TileBuilder, op: CatalogueOp, tiles: Sequence[Tile]) -> Tile:
    """Uses the exact derivative for both forms."""
    slope = builder.call("gelu_derivative_tile", tiles[1], fast_and_approx=False)
    return builder.call("mul_binary_tile", tiles[0], slope)


_APPROXIMATE = attribute("approximate", STRING, "none")

register(
    TTIRDefinition(
        "ttir.gelu_bw",
        (operand("lhs"), operand("rhs")),
        (_APPROXIMATE,),
        verify=_verify_gelu_bw,
        numpy=_gelu_bw,
        lower=_lower_gelu_bw,
        counts=True,
        tile=_gelu_bw_tiles,
        cpu=cpu_call("elementwise", function=_gelu_bw_on_cpu),
    )
)

_FLOATS = (DataType.BFLOAT16, DataType.FLOAT32)

register(
    TTNNDefinition(
        "ttnn.gelu_bw",
        (OperandSpec("lhs", data_types=_FLOATS), OperandSpec("rhs", data_types=_FLOATS)),
        (_APPROXIMATE,),
        vector_cycles=137,
        verify=_verify_gelu_bw,
        numpy=_gelu_bw,
        cpp=cpp_call(
            "ttnn::experimental::gelu_bw",
            "ttnn/operations/experimental/unary_backward/gelu_backward/gelu_backward.hpp",
            operand_("lhs"),
            operand_("rhs"),
            attribute_("approximate", default="none"),
        ),
    )
)

# dropout


def _verify_dropout(op: CatalogueOp) -> None:
    """Floats of unchanged shape and type; prob is from 0 to 1 and the scale positive."""
    probability, scale = op.parameter("prob"), op.parameter("scale")
    if not 0 <= probability <= 1:
        raise VerifyException(f"{op.name}: expected prob from 0 to 1, found {probability}")
    if not 0 < scale < float("inf"):
        raise VerifyException(f"{op.name}: expected a positive scale, found {scale}")
    require_floats(op)
    expect_shape(op, op.shape("input"))
    expect_element(op, "input")


def _dropout(call: Call) -> Array:
    x = call.array("input")
    kept = are_kept(call["seed"], x.shape, call["prob"])
    return np.where(kept, x * np.float32(call["scale"]), np.float32(0))


def _dropout_on_cpu(op: CatalogueOp) -> dict[str, float | int]:
    return {
        "prob": float(op.parameter("prob")),
        "scale": float(op.parameter("scale")),
        "seed": op.parameter("seed"),
    }


def _dropout_tiles(builder: TileBuilder, op: CatalogueOp, tiles: Sequence[Tile]) -> Tile:
    threshold = dropout_threshold(op.parameter("prob"))
    parameters = (threshold, float(op.parameter("scale")))
    return builder.call("dropout_tile", tiles[0], parameters=parameters, seed=op.parameter("seed"))


def _lower_dropout(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Computes in bf16, as the library does."""
    value = builder.typecast(builder.operand(op, "input"), bf16)
    names = ("prob", "scale", "seed", "use_per_device_seed")
    result = builder.like("dropout", value, **{name: op.parameter(name) for name in names})
    return builder.typecast(result, element_of(op.result_type))


_DROPOUT = (
    attribute("prob", NUMBER, 0.0),
    attribute("scale", NUMBER, 1.0),
    attribute("seed", INTEGER, 0),
    attribute("use_per_device_seed", BOOLEAN, True),
)

register(
    TTIRDefinition(
        "ttir.dropout",
        (operand("input"),),
        _DROPOUT,
        verify=_verify_dropout,
        numpy=_dropout,
        lower=_lower_dropout,
        draws=True,
        tile=_dropout_tiles,
        cpu=cpu_call("random", _dropout_on_cpu),
    )
)


def _cpp_dropout(calls: CppCalls, op: CatalogueOp) -> None:
    calls.include("ttnn/operations/experimental/dropout/dropout.hpp")
    arguments: list[Argument] = [
        calls[op.operands[0]],
        Text(cpp_text(float(op.parameter("prob")))),
        Text(cpp_text(float(op.parameter("scale")))),
        Text(str(op.parameter("seed"))),
    ]
    if not op.parameter("use_per_device_seed"):
        arguments.append(Text("/*use_per_device_seed=*/false"))
    calls.bind(op.results[0], calls.call("ttnn::experimental::dropout", *arguments))


register(
    TTNNDefinition(
        "ttnn.dropout",
        (OperandSpec("input", data_types=(DataType.BFLOAT16,)),),
        _DROPOUT,
        verify=_verify_dropout,
        numpy=_dropout,
        cpp=_cpp_dropout,
        pure=False,
        traits=Trait.ALTERS,
    )
)

# adamw


MOMENTS = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")


def _verify_adamw(op: CatalogueOp) -> None:
    """All tensors have one shape, and results the types of their operands."""
    shape = op.shape("param")
    for name in ("grad", *MOMENTS):
        value = op.optional_operand(name)
        if value is not None and shape_of(value.type) != shape:
            raise VerifyException(
                f"{op.name}: expected {name} of shape {shape}, found {shape_of(value.type)}"
            )
    updated = _updated(op)
    if len(op.results) != len(updated):
        raise VerifyException(
            f"{op.name} has a result for each of {', '.join(updated)}, found {len(op.results)}"
        )
    for name, result in zip(updated, op.results, strict=True):
        if result.type != op.operand(name).type:
            raise VerifyException(
                f"{op.name}: expected the updated {name} as {op.operand(name).type}, found "
                f"{result.type}"
            )
    for name in ADAMW_NUMBERS:
        require(op, math.isfinite(op.parameter(name)), f"a finite {name}", op.parameter(name))
    epsilon = op.parameter("epsilon")
    require(op, epsilon >= 0, "an epsilon of 0 or more", epsilon)
    for name in ("beta1_pow", "beta2_pow"):
        if op.parameter(name) == 1:
            raise VerifyException(f"{op.name}: expected {name} below 1, which it is from step 1 on")


def _updated(op: CatalogueOp) -> list[str]:
    """Returns the operands that the step updates, in the order of the results."""
    return ["param"] + [name for name in MOMENTS if op.optional_operand(name) is not None]


def _adamw(call: Call) -> list[Array]:
    lr, beta1, beta2 = call["lr"], call["beta1"], call["beta2"]
    param, grad = call.array("param"), call.array("grad")
    first = beta1 * call.array("exp_avg") + (1 - beta1) * grad
    second = beta2 * call.array("exp_avg_sq") + (1 - beta2) * np.square(grad)
    results = [first, second]
    greatest = call.optional("max_exp_avg_sq")
    if greatest is not None:
        results.append(np.maximum(greatest, second))
    root = np.sqrt(results[-1] / (1 - call["beta2_pow"])) + call["epsilon"]
    step = lr * (first / (1 - call["beta1_pow"])) / root
    return [param - step - lr * call["weight_decay"] * param, *results]


def _decompose_adamw(builder: OpBuilder, op: CatalogueOp) -> Sequence[SSAValue]:
    """Elementwise ops in f32.

    The library's `moreh_adamw` takes the step number instead of the powers, and scalars as
    bfloat16, in which the usual beta2 of 0.999 is 1.
    """

    def taken(name: str) -> SSAValue:
        return builder.typecast(builder.operand(op, name), f32)

    def times(value: SSAValue, factor: float) -> SSAValue:
        return builder.like("multiply", value, scalar(factor))

    def scalar(number: float) -> SSAValue:
        return builder.full(op.shape("param"), number, f32)

    lr, beta1, beta2 = (op.parameter(name) for name in ("lr", "beta1", "beta2"))
    param, grad = taken("param"), taken("grad")
    first = builder.like("add", times(taken("exp_avg"), beta1), times(grad, 1 - beta1))
    squared = times(builder.like("multiply", grad, grad), 1 - beta2)
    results = [first, builder.like("add", times(taken("exp_avg_sq"), beta2), squared)]
    if op.optional_operand("max_exp_avg_sq") is not None:
        results.append(builder.like("maximum", taken("max_exp_avg_sq"), results[-1]))
    root = builder.like("sqrt", times(results[-1], 1 / (1 - op.parameter("beta2_pow"))))
    root = builder.like("add", root, scalar(op.parameter("epsilon")))
    step = builder.like("div", times(first, lr / (1 - op.parameter("beta1_pow"))), root)
    kept = times(param, 1 - lr * op.parameter("weight_decay"))
    results.insert(0, builder.like("subtract", kept, step))
    return [
        builder.typecast(value, element_of(result.type))
        for value, result in zip(results, op.results, strict=True)
    ]


def _refuse_adamw(op: CatalogueOp) -> str | None:
    exact = all(element_of(result.type) == f32 for result in op.results)
    if op.parameter("stochastic_rounding") and not exact:
        return "it rounds at random, which no function of the library's does"
    return None


ADAMW_NUMBERS = ("lr", "beta1", "beta2", "beta1_pow", "beta2_pow", "epsilon", "weight_decay")

register(
    TTIRDefinition(
        "ttir.adamw",
        (
            operand("param"),
            operand("grad"),
            operand("exp_avg"),
            operand("exp_avg_sq", input_kind="variance"),
            optional("max_exp_avg_sq", input_kind="variance"),
        ),
        (
            *(attribute(name, NUMBER) for name in ADAMW_NUMBERS),
            attribute("stochastic_rounding", BOOLEAN, False),
        ),
        results=-1,
        verify=_verify_adamw,
        numpy=_adamw,
        decompose=_decompose_adamw,
        refused_form=_refuse_adamw,
    )
)
