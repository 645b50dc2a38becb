"""The C++ of kernels."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import (
    Float32Type,
    IndexType,
    ModuleOp,
    StringAttr,
    f32,
    i32,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from tests.ttmetal.exp_module import compute_kernel, exp_program
from ttcodegen.conversions.ttkernel_to_emitc.functions import write_kernel
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttcore.tile import TileType
from ttcodegen.dialects.ttkernel.attributes import (
    DestinationReuse,
    EltwiseBinaryType,
    ReduceDim,
    ReduceType,
    ThreadType,
)
from ttcodegen.dialects.ttkernel.builder import KernelBuilder
from ttcodegen.dialects.ttmetal.programs import Kernel, NamedConstant
from ttcodegen.emitc.builder import open_file
from ttcodegen.emitc.printer import print_module
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.systems.releases import DEFAULT_RELEASE, RELEASES, release_named

index = IndexType()
BF16 = TileType(DataType.BFLOAT16)


def text_of(function: FuncOp, kernel: Kernel | None = None, release: str = DEFAULT_RELEASE) -> str:
    """The file of a kernel of the program `exp`."""
    program = exp_program()
    module = ModuleOp([])
    file = open_file(module, "kernels/kernel.cpp")
    write_kernel(
        file, function, kernel or program.kernels[1], program, "a title", release_named(release)
    )
    return print_module(module)["kernels/kernel.cpp"]


def body_of(function: FuncOp) -> list[str]:
    """The lines between the arguments and the end, without indentation and empty ones."""
    lines = text_of(function).split("void kernel_main() {\n")[1].splitlines()[:-1]
    texts = [line.strip() for line in lines]
    skipped = ("_arg_val", "//", "constexpr uint32_t dst")
    return [line for line in texts if line and not any(word in line for word in skipped)]


def test_a_whole_kernel() -> None:
    assert text_of(compute_kernel(DataType.BFLOAT16)) == (
        """\
// a title
//
// Computes the exponential of x, tile by tile.
#include <cstdint>
#include "api/compile_time_args.h"
#include "api/compute/cb_api.h"
#include "api/compute/common.h"
#include "api/compute/eltwise_unary/eltwise_unary.h"
#include "api/compute/eltwise_unary/exp.h"
#include "api/compute/pack.h"
#include "api/compute/reg_api.h"
#include "api/compute/tile_move_copy.h"

