from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue

from tests.transforms.programs import Program, transformed
from ttcodegen.dialects.core.datatypes import (
    bf16,
    element_of,
    elements,
    f32,
    shape_of,
    si32,
    ui8,
    ui32,
)
from ttcodegen.transforms.ttir.canonicalize import TTIRCanonicalizePass, TTIRDecomposePass

Build = Callable[[Program], SSAValue]


def emit(p: Program, name: str, operands: list, shape: list[int], **attributes: object) -> SSAValue:
    element = element_of(operands[0].type)
    return p.make.emit(name, operands, TensorType(element, shape), **attributes)


def binary(
    p: Program, name: str, number: float, swap: bool = False, element: Attribute = f32
) -> SSAValue:
    x = p.argument(2, 3, element=element)
    operands = [x, p.number(number, 2, 3, element=element)]
    return p.make.emit(name, operands[::-1] if swap else operands, x.type)


def power_of_size(p: Program, exponent: float) -> SSAValue:
    return p.make.like("pow", p.make.like("abs", p.argument(2, 3)), p.number(exponent, 2, 3))


def twice(p: Program, name: str) -> SSAValue:
    return p.make.like(name, p.make.like(name, p.argument(2, 3)))


def repeated(p: Program, name: str, *factors: list[int]) -> SSAValue:
    value = p.argument(1, 3, 1)
    for factor in factors:
        shape = [a * b for a, b in zip(shape_of(value.type), factor, strict=True)]
        value = emit(p, name, [value], shape, **{f"{name}_dimensions": factor})
    return value


def looked_up(
    p: Program, indices: list[int], reshaped: list[int], result: list[int] | None = None
) -> SSAValue:
    """Rows of a table found by reshaped indices, reshaped to those of other indices."""
    places = p.make.reshape(p.argument(*indices, element=ui32), reshaped)
    found = p.make.emit("embedding", [places, p.argument(10, 8)], TensorType(f32, [*reshaped, 8]))
    return p.make.reshape(found, [*(result or indices), 8])


def converted(p: Program, source: Attribute, *targets: Attribute) -> SSAValue:
    value = p.argument(5, element=source)
    for target in targets:
        value = p.make.typecast(value, target)
    return value


def joined(p: Program, *sizes: int) -> tuple[SSAValue, list[SSAValue]]:
    parts = [p.argument(2, size) for size in sizes]
    return p.make.emit("concat", [parts], TensorType(f32, [2, sum(sizes)]), dim=-1), parts


def nested_concat(p: Program) -> SSAValue:
    first, _ = joined(p, 2, 3)
    return p.make.concat([first, p.argument(2, 4)], 1)


def negated(p: Program, *names: str) -> SSAValue:
    value = p.make.like(names[0], p.argument(2, 3), p.argument(2, 3))
    for name in names[1:]:
        value = p.make.like(name, value)
    return value


def where(p: Program, condition: SSAValue | None = None, same: bool = False) -> SSAValue:
    x = p.argument(2, 3)
    y = x if same else p.argument(2, 3)
    condition = condition if condition is not None else p.argument(2, 3)
    return p.make.emit("where", [condition, x, y], x.type)


def product(p: Program, permuted: int, kind: str = "input") -> SSAValue:
    shapes = [[2, 3, 4], [2, 4, 5]]
    operands = []
    for index, (a, b, c) in enumerate(shapes):
        if index == permuted:
            value = p.argument(a, c, b, kind=kind)
            operands.append(p.make.permute(value, [0, 2, 1]))
        else:
            operands.append(p.argument(a, b, c))
    return p.make.emit("matmul", operands, TensorType(f32, [2, 3, 5]))


