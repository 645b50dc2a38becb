"""Older spellings mean what today's mean."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import DenseArrayBase, ModuleOp
from xdsl.ir import Operation

from tests.parsing.reading import T, body, failure, operations, parse
from ttcodegen.parsing import check_supported

EMPTY = f"%e = tensor.empty() : {T}"


def upgraded(name: str, *lines: str) -> Operation:
    """The operation of today's name in a function with these lines; no other use of %e is left."""
    (op,) = operations(parse(body(*lines)), name)
    return op


def integers(op: Operation, name: str) -> list[int]:
    value = op.properties[name]
    assert isinstance(value, DenseArrayBase)
    return [int(v) for v in value.iter_values()]


def test_the_first_example_of_the_documents_of_2024() -> None:
    module = parse(
        "#any_device = #tt.operand_constraint<dram|l1|scalar|tile|any_device|any_device_tile>\n"
        "module attributes {tt.system_desc = #tt.system_desc<[<#tt.arch<wormhole_b0>, "
        "#tt.grid<8x8>>], [0], [<pcie|host_mmio>], [<0, 0, 0, 0>]>} {\n"
        "func.func @forward(%arg0: tensor<64x128xf32>, %arg1: tensor<64x128xf32>) "
        "-> tensor<64x128xf32> {\n"
        "%0 = tensor.empty() : tensor<64x128xf32>\n"
        '%1 = "ttir.multiply"(%arg0, %arg1, %0) <{operandSegmentSizes = array<i32: 2, 1>, '
        "operand_constraints = [#any_device, #any_device, #any_device]}> : (tensor<64x128xf32>, "
        "tensor<64x128xf32>, tensor<64x128xf32>) -> tensor<64x128xf32>\n"
        "return %1 : tensor<64x128xf32>\n}\n}\n"
    )
    check_supported(module)
    (multiply,) = operations(module, "ttir.multiply")
    assert len(multiply.operands) == 2
    assert not multiply.properties
    assert not operations(module, "ttir.empty")
    assert list(module.attributes) == ["ttcore.system_desc"]


def test_names_of_the_shared_dialect() -> None:
    old = "%a: tensor<2xf32> {tt.argument_type = #tt.argument_type<parameter>}"
    read = [
        str(parse(f"func.func @f({argument}) {{ return }}"))
        for argument in (old, old.replace("tt.", "ttcore."))
    ]
    assert read[0] == read[1]


def test_attributes_whose_body_is_of_the_old_form_are_kept() -> None:
    module = parse("module attributes {a = #tt.argument_type<of, old>} {}")
    assert str(module.attributes["a"]) == "#tt.argument_type<of, old>"


@pytest.mark.parametrize("sizes", ["", "<{operandSegmentSizes = array<i32: 1, 1>}> "])
@pytest.mark.parametrize("empty", ["tensor.empty()", "ttir.empty()"])
def test_destinations_are_dropped(sizes: str, empty: str) -> None:
    module = parse(
        body(f"%e = {empty} : {T}", f'%0 = "ttir.relu"(%a, %e) {sizes}: ({T}, {T}) -> {T}')
    )
    (relu,) = operations(module, "ttir.relu")
    assert len(relu.operands) == 1
    assert not relu.properties
    assert not operations(module, "ttir.empty")


def test_destinations_need_not_be_empty() -> None:
    op = upgraded(
        "ttir.add",
        f'%e = "ttir.exp"(%a) : ({T}) -> {T}',
        f'%0 = "ttir.add"(%a, %a, %e) : ({T}, {T}, {T}) -> {T}',
    )
    assert len(op.operands) == 2


def test_what_an_op_reads_is_no_destination() -> None:
    op = upgraded("ttir.add", f'%0 = "ttir.add"(%a, %a, %a) : ({T}, {T}, {T}) -> {T}')
    assert len(op.operands) == 3