void kernel_main() {
    // Circular buffer: pages of 2048 bytes, bf16.
    constexpr uint32_t cb_x = get_named_compile_time_arg_val("cb_x");
    // Circular buffer: pages of 2048 bytes, bf16.
    constexpr uint32_t cb_y = get_named_compile_time_arg_val("cb_y");
    // Runtime arguments.
    const uint32_t count = get_arg_val<uint32_t>(0);
    // Destination registers.
    constexpr uint32_t dst0 = 0;

    unary_op_init_common(cb_x, cb_y);
    exp_tile_init();

    for (uint32_t tile = 0; tile < count; ++tile) {
        cb_wait_front(cb_x, 1);

        tile_regs_acquire();
        copy_tile(cb_x, 0, dst0);
        exp_tile(dst0);
        cb_reserve_back(cb_y, 1);
        tile_regs_commit();
        tile_regs_wait();
        pack_tile(dst0, cb_y);
        tile_regs_release();

        cb_pop_front(cb_x, 1);
        cb_push_back(cb_y, 1);
    }
}
"""
    )


def test_what_a_zone_computes_is_known_after_it() -> None:
    kernel = KernelBuilder("read", ThreadType.NOC)
    x = kernel.circular_buffer("cb_x", 2, BF16)
    start = kernel.argument(0, "start")
    kernel.op("begin_zone", zone='read "x"')
    kernel.op("begin_zone", zone="reserve")
    kernel.op("cb_reserve_back", x, 1)
    place = kernel.get("get_write_ptr", x, name_hint="place")
    inside = kernel.sum(start, 5)
    kernel.op("dprint", inside, fmt="{}")
    kernel.op("end_zone")
    kernel.op("end_zone")
    kernel.op("dprint", inside, place, fmt="{} {}")
    assert body_of(kernel.finish()) == [
        "uint32_t place;",
        "uint32_t sum = count + 5;",
        "{",
        'DeviceZoneScopedN("read \\"x\\"");',
        "{",
        'DeviceZoneScopedN("reserve");',
        "cb_reserve_back(cb_x, 1);",
        "place = get_write_ptr(cb_x);",
        'DPRINT("{}\\n", sum);',
        "}",
        "}",
        'DPRINT("{} {}\\n", sum, place);',
    ]


def test_a_zone_ends_in_the_block_that_it_begins_in() -> None:
    kernel = KernelBuilder("read", ThreadType.NOC)
    kernel.op("begin_zone", zone="x")
    with kernel.loop(3):
        kernel.op("end_zone")
    with pytest.raises(CompileError, match="a zone of a kernel has no end in its block"):
        text_of(kernel.finish())


def test_a_zone_that_ends_has_begun() -> None:
    kernel = KernelBuilder("read", ThreadType.NOC)
    kernel.op("begin_zone", zone="x")
    kernel.op("end_zone")
    kernel.op("end_zone")
    with pytest.raises(CompileError, match="a zone of a kernel has no beginning in its block"):
        text_of(kernel.finish())


def test_what_is_used_several_times_in_a_zone_moves_once() -> None:
    kernel = KernelBuilder("read", ThreadType.NOC)
    value = kernel.argument(0, "start")
    kernel.op("begin_zone", zone="x")
    for _ in range(40):
        value = kernel.sum(value, value)
    kernel.op("end_zone")
    kernel.op("dprint", value, fmt="{}")
    assert body_of(kernel.finish())[-3:-1] == ['DeviceZoneScopedN("x");', "}"]


def test_attributes_become_template_arguments() -> None:
    kernel = KernelBuilder("compute_exp", ThreadType.COMPUTE)
    x, y = (kernel.circular_buffer(f"cb_{name}", 2, BF16) for name in "xy")
    kind = {"reduce_type": ReduceType.SUM, "reduce_dim": ReduceDim.ROW}
    kernel.op("reduce_init", x, x, y, **kind)
    kernel.op("exp_tile", 1, approx=True)
    kernel.op("exp_tile", 1, approx=False)
    assert body_of(kernel.finish()) == [
        "reduce_init<PoolType::SUM, ReduceDim::REDUCE_ROW>(cb_x, cb_x, cb_y);",
        "exp_tile<true>(dst1);",
        "exp_tile(dst1);",
    ]


def test_floats_are_passed_by_their_bits() -> None:
    kernel = KernelBuilder("compute_exp", ThreadType.COMPUTE)
    kernel.op("mul_unary_tile", 0, kernel.bits(0.1))
    with kernel.loop(2):
        kernel.op("mul_unary_tile", 0, kernel.bits(0.1))
    kernel.op("fill_tile", 0, float("-inf"))
    assert body_of(kernel.finish()) == [
        "mul_unary_tile(dst0, __builtin_bit_cast(uint32_t, 0.1f));",
        "for (uint32_t i = 0; i < 2; ++i) {",
        "mul_unary_tile(dst0, __builtin_bit_cast(uint32_t, 0.1f));",
        "}",
        "fill_tile(dst0, -std::numeric_limits<float>::infinity());",
    ]
    assert "#include <limits>" in text_of(kernel.function)


def test_integers() -> None:
    kernel = KernelBuilder("compute_exp", ThreadType.COMPUTE)
    count = kernel.argument(0, "count")
    kernel.op("tile_regs_acquire")
    with kernel.loop(kernel.quotient(count, 2), start=1, step=4, name_hint="block") as block:
        with kernel.when(kernel.compare("ult", kernel.remainder(block, 3), 2)):
            kernel.op("exp_tile", kernel.sum(kernel.product(block, 2), 1))
    assert body_of(kernel.finish()) == [
        "tile_regs_acquire();",
        "for (uint32_t block = 1; block < count / 2; block += 4) {",
        "if (block % 3 < 2) {",
        "exp_tile(block * 2 + 1);",
        "}",
        "}",
    ]


def test_a_variable_without_a_name_that_changes_before_it_is_used() -> None:
    kernel = KernelBuilder("compute_exp", ThreadType.COMPUTE)
    slot = kernel.variable(5)
    before = kernel.load(slot)
    kernel.assign(slot, 7)
    kernel.op("exp_tile", before)
    assert body_of(kernel.finish()) == [
        "uint32_t variable = 5;",
        "uint32_t variable_before = variable;",
        "variable = 7;",
        "exp_tile(variable_before);",
    ]


@pytest.mark.parametrize(("element", "shape"), [(index, (4,)), (f32, ())])
def test_a_variable_that_is_no_number_is_refused(
    element: IndexType | Float32Type, shape: tuple[int, ...]
) -> None:
    kernel = KernelBuilder("compute_exp", ThreadType.COMPUTE)
    kernel.function.body.block.add_op(memref.AllocaOp.get(element, shape=shape))
    with pytest.raises(CompileError, match="cannot have a variable of type memref<"):
        text_of(kernel.finish())


def test_named_numbers_and_comments() -> None:
    kernel = KernelBuilder("compute_exp", ThreadType.COMPUTE)
    register = kernel.value(3)
    register.name_hint = "dst_sum"
    op = kernel.op("exp_tile", register)
    op.attributes["ttkernel.comment"] = StringAttr("The sum.\nAnd more.")
    text = text_of(kernel.finish())
    assert "    constexpr uint32_t dst_sum = 3;\n" in text
    assert "    // The sum.\n    // And more.\n    exp_tile(dst_sum);\n" in text


def test_large_numbers_are_hexadecimal() -> None:
    kernel = KernelBuilder("compute_exp", ThreadType.COMPUTE)
    mask = arith.ConstantOp.from_int_and_width(-1, i32)
    kernel.function.body.block.add_op(mask)
    kernel.op("pack_relu_config", mask.result)
    assert body_of(kernel.finish()) == ["pack_relu_config(ReluConfig::from_packed(0xffffffff));"]


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("operation", EltwiseBinaryType)
def test_what_is_in_the_destination_is_an_operand(
    release: str, operation: EltwiseBinaryType
) -> None:
    """Of one function by its template argument, or of a function for each operation."""
    kernel = KernelBuilder("compute_exp", ThreadType.COMPUTE)
    x = kernel.circular_buffer("cb_x", 2, BF16)
    words = {"eltwise_binary_type": operation, "reuse_type": DestinationReuse.DEST_TO_SRCB}
    kernel.op("binary_dest_reuse_tiles_init", x, **words)
    kernel.op("binary_dest_reuse_tiles", x, 0, 1, **words)
    text = text_of(kernel.finish(), release=release)
    place = "EltwiseBinaryReuseDestType::DEST_TO_SRCB"
    if release == RELEASES[0]:
        of = f"<EltwiseBinaryType::ELW{operation.name}, {place}>"
        assert f"binary_dest_reuse_tiles_init{of}(cb_x);" in text
        assert f"binary_dest_reuse_tiles{of}(cb_x, 0, dst1);" in text
    else:
        assert f"{operation}_reuse_dest_init<{place}>(cb_x);" in text
        assert f"{operation}_reuse_dest_tiles<{place}>(cb_x, 0, dst1);" in text


def test_a_purpose_or_title_cannot_become_code() -> None:
    kernel = dataclasses.replace(exp_program().kernels[1], purpose="a\n#include <x>\\")
    text = text_of(compute_kernel(DataType.BFLOAT16), kernel)
    assert "// #include <x>/\n" in text
    assert "\n#include <x>" not in text


def test_an_op_without_function_is_refused() -> None:
    kernel = KernelBuilder("compute_exp", ThreadType.COMPUTE)
    kernel.op("experimental.unpack_stall_on_pack")
    with pytest.raises(CompileError, match="unpack_stall_on_pack has no counterpart"):
        text_of(kernel.finish())


def test_an_op_of_another_dialect_is_refused() -> None:
    kernel = KernelBuilder("compute_exp", ThreadType.COMPUTE)
    number = arith.ConstantOp.from_int_and_width(1, i32)
    kernel.function.body.block.add_ops([number, arith.CeilDivUIOp(number, number)])
    with pytest.raises(CompileError, match=r"cannot run 'arith\.ceildivui'"):
        text_of(kernel.finish())


def long_kernel(stage: Callable[[KernelBuilder, SSAValue], None], steps: int = 100) -> FuncOp:
    """A kernel of so many lines and a loop with what `stage` adds; it knows `columns`."""
    builder = KernelBuilder("exp", ThreadType.COMPUTE, destination_tiles=8)
    source = builder.circular_buffer("cb_x", 2, BF16)
    columns = builder.compile_time_argument("columns")
    width = builder.named(builder.product(columns, 2), "width")
    count = builder.argument(0, "count")
    for _ in range(steps):
        builder.op("cb_wait_front", source, 1)
    with builder.loop(count, name_hint="row") as row:
        first = builder.named(builder.sum(row, width), "first")
        builder.op("cb_wait_front", source, first)
        stage(builder, first)
        builder.op("cb_pop_front", source, columns)
    return builder.finish()


def text_of_stages(function: FuncOp) -> str:
    kernel = exp_program().kernels[1]
    constants = (*kernel.constants, NamedConstant("columns", 4))
    return text_of(function, dataclasses.replace(kernel, constants=constants))


def pop_rows(builder: KernelBuilder, first: SSAValue) -> None:
    with builder.stage("pop_rows", "Pops rows."):
        with builder.loop(first, name_hint="column") as column:
            builder.comment("One by one.")
            builder.op("cb_pop_front", builder.circular_buffer("cb_x", 2, BF16), column)


def test_a_stage_of_a_long_kernel_is_a_function() -> None:
    text = text_of_stages(long_kernel(pop_rows))
    assert (
        """\