SIMPLIFIED: dict[str, tuple[Build, list[str]]] = {
    # moves
    "reshape of reshape": (
        lambda p: p.make.reshape(p.make.reshape(p.argument(2, 6), [3, 4]), [12]),
        ["reshape"],
    ),
    "reshape back": (lambda p: p.make.reshape(p.make.reshape(p.argument(2, 6), [12]), [2, 6]), []),
    "rows of reshaped indices": (lambda p: looked_up(p, [4], [4, 1]), ["embedding"]),
    "rows of other indices": (
        lambda p: looked_up(p, [2, 3], [6], [3, 2]),
        ["reshape", "embedding", "reshape"],
    ),
    "identity reshape": (
        lambda p: p.make.emit("reshape", [p.argument(6)], TensorType(f32, [6]), shape=[6]),
        [],
    ),
    "permute of permute": (
        lambda p: p.make.permute(p.make.permute(p.argument(2, 3, 4), [2, 0, 1]), [0, 2, 1]),
        ["permute"],
    ),
    "inverse permutes": (
        lambda p: p.make.permute(p.make.permute(p.argument(2, 3, 4), [2, 0, 1]), [1, 2, 0]),
        [],
    ),
    "permute of units": (
        lambda p: p.make.permute(p.argument(1, 3, 1, 4), [1, 0, 3, 2]),
        ["reshape"],
    ),
    "permute that moves": (
        lambda p: p.make.permute(p.argument(1, 3, 1, 4), [0, 3, 2, 1]),
        ["permute"],
    ),
    "identity broadcast": (lambda p: repeated(p, "broadcast", [1, 1, 1]), []),
    "two broadcasts": (lambda p: repeated(p, "broadcast", [2, 1, 1], [1, 1, 5]), ["broadcast"]),
    "two repeats": (lambda p: repeated(p, "repeat", [1, 2, 1], [1, 2, 3]), ["repeat"]),
    "full slice": (
        lambda p: emit(p, "slice_static", [p.argument(4)], [4], begins=[0], ends=[4], step=[1]),
        [],
    ),
    "slice of a part of a dimension": (
        lambda p: emit(p, "slice_static", [p.argument(4)], [3], begins=[0], ends=[3], step=[1]),
        ["slice_static"],
    ),
    "slice of slice": (
        lambda p: p.make.slice(p.make.slice(p.argument(20), [1], [20], [3]), [1], [6], [2]),
        ["slice_static"],
    ),
    "slice of a part": (
        lambda p: p.make.slice(joined(p, 4, 6)[0], [0, 5], [2, 8]),
        ["slice_static"],
    ),
    "slice of a whole part": (lambda p: p.make.slice(joined(p, 4, 6)[0], [0, 4], [2, 10]), []),
    "slice over parts": (
        lambda p: p.make.slice(joined(p, 4, 6)[0], [0, 3], [2, 8]),
        ["concat", "slice_static"],
    ),
    "empty pad": (lambda p: emit(p, "pad", [p.argument(4)], [4], padding=[0, 0], value=1.0), []),
    "concat of one": (lambda p: joined(p, 4)[0], []),
    "concat of something and nothing": (lambda p: joined(p, 4, 0)[0], []),
    "concat of concat": (nested_concat, ["concat"]),
    "sum of one": (lambda p: p.make.reduce("sum", p.argument(3, 1, 2), [1], False), ["reshape"]),
    "sum of several": (lambda p: p.make.reduce("sum", p.argument(3, 2), [1], False), ["sum"]),
    # numbers
    "moved numbers": (
        lambda p: p.make.permute(p.make.reshape(p.number(3.0, 2, 6), [3, 4]), [1, 0]),
        [],
    ),
    "folded numbers": (
        lambda p: p.make.like("exp", p.make.like("add", p.number(0.1, 4), p.number(0.2, 4))),
        [],
    ),
    "folded conversion": (lambda p: p.make.typecast(p.number(3.75, 4), si32), []),
    "folded bf16": (
        lambda p: p.make.like("multiply", *(p.number(0.1, 4, element=bf16) for _ in range(2))),
        [],
    ),
    # arithmetic
    "x + -0": (lambda p: binary(p, "add", -0.0), []),
    "-0 + x": (lambda p: binary(p, "add", -0.0, swap=True), []),
    "x + 0": (lambda p: binary(p, "add", 0.0), ["add"]),
    "|x| + 0": (
        lambda p: p.make.like("add", p.make.like("abs", p.argument(3)), p.number(0.0, 3)),
        ["abs"],
    ),
    "integer + 0": (lambda p: binary(p, "add", 0, element=si32), []),
    "x - -0": (lambda p: binary(p, "subtract", -0.0), ["subtract"]),
    "zeros of both signs": (
        lambda p: p.make.concat([p.number(0.0, 2, 3), p.number(-0.0, 2, 3)], 0),
        ["concat"],
    ),
    "pad on one side, cut on the other": (
        lambda p: emit(p, "pad", [p.argument(4)], [4], padding=[1, -1], value=0.0),
        ["pad"],
    ),
    "1 / (1 / x)": (lambda p: twice(p, "reciprocal"), ["reciprocal", "reciprocal"]),
    "x - 0": (lambda p: binary(p, "subtract", 0.0), []),
    "0 - x": (lambda p: binary(p, "subtract", 0.0, swap=True), ["subtract"]),
    "x * 1": (lambda p: binary(p, "multiply", 1.0), []),
    "x * 2": (lambda p: binary(p, "multiply", 2.0), ["multiply"]),
    "x / 1": (lambda p: binary(p, "div", 1.0), []),
    "1 / x": (lambda p: binary(p, "div", 1.0, swap=True), ["div"]),
    "x + 0 that broadcasts": (
        lambda p: p.make.broadcasting("add", p.argument(1, 3), p.number(0.0, 2, 1)),
        ["add"],
    ),
    "x ** 1": (lambda p: binary(p, "pow", 1.0), []),
    "x ** 2": (lambda p: binary(p, "pow", 2.0), ["multiply"]),
    "x ** 0.5": (lambda p: binary(p, "pow", 0.5), ["pow"]),
    "|x| ** 0.5": (lambda p: power_of_size(p, 0.5), ["abs", "sqrt"]),
    "|x| ** -0.5": (lambda p: power_of_size(p, -0.5), ["abs", "rsqrt"]),
    "x ** -1": (lambda p: binary(p, "pow", -1.0), ["reciprocal"]),
    "x ** 3": (lambda p: binary(p, "pow", 3.0), ["pow"]),
    "integer ** 2": (lambda p: binary(p, "pow", 2, element=si32), ["multiply"]),
    "2 ** x": (lambda p: binary(p, "pow", 2.0, swap=True), ["pow"]),
    "--x": (lambda p: twice(p, "neg"), []),
    "||x||": (lambda p: twice(p, "abs"), ["abs"]),
    "exp(exp(x))": (lambda p: twice(p, "exp"), ["exp", "exp"]),
    "max(x, x)": (lambda p: p.make.like("maximum", *[p.argument(3)] * 2), []),
    "max(x, -inf)": (lambda p: binary(p, "maximum", float("-inf")), []),
    "min(x, -inf)": (lambda p: binary(p, "minimum", float("-inf")), ["minimum"]),
    "a + -b": (
        lambda p: p.make.like("add", p.argument(3), p.make.like("neg", p.argument(3))),
        ["subtract"],
    ),
    "clamp to numbers": (
        lambda p: p.make.like("clamp_tensor", p.argument(3), p.number(-0.5, 3), p.number(0.5, 3)),
        ["clamp_scalar"],
    ),
    # truth
    "not not truth": (lambda p: negated(p, "lt", "logical_not", "logical_not"), ["lt"]),
    "not not number": (
        lambda p: negated(p, "add", "logical_not", "logical_not"),
        ["add", "logical_not", "logical_not"],
    ),
    "not equal": (lambda p: negated(p, "eq", "logical_not"), ["ne"]),
    "not less": (lambda p: negated(p, "lt", "logical_not"), ["lt", "logical_not"]),
    "truth and true": (
        lambda p: p.make.like("logical_and", negated(p, "lt"), p.number(1.0, 2, 3)),
        ["lt"],
    ),
    "truth or true": (
        lambda p: p.make.like("logical_or", negated(p, "lt"), p.number(1.0, 2, 3)),
        ["lt", "logical_or"],
    ),
    "number and true": (lambda p: binary(p, "logical_and", 1.0), ["logical_and"]),
    "truth != 0": (lambda p: p.make.like("ne", negated(p, "lt"), p.number(0.0, 2, 3)), ["lt"]),
    "where true": (lambda p: where(p, p.number(1.0, 2, 3)), []),
    "where of same": (lambda p: where(p, same=True), []),
    "where": (lambda p: where(p), ["where"]),
    # conversions
    "no conversion": (
        lambda p: p.make.emit("typecast", [p.argument(4)], TensorType(f32, [4])),
        [],
    ),
    "wide and back": (lambda p: converted(p, bf16, f32, bf16), []),
    "narrow and back": (lambda p: converted(p, f32, bf16, f32), ["typecast", "typecast"]),
    "through a wider type": (lambda p: converted(p, ui8, si32, f32), ["typecast"]),
    "through an integer": (lambda p: converted(p, f32, si32, f32), ["typecast", "typecast"]),
    "through a sign": (lambda p: converted(p, ui32, si32, f32), ["typecast", "typecast"]),
    "op in the source type": (
        lambda p: p.make.typecast(
            p.make.like("multiply", *(converted(p, bf16, f32) for _ in range(2))), bf16
        ),
        ["multiply"],
    ),
    "op with an exact number": (
        lambda p: p.make.typecast(
            p.make.like("add", converted(p, bf16, f32), p.number(0.5, 5)), bf16
        ),
        ["add"],
    ),
    "op with another number": (
        lambda p: p.make.typecast(
            p.make.like("multiply", converted(p, bf16, f32), p.number(0.3, 5)), bf16
        ),
        ["typecast", "multiply", "typecast"],
    ),
    "op of another type": (
        lambda p: p.make.typecast(p.make.like("exp", converted(p, si32, f32)), bf16),
        ["typecast", "exp", "typecast"],
    ),
    # products
    "product of exchanged a": (lambda p: product(p, 0), ["matmul"]),
    "product of exchanged b": (lambda p: product(p, 1), ["matmul"]),
    "product of exchanged weight": (lambda p: product(p, 1, "parameter"), ["permute", "matmul"]),
}