def test_destinations_in_generic_form() -> None:
    op = upgraded(
        "ttir.neg",
        f'%e = "tensor.empty"() : () -> {T}',
        f'%0 = "ttir.neg"(%a, %e) : ({T}, {T}) -> {T}',
    )
    assert len(op.operands) == 1


def test_one_destination_may_serve_several_operations() -> None:
    module = parse(
        body(
            EMPTY,
            f'%0 = "ttir.neg"(%a, %e) : ({T}, {T}) -> {T}',
            f'%1 = "ttir.abs"(%0, %e) : ({T}, {T}) -> {T}',
        )
    )
    assert not operations(module, "ttir.empty")


def test_todays_operands_are_left_alone() -> None:
    module = parse(body(EMPTY, f'%0 = "ttir.add"(%a, %e) : ({T}, {T}) -> {T}'))
    (add,) = operations(module, "ttir.add")
    assert len(add.operands) == 2
    assert len(operations(module, "ttir.empty")) == 1


def test_destinations_of_operations_with_any_number_of_operands() -> None:
    op = upgraded(
        "ttir.concat",
        "%e = ttir.empty() : tensor<4x2xf32>",
        f'%0 = "ttir.concat"(%a, %a, %e) <{{dim = 0 : si32}}> : ({T}, {T}, tensor<4x2xf32>) '
        "-> tensor<4x2xf32>",
    )
    assert len(op.operands) == 2


def test_a_destination_does_not_become_the_bias() -> None:
    op = upgraded("ttir.linear", EMPTY, f'%0 = "ttir.linear"(%a, %a, %e) : ({T}, {T}, {T}) -> {T}')
    assert len(op.operands) == 2


def test_a_bias_stays() -> None:
    biased = f'%0 = "ttir.linear"(%a, %a, %a, %e) : ({T}, {T}, {T}, {T}) -> {T}'
    assert len(upgraded("ttir.linear", EMPTY, biased).operands) == 3
    today = f'%0 = "ttir.linear"(%a, %a, %a) : ({T}, {T}, {T}) -> {T}'
    assert len(upgraded("ttir.linear", today).operands) == 3


@pytest.mark.parametrize(
    ("sizes", "count", "kept"),
    [("1, 1, 0, 1", 3, [1, 1, 0]), ("1, 1, 0", 2, [1, 1, 0]), ("1, 0, 0, 1", 2, [1, 0, 0])],
)
def test_segments_of_optional_operands(sizes: str, count: int, kept: list[int]) -> None:
    names = ", ".join(["%a"] * (count - 1) + ["%e" if sizes.count(",") == 3 else "%a"])
    op = upgraded(
        "ttir.rms_norm",
        EMPTY,
        f'%0 = "ttir.rms_norm"({names}) <{{normalized_shape = array<i64: 2>, operandSegmentSizes = '
        f"array<i32: {sizes}>}}> : ({', '.join([T] * count)}) -> {T}",
    )
    assert len(op.operands) == sum(kept)
    assert integers(op, "operandSegmentSizes") == kept


def test_operations_that_still_have_a_destination_keep_it() -> None:
    for line in (
        f"%0 = ttir.to_layout %a, %e : {T} into {T} -> {T}",
        f'%0 = "ttir.to_layout"(%a, %e) : ({T}, {T}) -> {T}',
    ):
        op = upgraded("ttir.to_layout", EMPTY, line)
        assert len(op.operands) == 2


