"""Tuples of tensors, and buffers and kernels among tensors, as the documents of 2024 and 2025 have
them."""

from __future__ import annotations

from tests.parsing.reading import failure, parse
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.transforms.module_text import module_text

PAIR = "tuple<tensor<4xf32>, tensor<4xf32>>"


def test_elements_become_arguments_and_results() -> None:
    module = parse(
        f"func.func @f(%t: {PAIR}) -> {PAIR} {{\n"
        f"  %a = tt.get_tuple_element %t[0] : ({PAIR}) -> tensor<4xf32>\n"
        f"  %b = ttcore.get_tuple_element %t[1] : ({PAIR}) -> tensor<4xf32>\n"
        f"  %r = tt.tuple %b, %a : {PAIR}\n"
        f"  return %r : {PAIR}\n}}\n"
    )
    module.verify()
    text = module_text(module)
    assert "@f(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)" in text
    assert "return %b, %a" in text


def test_calls_pass_elements() -> None:
    module = parse(
        f"func.func private @g(%t: {PAIR}) -> tuple<tensor<4xf32>> {{\n"
        f"  %0 = ttcore.get_tuple_element %t[1] : ({PAIR}) -> tensor<4xf32>\n"
        "  %1 = ttcore.tuple %0 : tuple<tensor<4xf32>>\n"
        "  return %1 : tuple<tensor<4xf32>>\n}\n"
        "func.func @f(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {\n"
        f"  %t = ttcore.tuple %b, %a : {PAIR}\n"
        f"  %r = call @g(%t) : ({PAIR}) -> tuple<tensor<4xf32>>\n"
        "  %0 = ttcore.get_tuple_element %r[0] : (tuple<tensor<4xf32>>) -> tensor<4xf32>\n"
        "  return %0 : tensor<4xf32>\n}\n"
    )
    module.verify()
    text = module_text(module)
    assert "tuple" not in text
    assert "call @g(%b, %a)" in text


KERNEL = (
    "func.func @f(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {{\n"
    '  %m = "ttir.alloc"() <{{address = 1024 : i64, memory_space = #tt.memory_space<l1>, '
    "size = 16 : i64}}> : () -> tensor<4xf32>\n"
    '  %k = "ttir.kernel"(%a, %b, %m) <{{kind = @eltwise, op = @{0}, '
    "operandSegmentSizes = array<i32: 2, 1>}}> "
    ": (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>\n"
    '  "ttir.dealloc"(%m) : (tensor<4xf32>) -> ()\n'
    "  return %k : tensor<4xf32>\n}}\n"
)


def test_a_kernel_is_the_op_that_it_computes() -> None:
    module = parse(KERNEL.format("mulitply"))  # as the introduction spells it
    found = [op.name for op in module.walk() if isinstance(op, CatalogueOp)]
    assert found == ["ttir.empty", "ttir.multiply"]


def test_a_kernel_that_no_op_computes_is_refused() -> None:
    assert "no op computes what the kernel 'frobnicate' does" in failure(
        KERNEL.format("frobnicate")
    )