@pytest.mark.parametrize("case", SIMPLIFIED)
def test_simplification(case: str) -> None:
    build, expected = SIMPLIFIED[case]
    program = Program()
    module = program.returns(build(program))
    result = transformed(module, TTIRCanonicalizePass(), low=0.25, high=2.0)
    assert result.names == expected


@pytest.mark.parametrize(("data", "splat"), [([2, 2, 2], True), ([2, 2, 3], False)])
def test_a_constant_of_one_number_is_a_fill(data: list[float], splat: bool) -> None:
    program = Program()
    value = elements(f32, [3], np.array(data, dtype=np.float32).tobytes())
    constant = program.make.emit("constant", [], TensorType(f32, [3]), value=value)
    result = transformed(program.returns(constant), TTIRCanonicalizePass())
    assert result.ops[0].definition.short_name == ("full" if splat else "constant")


def test_a_reshape_of_a_constant_shares_its_elements() -> None:
    program = Program()
    value = elements(f32, [4], np.arange(4, dtype=np.float32).tobytes())
    constant = program.make.emit("constant", [], TensorType(f32, [4]), value=value)
    reshaped = program.make.reshape(constant, [2, 2])
    result = transformed(program.returns(reshaped), TTIRCanonicalizePass())
    assert result.names == ["constant"]
    assert result.op("constant").parameter("value").data.data is value.data.data