// Circular buffer: pages of 2048 bytes, bf16.
constexpr uint32_t cb_x = get_named_compile_time_arg_val("cb_x");
constexpr uint32_t columns = get_named_compile_time_arg_val("columns");

constexpr uint32_t width = columns * 2;

// Pops rows.
ALWI void pop_rows(uint32_t first) {
    for (uint32_t column = 0; column < first; ++column) {
        // One by one.
        cb_pop_front(cb_x, column);
    }
}

void kernel_main() {
    // Runtime arguments.
    const uint32_t count = get_arg_val<uint32_t>(0);

"""
        in text
    )
    assert text.endswith(
        """\
    for (uint32_t row = 0; row < count; ++row) {
        const uint32_t first = row + width;
        cb_wait_front(cb_x, first);
        pop_rows(first);
        cb_pop_front(cb_x, columns);
    }
}
"""
    )


def test_a_short_kernel_is_one_function() -> None:
    text = text_of_stages(long_kernel(pop_rows, steps=3))
    assert "pop_rows" not in text
    assert "Pops rows" not in text
    assert "    constexpr uint32_t columns = get" in text


def test_a_stage_whose_values_are_used_after_it_stays_where_it_is() -> None:
    def stage(builder: KernelBuilder, first: SSAValue) -> None:
        with builder.stage("pop_rows", "Pops rows."):
            last = builder.named(builder.sum(first, 1), "last")
        builder.op("cb_pop_front", builder.circular_buffer("cb_x", 2, BF16), last)

    text = text_of_stages(long_kernel(stage))
    assert "pop_rows" not in text
    assert "const uint32_t last = first + 1;" in text


def test_a_stage_that_changes_a_variable_stays_where_it_is() -> None:
    def stage(builder: KernelBuilder, first: SSAValue) -> None:
        rows = builder.variable(0, "rows")
        with builder.stage("count_rows", "Counts rows."):
            builder.assign(rows, builder.sum(builder.load(rows), first))

    assert "count_rows" not in text_of_stages(long_kernel(stage))


def test_a_number_without_a_name_is_computed_in_each_stage() -> None:
    def stage(builder: KernelBuilder, first: SSAValue) -> None:
        rest = builder.difference(first, 3)
        buffer = builder.circular_buffer("cb_x", 2, BF16)
        for name in ("wait_for_rows", "pop_rows"):
            with builder.stage(name, ""):
                builder.op("cb_wait_front" if "wait" in name else "cb_pop_front", buffer, rest)

    text = text_of_stages(long_kernel(stage))
    for name, op in (("wait_for_rows", "wait_front"), ("pop_rows", "pop_front")):
        assert f"ALWI void {name}(uint32_t first) {{\n    cb_{op}(cb_x, first - 3);\n}}" in text


def test_a_constant_that_the_host_does_not_pass_is_a_bug() -> None:
    declared = dataclasses.replace(exp_program().kernels[1], constants=(NamedConstant("cb_x", 0),))
    with pytest.raises(ValueError, match="no constant 'cb_y'"):
        text_of(compute_kernel(DataType.BFLOAT16), declared)