@pytest.mark.parametrize(
    ("old", "new", "operands", "properties"),
    [
        ("ttir.power", "ttir.pow", 2, ""),
        ("ttir.clamp", "ttir.clamp_scalar", 1, "min = 0.0 : f32, max = 1.0 : f32"),
        (
            "ttir.slice",
            "ttir.slice_static",
            1,
            "begins = [0 : i32, 0 : i32], ends = [2 : i32, 2 : i32], step = [1 : i32, 1 : i32]",
        ),
        ("ttir.fill", "ttir.constant", 0, f"value = dense<1.0> : {T}"),
        (
            "ttir.select",
            "ttir.index_select",
            1,
            "dim = 0 : si32, begin = 0 : si32, length = 2 : si32, stride = 2 : si32",
        ),
    ],
)
def test_older_names(old: str, new: str, operands: int, properties: str) -> None:
    names = ", ".join(["%a"] * operands + ["%e"])
    types = ", ".join([T] * (operands + 1))
    module = parse(body(EMPTY, f'%0 = "{old}"({names}) <{{{properties}}}> : ({types}) -> {T}'))
    (op,) = operations(module, new)
    assert not operations(module, old)
    assert len(op.operands) == operands


WINDOW = (
    "stride_height = 1 : si32, stride_width = 2 : si32, dilation_height = 3 : si32, "
    "dilation_width = 4 : si32, padding_left = 5 : si32, padding_right = 6 : si32, "
    "padding_top = 7 : si32, padding_bottom = 8 : si32"
)


@pytest.mark.parametrize("name", ["conv2d", "max_pool2d"])
def test_windows_are_lists_today(name: str) -> None:
    operands, more = {
        "conv2d": (2, "groups = 1 : i32"),
        "max_pool2d": (1, "kernel_height = 9 : si32, kernel_width = 10 : si32, ceil_mode = false"),
    }[name]
    names = ", ".join(["%a"] * operands + ["%e"])
    types = ", ".join([T] * (operands + 1))
    op = upgraded(
        f"ttir.{name}",
        EMPTY,
        f'%0 = "ttir.{name}"({names}) <{{{WINDOW}, {more}}}> : ({types}) -> {T}',
    )
    assert len(op.operands) == operands
    assert integers(op, "stride") == [1, 2]
    assert integers(op, "dilation") == [3, 4]
    assert integers(op, "padding") == [7, 5, 8, 6]
    if name == "max_pool2d":
        assert integers(op, "kernel") == [9, 10]
    assert not any(key.endswith(("_height", "_left")) for key in op.properties)


def test_broadcasts_have_factors_today() -> None:
    op = upgraded(
        "ttir.broadcast",
        '%c = "ttir.x"() : () -> tensor<1x3xf32>',
        "%e = tensor.empty() : tensor<4x3xf32>",
        '%0 = "ttir.broadcast"(%c, %e) <{dimension = [0, 1]}> : (tensor<1x3xf32>, tensor<4x3xf32>) '
        "-> tensor<4x3xf32>",
    )
    assert integers(op, "broadcast_dimensions") == [4, 1]


def test_caches_are_updated_in_place_today() -> None:
    cache = "tensor<1x8x64x32xf32>"
    module = parse(
        f"func.func @f(%c: {cache}, %i: tensor<1x8x16x32xf32>) -> {cache} {{\n"
        f'  %0 = "ttir.fill_cache"(%c, %i) <{{batch_offset = 0 : i32}}> : ({cache}, '
        f"tensor<1x8x16x32xf32>) -> {cache}\n  return %0 : {cache}\n}}\n"
    )
    (fill,) = operations(module, "ttir.fill_cache")
    (returned,) = operations(module, "func.return")
    assert not fill.results
    assert returned.operands[0] is fill.operands[0]


def test_operations_that_are_gone_are_unknown() -> None:
    text = body(EMPTY, f'%0 = "ttir.sdpa"(%a, %e) <{{op = @x, kind = @y}}> : ({T}, {T}) -> {T}')
    assert "unknown operation 'ttir.sdpa'" in failure(text)


def test_todays_text_is_not_changed() -> None:
    text = body(f'%0 = "ttir.add"(%a, %a) : ({T}, {T}) -> {T}')
    module = parse(text)
    assert isinstance(module, ModuleOp)
    assert str(parse(str(module))) == str(module)