def test_a_product_of_exchanged_operands_exchanges_them_itself() -> None:
    for index, name in enumerate(("transpose_a", "transpose_b")):
        program = Program()
        module = program.returns(product(program, index))
        result = transformed(module, TTIRCanonicalizePass())
        assert result.op("matmul").parameter(name) is True


def test_equal_ops_are_merged() -> None:
    program = Program()
    x, y = program.argument(3), program.argument(3)
    sums = [program.make.like("multiply", x, y) for _ in range(3)]
    value = program.make.like("exp", program.make.like("add", sums[0], sums[1]))
    other = program.make.like("exp", program.make.like("add", sums[2], sums[0]))
    result = transformed(program.returns(value, other), TTIRCanonicalizePass())
    assert result.names == ["multiply", "add", "exp"]


def test_no_composite_op_is_left_by_decomposition() -> None:
    program = Program()
    x = program.argument(2, 3, 4)
    value = emit(program, "transpose", [x], [2, 4, 3], dim0=-1, dim1=1)
    value = emit(program, "index", [value], [2, 2, 3], dim=1, begin=0, end=4, step=2)
    value = emit(program, "unsqueeze", [value], [1, 2, 2, 3], dim=0)
    value = emit(program, "reduce_or", [value], [1, 2, 3], dim_arg=[1], keep_dim=False)
    value = emit(program, "squeeze", [value], [2, 3], dim=0)
    result = transformed(program.returns(value), TTIRDecomposePass())
    assert all(op.definition.decompose is None for op in result.ops)
    assert {"permute", "slice_static", "reshape"} <= set(result.names)
