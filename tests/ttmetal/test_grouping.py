"""Grouping of ops to device programs: circular buffers, registers and costs."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.ttmetal.function_text import call, function, integers, single, tensor
from tests.ttmetal.moving_functions import caches
from ttcodegen.compilation import PIPELINES, CompileOptions, compile_module
from ttcodegen.conversions.ttir_to_ttmetal.grouping.tile_operations import capacity
from ttcodegen.conversions.ttmetal_to_emitc.functions import device_entries
from ttcodegen.dialects.ttmetal.device_module import device_programs
from ttcodegen.dialects.ttmetal.programs import Processor, Program
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.ops.dialects import load_dialects
from ttcodegen.parsing import parse_module
from ttcodegen.project.checking import run_in_numpy
from ttcodegen.systems.cards import default_system
from ttcodegen.transforms.pass_runner import PassRunner
from ttcodegen.transforms.registry import passes_of, step

LONGEST_CHAIN = 24


def programs(*functions: str, cpu_hoist: bool = True) -> list[Program]:
    """The programs of a module, in the order in which they run first."""
    module = parse_module(Source("module.mlir", "module {\n" + "".join(functions) + "}\n"))
    pipeline = step(PIPELINES["ttmetal"], enable_cpu_hoist=cpu_hoist)
    PassRunner(load_dialects()).run(module, passes_of(pipeline))
    entries = [entry.function for entry in device_entries(module)]
    return [found.program for found in device_programs(entries)]


def kernels(text: str) -> dict[str, str]:
    """The compute kernels of a module, by the names of their files."""
    source = Source("module.mlir", f"module {{\n{text}}}\n")
    files = compile_module(source, CompileOptions("module", target="ttmetal")).files
    return {path: file for path, file in files.items() if path.startswith("kernels/compute_")}


def names(*functions: str) -> list[str]:
    """Names of the device programs of a module."""
    return [program.name for program in programs(*functions)]


def chain(element: str, *ops: str, shape: tuple[int, ...] = (64, 96)) -> str:
    """A function of unary ops, one after the other."""
    type_ = tensor(shape, element)
    values = ["%a0", *(f"%{number}" for number in range(len(ops)))]
    calls = [call(op, [value], [type_], type_) for op, value in zip(ops, values, strict=False)]
    return function("chain", [type_], calls)


def test_a_chain_is_one_program() -> None:
    [program] = programs(chain("bf16", "exp", "sin", "abs", "sqrt"))
    assert program.name == "exp_sin_sqrt"
    assert program.purpose == "exp, sin, abs, sqrt"
    assert [kernel.processor for kernel in program.kernels] == [
        Processor.READER,
        Processor.COMPUTE,
        Processor.WRITER,
    ]


def test_circular_buffers_of_tensors_are_double_buffered() -> None:
    [program] = programs(chain("f32", "exp", "sin"))
    assert program.values["buffer_depth"] == 2
    buffers = program.circular_buffers
    assert [(b.name, program.value(b.pages), b.page_size) for b in buffers] == [
        ("a0", 2, 4096),
        ("sine", 2, 4096),
    ]
    assert program.compute.fp32_destination
    assert program.compute.unpack_to_fp32 == (0,)


def test_caches_are_written_where_they_lie() -> None:
    for text in caches():
        made = programs(text, cpu_hoist=False)
        program = next(program for program in made if "cache" in program.purpose)
        assert [kernel.processor for kernel in program.kernels] == [Processor.WRITER]


@pytest.mark.parametrize("op", ["fill_cache", "update_cache"])
def test_caches_may_be_written_without_a_result(op: str) -> None:
    rows = 3 if op == "fill_cache" else 1
    cache, entry = (f"tensor<1x2x{each}x32xbf16>" for each in (64, rows))
    place = "tensor<1xi32>"
    index = "" if op == "fill_cache" else ", %p"
    types = f"{cache}, {entry}" + ("" if op == "fill_cache" else f", {place}")
    text = (
        f"func.func @f(%c: {cache}, %x: {entry}, %p: {place}) -> {cache} {{\n"
        f'  "ttir.{op}"(%c, %x{index}) <{{batch_offset = 0 : i32}}> : ({types}) -> ()\n'
        f"  return %c : {cache}\n}}\n"
    )
    assert names(text) == [op]


def test_what_reads_a_cache_after_it_was_written_waits() -> None:
    text = next(text for text in caches() if "@update_bf16_bf16" in text)
    assert [program.purpose for program in programs(text)] == ["exp", "update_cache", "exp"]


def test_work_is_divided_among_all_cores() -> None:
    [program] = programs(chain("bf16", "exp", shape=(512, 512)))
    rows, columns = default_system("wormhole_b0").chip.grid
    assert program.core_range.cores == rows * columns == 64
    assert (program.work_units, program.work_unit) == (256, "output tile")


def _around_a_reduction(size: int) -> str:
    a, column = tensor((64, size), "bf16"), tensor((64, 1), "bf16")
    total = {"dim_arg": "[1 : i32]", "keep_dim": "true"}
    ops = [
        call("exp", ["%a0"], [a], a),
        call("multiply", ["%0", "%a1"], [a, a], a),
        call("sum", ["%1"], [a], column, **total),
        call("sqrt", ["%2"], [column], column),
        call("add", ["%3", "%a2"], [column, column], column),
    ]
    return function("around", [a, a, column], ops)


def test_a_chain_a_reduction_and_a_chain_are_one_program() -> None:
    [program] = programs(_around_a_reduction(96))
    assert program.purpose == "exp, multiply, sum, sqrt, add"
    buffers = {buffer.name: program.value(buffer.pages) for buffer in program.circular_buffers}
    assert buffers == {"a0": 2, "a1": 2, "a2": 2, "root": 2, "scaler": 2, "partial": 2}


def test_padding_between_a_chain_and_its_sum_is_left_out() -> None:
    [program] = programs(_around_a_reduction(70))
    assert program.purpose == "exp, multiply, sum, sqrt, add"
    assert "elements" in {buffer.name for buffer in program.circular_buffers}


@pytest.mark.parametrize("width", [256, 100])
def test_a_softmax_is_one_program_that_reads_its_rows_once(width: int) -> None:
    shape = (3, 64, width)
    [program] = programs(single("f", "softmax", [shape], shape, "bf16", dimension="2 : si32"))
    assert program.purpose == "max, subtract, lt, subtract, where, maximum, exp, sum, div"
    assert program.costs.dram_read_bytes == program.costs.least_dram_read_bytes
    assert program.work_units == 6


def test_rows_that_l1_does_not_hold_are_read_for_each_pass() -> None:
    shape = (32, 64000)
    [program] = programs(single("f", "softmax", [shape], shape, "bf16", dimension="1 : si32"))
    assert program.costs.dram_read_bytes == 3 * program.costs.least_dram_read_bytes
    values = {buffer.name: program.value(buffer.pages) for buffer in program.circular_buffers}
    assert values["a0"] == 2


def test_a_norm_takes_in_the_sum_before_it() -> None:
    a, row = tensor((64, 256), "bf16"), tensor((256,), "bf16")
    words = {"normalized_shape": "array<i64: 256>", "operandSegmentSizes": "array<i32: 1, 1, 0>"}
    ops = [
        call("add", ["%a0", "%a1"], [a, a], a),
        call("rms_norm", ["%0", "%a2"], [a, row], a, **words),
    ]
    [program] = programs(function("f", [a, a, row], ops, f"%1, %0 : {a}, {a}"))
    assert program.purpose.startswith("add, square, mean")
    assert program.inputs == 3


def _attention(queries: int, keys: int, **words: str) -> str:
    query, key = (1, 8, queries, 64), (1, 2, keys, 64)
    words = {"operandSegmentSizes": "array<i32: 1, 1, 1, 0, 0>", "is_causal": "false", **words}
    name = "scaled_dot_product_attention"
    return single("f", name, [query, key, key], query, "bf16", **words)


def test_attention_writes_nothing_but_its_result() -> None:
    [program] = programs(_attention(256, 512))
    assert program.work_units == 64
    assert program.costs.dram_write_bytes == 8 * 8 * 2 * 2048
    [program] = programs(_attention(256, 256, is_causal="true"))
    assert "later" in {buffer.name for buffer in program.circular_buffers}


def test_heads_of_one_token_share_keys_and_values() -> None:
    [program] = programs(_attention(1, 1024))
    assert program.work_units == 2
    assert program.costs.dram_read_bytes == program.costs.least_dram_read_bytes


@pytest.mark.parametrize(("queries", "keys"), [(32, 16384), (4096, 4096), (1, 100_000)])
def test_attention_to_more_keys_than_l1_holds_takes_them_in_parts(queries: int, keys: int) -> None:
    [program] = programs(_attention(queries, keys, is_causal=str(queries == keys).lower()))
    assert program.costs.dram_write_bytes == program.costs.least_dram_write_bytes
    assert program.l1_bytes < 2**20


@pytest.mark.parametrize("words", [{}, {"sliding_window_size": "100 : ui32"}])
@pytest.mark.parametrize("keys", [256, 8192])
def test_attention_with_a_sink_is_one_program(keys: int, words: dict[str, str]) -> None:
    query, sink = tensor((1, 8, keys, 64), "bf16"), tensor((1, 8, 1, 1), "bf16")
    words = {"operandSegmentSizes": "array<i32: 1, 1, 1, 0, 1>", "is_causal": "true", **words}
    types = [query] * 3 + [sink]
    operands = ["%a0", "%a1", "%a2", "%a3"]
    op = call("scaled_dot_product_attention", operands, types, query, **words)
    assert names(function("f", types, [op])) == ["scaled_dot_product_attention"]


def test_attention_that_is_spelled_out_is_one_program() -> None:
    heads, scores = tensor((1, 4, 64, 64), "bf16"), tensor((1, 4, 64, 64), "bf16")
    number, mask = tensor((1, 1, 1, 1), "bf16"), tensor((1, 1, 64, 64), "bf16")
    ops = [
        call("permute", ["%a1"], [heads], heads, permutation="array<i64: 0, 1, 3, 2>"),
        call("matmul", ["%a0", "%0"], [heads, heads], scores),
        call("full", [], [], number, shape="array<i32: 1, 1, 1, 1>", fill_value="0.125 : f32"),
        call("multiply", ["%1", "%2"], [scores, number], scores),
        call("add", ["%3", "%a3"], [scores, mask], scores),
        call("softmax", ["%4"], [scores], scores, dimension="3 : si32"),
        call("matmul", ["%5", "%a2"], [scores, heads], heads),
    ]
    # A mask that is not known is limited first.
    expected = ["maximum", "scaled_dot_product_attention"]
    assert names(function("f", [heads] * 3 + [mask], ops)) == expected


def test_weights_are_multiplied_with_as_they_lie() -> None:
    """The matrix engine exchanges rows and columns of tiles; of f32 it cannot."""
    for element, expected in (("bf16", ["matmul_add"]), ("f32", ["permute", "matmul_add"])):
        x, weight = tensor((64, 96), element), tensor((128, 96), element)
        turned, result = tensor((96, 128), element), tensor((64, 128), element)
        ops = [
            call("permute", ["%a1"], [weight], turned, permutation="array<i64: 1, 0>"),
            call("matmul", ["%a0", "%0"], [x, turned], result),
            call("add", ["%1", "%a2"], [result, tensor((128,), element)], result),
        ]
        types = [x, weight, tensor((128,), element)]
        assert names(function("f", types, ops)) == expected


def test_equal_layers_share_their_kernels() -> None:
    x, weight, bias = (tensor(shape, "bf16") for shape in ((64, 256), (256, 256), (256,)))
    types, ops, value = [x], list[str](), "%a0"
    for layer in range(3):
        types += [f'{type_} {{ttir.name = "layers_{layer}_{name}"}}'
                  for type_, name in ((weight, "weight"), (bias, "bias"))]  # fmt: skip
        names_of = [value, f"%a{2 * layer + 1}", f"%a{2 * layer + 2}"]
        ops += [
            call("linear", names_of, [x, weight, bias], x),
            call("softmax", [f"%{len(ops)}"], [x], x, dimension="1 : si32"),
        ]
        value = f"%{len(ops) - 1}"
    text = function("f", types, ops)
    assert len(programs(text)) == 6
    [product, softmax] = kernels(text).values()
    assert "cb_bias" in product
    assert "layers" not in product + softmax


def test_what_reads_no_row_again_is_another_program() -> None:
    """It would be computed by as many cores as there are rows of tiles."""
    a, column = tensor((32, 4096), "bf16"), tensor((32, 1), "bf16")
    words = {"dim_arg": "[1 : i32]", "keep_dim": "true"}
    ops = [
        call("sum", ["%a0"], [a], column, **words),
        call("multiply", ["%a1", "%0"], [a, column], a),
    ]
    assert names(function("f", [a, a], ops)) == ["sum", "multiply"]


def test_what_is_needed_elsewhere_is_a_result_of_the_program() -> None:
    a = tensor((64, 96), "bf16")
    ops = [call("exp", ["%a0"], [a], a), call("sin", ["%0"], [a], a)]
    [program] = programs(function("both", [a], ops, f"%0, %1 : {a}, {a}"))
    assert [buffer.name for buffer in program.circular_buffers] == ["a0", "exp", "sine"]
    assert program.inputs == 1


def test_a_product_takes_in_its_bias_and_activation() -> None:
    types = [tensor(shape, "bf16") for shape in ((64, 96), (96, 128), (128,))]
    result = tensor((64, 128), "bf16")
    ops = [
        call("linear", ["%a0", "%a1", "%a2"], types, result),
        call("gelu", ["%0"], [result], result),
    ]
    [program] = programs(function("layer", types, ops))
    assert program.purpose.startswith("matmul, add, ")
    assert program.semaphores == ("left_ready", "left_sent", "right_ready", "right_sent")


def test_free_reshapes_need_no_program() -> None:
    a, view = tensor((64, 96), "bf16"), tensor((2, 32, 96), "bf16")
    ops = [
        call("exp", ["%a0"], [a], a),
        call("reshape", ["%0"], [a], view, shape="[2 : i32, 32 : i32, 96 : i32]"),
        call("sin", ["%1"], [view], view),
    ]
    assert names(function("viewed", [a], ops)) == ["exp_sin"]
    text = function("both", [a], ops, f"%1, %2 : {view}, {view}")
    assert names(text) == ["exp", "sin"]


def test_long_chains_are_divided() -> None:
    ops = ["sin", "cos"] * 20
    found = programs(chain("bf16", *ops))
    assert [program.purpose.count(",") + 1 for program in found] == [LONGEST_CHAIN, 16]


@pytest.mark.parametrize("element", ["bf16", "f32"])
def test_the_registers_are_enough(element: str) -> None:
    # A tree of sums: on the whole, more values wait for each other than there are registers.
    a = tensor((32, 32), element)
    leaves = [call("exp" if i % 2 else "sin", [f"%a{i}"], [a], a) for i in range(8)]
    sums: list[str] = []
    level = list(range(8))
    while len(level) > 1:
        pairs = list(zip(level[::2], level[1::2], strict=True))
        level = [8 + len(sums) + number for number in range(len(pairs))]
        sums += [call("add", [f"%{left}", f"%{right}"], [a, a], a) for left, right in pairs]
    found = kernels(function("tree", [a] * 8, [*leaves, *sums]))
    for text in found.values():
        registers = [int(number) for number in re.findall(r"uint32_t dst\d+ = (\d+);", text)]
        assert registers == list(range(len(registers)))
        assert 0 < len(registers) <= capacity(element == "f32")


def test_costs_of_a_chain_are_the_least() -> None:
    [program] = programs(chain("bf16", "exp", "sin", "abs", "sqrt", shape=(2048, 2048)))
    costs, size = program.costs, 2048 * 2048 * 2
    assert costs.tiles_computed == 4 * 64 * 64
    assert (costs.dram_read_bytes, costs.dram_write_bytes) == (size, size)
    assert costs.noc_bytes == costs.least_noc_bytes == 2 * size


def test_a_product_sends_each_block_once() -> None:
    size = 1024 * 1024 * 2
    [program] = programs(single("product", "matmul", [(1024, 1024)] * 2, (1024, 1024), "bf16"))
    costs = program.costs
    assert costs.dram_read_bytes == costs.least_dram_read_bytes == 2 * size
    assert costs.noc_bytes == costs.least_noc_bytes == 5 * size
    assert costs.tiles_computed == 32**3


def test_products_beyond_the_grid_read_operands_again() -> None:
    product = single("product", "matmul", [(64, 32), (32, 8192)], (64, 8192), "bf16")
    [program] = programs(product)
    costs = program.costs
    assert costs.dram_read_bytes == 64 * 32 * 2 * 2 + 32 * 8192 * 2
    assert costs.least_dram_read_bytes == 64 * 32 * 2 + 32 * 8192 * 2


def test_products_read_their_right_operand_once_where_the_sums_fit() -> None:
    # 12 rows of tiles a core, and 12 columns.
    product = single("product", "matmul", [(3072, 768), (768, 3072)], (3072, 3072), "bf16")
    [program] = programs(product)
    size = 3072 * 768 * 2
    assert program.costs.dram_read_bytes == 3 * size + size
    assert {name: program.values[f"block_{name}"] for name in ("rows", "columns")} == {
        "rows": 12,
        "columns": 4,
    }


def test_a_matrix_that_serves_all_batches_is_read_once() -> None:
    shapes = (64, 32, 64), (64, 96), (64, 32, 96)
    [program] = programs(single("f", "matmul", shapes[:2], shapes[2], "bf16"))
    assert program.costs.dram_read_bytes == (64 * 32 * 64 + 64 * 96) * 2


def test_what_has_no_program_is_listed_with_its_counts() -> None:
    a = tensor((4, 4), "si32")
    squared = call("pow", ["%a0", "%a0"], [a, a], a)
    powers = function("powers", [a], [squared, squared.replace("%a0", "%0")])
    with pytest.raises(CompileError) as raised:
        programs(powers, cpu_hoist=False)
    reason = "'ttir.pow' of si32 has no operation on tiles for --target ttmetal (2 times)"
    assert reason in str(raised.value)


@pytest.mark.parametrize(
    ("op", "types", "words", "reason"),
    [
        ("pow", ("2x2xsi32", "2x2xsi32"), {}, "'ttir.pow' of si32 has no operation on tiles"),
        (
            "remainder",
            ("2x2xui32", "2x2xui32"),
            {},
            "'ttir.remainder' of u32 has no operation on tiles",
        ),
        ("add", ("0x2xf32", "0x2xf32"), {}, "of a tensor without elements has no lowering"),
        (
            "reverse",
            ("3x65536x32768xui8",),
            {"dimensions": "array<i64: 0>"},
            "'ttir.reverse' of more than 4294967296 elements has no lowering",
        ),
    ],
)
def test_data_types_without_a_program(
    op: str, types: tuple[str, ...], words: dict[str, str], reason: str
) -> None:
    tensors = [f"tensor<{type_}>" for type_ in types]
    operands = [f"%a{index}" for index in range(len(types))]
    lone = function("f", tensors, [call(op, operands, tensors, tensors[0], **words)])
    with pytest.raises(CompileError) as raised:
        programs(lone, cpu_hoist=False)
    assert reason in str(raised.value)


@pytest.mark.parametrize("width", [64, 33])
def test_columns_that_are_repeated_have_no_padding_to_fill(width: int) -> None:
    """Says which integers are in their row: the row as a column is compared with it."""
    row, found = tensor((5, width), "i32"), tensor((5, width), "i1")
    both = tensor((5, width, width), "i1")
    column, across = tensor((5, width, 1), "i32"), tensor((5, 1, width), "i32")
    calls = [
        call("reshape", ["%a0"], [row], column, shape=integers([5, width, 1])),
        call("reshape", ["%a0"], [row], across, shape=integers([5, 1, width])),
        call("eq", ["%0", "%1"], [column, across], both),
        call("reduce_or", ["%2"], [both], found, dim_arg="[2 : i32]", keep_dim="false"),
    ]
    source = Source("f.mlir", f"module {{\n{function('f', [row], calls)}}}\n")
    x = np.arange(5 * width, dtype=np.int32).reshape(5, width) % 7 - 3
    compiled = compile_module(source, CompileOptions("f", target="ttmetal"))
    (run,) = run_in_numpy(source, compiled, lambda *_: (x,))
    np.testing.assert_array_equal(run.flatbuffer[0], np.ones((5, width)))
